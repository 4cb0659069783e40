// See check.h: which runs are checked, and what becomes of the verdict.
#include "tracer/check.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <map>
#include <string>

#include "ir/text.h"
#include "runtime/base/checks.h"
#include "runtime/base/report.h"
#include "runtime/base/stress.h"
#include "tracer/check_child.h"
#include "tracer/check_isolation.h"
#include "tracer/generator_ends.h"
#include "tracer/side.h"

namespace dynvm::tracer::check {

namespace {

constexpr int kDifferent = 97;  // exit status
// Iterations of a trace, by its checked runs: most defects show in one, some only where a run goes round.
constexpr uint64_t kIterations[] = {1, 1, 2, 1, 5, 1, 3, 1};

struct Counts {
  uint64_t arrivals = 0;  // at the trace
  uint64_t due = 0;       // the one from which on it is looked at, after some that it could not be entered at
  uint64_t refused = 0;   // such arrivals, in a row
  uint64_t runs = 0, checked = 0;
  std::map<ir::Ref, uint64_t> exits;  // checks where it was left
};
auto& counts = *new std::map<int, Counts>;                                           // by the trace's number
auto& loops_checked = *new std::map<std::pair<const PyCodeObject*, int>, uint64_t>;  // checks of all traces of a loop
bool busy = false;  // a check is under way; a trace that runs inside of it is not checked

int most_runs() {
  static const int runs = base::stress_number("runs", 24);
  return runs;
}
int most_of_loop() {
  static const int checks = base::stress_number("loop", 100);
  return checks;
}
int most_exits() {
  static const int exits = base::stress_number("exits", 3);
  return exits;
}

// Is the n-th one among the first, or one of ever fewer?
bool is_due(uint64_t n, int first) { return n <= static_cast<uint64_t>(first) || std::has_single_bit(n); }

bool one_thread() {
  PyThreadState* state = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  return state != nullptr && PyThreadState_Next(state) == nullptr;
}

bool handles(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_DFL;
}

// Why there can be no check now; null where there can.
const char* obstacle(bridge::Bridge* bridge) {
  if (!one_thread()) return "threads";
  if (vm::recording_thread() != nullptr) return "a recording is under way";
  if (bridge->cuda_device() >= 0) return "tensors on GPUs";
  if (handles(SIGCHLD)) return "the script looks after its child processes";
  return nullptr;
}

void skipped(const std::string& why) { base::checks().skipped[why]++; }

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void end(pid_t child) {
  kill(child, SIGKILL);
  wait_for(child);
}

// The instruction that gave what the path names, where that is a variable of a frame as it is: "locals['x'].grad" of
// the frame by that name.
std::string origin(const LoopTrace& trace, ir::Ref left, std::string_view path) {
  const ir::Trace& ir = trace.compiled->ir();
  if (left >= ir.insts.size() || ir.insts[left].snapshot < 0) return "";
  const ir::Snapshot& snapshot = ir.snapshots[static_cast<size_t>(ir.insts[left].snapshot)];
  for (size_t i = 0; i < snapshot.frames.size(); i++) {
    const ir::SnapshotFrame& frame = ir.frame(snapshot, i);
    auto* code = static_cast<PyCodeObject*>(frame.code);
    const std::string before = i == 0 ? "" : fmt::format("{}: ", PyUnicode_AsUTF8(code->co_name));
    for (size_t slot = 0; slot < frame.slots.size() && slot < static_cast<size_t>(code->co_nlocalsplus); slot++) {
      const ir::Ref ref = frame.slots[slot];
      if (ref >= ir.insts.size()) continue;
      const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(code->co_localsplusnames, static_cast<Py_ssize_t>(slot)));
      if (name == nullptr || !path.starts_with(fmt::format("{}locals['{}']", before, name))) continue;
      std::string text = ir::print_inst(ir, ref);
      for (ir::Ref from = ref, steps = 0; steps < 3 && ir.insts[from].count > 0; steps++) {
        // A wrap's tensor, and the operation that gave it.
        from = ir.arg(from, 0);
        if (from >= ir.insts.size()) break;
        text += "  <-  " + ir::print_inst(ir, from);
      }
      return "  made by " + text;
    }
  }
  return "";
}

std::string place_text(const Position& at) {
  return fmt::format("{}:{} ({})", PyUnicode_AsUTF8(at.code->co_filename), PyCode_Addr2Line(at.code, at.unit * 2),
                     PyUnicode_AsUTF8(at.code->co_qualname));
}

void different(const LoopState& loop, const LoopTrace& trace, const LeaveResult& left, const Control& control) {
  base::checks().different++;
  const ir::Trace& ir = trace.compiled->ir();
  const Position header{loop.code, loop.unit, vm::Continuation::kPush};
  std::string text = fmt::format("dynvm: check: trace {} of {} {} is not what the interpreter does\n", trace.id,
                                 loop.function ? "the function" : "the loop", place_text(header));
  const std::string inst = left.inst < ir.insts.size() ? fmt::format(" by {}", ir::print_inst(ir, left.inst)) : "";
  if (left.kind == LeaveResult::kBreak)
    text += fmt::format("  at the loop's header after {} iterations\n", left.iterations);
  else
    text += fmt::format("  left{} in front of {} after {} iterations{}\n", inst,
                        place_text(control.stop.place[control.stop.depth - 1]), left.iterations,
                        left.kind == LeaveResult::kRaised ? ", with an exception" : "");
  text += fmt::format("{}\n", control.text);
  if (const std::string from = origin(trace, left.inst, control.first); !from.empty()) text += from + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  if (base::stress("continue")) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (PyObject* out = PySys_GetObject("stdout"); out != nullptr && out != Py_None)
    Py_XDECREF(PyObject_CallMethod(out, "flush", nullptr));
  base::write_report();
  _exit(kDifferent);
}

void count(const LoopState& loop, const LoopTrace& trace, const LeaveResult& left, int status) {
  const Control& c = *control();
  auto& checks = base::checks();
  if (WIFSIGNALED(status)) return skipped(fmt::format("the comparing process ended by signal {}", WTERMSIG(status)));
  switch (c.verdict) {
    case Verdict::kNone:
      return skipped(fmt::format("the comparing process ended with status {}", WEXITSTATUS(status)));
    case Verdict::kSkipped:
      return skipped(c.why[0] != 0 ? c.why : "no reason");
    case Verdict::kUndetermined:
      checks.undetermined++;
      [[fallthrough]];
    case Verdict::kSame:
      checks.made++;
      return;
    case Verdict::kDifferent:
      checks.made++;
      return different(loop, trace, left, c);
  }
}

// A trace may have done a part of the instruction that it is left in front of: taken a generator's items, so that a tuple stands in its place
// (generators.cpp), asked one for its next (generator_ends.h), or asked for an object's truth (__bool__, __len__), so that a bool does. Nobody can tell once the instruction is done. The interpreted
// process is told to do the same.
void say_what_is_taken(const vm::ThreadView& view, Stop* stop) {
  const int arg = vm::oparg(view.ip);
  int depth = 0;
  switch (vm::opcode(view.ip)) {
    case vm::Op::kUnpackSequence:
      stop->most = static_cast<size_t>(arg) + 1;
      [[fallthrough]];
    case vm::Op::kUnpackEx: depth = 1; break;
    case vm::Op::kCall:
      for (int at : {2, 3})
        if (arg == 1 && view.sp - vm::FrameView::stack_base(view.frame) >= at && view.sp[-at] == given_by_next()) stop->given = at;
      return;
    case vm::Op::kCallFunctionEx: depth = 1 + (arg & 1); break;
    case vm::Op::kPopJumpIfFalse:
    case vm::Op::kPopJumpIfTrue:
    case vm::Op::kUnaryNot: stop->truth = PyBool_Check(view.sp[-1]); return;
    default: return;
  }
  if (view.sp - vm::FrameView::stack_base(view.frame) >= depth && view.sp[-depth] != nullptr && PyTuple_CheckExact(view.sp[-depth])) stop->taken = depth;
}

// The place where the trace was left, for the interpreted process. False: it cannot be said.
bool say_where(const vm::ThreadView& view, _PyInterpreterFrame* root, const LoopState& loop, const LoopTrace& trace,
               const LeaveResult& left, bool from_header) {
  Stop& stop = control()->stop;
  const std::vector<LiveFrame> frames = live_frames(view, root);
  if (frames.empty() || frames.size() > kMostFrames) return false;
  const Place place = checked_place(frames);
  std::copy(place.begin(), place.end(), stop.place);
  stop.depth = place.size();
  stop.returns = loop.function && left.at_end && place.size() == 1 && vm::opcode(view.ip) == vm::Op::kReturnValue;
  stop.raised = left.kind == LeaveResult::kRaised;
  if (!stop.raised) say_what_is_taken(view, &stop);
  const bool at_header = !loop.function && place.size() == 1 && place[0].unit == loop.unit;
  stop.from = stop.to = left.iterations;
  if (left.kind == LeaveResult::kLeft || left.kind == LeaveResult::kRaised) {
    stop.to += static_cast<uint64_t>(trace.entry->rounds);
    if (at_header && (!from_header || left.iterations == 0)) stop.from++;
  }
  return true;
}

}  // namespace

