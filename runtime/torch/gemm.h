// Matrix products of small float matrices without ATen's preparations, which cost as much as the product itself.
//
// Inputs: operands as aten::mm and aten::addmm take them. Output: the result, bit for bit ATen's on one thread: the library function that
// ATen calls (sgemm of the BLAS inside libtorch_cpu) is called with the arguments that ATen would give it. Small products run on one thread,
// so where the library would have split a sum over threads they round differently from ATen's.
// Tests: tests/traces/cases/matmul_layouts.py, tests/torch/test_replay.py.
#pragma once

#include <ATen/core/Tensor.h>

namespace dynvm::torch_bridge {

// out = bias + a * b; bias: null, or one row that each row of the result starts from. False, and nothing is done, where ATen would go another
// way: other types and layouts, reduced precision, a torch without that function.
bool multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor* bias, const at::Tensor& out);

}  // namespace dynvm::torch_bridge
