// What the tracer keeps of a loop, or of a function that is traced by itself, while the program runs: counts, traces, lessons. See manager.cpp for what
// is done with it.
#pragma once

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/report.h"
#include "tracer/clock.h"
#include "tracer/side.h"
#include "tracer/trace_cache.h"
#include "tracer/trace_group.h"
#include "tracer/trials.h"

namespace dynvm::tracer {

constexpr size_t kMostThreads = 64;
constexpr int kManyRounds = 1 << 20;  // more are not counted in one run

// What the arrivals of one thread have shown, one after the other.
struct Arrivals {
  _PyInterpreterFrame* frame = nullptr;  // of the last one, to count iterations of one run of the loop
  int consecutive = 0;
  int rounds = 0;                        // those of them that no arrival of a loop around this one has come before: of one run of the loop
  int run = 0;                           // the same, where a loop around this one that gets no trace counts too
  bool probing = false;                  // the operations of the iteration that has begun with the last one are being counted
  uint64_t probe_start = 0, probe_start_in_traces = 0, probe_start_in_backward = 0, probe_start_differentiated = 0;
};

struct LoopState : Arrivals {
  PyCodeObject* code = nullptr;
  int unit = 0;
  vm::HotCounter* counter = nullptr;     // null: its code is no more; neither it nor `code` is ever met again
  bool left_out = false;                 // --disable=trace: it gets no traces
  bool function = false;                 // no loop: a function that C, or a coroutine, calls; `unit` is its beginning
  Lessons lessons;
  TraceGroup roots;
  std::map<Place, SidePoint> sides;
  // Of a local variable, or a place that calls (-2 - its unit): what traces have assumed there, what it was last, how often it has changed in a row. Objects to compare only.
  struct Turns {
    std::set<const PyObject*> seen;
    const PyObject* now = nullptr;
    uint64_t arrival = 0;                // when that was seen, in `iterations`
    int changes = 0;
  };
  std::map<std::pair<PyCodeObject*, int>, Turns> turns;
  int num_sides = 0;
  std::map<int, int> parted;             // by a unit of its frame that calls: long side traces that begin inside
  Crowd crowd;
  int turned = 0;                        // times that a root trace gave way to the way that is usual
  int failures = 0;                      // operations that failed in its traces and not in the interpreter
  bool again = false;                    // one that gives way is there: the next arrival is to be recorded
  int overs = 0;                         // traces dropped because what they assumed had ended
  int changes = 0;                       // had changed, side traces too
  int recordings = 0;                    // begun, side traces too
  bool inner = false;                    // a function that Python code has called last
  // Of such a function: what its calls have run since no loop around it was to get a trace; calls that traces were there for, and what these ran, since that was last asked.
  int64_t settled_ops = 0, traced_ops = 0;
  int traced_calls = 0;
  int unpaid = 0;                        // times that this was too little
  int asked = 0;                         // times that a loop around it was still to get a trace
  double costliest_ms = 0;               // what one of them took at most
  bool before_inner = false;             // it has had a trace that ends before an inner loop
  double first_recorded_ms = 0, recorded_ms = 0, recording_ms = 0;  // when the first one, the last one began; what all have taken, with compilation
  TraceCache::Kept kept;                 // traces on disk that have not been entered yet
  int waits = 0;                         // arrivals still to let pass after an abort
  int penalty = 0;
  Around around;
  int lessons_in_row = 0;                // recordings that taught a lesson since the last one that came to its end
  bool tensors = false;
  // Threads that run the loop side by side arrive in turn, and none would ever be seen to go round.
  const PyThreadState* thread = nullptr; // whose arrivals these are
  std::map<const PyThreadState*, Arrivals> others;  // by thread: to compare only
  int64_t ops = 0;                       // tensor operations of one iteration
  bool whole = false;                    // no graph is left behind: the autograd engine ran some of them, or none was differentiated
  bool trains = false;                   // the engine did
  int longest = 0;                       // the most rounds that a run of it has been seen to go
  uint64_t arrived_at = 0, before = 0;   // the number of the last arrival among those of all loops, and of the one before
  int first_rounds = 0;                  // of runs, in a row, that were not recorded for a later one
  Clock::time_point arrived_when, arrived_before, run_began;  // when that was, the one before, and the first one of this run
  double round_ms = 0;                   // what all its rounds have taken, of a function the time since its first call
  bool dominates = false;                // its last run took most of an iteration of the loop around it, which is in the same frame
  Trial trial;
  bool passes = false;                   // arrivals are not looked at for a while (trials::arrivals_to_pass)
  // How long the interpreter takes for an iteration: where the report wants it, and where sizes wait for a trace.
  Clock::time_point arrival;             // the last one, where the interpreter went on by itself from there
  bool timing = false;
  double fastest_ms = 0;                 // 0: none measured
  SidePoint* left_at = nullptr;          // where the interpreter went on, since
  Clock::time_point left_when;
  TraceGroup* waiting = nullptr;         // the interpreter was left with sizes that a trace of this group is to be made for later

