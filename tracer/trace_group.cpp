// See trace_group.h.
#include "tracer/trace_group.h"

#include <algorithm>
#include <climits>
#include <ctime>
#include <iterator>
#include <utility>

#include "codegen/parallel.h"
#include "runtime/exec/own_work.h"
#include "runtime/base/dump.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/log.h"
#include "runtime/base/report.h"
#include "runtime/base/switches.h"
#include "tracer/clock.h"
#include "tracer/trace_cache.h"

namespace dynvm::tracer {
namespace {

uint64_t uses = 0;  // of traces

// What this thread has worked so far: what making a trace costs does not depend on who else wants the processor meanwhile.
double worked_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

template <class T>
void keep(std::vector<T>& newest, size_t limit, T item) {
  while (newest.size() >= limit) newest.erase(newest.begin());
  newest.push_back(std::move(item));
}

}  // namespace

std::vector<TraceGroup::Trace>& TraceGroup::dropped() {
  static auto* const all = new std::vector<Trace>;  // never destroyed: as the loops, which own traces
  return *all;
}

std::optional<RefusedInput> refused_for_sizes(const LoopTrace& trace, ir::Ref inst_ref, bridge::Bridge* bridge) {
  const ir::Trace& ir = trace.compiled->ir();
  if (inst_ref >= ir.insts.size() || ir.insts[inst_ref].op != ir::Op::k_unbox_tensor || is_constant_input(ir, inst_ref)) return std::nullopt;
  const auto input = std::find(trace.inputs.begin(), trace.inputs.end(), ir.insts[inst_ref].meta);
  RefusedInput refused;
  if (input == trace.inputs.end() || !bridge->refused_geometry(&refused.sizes, &refused.strides)) return std::nullopt;
  refused.input = static_cast<size_t>(input - trace.inputs.begin());
  return refused;
}

std::optional<RefusedInput> refused_by_variables(const LoopTrace& trace, PyObject* const* slots, bridge::Bridge* bridge) {
  const ir::Trace& ir = trace.compiled->ir();
  for (const ir::Inst& inst : ir.insts) {
    if (inst.op != ir::Op::k_unbox_tensor || ir.insts[ir.arg(inst, 0)].op != ir::Op::k_slot) continue;
    const auto input = std::find(trace.inputs.begin(), trace.inputs.end(), inst.meta);
    PyObject* object = slots[ir.insts[ir.arg(inst, 0)].imm];
    RefusedInput refused{static_cast<size_t>(input - trace.inputs.begin()), {}, {}};
    if (input != trace.inputs.end() && object != nullptr && bridge->has_other_geometry(object, ir.metas[inst.meta], &refused.sizes, &refused.strides)) return refused;
  }
  return std::nullopt;
}

void TraceGroup::owned(std::vector<const std::vector<PyObject*>*>* lists) const {
  for (const Trace& trace : traces_) lists->push_back(&trace->compiled->owned());
  for (const auto& generic : generics_) lists->push_back(&generic->owned());
}

int TraceGroup::recorded() const {
  return static_cast<int>(std::count_if(traces_.begin(), traces_.end(), [](const Trace& trace) { return !trace->made_for_sizes; }));
}

size_t TraceGroup::place_of(const Trace& trace) const { return static_cast<size_t>(std::find(traces_.begin(), traces_.end(), trace) - traces_.begin()); }

void TraceGroup::add(Trace trace) {
  trace->used = ++uses;
  traces_.push_back(std::move(trace));
}

std::vector<TraceGroup::Trace>::const_iterator TraceGroup::oldest() const {
  const auto key = [](const Trace& trace) { return trace->made_for_sizes ? UINT64_MAX : trace->used; };
  return std::min_element(traces_.begin(), traces_.end(), [&](const Trace& a, const Trace& b) { return key(a) < key(b); });
}

uint64_t TraceGroup::oldest_use() const { return recorded() == 0 ? UINT64_MAX : (*oldest())->used; }

TraceGroup::Trace TraceGroup::evict() {
  const auto place = oldest();
  Trace evicted = *place;
  dropped().push_back(evicted);
  traces_.erase(place);
  return evicted;
}

void TraceGroup::used(const Trace& trace) {
  trace->used = ++uses;
  const auto place = std::find(traces_.begin(), traces_.end(), trace);
  if ((!trace->for_all_sizes || trace->complete) && place != traces_.end() && place != traces_.begin()) std::rotate(traces_.begin(), place, place + 1);
}

void TraceGroup::drop(const Trace& trace) {
  const std::shared_ptr<GenericTrace> generic = trace->generic;
  if (generic != nullptr) {
    generics_.erase(std::remove(generics_.begin(), generics_.end(), generic), generics_.end());
    answered_.clear();
  }
  const auto goes = [&](const Trace& other) { return other == trace || (generic != nullptr && other->made_for_sizes && other->generic == generic); };
  std::copy_if(traces_.begin(), traces_.end(), std::back_inserter(dropped()), goes);
  std::erase_if(traces_, goes);
}

bool TraceGroup::take_sizes_for_numbers() {
  if (base::left_out(base::Part::kSizes)) return false;
  if (failures_ < base::heuristics().size_failures) as_numbers_ = true;
  return failures_ < base::heuristics().size_failures;
}

void TraceGroup::sizes_failed(const std::string& why) {
  base::report().sizes.refused[why]++;
  if (++failures_ < base::heuristics().size_failures) return;
  as_numbers_ = false;
  refusals_left_ = base::heuristics().size_refusals << std::min(failures_ - base::heuristics().size_failures, 8);
}

bool TraceGroup::prepare(Recording* recording, bridge::Bridge* bridge, Lessons& lessons, std::shared_ptr<GenericTrace>* of, std::string* why) {
  if (!recording->sizes_are_numbers) {
    keep(samples_, base::heuristics().max_samples, sample_of(*recording));
    return true;
  }
  auto generic = std::make_shared<GenericTrace>(std::move(*recording), bridge);
  *recording = {};
  std::string refused = generic->learn(samples_);
  *why = generic->own_sizes(recording);
  if (!why->empty() && refused.empty()) {  // open sizes lead nowhere: constant ones
    refused = *why;
    generic->unlearn();
    *why = generic->own_sizes(recording);
  }
  if (!why->empty()) refused = *why;
  else keep(samples_, base::heuristics().max_samples, generic->sample());
  if (refused.starts_with("aten::slice")) lessons.sizes_by_slices = true;
  if (refused.empty()) {
    *of = generic;
    failures_ = 0;
    if (std::exchange(futile_, 0) > 0) cost_ms_ = 0;  // this one may do better
    base::report().sizes.generic++;
  } else {
    sizes_failed(refused);
  }
  if (generic->not_known().first != nullptr && lessons.size_calls.insert(generic->not_known()).second) {  // a call from now on: the recordings so far are no samples for those to come
    samples_.clear();
    failures_ = 0;
    as_numbers_ = true;
  }
  DYNVM_LOG(kTrace, "sizes as numbers: {}", refused.empty() ? "they may change" : refused);
  if (refused.empty()) keep(generics_, base::heuristics().max_generics, std::move(generic));
  return why->empty();
}

void TraceGroup::refused(const Trace& trace, const RefusedInput& input) {
  if (failures_ < base::heuristics().size_failures || --refusals_left_ <= 0) as_numbers_ = !base::left_out(base::Part::kSizes);
  const size_t place = place_of(trace);
  if (place == traces_.size()) return;
  const auto next = traces_.begin() + static_cast<ptrdiff_t>(place) + 1;
  const auto made = std::find_if(next, traces_.end(), [&](const Trace& other) { return other->for_certain_sizes() && other->answers == input; });
  if (made != traces_.end()) std::rotate(next, made, made + 1);
}

// What a trace for certain sizes saves in a run: the interpreter's time, or the steps that the one for all sizes has more, each a part of the time that it takes.
double TraceGroup::saved_ms() const {
  constexpr double kFaster = 4;  // than the interpreter, as traces often are
  double share = 1;
  for (const Trace& all : traces_) {
    if (!all->for_all_sizes || all->complete) continue;
    for (const Trace& other : traces_)
      if (other->generic == all->generic && !other->for_all_sizes && all->steps > 0) share = std::min(share, std::max(0.0, 1 - static_cast<double>(other->steps) / all->steps) / kFaster);
  }
  return interpreted_ms_ * share;
}

bool TraceGroup::pays(const RefusedInput& input) {
  if (seen_.size() >= static_cast<size_t>(base::heuristics().max_seen_sizes)) seen_.clear();
  const int times = ++seen_[input];
  if (base::options().hot > 0) return made_ < base::heuristics().sizes_at_once || times >= base::heuristics().sizes_at_once;
  return cost_ms_ == 0 || times * saved_ms() * base::heuristics().size_loss / 100 >= cost_ms_;
}

TraceGroup::Trace TraceGroup::finish(std::shared_ptr<GenericTrace> generic, Recording recording, std::string why, bridge::Bridge* bridge, PyCodeObject* code, int unit, const char* kind, double interpreted_ms) {
  Abort reason = Abort::kNone;
  Trace trace;
  codegen::set_num_threads(bridge->num_threads());
  if (why.empty()) trace = compile(std::move(recording), bridge, code, unit, kind, &reason, &why, TraceCache::on());
  if (trace == nullptr) {
    base::report().sizes.refused[why]++;
    DYNVM_LOG(kTrace, "other sizes: {}", why);
    return nullptr;
  }
  trace->made_for_sizes = true;
  trace->generic = std::move(generic);
  if (trace->profile != nullptr) trace->profile->for_sizes = true;
  trace->entry->interpreted_ms = interpreted_ms;
  return trace;
}

// For all sizes, from the newest recording that there is none of yet.
TraceGroup::Trace TraceGroup::open(bridge::Bridge* bridge, PyCodeObject* code, int unit, const char* kind, double interpreted_ms) {
  if (base::left_out(base::Part::kOpen)) return nullptr;
  const auto generics = generics_;  // another thread may drop them in between
  for (size_t i = generics.size(); i-- > 0;) {
    if (generics[i]->opened) continue;
    generics[i]->opened = true;
    Recording recording;
    const Clock::time_point start = Clock::now();
    const runtime::OwnWork work;
    const std::string why = generics[i]->open(&recording);
    recording.ms = ms_since(start);
    Trace trace = finish(generics[i], std::move(recording), why, bridge, code, unit, kind, interpreted_ms);
    if (trace == nullptr) continue;
    trace->for_all_sizes = true;
    int fewest = INT_MAX;
    for (const Trace& other : traces_)
      if (other->generic == generics[i] && !other->for_all_sizes) fewest = std::min(fewest, other->steps);
    trace->complete = fewest < INT_MAX && trace->steps <= fewest + fewest / 8 + 2;
    DYNVM_LOG(kTrace, "trace {} for all sizes: {} steps, {} for certain ones", trace->id, trace->steps, fewest);
    traces_.insert(trace->complete ? traces_.begin() : traces_.end(), trace);
    return trace;
  }
  return nullptr;
}

TraceGroup::Made TraceGroup::make(const RefusedInput& input, bridge::Bridge* bridge, PyCodeObject* code, int unit, const char* kind, double interpreted_ms) {
  if (generics_.empty() || answered_.count(input) != 0) return Made::kNo;
  const base::profile::Timed timed(base::profile::Part::kCompiling);
  const Trace opened = open(bridge, code, unit, kind, interpreted_ms);
  if (opened != nullptr && opened->complete) return Made::kYes;
  if (!pays(input)) return opened != nullptr ? Made::kYes : Made::kLater;
  answered_.insert(input);
  Recording recording;
  std::string why = "none";
  const Clock::time_point start = Clock::now();
  const double worked = worked_ms();
  const runtime::OwnWork work;
  const auto generics = generics_;
  std::shared_ptr<GenericTrace> generic;
  for (size_t i = generics.size(); i-- > 0 && !why.empty();) why = (generic = generics[i])->specialise(input, &recording);
  recording.ms = ms_since(start);
  Trace trace = finish(std::move(generic), std::move(recording), why, bridge, code, unit, kind, interpreted_ms);
  cost_ms_ = worked_ms() - worked;
  if (trace == nullptr) {
    cost_ms_ *= 1 << std::min(++futile_, 16);
    return opened != nullptr ? Made::kYes : Made::kNo;
  }
  trace->answers = input;
  futile_ = 0;
  seen_.erase(input);
  base::report().sizes.made++;
  made_++;
  traces_.insert(traces_.begin(), std::move(trace));
  int made = 0;
  for (size_t i = 0; i < traces_.size(); i++) {
    if (!traces_[i]->for_certain_sizes() || ++made <= base::heuristics().max_sizes) continue;
    answered_.erase(traces_[i]->answers);
    dropped().push_back(traces_[i]);
    traces_.erase(traces_.begin() + static_cast<ptrdiff_t>(i--));
  }
  return Made::kYes;
}

void bind_namespace(TraceGroup& group, _PyInterpreterFrame* root) {
  const PyObject* globals = vm::FrameView::globals(root);
  for (const auto& trace : group.traces()) {
    if (std::exchange(trace->bound, true)) continue;
    const std::vector<ir::Object>& objects = trace->compiled->ir().objects;
    if (std::any_of(objects.begin(), objects.end(), [&](const ir::Object& object) { return object.pointer == globals; })) trace->globals = globals;
  }
}

}  // namespace dynvm::tracer
