// Expansions of mathematical functions for f32 and f64 lanes. See math.h. Tests: tests/kernel/accuracy_test.cpp.
//
// Coefficients come from minimax.py (Remez exchange). Methods, all textbook (J.-M. Muller, Elementary Functions; W. Cody and W. Waite,
// Software Manual for the Elementary Functions):
//  - exp: x = n log 2 + r with log 2 in two parts (Cody-Waite), polynomial in r, scaling by 2^n in two steps, so that results in the
//    denormal range and near overflow come out right.
//  - expm1 and what is made of it (tanh in f64, sinh): 2^n p(r) + (2^n - 1), where p approximates expm1.
//  - log: x = 2^k m with m in [sqrt(1/2), sqrt 2), polynomial in m - 1 (f32) or in ((m - 1) / (m + 1))^2 (f64).
//  - tanh in f32: a polynomial below 0.8; from there on 1 - 2 / (exp(2x) + 1), where what is subtracted is at most half of the result, so
//    that its error counts for half. Largest error 1 ulp, as eager's.
//  - erf in f32: y = 2 t / (1 + t^2), the double-angle formula of tanh, with an odd rational t(x) fitted for it (any odd function
//    that saturates at 1 can be written so). Errors of t count less and less the nearer y is to 1, where a rational for y itself would
//    lose several ulps. All coefficients are positive; p and q are
//    scaled together so that they begin high in a binade, where a rounding is relatively small.
#include "codegen/x86/kernel/math.h"

#include <iterator>
#include <limits>

#include "codegen/x86/kernel/helpers.h"

namespace dynvm::codegen {

namespace {

using ir::KOp;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLog2E = 1.4426950408889634;
constexpr double kLn2 = 0.69314718055994531;

// Lowest power first; rounding of f32 results see minimax.py.
constexpr double kExp32[] = {0.49999994, 0.166665167, 0.0416681021, 0.0083691515, 0.0013837741};
constexpr double kExpm132[] = {0.5, 0.166666359, 0.0416664891, 0.00834017433, 0.00139338523, 0.000167846418};
constexpr double kLog32[] = {0.333333135, -0.250001669, 0.200022236, -0.166593686, 0.142095253, -0.125510454, 0.121171921, -0.108326547, 0.0508994237};
constexpr double kSin32[] = {-0.166666672, 0.00833338033, -0.000198535054, 2.83739496e-6};
constexpr double kCos32[] = {0.0416666679, -0.00138889824, 2.48229771e-5, -2.89759043e-7};
constexpr double kTanh32[] = {-0.333332986, 0.133322418, -0.0538536012, 0.0213065408, -0.00741418405, 0.0015870377};
constexpr double kErf32P[] = {0.937965214, 0.247186288, 0.0268318728, 0.00211174297};
constexpr double kErf32Q[] = {1.66250002, 0.463104755, 0.0805525407, 0.0100549087, 0.000164438199};
constexpr double kExp64[] = {0.50000000000000111, 0.16666666666666952, 0.041666666666546032, 0.0083333333333812272, 0.0013888888937769685,
                             0.0001984126959869995, 2.4801499272568911e-5, 2.7557498994995694e-6, 2.7628263035378527e-7, 2.5050277102761083e-8};
constexpr double kLog64[] = {0.66666666666666663, 0.40000000000004926, 0.28571428569409762, 0.22222222607242975,
                             0.18181778329416173, 0.15386990111111815, 0.13252117786655776, 0.1323506255442235};

class Expander {
 public:
  Expander(VBuilder& builder, Lane lane) : b_(builder), t_(lane) {}

  Value expand(KOp op, Value x) {
    switch (op) {
      case KOp::k_exp: return exp(x);
      case KOp::k_exp2: return exp2(x);
      case KOp::k_expm1: return expm1(x);
      case KOp::k_log: return log(x, kNatural);
      case KOp::k_log2: return log(x, kBase2);
      case KOp::k_log10: return log(x, kBase10);
      case KOp::k_log1p: return log1p(x);
      case KOp::k_sigmoid: return sigmoid(x);
      case KOp::k_tanh: return tanh32(x);
      case KOp::k_erf: return erf32(x);
      case KOp::k_sin: return sincos32(x, 0);
      case KOp::k_cos: return sincos32(x, 1);
      default: return kNoValue;
    }
  }

