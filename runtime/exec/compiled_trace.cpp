// Compiling, running and leaving traces (compiled_trace.h).
#include "runtime/base/defects.h"
#include "runtime/exec/compiled_trace.h"

#include <x86intrin.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

#include "ir/text.h"
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/base/switches.h"
#include "runtime/exec/batches.h"
#include "runtime/exec/device_users.h"
#include "runtime/exec/helpers.h"
#include "runtime/exec/layout.h"
#include "runtime/exec/materialise.h"
#include "runtime/exec/reads.h"
#include "runtime/exec/rounds.h"

namespace dynvm::runtime {

using codegen::Activation;
using codegen::ExitKind;
using ir::Op;
using ir::Ref;

namespace {

Stretches* stretches_of(Activation* activation) { return static_cast<Stretches*>(activation->stretches); }
bridge::Session* session_of(Activation* activation) { return static_cast<bridge::Session*>(activation->session); }

// --- called from generated code

[[noreturn]] void out_of_memory(int32_t inst) {
  (void)inst;
  PyErr_Print();
  Py_FatalError("dynvm: no memory, or no random numbers, in an operation of a compiled trace that cannot raise");
}

void launch_kernel(const codegen::cuda::CudaKernel* kernel, void* const* pointers, const int64_t* scalars, Activation* activation) {
  if (!kernel->mirrors().empty()) expect_numbers(*kernel, session_of(activation));
  if (activation->stretches != nullptr) {
    stretches_of(activation)->launch(kernel, scalars);
  } else {
    kernel->launch(pointers, scalars, activation->symbols);
  }
}
int allocate(bridge::Session* session, int32_t storage, int64_t, Activation* activation) {
  if (activation->stretches != nullptr) return stretches_of(activation)->allocate(storage);
  return static_cast<CompiledTrace*>(activation->owner)->functions().allocate(session, storage);
}
void drop_storage(bridge::Session* session, int32_t storage, int64_t, Activation* activation) {
  if (activation->stretches != nullptr) stretches_of(activation)->drop(storage);
  else static_cast<CompiledTrace*>(activation->owner)->functions().drop_storage(session, storage);
}
int queue_call(bridge::Session*, int32_t call, const int64_t* scalars, Activation* activation) { return stretches_of(activation)->call(call, scalars); }

PyObject* get_grad(bridge::Bridge* bridge, PyObject* tensor) { return bridge->get_grad(tensor); }
int set_grad(bridge::Bridge* bridge, PyObject* tensor, PyObject* grad) { return bridge->set_grad(tensor, grad); }
void take_graph(bridge::Bridge* bridge, PyObject* tensor, PyObject* from) { bridge->take_graph(tensor, from); }

template <typename Function>
const void* address(Function* function) {
  return reinterpret_cast<const void*>(function);
}

bool has_arenas(Activation* activation) { return activation->session != nullptr && session_of(activation)->has_arenas; }

// What an object is called by in the trace: a constant's name, or "?.name" for an attribute of something that is known only when it runs.
std::string name_of(const ir::Trace& trace, Ref ref) {
  const ir::Inst& inst = trace.insts[ref];
  auto constant = [&](Ref value) {
    std::string text = trace.insts[value].op == Op::k_const_obj ? trace.objects[trace.insts[value].imm].text : std::string();
    if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') text = text.substr(1, text.size() - 2);
    return text;
  };
  if (inst.op == Op::k_get_attr || inst.op == Op::k_get_attr_known) return "?." + constant(trace.arg(inst, 1));
  return constant(ref);
}

// The traces whose residual operations are counted: the report gets the counts of those that live and of those that were dropped.
class CountedTraces {
 public:
  CountedTraces() : start_(Clock::now()), start_ticks_(__rdtsc()) {
    base::on_report([this](base::Report& report) {
      report.residual_calls = dropped_;
      for (const CompiledTrace* trace : live_) add_residuals(trace, report.residual_calls);
    });
  }
  void add(CompiledTrace* trace) { live_.insert(trace); }
  void drop(CompiledTrace* trace) {
    if (live_.erase(trace) != 0) add_residuals(trace, dropped_);
  }
  // The counter's rate, from what has passed of both clocks since the first trace was compiled.
  double ms_per_tick() const {
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
    return ms / static_cast<double>(std::max<uint64_t>(__rdtsc() - start_ticks_, 1));
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Residuals = std::map<std::string, base::ResidualReport>;
  static void add_residuals(const CompiledTrace* trace, Residuals& to) {
    for (const auto& [name, residual] : trace->residuals()) {
      to[name].calls += residual.calls;
      to[name].ms += residual.ms;
    }
  }
  std::set<CompiledTrace*> live_;
  Residuals dropped_;
  Clock::time_point start_;
  uint64_t start_ticks_;
};

// Never destroyed: the report is written by an exit handler.
CountedTraces& counted_traces() {
  static auto* const the_traces = new CountedTraces;
  return *the_traces;
}

}  // namespace

std::string residual_name(const ir::Trace& trace, const ir::Inst& inst) {
  std::string name(ir::op_info(inst.op).name);
  std::string what;
  switch (inst.op) {
    case Op::k_call:
    case Op::k_call_known:
    case Op::k_call_apart:
    case Op::k_call_ex:
      name = "call";
      what = name_of(trace, trace.arg(inst, 0));
      break;
    case Op::k_get_attr:
    case Op::k_set_attr:
    case Op::k_import_from: what = name_of(trace, trace.arg(inst, 1)); break;
    case Op::k_import_name: what = name_of(trace, trace.arg(inst, 0)); break;
    default: break;
  }
  return what.empty() ? name : name + " " + what;
}

base::Status CompiledTrace::compile(ir::Trace&& optimised, const ir::Plan& plan, bridge::Bridge* bridge,
                                    const CompileOptions& options, std::unique_ptr<CompiledTrace>* out) {
  std::unique_ptr<CompiledTrace> trace(new CompiledTrace);
  trace->trace_ = std::move(optimised);
  base::Status status = trace->build(plan, bridge, options);
  if (status.ok()) *out = std::move(trace);
  return status;
}

base::Status CompiledTrace::build(const ir::Plan& plan, bridge::Bridge* bridge, const CompileOptions& options) {
  if (options.stress_waits) waits_ = 60;
  values_ = codegen::plan_values(trace_);
  if (base::Status status = build_program(trace_, plan, &programs_); !status.ok()) return status;
  helpers_ = helper_table();
  helpers_.write_back = address(&write_back);
  if (bridge != nullptr) helpers_.let_go = address(&let_go);
  helpers_.wrap = address(&wrap);
  helpers_.out_of_memory = address(&out_of_memory);
  if (programs_.has_tensors && bridge == nullptr) return base::Status::failure("the trace has tensors and there is no torch bridge");
  bridge_ = bridge;
  if (bridge != nullptr) {
    helpers_.get_grad = address(&get_grad);
    helpers_.set_grad = address(&set_grad);
    helpers_.take_graph = address(&take_graph);
    helpers_.grad_context = bridge;
  }
  if (on_gpu() && !base::left_out(base::Part::kMirrors)) mirrors_ = plan_mirrors(trace_, &programs_);
  else mirrors_.of_read.assign(trace_.insts.size(), -1);
  if (programs_.has_tensors) {
    std::string error;
    program_ = bridge->build(programs_.spec, &error);
    if (program_ == nullptr) return base::Status::failure("torch program: " + error);
    const bridge::SessionFunctions& functions = bridge->functions();
    helpers_.bind_input = address(functions.bind_input);
    helpers_.check_state = address(functions.check_state);
    helpers_.allocate = address(functions.allocate);
    helpers_.arrange = address(functions.arrange);
    helpers_.call = address(functions.call);
    helpers_.read_scalar = on_gpu() ? address(&read_scalar) : address(functions.read_scalar);
    helpers_.tensor_size = address(functions.tensor_size);
    helpers_.bump_version = address(functions.bump_version);
    helpers_.seed = address(functions.seed);
    helpers_.draw = address(functions.draw);
    helpers_.end_iteration = address(functions.end_iteration);
    helpers_.show_begin = address(functions.show_begin);
    helpers_.show_end = address(functions.show_end);
    helpers_.drop_storage = address(&drop_storage);
  }
  codegen::TraceCodeInput input{&trace_, &values_, &programs_.plan, &python_layout(), &helpers_, {}};
  if (base::Status status = compile_kernels(&input.kernels, options); !status.ok()) return status;
  if (options.cuda_graphs && bridge != nullptr && program_ != nullptr) plan_stretches(input.kernels);
  if (stretches_.captures != nullptr) {
    helpers_.call = address(&queue_call);
    helpers_.allocate = address(&allocate);
    helpers_.barrier = address(&barrier);
  }

  codegen::TraceCodeOptions code_options;
  code_options.stress_exits = options.stress_exits;
  code_options.listing = options.listing;
  exits_.assign(trace_.insts.size(), 0);
  if (options.count_residuals) {
    residuals_.assign(trace_.insts.size(), {});
    code_options.counters = &residuals_;
    counted_traces().add(this);
  }
  code_options.profile = profile_ = options.profile;
  if (base::Status status = codegen::compile_trace(input, code_options, &code_); !status.ok()) return status;

  for (const ir::Inst& inst : trace_.insts) {
    if (inst.op == Op::k_aten && !inst.sunk) tensor_ops_ += trace_.calls[inst.imm].count;
    if (inst.op == Op::k_kernel && static_cast<size_t>(inst.imm) < trace_.kernel_op_counts.size()) tensor_ops_ += trace_.kernel_op_counts[inst.imm];
    if (inst.op == Op::k_read_scalar) ++tensor_ops_;
  }
  for (const bridge::WrapSpec& wrap : programs_.spec.wraps)
    for (int32_t call : wrap.forward) rebuilds_writes_ = rebuilds_writes_ || !programs_.spec.calls[static_cast<size_t>(call)].call.mutates.empty();
  const ir::Inst& last = trace_.insts.back();
  if (last.op == Op::k_loop) {
    const std::vector<Ref>& slots = trace_.frame(trace_.snapshots[last.snapshot], 0).slots;
    if (trace_.snapshots[last.snapshot].frames.size() != 1) return base::Status::failure("the loop's snapshot has inlined frames");
    for (size_t k = 0; k < slots.size(); ++k) {
      bool same = slots[k] == ir::kSlotUnchanged ||
                  (slots[k] != ir::kSlotNull && trace_.insts[slots[k]].op == Op::k_slot && trace_.insts[slots[k]].imm == static_cast<int64_t>(k));
      if (!same) written_.emplace_back(static_cast<int32_t>(k), slots[k]);
    }
    if (base::seeded(base::Defect::kWriteBackForgets) && written_.size() > 1) written_.erase(written_.begin());
  }
  return {};
}

bool CompiledTrace::may_do_again(const RunResult& result) const {
  const ir::Inst& inst = trace_.insts[result.inst];
  if (!inst.again || result.snapshot < 0 || stretches_.captures != nullptr) return false;  // what was put off may have failed, not this
  return inst.op != Op::k_aten || (trace_.calls[inst.imm].mutates.empty() && !trace_.calls[inst.imm].is_random);
}

bool CompiledTrace::ready() {
  if (waits_ > 0) return --waits_, false;
  if (!ready_) ready_ = std::all_of(cuda_kernels_.begin(), cuda_kernels_.end(), [](const auto& kernel) { return kernel->ready(); });
  return ready_;
}

void CompiledTrace::begin_with(StretchFindings findings) {
  if (findings.fits(stretches_.operations.size())) findings_ = std::move(findings);
}

base::Status CompiledTrace::failure() const {
  for (const auto& kernel : cuda_kernels_)
    if (base::Status status = kernel->status(); !status.ok()) return status;
  return {};
}

base::Status CompiledTrace::compile_kernels(std::vector<codegen::KernelEntry>* entries, const CompileOptions& options) {
  entries->resize(trace_.kernels.size());
  bool for_cuda = false;
  std::vector<size_t> on_host;
  for (const ir::Inst& inst : trace_.insts) {
    if (inst.op != Op::k_kernel) continue;
    const ir::TensorMeta& meta = trace_.metas[trace_.insts[trace_.arg(inst, 0)].meta];  // all of them are on one device
    if (meta.device_type == 1) for_cuda = (*entries)[inst.imm].on_device = true;
    else on_host.push_back(static_cast<size_t>(inst.imm));
  }
  if (base::Status status = host_kernels_.compile(trace_.kernels, on_host, entries); !status.ok()) return status;
  if (!for_cuda) return {};
  const std::vector<std::vector<Ref>> batches = kernel_batches(trace_, &programs_);
  std::vector<codegen::cuda::KernelJob> jobs;
  for (const std::vector<Ref>& batch : batches) {
    codegen::cuda::KernelJob& job = jobs.emplace_back();
    for (Ref ref : batch) job.kernels.push_back(&trace_.kernels[trace_.insts[ref].imm]);
    if (const auto mirrors = mirrors_.of_kernel.find(batch[0]); mirrors != mirrors_.of_kernel.end()) job.mirrors = mirrors->second;  // of one point, so it is no batch
    job.device = std::max<int>(trace_.metas[trace_.insts[trace_.arg(trace_.insts[batch[0]], 0)].meta].device_index, 0);
  }
  codegen::cuda::CompileMode mode{.background = options.background};
  mode.autotune = options.autotune && std::none_of(trace_.torch_states.begin(), trace_.torch_states.end(), [](const ir::TorchState& state) { return state.deterministic; });
  if (mode.autotune)
    for (const bridge::StorageSpec& storage : programs_.spec.storages) mode.storage_bytes.push_back(storage.symbolic ? 0 : storage.bytes);
  if (base::Status status = codegen::cuda::compile_kernels(jobs, mode, &cuda_kernels_); !status.ok()) return status;
  for (size_t k = 0; k < batches.size(); ++k) {
    codegen::KernelEntry& entry = (*entries)[trace_.insts[batches[k][0]].imm];
    entry.entry = address(&launch_kernel);
    entry.context = cuda_kernels_[k].get();
    for (size_t other = 1; other < batches[k].size(); ++other) {
      const ir::Inst& inst = trace_.insts[batches[k][other]];
      for (uint32_t operand = 0; operand < inst.count; ++operand)
        if (trace_.insts[trace_.arg(inst, operand)].type != ir::Type::kTensor) entry.more.push_back(trace_.arg(inst, operand));
    }
    for (Ref ref : batches[k]) cuda_of_kernel_[trace_.insts[ref].imm] = cuda_kernels_[k].get();
  }
  return {};
}

bool CompiledTrace::on_gpu() const {
  return std::any_of(trace_.metas.begin(), trace_.metas.end(), [](const ir::TensorMeta& meta) { return meta.device_type == 1; });
}

// Which of its intermediates are in an arena, and which of these could be in graphs' memory. None, where not all are on one GPU, or of sizes that only runs tell.
void CompiledTrace::plan_arena(StretchPlan* plan) const {
  const std::vector<bridge::StorageSpec>& storages = programs_.spec.storages;
  std::vector<ir::Piece> arena(storages.size());
  std::vector<bool> leaves(storages.size(), false);
  for (size_t storage = 0; storage < storages.size(); ++storage) {
    if (storages[storage].kind != bridge::StorageSpec::kArena || storages[storage].bytes == 0) continue;
    arena[storage] = {storages[storage].first, storages[storage].last, storages[storage].bytes, 0};
    leaves[storage] = !storages[storage].shared;  // a view at a place that a run tells is made whether work is queued or not
  }
  if (!mirrors_.storages.empty()) {
    std::vector<bool> mirrored(trace_.insts.size());  // reads that look at no memory of the device
    for (Ref ref = 0; ref < mirrored.size(); ++ref) mirrored[ref] = mirrors_.of_read[ref] >= 0;
    const std::vector<ir::StoragePlan> needed = ir::storage_lifetimes(trace_, mirrored);
    for (size_t storage = 0; storage < needed.size(); ++storage)
      if (arena[storage].bytes > 0) arena[storage].last = needed[storage].last;
  }
  int device = -1;
  for (const ir::TensorMeta& meta : programs_.spec.tensors) {
    if (arena[meta.storage].bytes == 0) continue;
    if (meta.device_type != 1 || meta.symbolic || (device >= 0 && meta.device_index != device)) return;
    device = meta.device_index;
  }
  if (programs_.spec.arranges) return;
  for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
    const ir::Inst& inst = trace_.insts[ref];
    if (inst.op != Op::k_kernel || inst.sunk) continue;
    if (const codegen::cuda::CudaKernel* kernel = cuda_kernel(static_cast<size_t>(inst.imm)))  // several that are launched as one work where the first of them stands
      for (int32_t storage : kernel->storages()) arena[storage].first = std::min(arena[storage].first, ref);
  }
  plan->arena = std::move(arena);
  plan->leaves = std::move(leaves);
}

// All that the trace does on GPUs, where graphs of it can be made.
void CompiledTrace::plan_stretches(const std::vector<codegen::KernelEntry>& entries) {
  if (!on_gpu()) return;
  bridge::Captures* captures = bridge_->captures();
  if (captures == nullptr) return;
  StretchPlan plan;
  plan.of_call.assign(programs_.spec.calls.size(), -1);
  plan.passive.assign(programs_.spec.calls.size(), false);
  plan.taken_by.assign(programs_.spec.storages.size(), -1);
  plan.dropped_by.assign(programs_.spec.storages.size(), -1);
  plan_arena(&plan);
  std::vector<std::vector<int32_t>> begin(trace_.insts.size()), end(trace_.insts.size());  // pieces of the arena by the instructions that touch them first and last
  for (size_t storage = 0; storage < plan.arena.size(); ++storage) {
    if (plan.arena[storage].bytes == 0) continue;
    begin[plan.arena[storage].first].push_back(static_cast<int32_t>(storage));
    end[plan.arena[storage].last].push_back(static_cast<int32_t>(storage));
  }
  Ref latest = ir::kNoRef;  // the last operation's instruction
  for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
    const ir::Inst& inst = trace_.insts[ref];
    const auto number = static_cast<int32_t>(plan.operations.size());
    // What the instructions since the last operation were the last to need.
    if (ref > 0 && number > 0) {
      StretchPlan::Operation& before = plan.operations.back();
      for (const std::vector<int32_t>* dropped : {&programs_.plan.drop[ref - 1], &end[ref - 1]})
        for (int32_t storage : *dropped) {
          before.drops.push_back(storage);
          plan.dropped_by[storage] = number - 1;
        }
      if (ref - 1 == latest) before.own_drops = before.drops.size();
    }
    if (inst.op == Op::k_kernel && !inst.sunk) {
      const codegen::KernelEntry& entry = entries[inst.imm];
      if (entry.entry != address(&launch_kernel)) continue;
      auto* kernel = static_cast<const codegen::cuda::CudaKernel*>(entry.context);
      if (kernel->idle()) continue;
      if (!plan.of_kernel.emplace(kernel, number).second) return;
      plan.operations.push_back({.kernel = kernel});
    } else if (inst.op == Op::k_aten && programs_.plan.call[ref] >= 0) {
      const int32_t call = programs_.plan.call[ref];
      bridge::CallFacts facts = program_->facts(call);
      plan.passive[call] = facts.passive;
      if (!facts.capturable) {
        if (!facts.passive) DYNVM_LOG(kCompile, "trace {}: {} is in no CUDA graph", trace_.id, facts.name);
        continue;
      }
      plan.of_call[call] = number;
      plan.operations.push_back({.call = call, .facts = std::move(facts)});
    } else {
      continue;
    }
    latest = ref;
    if (number == 0 && std::any_of(plan.arena.begin(), plan.arena.end(), [&](const ir::Piece& piece) { return piece.bytes > 0 && piece.first < ref; })) plan.arena.clear();
    const auto take = [&](int32_t storage) {
      plan.operations.back().takes.push_back(storage);
      plan.taken_by[storage] = number;
    };
    for (int32_t storage : begin[ref])
      if (!plan.arena.empty() && plan.leaves[storage]) take(storage);
    for (int32_t storage : programs_.plan.allocate[ref])
      if (programs_.spec.storages[storage].kind == bridge::StorageSpec::kLent && !programs_.spec.storages[storage].symbolic) take(storage);
  }
  if (plan.operations.size() < 2) return;
  for (const bridge::StorageSpec& storage : programs_.spec.storages) plan.input.push_back(storage.kind == bridge::StorageSpec::kInput);
  for (size_t storage = 0; storage < plan.leaves.size(); ++storage) {
    plan.leaves[storage] = plan.leaves[storage] && plan.taken_by[storage] >= 0;
    if (plan.leaves[storage]) programs_.plan.drop[plan.arena[storage].last].push_back(static_cast<int32_t>(storage));
  }
  plan.bridge = bridge_;
  plan.captures = captures;
  plan.findings = &findings_;
  stretches_ = std::move(plan);
}

