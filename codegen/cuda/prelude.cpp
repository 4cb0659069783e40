// See prelude.h.
#include "codegen/cuda/prelude.h"

namespace dynvm::codegen::cuda {
namespace {

constexpr std::string_view kPrelude = R"cuda(
typedef long long i64;
typedef unsigned long long u64;
#ifndef DYNVM_HOST
template <class T, int N> struct alignas(sizeof(T) * N) Vec { T v[N]; };
#define DYNVM_DYNAMIC_SHARED(name) extern __shared__ i64 name[]
#define DYNVM_GRID_CONSTANT __grid_constant__
extern "C" __device__ __attribute__((noreturn)) void __assertfail(const char*, const char*, unsigned, const char*, size_t);  // NVRTC knows it, but not that it does not return
// _ftz: denormal operands and results are 0, which saves three instructions.
__device__ __forceinline__ float ex2(float x) { float y; asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ __forceinline__ float ex2_ftz(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ __forceinline__ float rcp_ftz(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ __forceinline__ float f16_to(unsigned short x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; }
// Conversions of two are one fast instruction, those of one a slow one: so one is converted beside a zero.
__device__ __forceinline__ unsigned pack_f16(float low, float high) { unsigned y; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low)); return y; }
__device__ __forceinline__ unsigned pack_bf16(float low, float high) { unsigned y; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low)); return y; }
__device__ __forceinline__ unsigned short to_f16(float x) { return (unsigned short)pack_f16(x, 0.0f); }
__device__ __forceinline__ unsigned short to_bf16(float x) { return (unsigned short)pack_bf16(x, 0.0f); }
__device__ __forceinline__ float bf16_round(float x) { return __int_as_float((int)pack_bf16(0.0f, x)); }
__device__ __forceinline__ float k_min(float a, float b) { float y; asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
__device__ __forceinline__ float k_max(float a, float b) { float y; asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
// An element of a vector, and a vector of elements, by words: 16 bits at a time cost as many instructions again.
template <int N> __device__ __forceinline__ unsigned word_of(const Vec<unsigned short, N>& x, int e) { return ((const unsigned*)x.v)[e / 2]; }
template <int N> __device__ __forceinline__ float f16_at(const Vec<unsigned short, N>& x, int e) {
  const unsigned word = word_of(x, e);
  return f16_to((unsigned short)(e % 2 ? word >> 16 : word));
}
template <int N> __device__ __forceinline__ float bf16_at(const Vec<unsigned short, N>& x, int e) {
  const unsigned word = word_of(x, e);
  return __int_as_float((int)(e % 2 ? word & 0xffff0000u : word << 16));
}
#define DYNVM_TO_16(name, pack) \
  template <int N> __device__ __forceinline__ Vec<unsigned short, N> name(const float (&x)[N]) { \
    Vec<unsigned short, N> y; \
    _Pragma("unroll") for (int e = 0; e < N; e += 2) ((unsigned*)y.v)[e / 2] = pack(x[e], x[e + 1]); \
    return y; \
  }
DYNVM_TO_16(to_f16_all, pack_f16) DYNVM_TO_16(to_bf16_all, pack_bf16)
#endif
__device__ __forceinline__ float bf16_to(unsigned short x) { return __int_as_float((int)((unsigned)x << 16)); }
__device__ __forceinline__ float f16_round(float x) { return f16_to(to_f16(x)); }
#ifdef DYNVM_HOST
__device__ __forceinline__ float bf16_round(float x) { return bf16_to(to_bf16(x)); }
template <int N> float f16_at(const Vec<unsigned short, N>& x, int e) { return f16_to(x.v[e]); }
template <int N> float bf16_at(const Vec<unsigned short, N>& x, int e) { return bf16_to(x.v[e]); }
#define DYNVM_TO_16(name, one) \
  template <int N> Vec<unsigned short, N> name(const float (&x)[N]) { \
    Vec<unsigned short, N> y; \
    for (int e = 0; e < N; ++e) y.v[e] = one(x[e]); \
    return y; \
  }
DYNVM_TO_16(to_f16_all, to_f16) DYNVM_TO_16(to_bf16_all, to_bf16)
#endif

// A number to where the host sees it (mirror.h), behind what this thread has stored.
template <class T> __device__ __forceinline__ void mirror(void* at, T x) {
  union { T number; u64 bits; } whole;
  whole.bits = 0;
  whole.number = x;
  if (at == 0) return;
  __threadfence();
  ((volatile u64*)at)[0] = (whole.bits & 0xffffffffull) | 1ull << 32;
  if (sizeof(T) == 8) ((volatile u64*)at)[1] = whole.bits >> 32 | 1ull << 32;
}

// 2^(x log2 e): the product in two parts, the small one by the derivative.
__device__ __forceinline__ float k_exp(float x) {
  const float t = x * 1.44269502f, rest = fmaf(x, 1.92596303e-8f, fmaf(x, 1.44269502f, -t)), y = ex2(t);
  return fabsf(t) <= 126.0f ? fmaf(y, rest * 0.693147182f, y) : y;
}
__device__ __forceinline__ double k_exp(double x) { return exp(x); }
__device__ __forceinline__ float k_exp2(float x) { return ex2(x); }
__device__ __forceinline__ double k_exp2(double x) { return exp2(x); }
__device__ __forceinline__ float k_sigmoid(float x) { return rcp_ftz(1.0f + k_exp(-x)); }
__device__ __forceinline__ double k_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
// Odd polynomial near 0 (Taylor's series cut by the error bound), else 1 - 2 / (1 + e^2|x|).
__device__ __forceinline__ float k_tanh(float x) {
  const float a = fabsf(x), s = x * x;
  float p = fmaf(s, -8.86323553e-3f, 2.18694885e-2f);
  p = fmaf(s, p, -5.39682540e-2f);
  p = fmaf(s, p, 1.33333333e-1f);
  p = fmaf(s, p, -3.33333333e-1f);
  const float small = fmaf(x * s, p, x);
  const float large = copysignf(fmaf(-2.0f, rcp_ftz(1.0f + ex2_ftz(a * 2.88539004f)), 1.0f), x);
  return a < 0.4f ? small : large;
}
__device__ __forceinline__ double k_tanh(double x) { return tanh(x); }
// For what only 16 bits of are seen (rounding.h). The relative error of k_exp_16 is |x| 2^-24 and that of ex2.
__device__ __forceinline__ float k_exp_16(float x) { return ex2_ftz(x * 1.44269502f); }
__device__ __forceinline__ float k_sigmoid_16(float x) { return rcp_ftz(1.0f + k_exp_16(-x)); }
// erfc(|z|) = e^-z^2 p(u), u = 1 / (1 + 0.47 |z|): p by least squares with weights moved towards the least largest relative error, which is 1.6e-5.
__device__ __forceinline__ float k_one_plus_erf_16(float z) {
  const float u = rcp_ftz(fmaf(0.47f, fabsf(z), 1.0f)), e = ex2_ftz(z * (z * -1.44269502f));
  float p = fmaf(u, -0.105860261f, 0.162022724f);
  p = fmaf(u, p, 0.19328091f);
  p = fmaf(u, p, 0.215049848f);
  p = fmaf(u, p, 0.270806245f);
  p = fmaf(u, p, 0.264684268f);
  const float rest = p * u * e;
  return z < 0.0f ? rest : 2.0f - rest;
}

#define DYNVM_UNARY(name, function) \
  __device__ __forceinline__ float name(float x) { return function##f(x); } \
  __device__ __forceinline__ double name(double x) { return function(x); }
#define DYNVM_BINARY(name, function) \
  __device__ __forceinline__ float name(float x, float y) { return function##f(x, y); } \
  __device__ __forceinline__ double name(double x, double y) { return function(x, y); }
DYNVM_UNARY(k_expm1, expm1) DYNVM_UNARY(k_log, log) DYNVM_UNARY(k_log1p, log1p) DYNVM_UNARY(k_log2, log2) DYNVM_UNARY(k_log10, log10)
DYNVM_UNARY(k_sin, sin) DYNVM_UNARY(k_cos, cos) DYNVM_UNARY(k_tan, tan) DYNVM_UNARY(k_asin, asin) DYNVM_UNARY(k_acos, acos)
DYNVM_UNARY(k_atan, atan) DYNVM_UNARY(k_sinh, sinh) DYNVM_UNARY(k_cosh, cosh) DYNVM_UNARY(k_asinh, asinh) DYNVM_UNARY(k_acosh, acosh)
DYNVM_UNARY(k_atanh, atanh) DYNVM_UNARY(k_erf, erf) DYNVM_UNARY(k_erfc, erfc) DYNVM_UNARY(k_lgamma, lgamma) DYNVM_UNARY(k_floor, floor)
DYNVM_UNARY(k_ceil, ceil) DYNVM_UNARY(k_round, rint) DYNVM_UNARY(k_trunc, trunc) DYNVM_UNARY(k_sqrt, sqrt) DYNVM_UNARY(k_abs, fabs)
DYNVM_BINARY(k_pow, pow) DYNVM_BINARY(k_atan2, atan2) DYNVM_BINARY(k_hypot, hypot) DYNVM_BINARY(k_copysign, copysign) DYNVM_BINARY(k_fmod, fmod)
#ifdef DYNVM_HOST
__device__ __forceinline__ float k_rsqrt(float x) { return 1.0f / sqrtf(x); }
__device__ __forceinline__ double k_rsqrt(double x) { return 1.0 / sqrt(x); }
#else
DYNVM_UNARY(k_rsqrt, rsqrt)
#endif
__device__ __forceinline__ float k_fma(float x, float y, float z) { return fmaf(x, y, z); }
__device__ __forceinline__ double k_fma(double x, double y, double z) { return fma(x, y, z); }

template <class T> __device__ __forceinline__ bool k_isnan(T x) { return x != x; }
template <class T> __device__ __forceinline__ bool k_isfinite(T x) { return x - x == 0; }
template <class T> __device__ __forceinline__ bool k_isinf(T x) { return x == x && x - x != 0; }
template <class T> __device__ __forceinline__ T k_min(T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; }
template <class T> __device__ __forceinline__ T k_max(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; }
template <class T> __device__ __forceinline__ T k_sign(T a) { return (T)((a > 0) - (a < 0)); }

template <class T> __device__ __forceinline__ T float_mod(T a, T b) {
  const T rest = k_fmod(a, b);
  return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}
template <class T> __device__ __forceinline__ T float_floordiv(T a, T b) {
  if (b == 0) return a / b;
  const T rest = k_fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return k_copysign((T)0, a / b);
  const T whole = k_floor(quotient);
  return quotient - whole > (T)0.5 ? whole + 1 : whole;
}
template <class T> __device__ __forceinline__ T int_truncdiv(T a, T b) { return b == 0 ? (T)0 : b == (T)-1 && (T)-1 < 0 ? (T)(0 - (u64)a) : (T)(a / b); }
template <class T> __device__ __forceinline__ T int_floordiv(T a, T b) {
  return b == 0 ? (T)0 : b == (T)-1 && (T)-1 < 0 ? (T)(0 - (u64)a) : (T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}
template <class T> __device__ __forceinline__ T int_fmod(T a, T b) { return b == 0 || (b == (T)-1 && (T)-1 < 0) ? (T)0 : (T)(a % b); }
template <class T> __device__ __forceinline__ T int_mod(T a, T b) {
  const T rest = int_fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;
}
template <class T> __device__ __forceinline__ T int_pow(T base, T exponent) {
  if (exponent < 0) return base == 1 ? (T)1 : base == (T)-1 ? (exponent & 1 ? (T)-1 : (T)1) : (T)0;
  u64 result = 1, factor = (u64)base;
  for (u64 e = (u64)exponent; e; e >>= 1, factor *= factor)
    if (e & 1) result *= factor;
  return (T)result;
}
template <class T> __device__ __forceinline__ T int_shl(T a, T b) { return b < 0 || b >= (T)(sizeof(T) * 8) ? (T)0 : (T)((u64)a << b); }
template <class T> __device__ __forceinline__ T int_shr(T a, T b) { return b < 0 || b >= (T)(sizeof(T) * 8) ? (a < 0 ? (T)-1 : (T)0) : (T)(a >> b); }

// What eager asserts of an index; nothing is read that lies elsewhere.
template <class T> __device__ __forceinline__ T k_within(T a, T b) {
  if (a >= 0 && a < b) return a;
  __assertfail("0 <= index && index < size", "dynvm", 0, "kernel", 1);
  return 0;
}

__device__ __forceinline__ void add_at(float* at, float x) { atomicAdd(at, x); }
__device__ __forceinline__ void add_at(double* at, double x) { atomicAdd(at, x); }
__device__ __forceinline__ void add_at(int* at, int x) { atomicAdd(at, x); }
__device__ __forceinline__ void add_at(i64* at, i64 x) { atomicAdd((u64*)at, (u64)x); }

// Draws: drawn_number of ir/kernel/philox.h. T threads with vectors of V elements; R: there may be more than one round.
struct Words { unsigned x, y, z, w; };
__device__ __forceinline__ Words philox(i64 seed, u64 call, unsigned thread) {
  Words c{(unsigned)call, (unsigned)(call >> 32), thread, 0u};
  unsigned low = (unsigned)seed, high = (unsigned)((u64)seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 a = (u64)0xD2511F53u * c.x, b = (u64)0xCD9E8D57u * c.z;
    c = Words{(unsigned)(b >> 32) ^ c.y ^ low, (unsigned)b, (unsigned)(a >> 32) ^ c.w ^ high, (unsigned)a};
    low += 0x9E3779B9u, high += 0xBB67AE85u;
  }
  return c;
}
__device__ __forceinline__ float number_of(const Words& c, unsigned word) {
  const unsigned x = word < 2 ? (word == 0 ? c.x : c.y) : word == 2 ? c.z : c.w;
  return fmaf((float)x, 2.32830644e-10f, 1.16415322e-10f);  // the product is exact
}
template <unsigned T, int V, bool R, class I> __device__ __forceinline__ Words words_of(i64 seed, i64 offset, I element, unsigned* word) {
  const I group = element / (I)V, round = R ? group / (I)T : (I)0;
  const unsigned thread = R ? (unsigned)(group % (I)T) : (unsigned)group, inside = (unsigned)(element % (I)V);
  *word = V == 1 ? (unsigned)(round % 4) : inside % 4;
  return philox(seed, (u64)offset / 4 + (V == 1 ? (u64)round / 4 : (u64)round * ((V + 3) / 4) + inside / 4), thread);
}
template <unsigned T, int V, bool R, class I> __device__ __forceinline__ float draw_one(i64 seed, i64 offset, I element) {
  unsigned word;
  const Words words = words_of<T, V, R>(seed, offset, element, &word);
  return number_of(words, word);
}
// Of N neighbours; the first one's number is a multiple of N. So many of them have one call's numbers.
template <unsigned T, int V, bool R, int N, class I> __device__ __forceinline__ void draw_all(float (&to)[N], i64 seed, i64 offset, I first) {
  constexpr int kShare = V < 4 ? (N < V ? N : V) : N < 4 ? N : 4;
#pragma unroll
  for (int e = 0; e < N; e += kShare) {
    unsigned word;
    const Words words = words_of<T, V, R>(seed, offset, first + (I)e, &word);
    if (kShare == V || kShare == 4) word = V == 1 ? word : 0;
#pragma unroll
    for (int k = 0; k < kShare; ++k) to[e + k] = number_of(words, word + k);
  }
}

// Reductions: what combines two results, and over a group of threads that is a warp's part (G <= 32) or the whole block.
template <class T> struct Sum { static __device__ __forceinline__ T apply(T a, T b) { return (T)(a + b); } };
template <> struct Sum<i64> { static __device__ __forceinline__ i64 apply(i64 a, i64 b) { return (i64)((u64)a + (u64)b); } };
template <> struct Sum<int> { static __device__ __forceinline__ int apply(int a, int b) { return (int)((unsigned)a + (unsigned)b); } };
template <class T> struct Prod { static __device__ __forceinline__ T apply(T a, T b) { return (T)(a * b); } };
template <> struct Prod<i64> { static __device__ __forceinline__ i64 apply(i64 a, i64 b) { return (i64)((u64)a * (u64)b); } };
template <> struct Prod<int> { static __device__ __forceinline__ int apply(int a, int b) { return (int)((unsigned)a * (unsigned)b); } };
template <class T> struct Max { static __device__ __forceinline__ T apply(T a, T b) { return k_max(a, b); } };
template <class T> struct Min { static __device__ __forceinline__ T apply(T a, T b) { return k_min(a, b); } };
template <class T> struct LogAddExp {
  static __device__ __forceinline__ T apply(T a, T b) {
    const T low = k_min(a, b), high = k_max(a, b);
    return low == high && k_isinf(low) ? low : high + k_log1p(k_exp(low - high));
  }
};
template <class T> struct Any { static __device__ __forceinline__ T apply(T a, T b) { return a || b; } };
template <class T> struct All { static __device__ __forceinline__ T apply(T a, T b) { return a && b; } };
// The best value with the lowest position; a NaN is best of all. Position -1: none yet.
template <class T> struct Best { T value; i64 at; };
template <class B> __device__ __forceinline__ B best_of(B a, B b, bool first_is_better) {
  if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
  const bool an = a.value != a.value, bn = b.value != b.value;
  if (an != bn) return an ? a : b;
  if (an || a.value == b.value) return a.at < b.at ? a : b;
  return first_is_better ? a : b;
}
template <class B> struct ArgMax { static __device__ __forceinline__ B apply(B a, B b) { return best_of(a, b, a.value > b.value); } };
template <class B> struct ArgMin { static __device__ __forceinline__ B apply(B a, B b) { return best_of(a, b, a.value < b.value); } };

template <class T> __device__ __forceinline__ T shuffle(T x, int mask) { return (T)__shfl_xor_sync(0xffffffffu, x, mask); }
__device__ __forceinline__ bool shuffle(bool x, int mask) { return __shfl_xor_sync(0xffffffffu, (int)x, mask) != 0; }
__device__ __forceinline__ short shuffle(short x, int mask) { return (short)__shfl_xor_sync(0xffffffffu, (int)x, mask); }
__device__ __forceinline__ signed char shuffle(signed char x, int mask) { return (signed char)__shfl_xor_sync(0xffffffffu, (int)x, mask); }
__device__ __forceinline__ unsigned char shuffle(unsigned char x, int mask) { return (unsigned char)__shfl_xor_sync(0xffffffffu, (int)x, mask); }
template <class T> __device__ __forceinline__ Best<T> shuffle(Best<T> x, int mask) { return Best<T>{shuffle(x.value, mask), shuffle(x.at, mask)}; }

// Of the group's threads; all get it. scratch: at least 32 of T, of the block, where the group is one.
template <template <class> class Op, int G, class T> __device__ __forceinline__ T group_reduce(T x, void* scratch) {
#pragma unroll
  for (int mask = (G < 32 ? G : 32) / 2; mask > 0; mask /= 2) x = Op<T>::apply(x, shuffle(x, mask));
  if (G <= 32) return x;
  T* part = (T*)scratch;
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
  __syncthreads();
  x = part[0];
#pragma unroll
  for (int warp = 1; warp < G / 32; ++warp) x = Op<T>::apply(x, part[warp]);
  return x;
}

// What each of the group's threads has of V neighbours in its place, one thread's behind those of the one before, becomes what they and all before them come to; `carry` is what comes in front of
// all of them, and becomes what comes to the last one. neutral: what changes nothing. scratch: as above.
template <template <class> class Op, int G, int V, class T> __device__ __forceinline__ void group_scan(T (&x)[V], T& carry, T neutral, void* scratch) {
#pragma unroll
  for (int e = 1; e < V; ++e) x[e] = Op<T>::apply(x[e - 1], x[e]);
  T before = neutral, all = x[V - 1];  // of the threads of a stretch that has mask threads: those before this one, and all
#pragma unroll
  for (int mask = 1; mask < (G < 32 ? G : 32); mask *= 2) {
    const T other = shuffle(all, mask);
    const bool later = (threadIdx.x & mask) != 0;
    if (later) before = Op<T>::apply(other, before);
    all = later ? Op<T>::apply(other, all) : Op<T>::apply(all, other);
  }
  if (G > 32) {
    T* part = (T*)scratch;
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = all;
    __syncthreads();
    T warps = neutral;
#pragma unroll
    for (int warp = 0; warp < G / 32; ++warp) {
      if (warp == threadIdx.x / 32) before = Op<T>::apply(warps, before);
      warps = Op<T>::apply(warps, part[warp]);
    }
    all = warps;
  }
  before = Op<T>::apply(carry, before);
#pragma unroll
  for (int e = 0; e < V; ++e) x[e] = Op<T>::apply(before, x[e]);
  carry = Op<T>::apply(carry, all);
}
)cuda";

}  // namespace

std::string_view prelude() { return kPrelude; }

}  // namespace dynvm::codegen::cuda
