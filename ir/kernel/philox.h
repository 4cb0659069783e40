// The random numbers of torch's generators for GPUs: Philox4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), and which of
// them an operation gives to which element.
//
// A generator is a seed, the key, and an offset, of which a call takes the next few numbers of each of its threads. An operation has `threads` threads; each takes a
// *vector* of neighbours, then the one that lies threads * vector elements further (the next round). Each call of Philox gives a thread four numbers:
//
//     element e       thread               round                  call                                       word
//     vector > 1      e / vector % threads e / vector / threads   round * ((vector + 3) / 4) + e % vector / 4   e % vector % 4
//     vector == 1     e % threads          e / threads            round / 4                                  round % 4
//
// and its counter is (offset / 4 + call, thread), 64 bits each.
//
// Inputs: key and counter; or seed, offset, the element's number and the form. Outputs: numbers. Header only, since the torch bridge has this library's headers alone.
// Tests: tests/kernel/philox_test.cpp.
#pragma once

#include <array>
#include <cstdint>

namespace dynvm::ir {

using PhiloxCounter = std::array<uint32_t, 4>;

inline PhiloxCounter philox(PhiloxCounter counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// How an operation divides its elements among threads; packed: in one number, as a draw node has it.
struct DrawForm {
  int64_t threads = 0;
  int64_t vector = 0;  // a power of two, at most 16
  int64_t packed() const { return threads * 32 + vector; }
  static DrawForm of(int64_t packed) { return {packed / 32, packed % 32}; }
  bool sound() const { return threads > 0 && threads <= UINT32_MAX && vector > 0 && vector <= 16 && (vector & (vector - 1)) == 0; }
};

// In (0, 1].
inline float drawn_number(int64_t seed, int64_t offset, int64_t element, DrawForm form) {
  const uint64_t e = static_cast<uint64_t>(element), vector = static_cast<uint64_t>(form.vector), group = e / vector;
  const uint64_t thread = group % static_cast<uint64_t>(form.threads), round = group / static_cast<uint64_t>(form.threads);
  const uint64_t call = static_cast<uint64_t>(offset) / 4 + (vector > 1 ? round * ((vector + 3) / 4) + e % vector / 4 : round / 4);
  const uint64_t word = vector > 1 ? e % vector % 4 : round % 4;
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  const PhiloxCounter words = philox({low(call), high(call), low(thread), high(thread)}, {low(static_cast<uint64_t>(seed)), high(static_cast<uint64_t>(seed))});
  return static_cast<float>(words[word]) * 0x1p-32f + 0x1p-33f;
}

}  // namespace dynvm::ir