// See Control.
static const char* coarsest_type(const LoopTrace& trace) {
  const char* found = nullptr;
  for (const ir::TensorMeta& meta : trace.compiled->ir().metas) {
    if (meta.dtype == ir::DType::kBF16) return "bfloat16";
    if (meta.dtype == ir::DType::kF16) found = "float16";
  }
  return found;
}

bool on() {
  static const bool wanted = base::stress("check");
  return wanted;
}

LeaveResult run(vm::ThreadView& view, const LoopState& loop, _PyInterpreterFrame* root, LoopTrace& trace,
                bridge::Bridge* bridge) {
  if (busy || control() == nullptr) return run_and_leave(view, root, trace);
  Counts& of_trace = counts[trace.id];
  uint64_t& of_loop = loops_checked[{loop.code, loop.unit}];
  if (++of_trace.arrivals < of_trace.due || !is_due(of_trace.runs + 1, most_runs()) ||
      !is_due(of_loop + 1, most_of_loop())) {
    const LeaveResult left = run_and_leave(view, root, trace);
    of_trace.runs += left.kind != LeaveResult::kNotEntered;
    of_loop += left.kind != LeaveResult::kNotEntered && of_loop >= static_cast<uint64_t>(most_of_loop());
    return left;
  }
  std::string why;
  if (const char* reason = obstacle(bridge)) why = reason;
  if (!why.empty() || !load_python(&why)) {
    skipped(why);
    return run_and_leave(view, root, trace);
  }
  busy = true;
  begin_check();
  note_files();
  Control& c = *control();
  c.coarsest = coarsest_type(trace);
  const bool from_header = view.frame == root && vm::unit_of(loop.code, view.ip) == loop.unit;
  const pid_t interpreted = fork();
  if (interpreted == 0) {
    begin_interpreted(view, root, loop.unit, loop.function, bridge);
    LeaveResult result;
    result.kind = LeaveResult::kInterpreted;
    return result;
  }
  if (interpreted < 0) {
    busy = false;
    skipped("no process");
    return run_and_leave(view, root, trace);
  }
  c.interpreted = interpreted;
  const LeaveResult left = run_and_leave(view, root, trace, kIterations[of_trace.checked % std::size(kIterations)]);
  const bool entered = left.kind != LeaveResult::kNotEntered || left.iterations > 0;
  of_trace.refused = entered ? 0 : of_trace.refused + 1;
  of_trace.due = of_trace.arrivals + (uint64_t{1} << std::min<uint64_t>(of_trace.refused, 4));
  if (entered) of_trace.runs++, of_trace.due = 0;
  if (!entered || !is_due(++of_trace.exits[left.inst], most_exits()) ||
      !say_where(view, root, loop, trace, left, from_header)) {
    end(interpreted);
    busy = false;
    return left;
  }
  of_trace.checked++;
  of_loop++;
  const pid_t judging = fork();
  if (judging == 0) judge(view, root, left.kind == LeaveResult::kRaised);
  if (judging < 0) {
    skipped("no process");
  } else {
    sem_post(&c.told[0]);
    count(loop, trace, left, wait_for(judging));
  }
  end(interpreted);
  busy = false;
  return left;
}

}  // namespace dynvm::tracer::check
