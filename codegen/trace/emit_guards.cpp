// Guards, unboxing and loads (emitter.h).
#include "codegen/trace/emitter.h"
#include "runtime/base/switches.h"

namespace dynvm::codegen {

using namespace asmjit;
using namespace asmjit::x86;
using ir::Op;

namespace {

bool is_version_guard(Op op) {
  return op == Op::k_guard_dict_version || op == Op::k_guard_type_version || op == Op::k_guard_func_version;
}

int32_t version_offset(const PythonLayout& layout, Op op) {
  switch (op) {
    case Op::k_guard_dict_version: return layout.dict_version;
    case Op::k_guard_type_version: return layout.type_version;
    default: return layout.function_version;
  }
}

}  // namespace

// Collects the run of version guards of one kind on constants that starts at `first`; returns where it ends. Constants and named results
// between them emit nothing; an instruction after which something dies is the last of its run.
size_t TraceEmitter::guard_run(Ref first, std::vector<Ref>* members) const {
  Op op = trace_.insts[first].op;
  if (!is_version_guard(op) || base::left_out(base::Part::kTables)) return first;
  Ref ref = first;
  for (; ref < trace_.insts.size(); ++ref) {
    const Inst& inst = trace_.insts[ref];
    if (is_executed(inst)) {
      int64_t object;
      if (inst.op != op || !is_constant(trace_.arg(inst, 0), &object) || object == 0 || inst.snapshot < 0) break;
      members->push_back(ref);
    }
    if (!values_.dying[ref].empty()) return ref + 1;
  }
  return ref;
}

// One tight loop over {object, version, instruction}.
void TraceEmitter::guard_table(Ref first, const std::vector<Ref>& members) {
  Op op = trace_.insts[first].op;
  std::vector<int64_t>& table = code_->versions_.emplace_back();
  for (Ref member : members) {
    int64_t object = 0;
    is_constant(trace_.arg(trace_.insts[member], 0), &object);
    table.insert(table.end(), {object, trace_.insts[member].imm, static_cast<int64_t>(member)});
  }
  if (options_.listing) a_.comment(("  ; " + std::to_string(members.size()) + " x " + std::string(ir::op_info(op).name)).c_str());
  Label again = a_.newLabel(), passed = a_.newLabel();
  a_.mov(rsi, imm(table.data()));
  a_.mov(rdi, imm(table.data() + table.size()));
  a_.bind(again);
  a_.mov(rax, qword_ptr(rsi));
  if (op == Op::k_guard_dict_version) {
    a_.mov(rdx, qword_ptr(rsi, 8));
    a_.cmp(rdx, qword_ptr(rax, version_offset(layout_, op)));
  } else {
    a_.mov(edx, dword_ptr(rsi, 8));
    a_.cmp(edx, dword_ptr(rax, version_offset(layout_, op)));
  }
  Label failed = a_.newLabel();
  a_.jne(failed);
  a_.add(rsi, 24);
  a_.cmp(rsi, rdi);
  a_.jne(again);
  a_.jmp(passed);
  a_.bind(failed);
  a_.mov(rcx, qword_ptr(rsi, 16));
  a_.mov(eax, static_cast<int32_t>(ExitKind::kGuard));
  a_.jmp(leave_);
  a_.bind(passed);
  release(values_.dying[members.back()]);
}

bool TraceEmitter::emit_guard() {
  const Inst& inst = *inst_;
  switch (inst.op) {
    case Op::k_guard_is: guard_is(); return true;
    case Op::k_guard_bound: {
      int64_t value;
      if (is_constant(arg(0), &value)) {
        if (value == 0) a_.jmp(guard_exit());
        return true;
      }
      load(rax, arg(0));
      guard_not_null(rax, arg(0));
      return true;
    }
    case Op::k_guard_type: {
      load(rax, arg(0));
      guard_not_null(rax, arg(0));
      int64_t type;
      if (is_constant(arg(1), &type)) {
        move(rcx, type);
      } else {
        load(rcx, arg(1));
      }
      a_.cmp(qword_ptr(rax, layout_.ob_type), rcx);
      a_.jne(guard_exit());
      return true;
    }
    case Op::k_guard_type_version:
    case Op::k_guard_func_version:
      load(rax, arg(0));
      guard_not_null(rax, arg(0));
      a_.cmp(dword_ptr(rax, version_offset(layout_, inst.op)), static_cast<int32_t>(inst.imm));
      a_.jne(guard_exit());
      return true;
    case Op::k_guard_dict_version:
      load(rax, arg(0));
      guard_not_null(rax, arg(0));
      // From memory, for it may be renewed.
      code_->versions_.push_back({0, inst.imm, static_cast<int64_t>(ref_)});
      a_.mov(rcx, imm(&code_->versions_.back()[1]));
      a_.mov(rcx, qword_ptr(rcx));
      a_.cmp(qword_ptr(rax, layout_.dict_version), rcx);
      a_.jne(guard_exit());
      return true;
    case Op::k_guard_keys_version:
      load(rax, arg(0));
      guard_not_null(rax, arg(0));
      a_.mov(rax, qword_ptr(rax, layout_.heap_type_keys));
      a_.test(rax, rax);
      a_.jz(guard_exit());
      a_.cmp(dword_ptr(rax, layout_.keys_version), static_cast<int32_t>(inst.imm));
      a_.jne(guard_exit());
      return true;
    case Op::k_guard_list_items: guard_list_items(); return true;
    case Op::k_guard_true:
    case Op::k_guard_false: {
      bool wanted = inst.op == Op::k_guard_true;
      int64_t value;
      if (is_constant(arg(0), &value)) {
        if ((value != 0) != wanted) a_.jmp(guard_exit());
        return true;
      }
      a_.cmp(byte_ptr(rbx, slot(arg(0)).offsetLo32()), 0);
      if (wanted) {
        a_.je(guard_exit());
      } else {
        a_.jne(guard_exit());
      }
      return true;
    }
    case Op::k_guard_torch_state:
      a_.mov(rdi, r13);
      a_.mov(esi, static_cast<int32_t>(inst.imm));
      if (helpers_.check_state == nullptr) return fail("needs the torch bridge"), true;
      call(helpers_.check_state);
      a_.test(eax, eax);
      a_.jnz(guard_exit());
      return true;
    case Op::k_unbox_tensor:
      if (helpers_.bind_input == nullptr) return fail("needs the torch bridge"), true;
      load(rdx, arg(0));
      guard_not_null(rdx, arg(0));
      a_.mov(rdi, r13);
      a_.mov(esi, input_.tensors->tensor[ref_]);
      call(helpers_.bind_input);
      a_.test(eax, eax);
      a_.jnz(guard_exit());
      return true;
    case Op::k_unbox_int:
    case Op::k_unbox_float:
    case Op::k_unbox_bool: unbox_number(); return true;
    default: return false;
  }
}

void TraceEmitter::guard_is() {
  int64_t a, b;
  bool a_known = is_constant(arg(0), &a), b_known = is_constant(arg(1), &b);
  if (a_known && b_known) {
    if (a != b) a_.jmp(guard_exit());
    return;
  }
  load(rax, arg(0));
  if (b_known) {
    compare(rax, b);
  } else {
    load(rdx, arg(1));
    a_.cmp(rax, rdx);
  }
  a_.jne(guard_exit());
  if (b_known && b != 0) not_null(arg(0));
}

void TraceEmitter::guard_list_items() {
  uint32_t items = inst_->count - 1;
  load(rax, arg(0));
  guard_not_null(rax, arg(0));
  a_.cmp(qword_ptr(rax, layout_.var_size), static_cast<int32_t>(items));
  a_.jne(guard_exit());
  if (items == 0) return;
  a_.mov(rax, qword_ptr(rax, layout_.list_items));
  std::vector<int64_t> objects(items);
  bool constant = true;
  for (uint32_t k = 0; k < items; ++k) constant = constant && is_constant(arg(k + 1), &objects[k]);
  if (!constant || items <= 8) {
    for (uint32_t k = 0; k < items; ++k) {
      load(rdx, arg(k + 1));
      a_.cmp(qword_ptr(rax, static_cast<int32_t>(8 * k)), rdx);
      a_.jne(guard_exit());
    }
    return;
  }
  code_->tables_.push_back(std::move(objects));
  Label again = a_.newLabel();
  a_.mov(rsi, imm(code_->tables_.back().data()));
  a_.xor_(ecx, ecx);
  a_.bind(again);
  a_.mov(rdx, qword_ptr(rsi, rcx, 3));
  a_.cmp(rdx, qword_ptr(rax, rcx, 3));
  a_.jne(guard_exit());
  a_.inc(ecx);
  a_.cmp(ecx, items);
  a_.jne(again);
}

void TraceEmitter::unbox_number() {
  load(rdi, arg(0));
  guard_not_null(rdi, arg(0));
  switch (inst_->op) {
    case Op::k_unbox_bool:
      a_.xor_(ecx, ecx);
      move(rax, reinterpret_cast<int64_t>(layout_.true_object));
      a_.cmp(rdi, rax);
      a_.sete(cl);
      {
        Label done = a_.newLabel();
        a_.je(done);
        move(rax, reinterpret_cast<int64_t>(layout_.false_object));
        a_.cmp(rdi, rax);
        a_.jne(guard_exit());
        a_.bind(done);
      }
      result(rcx);
      return;
    case Op::k_unbox_float:
      move(rax, reinterpret_cast<int64_t>(layout_.float_type));
      a_.cmp(qword_ptr(rdi, layout_.ob_type), rax);
      a_.jne(guard_exit());
      a_.mov(rax, qword_ptr(rdi, layout_.float_value));
      result(rax);
      return;
    default: break;
  }
  move(rax, reinterpret_cast<int64_t>(layout_.long_type));
  a_.cmp(qword_ptr(rdi, layout_.ob_type), rax);
  a_.jne(guard_exit());
  Label slow = a_.newLabel(), done = a_.newLabel();
  if (layout_.long_style == PythonLayout::kSizedDigits) {
    // At most one digit: its value times the sign.
    a_.mov(rax, qword_ptr(rdi, layout_.long_size));
    a_.lea(rcx, qword_ptr(rax, 1));
    a_.cmp(rcx, 2);
    a_.ja(slow);
    a_.mov(ecx, dword_ptr(rdi, layout_.long_digits));
    a_.imul(rax, rcx);
    result(rax);
    a_.jmp(done);
  } else if (layout_.long_style == PythonLayout::kTaggedDigits) {
    // At most one digit: its value times one less the sign's two bits.
    a_.mov(rax, qword_ptr(rdi, layout_.long_size));
    a_.cmp(rax, 2 << 3);
    a_.jae(slow);
    a_.and_(eax, 3);
    a_.mov(ecx, 1);
    a_.sub(rcx, rax);
    a_.mov(eax, dword_ptr(rdi, layout_.long_digits));
    a_.imul(rax, rcx);
    result(rax);
    a_.jmp(done);
  }
  a_.bind(slow);
  a_.lea(rsi, slot(ref_));
  call(helpers_.unbox_int);
  a_.test(eax, eax);
  a_.jnz(guard_exit());
  a_.bind(done);
}

bool TraceEmitter::emit_load() {
  const Inst& inst = *inst_;
  switch (inst.op) {
    case Op::k_load_dict_of: {
      Label other = a_.newLabel(), done = a_.newLabel();
      load(rdi, arg(0));
      a_.mov(rax, qword_ptr(rdi, layout_.ob_type));
      a_.test(dword_ptr(rax, layout_.type_flags), static_cast<uint32_t>(layout_.managed_dict_flag));
      a_.jz(other);
      a_.mov(rax, qword_ptr(rdi, layout_.managed_dict));
      if (layout_.values == PythonLayout::kValuesOdd) {  // inline values have no dict
        Label dict = a_.newLabel();
        a_.test(eax, 1);
        a_.jz(dict);
        a_.xor_(eax, eax);
        a_.bind(dict);
      }
      a_.jmp(done);
      a_.bind(other);
      call(helpers_.dict_of);
      a_.bind(done);
      result_object(rax, true);
      return true;
    }
    case Op::k_load_value: {
      Label none = a_.newLabel();
      load(rcx, arg(0));
      a_.xor_(eax, eax);
      if (layout_.values == PythonLayout::kValuesInside) {
        a_.cmp(byte_ptr(rcx, layout_.values_valid), 0);
      } else {
        a_.mov(rcx, qword_ptr(rcx, layout_.managed_values));
        if (layout_.values == PythonLayout::kValuesOdd) {
          a_.test(ecx, 1);
        } else {
          a_.test(rcx, rcx);
        }
      }
      a_.jz(none);
      a_.mov(rax, qword_ptr(rcx, static_cast<int32_t>(layout_.first_value + 8 * inst.imm)));
      a_.bind(none);
      result_object(rax, true);
      return true;
    }
    case Op::k_load_field:
      load(rcx, arg(0));
      a_.mov(rax, qword_ptr(rcx, static_cast<int32_t>(inst.imm)));
      result_object(rax, true);
      return true;
    case Op::k_tuple_item:
      load(rcx, arg(0));
      a_.mov(rax, qword_ptr(rcx, static_cast<int32_t>(layout_.tuple_items + 8 * inst.imm)));
      result_object(rax, false);
      return true;
    case Op::k_list_len:
    case Op::k_tuple_len:
      load(rcx, arg(0));
      a_.mov(rax, qword_ptr(rcx, layout_.var_size));
      result(rax);
      return true;
    case Op::k_dict_len:
      load(rcx, arg(0));
      a_.mov(rax, qword_ptr(rcx, layout_.dict_used));
      result(rax);
      return true;
    case Op::k_list_item:
      load(rcx, arg(0));
      load(rdx, arg(1));
      a_.mov(rcx, qword_ptr(rcx, layout_.list_items));
      a_.mov(rax, qword_ptr(rcx, rdx, 3));
      result_object(rax, false);
      return true;
    default: return false;
  }
}

}  // namespace dynvm::codegen
