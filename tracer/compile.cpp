// See compile.h.
#include "tracer/compile.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "codegen/cuda/kernel.h"
#include "ir/effects.h"
#include "ir/passes/pass.h"
#include "ir/plan.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "runtime/base/defects.h"
#include "runtime/base/dump.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/base/stress.h"
#include "runtime/base/switches.h"
#include "tracer/clock.h"
#include "tracer/profiles.h"

namespace dynvm::tracer {

static bool recorded_is_kept = false;

void keep_recorded(bool keep) { recorded_is_kept = keep; }

// --record-to: a file that `dynvm replay` reads. A folder that cannot be written to costs a note, not the trace.
static void write_recorded(const ir::Trace& ir, const char* kind) {
  const std::string& folder = base::options().record_to;
  const std::string path = folder + "/trace-" + std::to_string(ir.id) + ".ir";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ofstream file(path);
  file << "; " << kind << "\n" << ir::print_trace(ir);
  file.close();
  if (!file) base::report().notes.emplace("--record-to", "cannot write " + path);
}

base::Status assemble(LoopTrace& trace, ir::Trace ir, const ir::Plan& plan, std::vector<PyObject*> objects, bridge::Bridge* bridge, PyCodeObject* code, int unit,
                      const char* kind, base::profile::TraceData* stages) {
  const std::string name = ir.name;
  runtime::CompileOptions options;
  options.stress_exits = base::stress("exit");
  options.listing = base::dump_on(base::DumpStage::kAsm);
  options.stress_waits = base::stress("wait");
  options.background = base::options().cuda_background;
  options.autotune = base::options().autotune;
  options.cuda_graphs = base::options().cuda_graphs;
  options.count_residuals = base::report_wanted();
  if (base::profile::on()) {
    options.profile = trace.profile = &profiles::add_trace(stages, ir, code, unit);
    options.listing = true;
  }
  std::unique_ptr<runtime::CompiledTrace> compiled;
  base::Status status = runtime::CompiledTrace::compile(std::move(ir), plan, bridge, options, &compiled);
  if (!status.ok()) {
    if (trace.profile != nullptr) profiles::forget(*std::exchange(trace.profile, nullptr));
    return status;
  }
  std::set<PyObject*> codes;  // of the frames inside, which the recording need not have met as objects; the trace dies with that of its own
  for (const ir::SnapshotFrame& frame : compiled->ir().frames)
    if (frame.code != code) codes.insert(static_cast<PyObject*>(frame.code));
  for (PyObject* inner : codes) objects.push_back(Py_NewRef(inner));
  compiled->own(std::move(objects));
  if (base::dump_on(base::DumpStage::kAsm)) base::dump(base::DumpStage::kAsm, name, compiled->listing());
  trace.compiled = std::move(compiled);
  const ir::Trace& final = trace.compiled->ir();
  int ops = 0;
  for (const ir::Inst& inst : final.insts) {
    trace.ops_before.push_back(ops);
    if (inst.op == ir::Op::k_aten && !inst.sunk) ops += final.calls[inst.imm].count;
    if (inst.op == ir::Op::k_kernel) ops += final.kernel_op_counts[inst.imm];
    if (inst.op == ir::Op::k_read_scalar) ops++;
    const bool works = inst.op == ir::Op::k_aten && !inst.sunk && (!ir::is_view_call(final, inst) || ir::opens(final, final.calls[inst.imm]));
    if (works || inst.op == ir::Op::k_kernel) trace.steps++;
  }
  base::TraceReport& entry = base::report().add_trace();
  entry.file = PyUnicode_AsUTF8(code->co_filename);
  entry.line = PyCode_Addr2Line(code, unit * 2);
  entry.function = PyUnicode_AsUTF8(code->co_qualname);
  entry.kind = kind;
  entry.ir_insts = static_cast<int>(final.insts.size());
  entry.tensor_ops = ops;
  entry.rounds = static_cast<int>(trace.compiled->rounds());
  entry.kernels = static_cast<int>(final.kernels.size());
  if (base::report_wanted()) {
    std::set<std::string> operations, kernels;
    for (const ir::AtenCall& call : final.calls) operations.insert(call.name);
    for (const ir::Kernel& kernel : final.kernels) kernels.insert(kernel.name);
    entry.operations.assign(operations.begin(), operations.end());
    entry.kernel_names.assign(kernels.begin(), kernels.end());
  }
  trace.entry = &entry;
  if (base::code_is_named())
    trace.name = base::CodeName(reinterpret_cast<const void*>(trace.compiled->code().entry()), trace.compiled->code().size(), "trace " + std::to_string(trace.id) + " " + name, entry.file, entry.line);
  if (trace.profile != nullptr) {
    trace.profile->kind = kind;
    trace.profile->tensor_ops = ops;
    profiles::describe(*trace.profile, *trace.compiled, code);
  }
  return {};
}

bool check_kernels(LoopTrace& trace, bool* waits) {
  for (const std::shared_ptr<CompiledBackward>& backward : trace.backwards)
    if (!backward->trace().checked && !check_kernels(backward->trace(), waits)) return false;
  if (!trace.compiled->ready()) {
    *waits = true;
    return false;
  }
  const base::Status failed = trace.compiled->failure();
  trace.checked = failed.ok();
  if (trace.checked) return true;
  base::report().notes.emplace("CUDA kernels of trace " + std::to_string(trace.id), failed.message());
  codegen::cuda::give_up("a kernel did not compile");
  DYNVM_LOG(kCompile, "trace {} {}: {}", trace.id, trace.compiled->ir().name, failed.message());
  return false;
}

// Are there CUDA tensors, and can kernels be made for them?
static bool fuses_cuda(const ir::Trace& trace) {
  const bool any = std::any_of(trace.metas.begin(), trace.metas.end(), [](const ir::TensorMeta& meta) { return meta.device_type == 1; });
  if (!any) return false;
  const std::string why = codegen::cuda::missing();
  if (!why.empty()) base::report().notes.emplace("CUDA kernels", "none: " + why);
  return why.empty();
}

// A seeded defect: branches leave by the first snapshot behind the entry's, so that the interpreter does again what the iteration has done since.
static void leave_by_first_exit(ir::Trace& trace) {
  int32_t first = ir::kNoSnapshot;
  for (ir::Inst& inst : trace.insts) {
    if (inst.snapshot <= 0 || trace.snapshots[inst.snapshot].elsewhere) continue;
    if (first == ir::kNoSnapshot) first = inst.snapshot;
    if (inst.op == ir::Op::k_guard_true || inst.op == ir::Op::k_guard_false) inst.snapshot = first;
  }
}

std::unique_ptr<LoopTrace> compile(Recording recording, bridge::Bridge* bridge, PyCodeObject* code, int unit, const char* kind, Abort* reason,
                                   std::string* error, bool keep_plan) {
  const Clock::time_point start = Clock::now();
  const base::profile::Timed timed(base::profile::Part::kCompiling);
  const uint64_t start_ticks = base::profile::ticks_now();
  base::profile::TraceData stages;
  stages.record_ms = recording.ms;
  auto trace = std::make_unique<LoopTrace>();
  trace->sites = std::move(recording.sites);
  trace->uses = std::move(recording.uses);
  trace->made = std::move(recording.made);
  trace->id = recording.trace.id;
  trace->cut = recording.cut;
  for (ir::Trace& each : recording.backwards) {
    Recording part;
    part.trace = std::move(each);
    std::unique_ptr<LoopTrace> backward = compile(std::move(part), bridge, code, unit, "backward", reason, error);
    if (backward == nullptr) return nullptr;
    trace->backwards.push_back(std::make_shared<CompiledBackward>(std::move(backward)));
  }
  ir::Trace& ir = recording.trace;
  for (ir::Wrap& wrap : ir.wraps)
    for (ir::GraphNode& node : wrap.nodes) node.backward = std::static_pointer_cast<bridge::Backward>(trace->backwards.at(static_cast<size_t>(node.number)));
  std::string name = ir.name;
  for (const ir::Inst& inst : ir.insts)
    if (inst.op == ir::Op::k_unbox_tensor) trace->inputs.push_back(inst.meta);
  ir::PassOptions pass_options;
  pass_options.fuse_cuda = fuses_cuda(ir);
  if (bridge != nullptr) pass_options.fast_convolutions = bridge->fast_convolutions();
  if (base::left_out(base::Part::kDraws))
    for (ir::AtenCall& call : ir.calls) call.stream = {};
  std::string before;
  if (base::profile::on()) {
    profiles::add_stage(stages, "recorded", ir);
    pass_options.after = [&](std::string_view pass, const ir::Trace& now) { profiles::add_stage(stages, std::string(pass), now); };
  }
  if (base::dump_on(base::DumpStage::kIr)) {
    before = ir::print_trace(ir);
    base::dump(base::DumpStage::kIr, name + " recorded", before);
    pass_options.after = [&, keep = pass_options.after](std::string_view pass, const ir::Trace& now) {
      if (keep) keep(pass, now);
      std::string text = ir::print_trace(now);
      if (text != before) base::dump(base::DumpStage::kIr, name + " after " + std::string(pass), text);
      before = std::move(text);
    };
  }
  if (!base::options().record_to.empty()) write_recorded(ir, kind);
  if (recorded_is_kept) trace->recorded = std::make_shared<const ir::Trace>(ir);
  ir::Plan plan;
  const auto build = [&] {
    base::Status status = ir::run_passes(ir, pass_options);
    *reason = Abort::k_pass_failed;
    if (!status.ok()) return status;
    if (base::dump_on(base::DumpStage::kIr)) base::dump(base::DumpStage::kIr, name + " optimised", before);
    if (base::seeded(base::Defect::kWrongExit)) leave_by_first_exit(ir);
    plan = ir::make_plan(ir, [bridge](const ir::AtenCall& call) { return bridge != nullptr && bridge->has_planned_form(call); },
                         {int64_t{base::heuristics().cuda_lent_from} << 10, int64_t{base::heuristics().cuda_kept} << 10});
    *reason = Abort::k_compile_failed;
    return assemble(*trace, std::move(ir), plan, recording.owned, bridge, code, unit, kind, &stages);
  };
  ir::Trace recorded;
  const bool has_symbols = !ir.symbols.empty();
  if (pass_options.fuse_cuda || has_symbols) recorded = ir;
  base::Status status = build();
  if (!status.ok() && (pass_options.fuse_cuda || has_symbols)) {  // once more with the library's operations
    base::report().notes.emplace("kernels of trace " + std::to_string(trace->id), status.message());
    DYNVM_EVENT(kCompile, (base::EventFields{.what = "failed", .trace = trace->id, .detail = status.message()}), "trace {} {}: {}", trace->id, name, status.message());
    ir = std::move(recorded);
    pass_options.fuse_cuda = pass_options.fuse_symbols = false;
    stages = {};
    stages.record_ms = recording.ms;
    if (base::profile::on()) profiles::add_stage(stages, "recorded", ir);
    status = build();
  }
  if (!status.ok()) {
    *error = status.message();
    return nullptr;
  }
  *reason = Abort::kNone;
  if (keep_plan && trace->backwards.empty()) trace->plan = std::make_unique<ir::Plan>(std::move(plan));
  const double ms = ms_since(start);
  base::report().compile_ms += ms;
  if (trace->profile != nullptr) {
    trace->profile->compile_ms = ms;
    base::profile::add_event(base::profile::Event::kCompile, trace->profile->id, start_ticks, base::profile::ticks_now(), name);
  }
  const ir::Trace& final = trace->compiled->ir();
  const bool hands_out = std::any_of(final.insts.begin(), final.insts.end(), [&](const ir::Inst& inst) {
    return inst.op == ir::Op::k_wrap && !inst.sunk && !final.wraps[inst.imm].grad_fn.empty() && !final.wraps[inst.imm].freed;
  });
  trace->whole = recording.whole && !hands_out;
  trace->trains = recording.trains && !hands_out;
  const int64_t rounds = trace->compiled->rounds();
  std::string kernels;
  for (const ir::Kernel& kernel : final.kernels) kernels += " " + kernel.name;
  const auto event = [&](const char* what, double took) {
    return base::EventFields{.what = what, .trace = trace->id, .file = PyUnicode_AsUTF8(code->co_filename), .line = PyCode_Addr2Line(code, unit * 2), .ms = took};
  };
  DYNVM_EVENT(kCompile, event("compiled", ms), "trace {} {}: {:.1f} ms for {} instructions, {} bytes of machine code, kernels{}", trace->id, name, ms, final.insts.size(),
            trace->compiled->code_size(), kernels.empty() ? " none" : kernels);
  DYNVM_EVENT(kTrace, event("finished", recording.ms), "trace {} {}: {} instructions, {} tensor operations{}, {} kernels; made in {:.1f} ms, compiled in {:.1f} ms", trace->id, name,
            final.insts.size(), recording.tensor_ops, rounds > 1 ? " of " + std::to_string(rounds) + " iterations" : "", final.kernels.size(), recording.ms, ms);
  return trace;
}

}  // namespace dynvm::tracer
