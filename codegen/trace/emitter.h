// The emitter of trace code: shared state and small pieces; the instructions are in emit_*.cpp by group.
//
// Inputs: TraceCodeInput. Output: instructions in an asmjit assembler. Invariants: between two instructions no register but rbx, r12, r13
// holds anything; the stack is 16-byte aligned, so calls need no adjustment; an exit happens before the instruction has changed anything.
// Tests: tests/exec.
#pragma once

#include <asmjit/x86.h>

#include <string>
#include <vector>

#include "codegen/trace/compile.h"

namespace dynvm::codegen {

class TraceEmitter {
 public:
  TraceEmitter(const TraceCodeInput& input, const TraceCodeOptions& options);
  base::Status run(std::unique_ptr<TraceCode>* out);

 private:
  using Gp = asmjit::x86::Gp;
  using Xmm = asmjit::x86::Xmm;
  using Mem = asmjit::x86::Mem;
  using Label = asmjit::Label;
  using Inst = ir::Inst;
  using Ref = ir::Ref;

  // --- emitter.cpp
  void prologue();
  void instruction(Ref ref);
  void stubs();
  void fail(const std::string& message);
  Label guard_exit();                 // where the current instruction's guard goes
  Label error_exit();                 // where it goes when it raised
  Label exit(ExitKind kind);
  void release(const std::vector<Ref>& values);
  void drop(const Gp& object, bool nullable);       // one reference less; clobbers everything
  void take(const Gp& object, bool nullable);       // one reference more
  void call(const void* function);
  void stress(Ref ref);
  void barrier();
  void show(const char* name);
  bool begin_meter();
  void end_meter();
  void measured_call(const void* function);
  void switch_meter(base::profile::Meter* meter, bool count);
  void mark(Ref ref);

  // operands
  Ref arg(uint32_t k) const { return trace_.arg(*inst_, k); }
  const Inst& def(Ref ref) const { return trace_.insts[ref]; }
  bool is_constant(Ref ref, int64_t* value) const;  // its 64 bits
  bool is_null_constant(Ref ref) const;
  bool nullable(Ref ref) const;                     // may be null as far as the guards so far say
  void not_null(Ref ref) { bound_[ref] = true; }
  void guard_not_null(const Gp& object, Ref ref);   // leaves when it is null; nothing where it cannot be
  void load(const Gp& to, Ref ref);
  void load(const Xmm& to, Ref ref);                // a float; clobbers rax for constants
  void move(const Gp& to, int64_t value);
  Mem slot(Ref ref) const;
  Mem scratch(int32_t index);
  void result(const Gp& from);
  void result(const Xmm& from);
  void result_object(const Gp& from, bool null_possible);  // a borrowed object: takes a reference if the plan says so
  void compare(const Gp& with, int64_t value);      // clobbers rdx
  Gp integer_arg(int index) const;

  // --- groups: false when the op is not of the group
  bool emit_guard();      // emit_guards.cpp
  bool emit_load();
  bool emit_scalar();     // emit_scalars.cpp
  bool emit_write();      // emit_objects.cpp
  bool emit_helper();
  bool emit_tensor();     // emit_tensors.cpp
  bool emit_end();

  void guard_table(Ref first, const std::vector<Ref>& members);
  size_t guard_run(Ref first, std::vector<Ref>* members) const;
  void guard_is();
  void guard_list_items();
  void unbox_number();
  void gather();                                    // operands to the scratch area; rdi, esi: where, how many
  int32_t gather_numbers(const std::vector<ir::Ref>& more = {});
  void check_result(HelperShape shape);
  void int_binary();
  void divide(bool quotient);
  void compare_ints(asmjit::x86::CondCode code);
  void compare_floats();
  void replace_field(const Mem& field, Ref value);
  void read_ticks();
  void begin_count();
  void end_count();

  const TraceCodeInput& input_;
  const TraceCodeOptions& options_;
  const ir::Trace& trace_;
  const ValuePlan& values_;
  const PythonLayout& layout_;
  const HelperTable& helpers_;
  asmjit::CodeHolder holder_;
  asmjit::x86::Assembler a_;
  asmjit::StringLogger logger_;
  std::unique_ptr<TraceCode> code_;
  std::string error_;

  struct Exit {
    Ref inst;
    ExitKind kind;
    Label label;
  };
  std::vector<Exit> exits_;
  Label start_, leave_, dealloc_, out_of_memory_;
  bool uses_dealloc_ = false, uses_out_of_memory_ = false;
  Ref ref_ = 0;
  const Inst* inst_ = nullptr;
  int32_t scratch_used_ = 0;
  bool counted_ = false;  // the current instruction is counted
  std::vector<bool> bound_;  // by Ref: a guard before has found an object there (the code has no branches within an iteration)
};

}  // namespace dynvm::codegen
