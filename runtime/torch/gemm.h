// Matrix products of small matrices without ATen's preparations, which cost as much as the product itself.
//
// Inputs: operands as aten::mm, aten::addmm, aten::bmm and aten::baddbmm take them. Output: the result. Products that codegen's tiles serve
// (codegen/x86/matmul) are theirs: each sum is in the order of the inner dimension, as in a library on one thread. Float products that they
// leave are the library function's that ATen calls (sgemm of the BLAS inside libtorch_cpu), with the arguments that ATen would give it.
// Tests: tests/traces/cases/matmul_layouts.py, tests/torch/test_replay.py, tests/kernel/matmul_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include "codegen/x86/matmul/matmul.h"

namespace dynvm::torch_bridge {

void set_matmul(codegen::MatmulFunction function);

// out = start + a * b, matrices or batches of them; start: null, or broadcast to out. False, and nothing is done, where ATen would go another way: other
// types and layouts, reduced precision, a torch without that function.
bool multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor* start, const at::Tensor& out);

}  // namespace dynvm::torch_bridge
