// fold: computes what is known at compile time.
//
// One walk in order, so that an instruction sees its operands folded already; each rule looks one instruction deep. A folded instruction
// becomes a constant in place, is replaced by an older value, or (a guard that always holds) is dropped; nothing is added, so one walk
// ends it. Snapshots keep naming the same values: a dropped value is replaced there too.
//
// Python's arithmetic is kept to the bit: int results only where they fit, float results computed by the same IEEE operation (and by the
// same C library for pow and sqrt), identities on floats only where they hold for -0.0 and NaN as well. What would leave the trace
// (overflow, division by zero) is left alone: it will leave.
//
// Tests: tests/ir/passes/fold.
#include <cmath>
#include <cstring>
#include <optional>

#include "ir/effects.h"
#include "ir/numbers.h"
#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"

namespace dynvm::ir {
namespace {

class Fold {
 public:
  explicit Fold(Trace& trace) : trace_(trace), to_(trace.insts.size()), dead_(trace.insts.size(), false) {}

  void run() {
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      Inst& inst = trace_.insts[ref];
      for (uint32_t k = 0; k < inst.count; ++k) trace_.operands[inst.first + k] = to_[trace_.operands[inst.first + k]];
      ref_ = ref;
      visit(inst);
    }
    rebuild_without(&trace_, dead_, &to_);
  }

 private:
  Ref arg(uint32_t k) const { return trace_.arg(ref_, k); }
  const Inst& source(uint32_t k) const { return trace_.insts[arg(k)]; }

  // --- what is known of an operand
  bool int_at(uint32_t k, int64_t* value) const {
    *value = source(k).imm;
    return source(k).op == Op::k_const_int;
  }
  bool bool_at(uint32_t k, bool* value) const {
    *value = source(k).imm != 0;
    return source(k).op == Op::k_const_bool;
  }
  bool float_at(uint32_t k, double* value) const {
    std::memcpy(value, &source(k).imm, sizeof *value);
    return source(k).op == Op::k_const_float;
  }

  // --- what an instruction becomes
  void constant(Op op, int64_t imm) {
    Inst& inst = trace_.insts[ref_];
    inst.op = op;
    inst.imm = imm;
    inst.count = 0;
    inst.snapshot = kNoSnapshot;
  }
  void becomes_int(int64_t value) { constant(Op::k_const_int, value); }
  void becomes_bool(bool value) { constant(Op::k_const_bool, value); }
  void becomes(Ref value) {
    to_.set(ref_, value);
    dead_[ref_] = true;
  }
  void drop() { dead_[ref_] = true; }

  void visit(Inst& inst) {
    switch (inst.op) {
      case Op::k_guard_is:
        if (same_object(arg(0), arg(1)) == kYes) drop();
        break;
      case Op::k_guard_bound:
        if (has_effect(source(0), kNew) || (source(0).op == Op::k_const_obj && trace_.objects[source(0).imm].pointer != nullptr)) drop();
        break;
      case Op::k_guard_true:
      case Op::k_guard_false: {
        bool value;
        if (bool_at(0, &value) && value == (inst.op == Op::k_guard_true)) {
          drop();
        } else if (source(0).op == Op::k_not_bool) {
          trace_.operands[inst.first] = trace_.arg(arg(0), 0);
          inst.op = inst.op == Op::k_guard_true ? Op::k_guard_false : Op::k_guard_true;
          visit(inst);
        }
        break;
      }
      case Op::k_unbox_int:
        if (source(0).op == Op::k_box_int) becomes(trace_.arg(arg(0), 0));
        break;
      case Op::k_unbox_float:
        if (source(0).op == Op::k_box_float) becomes(trace_.arg(arg(0), 0));
        break;
      case Op::k_unbox_bool:
        if (source(0).op == Op::k_box_bool) becomes(trace_.arg(arg(0), 0));
        break;
      case Op::k_unbox_tensor:
        if (source(0).op == Op::k_wrap && describes(inst, source(0))) becomes(trace_.arg(arg(0), 0));
        break;
      case Op::k_box_bool:
        // True and False are single objects, so the box is the object that was opened.
        if (source(0).op == Op::k_unbox_bool && !inst.sunk) becomes(trace_.arg(arg(0), 0));
        break;
      case Op::k_tuple_item:
        if (source(0).op == Op::k_build_tuple && inst.imm >= 0 && inst.imm < source(0).count && !source(0).sunk)
          becomes(trace_.arg(arg(0), static_cast<uint32_t>(inst.imm)));
        break;
      case Op::k_tuple_len:
        if (source(0).op == Op::k_build_tuple) becomes_int(source(0).count);
        break;
      case Op::k_is_same: {
        Answer answer = same_object(arg(0), arg(1));
        if (answer != kUnknown) becomes_bool(answer == kYes);
        break;
      }
      case Op::k_not_bool:
        if (!computed(inst) && source(0).op == Op::k_not_bool) becomes(trace_.arg(arg(0), 0));
        break;
      default:
        if (!computed(inst) && inst.count == 2) number2(inst);
    }
  }