int CompiledTrace::barrier(Activation* activation, int32_t inst) {
  auto* self = static_cast<CompiledTrace*>(activation->owner);
  if (!self->looks(activation, static_cast<Ref>(inst))) return 0;
  DYNVM_LOG(kCompile, "trace {}: a stretch ends before {}", self->trace_.id, residual_name(self->trace_, self->trace_.insts[inst]));
  return stretches_of(activation)->barrier();
}

// May the instruction look at a device, or at memory that work which was put off will write? Code in Python is no matter here: the evaluator sees it coming.
bool CompiledTrace::looks(Activation* activation, Ref ref) {
  const ir::Inst& inst = trace_.insts[ref];
  std::vector<PyObject*> operands;
  for (uint32_t k = 0; k < inst.count; ++k) {
    const Ref operand = trace_.arg(inst, k);
    if (trace_.insts[operand].type != ir::Type::kObject) {
      operands.push_back(nullptr);  // a number
      continue;
    }
    const bool constant = trace_.insts[operand].op == Op::k_const_obj;
    auto* object = constant ? static_cast<PyObject*>(trace_.objects[trace_.insts[operand].imm].pointer)
                   : trace_.insts[operand].op == Op::k_slot ? reinterpret_cast<PyObject*>(activation->root_slots[trace_.insts[operand].imm])
                                                            : reinterpret_cast<PyObject*>(number(activation, operand));
    operands.push_back(object);
  }
  return looks_at_devices(inst.op, operands);
}

