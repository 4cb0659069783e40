// Frame work of the trace emitter (emitter.h): entry, exits, operands, reference counts.
#include "codegen/trace/emitter.h"

#include <cstddef>

#include "ir/text.h"
#include "runtime/base/heuristics.h"

namespace dynvm::codegen {

using namespace asmjit;
using namespace asmjit::x86;

namespace {

JitRuntime& jit() {
  static JitRuntime* runtime = new JitRuntime;  // outlives all traces
  return *runtime;
}

// Keeps the first message; emission goes on, and the caller looks at the end.
class Errors : public ErrorHandler {
 public:
  explicit Errors(std::string* message) : message_(message) {}
  void handleError(Error, const char* message, BaseEmitter*) override {
    if (message_->empty()) *message_ = std::string("asmjit: ") + message;
  }

 private:
  std::string* message_;
};

constexpr int32_t offset_of_values() { return static_cast<int32_t>(sizeof(Activation)); }

}  // namespace

TraceCode::~TraceCode() {
  if (entry_ != nullptr) jit().release(entry_);
}

uint64_t TraceCode::stressed() const {
  uint64_t left = 0;
  for (uint8_t byte : stress_) left += byte;
  return stress_sites_ - left;
}

void TraceCode::set_version(ir::Ref guard, int64_t version) {
  for (std::vector<int64_t>& table : versions_)
    for (size_t row = 0; row + 2 < table.size(); row += 3)
      if (table[row + 2] == static_cast<int64_t>(guard)) table[row + 1] = version;
}

TraceEmitter::TraceEmitter(const TraceCodeInput& input, const TraceCodeOptions& options)
    : input_(input), options_(options), trace_(*input.trace), values_(*input.values), layout_(*input.layout), helpers_(*input.helpers),
      code_(new TraceCode), bound_(trace_.insts.size(), false) {}

void TraceEmitter::fail(const std::string& message) {
  if (error_.empty()) error_ = "instruction " + std::to_string(ref_) + " `" + ir::print_inst(trace_, ref_) + "`: " + message;
}

base::Status TraceEmitter::run(std::unique_ptr<TraceCode>* out) {
  if (!CpuInfo::host().features().x86().hasAVX()) return base::Status::failure("the processor has no AVX");
  holder_.init(jit().environment());
  Errors errors(&error_);
  holder_.setErrorHandler(&errors);
  holder_.attach(&a_);
  if (options_.listing) holder_.setLogger(&logger_);
  start_ = a_.newLabel();
  leave_ = a_.newLabel();
  dealloc_ = a_.newLabel();
  out_of_memory_ = a_.newLabel();
  // Sized before emission: code holds the addresses of its bytes.
  if (options_.stress_exits) code_->stress_.assign(trace_.insts.size(), 0);

  prologue();
  a_.bind(start_);
  for (Ref ref = 0; ref < trace_.insts.size() && error_.empty();) {
    std::vector<Ref> members;
    size_t next = options_.stress_exits ? ref : guard_run(ref, &members);
    ref_ = ref;
    inst_ = &trace_.insts[ref];
    if (members.size() > static_cast<size_t>(base::heuristics().guard_table)) {
      mark(ref);
      guard_table(ref, members);
      ref = static_cast<Ref>(next);
      continue;
    }
    instruction(ref);
    ++ref;
  }
  if (!error_.empty()) return base::Status::failure(error_);
  stubs();
  if (!error_.empty()) return base::Status::failure(error_);
  void* entry = nullptr;
  if (Error error = jit().add(&entry, &holder_)) return base::Status::failure(std::string("asmjit: ") + DebugUtils::errorAsString(error));
  code_->entry_ = reinterpret_cast<TraceEntry>(entry);
  code_->size_ = holder_.codeSize();
  code_->num_scratch_ = scratch_used_;
  if (options_.listing) code_->listing_.assign(logger_.data(), logger_.dataSize());
  holder_.setErrorHandler(nullptr);
  *out = std::move(code_);
  return {};
}

void TraceEmitter::prologue() {
  a_.push(rbx);
  a_.push(r12);
  a_.push(r13);  // the return address and three pushes: aligned to 16
  a_.mov(rbx, rdi);
  a_.mov(r12, ptr(rbx, offsetof(Activation, root_slots)));
  a_.mov(r13, ptr(rbx, offsetof(Activation, session)));
}

void TraceEmitter::instruction(Ref ref) {
  const Inst& inst = trace_.insts[ref];
  bool measured = false;
  if (is_executed(inst)) {
    mark(ref);
    measured = begin_meter();
    if (options_.listing) a_.comment(("  ; " + ir::print_inst(trace_, ref)).c_str());
    // A guard whose exit is the other side of a branch cannot fail while it holds: the interpreter would not test again.
    if (options_.stress_exits && (ir::op_info(inst.op).effects & ir::kGuard) && inst.snapshot >= 0 && !trace_.snapshots[inst.snapshot].elsewhere) stress(ref);
    constexpr uint16_t kForeign = ir::kBarrier | ir::kRaises;
    const bool tensor_op = (ir::op_info(inst.op).effects & ir::kTensorMemory) != 0;
    if (helpers_.barrier != nullptr && !tensor_op && inst.snapshot >= 0 && (ir::op_info(inst.op).effects & kForeign)) barrier();
    bool done = emit_guard() || emit_load() || emit_scalar() || emit_write() || emit_tensor() || emit_end() || emit_helper();
    if (!done) fail("there is no code for this operation");
  }
  if (inst.op == ir::Op::k_loop || inst.op == ir::Op::k_leave) return;
  release(values_.dying[ref]);
  for (int32_t storage : input_.tensors->drop[ref]) {
    if (helpers_.drop_storage == nullptr) break;
    a_.mov(rdi, r13);
    a_.mov(esi, storage);
    a_.mov(rcx, rbx);
    call(helpers_.drop_storage);
  }
  for (int32_t slot : values_.spent[ref]) {
    if (helpers_.let_go == nullptr) break;
    a_.mov(rdi, rbx);
    a_.mov(esi, slot);
    call(helpers_.let_go);
  }
  if (measured) end_meter();
}

// Where tensor work has been put off, the instruction may have to see it done.
void TraceEmitter::barrier() {
  Label nothing = a_.newLabel();
  a_.cmp(x86::dword_ptr(rbx, offsetof(Activation, pending)), 0);
  a_.je(nothing);
  a_.mov(rdi, rbx);
  a_.mov(esi, ref_);
  call(helpers_.barrier);
  a_.test(eax, eax);
  a_.jnz(error_exit());
  a_.bind(nothing);
}

// Where a profiler of torch's listens, what follows has that name; null: it is over.
void TraceEmitter::show(const char* name) {
  Label nobody = a_.newLabel();
  a_.mov(rax, ptr(rbx, offsetof(Activation, watched)));
  a_.cmp(x86::dword_ptr(rax), 0);
  a_.je(nobody);
  a_.mov(rdi, r13);
  if (name != nullptr) a_.mov(rsi, imm(name));
  call(name != nullptr ? helpers_.show_begin : helpers_.show_end);
  a_.bind(nobody);
}

void TraceEmitter::mark(Ref ref) {
  if (options_.listing) code_->marks_.emplace_back(logger_.dataSize(), ref);
}

// Its meter runs until the instruction's end, or until the trace is left in its middle and whoever entered it (compiled_trace.cpp) goes back
// to theirs. What is behind it runs on the trace's own meter.
bool TraceEmitter::begin_meter() {
  using base::profile::Kind;
  if (options_.profile == nullptr) return false;
  const Kind kind = profile_kind(*inst_);
  if (kind == Kind::kInline || kind == Kind::kGuard) return false;
  if (inst_->op == ir::Op::k_aten && input_.tensors->call[ref_] < 0) return false;  // it only names something
  if (inst_->op == ir::Op::k_kernel) return false;                                   // its call alone is measured
  switch_meter(&options_.profile->meters[ref_], true);
  return true;
}

void TraceEmitter::end_meter() { switch_meter(&options_.profile->own, false); }

// A call whose arguments are in their registers, on the instruction's meter where there is one.
void TraceEmitter::measured_call(const void* function) {
  if (options_.profile == nullptr) return call(function);
  for (const Gp& reg : {rsi, rdx, rcx}) a_.push(reg);
  switch_meter(&options_.profile->meters[ref_], true);
  for (const Gp& reg : {rcx, rdx, rsi}) a_.pop(reg);
  call(function);
  end_meter();
}

// Clock::go_on. No register holds anything between two instructions.
void TraceEmitter::switch_meter(base::profile::Meter* meter, bool count) {
  using base::profile::Clock;
  using base::profile::Meter;
  read_ticks();
  a_.mov(rcx, ptr(rbx, offsetof(Activation, clock)));
  a_.mov(rsi, ptr(rcx, offsetof(Clock, running)));
  a_.mov(rdx, rax);
  a_.sub(rdx, ptr(rcx, offsetof(Clock, since)));
  a_.add(qword_ptr(rsi, offsetof(Meter, ticks)), rdx);
  a_.mov(ptr(rcx, offsetof(Clock, since)), rax);
  a_.mov(rsi, imm(meter));
  a_.mov(ptr(rcx, offsetof(Clock, running)), rsi);
  if (count) a_.inc(qword_ptr(rsi, offsetof(Meter, times)));
}

void TraceEmitter::stress(Ref ref) {
  uint8_t* byte = &code_->stress_[ref];
  *byte = 1;
  ++code_->stress_sites_;
  Label passed = a_.newLabel();
  move(rax, reinterpret_cast<int64_t>(byte));
  a_.cmp(x86::byte_ptr(rax), 0);
  a_.je(passed);
  a_.mov(x86::byte_ptr(rax), 0);
  a_.jmp(guard_exit());
  a_.bind(passed);
}

void TraceEmitter::stubs() {
  mark(static_cast<Ref>(trace_.insts.size()));
  if (options_.listing) a_.comment("  ; exits");
  for (const Exit& exit : exits_) {
    a_.bind(exit.label);
    a_.mov(ecx, exit.inst);
    a_.mov(eax, static_cast<int32_t>(exit.kind));
    a_.jmp(leave_);
  }
  a_.bind(leave_);
  a_.mov(ptr(rbx, offsetof(Activation, exit_inst)), rcx);
  a_.pop(r13);
  a_.pop(r12);
  a_.pop(rbx);
  a_.ret();
  if (uses_dealloc_) {
    a_.bind(dealloc_);
    a_.mov(rax, imm(layout_.dealloc));
    a_.jmp(rax);
  }
  if (uses_out_of_memory_) {
    a_.bind(out_of_memory_);  // edi: the instruction
    a_.mov(rax, imm(helpers_.out_of_memory));
    a_.call(rax);
    a_.ud2();
  }
}

TraceEmitter::Label TraceEmitter::exit(ExitKind kind) {
  for (size_t k = exits_.size(); k-- > 0 && exits_[k].inst == ref_;)  // those of one instruction stand together
    if (exits_[k].kind == kind) return exits_[k].label;
  exits_.push_back({ref_, kind, a_.newLabel()});
  return exits_.back().label;
}

TraceEmitter::Label TraceEmitter::guard_exit() {
  if (inst_->snapshot < 0) fail("has no snapshot to leave through");
  return exit(ExitKind::kGuard);
}

TraceEmitter::Label TraceEmitter::error_exit() { return exit(ExitKind::kError); }

// ---------------------------------------------------------------------------------------------------------------------
// Reference counts

void TraceEmitter::take(const Gp& object, bool null_possible) {
  Label done = a_.newLabel();
  if (null_possible) {
    a_.test(object, object);
    a_.jz(done);
  }
  if (layout_.immortal_objects) {
    a_.test(x86::byte_ptr(object, layout_.ob_refcnt + 3), 0x80);
    a_.jnz(done);
  }
  a_.inc(x86::qword_ptr(object, layout_.ob_refcnt));
  a_.bind(done);
}

void TraceEmitter::drop(const Gp& object, bool null_possible) {
  Label done = a_.newLabel();
  if (object != rdi) a_.mov(rdi, object);
  if (null_possible) {
    a_.test(rdi, rdi);
    a_.jz(done);
  }
  if (layout_.immortal_objects) {
    a_.test(x86::byte_ptr(rdi, layout_.ob_refcnt + 3), 0x80);
    a_.jnz(done);
  }
  a_.dec(x86::qword_ptr(rdi, layout_.ob_refcnt));
  a_.jnz(done);
  uses_dealloc_ = true;
  a_.call(dealloc_);
  a_.bind(done);
}

void TraceEmitter::release(const std::vector<Ref>& values) {
  for (Ref ref : values) {
    if (options_.listing) a_.comment(("  ; release %" + std::to_string(ref)).c_str());
    a_.mov(rdi, slot(ref));
    drop(rdi, nullable(ref));
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Operands and results

bool TraceEmitter::is_constant(Ref ref, int64_t* value) const {
  const Inst& inst = def(ref);
  switch (inst.op) {
    case ir::Op::k_const_obj: *value = reinterpret_cast<int64_t>(trace_.objects[inst.imm].pointer); return true;
    case ir::Op::k_const_int:
    case ir::Op::k_const_float: *value = inst.imm; return true;
    case ir::Op::k_const_bool: *value = inst.imm != 0; return true;
    default: return false;
  }
}

bool TraceEmitter::is_null_constant(Ref ref) const {
  int64_t value;
  return is_constant(ref, &value) && value == 0;
}

bool TraceEmitter::nullable(Ref ref) const {
  if (bound_[ref]) return false;
  return values_.values[ref].nullable || def(ref).op == ir::Op::k_slot || is_null_constant(ref);
}

void TraceEmitter::guard_not_null(const Gp& object, Ref ref) {
  if (!nullable(ref)) return;
  a_.test(object, object);
  a_.jz(guard_exit());
  not_null(ref);
}

void TraceEmitter::move(const Gp& to, int64_t value) {
  if (value == 0) {
    a_.xor_(to.r32(), to.r32());
  } else if (value > 0 && value <= INT64_C(0xffffffff)) {
    a_.mov(to.r32(), static_cast<uint32_t>(value));
  } else {
    a_.mov(to, value);
  }
}

Mem TraceEmitter::slot(Ref ref) const {
  return x86::qword_ptr(rbx, offset_of_values() + 8 * values_.values[ref].slot);
}

// Word `index` of the scratch area.
Mem TraceEmitter::scratch(int32_t index) {
  scratch_used_ = std::max(scratch_used_, index + 1);
  return x86::qword_ptr(rbx, offset_of_values() + 8 * (values_.num_slots + index));
}

void TraceEmitter::load(const Gp& to, Ref ref) {
  int64_t value;
  if (is_constant(ref, &value)) {
    move(to, value);
  } else if (def(ref).op == ir::Op::k_slot) {
    a_.mov(to, x86::qword_ptr(r12, static_cast<int32_t>(8 * def(ref).imm)));
  } else if (values_.values[ref].slot != ValuePlan::kNoSlot) {
    a_.mov(to, slot(ref));
  } else {
    fail("operand %" + std::to_string(ref) + " has no value at run time");
  }
}

void TraceEmitter::load(const Xmm& to, Ref ref) {
  int64_t value;
  if (is_constant(ref, &value)) {
    move(rax, value);
    a_.vmovq(to, rax);
  } else {
    a_.vmovsd(to, slot(ref));
  }
}

void TraceEmitter::result(const Gp& from) { a_.mov(slot(ref_), from.r64()); }
void TraceEmitter::result(const Xmm& from) { a_.vmovsd(slot(ref_), from); }

void TraceEmitter::result_object(const Gp& from, bool null_possible) {
  result(from);
  if (values_.values[ref_].owned) take(from, null_possible);
}

void TraceEmitter::compare(const Gp& with, int64_t value) {
  if (value == static_cast<int32_t>(value)) {
    a_.cmp(with, static_cast<int32_t>(value));
  } else {
    a_.mov(rdx, value);
    a_.cmp(with, rdx);
  }
}

TraceEmitter::Gp TraceEmitter::integer_arg(int index) const {
  static const Gp kRegisters[] = {rdi, rsi, rdx, rcx, r8, r9};
  return kRegisters[index];
}

void TraceEmitter::call(const void* function) {
  a_.mov(rax, imm(function));
  a_.call(rax);
}

base::profile::Kind profile_kind(const ir::Inst& inst) {
  using base::profile::Kind;
  const uint16_t effects = ir::op_info(inst.op).effects;
  switch (inst.op) {
    case ir::Op::k_kernel: return Kind::kKernel;
    case ir::Op::k_aten: return Kind::kLibrary;
    case ir::Op::k_loop: return Kind::kEnd;
    case ir::Op::k_leave: return Kind::kInline;
    case ir::Op::k_read_scalar:
    case ir::Op::k_draw_offset:
    case ir::Op::k_wrap: return Kind::kTensor;
    case ir::Op::k_call_known:
    case ir::Op::k_call_apart: return Kind::kResidual;
    default: break;
  }
  if (effects & ir::kBarrier) return Kind::kResidual;
  return effects & ir::kGuard ? Kind::kGuard : Kind::kInline;
}

base::Status compile_trace(const TraceCodeInput& input, const TraceCodeOptions& options, std::unique_ptr<TraceCode>* code) {
  return TraceEmitter(input, options).run(code);
}

}  // namespace dynvm::codegen
