// See manager.h. The policy in short (numbers: heuristics.def; decisions.cpp has what a policy of the user's may answer):
//  - each arrival of a loop at its header is seen until the loop is classified; a loop that runs tensor operations is recorded after
//    hot_loop iterations in one frame, any other is left to the interpreter. Those that short traces of inner loops run count too (around_traces);
//  - a function that C or a coroutine calls, or Python where the loops around it get nothing from traces, is recorded by itself in the same way;
//  - the outermost loop is preferred: while a calling frame is inside a loop too, an inner loop waits;
//  - an abort makes the loop wait, twice as long each time; lessons (tracer/recorder.h) are kept, so the next recording does better;
//  - an exit that teaches a lesson twice drops its trace; a place where traces were left often grows a side trace (side.h);
//  - a loop whose tensors come in other sizes is recorded with sizes as numbers, and from then on compiled for further ones without recording
//    (sizes.h);
//  - a trace that was cut before an instruction leaves that one to the interpreter, with the tracer looking on (Skip); behind it a side
//    trace begins.
#include "tracer/manager.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "codegen/cuda/graph.h"
#include "codegen/cuda/kernel.h"
#include "codegen/parallel.h"
#include "codegen/x86/matmul/matmul.h"

#include "runtime/base/dump.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/log.h"
#include "runtime/base/policy.h"
#include "runtime/base/report.h"
#include "runtime/base/switches.h"
#include "runtime/exec/helpers.h"
#include "runtime/exec/own_work.h"
#include "tracer/bridge_file.h"
#include "tracer/collector.h"
#include "tracer/check.h"
#include "tracer/compile.h"
#include "tracer/counting.h"
#include "tracer/decisions.h"
#include "tracer/exits.h"
#include "tracer/failures.h"
#include "tracer/learn.h"
#include "tracer/loop_state.h"
#include "tracer/penalties.h"
#include "tracer/profiles.h"
#include "tracer/recorder.h"
#include "tracer/side.h"
#include "tracer/switches.h"
#include "tracer/trace_group.h"
#include "tracer/trials.h"
#include "vm/code_death.h"
#include "vm/objects.h"

