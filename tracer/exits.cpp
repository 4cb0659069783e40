// See exits.h. A snapshot lists the root frame's slots, then the inlined frames', outermost first; the evaluator pushes them again as the
// calls that made them would have. A side trace may begin inside inlined frames: its inputs are the slots of all of them (side.h), and they
// are dropped before those of the exit are pushed.
#include "tracer/exits.h"

#include <chrono>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/base/log.h"
#include "runtime/exec/rounds.h"
#include "runtime/base/switches.h"
#include "tracer/failures.h"
#include "tracer/profiles.h"
#include "tracer/side.h"
#include "tracer/value_names.h"
#include "vm/objects.h"

namespace dynvm::tracer {

namespace {

using runtime::RunResult;

// Adds the time between its making and its end to the trace's in the report.
class RunTimer {
 public:
  explicit RunTimer(const LoopTrace& trace) : entry_(base::report_wanted() ? trace.entry : nullptr) {
    if (entry_) start_ = Clock::now();
  }
  ~RunTimer() {
    if (entry_) entry_->compiled_ms += ms_since(start_);
  }

 private:
  base::TraceReport* entry_;
  Clock::time_point start_;
};

// Puts `slots` (owned) into the frame: localsplus, then the value stack.
void fill(vm::ThreadView& view, _PyInterpreterFrame* frame, std::vector<PyObject*>& slots, bool root, PyObject** old_sp) {
  PyObject** base = vm::FrameView::locals(frame);
  size_t old_count = root ? static_cast<size_t>(old_sp - base) : static_cast<size_t>(vm::FrameView::local_count(frame));
  std::vector<PyObject*> dead;
  for (size_t i = 0; i < slots.size(); i++) {
    if (root && slots[i] == runtime::slot_unchanged()) continue;
    if (i < old_count && base[i] != nullptr) dead.push_back(base[i]);
    base[i] = slots[i];
  }
  for (size_t i = slots.size(); root && i < old_count; i++) {
    if (base[i] != nullptr) dead.push_back(base[i]);
    base[i] = nullptr;
  }
  view.sp = base + slots.size();
  for (PyObject* object : dead) Py_DECREF(object);
}

thread_local int running = 0;

// A trace of this thread runs, or is being left, while it lives.
struct Running {
  Running() { running++; }
  ~Running() { running--; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

// Which instruction of the script leaves, and why; where that is not known, the one that the interpreter goes on with.
base::EventFields exit_event(const LoopTrace& trace, const RunResult& run) {
  const ir::Trace& ir = trace.compiled->ir();
  const ir::Inst& inst = ir.insts[run.inst];
  base::EventFields fields{.what = run.kind == RunResult::kLeave ? "ended" : "left", .trace = trace.id, .reason = std::string(ir::op_info(inst.op).name)};
  if (run.kind != RunResult::kLeave) {
    const std::string what = what_decides(ir, run.inst);
    fields.detail = (what.empty() ? "" : what + " ") + exit_reason(ir, inst, run.kind == RunResult::kErrorExit).text;
    if (const std::string seen = inst.op == ir::Op::k_unbox_tensor ? value_seen(*trace.compiled, run) : ""; !seen.empty()) fields.detail += " (" + seen + ")";
  }
  if (const auto found = trace.exit_counts.find(run.inst); found != trace.exit_counts.end()) fields.times = static_cast<uint64_t>(found->second);
  PyCodeObject* code = nullptr;
  int unit = 0;
  if (inst.origin >= 0 && static_cast<size_t>(inst.origin) < ir.origins.size()) {
    code = static_cast<PyCodeObject*>(ir.origins[static_cast<size_t>(inst.origin)].code);
    unit = ir.origins[static_cast<size_t>(inst.origin)].unit;
  } else if (run.snapshot >= 0 && static_cast<size_t>(run.snapshot) < ir.snapshots.size()) {
    const ir::Snapshot& snapshot = ir.snapshots[static_cast<size_t>(run.snapshot)];
    const ir::SnapshotFrame& frame = ir.frame(snapshot, snapshot.frames.size() - 1);
    code = static_cast<PyCodeObject*>(frame.code);
    unit = frame.unit;
  }
  if (code == nullptr) return fields;
  fields.file = PyUnicode_AsUTF8(code->co_filename);
  fields.line = PyCode_Addr2Line(code, unit * 2);
  return fields;
}

std::string exit_text(const base::EventFields& event, ir::Ref inst) {
  const std::string place = event.file.empty() ? "" : fmt::format("{}:{}: ", event.file, event.line);
  if (std::string_view(event.what) == "ended") return fmt::format("{}trace {} ends", place, event.trace);
  return fmt::format("{}trace {} is left, {} %{}: {}, {} times", place, event.trace, event.reason, inst, event.detail, event.times);
}

}  // namespace

int running_traces() { return running; }

LeaveResult run_and_leave(vm::ThreadView& view, _PyInterpreterFrame* root, LoopTrace& trace, uint64_t rounds) {
  const Running is_running;
  LeaveResult result;
  const RunTimer timer(trace);
  const base::profile::Timed leaving(trace.profile != nullptr ? &trace.profile->exits : nullptr);
  const uint64_t start_ticks = trace.profile != nullptr ? base::profile::ticks_now() : 0;
  profiles::entered(view, trace);
  uint64_t before = trace.compiled->iterations();
  std::vector<PyObject*> inputs;
  PyObject** base = vm::FrameView::locals(view.frame);
  if (view.frame != root) {
    inputs = entry_objects(live_frames(view, root));
    base = inputs.data();
  }
  static constexpr int kAlways = 1;
  const bool once = trace.plan != nullptr && before == 0;  // it is left after its first iteration, to be kept on disk
  const volatile int* breaker = once ? &kAlways : vm::eval_breaker(view.tstate);
  if (rounds != 0) {
    runtime::round_limit.left = rounds;
    runtime::round_limit.over = 0;
    breaker = &runtime::round_limit.over;
  }
  RunResult run = trace.compiled->run(base, breaker);
  result.inst = run.inst;
  base::Report& report = base::report();
  auto count = [&]() {  // iterations are known when the activation is over
    result.iterations = trace.compiled->iterations() - before;
    const uint64_t passes = result.iterations / static_cast<uint64_t>(trace.entry->rounds);
    trace.entry->runs += passes;
    if (trace.profile != nullptr) {
      trace.profile->iterations += passes;
      base::profile::add_event(base::profile::Event::kRun, trace.profile->id, start_ticks, base::profile::ticks_now());
    }
    report.tensor_ops_compiled += passes * static_cast<uint64_t>(trace.entry->tensor_ops);
  };
  if (run.kind == RunResult::kNoMemory) {
    result.kind = LeaveResult::kRaised;
    return result;
  }
  if (run.kind == RunResult::kLoopBreak) count();
  if (run.kind == RunResult::kLoopBreak) {
    result.kind = LeaveResult::kBreak;
    return result;
  }
  if (run.inst < trace.ops_before.size()) {
    report.tensor_ops_compiled += static_cast<uint64_t>(trace.ops_before[run.inst]);
    if (trace.entry->tensor_ops > 0) trace.entry->partial_runs += static_cast<double>(trace.ops_before[run.inst]) / trace.entry->tensor_ops;
  }
  const ir::Trace& ir = trace.compiled->ir();
  result.at_end = run.kind == RunResult::kLeave;
  if (result.at_end) {
    trace.entry->runs++;
    if (trace.profile != nullptr) trace.profile->iterations++;
  } else {
    report.side_exits++;
    trace.entry->exits++;
    trace.exit_counts[run.inst]++;
    profiles::exit_taken(trace, run, run.snapshot == 0 && run.kind == RunResult::kGuardExit);
  }
  if (run.inst < ir.insts.size() && base::is_told(base::LogCategory::kExit)) {
    const base::EventFields event = exit_event(trace, run);
    base::log(base::LogCategory::kExit, event, "{}", exit_text(event, run.inst));
  }

  PyObject *type = nullptr, *value = nullptr, *tb = nullptr;
  bool raised = run.kind == RunResult::kErrorExit;
  if (raised && trace.compiled->may_do_again(run) && !base::left_out(base::Part::kAgain)) {
    result.operation = ir.insts[run.inst].op == ir::Op::k_aten ? ir.calls[ir.insts[run.inst].imm].name : std::string(ir::op_info(ir.insts[run.inst].op).name);
    result.failure = take_failure();
    raised = false;
  } else if (raised) {
    note_own_error(trace);
  }
  if (raised) PyErr_Fetch(&type, &value, &tb);
  if (!raised && !result.at_end && run.snapshot == 0) {
    for (runtime::FrameState& state : trace.compiled->take_exit_state(run))  // ends the activation; the state is the header's
      for (PyObject* object : state.slots)
        if (object != runtime::slot_unchanged()) Py_XDECREF(object);
    count();
    result.kind = LeaveResult::kNotEntered;
    return result;
  }
  std::vector<runtime::FrameState> frames = trace.compiled->take_exit_state(run);
  count();
  while (view.frame != root) vm::drop_frame(view);
  for (size_t i = 0; i < frames.size(); i++) {
    runtime::FrameState& state = frames[i];
    if (i == 0) {
      fill(view, view.frame, state.slots, true, view.sp);
    } else {
      auto* function = reinterpret_cast<PyFunctionObject*>(state.function);
      auto continuation = static_cast<vm::Continuation>(state.continuation);
      bool generator = continuation == vm::Continuation::kForGenerator || continuation == vm::Continuation::kSendGenerator || continuation == vm::Continuation::kAsked;  // on the stack's top
      _PyInterpreterFrame* frame = generator ? vm::resume_generator(view, view.sp[-1], continuation) : vm::push_frame(view, function, continuation);
      if (frame == nullptr) {  // recursion limit or memory: the exception is raised at the call
        for (size_t k = i; k < frames.size(); k++)
          for (PyObject* object : frames[k].slots)
            if (object != runtime::slot_unchanged()) Py_XDECREF(object);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(tb);
        result.kind = LeaveResult::kRaised;
        return result;
      }
      fill(view, frame, state.slots, false, nullptr);
    }
    vm::set_position(view, vm::inst_at(state.code, state.unit, false));
  }
  if (!raised && PyErr_Occurred()) {  // a value could not be made
    raised = true;
    note_own_error(trace);
  }
  if (type != nullptr) PyErr_Restore(type, value, tb);
  if (!result.at_end) profiles::left_to(view);
  result.kind = raised ? LeaveResult::kRaised : LeaveResult::kLeft;
  return result;
}

}  // namespace dynvm::tracer