CompiledTrace::~CompiledTrace() {
  DYNVM_CHECK(free_.size() == all_.size(), "trace {} is dropped while it runs", trace_.id);
  for (Activation* activation : all_) {
    delete stretches_of(activation);
    if (activation->session != nullptr) give_back_mirrors(mirrors_.storages, session_of(activation));
    if (activation->session != nullptr) program_->release(session_of(activation));
    std::free(activation);
  }
  if (!residuals_.empty()) counted_traces().drop(this);
  for (PyObject* object : owned_) Py_DECREF(object);
}

void CompiledTrace::own(std::vector<PyObject*> objects) { owned_.insert(owned_.end(), objects.begin(), objects.end()); }

size_t CompiledTrace::code_size() const {
  return code_->size() + host_kernels_.code_size();
}

std::map<std::string, base::ResidualReport> CompiledTrace::residuals() const {
  std::map<std::string, base::ResidualReport> by_name;
  const double ms_per_tick = counted_traces().ms_per_tick();
  for (Ref ref = 0; ref < residuals_.size(); ++ref) {
    const codegen::ResidualCounter& counter = residuals_[ref];
    if (counter.runs == 0) continue;
    base::ResidualReport& residual = by_name[residual_name(trace_, trace_.insts[ref])];
    residual.calls += counter.runs;
    // An operation that is running now has subtracted its beginning only.
    if (static_cast<int64_t>(counter.ticks) > 0) residual.ms += static_cast<double>(counter.ticks) * ms_per_tick;
  }
  return by_name;
}

