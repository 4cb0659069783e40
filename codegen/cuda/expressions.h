// How values and operations of kernels are written in CUDA C++.
// Tests: tests/cuda.
#pragma once

#include <string>

#include "ir/kernel/kernel.h"

namespace dynvm::codegen::cuda {

const char* value_type(ir::DType dtype);   // f16 and bf16: float
const char* memory_type(ir::DType dtype);
std::string from_memory(ir::DType dtype, const std::string& x);
std::string to_memory(ir::DType dtype, const std::string& x);
// Element e of a vector, and a vector of an array of values (of f16 or bf16).
std::string vector_element(ir::DType dtype, const std::string& x);
std::string vector_to_memory(ir::DType dtype, const std::string& x);
std::string constant(const ir::KernelNode& node);
std::string scalar(const ir::Kernel& kernel, const ir::KernelNode& node, const std::string& bits);
std::string convert(ir::DType to, ir::DType from, const std::string& x);
// Of any op but load, scalar, const, index and the reductions. from: the dtype of operand a.
std::string expression(const ir::KernelNode& node, ir::DType from, const std::string& a, const std::string& b, const std::string& c);
// "Sum", ...: the prelude's combination, and what a reduction starts from.
const char* combination(ir::KOp op);
std::string identity(ir::KOp op, ir::DType dtype);

}  // namespace dynvm::codegen::cuda
