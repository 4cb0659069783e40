// See trials.h.
#include "tracer/trials.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "runtime/base/events.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/base/policy.h"
#include "runtime/base/report.h"
#include "tracer/decisions.h"
#include "tracer/loop_state.h"
#include "tracer/penalties.h"
#include "vm/vm.h"

namespace dynvm::tracer {

constexpr int kPass = 128;  // arrivals

// What is shared by all loops' trials.
class Trials {
 public:
  bool is_interpreted(vm::ThreadView& view, LoopState& loop, bool comes_again);
  bool is_inside(vm::ThreadView& view, int unit);
  int arrivals_to_pass(const LoopState& loop) const { return interpreted_.loop == &loop ? 0 : kPass; }
  bool is_measured() const { return interpreted_.loop != nullptr && &interpreted_.loop->trial == on_trial_; }
  void forget(const Trial* trial);

  uint64_t recorded = 0, entered = 0;
  bool device = false;

 private:
  bool may_begin(vm::ThreadView& view, LoopState& loop);
  void advance(const vm::ThreadView& view, LoopState& loop);
  void decide(LoopState& loop);
  static bool is_quiet(const LoopState& loop);

  Trial* on_trial_ = nullptr;
  int refused_ = 0;                        // arrivals of other loops that could have begun a trial meanwhile
  // The iteration that is the interpreter's, until the loop's next arrival.
  struct {
    const LoopState* loop = nullptr;       // null: none is
    const PyThreadState* thread = nullptr;
    _PyInterpreterFrame* frame = nullptr;
    bool comes_again = false;
  } interpreted_;
};

namespace {

constexpr int kAbandoned = 32;             // arrivals of others after which a trial that does not go on is given up
constexpr double kFar = 0.8;               // part of the interpreter's time from which two pairs of blocks tell all, where each iteration of theirs was faster
constexpr double kClear = 0.5;             // and from which the first does: what disturbs a block rarely doubles its time
auto& all = *new Trials;

bool possible() {
  static const bool allowed = base::options().hot == 0 && base::policy() == nullptr && base::options().stress.empty();
  return allowed && base::heuristics().trial_after > 0 && !all.device;
}

bool is_lost(double with, double without) { return 100 * without < base::heuristics().trial_part * with; }

// What lies inside of an iteration that has traces again is to be looked at at once.
void look_at_all() {
  for (const auto& [place, each] : all_loops())
    if (std::exchange(each->passes, false) && each->counter != nullptr) each->counter->count = 0;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void Trial::reset() {
  all.forget(this);
  interpreted_ = measuring_ = false;
  made_ = active_ = disturbed_ = 0;
  outer_ = nullptr;
  next_ = outer_iterations_ = asked_ = quiet_since_ = recorded_ = entered_ = begun_ = since_iterations_ = since_recorded_ = 0;
  frame_ = nullptr;
  blocks_.clear();
}

void Trials::forget(const Trial* trial) {
  if (on_trial_ == trial) on_trial_ = nullptr;
  if (interpreted_.loop != nullptr && &interpreted_.loop->trial == trial) interpreted_ = {};
}

bool Trials::is_quiet(const LoopState& loop) { return loop.iterations - loop.trial.quiet_since_ >= static_cast<uint64_t>(base::heuristics().trial_quiet); }

// Is code that runs now, at this unit of the view's frame, inside of the iteration that is the interpreter's? That one is over when it is not.
bool Trials::is_inside(vm::ThreadView& view, int unit) {
  if (interpreted_.loop == nullptr || interpreted_.thread != view.tstate) return false;
  const bool inside = interpreted_.loop->counter != nullptr && vm::is_inside(view, unit, *interpreted_.loop->counter, interpreted_.frame);
  if (!inside) interpreted_ = {};
  return inside;
}

bool Trials::may_begin(vm::ThreadView& view, LoopState& loop) {
  Trial& trial = loop.trial;
  const uint64_t after = std::max<uint64_t>(trial.next_, static_cast<uint64_t>(base::heuristics().trial_after));
  if (loop.iterations < after || loop.consecutive < base::heuristics().trial_rounds) return false;
  if (!trial.interpreted_ && trial.active_ < base::heuristics().trial_block) return false;  // nothing of it is traced
  if (on_trial_ != nullptr && ++refused_ < kAbandoned) return false;
  // An inner loop that goes round only a few times in each iteration of another is measured with that one: what it costs to leave its traces would not be seen here.
  const LoopState* outer = loop_around(view, loop, base::heuristics().trial_rounds / 4);
  if (outer == nullptr || (trial.outer_ == outer && (outer->iterations - trial.outer_iterations_) * static_cast<uint64_t>(base::heuristics().trial_rounds) <= loop.iterations - trial.asked_)) return true;
  trial.outer_ = outer;
  trial.outer_iterations_ = outer->iterations;
  trial.asked_ = loop.iterations;
  trial.next_ = loop.iterations + static_cast<uint64_t>(base::heuristics().trial_after);
  return false;
}

// The loop on trial has arrived.
void Trials::advance(const vm::ThreadView& view, LoopState& loop) {
  Trial& trial = loop.trial;
  refused_ = 0;
  if (trial.blocks_.empty() && !is_quiet(loop) && loop.iterations - trial.begun_ < static_cast<uint64_t>(base::heuristics().trial_patience)) return;
  const bool same = trial.frame_ == view.frame;
  trial.frame_ = view.frame;
  const Clock::time_point before = std::exchange(trial.arrived_, Clock::now());
  const uint64_t passed = loop.iterations - std::exchange(trial.arrived_iterations_, loop.iterations);
  if (!same || !trial.measuring_) {
    trial.measuring_ = same;
    trial.since_ = trial.arrived_;
    trial.since_iterations_ = loop.iterations;
    trial.since_recorded_ = recorded;
    return;
  }
  if (trial.since_recorded_ == recorded) {
    const double each = std::chrono::duration<double, std::milli>(trial.arrived_ - before).count() / static_cast<double>(std::max<uint64_t>(passed, 1));
    if (trial.blocks_.size() % 2 == 0) trial.slowest_ = std::max(trial.slowest_, each);
    else trial.fastest_ = std::min(trial.fastest_, each);
  }
  const uint64_t rounds = loop.iterations - trial.since_iterations_;
  if (rounds < static_cast<uint64_t>(base::heuristics().trial_block)) return;
  // What recordings cost has a budget of its own.
  if (trial.since_recorded_ != recorded && ++trial.disturbed_ * base::heuristics().trial_block <= base::heuristics().trial_patience) {
    trial.measuring_ = false;
    return;
  }
  trial.blocks_.push_back(ms_since(trial.since_) / static_cast<double>(rounds));
  trial.measuring_ = false;
  look_at_all();
  if (trial.blocks_.size() % 2 == 0) decide(loop);
}

// A pair of blocks more: is it known what is faster?
void Trials::decide(LoopState& loop) {
  Trial& trial = loop.trial;
  const size_t pairs = trial.blocks_.size() / 2;
  size_t lost = 0, far = 0;                // pairs in which the interpreter is faster; in which it is much slower
  std::vector<double> with, without;
  for (size_t i = 0; i < pairs; i++) {
    with.push_back(trial.blocks_[2 * i]);
    without.push_back(trial.blocks_[2 * i + 1]);
    lost += is_lost(with.back(), without.back());
    far += with.back() < without.back() * kFar;
  }
  const auto enough = static_cast<size_t>(base::heuristics().trial_pairs);
  const double ratio = median(with) / median(without);
  // Where iterations differ, few of them tell nothing.
  if (lost == 0 && trial.slowest_ < trial.fastest_ && (ratio < kClear || (pairs >= 2 && far == pairs))) trial.interpreted_ = false;
  else if (pairs < enough) return;
  else if (5 * lost >= 4 * pairs) trial.interpreted_ = true;
  else if (5 * lost <= 2 * pairs) trial.interpreted_ = false;
  else if (pairs < 3 * enough) return;
  else trial.interpreted_ = is_lost(ratio, 1);
  trial.made_++;
  // What the trial has cost: iterations the slower way. A hundred times of that, and twice as long each time, until the next.
  const double slower = std::max(trial.interpreted_ ? ratio : 1 / ratio, 1.0) - 1;
  const double cost = slower * static_cast<double>(pairs * (static_cast<size_t>(base::heuristics().trial_block) + 1));
  const uint64_t wait = static_cast<uint64_t>(base::heuristics().trial_again) << std::min(trial.made_ - 1, 12);
  trial.next_ = loop.iterations + std::max(wait, static_cast<uint64_t>(100 * cost));
  trial.blocks_.clear();
  on_trial_ = nullptr;
  base::report().trials.made++;
  base::EventFields event = about(loop, 0, trial.interpreted_ ? "left to the interpreter" : "traces pay");
  const std::string place = event.file + ":" + std::to_string(event.line);
  if (trial.interpreted_) base::report().trials.slower[place] = ratio;
  else base::report().trials.slower.erase(place);
  DYNVM_EVENT(kTrace, event, "{} takes {:.2f} of the interpreter's time with traces: {}", place, ratio, event.what);
}

bool Trials::is_interpreted(vm::ThreadView& view, LoopState& loop, bool comes_again) {
  Trial& trial = loop.trial;
  const bool own = interpreted_.loop == &loop && interpreted_.frame == view.frame;
  if (own && std::exchange(interpreted_.comes_again, false)) return true;
  if (own) interpreted_ = {};
  else if (is_inside(view, loop.unit)) return true;
  const bool tried = on_trial_ == &trial;
  if (!tried && !trial.interpreted_ && loop.consecutive < base::heuristics().trial_rounds) return false;
  if (trial.recorded_ != recorded) trial.quiet_since_ = loop.iterations;
  trial.active_ = trial.entered_ == entered && trial.recorded_ == recorded ? 0 : trial.active_ + 1;
  if (tried) {
    advance(view, loop);
  } else if (may_begin(view, loop)) {
    if (on_trial_ != nullptr) on_trial_->blocks_.clear();
    on_trial_ = &trial;
    look_at_all();
    refused_ = 0;
    trial.begun_ = loop.iterations;
    trial.disturbed_ = 0;
    trial.frame_ = nullptr;
    trial.measuring_ = false;
    trial.slowest_ = 0;
    trial.fastest_ = HUGE_VAL;
  }
  trial.recorded_ = recorded;
  trial.entered_ = entered;
  if (on_trial_ == &trial ? trial.blocks_.size() % 2 == 0 : !trial.interpreted_) return false;
  interpreted_ = {&loop, view.tstate, view.frame, comes_again};
  loop.consecutive++;
  loop.begun();
  return true;
}

namespace trials {

bool is_interpreted(vm::ThreadView& view, LoopState& loop, bool comes_again) { return possible() && all.is_interpreted(view, loop, comes_again); }
int arrivals_to_pass(const LoopState& loop) { return all.arrivals_to_pass(loop); }
bool is_inside_interpreted(vm::ThreadView& view, bool measured) { return possible() && all.is_inside(view, -1) && (!measured || all.is_measured()); }
void note_recorded() { all.recorded++; }
void note_entered() { all.entered++; }
void note_device() { all.device = true; }

}  // namespace trials
}  // namespace dynvm::tracer