std::map<std::string, int> CompiledTrace::residual_operations() const {
  std::map<std::string, int> by_name;
  for (const ir::Inst& inst : trace_.insts) {
    const bool residual = (ir::op_info(inst.op).effects & ir::kBarrier) != 0 || inst.op == Op::k_call_known || inst.op == Op::k_call_apart;
    if (residual && !inst.sunk) by_name[residual_name(trace_, inst)]++;
  }
  return by_name;
}

// ---------------------------------------------------------------------------------------------------------------------
// Running

Activation* CompiledTrace::acquire() {
  if (!free_.empty()) {
    Activation* activation = free_.back();
    free_.pop_back();
    return activation;
  }
  size_t words = static_cast<size_t>(values_.num_slots) + static_cast<size_t>(code_->num_scratch());
  void* memory = std::calloc(1, sizeof(Activation) + 8 * words);
  DYNVM_CHECK(memory != nullptr, "no memory for an activation of {} words", words);
  auto* activation = new (memory) Activation;
  activation->owner = this;
  if (program_ != nullptr) {
    bridge::Session* session = program_->acquire();
    activation->session = session;
    activation->storage_data = session->storage_data;
    activation->watched = &session->watched;
    activation->symbols = session->symbols;
    if (stretches_.captures != nullptr) activation->stretches = new Stretches(stretches_, session, &activation->pending);
  }
  all_.push_back(activation);
  return activation;
}

