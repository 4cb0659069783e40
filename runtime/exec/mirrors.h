// Which kernels of a trace store a number for the host too, since it is read next (codegen/cuda/mirror.h).
//
// A read is a point up to which all work on the stream is done: scripts order other streams' work, or copies to the host, by it. So the kernel that computes the number must
// be the last work on the GPU before the read, though the number itself would be right behind others too.
//
// Inputs: an optimised trace and its program. Output: what each kernel mirrors, and which mirror each read looks at. A mirror's address is the session's pointer of a storage of
// its own (kMirror), so launches and graphs (stretches.h) are given it as they are given memory.
// Tests: tests/exec/mirrors_test.cpp.
#pragma once

#include <map>
#include <vector>

#include "codegen/cuda/render.h"
#include "ir/trace.h"
#include "runtime/exec/program.h"

namespace dynvm::runtime {

struct MirrorPlan {
  std::map<ir::Ref, std::vector<codegen::cuda::MirroredStore>> of_kernel;  // by its instruction: stores, with their mirrors' storages
  std::vector<int32_t> of_read;                                            // by Ref of a read_scalar: the storage, -1: it copies
  std::vector<int32_t> storages;
};

// Adds the mirrors to the program's storages.
MirrorPlan plan_mirrors(const ir::Trace& trace, TracePrograms* programs);

}  // namespace dynvm::runtime
