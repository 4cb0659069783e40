// Which random numbers native_dropout of a GPU gives to which element: torch's kernels for it (aten/src/ATen/native/cuda/Dropout.cu).
//
// A block has 256 threads. There are as many blocks as the device holds at once (RandomStream::threads), fewer where there are fewer elements. The generator's offset moves
// on by four numbers for each round of four elements a thread, however many neighbours a thread takes at a time. It takes as many as 16 bytes have (in some versions of
// torch four at most) where the operand is dense, its place in memory is a multiple of so many and so is the number of its elements; they are neighbours in memory then.
// With no neighbours, elements are numbered as indexes count.
//
// Inputs: what is known of the stream, the operand as it looks. Output: the form of the stream, the numbers of elements as strides, how far the generator moves on.
// Invariant: the operand's storage begins at a multiple of 16 bytes. Header only, for the torch bridge. Tests: tests/ir/drawing.cpp, tests/cuda/test_dropout.py.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "ir/kernel/philox.h"
#include "ir/trace.h"

namespace dynvm::ir {

struct Drawing {
  DrawForm form;
  int64_t increment = 0;          // of the generator's offset
  std::vector<int64_t> strides;   // of an element's number
};

// No two elements in one place, and no gaps, in whatever order.
inline bool is_dense(const TensorMeta& meta) {
  std::vector<size_t> order(meta.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t d) { return meta.sizes[d] == 1; });
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return meta.strides[a] < meta.strides[b]; });
  int64_t expected = 1;
  for (size_t d : order) {
    if (meta.strides[d] != expected) return false;
    expected *= meta.sizes[d];
  }
  return true;
}

// Nothing where it is not known, or where there are no elements.
inline std::optional<Drawing> drawing_of(const RandomStream& stream, const TensorMeta& self) {
  constexpr int64_t kBlock = 256, kNumbersOfCall = 4;
  const int64_t n = elements(self);
  if (stream.threads <= 0 || n == 0 || self.open != 0) return std::nullopt;
  Drawing out;
  out.form.threads = std::min<int64_t>(stream.threads, (n + kBlock - 1) / kBlock * kBlock);
  out.form.vector = is_dense(self) ? stream.vector : 1;
  while (out.form.vector > 1 && (n % out.form.vector != 0 || self.offset % out.form.vector != 0)) out.form.vector /= 2;
  out.increment = ((n - 1) / (out.form.threads * kNumbersOfCall) + 1) * kNumbersOfCall;
  out.strides = self.strides;
  if (out.form.vector == 1) {
    int64_t below = 1;
    for (size_t d = self.sizes.size(); d-- > 0; below *= self.sizes[d]) out.strides[d] = below;
  }
  return out;
}

}  // namespace dynvm::ir