 private:
  bool single() const { return t_ == Lane::kF32; }
  Lane integer() const { return single() ? Lane::kI32 : Lane::kI64; }
  int fraction_bits() const { return single() ? 23 : 52; }
  int bias() const { return single() ? 127 : 1023; }
  Value real(double value) { return b_.real(t_, value); }
  Value bits(int64_t value) { return single() ? b_.i32(static_cast<int32_t>(value)) : b_.i64(value); }
  Value add(Value x, Value y) { return b_.add(t_, x, y); }
  Value sub(Value x, Value y) { return b_.sub(t_, x, y); }
  Value mul(Value x, Value y) { return b_.mul(t_, x, y); }
  Value div(Value x, Value y) { return b_.div(t_, x, y); }
  Value fma(Value x, Value y, Value z) { return b_.fma(t_, x, y, z); }
  Value fnma(Value x, Value y, Value z) { return b_.fnma(t_, x, y, z); }
  Value clear_sign(Value x) { return b_.bit_and(t_, x, bits(single() ? 0x7fffffff : 0x7fffffffffffffff)); }
  Value sign_of(Value x) { return b_.bit_and(t_, x, sign_bit()); }
  Value sign_bit() { return bits(single() ? int64_t{INT32_MIN} : INT64_MIN); }
  // x limited to [low, high]; a NaN passes (x86's min and max give their second operand).
  Value clamp(Value x, double low, double high) { return b_.max(t_, real(low), b_.min(t_, real(high), x)); }

  template <size_t n>
  Value horner(const double (&c)[n], Value x) {
    Value y = fma(x, real(c[n - 1]), real(c[n - 2]));
    for (size_t k = n - 2; k-- > 0;) y = fma(y, x, real(c[k]));
    return y;
  }

  // Two interleaved chains in x^2: half the latency of Horner's for one more multiplication.
  template <size_t n>
  Value even_odd(const double (&c)[n], Value x) {
    static_assert(n >= 4);
    Value x2 = mul(x, x);
    size_t even = (n - 1) & ~size_t{1}, odd = even + 1 < n ? even + 1 : even - 1;
    Value p = real(c[even]), q = real(c[odd]);
    for (size_t k = even; k >= 2; k -= 2) p = fma(x2, p, real(c[k - 2]));
    for (size_t k = odd; k >= 3; k -= 2) q = fma(x2, q, real(c[k - 2]));
    return fma(x, q, p);
  }

  // x = n log 2 + r, |r| <= log 2 / 2. `shifted` has n in its low bits.
  struct Reduced {
    Value n, r, shifted;
  };
  Reduced reduce_exp(Value x) {
    // Adding 1.5 * 2^fraction_bits rounds to an integer and leaves it in the low bits.
    double magic = single() ? 0x1.8p23 : 0x1.8p52;
    Value shifted = fma(x, real(kLog2E), real(magic));
    Value n = sub(shifted, real(magic));
    Value r;
    if (single()) {
      r = fnma(n, real(0x1.62e4p-1), x);  // 0.693145751953125
      r = fnma(n, real(kLn2 - 0x1.62e4p-1), r);
    } else {
      r = fnma(n, real(0x1.62e42fefa0000p-1), x);
      r = fnma(n, real(0x1.cf79abc9e3b39p-40), r);
    }
    return {n, r, shifted};
  }

  // 2^n where n is in the low bits of `shifted` and in the normal range.
  Value power_of_two(Value shifted) { return b_.shl(integer(), b_.add(integer(), shifted, bits(bias())), fraction_bits()); }