void CompiledTrace::release(Activation* activation) {
  iterations_ += activation->iterations;
  activation->iterations = 0;
  activation->root_slots = nullptr;
  if (has_arenas(activation)) bridge_->functions().end_run(session_of(activation));
  free_.push_back(activation);
}

void CompiledTrace::renew_version(ir::Ref guard, int64_t version) {
  trace_.insts[guard].imm = version;
  code_->set_version(guard, version);
}

const codegen::cuda::CudaKernel* CompiledTrace::cuda_kernel(size_t number) const {
  const auto found = cuda_of_kernel_.find(number);
  return found == cuda_of_kernel_.end() ? nullptr : found->second;
}

RunResult CompiledTrace::run(PyObject** root_slots, const volatile int* eval_breaker) {
  const base::profile::Timed timed(profile_ != nullptr ? &profile_->begin : nullptr);
  Activation* activation = acquire();
  if (has_arenas(activation) && bridge_->functions().begin_run(session_of(activation)) < 0) {
    free_.push_back(activation);
    return {RunResult::kNoMemory, ir::kNoSnapshot, 0, nullptr};
  }
  activation->root_slots = reinterpret_cast<void**>(root_slots);
  activation->eval_breaker = eval_breaker;
  ++runs_;
  ExitKind kind;
  {
    const base::profile::Timed in_code(profile_ != nullptr ? &profile_->own : nullptr);
    if (profile_ != nullptr) activation->clock = &base::profile::clock();
    kind = code_->entry()(activation);
  }
  if (profile_ != nullptr && activation->symbols != nullptr) profile_->symbols.assign(activation->symbols, activation->symbols + trace_.symbols.size());
  Ref inst = static_cast<Ref>(activation->exit_inst);
  if (activation->stretches != nullptr) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    const int status = stretches_of(activation)->end_run();
    if (type != nullptr) {
      PyErr_Restore(type, value, traceback);  // what came first
    } else if (status != 0 && kind != ExitKind::kBreak) {
      kind = ExitKind::kError;
    } else if (status != 0) {
      PyErr_WriteUnraisable(nullptr);
    }
  }
  RunResult result{RunResult::kLoopBreak, trace_.insts[inst].snapshot, inst, nullptr};
  if (kind == ExitKind::kBreak) {
    release(activation);
    return result;
  }
  result.activation = activation;
  result.kind = kind == ExitKind::kGuard ? RunResult::kGuardExit : kind == ExitKind::kError ? RunResult::kErrorExit : RunResult::kLeave;
  if (kind != ExitKind::kLeave) {
    ++exits_[inst];
    ++total_exits_;
  }
  return result;
}

