// Reading numbers of tensors on a GPU (`.item()`, branches).
//
// Where the kernel that computes a number is the last work on the GPU before the read, it stores the number where the host sees it (codegen/cuda/mirror.h). Else one copy
// into pinned memory is queued behind it (codegen/cuda/transfer.h). Either is waited for by spinning for a tenth of a millisecond, then on the stream, without the GIL.
//
// A read is a point up to which all work on the stream is done: scripts order other streams' work, or copies to the host, by it. So nothing may be queued between the
// kernel and the read, though the number itself would be right.
//
// Inputs: an optimised trace and its program. Outputs: what each kernel mirrors, numbers. A mirror's address is the session's pointer of a storage of its own (kMirror), so
// launches and graphs (stretches.h) are given it as they are given memory.
// Invariants: the GIL is held. A null pointer there: the launch mirrors nothing, and reads copy. That is so while the script's own capture is under way, whose graph may
// run at any time.
// Tests: tests/exec/mirrors_test.cpp; tests/cuda/test_whole.py (on a machine with a GPU).
#pragma once

#include <map>
#include <vector>

#include "codegen/cuda/kernel.h"
#include "ir/trace.h"
#include "runtime/bridge/bridge.h"
#include "runtime/exec/program.h"

namespace dynvm::runtime {

struct MirrorPlan {
  std::map<ir::Ref, std::vector<codegen::cuda::MirroredStore>> of_kernel;  // by its instruction: stores, with their mirrors' storages
  std::vector<int32_t> of_read;                                            // by Ref of a read_scalar: the storage, -1: it copies
  std::vector<int32_t> storages;
};

// Adds the mirrors to the program's storages.
MirrorPlan plan_mirrors(const ir::Trace& trace, TracePrograms* programs);

// Before a launch of the kernel, which may be queued first.
void expect_numbers(const codegen::cuda::CudaKernel& kernel, bridge::Session* session);
// The element that a tensor on a GPU consists of, on the host, once all that was queued before is done; null where it is read in torch's way, which also says what is
// wrong with it. mirror: its storage or -1.
const void* read_element(bridge::Session* session, const ir::TensorMeta& meta, int32_t mirror);
// The session is over.
void give_back_mirrors(const MirrorPlan& plan, bridge::Session* session);

}  // namespace dynvm::runtime
