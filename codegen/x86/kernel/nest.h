// The loop nest of a kernel: which loops, in which order, and which of them is vectorised.
//
// Input: a verified kernel, the vector width. Output: a Nest.
// Dims of size 1 vanish. The others are split into kept and reduced ones, each ordered so that the strides shrink inwards (by votes of the
// operands, stores twice); neighbours that every operand walks through as one are merged. One dim becomes the vector dim:
//
//     vertical    a kept dim: each lane is another kept point; loops over reduced dims are inside the vector loop
//     horizontal  a reduced dim: lanes are accumulators of one kept point, combined at the end
//
// Where an operand runs along another dim than the vector dim (a transposition), a stretch of that dim becomes a loop inside the vector
// loop, so that each cache line of the operand is used up while it is near.
//
// Tests: tests/kernel/compile_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/kernel/kernel.h"

namespace dynvm::codegen {

struct NestDim {
  int64_t size;
  bool reduced;
  std::vector<int64_t> strides;  // elements, one per operand of the kernel
  std::vector<int32_t> sources;  // the kernel's dims that were merged into it, outer first
};

struct Nest {
  std::vector<NestDim> dims;     // loop order, outer first: kept, then reduced; the vector dim is the last of its kind but for a stretch
                                 // of a transposed dim
  std::vector<int32_t> dim_of;   // kernel dim -> nest dim, -1 where its size is 1 (of two parts of a dim: either)
  int32_t num_kept = 0;
  int32_t vector_dim = -1;       // -1: all sizes are 1
  int32_t split_dim = -1;        // the dim that threads divide: the outermost or the vector dim, kept; -1: none
  bool no_kept_points = false;   // a kept dim has size 0: nothing is stored
  bool no_reduced_points = false;
  int lanes = 8;                 // elements per vector, set by the widest dtype of the kernel
  int vector_bytes = 32;
  std::vector<bool> needed;      // per node: a store depends on it
  std::vector<uint32_t> node_dims;  // per node: nest dims that its value depends on, one bit per dim

  bool horizontal() const { return vector_dim >= num_kept; }
};

Nest make_nest(const ir::Kernel& kernel, int vector_bytes, bool split);

}  // namespace dynvm::codegen
