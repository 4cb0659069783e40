// One kernel node's arithmetic as vector instructions. See expressions.h. Tests: tests/kernel/op_test.cpp.
#include "codegen/x86/kernel/expressions.h"

#include <cmath>
#include <limits>

#include "codegen/x86/kernel/helpers.h"
#include "codegen/x86/kernel/math.h"
#include "codegen/x86/kernel/vector_math.h"
#include "ir/kernel/half.h"

namespace dynvm::codegen {

using ir::DType;
using ir::KernelNode;
using ir::KOp;

Value Expressions::settle(DType dtype, Value a) {
  switch (dtype) {
    case DType::kI16: return b_.sar(b_.shl(Lane::kI32, a, 16), 16);
    case DType::kI8: return b_.sar(b_.shl(Lane::kI32, a, 24), 24);
    case DType::kU8: return b_.bit_and(Lane::kI32, a, b_.i32(255));
    case DType::kF16: return b_.emit(VOp::k_round_f16, Lane::kF32, a);
    case DType::kBF16: {
      // To nearest even by adding half of the last kept place, less one where it is even. A NaN would carry: it is kept with its quiet bit.
      Value odd = b_.bit_and(Lane::kI32, b_.shr(Lane::kI32, a, 16), b_.i32(1));
      Value rounded = b_.add(Lane::kI32, b_.add(Lane::kI32, a, b_.i32(0x7fff)), odd);
      Value nan = b_.bit_or(Lane::kI32, a, b_.i32(0x400000));
      Value result = b_.blend(Lane::kF32, b_.cmp(Lane::kF32, a, a, kCmpUnordered), nan, rounded);
      return b_.bit_and(Lane::kI32, result, b_.i32(static_cast<int32_t>(0xffff0000)));
    }
    default: return a;
  }
}

Value Expressions::constant(const KernelNode& node) {
  switch (node.dtype) {
    case DType::kF64: return b_.f64(node.f);
    case DType::kF32: return b_.f32(static_cast<float>(node.f));
    case DType::kF16: return b_.f32(ir::half_to_float(ir::float_to_half(static_cast<float>(node.f))));
    case DType::kBF16: return b_.f32(ir::bfloat_to_float(ir::float_to_bfloat(static_cast<float>(node.f))));
    case DType::kI64: return b_.i64(node.i);
    case DType::kI32: return b_.i32(static_cast<int32_t>(node.i));
    case DType::kI16: return b_.i32(static_cast<int16_t>(node.i));
    case DType::kI8: return b_.i32(static_cast<int8_t>(node.i));
    case DType::kU8: return b_.i32(static_cast<uint8_t>(node.i));
    default: return b_.i32(node.i ? -1 : 0);
  }
}

namespace {

// i64 lanes to f64, rounded once. The halves of the integer become doubles by their place in a mantissa: 2^52 + low and
// 2^84 + 2^32 (high + 2^31), both exact; so is their difference from the offsets, and the sum rounds.
Value i64_to_f64(VBuilder& b, Value a) {
  Value low = b.bit_or(Lane::kI64, b.bit_and(Lane::kI64, a, b.i64(0xffffffff)), b.f64(0x1p52));
  Value high = b.bit_xor(Lane::kI64, b.shr(Lane::kI64, a, 32), b.i64(0x4530000080000000));
  Value high_part = b.sub(Lane::kF64, high, b.f64(0x1p84 + 0x1p63));
  Value low_part = b.sub(Lane::kF64, low, b.f64(0x1p52));
  return b.add(Lane::kF64, high_part, low_part);
}

// Integers of 2^53 and more would round twice on their way through f64 to f32: their low 11 bits, which f64 cannot hold, become one
// sticky bit above them, so that the first conversion is exact and the second rounds as if it had seen them.
Value sticky_low_bits(VBuilder& b, Value a) {
  Value sticky = b.add(Lane::kI64, b.bit_and(Lane::kI64, a, b.i64(0x7ff)), b.i64(0x7ff));
  Value exact = b.bit_and(Lane::kI64, b.bit_or(Lane::kI64, a, sticky), b.i64(~int64_t{0x7ff}));
  Value small = b.bit_and(Lane::kI64, b.cmpgt(Lane::kI64, a, b.i64(-(int64_t{1} << 53))), b.cmpgt(Lane::kI64, b.i64(int64_t{1} << 53), a));
  return b.blend(Lane::kI64, small, a, exact);
}

// f64 to i64, truncated, for |a| < 2^63; NaN and the rest give the lowest integer as CVTTSD2SI does.
Value f64_to_i64(VBuilder& b, Value a) {
  Value whole = b.round(Lane::kF64, a, 3);
  Value high = b.round(Lane::kF64, b.mul(Lane::kF64, whole, b.f64(0x1p-32)), 1);
  Value low = b.fnma(Lane::kF64, high, b.f64(0x1p32), whole);
  // In [-2^31, 2^31) and [0, 2^32): adding 2^52 * 1.5 and 2^52 leaves the integers in the low bits.
  Value high_bits = b.shl(Lane::kI64, b.add(Lane::kF64, high, b.f64(0x1.8p52)), 32);
  Value low_bits = b.bit_xor(Lane::kI64, b.add(Lane::kF64, low, b.f64(0x1p52)), b.f64(0x1p52));
  Value result = b.add(Lane::kI64, high_bits, low_bits);
  Value magnitude = b.bit_and(Lane::kI64, a, b.i64(INT64_MAX));
  return b.blend(Lane::kI64, b.cmp(Lane::kF64, magnitude, b.f64(0x1p63), kCmpLt), result, b.i64(INT64_MIN));
}

}  // namespace

Value Expressions::cast(DType to, DType from, Value a) {
  Lane t = lane_of(to), s = lane_of(from);
  if (to == from) return a;
  if (ir::is_bool(to)) {
    if (is_float_lane(s)) return as_bool(s, b_.cmp(s, a, b_.real(s, 0), kCmpNe));
    return invert(Lane::kI32, as_bool(s, b_.cmpeq(s, a, zero(s))));
  }
  if (ir::is_bool(from)) {
    switch (t) {
      case Lane::kF32: return b_.bit_and(t, a, b_.f32(1));
      case Lane::kI32: return b_.bit_and(t, a, b_.i32(1));
      case Lane::kF64: return b_.bit_and(t, b_.emit(VOp::k_widen, Lane::kI64, a), b_.f64(1));
      case Lane::kI64: return b_.bit_and(t, b_.emit(VOp::k_widen, Lane::kI64, a), b_.i64(1));
    }
  }
  Value result = kNoValue;
  switch (t) {
    case Lane::kF32:
      if (s == Lane::kF32) result = a;
      else if (s == Lane::kF64) result = b_.emit(VOp::k_cvt_f64_f32, t, a);
      else if (s == Lane::kI32) result = b_.emit(VOp::k_cvt_i32_f32, t, a);
      else result = b_.emit(VOp::k_cvt_f64_f32, t, i64_to_f64(b_, sticky_low_bits(b_, a)));
      break;
    case Lane::kF64:
      if (s == Lane::kF32) result = b_.emit(VOp::k_cvt_f32_f64, t, a);
      else if (s == Lane::kI32) result = b_.emit(VOp::k_cvt_i32_f64, t, a);
      else result = i64_to_f64(b_, a);
      break;
    case Lane::kI32:
      if (s == Lane::kF32) result = b_.emit(VOp::k_cvtt_f32_i32, t, a);
      else if (s == Lane::kF64) result = b_.emit(VOp::k_cvtt_f64_i32, t, a);
      else if (s == Lane::kI64) result = b_.emit(VOp::k_narrow, t, a);
      else result = a;
      break;
    case Lane::kI64:
      if (s == Lane::kI32) result = b_.emit(VOp::k_widen, t, a);
      else result = f64_to_i64(b_, s == Lane::kF32 ? b_.emit(VOp::k_cvt_f32_f64, Lane::kF64, a) : a);
      break;
  }
  return settle(to, result);
}

Value Expressions::call(KOp op, Lane t, Value a, Value b) {
  LaneHelper helper = vector_helper(op, t, b_.code().vector_bytes);
  if (!helper) helper = lane_helper(op, t);
  if (!helper) return kNoValue;
  b_.code().has_calls = true;
  return b_.emit(VOp::k_call, t, a, b, kNoValue, static_cast<int64_t>(reinterpret_cast<intptr_t>(helper)));
}

Value Expressions::float_op(const KernelNode& node, Lane t, Value a, Value b, Value c) {
  Value sign_bit = t == Lane::kF32 ? b_.i32(INT32_MIN) : b_.i64(INT64_MIN);
  Value magnitude = t == Lane::kF32 ? b_.i32(INT32_MAX) : b_.i64(INT64_MAX);
  switch (node.op) {
    case KOp::k_add: return b_.add(t, a, b);
    case KOp::k_sub: return b_.sub(t, a, b);
    case KOp::k_mul: return b_.mul(t, a, b);
    case KOp::k_fma: return b_.fma(t, a, b, c);
    case KOp::k_div: return b_.div(t, a, b);
    case KOp::k_truncdiv: return b_.round(t, settle(node.dtype, b_.div(t, a, b)), 3);
    case KOp::k_neg: return b_.bit_xor(t, a, sign_bit);
    case KOp::k_abs: return b_.bit_and(t, a, magnitude);
    case KOp::k_sign: {
      Value positive = b_.bit_and(t, b_.cmp(t, a, b_.real(t, 0), kCmpGt), b_.real(t, 1));
      Value negative = b_.bit_and(t, b_.cmp(t, a, b_.real(t, 0), kCmpLt), b_.real(t, -1));
      return b_.bit_or(t, positive, negative);
    }
    case KOp::k_min: return b_.blend(t, b_.cmp(t, a, a, kCmpUnordered), a, b_.min(t, a, b));
    case KOp::k_max: return b_.blend(t, b_.cmp(t, a, a, kCmpUnordered), a, b_.max(t, a, b));
    case KOp::k_sqrt: return b_.emit(VOp::k_sqrt, t, a);
    case KOp::k_rsqrt: return b_.div(t, b_.real(t, 1), b_.emit(VOp::k_sqrt, t, a));
    case KOp::k_reciprocal: return b_.div(t, b_.real(t, 1), a);
    case KOp::k_copysign: return b_.bit_or(t, b_.bit_and(t, a, magnitude), b_.bit_and(t, b, sign_bit));
    case KOp::k_floor: return b_.round(t, a, 1);
    case KOp::k_ceil: return b_.round(t, a, 2);
    case KOp::k_round: return b_.round(t, a, 0);
    case KOp::k_trunc: return b_.round(t, a, 3);
    default: break;
  }
  if (has_expansion(node.op, t)) return expand_math(b_, node.op, t, a, b);
  return call(node.op, t, a, b);
}

Value Expressions::int_op(const KernelNode& node, Lane t, Value a, Value b) {
  bool wide = t == Lane::kI64;
  auto number = [&](int64_t value) { return wide ? b_.i64(value) : b_.i32(static_cast<int32_t>(value)); };
  int bits = ir::dtype_size(node.dtype) * 8;
  switch (node.op) {
    case KOp::k_add: return b_.add(t, a, b);
    case KOp::k_sub: return b_.sub(t, a, b);
    case KOp::k_mul: return b_.mul(t, a, b);
    case KOp::k_neg: return b_.sub(t, number(0), a);
    case KOp::k_abs: {
      Value negative = b_.cmpgt(t, number(0), a);
      return b_.sub(t, b_.bit_xor(t, a, negative), negative);
    }
    case KOp::k_sign: return b_.sub(t, b_.cmpgt(t, number(0), a), b_.cmpgt(t, a, number(0)));
    case KOp::k_min: return b_.min(t, a, b);
    case KOp::k_max: return b_.max(t, a, b);
    case KOp::k_and: return b_.bit_and(t, a, b);
    case KOp::k_or: return b_.bit_or(t, a, b);
    case KOp::k_xor: return b_.bit_xor(t, a, b);
    case KOp::k_not: return invert(t, a);
    case KOp::k_shl: {
      // The instruction gives 0 for counts of 32 (64) and above, negative ones included; narrow types lose their high bits afterwards.
      return b_.emit(VOp::k_shlv, t, a, b);
    }
    case KOp::k_shr: {
      // Counts out of range become the largest, as an unsigned minimum by way of two comparisons.
      Value good = b_.bit_andn(t, b_.cmpgt(t, number(0), b), b_.cmpgt(t, number(bits), b));
      Value count = b_.blend(t, good, b, number(wide ? 63 : 31));
      if (!wide) return b_.emit(VOp::k_sarv, t, a, count);
      Value sign = b_.cmpgt(t, number(0), a);
      return b_.bit_xor(t, b_.emit(VOp::k_shrv, t, b_.bit_xor(t, a, sign), count), sign);
    }
    default: return call(node.op, t, a, b);
  }
}

// Operands and result are masks.
Value Expressions::bool_op(KOp op, Value a, Value b) {
  switch (op) {
    case KOp::k_and:
    case KOp::k_min: return b_.bit_and(Lane::kI32, a, b);
    case KOp::k_or:
    case KOp::k_max: return b_.bit_or(Lane::kI32, a, b);
    case KOp::k_xor:
    case KOp::k_ne: return b_.bit_xor(Lane::kI32, a, b);
    case KOp::k_eq: return b_.cmpeq(Lane::kI32, a, b);
    case KOp::k_not: return invert(Lane::kI32, a);
    case KOp::k_lt: return b_.bit_andn(Lane::kI32, a, b);
    case KOp::k_gt: return b_.bit_andn(Lane::kI32, b, a);
    case KOp::k_le: return invert(Lane::kI32, b_.bit_andn(Lane::kI32, b, a));
    case KOp::k_ge: return invert(Lane::kI32, b_.bit_andn(Lane::kI32, a, b));
    default: return kNoValue;
  }
}

Value Expressions::compare(KOp op, DType from, Value a, Value b) {
  if (ir::is_bool(from)) return bool_op(op, a, b);
  Lane s = lane_of(from);
  if (is_float_lane(s)) {
    Value magnitude = s == Lane::kF32 ? b_.i32(INT32_MAX) : b_.i64(INT64_MAX);
    Value infinity = b_.real(s, std::numeric_limits<double>::infinity());
    switch (op) {
      case KOp::k_eq: return as_bool(s, b_.cmp(s, a, b, kCmpEq));
      case KOp::k_ne: return as_bool(s, b_.cmp(s, a, b, kCmpNe));
      case KOp::k_lt: return as_bool(s, b_.cmp(s, a, b, kCmpLt));
      case KOp::k_le: return as_bool(s, b_.cmp(s, a, b, kCmpLe));
      case KOp::k_gt: return as_bool(s, b_.cmp(s, a, b, kCmpGt));
      case KOp::k_ge: return as_bool(s, b_.cmp(s, a, b, kCmpGe));
      case KOp::k_isnan: return as_bool(s, b_.cmp(s, a, a, kCmpUnordered));
      case KOp::k_isinf: return as_bool(s, b_.cmp(s, b_.bit_and(s, a, magnitude), infinity, kCmpEq));
      case KOp::k_isfinite: return as_bool(s, b_.cmp(s, b_.bit_and(s, a, magnitude), infinity, kCmpLt));
      default: return kNoValue;
    }
  }
  switch (op) {
    case KOp::k_eq: return as_bool(s, b_.cmpeq(s, a, b));
    case KOp::k_ne: return invert(Lane::kI32, as_bool(s, b_.cmpeq(s, a, b)));
    case KOp::k_lt: return as_bool(s, b_.cmpgt(s, b, a));
    case KOp::k_gt: return as_bool(s, b_.cmpgt(s, a, b));
    case KOp::k_le: return invert(Lane::kI32, as_bool(s, b_.cmpgt(s, a, b)));
    case KOp::k_ge: return invert(Lane::kI32, as_bool(s, b_.cmpgt(s, b, a)));
    default: return kNoValue;
  }
}

Value Expressions::compute(const KernelNode& node, DType from, Value a, Value b, Value c) {
  switch (node.op) {
    case KOp::k_const: return constant(node);
    case KOp::k_cast: return cast(node.dtype, from, a);
    case KOp::k_where: {
      Lane t = lane_of(node.dtype);
      Value mask = lane_bytes(t) == 8 ? b_.emit(VOp::k_widen, Lane::kI64, a) : a;
      return b_.blend(t, mask, b, c);
    }
    default: break;
  }
  char typing = ir::kop_info(node.op).typing;
  if (typing == 'B' || typing == 'P') return compare(node.op, from, a, b);
  if (ir::is_bool(node.dtype)) return bool_op(node.op, a, b);
  Lane t = lane_of(node.dtype);
  Value result = is_float_lane(t) ? float_op(node, t, a, b, c) : int_op(node, t, a, b);
  if (result == kNoValue) return result;
  return settle(node.dtype, result);
}

Value Expressions::identity(KOp op, DType dtype) {
  KernelNode node;
  node.op = KOp::k_const;
  node.dtype = dtype;
  bool floating = ir::is_floating(dtype);
  int bits = ir::dtype_size(dtype) * 8;
  int64_t lowest = dtype == DType::kU8 ? 0 : -(int64_t{1} << (bits - 2)) * 2;
  int64_t highest = dtype == DType::kU8 ? 255 : -(lowest + 1);
  double infinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case KOp::k_reduce_prod: floating ? (void)(node.f = 1) : (void)(node.i = 1); break;
    case KOp::k_reduce_all: node.i = 1; break;
    case KOp::k_reduce_max:
    case KOp::k_reduce_argmax: floating ? (void)(node.f = -infinity) : (void)(node.i = lowest); break;
    case KOp::k_reduce_min:
    case KOp::k_reduce_argmin: floating ? (void)(node.f = infinity) : (void)(node.i = highest); break;
    default: node.i = 0;  // the bits of 0.0 too
  }
  // -infinity stays exact in f16 and bf16.
  return constant(node);
}

