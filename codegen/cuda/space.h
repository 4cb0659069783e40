// The iteration space of a kernel as CUDA threads go over it.
//
// Input: a verified kernel. Output: kept and reduced dims without those of size 1, each kind ordered so that strides shrink inwards (by votes of the
// operands by their bytes, stores twice), with neighbours merged that every operand walks through as one.
// Tests: tests/cuda.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/kernel/kernel.h"

namespace dynvm::codegen::cuda {

struct Dim {
  int64_t size;
  std::vector<int64_t> strides;  // elements, of each of the kernel's operands
  std::vector<int32_t> sources;  // the kernel's dims that it was merged from, outer first
};

struct Space {
  std::vector<Dim> kept, reduced;  // outer first
  int64_t kept_points = 1, reduced_points = 1;
  std::vector<bool> needed;        // by node: a store depends on it
  std::vector<bool> full;          // by node: depends on a reduced dim
  std::vector<uint32_t> dims;      // by node: the kernel's dims that it depends on
  std::vector<bool> used;          // by operand: a needed load's, or a store's
  std::vector<bool> walked;        // by operand: used, or a needed draw's, which touches no memory
};

Space make_space(const ir::Kernel& kernel);

// Do most bytes that a kernel with reductions loads lie along a kept dim?
bool columns_are_inner(const ir::Kernel& kernel, const Space& space);

// May elements lie further than an int reaches?
bool is_wide(const ir::Kernel& kernel);

}  // namespace dynvm::codegen::cuda
