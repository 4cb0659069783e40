// See mirror.h. Numbers are those of cuda.h.
#include "codegen/cuda/mirror.h"

#include <immintrin.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>

#include "codegen/cuda/library.h"

namespace dynvm::codegen::cuda {
namespace {

constexpr unsigned kPortable = 1, kMapped = 2;  // CU_MEMHOSTALLOC_: pinned for all contexts, and kernels reach it, at the host's own addresses
constexpr size_t kBlock = 64;                   // mirrors that are allocated at a time

bool is_there(Mirror* mirror) {
  uint64_t number = 0;
  for (int32_t k = 0; k < mirror->words; ++k) {
    const uint64_t word = mirror->word[k];
    if (word >> 32 == 0) return false;
    number |= (word & 0xffffffff) << (32 * k);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  mirror->number = number;
  mirror->state = Mirror::kThere;
  return true;
}

void* allocate_pinned(size_t bytes) {
  static int (*const host_allocate)(void**, size_t, unsigned) = [] {
    int (*function)(void**, size_t, unsigned) = nullptr;
    Library({"libcuda.so.1"}).find(&function, "cuMemHostAlloc");
    return function;
  }();
  void* memory = nullptr;
  if (host_allocate == nullptr || host_allocate(&memory, bytes, kPortable | kMapped) != 0) return nullptr;
  std::memset(memory, 0, bytes);
  return memory;
}

}  // namespace

Mirror* Mirrors::expect(Mirror* before, size_t bytes) {
  Mirror* mirror = before;
  if (mirror != nullptr && mirror->state == Mirror::kExpected && !is_there(mirror)) {
    late_.push_back(mirror);
    mirror = nullptr;
  }
  if (mirror == nullptr) {
    for (size_t k = late_.size(); k-- > 0;) {
      if (!is_there(late_[k])) continue;
      free_.push_back(late_[k]);
      late_.erase(late_.begin() + static_cast<ptrdiff_t>(k));
    }
    if (free_.empty()) {
      auto* const block = static_cast<Mirror*>(allocate_(kBlock * sizeof(Mirror)));
      if (block == nullptr) return nullptr;
      for (size_t k = kBlock; k-- > 0;) free_.push_back(block + k);
    }
    mirror = free_.back();
    free_.pop_back();
  }
  mirror->words = bytes > 4 ? 2 : 1;
  mirror->word[0] = mirror->word[1] = 0;
  mirror->state = Mirror::kExpected;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before the launch
  return mirror;
}

void Mirrors::give_back(Mirror* mirror) {
  const bool late = mirror->state == Mirror::kExpected && !is_there(mirror);
  (late ? late_ : free_).push_back(mirror);
}

bool arrived(Mirror* mirror, double seconds) {
  constexpr int kLooks = 16;  // at each look at the clock
  using Clock = std::chrono::steady_clock;
  if (mirror->state == Mirror::kThere || is_there(mirror)) return true;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  do {
    for (int k = 0; k < kLooks; ++k) {
      _mm_pause();
      if (is_there(mirror)) return true;
    }
  } while (Clock::now() < end);
  return false;
}

Mirrors& mirrors() {
  static auto* const the_mirrors = new Mirrors(&allocate_pinned);
  return *the_mirrors;
}

}  // namespace dynvm::codegen::cuda
