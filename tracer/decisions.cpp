// See decisions.h.
#include "tracer/decisions.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <utility>

#include "runtime/base/heuristics.h"
#include "runtime/base/options.h"
#include "runtime/base/policy.h"
#include "runtime/base/report.h"
#include "runtime/base/switches.h"
#include "tracer/counting.h"
#include "tracer/penalties.h"
#include "tracer/trace_cache.h"
#include "tracer/trials.h"
#include "vm/objects.h"

namespace dynvm::tracer {

namespace {

constexpr double kMost = 0.7;          // of the time of an iteration of the outer loop
constexpr int kMostDoubled = 4;        // times that a function's calls wait for twice as many, while a loop around it may get a trace
constexpr uint64_t kSeen = 8;          // iterations after which a loop is known that goes round once in each run
constexpr int kRounds = 16;            // times as long a function waits that has a loop with traces of its own
constexpr uint64_t kUnrolledPart = 4;  // an unrolled loop may take one of so many parts of what a recording may have

// Of a function whose calls have been looked at; else null.
const LoopState* state_of_calls(PyCodeObject* code) {
  const vm::HotCounter* const counter = vm::call_counter(code);
  return counter != nullptr ? state_of(*counter) : nullptr;
}

std::string text_of(PyObject* object) {
  const char* text = PyUnicode_AsUTF8(object);
  if (text == nullptr) PyErr_Clear();
  return text != nullptr ? text : "?";
}

}  // namespace

int threshold(const LoopState& loop) {
  return base::options().hot > 0 ? static_cast<int>(base::options().hot) : loop.function ? base::heuristics().hot_call : base::heuristics().hot_loop;
}

// Do recordings of it take long?
static bool is_costly(const LoopState& loop) { return base::options().hot == 0 && base::policy() == nullptr && loop.costliest_ms >= base::heuristics().costly; }

// Do the recordings of all loops together take no more than their part of the process's time?
static bool process_within_budget() {
  const base::Heuristics& limits = base::heuristics();
  const ProcessRecordings& all = process_recordings();
  return all.ms <= limits.process_time + limits.process_share * (base::ms_since_start() - all.first_ms) / 100;
}

bool within_budget(const LoopState& loop) {
  const base::Heuristics& limits = base::heuristics();
  if (base::options().hot == 0 && base::policy() == nullptr && !process_within_budget()) return loop.recordings < limits.free_few;
  const double since = base::ms_since_start() - loop.first_recorded_ms;
  if (is_costly(loop) && !loop.roots.empty() && loop.recordings >= limits.free_costly) return loop.recording_ms <= limits.costly_share * since / 100;
  if (base::options().hot > 0 || loop.recordings < (loop.before_inner ? limits.free_before_inner : limits.free_recordings)) return true;
  return loop.recording_ms <= limits.recording_time + limits.recording_share * since / 100;
}

// Has the test found a loop around this one, in its frame or in one that called it? It is given that frame, the loop's counter, and its state, null where it has never arrived.
// *outermost: the last frame that was looked at.
template <typename Test>
static bool any_loop_around(const vm::ThreadView& view, const LoopState& loop, _PyInterpreterFrame** outermost, const Test& test) {
  const auto found = [&](_PyInterpreterFrame* frame, const vm::HotCounter* around) { return around != nullptr && test(frame, *around, state_of(*around)); };
  const vm::HotCounter* const around = vm::enclosing_loop(loop.code, loop.unit - 1);
  vm::Callers callers(view);
  bool is_found = around != loop.counter && found(view.frame, around);
  while (!is_found && callers.next()) {
    PyCodeObject* code = vm::FrameView::code(callers.frame);
    is_found = found(callers.frame, vm::enclosing_loop(code, vm::unit_of(code, callers.at)));
  }
  *outermost = callers.frame;
  return is_found;
}

// It waits, not only after one recording that may have been bad luck, or has had all recordings that it may have: nobody waits for its trace.
static bool has_failed(const LoopState& loop) { return (loop.waits > 0 && loop.penalty > base::heuristics().penalty_start) || !within_budget(loop); }

// Did the last run of the loop take most of an iteration of the one around it? One over the parameters of a model does not.
static bool took_most(const LoopState& loop, const LoopState& outer) {
  if (outer.arrived_before == Clock::time_point()) return false;
  return loop.arrived_when - loop.run_began > kMost * (outer.arrived_when - outer.arrived_before);
}

// Does the loop, where there is one, go round in this frame and has it arrived since that arrival?
static bool arrived_since(uint64_t arrival, const _PyInterpreterFrame* frame, const LoopState* outer) { return outer != nullptr && outer->frame == frame && outer->arrived_at > arrival; }

bool begins_anew(vm::ThreadView& view, LoopState& loop) {
  _PyInterpreterFrame* outermost = nullptr;
  return !loop.function && any_loop_around(view, loop, &outermost, [&](_PyInterpreterFrame* frame, const vm::HotCounter&, const LoopState* outer) {
    if (!arrived_since(loop.arrived_at, frame, outer)) return false;
    loop.run = 0;
    if (has_failed(*outer)) return false;
    loop.dominates = frame == view.frame && loop.rounds > 0 && took_most(loop, *outer);
    return true;
  });
}

bool waits_for_next_round(vm::ThreadView& view, LoopState& loop) {
  if (loop.function || loop.roots.empty() || loop.lessons_in_row > 0 || loop.longest < threshold(loop) || base::policy() != nullptr) return false;
  _PyInterpreterFrame* outermost = nullptr;
  const bool first = any_loop_around(view, loop, &outermost, [&](_PyInterpreterFrame* frame, const vm::HotCounter&, const LoopState* outer) { return arrived_since(loop.before, frame, outer); });
  if (first && loop.first_rounds < threshold(loop)) return ++loop.first_rounds, true;
  loop.first_rounds = 0;
  return false;
}

// Is an iteration of it a unit of work that leaves no graph behind, so that it gains nothing in a trace of the loop around it? It trains, or is most of what that loop does in the same frame.
// of: the loop, or a trace of it.
template <typename Of>
static bool is_step(const LoopState& loop, const Of& of, bool in_caller) { return of.trains || (!in_caller && of.whole && loop.dominates); }

// May a function be recorded by itself that Python code calls?
static bool may_be_root(PyCodeObject* code) {
  constexpr int kPassesOn = CO_VARARGS | CO_VARKEYWORDS;
  return (code->co_flags & kPassesOn) != kPassesOn && (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) == 0;
}

// With --hot all waits are shorter.
static int64_t deferred(int64_t operations) { return base::options().hot > 0 ? operations / base::heuristics().hot_defer_divisor : operations; }

// A loop in a calling frame gets no trace, so that a function that it calls may be recorded by itself, with all runs of this short loop: does it wait for that?
static bool function_first(vm::ThreadView& view, const LoopState& loop) {
  _PyInterpreterFrame *outermost = nullptr, *around = nullptr;
  const bool lost = any_loop_around(view, loop, &outermost, [&](_PyInterpreterFrame* frame, const vm::HotCounter&, const LoopState* outer) {
    around = frame;
    return outer != nullptr && (has_failed(*outer) || outer->trial.is_lost());
  });
  if (!lost || loop.longest >= base::heuristics().hot_step || static_cast<int64_t>(loop.iterations) * loop.ops >= 2 * deferred(base::heuristics().hot_defer_long)) return false;
  for (_PyInterpreterFrame* frame = view.frame; frame != around; frame = vm::FrameView::previous(frame)) {
    PyCodeObject* code = vm::FrameView::code(frame);
    if (!may_be_root(code)) continue;
    const LoopState* const function = state_of_calls(code);
    if (function == nullptr || (!has_failed(*function) && function->unpaid == 0)) return true;
  }
  return false;
}

bool outer_loop_first(vm::ThreadView& view, const LoopState& loop) {
  if (loop.function) return false;
  _PyInterpreterFrame* outermost = nullptr;
  const bool waits = any_loop_around(view, loop, &outermost, [&](_PyInterpreterFrame* frame, const vm::HotCounter& counter, const LoopState* outer) {
    if (counter.yields) return false;  // it gets no trace
    bool going_round = outer != nullptr && outer->goes_round(frame);
    if (outer != nullptr && has_failed(*outer)) return false;
    const bool untried = outer == nullptr || !outer->kept.asked;
    if (untried && TraceCache::has(counter.code, counter.unit)) going_round = true;
    if (outer != nullptr)
      for (const auto& trace : outer->roots.traces())
        if (!trace->compiled->ready()) return true;  // it is about to be there
    if (loop.rounds >= base::heuristics().hot_step && loop.ops > 1 && is_step(loop, loop, frame != view.frame)) return false;
    return static_cast<int64_t>(loop.consecutive) * loop.ops < deferred(going_round ? base::heuristics().hot_defer_long : base::heuristics().hot_defer);
  });
  if (waits || function_first(view, loop)) return true;
  const LoopState* const function = state_of_calls(vm::FrameView::code(outermost));
  if (function == nullptr || function->consecutive < 2) return false;  // called once so far
  if (function->waits > 0 || !function->roots.empty()) return false;
  return static_cast<int64_t>(loop.consecutive) * loop.ops < base::heuristics().hot_defer_long;
}

// Is a loop around this one going round that has no trace yet, but may get one with all of this in it?
static bool outer_loop_may_come(vm::ThreadView& view, const LoopState& loop) {
  _PyInterpreterFrame* outermost = nullptr;
  return !loop.function && any_loop_around(view, loop, &outermost, [&](_PyInterpreterFrame* frame, const vm::HotCounter& counter, const LoopState* outer) {
    if (counter.yields || outer == nullptr || !outer->goes_round(frame) || outer->waits > 0) return false;
    const auto& traces = outer->roots.traces();
    return std::none_of(traces.begin(), traces.end(), [](const auto& trace) { return trace->compiled->ready(); });
  });
}

const LoopState* loop_around(vm::ThreadView& view, const LoopState& loop, int rounds) {
  const LoopState* found = nullptr;
  _PyInterpreterFrame* outermost = nullptr;
  any_loop_around(view, loop, &outermost, [&](_PyInterpreterFrame* frame, const vm::HotCounter&, const LoopState* outer) {
    if (outer != nullptr && outer->frame == frame && outer->consecutive >= rounds) found = outer;
    return found != nullptr;
  });
  return found;
}

bool too_early(uint64_t insts, double times, const GoneRound& outer) {
  if (base::options().hot > 0 || base::policy() != nullptr) return false;
  return 1e-3 * static_cast<double>(insts) * base::heuristics().inst_price * times > outer.ms;
}

bool runs_long(const LoopState& loop, bool in_caller, const GoneRound& outer) {
  const base::Heuristics& limits = base::heuristics();
  return std::any_of(loop.roots.traces().begin(), loop.roots.traces().end(), [&](const auto& root) {
    if (root->compiled->runs() == 0) return false;
    const uint64_t rounds = root->compiled->iterations() / root->compiled->runs(), of_pass = static_cast<uint64_t>(root->compiled->rounds());
    const bool light = static_cast<uint64_t>(root->compiled->tensor_ops()) <= of_pass;
    const bool steps = !light && is_step(loop, *root, in_caller);
    if (rounds >= static_cast<uint64_t>(light ? limits.max_unroll_light : steps ? limits.hot_step : limits.long_inner)) return true;
    // Left now and then it is long all the same. Unrolling a step costs much and saves little: a shorter one, or one that is always left, is unrolled by a loop that goes round often.
    if (steps && loop.longest >= limits.hot_step && rounds >= static_cast<uint64_t>(limits.hot_loop)) return true;
    const bool whole = !light && (root->trains || (!in_caller && root->whole));
    if (whole && loop.longest >= threshold(loop) && outer.arrivals < std::min(limits.hot_step, 4 * threshold(loop))) return true;
    const uint64_t insts = root->compiled->ir().insts.size(), longest = static_cast<uint64_t>(std::min(loop.longest, limits.long_inner));  // also of traces that are left soon
    return (rounds > 1 && rounds / of_pass * insts > static_cast<uint64_t>(limits.max_insts) / kUnrolledPart) || (longest > 1 && too_early(longest * insts / of_pass, limits.unroll_pays, outer));
  });
}

std::set<int> long_loops(PyCodeObject* code, bool in_caller, const GoneRound& outer) {
  std::set<int> headers;
  for (const vm::HotCounter& counter : vm::loop_counters(code))
    if (const LoopState* const loop = state_of(counter); loop != nullptr && runs_long(*loop, in_caller, outer)) headers.insert(loop->unit);
  return headers;
}

static uint64_t runs_of(const LoopState& loop) {
  uint64_t runs = 0;
  for (const auto& root : loop.roots.traces()) runs += root->compiled->runs();
  return runs;
}

void gave_way_to(Around& place, const LoopState& outer, const LoopState& inner) { place = {inner.code, inner.unit, runs_of(inner), counted_functions(), outer.code != inner.code}; }

bool would_give_way(Around& place, const GoneRound& outer) {
  if (place.code == nullptr) return false;
  const auto inner = all_loops().find({place.code, place.unit});
  const uint64_t runs = inner != all_loops().end() ? runs_of(*inner->second) : 0;
  const bool counted = std::exchange(place.counted, counted_functions()) != counted_functions();
  const bool ran = runs > std::exchange(place.runs, runs) || counted;
  if (inner == all_loops().end() || !ran || !runs_long(*inner->second, place.in_caller, outer)) place = {};
  return place.code != nullptr && base::policy() == nullptr;
}

bool is_root_call(const vm::ThreadView& view) {
  const _PyInterpreterFrame* frame = view.frame;
  if (vm::FrameView::generator(view.frame) != nullptr) return false;
  while (frame != view.entry_frame) {
    frame = vm::FrameView::previous(frame);
    if (vm::FrameView::generator(const_cast<_PyInterpreterFrame*>(frame)) == nullptr) return false;
  }
  return true;
}

bool call_passes(vm::ThreadView& view, vm::HotCounter& counter, bool inner) {
  if (base::left_out(base::Part::kFunctions) || (inner && !may_be_root(counter.code))) counter.count = INT_MAX;
  else if (inner && std::exchange(counter.client[1], &counter) == nullptr) counter.count = base::heuristics().inner_call_wait;  // most functions are called a few times
  else return !inner && trials::is_inside_interpreted(view);
  return true;
}

int calls_to_wait(vm::ThreadView& view, LoopState& loop) {
  const base::Heuristics& limits = base::heuristics();
  if (trials::is_inside_interpreted(view, true)) return 1;
  if (!long_loops(loop.code, true, {loop.consecutive, HUGE_VAL}).empty()) return limits.inner_call_wait * kRounds;  // its trace would end there
  _PyInterpreterFrame* outermost = nullptr;
  const bool may_come = any_loop_around(view, loop, &outermost, [&](_PyInterpreterFrame* frame, const vm::HotCounter& counter, const LoopState* outer) {
    return !counter.yields && outer != nullptr && outer->goes_round(frame) && outer->roots.empty() && outer->waits == 0 && !outer->trial.is_lost() && within_budget(*outer) && (outer->tensors || outer->penalty == 0);
  });
  if (may_come) return limits.inner_call_wait << std::min(loop.asked++, kMostDoubled);
  if (!loop.tensors) return 0;  // they are to be counted
  if (loop.ops < limits.inner_call_ops) {
    loop.tensors = false;
    wait_longer(loop);
    return std::exchange(loop.waits, 0);
  }
  const int64_t missing = deferred(limits.hot_defer_long) - loop.settled_ops;
  if (missing <= 0) return 0;
  const int64_t calls = (missing + loop.ops - 1) / loop.ops;
  loop.settled_ops += calls * loop.ops;
  return static_cast<int>(std::min<int64_t>(calls, INT_MAX));
}

bool calls_pay(LoopState& loop) {
  if (++loop.traced_calls < base::heuristics().inner_call_asked) return true;
  const bool pay = 2 * std::exchange(loop.traced_ops, 0) >= loop.ops * std::exchange(loop.traced_calls, 0);
  if (!pay) loop.unpaid++;
  return pay;
}

bool is_hot(vm::ThreadView& view, const LoopState& loop, bool counted) {
  const bool ahead = !counted && !loop.function;  // the next iteration is the one whose operations are counted
  const int arrivals = loop.recordings == 0 ? loop.rounds : loop.consecutive;
  const bool goes_round = loop.function || loop.longest > 1 || loop.iterations < kSeen;  // else each arrival is its end
  const bool usual = goes_round && arrivals + (ahead ? 1 : 0) >= threshold(loop);
  return base::decide(base::Decision::kRecord, usual && !(base::policy() != nullptr && counted && outer_loop_first(view, loop)), [&] {
    return base::Facts{{"file", text_of(loop.code->co_filename)},
                       {"line", int64_t{PyCode_Addr2Line(loop.code, loop.unit * 2)}},
                       {"name", text_of(loop.code->co_qualname)},
                       {"kind", std::string(loop.function ? "function" : "loop")},
                       {"arrivals", int64_t{arrivals}},
                       {"threshold", int64_t{threshold(loop)}},
                       {"counted", counted},
                       {"operations", loop.ops},
                       {"outer_first", outer_loop_first(view, loop)},
                       {"traces", static_cast<int64_t>(loop.roots.recorded())}};
  });
}

// Has the interpreter taken as long from there as a recording takes? A branch that comes seldom in a short program is not worth a long one.
static bool is_worth(const LoopState& loop, const SidePoint& side) { return !is_costly(loop) || side.lost_ms >= loop.costliest_ms; }

bool meets_behind(const LoopState& loop, const std::vector<LiveFrame>& frames) {
  const auto parted = frames.size() < 2 ? loop.parted.end() : loop.parted.find(vm::unit_of(loop.code, frames[0].at));
  return parted != loop.parted.end() && parted->second >= base::heuristics().max_parted;
}

void note_parted(LoopState& loop, const std::vector<LiveFrame>& frames) {
  if (frames.size() >= 2 && is_costly(loop)) loop.parted[vm::unit_of(loop.code, frames[0].at)]++;
}

bool is_hot(vm::ThreadView& view, const LoopState& loop, const SidePoint& side, bool main_path) {
  int hot = side.by_sizes ? base::heuristics().hot_size_exit : base::heuristics().hot_exit;
  if (base::options().hot > 0) hot = std::min(threshold(loop), hot);
  else if (!side.by_sizes && side.arrivals >= hot && outer_loop_may_come(view, loop)) hot = base::heuristics().hot_exit_inner;
  if (main_path) hot = 1;
  else if (!is_worth(loop, side)) hot = INT_MAX;
  if (side.waits > 0) return side.arrivals >= hot;  // each arrival then shortens the wait
  return base::decide(base::Decision::kSide, side.arrivals >= hot, [&] {
    PyCodeObject* code = vm::FrameView::code(view.frame);
    return base::Facts{{"file", text_of(code->co_filename)},
                       {"line", int64_t{PyCode_Addr2Line(code, vm::lasti_of(code, view.ip) * 2)}},
                       {"name", text_of(code->co_qualname)},
                       {"arrivals", int64_t{side.arrivals}},
                       {"threshold", int64_t{hot}},
                       {"by_sizes", side.by_sizes},
                       {"main_path", main_path},
                       {"traces_here", static_cast<int64_t>(side.group.recorded())},
                       {"side_traces", int64_t{loop.num_sides}}};
  });
}

bool went_wrong_way(LoopState& loop, const runtime::CompiledTrace& trace, ir::Ref guard) {
  const uint64_t here = trace.exits(guard), complete = trace.iterations() / static_cast<uint64_t>(trace.rounds()) + trace.runs() - trace.total_exits();  // a trace that is cut has no iterations
  const base::Heuristics& limits = base::heuristics();
  if (here < static_cast<uint64_t>(limits.wrong_way) << std::min(loop.turned, 8) || here <= static_cast<uint64_t>(limits.wrong_way_runs) * complete ||
      here * 100 < trace.total_exits() * static_cast<uint64_t>(limits.wrong_way_share))
    return false;
  loop.turned++;
  return true;
}

}  // namespace dynvm::tracer
