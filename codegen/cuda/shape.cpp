// See shape.h.
#include "codegen/cuda/shape.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdio>

namespace dynvm::codegen::cuda {
namespace {

constexpr std::array kNumbers{&Shape::vector, &Shape::threads, &Shape::unroll, &Shape::parts};
constexpr int kLargest = 1024;

}  // namespace

std::vector<Shape> neighbours(const Shape& shape) {
  std::vector<Shape> found;
  for (int Shape::* number : kNumbers) {
    const int now = shape.*number;
    for (int other : {now * 2, now / 2}) {
      if (other == 0 || other > kLargest) continue;
      found.push_back(shape);
      found.back().*number = other;
    }
  }
  return found;
}

std::string shape_text(const Shape& shape) { return fmt::format("vector {} threads {} unroll {} parts {}", shape.vector, shape.threads, shape.unroll, shape.parts); }

std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  if (std::sscanf(std::string(text).c_str(), "vector %d threads %d unroll %d parts %d", &shape.vector, &shape.threads, &shape.unroll, &shape.parts) != 4) return std::nullopt;
  for (int Shape::* number : kNumbers) {
    const int is = shape.*number;
    if (is < 0 || is > kLargest || (number != &Shape::parts && !std::has_single_bit(static_cast<unsigned>(is)) && is != 0)) return std::nullopt;
  }
  return shape;
}

}  // namespace dynvm::codegen::cuda
