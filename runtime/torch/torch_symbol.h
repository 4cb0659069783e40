// Functions of the library that ATen's own code is in, and of those it was linked with.
//
// Another BLAS or OpenMP in the process would round differently, or double the threads. Inputs: a C symbol. Output: its address, or null.
// Tests: tests/torch, through gemm.h and small_work.h.
#pragma once

namespace dynvm::torch_bridge {

void* torch_symbol(const char* name);

}  // namespace dynvm::torch_bridge
