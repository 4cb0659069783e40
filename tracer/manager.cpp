// See manager.h. The policy in short (numbers: heuristics.def):
//  - each arrival of a loop at its header is seen until the loop is classified; a loop that runs tensor operations is recorded after
//    hot_loop iterations in one frame, any other is left to the interpreter;
//  - the outermost loop is preferred: while a calling frame is inside a loop too, an inner loop waits;
//  - an abort makes the loop wait, twice as long each time; lessons (tracer/recorder.h) are kept, so the next recording does better;
//  - an exit that teaches a lesson twice drops its trace; other exits that get hot grow a side trace (side.cpp).
#include "tracer/manager.h"

#include <dlfcn.h>

#include <chrono>
#include <climits>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "codegen/parallel.h"
#include "runtime/base/dump.h"
#include "runtime/base/log.h"
#include "runtime/base/report.h"
#include "tracer/compile.h"
#include "tracer/exits.h"
#include "tracer/heuristics.h"
#include "tracer/recorder.h"
#include "vm/objects.h"

namespace dynvm::tracer {

using base::options;
using base::report;
using vm::HookResult;

namespace {

using Clock = std::chrono::steady_clock;

struct LoopState {
  PyCodeObject* code = nullptr;
  int unit = 0;
  Lessons lessons;
  std::vector<std::unique_ptr<LoopTrace>> roots;
  _PyInterpreterFrame* frame = nullptr;  // of the last arrival, to count iterations of one run of the loop
  int consecutive = 0;
  int waits = 0;                         // arrivals still to let pass after an abort
  int penalty = 0;
  bool probing = false;
  bool tensors = false;
  uint64_t probe_start = 0;
  int64_t ops = 0;                       // tensor operations of one iteration
  // Only where the report wants it: how long the interpreter takes for an iteration.
  Clock::time_point arrival;             // the last one, where the interpreter went on by itself from there
  bool timing = false;
  double fastest_ms = 0;                 // 0: none measured