  // For the report, where it is wanted: arrivals at the header, iterations that began inside a trace.
  uint64_t iterations = 0;
  double began_ms = -1;
  base::LoopReport* entry = nullptr;     // once it has had a trace

  void begun() {
    iterations++;
    if (began_ms < 0) began_ms = base::ms_since_start();
    if (entry != nullptr) note_time();
  }
  // A trace that began at the header went round so often. in_iteration: it was left inside of one, not at the header, where one begins once more.
  void begun_inside(uint64_t rounds, bool in_iteration) {
    const uint64_t begun = rounds - (rounds > 0 && !in_iteration ? 1 : 0);
    iterations += begun;
    goes_on(begun);
    if (entry != nullptr) note_time();
  }
  void goes_on(uint64_t times) {
    for (int* count : {&rounds, &run}) *count = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(*count) + times, kManyRounds));
    longest = std::max(longest, run);
  }
  // It has a trace more.
  void settled() {
    if (entry == nullptr) {
      entry = &base::report().loops.emplace_back();
      entry->file = PyUnicode_AsUTF8(code->co_filename);
      entry->line = PyCode_Addr2Line(code, unit * 2);
      entry->function = PyUnicode_AsUTF8(code->co_qualname);
      entry->began_ms = began_ms;
    }
    entry->settled_ms = base::ms_since_start();
    entry->iterations = entry->settled_iterations = iterations;
  }
  void note_time() {
    entry->iterations = iterations;
    if (base::report_wanted()) entry->last_ms = base::ms_since_start();
  }

  GoneRound gone_round(bool inside = false) const { return {consecutive, function ? base::ms_since_start() - began_ms : round_ms, inside}; }
  bool has_tried() const { return recordings > 0 || !roots.empty(); }  // there is something to forget

  // All but what it is; its traces go to *dropped.
  void forget(std::vector<TraceGroup>* dropped) {
    dropped->push_back(std::exchange(roots, {}));
    for (auto& [place, side] : sides) {  // which stay where they are: one may be on its way
      dropped->push_back(std::exchange(side.group, {}));
      side = SidePoint{};
    }
    lessons = {};
    turns.clear();
    parted.clear();
    again = false;
    num_sides = turned = overs = changes = recordings = longest = first_rounds = waits = penalty = lessons_in_row = traced_calls = unpaid = asked = 0;
    crowd = {};
    kept = {};
    kept.asked = true;  // they are not to come back from the disk
    static_cast<Arrivals&>(*this) = {};
    others.clear();
    tensors = whole = trains = dominates = false;
    ops = settled_ops = traced_ops = 0;
    recording_ms = costliest_ms = fastest_ms = 0;
    before_inner = false;
    trial.reset();
    forget_arrival();
  }

  // An arrival of that thread follows.
  void of_thread(const PyThreadState* now) {
    if (now == thread) return;
    if (others.size() >= kMostThreads) others.clear();  // threads that are over
    if (thread != nullptr) others[thread] = *this;
    thread = now;
    const auto known = others.find(now);
    static_cast<Arrivals&>(*this) = known == others.end() ? Arrivals{} : known->second;
    forget_arrival();
  }
  bool goes_round(const _PyInterpreterFrame* in) const {
    const auto here = [&](const Arrivals& each) { return each.frame == in && each.consecutive > 0; };
    return here(*this) || std::any_of(others.begin(), others.end(), [&](const auto& each) { return here(each.second); });
  }

  void forget_arrival() {
    left_at = nullptr;
    timing = false;
    waiting = nullptr;
  }
  void left_by_interpreter(bool wanted) {
    timing = wanted;
    waiting = nullptr;
    if (wanted) arrival = Clock::now();
  }
  void left_at_side(SidePoint& side) {
    left_at = &side;
    left_when = Clock::now();
  }
  void left_with(TraceGroup& group) {
    left_by_interpreter(true);
    waiting = &group;
  }
  void arrived() {
    if (SidePoint* side = std::exchange(left_at, nullptr)) side->lost_ms += ms_since(left_when);
    if (!std::exchange(timing, false)) return;
    const double ms = ms_since(arrival);
    if (TraceGroup* group = std::exchange(waiting, nullptr)) {
      group->interpreted(ms);
      return;
    }
    if (fastest_ms == 0 || ms < fastest_ms) fastest_ms = ms;
  }
};

// All loops and functions that were ever hot; they stay where they are. With the GIL held, and not over anything that may run Python code.
const std::map<std::pair<PyCodeObject*, int>, std::unique_ptr<LoopState>>& all_loops();
inline LoopState* state_of(const vm::HotCounter& counter) { return static_cast<LoopState*>(counter.client[0]); }  // null: there is none yet
LoopState& state_for(vm::HotCounter& counter);  // there is one then

inline TraceGroup& group_of(LoopState& loop, SidePoint* side) { return side != nullptr ? side->group : loop.roots; }

}  // namespace dynvm::tracer
