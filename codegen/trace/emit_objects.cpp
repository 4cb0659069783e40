// Writes to objects, and everything that is a call of a helper (emitter.h).
#include "codegen/trace/emitter.h"

#include <cstddef>

namespace dynvm::codegen {

using namespace asmjit;
using namespace asmjit::x86;
using ir::Op;

bool TraceEmitter::emit_write() {
  const Inst& inst = *inst_;
  switch (inst.op) {
    case Op::k_store_value:
      load(rcx, arg(0));
      if (layout_.values != PythonLayout::kValuesInside) a_.mov(rcx, qword_ptr(rcx, layout_.managed_values));
      replace_field(qword_ptr(rcx, static_cast<int32_t>(layout_.first_value + 8 * inst.imm)), arg(1));
      return true;
    case Op::k_store_field:
      load(rcx, arg(0));
      replace_field(qword_ptr(rcx, static_cast<int32_t>(inst.imm)), arg(1));
      return true;
    case Op::k_list_set:
      load(rcx, arg(0));
      load(rdx, arg(1));
      a_.mov(rcx, qword_ptr(rcx, layout_.list_items));
      replace_field(qword_ptr(rcx, rdx, 3), arg(2));
      return true;
    default: return false;
  }
}

// Stores a new reference, then drops the old one: what the drop runs sees the new state.
void TraceEmitter::replace_field(const Mem& field, Ref value) {
  load(rax, value);
  take(rax, nullable(value));
  a_.mov(rdi, field);
  a_.mov(field, rax);
  drop(rdi, true);
}

// The operands to the scratch area; numbers as their bits.
void TraceEmitter::gather() {
  for (uint32_t k = 0; k < inst_->count; ++k) {
    load(rax, arg(k));
    a_.mov(scratch(static_cast<int32_t>(k)), rax);
  }
  a_.lea(rdi, scratch(0));
  a_.mov(esi, inst_->count);
}

// Only the numbers among the operands, and more; how many.
int32_t TraceEmitter::gather_numbers(const std::vector<ir::Ref>& more) {
  int32_t numbers = 0;
  for (uint32_t k = 0; k < inst_->count; ++k) {
    if (def(arg(k)).type == ir::Type::kTensor) continue;
    load(rax, arg(k));
    a_.mov(scratch(numbers++), rax);
  }
  for (ir::Ref number : more) {
    load(rax, number);
    a_.mov(scratch(numbers++), rax);
  }
  return numbers;
}

// The time stamp counter, into rax.
void TraceEmitter::read_ticks() {
  a_.rdtsc();
  a_.shl(rdx, 32);
  a_.or_(rax, rdx);
}

// The time stamps are summed up: each run subtracts its beginning and adds its end.
void TraceEmitter::begin_count() {
  counted_ = options_.counters != nullptr && ((ir::op_info(inst_->op).effects & ir::kBarrier) || inst_->op == Op::k_call_known || inst_->op == Op::k_call_apart);
  if (!counted_) return;
  ResidualCounter* counter = &(*options_.counters)[ref_];
  read_ticks();
  a_.mov(rcx, imm(counter));
  a_.inc(qword_ptr(rcx, offsetof(ResidualCounter, runs)));
  a_.sub(qword_ptr(rcx, offsetof(ResidualCounter, ticks)), rax);
}

void TraceEmitter::end_count() {
  if (!counted_) return;
  a_.mov(rsi, rax);  // the helper's result
  read_ticks();
  a_.mov(rcx, imm(&(*options_.counters)[ref_]));
  a_.add(qword_ptr(rcx, offsetof(ResidualCounter, ticks)), rax);
  a_.mov(rax, rsi);
}

bool TraceEmitter::emit_helper() {
  const Helper& helper = helpers_.of(inst_->op);
  if (helper.shape == HelperShape::kNone || helper.address == nullptr) return false;
  begin_count();
  switch (helper.shape) {
    case HelperShape::kValues:
    case HelperShape::kNullable:
    case HelperShape::kValuesImm:
    case HelperShape::kOut:
    case HelperShape::kGuardOut: {
      int n = static_cast<int>(inst_->count);
      if (n > 4) return fail("too many operands for its helper"), true;
      for (int k = 0; k < n; ++k) load(integer_arg(k), arg(k));
      if (helper.shape == HelperShape::kValuesImm) move(integer_arg(n), inst_->imm);
      if (helper.shape == HelperShape::kOut || helper.shape == HelperShape::kGuardOut) a_.lea(integer_arg(n), slot(ref_));
      break;
    }
    case HelperShape::kArray:
      gather();
      break;
    case HelperShape::kCall:
      gather();
      if (inst_->imm >= 0) {
        move(rdx, reinterpret_cast<int64_t>(trace_.objects[inst_->imm].pointer));
      } else {
        a_.xor_(edx, edx);
      }
      break;
    default: return false;
  }
  call(helper.address);
  end_count();
  check_result(helper.shape);
  return true;
}

void TraceEmitter::check_result(HelperShape shape) {
  Label failed = inst_->snapshot >= 0 ? (shape == HelperShape::kGuardOut ? guard_exit() : error_exit()) : Label();
  // Without a snapshot nothing but memory can be lacking.
  auto jump_failed = [&](CondCode code) {
    if (failed.isValid()) {
      a_.emit(x86::Inst::jccFromCond(code), failed);
      return;
    }
    Label fine = a_.newLabel();
    a_.emit(x86::Inst::jccFromCond(negateCond(code)), fine);
    a_.mov(edi, ref_);
    uses_out_of_memory_ = true;
    a_.jmp(out_of_memory_);
    a_.bind(fine);
  };
  switch (shape) {
    case HelperShape::kNullable:
      result(rax);
      if (!values_.values[ref_].owned) drop(rax, true);  // what it was got from keeps it
      return;
    case HelperShape::kOut:
      a_.test(eax, eax);
      jump_failed(CondCode::kS);
      return;
    case HelperShape::kGuardOut:
      a_.test(eax, eax);
      jump_failed(CondCode::kNZ);
      return;
    default: break;
  }
  if (inst_->type == ir::Type::kObject) {
    a_.test(rax, rax);
    jump_failed(CondCode::kZ);
    result(rax);
  } else {
    a_.test(eax, eax);
    jump_failed(CondCode::kS);
    if (inst_->type == ir::Type::kBool) {
      a_.mov(eax, eax);  // the upper half of an int result is undefined
      result(rax);
    }
  }
}

}  // namespace dynvm::codegen
