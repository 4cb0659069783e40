// C++ fall-backs for ops that have no vector expansion. See helpers.h. Tests: tests/kernel/op_test.cpp.
#include "codegen/x86/kernel/helpers.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace dynvm::codegen {

namespace {

using ir::KOp;

template <typename T>
T wrapping_pow(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  using U = std::make_unsigned_t<T>;
  U result = 1, factor = static_cast<U>(base);
  for (; exponent; exponent >>= 1, factor *= factor)
    if (exponent & 1) result *= factor;
  return static_cast<T>(result);
}

template <typename T>
T negated(T a) {
  return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(a));
}

template <KOp op, typename T>
T compute_int(T a, T b) {
  if constexpr (op == KOp::k_pow) return wrapping_pow(a, b);
  if (b == 0) return 0;
  bool minus_one = b == static_cast<T>(-1);  // the one quotient that traps: lowest / -1
  if constexpr (op == KOp::k_truncdiv) return minus_one ? negated(a) : a / b;
  if constexpr (op == KOp::k_floordiv) return minus_one ? negated(a) : a / b - (a % b != 0 && (a < 0) != (b < 0));
  T rest = minus_one ? 0 : a % b;
  if constexpr (op == KOp::k_mod) return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  return rest;
}

template <KOp op, typename T>
T compute_float(T a, T b) {
  if constexpr (op == KOp::k_floordiv) {
    if (b == 0) return a / b;
    T mod = std::fmod(a, b), quotient = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(T(0), a / b);
    T whole = std::floor(quotient);
    return quotient - whole > T(0.5) ? whole + 1 : whole;
  }
  if constexpr (op == KOp::k_mod) {
    T mod = std::fmod(a, b);
    return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
  }
  if constexpr (op == KOp::k_fmod) return std::fmod(a, b);
  if constexpr (op == KOp::k_pow) return std::pow(a, b);
  if constexpr (op == KOp::k_exp) return std::exp(a);
  if constexpr (op == KOp::k_exp2) return std::exp2(a);
  if constexpr (op == KOp::k_expm1) return std::expm1(a);
  if constexpr (op == KOp::k_log) return std::log(a);
  if constexpr (op == KOp::k_log1p) return std::log1p(a);
  if constexpr (op == KOp::k_log2) return std::log2(a);
  if constexpr (op == KOp::k_log10) return std::log10(a);
  if constexpr (op == KOp::k_sin) return std::sin(a);
  if constexpr (op == KOp::k_cos) return std::cos(a);
  if constexpr (op == KOp::k_tan) return std::tan(a);
  if constexpr (op == KOp::k_asin) return std::asin(a);
  if constexpr (op == KOp::k_acos) return std::acos(a);
  if constexpr (op == KOp::k_atan) return std::atan(a);
  if constexpr (op == KOp::k_atan2) return std::atan2(a, b);
  if constexpr (op == KOp::k_sinh) return std::sinh(a);
  if constexpr (op == KOp::k_cosh) return std::cosh(a);
  if constexpr (op == KOp::k_tanh) return std::tanh(a);
  if constexpr (op == KOp::k_asinh) return std::asinh(a);
  if constexpr (op == KOp::k_acosh) return std::acosh(a);
  if constexpr (op == KOp::k_atanh) return std::atanh(a);
  if constexpr (op == KOp::k_sigmoid) return 1 / (1 + std::exp(-a));
  if constexpr (op == KOp::k_erf) return std::erf(a);
  if constexpr (op == KOp::k_erfc) return std::erfc(a);
  if constexpr (op == KOp::k_hypot) return std::hypot(a, b);
  if constexpr (op == KOp::k_lgamma) {
    int sign;
    if constexpr (std::is_same_v<T, float>) return lgammaf_r(a, &sign);
    else return lgamma_r(a, &sign);
  }
}

template <KOp op, typename T>
void over_lanes(void* out, const void* a, const void* b, int lanes) {
  for (int i = 0; i < lanes; ++i) {
    T x, y = 0, result;
    std::memcpy(&x, static_cast<const T*>(a) + i, sizeof x);
    if (b) std::memcpy(&y, static_cast<const T*>(b) + i, sizeof y);
    if constexpr (std::is_floating_point_v<T>) result = compute_float<op, T>(x, y);
    else result = compute_int<op, T>(x, y);
    std::memcpy(static_cast<T*>(out) + i, &result, sizeof result);
  }
}

template <KOp op>
LaneHelper float_helper(Lane lane) {
  return lane == Lane::kF32 ? over_lanes<op, float> : over_lanes<op, double>;
}

template <KOp op>
LaneHelper int_helper(Lane lane) {
  return lane == Lane::kI32 ? over_lanes<op, int32_t> : over_lanes<op, int64_t>;
}

}  // namespace

LaneHelper lane_helper(KOp op, Lane lane) {
  if (!is_float_lane(lane)) {
    switch (op) {
      case KOp::k_truncdiv: return int_helper<KOp::k_truncdiv>(lane);
      case KOp::k_floordiv: return int_helper<KOp::k_floordiv>(lane);
      case KOp::k_mod: return int_helper<KOp::k_mod>(lane);
      case KOp::k_fmod: return int_helper<KOp::k_fmod>(lane);
      case KOp::k_pow: return int_helper<KOp::k_pow>(lane);
      default: return nullptr;
    }
  }
  switch (op) {
#define CASE(name) \
  case KOp::k_##name: return float_helper<KOp::k_##name>(lane);
    CASE(floordiv) CASE(mod) CASE(fmod) CASE(pow) CASE(exp) CASE(exp2) CASE(expm1) CASE(log) CASE(log1p) CASE(log2) CASE(log10)
    CASE(sin) CASE(cos) CASE(tan) CASE(asin) CASE(acos) CASE(atan) CASE(atan2) CASE(sinh) CASE(cosh) CASE(tanh) CASE(asinh)
    CASE(acosh) CASE(atanh) CASE(sigmoid) CASE(erf) CASE(erfc) CASE(lgamma) CASE(hypot)
#undef CASE
    default: return nullptr;
  }
}

}  // namespace dynvm::codegen
