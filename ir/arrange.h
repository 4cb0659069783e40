// Where in one block of memory pieces with limited lifetimes lie.
//
// Inputs: for each piece its bytes and the first and last instruction that touches it. Outputs: offsets, and how long the block must be.
// Invariants: two pieces whose lifetimes touch do not overlap; offsets are multiples of 64 bytes (a cache line, and the widest vector).
// Method: linear scan over lifetimes with best fit into the free gaps.
// In a header, as the torch bridge, which arranges memory anew where a run decides sizes, has this library's headers only.
// Tests: tests/ir/plan.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <vector>

namespace dynvm::ir {

struct Piece {
  uint32_t first = 0, last = 0;
  int64_t bytes = 0;   // 0: needs no place
  int64_t offset = 0;  // the result
};

inline int64_t arrange(std::vector<Piece>* pieces) {
  constexpr int64_t kAlignment = 64;
  const auto rounded = [](int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; };
  std::vector<size_t> order;
  for (size_t k = 0; k < pieces->size(); ++k)
    if ((*pieces)[k].bytes > 0) order.push_back(k);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return (*pieces)[a].first < (*pieces)[b].first; });
  std::multimap<uint32_t, size_t> ends;  // of the pieces placed, by their last instruction
  std::map<int64_t, int64_t> free;       // offset -> bytes, no two adjacent
  int64_t top = 0;
  const auto release = [&](int64_t offset, int64_t bytes) {
    auto next = free.lower_bound(offset);
    if (next != free.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = free.erase(next);
    }
    if (next != free.begin()) {
      auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        previous->second += bytes;
        return;
      }
    }
    free.emplace(offset, bytes);
  };
  for (size_t k : order) {
    Piece& piece = (*pieces)[k];
    while (!ends.empty() && ends.begin()->first < piece.first) {
      const Piece& ended = (*pieces)[ends.begin()->second];
      release(ended.offset, rounded(ended.bytes));
      ends.erase(ends.begin());
    }
    const int64_t bytes = rounded(piece.bytes);
    auto best = free.end();
    for (auto gap = free.begin(); gap != free.end(); ++gap)
      if (gap->second >= bytes && (best == free.end() || gap->second < best->second)) best = gap;
    if (best != free.end()) {
      piece.offset = best->first;
      const int64_t left = best->second - bytes;
      free.erase(best);
      if (left > 0) free.emplace(piece.offset + bytes, left);
    } else if (!free.empty() && std::prev(free.end())->first + std::prev(free.end())->second == top) {
      // The last gap touches the top: grow it.
      const auto last = std::prev(free.end());
      piece.offset = last->first;
      top = piece.offset + bytes;
      free.erase(last);
    } else {
      piece.offset = top;
      top += bytes;
    }
    ends.emplace(piece.last, k);
  }
  return top;
}

}  // namespace dynvm::ir
