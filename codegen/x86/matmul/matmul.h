// Products of matrices, by generated tiles (tile.h) on the process's threads.
//
// Inputs: Matmul. Output: out. Where a library packs both operands and hands the work to a pool of its own, this packs only a transposed or
// large b and splits where that pays.
// Invariants: each result is summed in the order of the inner dimension, whatever the number of threads, so results do not depend on it.
// Tests: tests/kernel/matmul_test.cpp.
#pragma once

#include <cstdint>

#include "codegen/x86/kernel/cpu_features.h"

namespace dynvm::codegen {

// out[t, i, j] = start[t, i, j] + sum over k of a[t, i, k] * b[t, k, j], strides in elements.
struct Matmul {
  struct Matrix {
    const void* data = nullptr;
    int64_t row = 0, column = 0;  // strides; one of them is 1
    int64_t batch = 0;
  };
  bool wide = false;  // f64, else f32
  int64_t batches = 1, rows = 0, columns = 0, inner = 0;
  Matrix a, b;
  Matrix start;  // null data: zero; row stride 0: one row for all; column stride 1
  void* out = nullptr;
  int64_t out_row = 0, out_batch = 0;  // column stride 1
};

using MatmulFunction = bool (*)(const Matmul&);

// False, and nothing is done, for what is left to a library: strides that are not as above, sizes that are large or too thin for tiles, no AVX2.
bool matmul(const Matmul& call, const CpuFeatures& features = cpu_features());

}  // namespace dynvm::codegen