PyObject* CompiledTrace::wrap(Activation* activation, int32_t inst) {
  auto* self = static_cast<CompiledTrace*>(activation->owner);
  const bridge::SessionFunctions& functions = self->bridge_->functions();
  const int32_t index = self->programs_.plan.wrap[inst];
  if (activation->pending != 0) {
    // Only memory that is there already can be handed out while work on it waits.
    const bridge::WrapSpec& spec = self->programs_.spec.wraps[index];
    const bridge::StorageSpec::Kind kind = self->programs_.spec.storages[self->programs_.spec.tensors[spec.tensor].storage].kind;
    const bool there = spec.forward.empty() && (kind == bridge::StorageSpec::kInput || kind == bridge::StorageSpec::kFresh);
    if (!there && stretches_of(activation)->barrier() != 0) return nullptr;
  }
  return self->tell_numbers(activation, index) ? functions.wrap(session_of(activation), index) : nullptr;
}

// Numbers of calls that this wrap runs again.
bool CompiledTrace::tell_numbers(Activation* activation, int32_t wrap) {
  std::vector<int64_t> bits;
  for (const FusedNumbers& fused : programs_.wrap_numbers[static_cast<size_t>(wrap)]) {
    bits.clear();
    for (Ref ref : fused.numbers) bits.push_back(number(activation, ref));
    if (bridge_->functions().set_numbers(session_of(activation), fused.call, bits.data()) < 0) return false;
  }
  return true;
}

