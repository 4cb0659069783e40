// How the points of a kernel are dealt out among threads and blocks.
//
// The cost model of render.cpp says all of it; whoever knows better (autotune.h) asks for other numbers. Results differ by rounding where they change the order of a sum, else not at all.
// Tests: tests/cuda/source_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dynvm::codegen::cuda {

// Powers of 2, but for parts; 0: not asked for, or not of this form (render.h).
struct Shape {
  int vector = 0;   // neighbours that a thread loads and stores together
  int threads = 0;  // points and columns: of a block; rows: of one row
  int unroll = 0;   // points: vectors of a thread
  int parts = 0;    // rows and columns: blocks that share one
  friend bool operator==(const Shape&, const Shape&) = default;
};

// Those with one of the numbers twice or half as large.
std::vector<Shape> neighbours(const Shape& shape);

std::string shape_text(const Shape& shape);
std::optional<Shape> parse_shape(std::string_view text);

}  // namespace dynvm::codegen::cuda