  enum Answer { kNo, kYes, kUnknown };
  Answer same_object(Ref a, Ref b) const {
    if (a == b) return kYes;
    const Inst& x = trace_.insts[a];
    const Inst& y = trace_.insts[b];
    bool constants = x.op == Op::k_const_obj && y.op == Op::k_const_obj;
    if (constants) return trace_.objects[x.imm].pointer == trace_.objects[y.imm].pointer ? kYes : kNo;
    // A container made here is nobody else's. (Small ints and interned strings are why other new objects say nothing.)
    auto fresh = [](const Inst& inst) {
      return inst.op == Op::k_build_list || inst.op == Op::k_build_map || inst.op == Op::k_wrap || inst.op == Op::k_build_slice;
    };
    auto older = [](const Inst& inst) { return inst.op == Op::k_const_obj || inst.op == Op::k_slot; };
    if ((fresh(x) && (older(y) || fresh(y))) || (fresh(y) && older(x))) return kNo;
    return kUnknown;
  }

  // The tensor inside a wrap made here is what the guard asks for.
  bool describes(const Inst& unbox, const Inst& wrap) const {
    const TensorMeta& wanted = trace_.metas[unbox.meta];
    const Inst& tensor = trace_.insts[trace_.arg(wrap, 0)];
    const TensorMeta& have = trace_.metas[tensor.meta];
    const Wrap& how = trace_.wraps[wrap.imm];
    return wanted.dtype == have.dtype && wanted.sizes == have.sizes && wanted.strides == have.strides && wanted.storage == have.storage &&
           wanted.offset == have.offset && wanted.device_type == have.device_type && wanted.device_index == have.device_index &&
           wanted.requires_grad == how.requires_grad && wanted.is_leaf == how.is_leaf && wanted.inference == have.inference && !wanted.is_parameter && !wanted.is_subclass;
  }

  // All operands are known numbers.
  bool computed(const Inst& inst) {
    Number operands[2];
    if (inst.count < 1 || inst.count > 2) return false;
    for (uint32_t k = 0; k < inst.count; ++k) {
      const std::optional<Number> number = constant_number(source(k));
      if (!number) return false;
      operands[k] = *number;
    }
    const std::optional<Number> result = compute(inst.op, operands, inst.count);
    if (!result) return false;
    constant(constant_op(result->type), result->bits);
    return true;
  }

  void number2(const Inst& inst) {
    int64_t i, j;
    double f, g;
    if (source(0).type == Type::kInt && source(1).type == Type::kInt) {
      const bool left = int_at(0, &i), right = int_at(1, &j);
      int_identity(inst.op, left, i, right, j);
    } else if (source(0).type == Type::kFloat && source(1).type == Type::kFloat) {
      const bool left = float_at(0, &f), right = float_at(1, &g);
      if (inst.op == Op::k_same_float && arg(0) == arg(1)) {
        becomes_bool(true);
      } else if (right) {
        // x - 0.0, x * 1.0 and x / 1.0 are x for every x; x + 0.0 is not (-0.0).
        bool zero = g == 0 && !std::signbit(g);
        if ((inst.op == Op::k_sub_float && zero) || ((inst.op == Op::k_mul_float || inst.op == Op::k_div_float) && g == 1)) becomes(arg(0));
      } else if (left && inst.op == Op::k_mul_float && f == 1) {
        becomes(arg(1));
      }
    }
  }

  void int_identity(Op op, bool left, int64_t i, bool right, int64_t j) {
    if (arg(0) == arg(1)) {
      if (op == Op::k_eq_int || op == Op::k_le_int || op == Op::k_ge_int) return becomes_bool(true);
      if (op == Op::k_ne_int || op == Op::k_lt_int || op == Op::k_gt_int) return becomes_bool(false);
    }
    if (right && ((j == 0 && (op == Op::k_add_int || op == Op::k_sub_int || op == Op::k_or_int || op == Op::k_xor_int)) ||
                  (j == 1 && (op == Op::k_mul_int || op == Op::k_floordiv_int)))) {
      return becomes(arg(0));
    }
    if (left && ((i == 0 && (op == Op::k_add_int || op == Op::k_or_int || op == Op::k_xor_int)) || (i == 1 && op == Op::k_mul_int)))
      return becomes(arg(1));
  }

  Trace& trace_;
  Replacements to_;
  std::vector<bool> dead_;
  Ref ref_ = 0;
};

}  // namespace

void pass_fold(Trace& trace, const PassOptions&) { Fold(trace).run(); }

}  // namespace dynvm::ir