  // exp(sign * r) by Horner's rule down to the constant term: its roundings shrink with |r| < 0.35.
  Value exp_single(Value r, double sign) {
    Value y = real(kExp32[4]);
    for (int k = 3; k >= 0; --k) y = fma(y, r, real(kExp32[k] * (k % 2 ? sign : 1)));
    y = fma(y, r, real(sign));
    return fma(y, r, real(1));
  }
  Value exp_double(Value r, double sign) {
    double c[std::size(kExp64)];
    for (size_t k = 0; k < std::size(c); ++k) c[k] = kExp64[k] * (k % 2 ? sign : 1);
    Value p = even_odd(c, r);
    Value linear = sign > 0 ? add(r, real(1)) : sub(real(1), r);
    return fma(mul(r, r), p, linear);
  }
  Value exp_polynomial(Value r) { return single() ? exp_single(r, 1) : exp_double(r, 1); }

  // p * 2^n for all n that occur: in two steps, each in the normal range.
  Value scale(Value p, Value n) {
    Value half = b_.round(t_, mul(n, real(0.5)), 1);
    double magic = single() ? 0x1.8p23 : 0x1.8p52;
    Value low = power_of_two(add(half, real(magic)));
    Value high = power_of_two(add(sub(n, half), real(magic)));
    return mul(mul(p, low), high);
  }

  Value exp(Value x) {
    Value limited = single() ? clamp(x, -104.5, 89.0) : clamp(x, -746.0, 710.0);
    Reduced e = reduce_exp(limited);
    return scale(exp_polynomial(e.r), e.n);
  }

  Value exp2(Value x) {
    Value limited = single() ? clamp(x, -151.0, 129.0) : clamp(x, -1076.0, 1025.0);
    Value n = b_.round(t_, limited, 0);
    Value r = mul(sub(limited, n), real(kLn2));
    return scale(exp_polynomial(r), n);
  }

  // 2^n p(r) + (2^n - 1), where p approximates expm1.
  Value expm1(Value x) {
    // The last doubling is a separate product so that results up to the largest float do not overflow before.
    Value limited = clamp(x, -20, 89.0);
    Reduced e = reduce_exp(limited);
    Value p = horner(kExpm132, e.r);
    p = fma(mul(e.r, e.r), p, e.r);
    Value half = power_of_two(b_.sub(integer(), e.shifted, bits(1)));
    Value result = mul(fma(half, p, sub(half, real(0.5))), real(2));
    // Keeps denormals and the sign of zero.
    return b_.blend(t_, b_.cmp(t_, clear_sign(x), real(1e-10), kCmpLt), x, result);
  }

  // 1 / (1 + exp(-x)), by r = x + n log 2 and exp(-r): the sign goes into the constants.
  Value sigmoid(Value x) {
    // At the upper limit of -x, 2^n has the bits of infinity, and the result is 0, as it is in eager where exp(-x) overflows.
    Value limited = single() ? clamp(x, -89.0, 80.0) : clamp(x, -710.0, 100.0);
    double magic = single() ? 0x1.8p23 : 0x1.8p52;
    Value shifted = fma(limited, real(-kLog2E), real(magic));
    Value n = sub(shifted, real(magic));
    Value r;
    if (single()) r = fma(n, real(kLn2 - 0x1.62e4p-1), fma(n, real(0x1.62e4p-1), limited));
    else r = fma(n, real(0x1.cf79abc9e3b39p-40), fma(n, real(0x1.62e42fefa0000p-1), limited));
    Value p = single() ? exp_single(r, -1) : exp_double(r, -1);
    return div(real(1), fma(p, power_of_two(shifted), real(1)));
  }

  // 2 t / (1 + t^2) with t = x P(x^2) / Q(x^2), as 2 n d / (d^2 + n^2). Beyond the limit the result is 1.
  template <size_t m, size_t n>
  Value half_angle(Value x, const double (&p)[m], const double (&q)[n], double limit) {
    Value limited = clamp(x, -limit, limit);
    Value z = mul(limited, limited);
    Value numerator = mul(limited, horner(p, z)), denominator = horner(q, z);
    // The smaller one is squared apart: its rounding counts less.
    Value sum = fma(denominator, denominator, mul(numerator, numerator));
    return clamp(div(mul(add(numerator, numerator), denominator), sum), -1, 1);
  }

