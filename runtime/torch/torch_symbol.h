// Functions of the library that ATen's own code is in, and of those it was linked with.
//
// Another BLAS or OpenMP in the process would round differently, or double the threads. Inputs: a C symbol. Output: its address, or null.
// Tests: tests/torch, through gemm.h and small_work.h.
#pragma once

#include <c10/core/Stream.h>

namespace dynvm::torch_bridge {

void* torch_symbol(const char* name);

// What gives the CUstream of c10::cuda::getCurrentCUDAStream; null where torch has no CUDA.
void* (*cuda_stream_function())(int device);

// A stream of the current device that torch gives to nobody else, as those of its pool are given round. c10::Error, std::runtime_error: there is none.
c10::Stream new_cuda_stream(c10::Device device);

}  // namespace dynvm::torch_bridge
