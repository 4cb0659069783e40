// Reading numbers of tensors on a GPU (`.item()`, branches).
//
// A number that its kernel stores for the host (mirrors.h) is looked for there; of any other a copy into pinned memory is queued (codegen/cuda/transfer.h). Either is waited
// for by spinning for a tenth of a millisecond, then on the stream, without the GIL.
//
// Inputs: a session whose storages of kind kMirror point to mirrors or nowhere. Outputs: numbers.
// Invariants: the GIL is held. A null pointer: the launch mirrors nothing, and reads copy. That is so while the script's own capture is under way, whose graph may run at any
// time.
// Tests: tests/cuda/test_whole.py (on a machine with a GPU).
#pragma once

#include <vector>

#include "codegen/cuda/kernel.h"
#include "ir/trace.h"
#include "runtime/bridge/bridge.h"

namespace dynvm::runtime {

// Before a launch of the kernel, which may be queued first.
void expect_numbers(const codegen::cuda::CudaKernel& kernel, bridge::Session* session);
// The element that a tensor on a GPU consists of, on the host, once all that was queued before is done; null where it is read in torch's way, which also says what is
// wrong with it. mirror: its storage, -1 where there is none. copies_follow: a graph's copies stand behind the kernel that mirrors it.
const void* read_element(bridge::Session* session, const ir::TensorMeta& meta, int32_t mirror, bool copies_follow);
// The session is over. mirrors: its storages.
void give_back_mirrors(const std::vector<int32_t>& mirrors, bridge::Session* session);

}  // namespace dynvm::runtime
