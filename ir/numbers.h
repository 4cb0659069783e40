// What the IR's operations on unboxed numbers compute, for numbers that are known.
//
// Inputs: an operation and its operands' values. Outputs: the result, or nothing where the operation would leave the trace (overflow, division
// by zero) or is none on numbers.
// Invariant: to the bit what compiled code and Python compute: the same IEEE operation, the same C library for pow and sqrt.
// Tests: tests/ir/passes/fold.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/trace.h"

namespace dynvm::ir {

// An int64, a double or a truth value (0 or 1), as its 64 bits.
struct Number {
  Type type = Type::kVoid;
  int64_t bits = 0;

  static Number of_int(int64_t value) { return {Type::kInt, value}; }
  static Number of_float(double value);
  static Number of_bool(bool value) { return {Type::kBool, value}; }
  double as_float() const;
  friend bool operator==(const Number&, const Number&) = default;
};

// The number that a constant instruction holds.
std::optional<Number> constant_number(const Inst& inst);
// The constant instruction for a type of number.
Op constant_op(Type type);

std::optional<Number> compute(Op op, const Number* operands, uint32_t count);

}  // namespace dynvm::ir
