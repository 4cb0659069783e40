// Functions of the library that ATen's own code is in, and of those it was linked with.
//
// Another BLAS or OpenMP in the process would round differently, or double the threads. Inputs: a C symbol. Output: its address, or null.
// Tests: tests/torch, through gemm.h and small_work.h.
#pragma once

namespace dynvm::torch_bridge {

void* torch_symbol(const char* name);

// What gives the CUstream of c10::cuda::getCurrentCUDAStream; null where torch has no CUDA.
void* (*cuda_stream_function())(int device);

}  // namespace dynvm::torch_bridge
