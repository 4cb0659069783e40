// One cuBLAS workspace for a stream and for the one beside it that its graphs are captured on (capture.h).
//
// torch gives each pair of handle and stream 32 MB on recent GPUs. What is captured runs on the script's stream, after what that has queued, so it can work in that
// stream's. torch's tables of workspaces are exported by libtorch_cuda.so, which is not linked with; their types are those of CUDAContextLight.h in torch 2.11 to 2.13.
//
// Inputs: two CUstreams of one device. Invariants: memory that a graph may work in stays for good, also when torch clears its tables. In other versions of torch, and
// for handles that have no workspace for the stream yet, nothing is shared, and torch allocates another.
// Tests: tests/cuda/test_whole.py (on a machine with a GPU).
#pragma once

namespace dynvm::torch_bridge {

// Where `stream` has workspaces and `side` has none, they are `side`'s too. Nothing may be running on `side`. False: it has none, as products have not run on `stream`.
bool share_workspaces(void* stream, void* side);

}  // namespace dynvm::torch_bridge
