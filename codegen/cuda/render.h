// CUDA C++ for a fused kernel.
//
// Input: a verified ir::Kernel, the device's number of multiprocessors. Output: the source of one __global__ function (to stand behind prelude()) and how
// it is launched. Sizes and strides are compiled in, but for those with symbols in them; these, memory and run-time scalars come in one parameter.
//
// Three forms, by where the kernel reduces:
//
//   points    no reduction: each thread has U vectors of V neighbours, loaded before any is computed
//   rows      the innermost dim is reduced: a group of threads (a part of a warp, or a block) has one kept point and goes over its row as often as
//             reductions depend on each other. What later passes load again stays in registers, or in shared memory where it is much.
//   columns   a kept dim is innermost: each thread has V neighbouring kept points, threads of one block share the reduced points among them
//
// A scan goes along a row chunk by chunk, with what the group's threads have before each (group_scan), and down a column in one thread.
//
// A row or column of which there are few is split over blocks when one pass is all there is: each leaves its part in the workspace, and the last one
// combines them in their order, so results do not depend on chance.
//
// Invariants: threads load and store the same elements where a kernel works in place; nothing is read or written but what operands name. Loads of V
// neighbours need pointers that are multiples of `alignment`; with vector_bytes 1 there are none.
// Tests: tests/cuda/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/cuda/shape.h"
#include "ir/kernel/kernel.h"
#include "runtime/base/status.h"

namespace dynvm::codegen::cuda {

// A store of a kernel with one kept point, which goes to a mirror (mirror.h) too: its address is the pointer of that index, or null.
struct MirroredStore {
  int32_t store, pointer;
};

struct RenderOptions {
  int multiprocessors = 132;
  bool wide = false;      // positions have 64 bits also where no size is known to need them
  int vector_bytes = 16;  // of one load or store: a power of 2
  int instances = 0;      // 0: the kernel by itself; else one of these many in a launch (batch.h)
  std::vector<MirroredStore> mirrors;  // of the kernel by itself
  Shape shape;            // numbers that the cost model would say otherwise; what does not fit is as near as fits
};

struct Source {
  std::string name;                // of the function
  std::string text;
  uint32_t grid_x = 0, grid_y = 1, block = 0;  // grid_x 0: nothing is to be done
  uint32_t shared_bytes = 0;       // dynamic
  int64_t points = 0;              // not 0: has symbols in it, and grid_x is as many blocks as these many points need, of per_block each
  int64_t per_block = 1;
  std::vector<int32_t> pointers;   // the parameter's pointers: indexes of the kernel's
  int num_scalars = 0;
  std::vector<int64_t> numbers;    // with symbols in them: what these are is the parameter's too
  bool narrow = false;             // with symbols: positions have 32 bits, which a launch must be sure of
  std::vector<int64_t> tail;       // what stands behind the scalars in each launch
  int64_t workspace_bytes = 0;     // zeroed before the first launch; launches on one stream only
  int alignment = 1;
  Shape shape;                     // as it is
};

// Parameter layout: pointers, then scalars, numbers and the tail (8 bytes each), then the workspace's address where there is one.
base::Status render_kernel(const ir::Kernel& kernel, const std::string& name, const RenderOptions& options, Source* out);

}  // namespace dynvm::codegen::cuda
