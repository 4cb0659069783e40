// Random numbers in kernels: the C++ text of draw nodes.
//
// Inputs: a kernel's draw, text for its seed and offset and for where its element lies. Output: statements and expressions that call the prelude's functions. Numbers are
// those of drawn_number (ir/kernel/philox.h). Neighbours that one call of Philox serves are drawn together: it costs about a hundred instructions, and gives four.
// Tests: tests/cuda.
#pragma once

#include <string>

#include "ir/kernel/kernel.h"

namespace dynvm::codegen::cuda {

// Is the node's value known before anything is computed: a scalar or a constant?
bool is_given(const ir::Kernel& kernel, int32_t node);

// Declares d..[v], the numbers of v neighbours. place: the sum of what lies in front of the first of them, a multiple of v; each term with its sign. The seed and the
// offset are given.
std::string draw_all(const ir::Kernel& kernel, size_t draw, int v, const std::string& place);

// The number of one element, as an expression.
std::string draw_one(const ir::Kernel& kernel, const ir::KernelNode& draw, const std::string& seed, const std::string& offset, const std::string& place);

}  // namespace dynvm::codegen::cuda
