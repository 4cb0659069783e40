// One kernel node's arithmetic as vector instructions.
//
// Input: a node, the values of its operands. Output: the node's value in its register form:
//
//     f32, f16, bf16          f32 lanes (f16 and bf16 hold the rounded value)
//     f64, i64                8-byte lanes
//     i32, i16, i8, u8        i32 lanes, wrapped to the type
//     bool                    i32 lanes, all ones or all zeros
//
// Tests: tests/kernel/op_test.cpp.
#pragma once

#include "codegen/x86/kernel/vcode.h"
#include "ir/kernel/kernel.h"

namespace dynvm::codegen {

constexpr Lane lane_of(ir::DType dtype) {
  if (ir::is_floating(dtype)) return dtype == ir::DType::kF64 ? Lane::kF64 : Lane::kF32;
  return dtype == ir::DType::kI64 ? Lane::kI64 : Lane::kI32;
}

class Expressions {
 public:
  explicit Expressions(VBuilder* builder) : b_(*builder) {}

  // Any node but load, scalar, index and reductions. `from` is the dtype of the first operand. kNoValue: the op has no code for the type.
  Value compute(const ir::KernelNode& node, ir::DType from, Value a, Value b, Value c);
  Value constant(const ir::KernelNode& node);
  Value cast(ir::DType to, ir::DType from, Value a);

  // The identity of a reduction, and one step of it (also used to combine accumulators and lanes).
  Value identity(ir::KOp op, ir::DType dtype);
  Value combine(ir::KOp op, ir::DType dtype, Value accumulator, Value x);
  // Mask (of the lane's width) of the places where candidate x beats the best so far; ties and equal NaNs do not.
  Value beats(bool largest, ir::DType dtype, Value x, Value best);
  // Mask of the places where the two are equal or both NaN.
  Value same(ir::DType dtype, Value x, Value y);
  // Narrow results back to their type: integers wrap, f16 and bf16 round.
  Value settle(ir::DType dtype, Value a);

 private:
  Value float_op(const ir::KernelNode& node, Lane t, Value a, Value b, Value c);
  Value int_op(const ir::KernelNode& node, Lane t, Value a, Value b);
  Value bool_op(ir::KOp op, Value a, Value b);
  Value compare(ir::KOp op, ir::DType from, Value a, Value b);
  Value call(ir::KOp op, Lane t, Value a, Value b);
  Value as_bool(Lane from, Value mask) { return lane_bytes(from) == 8 ? b_.emit(VOp::k_narrow, Lane::kI32, mask) : mask; }
  Value invert(Lane t, Value a) { return b_.bit_xor(t, a, lane_bytes(t) == 8 ? b_.i64(-1) : b_.i32(-1)); }
  Value zero(Lane t) { return lane_bytes(t) == 8 ? b_.i64(0) : b_.i32(0); }

  VBuilder& b_;
};

}  // namespace dynvm::codegen