  void left_by_interpreter(bool wanted) {
    timing = wanted;
    if (wanted) arrival = Clock::now();
  }
  void arrived() {
    if (!std::exchange(timing, false)) return;
    double ms = std::chrono::duration<double, std::milli>(Clock::now() - arrival).count();
    if (fastest_ms == 0 || ms < fastest_ms) fastest_ms = ms;
  }
};

// Never destroyed: traces own Python objects, and static destructors run after Python has gone.
auto& loops = *new std::map<std::pair<PyCodeObject*, int>, std::unique_ptr<LoopState>>;
Recorder* recorder = nullptr;
LoopState* recording_loop = nullptr;
bridge::Bridge* torch_bridge = nullptr;
bool bridge_failed = false;
std::string bridge_file;
int next_trace_id = 1;

LoopState& state_of(vm::HotCounter& counter) {
  if (counter.client[0] == nullptr) {
    // A counter lives as long as its code. What is there already belongs to a code that has died and left its address to this one.
    auto state = std::make_unique<LoopState>();
    state->code = counter.code;
    state->unit = counter.unit;
    counter.client[0] = state.get();
    std::swap(loops[{counter.code, counter.unit}], state);
  }
  return *static_cast<LoopState*>(counter.client[0]);
}

// A loop that runs long in a trace of its own: an outer trace should not unroll it.
bool has_trace(PyCodeObject* code, int unit) {
  auto found = loops.find({code, unit});
  if (found == loops.end()) return false;
  for (auto& root : found->second->roots)
    if (root->compiled->runs() > 0 && root->compiled->iterations() / root->compiled->runs() >= static_cast<uint64_t>(heuristics().long_inner)) return true;
  return false;
}

// The bridge, loaded once torch has been imported completely.
bridge::Bridge* bridge_now() {
  if (torch_bridge != nullptr || bridge_failed || bridge_file.empty()) return torch_bridge;
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* torch = PyDict_GetItemString(modules, "torch");
  if (torch == nullptr || !PyObject_HasAttrString(torch, "compile") || !PyObject_HasAttrString(torch, "nn")) return nullptr;
  void* library = dlopen(bridge_file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    bridge_failed = true;
    report().notes["torch bridge"] = dlerror();
    return nullptr;
  }
  auto create = reinterpret_cast<bridge::CreateBridge>(dlsym(library, "dynvm_torch_bridge"));
  torch_bridge = create ? create(bridge::kBridgeVersion) : nullptr;
  if (torch_bridge == nullptr) {
    bridge_failed = true;
    PyObject *type = nullptr, *value = nullptr, *tb = nullptr;
    PyErr_Fetch(&type, &value, &tb);
    PyObject* text = value ? PyObject_Str(value) : nullptr;
    report().notes["torch bridge"] = text ? PyUnicode_AsUTF8(text) : "refused";
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(tb);
    return nullptr;
  }
  if (base::report_wanted()) torch_bridge->set_counting(true);
  codegen::set_parallel_for(torch_bridge->parallel_for());
  return torch_bridge;
}

void wait_longer(LoopState& loop) {
  loop.penalty = loop.penalty == 0 ? heuristics().penalty_start : std::min(loop.penalty * 2, heuristics().penalty_max);
  loop.waits = loop.penalty;
}

void penalise(LoopState& loop, Abort reason, const std::string& detail) {
  report().aborts[abort_name(reason)]++;
  DYNVM_LOG(kAbort, "{}:{} {} {}", PyUnicode_AsUTF8(loop.code->co_filename), PyCode_Addr2Line(loop.code, loop.unit * 2), abort_name(reason), detail);
  if (reason == Abort::k_dict_changes) {  // a lesson, not a failure
    loop.waits = 0;
    return;
  }
  wait_longer(loop);
}

// Should an inner loop wait for a loop in a calling frame?
bool outer_loop_first(vm::ThreadView& view, const LoopState& loop) {
  _PyInterpreterFrame* frame = view.frame;
  vm::Continuation continuation;
  const vm::Inst* at = nullptr;
  while (vm::caller_of(view, frame, &continuation, &at)) {
    frame = vm::FrameView::previous(frame);
    PyCodeObject* code = vm::FrameView::code(frame);
    int header = vm::enclosing_loop(code, vm::unit_of(code, at));
    if (header < 0) continue;
    auto outer = loops.find({code, header});
    bool going_round = outer != loops.end() && outer->second->frame == frame && outer->second->consecutive > 0;
    if (outer != loops.end() && outer->second->waits > 0) continue;  // it has been tried
    int limit = going_round ? heuristics().hot_defer_long : heuristics().hot_defer;
    if (static_cast<int64_t>(loop.consecutive) * loop.ops < limit) return true;
  }
  return false;
}

void forget_recorder() {
  delete recorder;
  recorder = nullptr;
  recording_loop = nullptr;
}

// Compiles what has been recorded; true when the loop has a new trace.
bool finish_recording() {
  LoopState& loop = *recording_loop;
  std::unique_ptr<Recorder> done(recorder);
  recorder = nullptr;
  recording_loop = nullptr;
  if (done->abort_reason() != Abort::kNone) {
    penalise(loop, done->abort_reason(), done->abort_detail());
    return false;
  }
  codegen::set_num_threads(torch_bridge->num_threads());
  Recording recording = done->take();
  done.reset();
  report().record_ms += recording.ms;
  std::string error;
  Abort reason = Abort::kNone;
  std::unique_ptr<LoopTrace> trace = compile(std::move(recording), torch_bridge, loop.code, loop.unit, "loop", &reason, &error);
  if (trace == nullptr) {
    penalise(loop, reason, error);
    return false;
  }
  loop.penalty = 0;
  trace->entry->interpreted_ms = loop.fastest_ms;
  loop.roots.push_back(std::move(trace));
  return true;
}

HookResult run_traces(vm::ThreadView& view, LoopState& loop, bool* entered);

HookResult on_record(vm::ThreadView& view) {
  HookResult result = recorder->step(view);
  if (!recorder->done()) return result;
  vm::stop_recording(view);
  LoopState& loop = *recording_loop;
  bool compiled = finish_recording();
  if (compiled && result != HookResult::kError) {
    bool entered = false;
    return run_traces(view, loop, &entered);
  }
  return result == HookResult::kContinue ? HookResult::kReload : result;
}

void on_event(vm::ThreadView& view, const vm::EventInfo& info) {
  if (recorder == nullptr) return;
  recorder->on_event(view, info);
  if (info.event == vm::Event::kActivationEnd || info.event == vm::Event::kHandover) {
    LoopState& loop = *recording_loop;
    penalise(loop, recorder->abort_reason(), recorder->abort_detail());
    forget_recorder();
  }
}

// What a failed guard says about the assumptions that were made.
bool learn(LoopState& loop, const LoopTrace& trace, ir::Ref inst_ref) {
  const ir::Trace& ir = trace.compiled->ir();
  if (inst_ref >= ir.insts.size()) return false;
  const ir::Inst& inst = ir.insts[inst_ref];
  if (inst.op == ir::Op::k_guard_dict_version) {
    const ir::Inst& dict = ir.insts[ir.arg(inst, 0)];
    return dict.op == ir::Op::k_const_obj && loop.lessons.changing_dicts.insert(static_cast<PyObject*>(ir.objects[dict.imm].pointer)).second;
  }
  bool sited = inst.op == ir::Op::k_guard_is || inst.op == ir::Op::k_guard_list_items;
  if (!sited || inst.imm < 0 || inst.imm >= static_cast<int64_t>(trace.sites.size())) return false;
  const Site& site = trace.sites[inst.imm];
  switch (site.kind) {
    case Site::kSlot: return loop.lessons.changing_slots.insert({reinterpret_cast<PyCodeObject*>(site.a), site.index}).second;
    case Site::kDictItem: return loop.lessons.changing_items.insert({site.a, site.b}).second;
    case Site::kList: return loop.lessons.changing_lists.insert(site.a).second;
    case Site::kValue: return loop.lessons.changing_values.insert({reinterpret_cast<PyCodeObject*>(site.a), site.index}).second;
  }
  return false;
}

// Runs the loop's traces from its header until one leaves with the interpreter's state elsewhere, or none can be entered.
HookResult run_traces(vm::ThreadView& view, LoopState& loop, bool* entered) {
  for (int attempt = 0; attempt < 1000; attempt++) {
    bool again = false;
    for (size_t i = 0; i < loop.roots.size(); i++) {
      LoopTrace& trace = *loop.roots[i];
      LeaveResult left = run_and_leave(view, trace);
      if (left.iterations > 0) *entered = true;
      switch (left.kind) {
        case LeaveResult::kNotEntered:  // an entry guard failed; nothing has happened
          if (left.iterations > 0) again = true;
          if (learn(loop, trace, left.inst)) trace.lessons++;
          if (trace.lessons > 0 && ++trace.entry_failures >= 2) {
            DYNVM_LOG(kTrace, "trace {} dropped: an assumption changed", trace.id);
            loop.roots.erase(loop.roots.begin() + static_cast<ptrdiff_t>(i));
            i--;
            loop.consecutive = heuristics().hot_loop;  // record again at once
          }
          break;
        case LeaveResult::kBreak:
          // Signals, the GIL, pending calls: seen to here, so that the trace can go on.
          *entered = true;
          if (vm::handle_pending(view.tstate) < 0) return HookResult::kError;
          again = true;
          break;
        case LeaveResult::kLeft:
          *entered = true;
          trace.fruitless = left.iterations > 0 ? 0 : trace.fruitless + 1;
          if (learn(loop, trace, left.inst)) {
            loop.roots.erase(loop.roots.begin() + static_cast<ptrdiff_t>(i));
            loop.consecutive = heuristics().hot_loop;
          } else if (trace.fruitless > heuristics().max_fruitless) {
            DYNVM_LOG(kTrace, "trace {} dropped: it never completes an iteration", trace.id);
            loop.roots.erase(loop.roots.begin() + static_cast<ptrdiff_t>(i));
            wait_longer(loop);
          }
          return HookResult::kReload;
        case LeaveResult::kRaised: *entered = true; return HookResult::kError;
      }
      if (again) break;
    }
    if (!again) break;
  }
  return *entered ? HookResult::kReload : HookResult::kContinue;
}

// What is to be done at an arrival that no recording is going on at.
HookResult decide(vm::ThreadView& view, vm::HotCounter& counter, LoopState& loop) {
  counter.count = 0;  // each arrival, until decided otherwise
  counter.trace = loop.roots.empty() ? nullptr : &loop;
  loop.consecutive++;
  bool entered = false;
  HookResult result = HookResult::kContinue;
  if (!loop.roots.empty()) {
    result = run_traces(view, loop, &entered);
    if (result == HookResult::kError || entered) return result;
  }
  if (static_cast<int>(loop.roots.size()) >= heuristics().max_roots) return HookResult::kContinue;
  if (loop.waits > 0) {
    loop.waits--;
    return HookResult::kContinue;
  }
  bridge::Bridge* bridge = bridge_now();
  if (bridge == nullptr) {
    counter.count = bridge_failed || bridge_file.empty() ? INT_MAX : 300;  // no tensors yet
    return HookResult::kContinue;
  }
  int threshold = options().hot > 0 ? static_cast<int>(options().hot) : heuristics().hot_loop;
  if (!loop.tensors) {
    // Does an iteration run tensor operations? Count one.
    if (!loop.probing) {
      if (loop.consecutive + 1 < threshold) return HookResult::kContinue;
      bridge->set_counting(true);
      loop.probe_start = bridge->ops_counted();
      loop.probing = true;
      return HookResult::kContinue;
    }
    loop.probing = false;
    bool counting_stays = base::report_wanted();
    if (!counting_stays) bridge->set_counting(false);
    loop.ops = static_cast<int64_t>(bridge->ops_counted() - loop.probe_start);
    if (loop.ops < heuristics().min_tensor_ops) {
      loop.penalty = loop.penalty == 0 ? 64 : std::min(loop.penalty * 2, 65536);
      counter.count = loop.penalty;  // look again later: what the loop does may change
      return HookResult::kContinue;
    }
    loop.tensors = true;
  }
  if (loop.consecutive < threshold) return HookResult::kContinue;
  if (options().hot == 0 && outer_loop_first(view, loop)) return HookResult::kContinue;
  if (vm::FrameView::generator(view.frame) != nullptr) {
    penalise(loop, Abort::k_generator_frame, "");
    return HookResult::kContinue;
  }
  if (!vm::start_recording(view)) return HookResult::kContinue;
  recording_loop = &loop;
  recorder = new Recorder(view, bridge, loop.lessons, next_trace_id++);
  recorder->has_trace = has_trace;
  DYNVM_LOG(kTrace, "recording {}:{}", PyUnicode_AsUTF8(loop.code->co_filename), PyCode_Addr2Line(loop.code, loop.unit * 2));
  return HookResult::kReload;
}

HookResult on_hot_loop(vm::ThreadView& view, vm::HotCounter& counter) {
  if (recorder != nullptr) {
    counter.count = 0;
    if (counter.client[0] != nullptr) static_cast<LoopState*>(counter.client[0])->timing = false;
    return HookResult::kContinue;
  }
  LoopState& loop = state_of(counter);
  if (loop.frame != view.frame) {
    loop.frame = view.frame;
    loop.consecutive = 0;
    loop.timing = false;
  }
  loop.arrived();
  HookResult result = decide(view, counter, loop);
  loop.left_by_interpreter(result == HookResult::kContinue && counter.count == 0 && base::report_wanted());
  return result;
}

vm::Hooks hooks;

}  // namespace

void install(const char* bridge_path) {
  bridge_file = bridge_path ? bridge_path : "";
  hooks.hot_loop = on_hot_loop;
  hooks.record = on_record;
  hooks.event = on_event;
  hooks.loop_limit = 1;
  vm::set_hooks(&hooks);
  base::on_report([](base::Report& r) {
    if (torch_bridge != nullptr) r.tensor_ops_total = torch_bridge->ops_counted() + r.tensor_ops_compiled;
  });
}

}  // namespace dynvm::tracer
