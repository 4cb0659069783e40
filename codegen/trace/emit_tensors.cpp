// Tensor operations, and the ends of a trace (emitter.h).
#include "codegen/trace/emitter.h"
#include "runtime/base/defects.h"

#include <cstddef>

namespace dynvm::codegen {

using namespace asmjit;
using namespace asmjit::x86;
using ir::Op;

bool TraceEmitter::emit_tensor() {
  const Inst& inst = *inst_;
  const TensorPlan& tensors = *input_.tensors;
  switch (inst.op) {
    case Op::k_aten:
    case Op::k_kernel:
    case Op::k_read_scalar:
    case Op::k_tensor_size:
    case Op::k_wrap:
    case Op::k_bump_version:
    case Op::k_draw_seed:
    case Op::k_draw_offset:
      if (helpers_.call == nullptr) return fail("needs the torch bridge"), true;
      break;
    case Op::k_get_grad:
    case Op::k_set_grad:
    case Op::k_take_graph:
      if (helpers_.get_grad == nullptr) return fail("needs the torch bridge"), true;
      break;
    default: return false;
  }
  const auto need_memory = [&] {
    a_.test(eax, eax);
    if (inst.snapshot >= 0) {
      a_.jnz(error_exit());
    } else {
      Label fine = a_.newLabel();
      a_.jz(fine);
      a_.mov(edi, ref_);
      uses_out_of_memory_ = true;
      a_.jmp(out_of_memory_);
      a_.bind(fine);
    }
  };
  if (ref_ == tensors.arranged_at) {
    a_.mov(rdi, r13);
    call(helpers_.arrange);
    need_memory();
  }
  for (int32_t storage : tensors.allocate[ref_]) {
    a_.mov(rdi, r13);
    a_.mov(esi, storage);
    a_.mov(rcx, rbx);
    call(helpers_.allocate);
    need_memory();
  }
  switch (inst.op) {
    case Op::k_aten: {
      if (tensors.call[ref_] < 0) return true;
      int32_t scalars = gather_numbers();
      a_.mov(rdi, r13);
      a_.mov(esi, tensors.call[ref_]);
      if (scalars > 0) {
        a_.lea(rdx, scratch(0));
      } else {
        a_.xor_(edx, edx);
      }
      a_.mov(rcx, rbx);
      call(helpers_.call);
      a_.test(eax, eax);
      a_.js(error_exit());
      // A view with run-time numbers of another geometry, or sizes that its data has decided otherwise.
      if (scalars > 0 || ir::may_leave(*input_.trace, input_.trace->calls[inst.imm])) a_.jnz(guard_exit());
      return true;
    }
    case Op::k_kernel: {
      const KernelEntry& kernel = input_.kernels[inst.imm];
      if (kernel.entry == nullptr) return true;  // an earlier one does its work too
      const bool shown = !kernel.on_device && helpers_.show_begin != nullptr;
      if (shown) show(code_->names_.emplace_back("dynvm::" + input_.trace->kernels[inst.imm].name).c_str());
      int32_t scalars = gather_numbers(kernel.more);
      int next = 0;
      if (kernel.context != nullptr) a_.mov(integer_arg(next++), imm(kernel.context));
      a_.mov(integer_arg(next++), ptr(rbx, offsetof(Activation, storage_data)));
      if (scalars > 0) {
        a_.lea(integer_arg(next), scratch(0));
      } else {
        a_.xor_(integer_arg(next).r32(), integer_arg(next).r32());
      }
      if (kernel.context != nullptr) a_.mov(integer_arg(next + 1), rbx);
      measured_call(kernel.entry);
      if (shown) show(nullptr);
      return true;
    }
    case Op::k_read_scalar:
      a_.mov(rdi, r13);
      a_.mov(esi, tensors.tensor[arg(0)]);
      a_.lea(rdx, slot(ref_));
      a_.mov(rcx, rbx);
      a_.mov(r8d, ref_);
      call(helpers_.read_scalar);
      a_.test(eax, eax);
      a_.jnz(error_exit());
      return true;
    case Op::k_tensor_size:
      a_.mov(rdi, r13);
      a_.mov(esi, tensors.tensor[arg(0)]);
      a_.mov(edx, static_cast<int32_t>(inst.imm));
      call(helpers_.tensor_size);
      a_.mov(slot(ref_), rax);
      return true;
    case Op::k_wrap: {
      a_.mov(rdi, rbx);
      a_.mov(esi, ref_);
      call(helpers_.wrap);
      check_result(HelperShape::kValues);
      return true;
    }
    case Op::k_bump_version:
      if (base::seeded(base::Defect::kVersionKept)) return true;
      a_.mov(rdi, r13);
      a_.mov(esi, tensors.tensor[arg(0)]);
      a_.mov(edx, static_cast<int32_t>(inst.imm));
      call(helpers_.bump_version);
      return true;
    case Op::k_draw_seed:
      a_.mov(rdi, r13);
      a_.mov(esi, tensors.call[ref_]);
      call(helpers_.seed);
      a_.mov(slot(ref_), rax);
      return true;
    case Op::k_draw_offset:
      a_.mov(rdi, r13);
      a_.mov(esi, tensors.call[ref_]);
      move(rdx, inst.imm);
      a_.lea(rcx, slot(ref_));
      call(helpers_.draw);
      need_memory();
      return true;
    case Op::k_get_grad:
      a_.mov(rdi, imm(helpers_.grad_context));
      load(rsi, arg(0));
      call(helpers_.get_grad);
      check_result(HelperShape::kValues);
      return true;
    default:  // set_grad, take_graph
      a_.mov(rdi, imm(helpers_.grad_context));
      load(rsi, arg(0));
      load(rdx, arg(1));
      call(inst.op == Op::k_set_grad ? helpers_.set_grad : helpers_.take_graph);
      if (inst.op == Op::k_set_grad) check_result(HelperShape::kValues);
      return true;
  }
}

bool TraceEmitter::emit_end() {
  if (inst_->op == Op::k_leave) {
    a_.jmp(exit(ExitKind::kLeave));
    return true;
  }
  if (inst_->op != Op::k_loop) return false;
  a_.mov(rdi, rbx);
  call(helpers_.write_back);
  a_.test(eax, eax);
  a_.jnz(error_exit());
  release(values_.dying[ref_]);
  if (helpers_.end_iteration != nullptr) {
    a_.mov(rdi, r13);
    call(helpers_.end_iteration);
  }
  if (options_.profile != nullptr) end_meter();
  a_.add(qword_ptr(rbx, offsetof(Activation, iterations)), static_cast<int32_t>(inst_->imm) + 1);
  a_.mov(rax, ptr(rbx, offsetof(Activation, eval_breaker)));
  a_.cmp(dword_ptr(rax), 0);
  a_.je(start_);
  a_.jmp(exit(ExitKind::kBreak));
  return true;
}

}  // namespace dynvm::codegen
