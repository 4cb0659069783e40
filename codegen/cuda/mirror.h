// Numbers that kernels store where the host sees them.
//
// A kernel that computes a number which the trace reads next stores it once more, into pinned memory of the host (a mirror): there is no copy to queue, and no stream to ask.
// Each 32 bits of the number lie beside the sign that they are there, in one store of 8 bytes, which nobody sees a part of:
//
//     | 1 | bits 0 to 31 |   | 1 | bits 32 to 63 |        the second word only for numbers of 8 bytes
//
// The host takes the signs away before the launch, so launches need no numbers of their own and graphs stay as they were captured. What the kernel stored before it, it has
// made visible: a number that has come says as much as a stream that was waited for up to there.
//
//     expect(): free or seen ──► expected ──arrived()──► there
//
// Inputs: where memory comes from. Outputs: mirrors, their numbers.
// Invariants: the GIL is held. A mirror is expected by one launch at a time: where an earlier one has not been seen to store yet (its run was left before the number was
// read), that mirror is put aside until it has, and the launch gets another. Memory is never given back to the driver: a kernel may be late.
// Tests: tests/cuda.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dynvm::codegen::cuda {

struct alignas(64) Mirror {
  volatile uint64_t word[2];
  uint64_t number;          // put together, once it is there
  int32_t words;
  enum State : int32_t { kFree, kExpected, kThere } state;
};

class Mirrors {
 public:
  using Allocate = void* (*)(size_t bytes);  // zeroed, of 64 bytes' alignment at least; null: there is none

  explicit Mirrors(Allocate allocate) : allocate_(allocate) {}
  // For a launch that stores a number of so many bytes, at most 8. before: what the launch before that one had, or null. Null: there is none, and kernels store none.
  Mirror* expect(Mirror* before, size_t bytes);
  void give_back(Mirror* mirror);

 private:
  Allocate allocate_;
  std::vector<Mirror*> free_, late_;
};

// Has the number come? It is looked for so long at most.
bool arrived(Mirror* mirror, double seconds);
// Of one that has.
inline const void* number_of(const Mirror* mirror) { return &mirror->number; }

// In pinned memory, for all devices. Where the driver gives none, expect() gives null.
Mirrors& mirrors();

}  // namespace dynvm::codegen::cuda
