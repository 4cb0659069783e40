// See numbers.h.
#include "ir/numbers.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace dynvm::ir {
namespace {

std::optional<Number> ints(Op op, int64_t a, int64_t b) {
  int64_t result;
  switch (op) {
    case Op::k_add_int: return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(Number::of_int(result));
    case Op::k_sub_int: return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(Number::of_int(result));
    case Op::k_mul_int: return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(Number::of_int(result));
    case Op::k_floordiv_int:
    case Op::k_mod_int: {
      if (b == 0 || b == -1) return std::nullopt;
      int64_t quotient = a / b, remainder = a % b;
      if (remainder != 0 && (remainder < 0) != (b < 0)) {
        --quotient;
        remainder += b;
      }
      return Number::of_int(op == Op::k_floordiv_int ? quotient : remainder);
    }
    case Op::k_and_int: return Number::of_int(a & b);
    case Op::k_or_int: return Number::of_int(a | b);
    case Op::k_xor_int: return Number::of_int(a ^ b);
    case Op::k_eq_int: return Number::of_bool(a == b);
    case Op::k_ne_int: return Number::of_bool(a != b);
    case Op::k_lt_int: return Number::of_bool(a < b);
    case Op::k_le_int: return Number::of_bool(a <= b);
    case Op::k_gt_int: return Number::of_bool(a > b);
    case Op::k_ge_int: return Number::of_bool(a >= b);
    default: return std::nullopt;
  }
}

std::optional<Number> floats(Op op, double a, double b) {
  switch (op) {
    case Op::k_add_float: return Number::of_float(a + b);
    case Op::k_sub_float: return Number::of_float(a - b);
    case Op::k_mul_float: return Number::of_float(a * b);
    case Op::k_div_float: return b == 0 ? std::nullopt : std::optional(Number::of_float(a / b));
    case Op::k_pow_float: {
      // Python raises on 0 ** negative and on overflow, and gives a complex number for a negative base: only the plain case is computed.
      const double result = std::pow(a, b);
      if (a > 0 && std::isfinite(a) && std::isfinite(b) && std::isfinite(result)) return Number::of_float(result);
      return std::nullopt;
    }
    case Op::k_eq_float: return Number::of_bool(a == b);
    case Op::k_ne_float: return Number::of_bool(a != b);
    case Op::k_lt_float: return Number::of_bool(a < b);
    case Op::k_le_float: return Number::of_bool(a <= b);
    case Op::k_gt_float: return Number::of_bool(a > b);
    case Op::k_ge_float: return Number::of_bool(a >= b);
    case Op::k_same_float: return Number::of_bool(std::memcmp(&a, &b, sizeof a) == 0);
    default: return std::nullopt;
  }
}

std::optional<Number> one(Op op, const Number& x) {
  const double f = x.type == Type::kFloat ? x.as_float() : 0;
  switch (op) {
    case Op::k_neg_int: return x.bits == std::numeric_limits<int64_t>::min() ? std::nullopt : std::optional(Number::of_int(-x.bits));
    case Op::k_not_bool: return Number::of_bool(x.bits == 0);
    case Op::k_bool_to_int: return Number::of_int(x.bits != 0);
    case Op::k_int_to_float: {
      constexpr int64_t kExact = int64_t{1} << 53;
      return x.bits > -kExact && x.bits < kExact ? std::optional(Number::of_float(static_cast<double>(x.bits))) : std::nullopt;
    }
    case Op::k_neg_float: return Number::of_float(-f);
    case Op::k_abs_float: return Number::of_float(std::fabs(f));
    case Op::k_sqrt_float: return f >= 0 ? std::optional(Number::of_float(std::sqrt(f))) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace

Number Number::of_float(double value) {
  Number number{Type::kFloat, 0};
  std::memcpy(&number.bits, &value, sizeof value);
  return number;
}

double Number::as_float() const {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::optional<Number> constant_number(const Inst& inst) {
  switch (inst.op) {
    case Op::k_const_int: return Number{Type::kInt, inst.imm};
    case Op::k_const_float: return Number{Type::kFloat, inst.imm};
    case Op::k_const_bool: return Number::of_bool(inst.imm != 0);
    default: return std::nullopt;
  }
}

Op constant_op(Type type) { return type == Type::kInt ? Op::k_const_int : type == Type::kFloat ? Op::k_const_float : Op::k_const_bool; }

std::optional<Number> compute(Op op, const Number* operands, uint32_t count) {
  if (count == 1) return one(op, operands[0]);
  if (count != 2 || operands[0].type != operands[1].type) return std::nullopt;
  if (operands[0].type == Type::kInt) return ints(op, operands[0].bits, operands[1].bits);
  if (operands[0].type == Type::kFloat) return floats(op, operands[0].as_float(), operands[1].as_float());
  return std::nullopt;
}

}  // namespace dynvm::ir