  Value tanh32(Value x) {
    Value size = clear_sign(x), z = mul(x, x);
    Value small = fma(mul(size, z), horner(kTanh32, z), size);
    Reduced e = reduce_exp(b_.min(t_, real(18.2), add(size, size)));  // beyond, the result is 1; a NaN passes
    Value large = sub(real(1), div(real(2), fma(exp_single(e.r, 1), power_of_two(e.shifted), real(1))));
    Value result = b_.blend(t_, b_.cmp(t_, size, real(0.8), kCmpLt), small, large);
    return b_.bit_or(t_, result, sign_of(x));
  }
  Value erf32(Value x) { return half_angle(x, kErf32P, kErf32Q, 3.93); }

  enum Base { kNatural, kBase2, kBase10 };

  // x = 2^k m; m in [sqrt(1/2), sqrt 2), k as a float. Positive, finite x; denormals are scaled up first.
  void split(Value x, Value* k, Value* m) {
    Value tiny = b_.cmp(t_, x, real(single() ? 0x1p-126 : 0x1p-1022), kCmpLt);
    Value scaled = b_.blend(t_, tiny, mul(x, real(single() ? 0x1p23 : 0x1p52)), x);
    // Subtracting the bits of sqrt(1/2) makes the exponent field count from there.
    int64_t root = single() ? 0x3f3504f3 : 0x3fe6a09e667f3bcd;
    Value offset = b_.sub(integer(), scaled, bits(root));
    Value exponent;
    if (single()) {
      exponent = b_.sar(offset, 23);
      *k = b_.emit(VOp::k_cvt_i32_f32, Lane::kF32, exponent);
    } else {
      // The signed 12-bit exponent: biased so that a logical shift serves, then read by the magic number's trick.
      Value biased = b_.shr(Lane::kI64, b_.add(Lane::kI64, offset, bits(int64_t{2048} << 52)), 52);
      Value magic = b_.bit_or(Lane::kI64, biased, b_.f64(0x1p52));
      *k = sub(magic, b_.f64(0x1p52 + 2048));
      exponent = kNoValue;
    }
    Value fraction = b_.bit_and(integer(), offset, bits(single() ? 0x7fffff : 0xfffffffffffff));
    *m = b_.add(integer(), fraction, bits(root));
    *k = sub(*k, b_.bit_and(t_, tiny, real(single() ? 23 : 52)));
  }

  // log(1 + f) as f + tail, for f in [sqrt(1/2) - 1, sqrt 2 - 1].
  Value log_tail(Value f) {
    if (single()) {
      Value f2 = mul(f, f);
      Value p = mul(mul(f2, f), even_odd(kLog32, f));
      return fnma(f2, real(0.5), p);
    }
    // 2 atanh(s), s = f / (2 + f): f - s (f - z p(z)) exactly as 2s = f - s f.
    Value s = div(f, add(f, real(2)));
    Value z = mul(s, s);
    Value p = mul(z, even_odd(kLog64, z));
    return mul(s, sub(p, f));
  }

  Value finish_log(Value k, Value f, Value tail, Base base) {
    switch (base) {
      case kNatural: {
        Value low = single() ? fma(k, real(kLn2 - 0x1.62e4p-1), tail) : fma(k, real(0x1.ef35793c76730p-45), tail);
        Value high = real(single() ? 0x1.62e4p-1 : 0x1.62e42fefa3800p-1);
        return fma(k, high, add(f, low));
      }
      case kBase2: {
        // log2(e) in two parts: the product with f must not lose the low bits near x = 1.
        double high = single() ? 0x1.7p+0 : 0x1.715476p+0, low = kLog2E - high;
        Value rest = fma(add(f, tail), real(low), mul(tail, real(high)));
        return add(k, fma(f, real(high), rest));
      }
      default: {
        double high = single() ? 0x1.bcp-2 : 0x1.bcb7b0p-2, low = single() ? 0.43429448190325183 - 0x1.bcp-2 : 0.43429448190325182765 - 0x1.bcb7b0p-2;
        double two_high = single() ? 0x1.344p-2 : 0x1.34413p-2, two_low = single() ? 0.30102999566398120 - 0x1.344p-2 : 0.30102999566398119521 - 0x1.34413p-2;
        Value rest = fma(add(f, tail), real(low), mul(tail, real(high)));
        rest = fma(k, real(two_low), rest);
        return fma(k, real(two_high), fma(f, real(high), rest));
      }
    }
  }

