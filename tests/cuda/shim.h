// What generated CUDA sources need to be C++ for the CPU: a block's threads are fibers that take turns at each synchronisation.
//
// Not compiled by itself: source_test.cpp puts it in front of the prelude. run_grid() goes over all blocks one after the other; shared memory is static.
// Where the real thing works on a warp, this waits for the whole block, so kernels must synchronise all of its threads alike (they do, and a thread that
// has ended counts).
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <vector>

#define DYNVM_HOST 1
template <class T, int N> struct Vec { T v[N]; };  // tests' memory begins anywhere
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __shared__ static
#define DYNVM_GRID_CONSTANT
#define DYNVM_DYNAMIC_SHARED(name) alignas(16) static i64 name[1 << 14]

namespace shim {

struct Index {
  int x, y;
};
struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  bool done;
};

inline Index thread, block;
inline std::vector<Fiber> fibers;
inline ucontext_t scheduler;
inline size_t current;
inline void (*kernel)(const void*);
inline const void* parameter;
inline char slots[1024][32];

inline void wait() { swapcontext(&fibers[current].context, &scheduler); }

inline void enter() {
  kernel(parameter);
  fibers[current].done = true;
  swapcontext(&fibers[current].context, &scheduler);
}

inline void run_block(int threads) {
  if (fibers.size() < static_cast<size_t>(threads)) fibers.resize(static_cast<size_t>(threads));
  for (int t = 0; t < threads; ++t) {
    Fiber& fiber = fibers[static_cast<size_t>(t)];
    fiber.stack.resize(1 << 16);
    fiber.done = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    makecontext(&fiber.context, enter, 0);
  }
  for (bool any = true; any;) {
    any = false;
    for (int t = 0; t < threads; ++t) {
      current = static_cast<size_t>(t);
      if (fibers[current].done) continue;
      thread = {t, 0};
      any = true;
      swapcontext(&scheduler, &fibers[current].context);
    }
  }
}

inline void run_grid(void (*function)(const void*), const void* p, int grid_x, int grid_y, int threads) {
  kernel = function;
  parameter = p;
  for (int y = 0; y < grid_y; ++y)
    for (int x = 0; x < grid_x; ++x) {
      block = {x, y};
      run_block(threads);
    }
}

template <class T> T shuffle_xor(T x, int mask) {
  const int mine = thread.x;
  memcpy(slots[mine], &x, sizeof x);
  wait();
  memcpy(&x, slots[(mine & ~31) | ((mine & 31) ^ mask)], sizeof x);
  wait();
  return x;
}

inline bool failed = false;  // an assertion has not held; on a device nothing would run any more

}  // namespace shim

#define threadIdx shim::thread
#define blockIdx shim::block
#define __syncthreads() shim::wait()
#define __threadfence()
#define __shfl_xor_sync(all, x, mask) shim::shuffle_xor(x, mask)

inline void __assertfail(const char*, const char*, unsigned, const char*, size_t) { shim::failed = true; }
template <class T> T atomicAdd(T* at, T n) {
  const T before = *at;
  *at = before + n;
  return before;
}
inline float __int_as_float(int x) {
  float y;
  memcpy(&y, &x, sizeof y);
  return y;
}
inline double __longlong_as_double(long long x) {
  double y;
  memcpy(&y, &x, sizeof y);
  return y;
}
inline unsigned tf32(float x) {  // to 10 bits, ties away from zero
  unsigned bits;
  memcpy(&bits, &x, sizeof bits);
  return x - x == 0 ? (bits + 0x1000u) & ~0x1fffu : bits;
}
// mma.m16n8k8 of TF32: lane 4 g + t has a[i] = A[g + 8 (i % 2)][t + 4 (i / 2)], b = B[t][g] and B[t + 4][g], c[i] = C[g + 8 (i / 2)][2 t + i % 2].
inline void mma_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const int mine = shim::thread.x, warp = mine & ~31, g = (mine & 31) / 4, t = mine % 4;
  const unsigned given[6] = {a[0], a[1], a[2], a[3], b0, b1};
  memcpy(shim::slots[mine], given, sizeof given);
  shim::wait();
  const auto from = [&](int lane, int word) {
    float x;
    memcpy(&x, shim::slots[warp + lane] + 4 * word, sizeof x);
    return x;
  };
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 8; ++k) c[i] += from(4 * g + k % 4, i / 2 + 2 * (k / 4)) * from(4 * (2 * t + i % 2) + k % 4, 4 + k / 4);
  shim::wait();
}
inline float ex2(float x) { return exp2f(x); }
inline float ex2_ftz(float x) { return exp2f(x); }
inline float rcp_ftz(float x) { return 1.0f / x; }
