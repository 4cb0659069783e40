// Shapes of kernels (shape.h) by timing, for --autotune.
//
// A kernel begins with the cost model's shape. Its neighbours, one number twice or half as large, are compiled together with those of the trace's other kernels and timed in turns; the fastest is
// where neighbours are looked for next, until none is faster by more than timings differ. What is found is kept in the user's cache folder, so that a later process with --autotune times nothing.
//
// Inputs: kernels as they are rendered with the model's shapes, how to render them otherwise, how far they reach into their memory. Outputs: shapes, and their functions.
// Invariants: they run on memory of zeros that is given back at the end, never on the script's. A kernel that cannot be timed so keeps the model's shape: one whose sizes only a run tells, or that
// fails where an index is out of bounds, which zeros need not be; so does all where the script captures a CUDA graph of its own. The script waits meanwhile.
// Tests: tests/cuda/test_autotune.py (on a machine with a GPU).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "codegen/cuda/functions.h"
#include "codegen/cuda/render.h"
#include "ir/kernel/kernel.h"
#include "runtime/base/status.h"

namespace dynvm::codegen::cuda {

// Bytes before and behind a pointer.
struct Extent {
  int64_t before = 0, behind = 0;
};
using Extents = std::map<int32_t, Extent>;  // by pointer

struct Tunable {
  int device = 0;
  Source source;  // with the model's shape
  Extents extents;
  std::function<base::Status(const Shape&, Source*)> render;
};

struct Tuned {
  Shape shape;                         // all 0: the model's
  std::shared_ptr<FunctionCode> code;  // of what was timed
};

// What the kernels of a launch reach. storage_bytes: of the memory behind each pointer, 0 where that is not known. False: it is not known, or is where data says.
bool extents_of(const std::vector<ir::Kernel>& kernels, const std::vector<int64_t>& storage_bytes, Extents* out);

// One for each.
std::vector<Tuned> tune(const std::vector<Tunable>& kernels);

}  // namespace dynvm::codegen::cuda