  // The values at 0, below it, at infinity and NaN.
  Value log_specials(Value x, Value result) {
    result = b_.blend(t_, b_.cmp(t_, x, real(kInfinity), kCmpEq), x, result);
    result = b_.blend(t_, b_.cmp(t_, x, real(0), kCmpEq), real(-kInfinity), result);
    // All ones is a NaN: for x < 0 and NaN.
    return b_.bit_or(t_, result, b_.cmp(t_, x, real(0), 0x19));  // not >= , unordered true
  }

  Value log(Value x, Base base) {
    Value k, m;
    split(x, &k, &m);
    Value f = sub(m, real(1));
    return log_specials(x, finish_log(k, f, log_tail(f), base));
  }

  Value log1p(Value x) {
    // u = 1 + x rounded; the rounding error over u is added.
    Value u = add(x, real(1));
    Value k, m;
    split(u, &k, &m);
    Value f = sub(m, real(1));
    Value lost = div(sub(x, sub(u, real(1))), u);
    Value large = b_.cmp(t_, x, real(single() ? 0x1p24 : 0x1p53), kCmpGt);
    lost = b_.bit_andn(t_, large, lost);
    Value result = log_specials(u, finish_log(k, f, add(log_tail(f), lost), kNatural));
    return b_.blend(t_, b_.cmp(t_, clear_sign(x), real(single() ? 1e-10 : 1e-20), kCmpLt), x, result);
  }

  // which: 0 sine, 1 cosine. x = n pi/2 + r; |x| up to 2^15 by Cody and Waite with pi/2 in three parts, beyond by the C library.
  Value sincos32(Value x, int which) {
    Value magic = real(0x1.8p23);
    Value shifted = fma(x, real(0.63661977236758138), magic);
    Value n = sub(shifted, magic);
    // The parts have trailing zeros so that n times the first two is exact within the fused operation's rounding.
    Value r = fnma(n, real(0x1.921fb4p+0), x);
    r = fnma(n, real(0x1.4442d0p-24), r);
    r = fnma(n, real(0x1.846988p-48), r);
    Value z = mul(r, r);
    Value sine = fma(mul(z, r), horner(kSin32, z), r);
    Value cosine = fma(mul(z, z), horner(kCos32, z), fnma(z, real(0.5), real(1)));
    Value quadrant = which ? b_.add(Lane::kI32, shifted, b_.i32(1)) : shifted;
    Value odd = b_.shl(Lane::kI32, quadrant, 31);
    odd = b_.sar(odd, 31);
    Value result = b_.blend(t_, odd, cosine, sine);
    Value sign = b_.shl(Lane::kI32, b_.bit_and(Lane::kI32, quadrant, b_.i32(2)), 30);
    result = b_.bit_xor(t_, result, sign);
    Value far = b_.cmp(t_, clear_sign(x), real(32768.0), kCmpGt);  // a NaN is right already
    LaneHelper helper = lane_helper(which ? KOp::k_cos : KOp::k_sin, t_);
    return b_.emit(VOp::k_fixup, t_, result, x, far, static_cast<int64_t>(reinterpret_cast<intptr_t>(helper)));
  }

  VBuilder& b_;
  Lane t_;
};

}  // namespace

bool has_expansion(KOp op, Lane lane) {
  switch (op) {
    case KOp::k_exp:
    case KOp::k_log:
    case KOp::k_log2:
    case KOp::k_log10:
    case KOp::k_log1p:
    case KOp::k_sigmoid: return true;
    case KOp::k_exp2:
    case KOp::k_expm1:
    case KOp::k_tanh:
    case KOp::k_erf:
    case KOp::k_sin:
    case KOp::k_cos: return lane == Lane::kF32;
    default: return false;
  }
}

Value expand_math(VBuilder& builder, KOp op, Lane lane, Value a, Value) { return Expander(builder, lane).expand(op, a); }

}  // namespace dynvm::codegen
