// Generated code that computes one tile of a matrix product in registers.
//
// Input: the form of a tile (TileForm). Output: a function, compiled at the first request and kept for the process; it runs on any thread.
// A tile is `rows` times `vectors` whole vectors of results, each the sum over k of a[i, k] * b[k, j] by fused multiply-adds in the order of
// k, beginning at zero; the start is added last. The register blocking is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication" (2008), without their packing of a: tiles serve matrices that the caches hold.
// Invariants: with `tail`, no element of b, start or out behind the mask is read or written.
// Tests: tests/kernel/matmul_test.cpp.
#pragma once

#include <cstdint>

#include "codegen/x86/kernel/cpu_features.h"

namespace dynvm::codegen {

struct TileForm {
  bool wide = false;          // f64, else f32
  bool a_transposed = false;  // a's elements lie side by side along the rows, else along k
  bool tail = false;          // the last vector is partial
  bool start = false;         // something is added to the sums
  int rows = 1, vectors = 1;
};

// Strides in bytes.
struct TileCall {
  const char* a;
  int64_t a_step;  // from one row (transposed: one k) to the next
  const char* b;
  int64_t b_step;  // from one k to the next
  char* out;
  int64_t out_step;
  const char* start;
  int64_t start_step;  // 0: each row starts from the same one
  int64_t inner;       // how many k, at least 1
  int64_t partial;     // with `tail`: how many elements of the last vector
};

using TileFunction = void (*)(const TileCall*);

// What the registers hold; a tile has at most this many rows and vectors.
struct TileLimits {
  int lanes_bytes, rows, vectors;
};
TileLimits tile_limits(const CpuFeatures& features);

// Null without AVX2, or without executable memory.
TileFunction tile_function(const TileForm& form, const CpuFeatures& features);

}  // namespace dynvm::codegen
