// See vector_math.h.
#include "codegen/x86/kernel/vector_math.h"

#include <dlfcn.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace dynvm::codegen {

namespace {

using ir::KOp;

// What a function of whole vectors is given, and gives.
template <typename T, int kBytes>
struct VectorOf;
template <> struct VectorOf<double, 32> { using type = __m256d; };
template <> struct VectorOf<float, 32> { using type = __m256; };
template <> struct VectorOf<double, 64> { using type = __m512d; };
template <> struct VectorOf<float, 64> { using type = __m512; };

template <KOp op, typename T, int kBytes>
void* function = nullptr;

// Through memory: the lanes of a mixed kernel may be fewer than a vector of this type has.
template <KOp op, int kArguments, typename T, int kBytes>
struct Over {
  using Vector = typename VectorOf<T, kBytes>::type;
#define OVER_LANES(isa)                                                                                         \
  __attribute__((target(isa))) static void over_lanes(void* out, const void* a, const void* b, int lanes) {     \
    constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));                                                \
    for (int i = 0; i < lanes; i += kLanes) {                                                                   \
      const size_t bytes = sizeof(T) * static_cast<size_t>(std::min(kLanes, lanes - i));                        \
      Vector x{}, y{}, result;                                                                                  \
      std::memcpy(&x, static_cast<const T*>(a) + i, bytes);                                                     \
      if constexpr (kArguments == 2) {                                                                          \
        std::memcpy(&y, static_cast<const T*>(b) + i, bytes);                                                   \
        result = reinterpret_cast<Vector (*)(Vector, Vector)>(function<op, T, kBytes>)(x, y);                   \
      } else {                                                                                                  \
        result = reinterpret_cast<Vector (*)(Vector)>(function<op, T, kBytes>)(x);                              \
      }                                                                                                         \
      std::memcpy(static_cast<T*>(out) + i, &result, bytes);                                                    \
    }                                                                                                           \
  }
};
template <KOp op, int kArguments, typename T>
struct Over<op, kArguments, T, 32> {
  static constexpr int kBytes = 32;
  using Vector = typename VectorOf<T, kBytes>::type;
  OVER_LANES("avx2,fma")
};
template <KOp op, int kArguments, typename T>
struct Over<op, kArguments, T, 64> {
  static constexpr int kBytes = 64;
  using Vector = typename VectorOf<T, kBytes>::type;
  OVER_LANES("avx512f")
};
#undef OVER_LANES

void* look_up(const char* name, const char* accuracy, bool is_double, int bytes) {
  static void* const torch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  if (torch == nullptr) return nullptr;
  const std::string symbol = std::string("Sleef_") + name + (is_double ? "d" : "f") + std::to_string(bytes / (is_double ? 8 : 4)) + "_" + accuracy + (bytes == 64 ? "avx512f" : "avx2");
  return dlsym(torch, symbol.c_str());
}

template <KOp op, int kArguments, typename T, int kBytes>
LaneHelper helper(const char* name, const char* accuracy) {
  static const bool known = [&] {
    function<op, T, kBytes> = look_up(name, accuracy, sizeof(T) == 8, kBytes);
    return function<op, T, kBytes> != nullptr;
  }();
  return known ? Over<op, kArguments, T, kBytes>::over_lanes : nullptr;
}

template <KOp op, int kArguments>
LaneHelper helper(Lane lane, int vector_bytes, const char* name, const char* accuracy) {
  if (vector_bytes == 64) return lane == Lane::kF64 ? helper<op, kArguments, double, 64>(name, accuracy) : helper<op, kArguments, float, 64>(name, accuracy);
  return lane == Lane::kF64 ? helper<op, kArguments, double, 32>(name, accuracy) : helper<op, kArguments, float, 32>(name, accuracy);
}

}  // namespace

LaneHelper vector_helper(KOp op, Lane lane, int vector_bytes) {
  if (!is_float_lane(lane)) return nullptr;
  switch (op) {
#define X(name, arguments, accuracy, sentence) \
  case KOp::k_##name: return helper<KOp::k_##name, arguments>(lane, vector_bytes, #name, accuracy);
#include "codegen/x86/kernel/vector_math.def"
#undef X
    default: return nullptr;
  }
}

}  // namespace dynvm::codegen