bool CompiledTrace::rebuild(Activation* activation, const std::vector<Ref>& wraps) {
  auto* self = static_cast<CompiledTrace*>(activation->owner);
  if (activation->pending != 0 && stretches_of(activation)->barrier() != 0) return false;
  std::map<Ref, std::pair<int32_t, int32_t>> order;  // by instruction: the call's number, and that of the first wrap that runs it again
  for (Ref wrap : wraps) {
    const int32_t number = self->programs_.plan.wrap[wrap];
    if (!self->tell_numbers(activation, number)) return false;
    const std::vector<Ref>& forward = self->trace_.wraps[self->trace_.insts[wrap].imm].forward;
    const std::vector<int32_t>& calls = self->programs_.spec.wraps[static_cast<size_t>(number)].forward;
    for (size_t k = 0; k < forward.size(); ++k) order.emplace(forward[k], std::pair(calls[k], number));
  }
  std::vector<int32_t> calls, numbers;
  for (const auto& [ref, each] : order) {
    calls.push_back(each.first);
    numbers.push_back(each.second);
  }
  return self->bridge_->functions().rebuild(session_of(activation), calls.data(), numbers.data(), static_cast<int32_t>(calls.size())) == 0;
}

int CompiledTrace::read_scalar(bridge::Session* session, int32_t tensor, int64_t* value, Activation* activation, int32_t inst) {
  auto* self = static_cast<CompiledTrace*>(activation->owner);
  const int32_t mirror = self->mirrors_.of_read[static_cast<size_t>(inst)];
  bool copies_follow = false;
  if (Stretches* const stretches = stretches_of(activation)) {
    if (stretches->read() != 0) return -1;
    copies_follow = stretches->copies_follow();
  }
  const ir::TensorMeta& meta = self->programs_.spec.tensors[static_cast<size_t>(tensor)];
  const void* element = read_element(session, meta, mirror, copies_follow);
  if (element != nullptr && self->functions().scalar_of(session, tensor, element, value) == 0) return 0;
  const bool there = session->storage_data[meta.storage] != nullptr;  // else it went with its kernel, and torch only says what is wrong
  if (!there && self->functions().allocate(session, meta.storage) != 0) return -1;
  const int status = self->functions().read_scalar(session, tensor, value);
  if (there || status != 0) return status;
  PyErr_SetString(PyExc_MemoryError, "no pinned memory for a number of a tensor");
  return -1;
}

void CompiledTrace::set_recipe(Activation* activation, int32_t inst, int32_t index, PyObject* recipe) {
  auto* self = static_cast<CompiledTrace*>(activation->owner);
  self->bridge_->functions().set_recipe(session_of(activation), self->programs_.plan.wrap[inst], index, recipe);
}

int64_t CompiledTrace::number(Activation* activation, Ref ref) const {
  const ir::Inst& inst = trace_.insts[ref];
  bool constant = inst.op == Op::k_const_int || inst.op == Op::k_const_float || inst.op == Op::k_const_bool;
  return constant ? inst.imm : activation->values()[values_.values[ref].slot];
}

bool CompiledTrace::value_at_exit(const RunResult& result, Ref ref, int64_t* bits) const {
  auto* activation = static_cast<Activation*>(result.activation);
  const ir::Inst& inst = trace_.insts[ref];
  if (inst.op == Op::k_const_obj) {
    *bits = reinterpret_cast<int64_t>(trace_.objects[inst.imm].pointer);
    return true;
  }
  if (inst.op == Op::k_slot) {
    *bits = reinterpret_cast<int64_t>(activation->root_slots[inst.imm]);
    return true;
  }
  const bool constant = inst.op == Op::k_const_int || inst.op == Op::k_const_float || inst.op == Op::k_const_bool;
  const codegen::ValuePlan::Value& value = values_.values[ref];
  if (!constant && (ref >= result.inst || value.slot == codegen::ValuePlan::kNoSlot)) return false;
  // An object may be gone behind its last use; a number stays until its slot has another value.
  if (!constant && inst.type == ir::Type::kObject && value.last_use < result.inst) return false;
  for (Ref other = ref + 1; !constant && other < result.inst; ++other)
    if (values_.values[other].slot == value.slot) return false;
  *bits = number(activation, ref);
  return true;
}

// New values first, then the stores, then the drops: a drop may run code that looks at the frame.
int CompiledTrace::write_back(Activation* activation) {
  if (activation->eval_breaker == &round_limit.over && --round_limit.left == 0) round_limit.over = 1;
  auto* self = static_cast<CompiledTrace*>(activation->owner);
  constexpr size_t kFew = 32;
  PyObject* few[kFew];
  std::vector<PyObject*> many;
  PyObject** made = few;
  size_t count = self->written_.size();
  if (count > kFew) {
    many.resize(count);
    made = many.data();
  }
  {
    Materialiser materialiser(*self, activation);
    if (self->rebuilds_writes_) {
      std::vector<Ref> refs;
      for (const auto& [slot, ref] : self->written_) refs.push_back(ref);
      if (!materialiser.rebuild(refs)) return -1;
    }
    for (size_t k = 0; k < count; ++k) {
      Ref ref = self->written_[k].second;
      made[k] = nullptr;
      if (ref == ir::kSlotNull || materialiser.get(ref, &made[k])) continue;
      while (k-- > 0) Py_XDECREF(made[k]);
      return -1;
    }
  }
  auto** root = reinterpret_cast<PyObject**>(activation->root_slots);
  for (size_t k = 0; k < count; ++k) std::swap(root[self->written_[k].first], made[k]);
  for (size_t k = 0; k < count; ++k) Py_XDECREF(made[k]);
  return 0;
}