namespace dynvm::tracer {

using base::options;
using base::report;
using vm::HookResult;

namespace {

// At most one of the recorder, Skip and Probe is at work, in the one thread that the evaluator records in; other threads run traces meanwhile.
Recorder* recorder = nullptr;
LoopState* recording_loop = nullptr;
SidePoint* recording_side = nullptr;         // null: a root trace is recorded
_PyInterpreterFrame* recording_root = nullptr;

// The interpreter is carrying out what no trace can hold: until it is done, in one of these frames, outside of exception handlers.
struct Skip {
  LoopState* loop = nullptr;                 // null: not skipping
  std::vector<_PyInterpreterFrame*> frames;  // from the loop's on
  const vm::Inst* at = nullptr;              // still to be begun; null: begun
  SidePoint* side = nullptr;
  PyObject* handled = nullptr;               // exception that is being handled, to compare only
  Failed failed;                             // with a trace: an operation of it has failed; does it here?
  int steps = 0;
};
Skip skip;

// One call of a function is watched: how many tensor operations does it run?
struct Probe {
  LoopState* loop = nullptr;                 // null: none is
  _PyInterpreterFrame* frame = nullptr;
  int steps = 0;
};
Probe probe;
bridge::Bridge* torch_bridge = nullptr;
BridgeFile bridge_file;
uint64_t arrivals = 0;                       // of all loops
RunByTraces run_by_traces;
int next_trace_id = 1;
bool reset_wanted = false;                   // when nothing is recorded or compiled any more

void count_calls();

bridge::Bridge* bridge_now() {
  if (torch_bridge != nullptr) return torch_bridge;
  torch_bridge = bridge_file.load();
  if (torch_bridge == nullptr) return nullptr;
  if (base::report_wanted()) torch_bridge->set_counting(true);
  tell_switches(*torch_bridge);
  if (!base::left_out(base::Part::kThreads)) codegen::set_parallel_for(torch_bridge->parallel_for());
  codegen::cuda::set_current_stream(torch_bridge->cuda_stream());
  if (!base::left_out(base::Part::kGemm)) torch_bridge->set_matmul([](const codegen::Matmul& call) { return codegen::matmul(call); });
  torch_bridge->set_heuristics(base::heuristics());
  torch_bridge->tell_of_kernels([] { if (reset_wanted |= std::any_of(all_loops().begin(), all_loops().end(), [](const auto& each) { return each.second->has_tried(); }); running_traces() > 0) reset(); });
  count_calls();
  watch_collector();
  return torch_bridge;
}

// May a trace be entered, or recorded? Not where another evaluator is asked about calls, nor before traces have gone that ran other kernels.
bool may_trace() { return vm::has_slot() && !reset_wanted; }

// Is no mode of torch's active that traces do not support?
bool torch_is_plain() { return torch_bridge == nullptr || torch_bridge->torch_state().clean; }

std::unique_ptr<Recorder> take_recorder() {
  recording_loop = nullptr;
  recording_side = nullptr;
  profiles::recording_ends();
  return std::unique_ptr<Recorder>(std::exchange(recorder, nullptr));
}

// A trace's kind in the report.
const char* kind_of(const LoopState& loop, const SidePoint* side) { return side ? "side" : loop.function ? "function" : "loop"; }

const Place* place_of(const LoopState& loop, const SidePoint* side) {
  const auto found = std::find_if(loop.sides.begin(), loop.sides.end(), [&](const auto& known) { return &known.second == side; });
  return found == loop.sides.end() ? nullptr : &found->first;
}

// Adds the traces of an earlier process that fit here. root: the loop's frame.
void read_traces(LoopState& loop, SidePoint* side, _PyInterpreterFrame* root) {
  if (!TraceCache::on()) return;
  const runtime::OwnWork work;
  const base::profile::Timed timed(base::profile::Part::kCache);
  const Place* place = side != nullptr ? place_of(loop, side) : nullptr;
  auto traces = TraceCache::find(loop.kept, place, root, loop.code, loop.unit, kind_of(loop, side), torch_bridge, &next_trace_id);
  for (auto& trace : traces) {
    if (side != nullptr) loop.num_sides++;
    group_of(loop, side).add(std::move(trace));
    loop.settled();
  }
  bind_namespace(group_of(loop, side), root);
}

// Before it is entered: a trace is kept on disk once it has come to its end, so that it is known to be of use. Of those made for sizes it is the one for all, in place of its recording's own.
void keep_if_useful(LoopState& loop, SidePoint* side, _PyInterpreterFrame* root, LoopTrace& trace) {
  if (trace.plan == nullptr) return;
  if (trace.compiled->iterations() == 0 && trace.entry->runs == 0) return;
  const auto is_for_all = [&](const LoopTrace& other) { return other.for_all_sizes && other.complete && other.generic == trace.generic; };
  const auto traces = group_of(loop, side).traces();
  if (trace.generic != nullptr && !is_for_all(trace) && (trace.made_for_sizes || std::any_of(traces.begin(), traces.end(), [&](const auto& other) { return is_for_all(*other); }))) {
    trace.plan = nullptr;
    return;
  }
  if (trace.for_all_sizes)
    for (const auto& other : traces)
      if (other->generic == trace.generic) TraceCache::forget(*other, loop.code, loop.unit, torch_bridge);
  TraceCache::keep(loop.kept, trace, side != nullptr ? place_of(loop, side) : nullptr, root, loop.code, loop.unit, torch_bridge);
}

// Compiles what has been recorded; true when the loop has a new trace.
bool finish_recording() {
  LoopState& loop = *recording_loop;
  const Spent spent(loop);
  SidePoint* side = recording_side;
  _PyInterpreterFrame* root = recording_root;
  std::unique_ptr<Recorder> done = take_recorder();
  loop.begun_inside(static_cast<uint64_t>(done->rounds()), false);
  const base::profile::Timed timed(base::profile::Part::kCompiling);
  const runtime::OwnWork work;  // some of torch's meta functions are in Python
  const bool sizes = done->sizes_are_numbers();
  const std::pair<std::string, int> place = done->abort_place();
  const std::pair<PyCodeObject*, int> inner_loop = done->inner_loop();
  TraceGroup& group = group_of(loop, side);
  Around& around = side != nullptr ? side->around : loop.around;
  auto failed = [&](Abort reason, const std::string& detail) {
    if (side == nullptr)
      for (const auto& trace : group.traces()) trace->gives_way = false;
    if (sizes && !is_lesson(reason)) group.sizes_failed("recording was given up");
    const bool at_inner = reason == Abort::k_inner_loop_has_trace || reason == Abort::k_inner_loop_begins;
    if (const auto inner = all_loops().find(inner_loop); at_inner && inner != all_loops().end()) gave_way_to(around, loop, *inner->second);
    penalise(loop, side, reason, detail, place);
    return false;
  };
  if (done->abort_reason() != Abort::kNone) {
    if (!done->is_cut()) return failed(done->abort_reason(), done->abort_detail());
    note_abort(loop, done->abort_reason(), done->abort_detail(), place);
  }
  codegen::set_num_threads(torch_bridge->num_threads());
  Recording recording = done->take();
  done.reset();
  if (std::any_of(recording.trace.metas.begin(), recording.trace.metas.end(), [](const ir::TensorMeta& meta) { return meta.device_type != 0; })) trials::note_device();
  report().record_ms += recording.ms;
  report().recordings++;
  std::string error;
  Abort reason = Abort::kNone;
  std::shared_ptr<GenericTrace> generic;
  if (!group.prepare(&recording, torch_bridge, loop.lessons, &generic, &error)) return failed(Abort::k_compile_failed, error);
  std::shared_ptr<LoopTrace> trace = compile(std::move(recording), torch_bridge, loop.code, loop.unit, kind_of(loop, side), &reason, &error, TraceCache::on());
  if (trace == nullptr) return failed(reason, error);
  trace->generic = std::move(generic);
  if (trace->profile != nullptr) profiles::recording_became("kept", "", trace->profile->id);
  loop.lessons_in_row = 0;
  around = {};
  loop.before_inner |= trace->cut == Abort::k_inner_loop_begins;
  if (side != nullptr) {
    side->failures = 0;
    side->lost_ms = 0;
    loop.num_sides++;
  } else {
    loop.penalty = 0;
    trace->entry->interpreted_ms = loop.fastest_ms;
  }
  group.add(std::move(trace));
  bind_namespace(group, root);
  loop.settled();
  return true;
}

HookResult travel(vm::ThreadView& view, LoopState& loop, _PyInterpreterFrame* root, bool cut, bool* entered);
HookResult consider_root(vm::ThreadView& view, LoopState& loop);

// Lets the interpreter carry out the instruction at view.ip (`begun`: it has been), and comes back behind it, and out of the handlers of
// exceptions: where `handled` is being handled again.
bool start_skip(vm::ThreadView& view, LoopState& loop, _PyInterpreterFrame* root, SidePoint* side, bool begun, PyObject* handled) {
  std::vector<LiveFrame> frames = live_frames(view, root);
  if (frames.empty() || (vm::recording_thread() != view.tstate && !vm::start_recording(view))) return false;
  skip = Skip{};
  skip.loop = &loop;
  for (LiveFrame& live : frames) skip.frames.push_back(live.frame);
  skip.at = begun ? nullptr : view.ip;
  skip.side = side;
  skip.handled = handled;
  return true;
}

void stop_skip(vm::ThreadView& view) {
  skip = Skip{};
  vm::stop_recording(view);
}

// Has this frame of the activation not been left yet?
bool is_running(const vm::ThreadView& view, const _PyInterpreterFrame* frame) {
  const _PyInterpreterFrame* ancestor = view.frame;
  while (ancestor != frame && ancestor != view.entry_frame) ancestor = vm::FrameView::previous(ancestor);
  return ancestor == frame;
}

HookResult on_skip(vm::ThreadView& view) {
  if (!is_running(view, skip.frames[0])) {
    stop_skip(view);
    return HookResult::kReload;
  }
  if (view.entered_handler) skip.failed = {};  // the error is the script's
  bool known_frame = false;
  for (size_t i = skip.frames.size(); i-- > 0 && !known_frame;)
    if (skip.frames[i] == view.frame) {
      known_frame = true;
      if (skip.at == nullptr) skip.frames.resize(i + 1);
    }
  bool ready = known_frame && skip.at == nullptr && !view.entered_handler && view.tstate->exc_info->exc_value == skip.handled && vm::opcode(view.ip) != vm::Op::kReraise && torch_is_plain() && vm::has_slot();
  if (!ready) {
    skip.at = nullptr;
    if (++skip.steps <= base::heuristics().max_step_over) return HookResult::kContinue;
    if (skip.side != nullptr) skip.side->failures = INT_MAX;
    stop_skip(view);
    return HookResult::kReload;
  }
  LoopState& loop = *skip.loop;
  _PyInterpreterFrame* root = skip.frames[0];
  if (skip.failed.trace != nullptr) drop_failed(loop, skip.failed, torch_bridge);  // nothing was raised
  stop_skip(view);
  bool entered = false;
  HookResult result = travel(view, loop, root, false, &entered);
  return result == HookResult::kContinue ? HookResult::kReload : result;
}

void end_probe() {
  LoopState& loop = *std::exchange(probe, Probe{}).loop;
  end_counting(loop, *torch_bridge, run_by_traces);
  if (!loop.tensors) wait_longer(loop);
}

HookResult on_probe(vm::ThreadView& view) {
  if (is_running(view, probe.frame) && ++probe.steps <= base::heuristics().max_step_over) return HookResult::kContinue;
  end_probe();
  vm::stop_recording(view);
  return HookResult::kReload;
}

HookResult record_step(vm::ThreadView& view) {
  if (recorder == nullptr) {
    if (probe.loop != nullptr) return on_probe(view);
    if (skip.loop != nullptr) return on_skip(view);
    vm::stop_recording(view);
    return HookResult::kReload;
  }
  HookResult result = recorder->step(view);
  if (!recorder->done()) return result;
  LoopState& loop = *recording_loop;
  SidePoint* side = recording_side;
  _PyInterpreterFrame* root = recording_root;
  const bool cut = recorder->is_cut(), at_loop = recorder->abort_reason() == Abort::k_inner_loop_begins;
  PyObject* handled = recorder->handled(view);
  bool compiled = finish_recording();
  if (cut && compiled && !at_loop && start_skip(view, loop, root, side, true, handled)) return result;
  vm::stop_recording(view);
  if (compiled && !cut && !loop.function && result != HookResult::kError) {
    bool entered = false;
    result = travel(view, loop, root, false, &entered);
  } else if (!compiled && loop.waits == 0 && side == nullptr && !loop.function && view.frame == root && vm::unit_of(loop.code, view.ip) == loop.unit && result != HookResult::kError) {
    result = consider_root(view, loop);  // at once, with what has been learnt
  }
  return result == HookResult::kContinue ? HookResult::kReload : result;
}

HookResult on_record(vm::ThreadView& view) {
  const HookResult result = record_step(view);
  if (result == HookResult::kError) note_missing_error("recording");
  if (vm::recording_thread() != view.tstate) settle();
  return result;
}

void on_event(vm::ThreadView& view, const vm::EventInfo& info) {
  bool over = info.event == vm::Event::kActivationEnd || info.event == vm::Event::kHandover;
  if (recorder == nullptr) {
    if (over) skip = Skip{};
    if (over && probe.loop != nullptr) end_probe();
    return;
  }
  recorder->on_event(view, info);
  if (over && !recorder->in_callback()) {
    LoopState& loop = *recording_loop;
    SidePoint* side = recording_side;
    const Spent spent(loop);
    std::unique_ptr<Recorder> done = take_recorder();
    penalise(loop, side, done->abort_reason(), done->abort_detail(), done->abort_place());
  }
}

// Another thread is only looked at, and may wait in a call for this very one: a recording goes before. That thread finds out at its next instruction.
void take_over(vm::ThreadView& view) {
  const bool looked_at = recorder == nullptr && (probe.loop != nullptr || skip.loop != nullptr);  // it may be compiling, too
  if (!looked_at || vm::recording_thread() == view.tstate) return;
  if (probe.loop != nullptr) end_probe();
  stop_skip(view);
}

bool start_recorder(vm::ThreadView& view, LoopState& loop, _PyInterpreterFrame* root, SidePoint* side) {
  std::vector<LiveFrame> frames = live_frames(view, root);
  if (!may_trace() || !can_begin(frames)) return false;
  take_over(view);
  if (!vm::start_recording(view)) return false;
  frames = live_frames(view, root);  // in plain code now
  recording_loop = &loop;
  loop.recorded_ms = base::ms_since_start();
  trials::note_recorded();
  if (loop.recordings++ == 0) loop.first_recorded_ms = loop.recorded_ms;
  recording_side = side;
  recording_root = root;
  recorder = new Recorder(frames, loop.unit, bridge_now(), loop.lessons, loop.function ? std::unordered_set<PyObject*>{} : ending_with_call(view, root), next_trace_id++, group_of(loop, side).sizes_are_numbers(), loop.function, loop.gone_round(!loop.function && loop_around(view, loop, 1) != nullptr));
  if (side == nullptr) loop.again = false;
  PyCodeObject* code = vm::FrameView::code(view.frame);
  profiles::recording_begins(code, vm::lasti_of(code, view.ip), side != nullptr);
  base::EventFields event = about(loop, next_trace_id - 1, "recording");
  event.line = PyCode_Addr2Line(code, vm::lasti_of(code, view.ip) * 2);
  event.file = PyUnicode_AsUTF8(code->co_filename);
  DYNVM_EVENT(kTrace, event, "recording {}:{}{}", PyUnicode_AsUTF8(code->co_filename), PyCode_Addr2Line(code, vm::lasti_of(code, view.ip) * 2),
            side ? " (side trace)" : "");
  return true;
}

// The state is the loop header's and no root trace could be entered: is another to be recorded?
HookResult consider_root(vm::ThreadView& view, LoopState& loop) {
  for (const auto& trace : loop.roots.traces())
    if (trace->awaited) return HookResult::kContinue;  // the one whose kernels are being compiled may be what is wanted
  const bool futile = would_give_way(loop.around, loop.gone_round());
  if (loop.waits > 0) {
    loop.waits--;
    return HookResult::kContinue;
  }
  if (futile || !is_hot(view, loop, true)) return HookResult::kContinue;
  if (!within_budget(loop) || waits_for_next_round(view, loop) || !make_room(loop, nullptr)) return HookResult::kContinue;
  if (base::policy() == nullptr && outer_loop_first(view, loop)) return HookResult::kContinue;  // else it is among the policy's facts
  if (loop.counter->yields) {
    penalise(loop, nullptr, Abort::k_generator_frame, "");
    return HookResult::kContinue;
  }
  return start_recorder(view, loop, view.frame, nullptr) ? HookResult::kReload : HookResult::kContinue;
}

// Traces can neither be entered nor recorded at this place for now; or is one to be recorded?
HookResult consider_side(vm::ThreadView& view, LoopState& loop, _PyInterpreterFrame* root, SidePoint& side, bool main_path) {
  side.arrivals++;
  if (base::left_out(base::Part::kSides)) return HookResult::kContinue;
  const bool futile = would_give_way(side.around, loop.gone_round());
  if (futile || side.failures == INT_MAX || !is_hot(view, loop, side, main_path)) return HookResult::kContinue;
  if (side.waits > 0) {
    side.waits--;
    return HookResult::kContinue;
  }
  if (!within_budget(loop) || !make_room(loop, &side)) return HookResult::kContinue;
  return start_recorder(view, loop, root, &side) ? HookResult::kReload : HookResult::kContinue;
}

// kMoved: the state is another now (also the header's again, after iterations). kReturns: the function is about to return, or a loop with traces of its
// own to begin. kLater: a trace may be made for the sizes that came, but is not worth it yet.
// kWaits: a trace is there, but its kernels are still being compiled.
// kFailed: an operation has failed, which the interpreter is to try again (`failed`).
enum class Entry { kNone, kLater, kWaits, kMoved, kCut, kReturns, kRaised, kFailed };

// Runs the first of the traces of this place that can be entered, or else one made for the sizes that they refused.
// *by_sizes: it was left again because of a tensor's sizes.
Entry enter(vm::ThreadView& view, LoopState& loop, _PyInterpreterFrame* root, SidePoint* side, bool* by_sizes, Failed* failed) {
  TraceGroup& group = group_of(loop, side);
  auto drop = [&](const TraceGroup::Trace& trace, bool was_wrong = true) {
    const int recorded = group.recorded();
    group.drop(trace);
    if (was_wrong) TraceCache::forget(*trace, loop.code, loop.unit, torch_bridge);
    if (side != nullptr) loop.num_sides -= recorded - group.recorded();
  };
  auto record_again = [&](const TraceGroup::Trace& trace) {
    drop(trace);
    if (side != nullptr) side->arrivals = std::max(side->arrivals, base::heuristics().hot_exit);
    else loop.consecutive = std::max(loop.consecutive, base::heuristics().hot_loop);
  };
  auto has_next = [&](const LoopTrace& trace) {
    return std::any_of(group.traces().begin(), group.traces().end(), [&](const auto& other) { return other->id > trace.id && !other->gives_way && other->compiled->ready(); });
  };
  // What was left in its middle goes on to be of use until the next is ready, but for sizes, where a recording with those as numbers is one for all.
  auto replace = [&](const TraceGroup::Trace& trace, bool was_wrong) {
    if (side != nullptr || loop.function || trace->generic != nullptr) return record_again(trace);
    if (was_wrong) TraceCache::forget(*trace, loop.code, loop.unit, torch_bridge);
    trace->gives_way = true;
    loop.again = !has_next(*trace);
    loop.consecutive = std::max(loop.consecutive, base::heuristics().hot_loop);
  };
  auto make = [&](const RefusedInput& sizes) {
    const TraceGroup::Made made = group.make(sizes, torch_bridge, loop.code, loop.unit, kind_of(loop, side), loop.fastest_ms);
    if (made == TraceGroup::Made::kYes) {
      trials::note_recorded();
      bind_namespace(group, root);
      loop.settled();
    }
    return made;
  };
  *by_sizes = false;
  std::optional<RefusedInput> refused;
  bool waits = false;
  for (size_t i = 0; i < group.traces().size();) {
    const std::shared_ptr<LoopTrace> trace = group.traces()[i++];
    if (trace->gives_way && has_next(*trace)) {
      drop(trace, false);
      i--;
      continue;
    }
    trace->awaited = false;
    if (trace->globals != nullptr && trace->globals != vm::FrameView::globals(root)) continue;
    bool still = false;
    if (!trace->checked && !check_kernels(*trace, &still)) {
      if (still) {  // sizes that change are learned of meanwhile: kernels for those that it was recorded with may be of no use
        const auto input = side == nullptr && !loop.function ? refused_by_variables(*trace, vm::FrameView::locals(root), torch_bridge) : std::nullopt;
        trace->awaited = !input;
        waits = waits || trace->awaited;
        if (input) group.refused(trace, *input), refused = input;
        continue;
      }
      drop(trace);
      i--;
      continue;
    }
    if (refused && trace->for_certain_sizes() && trace->answers.input == refused->input && trace->answers != *refused) continue;
    if (refused && trace->for_all_sizes && !trace->complete && make(*refused) == TraceGroup::Made::kYes) return enter(view, loop, root, side, by_sizes, failed);
    keep_if_useful(loop, side, root, *trace);
    const uint64_t compiled_before = report().tensor_ops_compiled;
    const LeaveResult left = check::on() ? check::run(view, loop, root, *trace, torch_bridge) : run_and_leave(view, root, *trace);
    if (left.kind == LeaveResult::kInterpreted) return Entry::kReturns;
    TraceCache::keep_findings(*trace, torch_bridge);
    const uint64_t compiled = report().tensor_ops_compiled - compiled_before;
    if (loop.function) loop.traced_ops += static_cast<int64_t>(compiled);
    if (loop.inner) run_by_traces.functions += compiled;
    else if (!loop.function && !runs_long(loop, true, {loop.consecutive, HUGE_VAL})) run_by_traces.loops += compiled;
    if (side == nullptr && !loop.function) loop.begun_inside(left.iterations, left.kind == LeaveResult::kLeft);
    if (left.kind != LeaveResult::kNotEntered) {
      group.used(trace);
      trials::note_entered();
    }
    if (!left.failure.empty() && left.kind != LeaveResult::kRaised) {
      if (left.kind == LeaveResult::kLeft) {
        *failed = {trace, left.operation, left.failure};
        return Entry::kFailed;
      }
      drop_failed(loop, {trace, left.operation, left.failure}, torch_bridge);
      i--;
      continue;
    }
    switch (left.kind) {
      case LeaveResult::kNotEntered:  // an entry guard failed; nothing has happened
        if (auto input = refused_for_sizes(*trace, left.inst, torch_bridge)) {
          group.refused(trace, *input);
          refused = std::move(input);
        }
        switch (learn(view, loop, *trace, left.inst, true)) {
          case Learned::kNothing: break;
          case Learned::kRenewed:
            if (left.iterations > 0) return Entry::kMoved;
            i--;  // it can be entered now
            continue;
          case Learned::kLesson:
            trace->lessons++;
            learn_from_slots(view, loop, *trace);
            break;
          case Learned::kOver:
            DYNVM_EVENT(kTrace, about(loop, trace->id, "dropped"), "trace {} dropped: what it assumes has ended", trace->id);
            drop(trace);
            wait_after(side != nullptr ? side->overs : loop.overs, base::heuristics().free_endings, side != nullptr ? side->waits : loop.waits);
            break;
        }
        if (learn_from_sizes(loop, group, *trace, left.inst) || learn_from_sharing(loop, *trace, left.inst, torch_bridge)) record_again(trace);
        if (trace->lessons > 0 && ++trace->entry_failures >= base::heuristics().entry_failures && group.holds(trace)) {
          DYNVM_EVENT(kTrace, about(loop, trace->id, "dropped"), "trace {} dropped: an assumption changed", trace->id);
          record_again(trace);
          wait_after(loop.changes, base::heuristics().max_lessons, side != nullptr ? side->waits : loop.waits);
        }
        if (left.iterations > 0) return Entry::kMoved;
        if (!group.holds(trace)) i--;  // the next has taken its place
        break;
      case LeaveResult::kBreak:
        // Signals, the GIL, pending calls: seen to here, so that the trace can go on.
        return vm::handle_pending(view.tstate) < 0 ? Entry::kRaised : Entry::kMoved;
      case LeaveResult::kLeft:
        if (left.at_end) return trace->steps_over() ? Entry::kCut : loop.function || trace->cut != Abort::kNone ? Entry::kReturns : Entry::kMoved;
        *by_sizes = refused_for_sizes(*trace, left.inst, torch_bridge).has_value();
        if (learn(view, loop, *trace, left.inst, false) == Learned::kLesson) {
          wait_after(loop.changes, base::heuristics().max_lessons, side != nullptr ? side->waits : loop.waits);
          replace(trace, true);
        } else if (learn_from_sizes(loop, group, *trace, left.inst) || learn_from_sharing(loop, *trace, left.inst, torch_bridge) || (side == nullptr && learn_from_input(group, *trace, left.inst, torch_bridge))) {
          replace(trace, true);
        } else if (side == nullptr && !*by_sizes && !trace->gives_way && went_wrong_way(loop, *trace->compiled, left.inst)) {
          DYNVM_EVENT(kTrace, about(loop, trace->id, "dropped"), "trace {} gives way: it is the rare one", trace->id);
          replace(trace, false);
        }
        return Entry::kMoved;
      case LeaveResult::kRaised: return Entry::kRaised;
      case LeaveResult::kInterpreted: break;
    }
  }
  if (waits) return Entry::kWaits;
  if (!refused) return Entry::kNone;
  switch (make(*refused)) {
    case TraceGroup::Made::kNo: return Entry::kNone;
    case TraceGroup::Made::kLater: return Entry::kLater;
    case TraceGroup::Made::kYes: break;
  }
  return enter(view, loop, root, side, by_sizes, failed);
}

// Runs the loop's traces, root and side, from view on until the interpreter has to go on. `cut`: the state is before an instruction that
// is the interpreter's.
HookResult travel(vm::ThreadView& view, LoopState& loop, _PyInterpreterFrame* root, bool cut, bool* entered) {
  SidePoint* side = nullptr;
  profiles::interpreting();
  bool by_sizes = false;
  bool main_path = !cut;                 // the loop's way always comes here
  Failed failed;
  for (;;) {
    if (!may_trace()) return *entered || cut ? HookResult::kReload : HookResult::kContinue;
    bool header = view.frame == root && vm::unit_of(loop.code, view.ip) == loop.unit;
    Entry entry = Entry::kNone;
    if (cut) {  // while another thread records, nobody looks on
      (void)start_skip(view, loop, root, side, false, view.tstate->exc_info->exc_value);
      return HookResult::kReload;
    } else if (header) {
      if (*entered && trials::is_interpreted(view, loop, true)) return HookResult::kReload;
      if (*entered) {
        loop.consecutive++;
        loop.goes_on(1);
        loop.begun();
        if (*vm::eval_breaker(view.tstate) && vm::handle_pending(view.tstate) < 0) return HookResult::kError;
      }
      if (loop.again && consider_root(view, loop) == HookResult::kReload) return HookResult::kReload;
      side = nullptr;
      entry = enter(view, loop, root, nullptr, &by_sizes, &failed);
      if (entry == Entry::kLater) loop.left_with(loop.roots);
      if (entry == Entry::kNone || entry == Entry::kLater || entry == Entry::kWaits) {
        if (!*entered) return HookResult::kContinue;
        if (entry == Entry::kNone) consider_root(view, loop);
        return HookResult::kReload;
      }
      main_path = false;
    } else {
      std::vector<LiveFrame> frames = live_frames(view, root);
      if (!can_begin(frames)) return HookResult::kReload;
      side = &loop.sides[place_of(frames)];
      if (by_sizes) side->by_sizes = true;
      if (!std::exchange(side->asked, true)) read_traces(loop, side, root);
      entry = enter(view, loop, root, side, &by_sizes, &failed);
      if (entry == Entry::kLater) loop.left_with(side->group);
      if (entry == Entry::kNone && meets_behind(loop, frames)) {
        if (start_skip(view, loop, root, nullptr, true, view.tstate->exc_info->exc_value)) skip.frames.resize(1);  // until it is in the loop's frame again
      } else if (entry == Entry::kNone) {
        if (consider_side(view, loop, root, *side, main_path) == HookResult::kContinue) loop.left_at_side(*side);
        else note_parted(loop, frames);
      }
      if (entry == Entry::kNone || entry == Entry::kLater || entry == Entry::kWaits) return HookResult::kReload;
      main_path = false;
    }
    *entered = true;
    if (entry == Entry::kRaised) return HookResult::kError;
    if (entry == Entry::kFailed) {
      report().failures.again++;
      if (start_skip(view, loop, root, side, false, view.tstate->exc_info->exc_value)) skip.failed = std::move(failed);
      return HookResult::kReload;
    }
    if (entry == Entry::kReturns) return HookResult::kReload;
    cut = entry == Entry::kCut;
  }
}

// What is to be done at an arrival that no recording is going on at.
HookResult decide(vm::ThreadView& view, vm::HotCounter& counter, LoopState& loop) {
  if (loop.left_out) {
    counter.count = INT_MAX;
    return HookResult::kContinue;
  }
  counter.count = 0;  // each arrival, until decided otherwise
  counter.trace = nullptr;
  loop.consecutive++;
  loop.goes_on(1);
  loop.begun();
  if (bridge_now() == nullptr) {
    counter.count = bridge_file.hopeless() ? INT_MAX : base::heuristics().torch_wait;  // no tensors yet
    return HookResult::kContinue;
  }
  if (loop.roots.empty() && TraceCache::on() && loop.kept.may_fit() && torch_is_plain()) read_traces(loop, nullptr, view.frame);
  if (!loop.roots.empty()) {
    counter.trace = &loop;
    bool entered = false;
    const HookResult result = travel(view, loop, view.frame, false, &entered);
    if (result != HookResult::kContinue || entered) return result;
    if (loop.waiting != nullptr) return HookResult::kContinue;
  }
  if (base::report_wanted()) torch_bridge->set_counting(true);  // in each thread
  if (!loop.tensors) {
    if (loop.waits > 0) {
      loop.waits--;
      return HookResult::kContinue;
    }
    // Does an iteration, or a call, run tensor operations? Count those of one.
    if (loop.function) {
      if (!is_hot(view, loop, false) || !vm::start_recording(view)) return HookResult::kContinue;
      begin_counting(view, loop, *torch_bridge, run_by_traces);
      probe = Probe{&loop, view.frame, 0};
      return HookResult::kReload;
    }
    if (!loop.probing) {
      if (!is_hot(view, loop, false)) return HookResult::kContinue;
      begin_counting(view, loop, *torch_bridge, run_by_traces);
      loop.probing = true;
      return HookResult::kContinue;
    }
    loop.probing = false;
    end_counting(loop, *torch_bridge, run_by_traces);
    if (!loop.tensors) {
      loop.penalty = loop.penalty == 0 ? base::heuristics().probe_wait : std::min(loop.penalty * 2, base::heuristics().probe_wait_max);
      counter.count = loop.penalty;  // look again later: what the loop does may change
      return HookResult::kContinue;
    }
  }
  return consider_root(view, loop);
}

vm::Hooks hooks;

HookResult at_hot_loop(vm::ThreadView& view, vm::HotCounter& counter) {
  if (reset_wanted) reset();
  if (runtime::own_work || !may_trace()) return HookResult::kContinue;
  if (vm::recording_thread() == view.tstate) {
    if (probe.loop != nullptr) return HookResult::kContinue;
    if (recorder != nullptr) {
      counter.count = 0;
      if (LoopState* const loop = state_of(counter)) loop->timing = false;
      return HookResult::kContinue;
    }
    if (skip.side != nullptr) skip.side->failures = INT_MAX;  // what is skipped has loops of its own
    stop_skip(view);
  }
  LoopState& loop = state_for(counter);
  loop.of_thread(view.tstate);
  end_counting_if_left(view, loop, torch_bridge);
  if (loop.frame != view.frame) {
    loop.frame = view.frame;
    loop.consecutive = loop.rounds = loop.run = 0;
    loop.forget_arrival();
  } else if (loop.arrived_at != arrivals && (loop.roots.empty() || loop.longest < base::heuristics().hot_step) && begins_anew(view, loop)) {  // a call's frame may lie where the last one's lay
    loop.rounds = 0;
    loop.probing = false;
  }
  loop.before = std::exchange(loop.arrived_at, ++arrivals);
  loop.arrived_before = std::exchange(loop.arrived_when, Clock::now());
  if (loop.rounds == 0) loop.run_began = loop.arrived_when;
  else loop.round_ms += std::chrono::duration<double, std::milli>(loop.arrived_when - loop.arrived_before).count();
  loop.arrived();
  if (trials::is_interpreted(view, loop)) {
    loop.forget_arrival();
    counter.count = trials::arrivals_to_pass(loop);
    loop.passes = counter.count > 0;
    if (loop.passes) counter.trace = nullptr;
    return HookResult::kContinue;
  }
  HookResult result = decide(view, counter, loop);
  if (loop.waiting == nullptr) loop.left_by_interpreter(result == HookResult::kContinue && counter.count == 0 && base::report_wanted());
  return result;
}

HookResult on_hot_loop(vm::ThreadView& view, vm::HotCounter& counter) {
  const HookResult result = at_hot_loop(view, counter);
  if (result == HookResult::kError) note_missing_error("a trace");
  settle();
  return result;
}

// Calls are counted from here on.
void count_calls() {
  hooks.call_limit = 1;
  vm::set_hooks(&hooks);
}

HookResult on_hot_call(vm::ThreadView& view, vm::HotCounter& counter) {
  if (reset_wanted) reset();
  if (runtime::own_work || vm::recording_thread() == view.tstate || torch_bridge == nullptr || !may_trace()) return HookResult::kContinue;
  const bool inner = !is_root_call(view);
  if (call_passes(view, counter, inner)) return HookResult::kContinue;
  counter.unit = vm::unit_of(counter.code, view.ip);
  LoopState& loop = state_for(counter);
  loop.function = true;
  loop.inner = inner;
  if (!loop.tensors && loop.waits > 0) {  // most functions have nothing to do with tensors: not asked at each call
    counter.count = std::exchange(loop.waits, 0);
    return HookResult::kContinue;
  }
  if (inner && loop.roots.empty() && (counter.count = calls_to_wait(view, loop)) > 0) return HookResult::kContinue;
  loop.arrived();
  const HookResult result = decide(view, counter, loop);
  counter.trace = loop.roots.empty() ? nullptr : &loop;
  if (inner && !loop.roots.empty() && !calls_pay(loop)) {
    counter.trace = nullptr;
    counter.count = base::heuristics().inner_call_asked << std::min(4 + loop.unpaid, 16);
  }
  settle();
  return result;
}

}  // namespace

void settle() {
  if (reset_wanted) reset();
  notice_collection();
  free_dropped(torch_bridge);
  if (is_quiet()) base::wake_for_events();
}

bool is_quiet() { return !runtime::own_work && running_traces() == 0 && vm::recording_thread() != PyThreadState_Get(); }

void reset() {
  reset_wanted = vm::recording_thread() != nullptr || runtime::own_works > 0;
  if (reset_wanted) return;
  std::vector<TraceGroup> dropped;  // traces own objects, whose ends may run Python code: when all is done
  for (const auto& [place, loop] : all_loops()) loop->forget(&dropped);
  vm::set_hooks(&hooks);            // all counters anew
  // A trace that runs now is left after its iteration.
  Py_AddPendingCall([](void*) { return 0; }, nullptr);
}

void install(const char* bridge_path) {
  runtime::helpers::suspended_generator = vm::suspended_generator;
  bridge_file.set_path(bridge_path);
  vm::counter_dies = [](vm::HotCounter& counter) { state_of(counter)->counter = nullptr; };
  hooks.hot_loop = on_hot_loop;
  hooks.hot_call = on_hot_call;
  hooks.record = on_record;
  hooks.event = on_event;
  hooks.loop_limit = 1;
  vm::set_hooks(&hooks);
  base::on_heuristics([] {
    if (torch_bridge != nullptr) torch_bridge->set_heuristics(base::heuristics());
  });
  base::on_report([](base::Report& r) {
    if (torch_bridge != nullptr) r.tensor_ops_total = torch_bridge->ops_counted() + r.tensor_ops_compiled;
  });
}

}  // namespace dynvm::tracer