Value Expressions::combine(KOp op, DType dtype, Value accumulator, Value x) {
  Lane t = lane_of(dtype);
  switch (op) {
    case KOp::k_reduce_sum: return b_.add(t, accumulator, x);
    case KOp::k_reduce_prod: return b_.mul(t, accumulator, x);
    case KOp::k_reduce_any: return b_.bit_or(t, accumulator, x);
    case KOp::k_reduce_all: return b_.bit_and(t, accumulator, x);
    case KOp::k_reduce_max:
      if (!is_float_lane(t)) return b_.max(t, accumulator, x);
      return b_.blend(t, b_.cmp(t, accumulator, accumulator, kCmpUnordered), accumulator, b_.max(t, accumulator, x));
    case KOp::k_reduce_min:
      if (!is_float_lane(t)) return b_.min(t, accumulator, x);
      return b_.blend(t, b_.cmp(t, accumulator, accumulator, kCmpUnordered), accumulator, b_.min(t, accumulator, x));
    default: return kNoValue;
  }
}

Value Expressions::beats(bool largest, DType dtype, Value x, Value best) {
  Lane t = lane_of(dtype);
  if (!is_float_lane(t)) return largest ? b_.cmpgt(t, x, best) : b_.cmpgt(t, best, x);
  Value better = b_.cmp(t, x, best, largest ? kCmpGt : kCmpLt);
  Value new_nan = b_.bit_andn(t, b_.cmp(t, best, best, kCmpUnordered), b_.cmp(t, x, x, kCmpUnordered));
  return b_.bit_or(t, better, new_nan);
}

Value Expressions::same(DType dtype, Value x, Value y) {
  Lane t = lane_of(dtype);
  if (!is_float_lane(t)) return b_.cmpeq(t, x, y);
  Value nans = b_.bit_and(t, b_.cmp(t, x, x, kCmpUnordered), b_.cmp(t, y, y, kCmpUnordered));
  return b_.bit_or(t, b_.cmp(t, x, y, kCmpEq), nans);
}

}  // namespace dynvm::codegen
