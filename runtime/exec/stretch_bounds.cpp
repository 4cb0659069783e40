// Where the stretches of a trace begin and end, and what follows from that (stretches.h).
#include <algorithm>
#include <set>
#include <utility>

#include "codegen/cuda/kernel.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/log.h"
#include "runtime/exec/stretches.h"

namespace dynvm::runtime {

// Does nothing behind the stretch's last operation need what one of its operations brings?
bool Stretches::dropped_within(int32_t storage, const Stretch& stretch) const {
  const int32_t by = plan_.dropped_by[storage];
  if (by < 0 || by + 1 != stretch.end) return by >= 0 && by < stretch.end;
  const StretchPlan::Operation& last = plan_.operations[by];
  return std::count(last.drops.begin(), last.drops.begin() + static_cast<ptrdiff_t>(last.own_drops), storage) != 0;
}

// What follows from where the stretch begins and ends.
void Stretches::plan(Stretch& stretch) {
  unsettled_ = unfound_ = true;
  stretch.known = stretch.single = false;
  std::set<int32_t> touched, written, given, by_kernels;
  std::map<int32_t, int32_t> latest;  // operation that touches a storage
  int cost = 0;
  for (int32_t k = stretch.begin; k < stretch.end; ++k) {
    const StretchPlan::Operation& operation = plan_.operations[k];
    for (int32_t storage : operation.takes)
      if (dropped_within(storage, stretch)) given.insert(storage);
    for (int32_t storage : operation.touches()) latest[storage] = k;
    cost += operation.kernel != nullptr ? base::heuristics().graph_kernel_cost : base::heuristics().graph_call_cost;
    if (operation.kernel != nullptr) {
      by_kernels.insert(operation.kernel->storages().begin(), operation.kernel->storages().end());
      continue;
    }
    for (int32_t storage : operation.facts.touches)
      if (given.count(storage) == 0) touched.insert(storage);
    written.insert(operation.facts.writes.begin(), operation.facts.writes.end());
    for (int32_t storage : operation.facts.gives) {
      given.insert(storage);
      touched.erase(storage);
    }
  }
  stretch.storages.assign(touched.begin(), touched.end());
  stretch.given.assign(given.begin(), given.end());
  stretch.left.clear();
  for (int32_t storage : stretch.given)
    if (!dropped_within(storage, stretch)) stretch.left.emplace_back(latest[storage], storage);
  std::sort(stretch.left.begin(), stretch.left.end());
  stretch.stageable.clear();
  for (int32_t storage : stretch.storages) {
    stretch.stageable.push_back(plan_.captures->is_input(session_, storage) && written.count(storage) == 0 && by_kernels.count(storage) == 0 && bytes(storage) <= int64_t{base::heuristics().graph_staged} << 10);
  }
  stretch.staged.assign(stretch.storages.size(), false);
  stretch.stages.assign(stretch.storages.size(), nullptr);
  stretch.seen.clear();
  stretch.hits = stretch.misses = 0;
  stretch.mode = cost >= base::heuristics().graph_worth ? Mode::kWatch : Mode::kNever;
}

void Stretches::split(size_t number, int32_t at) {
  DYNVM_LOG(kCompile, "CUDA graph: a stretch of {} operations ends before the {}th", stretches_[number].end - stretches_[number].begin, at - stretches_[number].begin + 1);
  clear(stretches_[number]);
  const std::vector<int32_t> storages = stretches_[number].storages;
  const std::vector<std::vector<void*>> seen = stretches_[number].seen;
  Stretch tail;
  tail.begin = at;
  tail.end = stretches_[number].end;
  stretches_[number].end = at;
  const auto added = static_cast<int32_t>(stretches_.size());
  for (int32_t k = tail.begin; k < tail.end; ++k) of_operation_[k] = added;
  stretches_.push_back(std::move(tail));
  for (Stretch* part : {&stretches_[number], &stretches_[static_cast<size_t>(added)]}) {
    plan(*part);
    inherit_seen(*part, storages, seen);
  }
}

// A part of a stretch has been watched with it, unless the other part brings memory for its calls.
void Stretches::inherit_seen(Stretch& part, const std::vector<int32_t>& storages, const std::vector<std::vector<void*>>& seen) const {
  if (!std::includes(storages.begin(), storages.end(), part.storages.begin(), part.storages.end())) return;
  for (const std::vector<void*>& run : seen) {
    std::vector<void*>& row = part.seen.emplace_back();
    for (int32_t storage : part.storages) row.push_back(run[static_cast<size_t>(std::lower_bound(storages.begin(), storages.end(), storage) - storages.begin())]);
  }
}

// In front of this operation, by something that may not come again.
void Stretches::note_interruption(int32_t at) {
  Interruptions& here = interruptions_[static_cast<size_t>(at)];
  if (here.latest != runs_) here.in_turn = here.latest == runs_ - 1 ? here.in_turn + 1 : 1;
  here.latest = runs_;
}

// Has it been interrupted there in this run, and in those before it?
bool Stretches::interrupted_each_time(int32_t at) const {
  const Interruptions& here = interruptions_[static_cast<size_t>(at)];
  return here.latest == runs_ && here.in_turn >= base::heuristics().graph_interruptions;
}

void Stretches::watch(size_t number) {
  Stretch& stretch = stretches_[number];
  stretch.seen.push_back(pointers(stretch));
  for (size_t k = 0; k < passing_.size(); ++k)
    if (passing_[k] != nullptr) stretch.seen.back()[k] = passing_[k];
  for (int32_t at = stretch.begin + 1; at < stretch.end; ++at)
    if (interrupted_each_time(at)) return split(number, at);
  if (!stretch.known && stretch.seen.size() < static_cast<size_t>(base::heuristics().graph_watched)) return;
  std::vector<int32_t> moving;
  for (size_t k = 0; k < stretch.storages.size(); ++k) {
    std::set<void*> values;
    for (size_t run = 1; run < stretch.seen.size(); ++run) values.insert(stretch.seen[run][k]);
    if (values.size() <= 2) continue;
    if (stretch.stageable[k]) stretch.staged[k] = true;
    else moving.push_back(stretch.storages[k]);
  }
  stretch.mode = Mode::kQueue;
  if (!moving.empty()) set_apart_on(stretch.begin, stretch.end, moving);
}

// The operation is launched by itself, between two stretches.
void Stretches::set_apart(int32_t operation, const char* why) {
  DYNVM_LOG(kCompile, "CUDA graph: {} {}, so it is launched by itself", plan_.operations[operation].facts.name, why);
  const auto number = static_cast<size_t>(of_operation_[operation]);
  if (operation + 1 < stretches_[number].end) split(number, operation + 1);
  const bool first = operation == stretches_[number].begin;
  if (!first) split(number, operation);
  Stretch& alone = first ? stretches_[number] : stretches_.back();
  alone.mode = Mode::kNever;
  alone.single = true;
  unsettled_ = unfound_ = true;
}

// So are the calls, among these operations, on memory that lies elsewhere each time.
void Stretches::set_apart_on(int32_t begin, int32_t end, const std::vector<int32_t>& moving) {
  for (int32_t k = begin; k < end; ++k) {
    const std::vector<int32_t>& touches = plan_.operations[k].facts.touches;
    if (plan_.operations[k].kernel == nullptr && std::find_first_of(touches.begin(), touches.end(), moving.begin(), moving.end()) != touches.end())
      set_apart(k, "works on memory that lies elsewhere each time");
  }
}

}  // namespace dynvm::runtime
