// Arithmetic on unboxed numbers (emitter.h). Float comparisons are ordered as Python's: false with a NaN, `!=` true.
#include "codegen/trace/emitter.h"

namespace dynvm::codegen {

using namespace asmjit;
using namespace asmjit::x86;
using ir::Op;

namespace {

// Which of a set of operations the int operators are.
bool is_int_compare(Op op, CondCode* code) {
  switch (op) {
    case Op::k_eq_int: *code = CondCode::kE; return true;
    case Op::k_ne_int: *code = CondCode::kNE; return true;
    case Op::k_lt_int: *code = CondCode::kL; return true;
    case Op::k_le_int: *code = CondCode::kLE; return true;
    case Op::k_gt_int: *code = CondCode::kG; return true;
    case Op::k_ge_int: *code = CondCode::kGE; return true;
    default: return false;
  }
}

}  // namespace

bool TraceEmitter::emit_scalar() {
  CondCode code;
  if (is_int_compare(inst_->op, &code)) return compare_ints(code), true;
  switch (inst_->op) {
    case Op::k_add_int:
    case Op::k_sub_int:
    case Op::k_mul_int:
    case Op::k_and_int:
    case Op::k_or_int:
    case Op::k_xor_int: int_binary(); return true;
    case Op::k_floordiv_int: divide(true); return true;
    case Op::k_mod_int: divide(false); return true;
    case Op::k_neg_int:
      load(rax, arg(0));
      a_.neg(rax);
      a_.jo(guard_exit());
      result(rax);
      return true;
    case Op::k_add_float:
    case Op::k_sub_float:
    case Op::k_mul_float:
      load(xmm0, arg(0));
      load(xmm1, arg(1));
      if (inst_->op == Op::k_add_float) a_.vaddsd(xmm0, xmm0, xmm1);
      if (inst_->op == Op::k_sub_float) a_.vsubsd(xmm0, xmm0, xmm1);
      if (inst_->op == Op::k_mul_float) a_.vmulsd(xmm0, xmm0, xmm1);
      result(xmm0);
      return true;
    case Op::k_div_float: {
      Label fine = a_.newLabel();
      load(xmm0, arg(0));
      load(xmm1, arg(1));
      a_.vxorpd(xmm2, xmm2, xmm2);
      a_.vucomisd(xmm1, xmm2);
      a_.jp(fine);
      a_.je(guard_exit());
      a_.bind(fine);
      a_.vdivsd(xmm0, xmm0, xmm1);
      result(xmm0);
      return true;
    }
    case Op::k_sqrt_float:
      load(xmm0, arg(0));
      a_.vxorpd(xmm1, xmm1, xmm1);
      a_.vucomisd(xmm1, xmm0);
      a_.ja(guard_exit());
      a_.vsqrtsd(xmm0, xmm0, xmm0);
      result(xmm0);
      return true;
    case Op::k_neg_float:
      load(rax, arg(0));
      a_.btc(rax, 63);
      result(rax);
      return true;
    case Op::k_abs_float:
      load(rax, arg(0));
      a_.btr(rax, 63);
      result(rax);
      return true;
    case Op::k_eq_float:
    case Op::k_ne_float:
    case Op::k_lt_float:
    case Op::k_le_float:
    case Op::k_gt_float:
    case Op::k_ge_float: compare_floats(); return true;
    case Op::k_same_float: compare_ints(CondCode::kE); return true;
    case Op::k_is_same: compare_ints(CondCode::kE); return true;
    case Op::k_not_bool:
      load(rax, arg(0));
      a_.xor_(eax, 1);
      result(rax);
      return true;
    case Op::k_bool_to_int:
      load(rax, arg(0));
      result(rax);
      return true;
    case Op::k_int_to_float:
      load(rcx, arg(0));
      a_.vxorpd(xmm0, xmm0, xmm0);
      a_.vcvtsi2sd(xmm0, xmm0, rcx);
      a_.vcvttsd2si(rax, xmm0);
      a_.cmp(rax, rcx);
      a_.jne(guard_exit());
      result(xmm0);
      return true;
    case Op::k_box_bool:
      load(rax, arg(0));
      move(rcx, reinterpret_cast<int64_t>(layout_.false_object));
      move(rdx, reinterpret_cast<int64_t>(layout_.true_object));
      a_.test(eax, eax);
      a_.cmovnz(rcx, rdx);
      result(rcx);
      return true;
    default: return false;
  }
}

void TraceEmitter::int_binary() {
  load(rax, arg(0));
  load(rcx, arg(1));
  switch (inst_->op) {
    case Op::k_add_int: a_.add(rax, rcx); break;
    case Op::k_sub_int: a_.sub(rax, rcx); break;
    case Op::k_mul_int: a_.imul(rax, rcx); break;
    case Op::k_and_int: a_.and_(rax, rcx); break;
    case Op::k_or_int: a_.or_(rax, rcx); break;
    default: a_.xor_(rax, rcx); break;
  }
  if (ir::op_info(inst_->op).effects & ir::kGuard) a_.jo(guard_exit());
  result(rax);
}

// Python's division: the quotient is rounded down, the remainder has the divisor's sign.
void TraceEmitter::divide(bool quotient) {
  Label done = a_.newLabel();
  load(rcx, arg(1));
  a_.lea(rax, qword_ptr(rcx, 1));
  a_.cmp(rax, 1);
  a_.jbe(guard_exit());  // -1 and 0
  load(rax, arg(0));
  a_.cqo();
  a_.idiv(rcx);
  a_.test(rdx, rdx);
  a_.jz(done);
  a_.mov(rsi, rdx);
  a_.xor_(rsi, rcx);
  a_.jns(done);
  a_.dec(rax);
  a_.add(rdx, rcx);
  a_.bind(done);
  result(quotient ? rax : rdx);
}

void TraceEmitter::compare_ints(CondCode code) {
  load(rax, arg(0));
  load(rcx, arg(1));
  a_.xor_(edx, edx);
  a_.cmp(rax, rcx);
  a_.emit(x86::Inst::setccFromCond(code), dl);
  result(rdx);
}

void TraceEmitter::compare_floats() {
  // `above` is false for unordered operands, so "less" compares the other way round.
  bool swap = inst_->op == Op::k_lt_float || inst_->op == Op::k_le_float;
  load(xmm0, arg(swap ? 1 : 0));
  load(xmm1, arg(swap ? 0 : 1));
  a_.xor_(ecx, ecx);
  a_.vucomisd(xmm0, xmm1);
  switch (inst_->op) {
    case Op::k_eq_float:
      a_.setnp(al);
      a_.sete(cl);
      a_.and_(cl, al);
      break;
    case Op::k_ne_float:
      a_.setp(al);
      a_.setne(cl);
      a_.or_(cl, al);
      break;
    case Op::k_lt_float:
    case Op::k_gt_float: a_.seta(cl); break;
    default: a_.setae(cl); break;
  }
  result(rcx);
}

}  // namespace dynvm::codegen
