// What only roundings to 16 bits see of a kernel's values, and functions that suffice for it.
//
// An operation on f16 or bf16 computes in f32 and rounds its result, so a function inside of it need not be right to f32's last bit: exp without the second part of its
// product, 1 + erf by a shorter polynomial. Their errors, at most 2^-15 of the result, are an eighth of what rounding to f16 makes, and a 64th of what rounding to bf16 makes.
//
// Invariant: results that are f32 or f64 are computed from nothing that is less exact than they are.
// Tests: tests/cuda/source_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace dynvm::codegen::cuda {

// By node: whether all that comes of it is rounded to f16 or bf16, with nothing in between that makes a relative error larger than arithmetic does.
std::vector<bool> seen_rounded(const ir::Kernel& kernel);

// A node of which that holds, in the prelude's functions that suffice; empty where there is none. is_there: may this node's operands be named here?
std::string rounded_expression(const ir::Kernel& kernel, size_t node, const std::function<std::string(int32_t)>& name, const std::function<bool(int32_t)>& is_there);

}  // namespace dynvm::codegen::cuda