// What the slot had, or it stays until the iteration is over: where its end could run code, or others have it. Work that was put off is not on its memory: that is this iteration's, which reads
// nothing of it.
void CompiledTrace::let_go(Activation* activation, int32_t slot) {
  auto* self = static_cast<CompiledTrace*>(activation->owner);
  auto** root = reinterpret_cast<PyObject**>(activation->root_slots);
  if (root[slot] == nullptr || Py_REFCNT(root[slot]) != 1 || !self->bridge_->dies_quietly(root[slot])) return;
  Py_CLEAR(root[slot]);
}

// ---------------------------------------------------------------------------------------------------------------------
// Leaving

static std::vector<Ref> refs_of(const ir::Trace& trace, int32_t snapshot) {
  std::vector<Ref> refs;
  for (uint32_t number : trace.snapshots[snapshot].frames) {
    const ir::SnapshotFrame& frame = trace.frames[number];
    refs.insert(refs.end(), {frame.function, frame.continuation_value});
    refs.insert(refs.end(), frame.slots.begin(), frame.slots.end());
  }
  for (const ir::SnapshotStore& store : trace.snapshots[snapshot].stores) refs.insert(refs.end(), {store.dict, store.key, store.value});
  return refs;
}

std::vector<FrameState> CompiledTrace::take_exit_state(const RunResult& result) {
  DYNVM_CHECK(result.activation != nullptr && result.snapshot >= 0, "trace {}: no exit state to take", trace_.id);
  auto* activation = static_cast<Activation*>(result.activation);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  std::vector<FrameState> frames;
  {
    Materialiser materialiser(*this, activation);
    if (rebuilds_writes_ && !materialiser.rebuild(refs_of(trace_, result.snapshot))) PyErr_Clear();  // what cannot be made raises again where it is
    for (uint32_t number : trace_.snapshots[result.snapshot].frames) {
      const ir::SnapshotFrame& from = trace_.frames[number];
      FrameState& frame = frames.emplace_back();
      frame.code = static_cast<PyCodeObject*>(from.code);
      frame.unit = from.unit;
      frame.continuation = from.continuation;
      // A failure leaves null and its exception; what is left can still be made.
      auto get = [&](Ref ref) {
        PyObject* object = nullptr;
        PyObject *first_type, *first_value, *first_traceback;
        PyErr_Fetch(&first_type, &first_value, &first_traceback);
        bool fine = materialiser.get(ref, &object);
        if (fine || first_type != nullptr) {
          PyErr_Restore(first_type, first_value, first_traceback);  // the first failure is the one to report
        }
        return object;
      };
      if (from.function != ir::kNoRef) frame.function = get(from.function);
      if (from.continuation_value != ir::kNoRef) frame.continuation_value = get(from.continuation_value);
      frame.slots.reserve(from.slots.size());
      for (Ref slot : from.slots)
        frame.slots.push_back(slot == ir::kSlotUnchanged ? slot_unchanged() : slot == ir::kSlotNull ? nullptr : get(slot));
    }
    // All is made before anything is stored: a graph may lead to what a tensor was before that took over another one's contents.
    struct Stored { PyObject *dict = nullptr, *key = nullptr, *item = nullptr; bool made = false; };
    std::vector<Stored> stored;
    for (const ir::SnapshotStore& store : trace_.snapshots[result.snapshot].stores) {
      Stored& each = stored.emplace_back();
      each.made = materialiser.get(store.dict, &each.dict) && materialiser.get(store.key, &each.key) && materialiser.get(store.value, &each.item);
    }
    for (const auto& [dict, key, item, made] : stored) {
      if (made && PyDict_CheckExact(dict)) PyDict_SetItem(dict, key, item);
      else if (made && PyCFunction_Check(dict)) Py_XDECREF(PyObject_CallNoArgs(dict));
      else if (made && PyLong_Check(key)) bridge_->take_contents(dict, item, static_cast<int>(PyLong_AsLong(key)));
      else if (made) bridge_->take_graph(dict, item);
      Py_XDECREF(dict);
      Py_XDECREF(key);
      Py_XDECREF(item);
    }
  }
  end(activation, result.inst);
  if (type != nullptr) PyErr_Restore(type, value, traceback);  // the trace's own exception comes first
  return frames;
}

void CompiledTrace::end(Activation* activation, Ref inst) {
  values_.for_each_live(inst, [&](Ref ref) { Py_XDECREF(reinterpret_cast<PyObject*>(activation->values()[values_.values[ref].slot])); });
  if (activation->session != nullptr) bridge_->functions().end_iteration(session_of(activation));
  release(activation);
}

}  // namespace dynvm::runtime
