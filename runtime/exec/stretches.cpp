// See stretches.h.
#include "runtime/exec/stretches.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "codegen/cuda/driver.h"
#include "codegen/cuda/transfer.h"
#include "runtime/base/check.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/log.h"
#include "runtime/base/pending.h"
#include "runtime/base/report.h"
#include "runtime/exec/own_work.h"

namespace dynvm::runtime {

using codegen::cuda::CudaKernel;

namespace {

std::vector<Stretches*>& waiting() {     // in a stretch
  static auto* const all = new std::vector<Stretches*>;
  return *all;
}

// While a stretch has had no more captures, a graph that has not fitted once since goes before the next one: memory was still finding its place.
constexpr int kEarlyCaptures = 2;

std::vector<Stretches*>& everyone() {
  static auto* const all = new std::vector<Stretches*>;
  return *all;
}

// Stretches that were done, of all traces, and how often those of them that do not run are looked at. The GIL is held.
int64_t completed = 0, next_look = 0;
constexpr int64_t kLooks = 256;

// Operations that traces have given to devices since one of them last waited for a number. The GIL is held.
int64_t given_since_read = std::numeric_limits<int32_t>::max();

}  // namespace

Stretches::Stretches(const StretchPlan& plan, bridge::Session* session, int32_t* pending) : plan_(plan), session_(session), pending_(pending) {
  everyone().push_back(this);
  used_ = completed;
  of_operation_.assign(plan.operations.size(), 0);
  interruptions_.assign(plan.operations.size(), {});
  whole_.assign(plan.operations.size(), false);
  begin_as_found();
  apart_.assign(plan.arena.size(), false);
  settle();
}

int64_t Stretches::bytes(int32_t storage) const {
  int64_t first, last;
  plan_.captures->extent(session_, storage, &first, &last);
  return last - first;
}

Stretches::~Stretches() {
  std::erase(everyone(), this);
  for (Stretch& stretch : stretches_) clear(stretch);
}

void Stretches::note_pending(bool is) {
  *pending_ = is;
  std::vector<Stretches*>& all = waiting();
  const auto found = std::find(all.begin(), all.end(), this);
  if (is && found == all.end()) all.push_back(this);
  if (!is && found != all.end()) all.erase(found);
  base::finish_pending = all.empty() ? nullptr : &finish_all;
}

void Stretches::finish_all() {
  const std::vector<Stretches*> all = waiting();
  for (Stretches* each : all) {
    if (each->thread_ != PyThreadState_Get()) continue;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (each->barrier(/*once=*/true) != 0) each->keep_failure();
    PyErr_Restore(type, value, traceback);
  }
}

void Stretches::keep_failure() {
  if (failed_type_ == nullptr) PyErr_Fetch(&failed_type_, &failed_value_, &failed_traceback_);
  PyErr_Clear();
}

int Stretches::raise_failed() {
  PyErr_Restore(failed_type_, failed_value_, failed_traceback_);
  failed_type_ = failed_value_ = failed_traceback_ = nullptr;
  return -1;
}

int Stretches::device(int32_t operation) const {
  const StretchPlan::Operation& what = plan_.operations[operation];
  return what.kernel != nullptr ? what.kernel->device() : what.facts.device;
}

// What graphs have memory for leaves the arena, and so does what no graph needs in its place, where it is large or such pieces are few; what graphs have none for any more comes back. Between two iterations; -1: no memory.
int Stretches::settle() {
  unsettled_ = false;
  if (plan_.arena.empty()) return 0;
  std::vector<bool> apart = plan_.leaves;
  for (const Stretch& stretch : stretches_) {
    if (stretch.mode == Mode::kNever) continue;
    for (int32_t k = stretch.begin; k < stretch.end; ++k)
      for (int32_t storage : plan_.operations[k].touches()) apart[static_cast<size_t>(storage)] = false;
  }
  std::vector<size_t> small;
  for (size_t storage = 0; storage < apart.size(); ++storage)
    if (apart[storage] && plan_.arena[storage].bytes < int64_t{base::heuristics().cuda_kept} << 10) small.push_back(storage);
  if (small.size() * static_cast<size_t>(base::heuristics().cuda_few) > plan_.operations.size())
    for (size_t storage : small) apart[storage] = false;
  for (const Stretch& stretch : stretches_)
    for (int32_t storage : stretch.given)
      if (stretch.mode != Mode::kNever && in_arena(storage)) apart[static_cast<size_t>(storage)] = true;
  if (apart == apart_) return 0;
  apart_ = std::move(apart);
  std::vector<ir::Piece> pieces = plan_.arena;
  for (size_t storage = 0; storage < pieces.size(); ++storage)
    if (apart_[storage]) pieces[storage].bytes = 0;
  for (Stretch& stretch : stretches_) {  // the others may lie elsewhere now
    if (std::none_of(stretch.storages.begin(), stretch.storages.end(), [&](int32_t storage) { return in_arena(storage); })) continue;
    drop_graphs(stretch);
    stretch.seen.clear();
    stretch.hits = stretch.misses = 0;
  }
  return plan_.captures->arrange(session_, std::move(pieces));
}

// ---------------------------------------------------------------------------------------------------------------------
// What the trace calls

int Stretches::call(int32_t number, const int64_t* scalars) {
  const int32_t operation = plan_.of_call[number];
  if (operation >= 0) return arrive(operation, scalars);
  if (!plan_.passive[number] && barrier() < 0) return -1;
  return plan_.bridge->functions().call(session_, number, scalars);
}

int Stretches::launch(const CudaKernel* kernel, const int64_t* scalars) {
  const auto operation = plan_.of_kernel.find(kernel);
  if (operation == plan_.of_kernel.end()) return 0;  // an idle one
  if (arrive(operation->second, scalars) != 0) keep_failure();  // a kernel itself cannot raise: the next call does
  return 0;
}

int Stretches::allocate(int32_t storage) {
  const int32_t operation = plan_.taken_by[storage];
  if (operation >= 0) {
    const Stretch& stretch = stretches_[of_operation_[operation]];
    if (stretch.mode == Mode::kQueue && std::binary_search(stretch.given.begin(), stretch.given.end(), storage)) return 0;  // its graph has memory for it, or see take()
  }
  if (queueing_ && inherit(storage, std::numeric_limits<int32_t>::max())) return 0;
  return plan_.bridge->functions().allocate(session_, storage);
}

// Does it get the memory of one that no operation behind this one needs?
bool Stretches::inherit(int32_t storage, int32_t before) {
  return std::any_of(dropped_.rbegin(), dropped_.rend(), [&](const Dropped& each) { return plan_.dropped_by[each.storage] <= before && plan_.captures->hand_over(session_, each.storage, storage); });
}

// Memory that the operation is the first to need, where it is not there yet.
int Stretches::take(int32_t operation) {
  for (int32_t storage : plan_.operations[operation].takes)
    if (session_->storage_data[storage] == nullptr && plan_.bridge->functions().allocate(session_, storage) != 0) return -1;
  return 0;
}

// Before it is queued, memory for it that was the arena's before and is no graph's any more, until the arena is arranged.
int Stretches::take_strays(int32_t operation) {
  const std::vector<int32_t>& given = stretches_[static_cast<size_t>(of_operation_[operation])].given;
  for (int32_t storage : plan_.operations[operation].takes)
    if (in_arena(storage) && !std::binary_search(given.begin(), given.end(), storage) && session_->storage_data[storage] == nullptr && plan_.bridge->functions().allocate(session_, storage) != 0) return -1;
  return 0;
}

// A device that has been waited for has nothing to do while work is queued, so what it gets first is little, and what follows takes no longer to queue than it has work for.
bool Stretches::long_enough() const {
  return static_cast<int64_t>(queued_.size()) >= std::max<int64_t>(base::heuristics().graph_first, ahead_ / 2);
}

// Inputs that the script has replaced, as a cache's keys, live until what reads them is launched: eager has one of them at a time.
bool Stretches::holds_much() const { return replaced_ >= int64_t{base::heuristics().graph_replaced} << 10; }

// Has the stretch that is under way come to its end before?
bool Stretches::ends_known() const { return queueing_ || !stretches_[static_cast<size_t>(current_)].seen.empty(); }

// May the stretch become two in front of this operation? Not where a library call would look at memory that the first one's graph has brought: it lies elsewhere each time.
bool Stretches::may_cut(int32_t at) {
  if (whole_[static_cast<size_t>(at)]) return false;
  const Stretch& stretch = stretches_[static_cast<size_t>(current_)];
  std::set<int32_t> brought;
  for (int32_t k = stretch.begin; k < stretch.end; ++k) {
    const StretchPlan::Operation& operation = plan_.operations[static_cast<size_t>(k)];
    if (k < at) {
      for (int32_t storage : operation.takes)
        if (!in_arena(storage)) brought.insert(storage);
      brought.insert(operation.facts.gives.begin(), operation.facts.gives.end());
    } else if (operation.kernel == nullptr) {
      for (int32_t storage : operation.facts.touches)
        if (brought.count(storage) != 0) whole_[static_cast<size_t>(at)] = true;
    }
  }
  return !whole_[static_cast<size_t>(at)];
}

int Stretches::read() {
  const int status = barrier();
  given_since_read = 0;
  return status;
}

int Stretches::arrive(int32_t operation, const int64_t* scalars) {
  copies_follow_ = false;
  running_ = true;
  if (operation <= latest_) settled_ = true;
  latest_ = operation;
  if (failed_type_ != nullptr && plan_.operations[operation].kernel == nullptr) return raise_failed();
  if (current_ >= 0 && (operation != next_ || device(operation) != device(stretches_[current_].begin)) && barrier() != 0) return -1;
  if (current_ >= 0 && ends_known() && (long_enough() || holds_much()) && may_cut(operation) && barrier() != 0) return -1;
  if (operation == 0) ++runs_;
  if (operation == 0 && unfound_) note_findings();
  if (operation == 0 && unsettled_ && settle() != 0) return -1;
  const int32_t number = of_operation_[operation];
  if (current_ < 0 && operation == stretches_[number].begin) {
    current_ = number;
    next_ = operation;
    queueing_ = stretches_[number].mode == Mode::kQueue;
    thread_ = PyThreadState_Get();
    ahead_ = given_since_read;
    queued_.clear();
    numbers_.clear();
    passing_.assign(stretches_[number].storages.size(), nullptr);
  }
  ++given_since_read;
  const CudaKernel* kernel = plan_.operations[operation].kernel;
  const size_t place = numbers_.size();
  if (kernel != nullptr && kernel->num_scalars() > 0) numbers_.insert(numbers_.end(), scalars, scalars + kernel->num_scalars());
  const std::pair<int32_t, size_t> entry{operation, place};
  if (current_ < 0) {  // in the middle of a stretch that was interrupted: one by one
    queued_.assign(1, entry);
    return run_queued();
  }
  if (queueing_ && unsettled_ && take_strays(operation) != 0) return -1;
  queued_.push_back(entry);
  if (!queueing_) {
    int status = take(operation);
    if (status == 0 && kernel != nullptr) kernel->launch(session_->storage_data, numbers_.data() + place, session_->symbols);
    else if (status == 0) status = run(operation);
    if (status != 0) {
      current_ = -1;
      note_pending(false);
      return status;
    }
  }
  ++next_;
  if (next_ < stretches_[number].end) {
    if (*pending_ == 0) note_pending(true);
    return 0;
  }
  current_ = -1;
  note_pending(false);  // capturing runs functions of torch's that are in Python
  const int status = complete(static_cast<size_t>(number));
  queued_.clear();
  numbers_.clear();
  drop_now();
  return status;
}

// Is there queued work on it?
bool Stretches::waits_for(int32_t storage) const {
  return std::any_of(queued_.begin(), queued_.end(), [&](const auto& entry) {
    const std::vector<int32_t>& touches = plan_.operations[static_cast<size_t>(entry.first)].touches();
    return std::find(touches.begin(), touches.end(), storage) != touches.end();
  });
}

void Stretches::drop(int32_t storage) {
  if (in_arena(storage) && !apart_[static_cast<size_t>(storage)]) return;
  if (*pending_ != 0 && queueing_) {
    // Large memory that no queued work needs goes at once, as it does in eager.
    const int64_t held = plan_.input[storage] ? plan_.captures->held(session_, storage) : 0;
    if (held < int64_t{base::heuristics().graph_replaced} << 10 || waits_for(storage)) {
      dropped_.push_back({queued_.size(), storage});
      replaced_ += held;
      return;
    }
  }
  if (*pending_ != 0 && !queueing_) {
    const std::vector<int32_t>& storages = stretches_[current_].storages;
    const auto found = std::lower_bound(storages.begin(), storages.end(), storage);
    if (found != storages.end() && *found == storage) passing_[static_cast<size_t>(found - storages.begin())] = session_->storage_data[storage];
  }
  plan_.bridge->functions().drop_storage(session_, storage);
}

void Stretches::drop_now() {
  for (const Dropped& each : dropped_) plan_.bridge->functions().drop_storage(session_, each.storage);
  dropped_.clear();
  replaced_ = 0;
}

// An operation that brings what lives on and nobody can copy, as its size is not known; -1: there is none.
int32_t Stretches::unsized(const Stretch& stretch) const {
  for (const auto& [latest, storage] : stretch.left)
    for (int32_t k = stretch.begin; k < stretch.end; ++k) {
      const std::vector<int32_t>& sizes = plan_.operations[k].facts.sizes;
      if (std::find(sizes.begin(), sizes.end(), storage) != sizes.end()) return k;
    }
  return -1;
}

// Bytes that what its operations bring takes in one piece, as an allocator would place it.
int64_t Stretches::pool_bytes(const Stretch& stretch) const {
  std::map<int32_t, ir::Piece> brought;
  for (int32_t k = stretch.begin; k < stretch.end; ++k) {
    const StretchPlan::Operation& operation = plan_.operations[k];
    for (const std::vector<int32_t>* storages : {&operation.takes, &operation.facts.gives})
      for (int32_t storage : *storages)
        if (std::binary_search(stretch.given.begin(), stretch.given.end(), storage)) brought[storage] = {static_cast<uint32_t>(k), static_cast<uint32_t>(stretch.end), bytes(storage), 0};
    for (int32_t storage : operation.drops)
      if (const auto found = brought.find(storage); found != brought.end()) found->second.last = static_cast<uint32_t>(k);
  }
  for (const auto& [latest, storage] : stretch.left) brought[storage].last = static_cast<uint32_t>(latest);
  std::vector<ir::Piece> pieces;
  for (const auto& [storage, piece] : brought) pieces.push_back(piece);
  return ir::arrange(&pieces);
}

// Of the memory that the operations of a stretch bring, what is not needed behind this one: the next ones can have it. last: what follows it may still need what it has left.
void Stretches::drop_given(int32_t operation, const std::vector<int32_t>& given, bool last) {
  const StretchPlan::Operation& what = plan_.operations[operation];
  for (size_t k = 0; k < (last ? what.own_drops : what.drops.size()); ++k)
    if (std::binary_search(given.begin(), given.end(), what.drops[k])) plan_.bridge->functions().drop_storage(session_, what.drops[k]);
}

int Stretches::run(int32_t operation) {
  const StretchPlan::Operation& what = plan_.operations[operation];
  return plan_.bridge->functions().call(session_, what.call, nullptr);
}

int Stretches::run_queued() {
  int status = 0;
  size_t dropped = 0;
  const std::vector<std::pair<int32_t, size_t>> queued = std::move(queued_);
  queued_.clear();
  for (size_t k = 0; k < queued.size(); ++k) {
    const auto& [operation, place] = queued[k];
    if ((status = take(operation)) != 0) break;
    if (const CudaKernel* kernel = plan_.operations[operation].kernel) {
      kernel->launch(session_->storage_data, numbers_.data() + place, session_->symbols);
    } else if ((status = run(operation)) != 0) {
      break;
    }
    drop_given(operation, stretches_[of_operation_[operation]].given, k + 1 == queued.size());
    for (; dropped < dropped_.size() && dropped_[dropped].behind <= k + 1; ++dropped) plan_.bridge->functions().drop_storage(session_, dropped_[dropped].storage);
  }
  numbers_.clear();
  return status;
}

int Stretches::barrier(bool once) {
  if (failed_type_ != nullptr) return raise_failed();
  if (current_ < 0) return 0;
  const size_t number = static_cast<size_t>(current_);
  const int32_t at = next_;
  if (once) note_interruption(at);
  if (once && !queueing_) return 0;  // it is watched: nothing waits, and one of its operations may be under way
  const bool queued = queueing_;
  current_ = -1;
  note_pending(false);
  int status = 0;
  if (queued) status = run_queued();
  settled_ = false;
  drop_now();
  if (at > stretches_[number].begin && at < stretches_[number].end && (!once || interrupted_each_time(at))) split(number, at);
  return status;
}

int Stretches::end_run() {
  running_ = false;
  const bool queued = current_ >= 0 && queueing_;
  current_ = -1;
  note_pending(false);
  if (failed_type_ != nullptr) return barrier();
  const int status = queued ? run_queued() : 0;
  drop_now();
  return status;
}

// ---------------------------------------------------------------------------------------------------------------------
// Watching, capturing, launching

std::vector<void*> Stretches::pointers(const Stretch& stretch) const {
  std::vector<void*> now;
  now.reserve(stretch.storages.size());
  for (size_t k = 0; k < stretch.storages.size(); ++k) now.push_back(stretch.staged[k] ? nullptr : session_->storage_data[stretch.storages[k]]);
  return now;
}

void Stretches::give_up(Stretch& stretch, const char* why, bool single) {
  clear(stretch);
  stretch.mode = Mode::kNever;
  stretch.single = single;
  unsettled_ = unfound_ = true;
  DYNVM_LOG(kCompile, "CUDA graph: {} operations are launched one by one: {}", stretch.end - stretch.begin, why);
}

// Of traces that have not run for long.
void Stretches::forget_idle() {
  next_look = completed + kLooks;
  for (Stretches* each : everyone()) {
    if (each->running_ || each->used_ + base::heuristics().graph_idle > completed) continue;
    for (Stretch& stretch : each->stretches_) each->drop_graphs(stretch);
  }
}

int Stretches::complete(size_t number) {
  used_ = ++completed;
  if (!queueing_) {
    if (stretches_[number].mode != Mode::kWatch) return 0;
    settled_ = false;
    watch(number);
    return 0;
  }
  Stretch& stretch = stretches_[number];
  const bool in_order = std::exchange(settled_, false);
  void* stream = codegen::cuda::current_stream_of(device(stretch.begin));
  if (codegen::cuda::is_capturing(device(stretch.begin), stream)) return run_queued();
  if (completed >= next_look) forget_idle();
  ++stretch.runs;
  const std::vector<void*> now = pointers(stretch);
  Variant* variant = find(stretch, now, stream);
  bool done = false;
  if (variant == nullptr && stretch.captures <= kEarlyCaptures) forget(stretch, [](const Variant& one) { return one.launches <= 1; });
  const bool may_capture = stretch.variants.size() < static_cast<size_t>(base::heuristics().graph_variants);
  if (variant == nullptr && may_capture) {
    if (!in_order) return run_queued();
    if (const int32_t operation = unsized(stretch); operation >= 0) {
      const int status = run_queued();
      set_apart(operation, "gives what only it knows the size of");
      return status;
    }
  }
  if (variant != nullptr || may_capture) {
    for (const auto& [operation, storage] : stretch.left)
      if (!inherit(storage, operation) && plan_.bridge->functions().allocate(session_, storage) != 0) return -1;
    if (variant == nullptr && capture(stretch, now, stream)) variant = &stretch.variants.back();
    if (variant != nullptr) done = replay(stretch, *variant);
  }
  if (done) {
    settled_ = in_order;
    variant->latest = stretch.runs;
    ++variant->launches;
    // Graphs that have not fitted for long hold memory for nothing. Not where they may come back again and again: capturing costs more than a few launches.
    if (stretch.captures <= 3 * base::heuristics().graph_variants)
      forget(stretch, [&](const Variant& one) { return one.latest + base::heuristics().graph_misses < stretch.runs; });
    ++stretch.hits;
    ++base::report().graphs.launches;
    return 0;
  }
  const int status = run_queued();
  if (stretch.mode != Mode::kQueue) settled_ = in_order;
  if (stretch.mode != Mode::kQueue || ++stretch.misses < base::heuristics().graph_misses + stretch.hits / 4) return status;
  // Inputs that have begun to move can be copied; then all is captured anew.
  bool more = false;
  if (!stretch.variants.empty())
    for (size_t k = 0; k < now.size(); ++k)
      if (!stretch.staged[k] && stretch.stageable[k] && now[k] != stretch.variants[0].pointers[k]) stretch.staged[k] = more = true;
  if (more) {
    drop_graphs(stretch);
    stretch.hits = stretch.misses = 0;
    unfound_ = true;
  } else {
    give_up(stretch, "graphs fit too seldom", true);
  }
  return status;
}

void Stretches::forget(Stretch& stretch, const std::function<bool(const Variant&)>& unused) {
  std::erase_if(stretch.variants, [&](Variant& variant) {
    if (!unused(variant)) return false;
    drop(variant);
    return true;
  });
}

Stretches::Variant* Stretches::find(Stretch& stretch, const std::vector<void*>& now, void* stream) {
  for (Variant& variant : stretch.variants)
    if (variant.stream == stream && variant.pointers == now) return &variant;
  return nullptr;
}

// False: nothing is captured, and nothing was done.
bool Stretches::capture(Stretch& stretch, const std::vector<void*>& now, void* stream) {
  const auto refuse = [&](const std::string& why) {
    base::report().notes.emplace("CUDA graphs", why);
    give_up(stretch, why.c_str());
    return false;
  };
  if (std::string why = codegen::cuda::graphs_missing(); !why.empty()) return refuse(why);
  const OwnWork work;
  const int device = this->device(stretch.begin);
  for (size_t k = 0; k < stretch.storages.size(); ++k) {
    if (!stretch.staged[k] || stretch.stages[k] != nullptr) continue;
    if ((stretch.stages[k] = plan_.captures->make(session_, stretch.storages[k])) == nullptr) return refuse("no memory");
  }
  std::vector<void*> before;
  for (int32_t storage : stretch.storages) before.push_back(session_->storage_data[storage]);
  std::string error;
  void* const side = plan_.captures->stream(device, stream, &error);
  if (side == nullptr) return refuse(error);
  for (const auto& [operation, place] : queued_) {  // what a kernel needs for that stream cannot be made while capturing
    codegen::cuda::Launch launch;
    const CudaKernel* kernel = plan_.operations[operation].kernel;
    if (kernel == nullptr) continue;
    const bool described = kernel->describe(session_->storage_data, numbers_.data() + place, session_->symbols, side, &launch) && kernel->fits(launch);
    if (!described && stretch.given.empty()) return refuse("a kernel that is no launch of its own, or for memory that is not aligned");
  }
  int64_t most = 0;
  for (const Stretch& each : stretches_)
    if (each.mode != Mode::kNever) most = std::max(most, pool_bytes(each));
  void* captured = plan_.captures->begin(device, stream, most, &error);
  if (captured == nullptr) return refuse(error);
  if (const int refused = codegen::cuda::begin_capture(side)) {
    (void)plan_.captures->end(captured, &error);
    plan_.captures->drop(captured);
    return refuse(codegen::cuda::error_text(refused));
  }
  for (size_t k = 0; k < stretch.storages.size(); ++k)
    if (stretch.staged[k]) plan_.captures->point(session_, stretch.storages[k], plan_.captures->data(stretch.stages[k]));
  std::vector<void*> outside;  // kept memory for what lives on, by place in left
  for (const auto& [operation, storage] : stretch.left) outside.push_back(plan_.captures->keep(session_, storage));
  Variant variant;
  variant.stream = stream;
  variant.side = side;
  variant.pointers = now;
  variant.capture = captured;
  for (const auto& [operation, place] : queued_) {
    const StretchPlan::Operation& what = plan_.operations[operation];
    if (take(operation) != 0) {
      PyErr_Clear();
      error = "no memory";
      break;
    }
    if (what.kernel != nullptr) {
      Node node{nullptr, {}};
      if (!what.kernel->describe(session_->storage_data, numbers_.data() + place, session_->symbols, side, &node.launch) || !what.kernel->fits(node.launch)) {
        error = "a kernel that is no launch of its own, or for memory that is not aligned";
        break;
      }
      what.kernel->launch(session_->storage_data, numbers_.data() + place, session_->symbols);
      for (int32_t storage : what.kernel->storages()) node.fixed.push_back(std::binary_search(stretch.given.begin(), stretch.given.end(), storage));
      if ((node.node = codegen::cuda::last_node(side)) == nullptr) {
        error = "a kernel was not captured";
        break;
      }
      variant.nodes.push_back(std::move(node));
    } else if (run(operation) != 0) {
      PyErr_Clear();
      error = "an operation cannot be captured";
      break;
    }
    for (size_t k = 0; k < stretch.left.size() && error.empty(); ++k)
      if (stretch.left[k].first == operation && !copy_out(device, stretch.left[k].second, outside[k], &variant)) error = "a copy was not captured";
    if (!error.empty()) break;
    drop_given(operation, stretch.given, operation + 1 == stretch.end);
  }
  for (void* kept : outside) plan_.captures->forget(kept);
  const base::Status captures = codegen::cuda::Graph::end_capture(device, side, &variant.graph);
  std::string at_end;
  if (!plan_.captures->end(captured, &at_end) && error.empty()) error = at_end;
  if (error.empty()) error = captures.message();
  for (size_t k = 0; k < stretch.storages.size(); ++k) plan_.captures->point(session_, stretch.storages[k], before[k]);
  if (!error.empty()) {
    drop(variant);
    return refuse(error);
  }
  ++base::report().graphs.captured;
  ++stretch.captures;
  variant.latest = stretch.runs;
  stretch.variants.push_back(std::move(variant));
  DYNVM_LOG(kCompile, "CUDA graph {} of a stretch of {} operations, {} kernels; {} bytes in its pool", stretch.variants.size(), stretch.end - stretch.begin, stretch.variants.back().nodes.size(), pool_bytes(stretch));
  return true;
}

// What the graph has brought is copied to where it lives on; the graph's own memory is free again. False: it cannot be.
bool Stretches::copy_out(int device, int32_t storage, void* outside, Variant* variant) {
  int64_t first, last;
  plan_.captures->extent(session_, storage, &first, &last);
  Copy copy{storage, nullptr, static_cast<char*>(plan_.captures->data(outside)) + first, static_cast<char*>(session_->storage_data[storage]) + first, static_cast<size_t>(last - first)};
  if (codegen::cuda::copy(device, copy.to, copy.from, copy.bytes, variant->side) != 0 || (copy.node = codegen::cuda::last_node(variant->side)) == nullptr) return false;
  plan_.captures->put(session_, storage, outside);
  variant->copies.push_back(copy);
  return true;
}

// Is the launch another one now than the graph has? *changed: that one, without a function where there is none.
bool Stretches::differs(const CudaKernel& kernel, const Node& known, const int64_t* numbers, void* side, codegen::cuda::Launch* changed) const {
  const std::vector<int32_t>& storages = kernel.storages();
  const auto address = [&](size_t k) { return reinterpret_cast<int64_t>(session_->storage_data[storages[k]]); };
  if (!kernel.symbolic()) {
    bool same = true;
    for (size_t k = 0; k < storages.size(); ++k) same = same && (known.fixed[k] || known.launch.parameter[k] == address(k));
    for (size_t k = 0; k < static_cast<size_t>(kernel.num_scalars()); ++k) same = same && known.launch.parameter[storages.size() + k] == numbers[k];
    if (same) return false;
    *changed = known.launch;
    for (size_t k = 0; k < storages.size(); ++k)
      if (!known.fixed[k]) changed->parameter[k] = address(k);
    std::copy_n(numbers, kernel.num_scalars(), changed->parameter.begin() + static_cast<ptrdiff_t>(storages.size()));
    return true;
  }
  if (!kernel.describe(session_->storage_data, numbers, session_->symbols, side, changed)) {
    changed->function = nullptr;
    return true;
  }
  for (size_t k = 0; k < storages.size(); ++k)
    if (known.fixed[k]) changed->parameter[k] = known.launch.parameter[k];
  return !(*changed == known.launch);
}

// False: the graph may not be launched now, and nothing was.
bool Stretches::replay(Stretch& stretch, Variant& variant) {
  bridge::Captures& captures = *plan_.captures;
  const int device = this->device(stretch.begin);
  const auto refuse = [&](const char* why) {
    give_up(stretch, why);
    return false;
  };
  size_t node = 0;
  for (const auto& [operation, place] : queued_) {
    const CudaKernel* kernel = plan_.operations[operation].kernel;
    if (kernel == nullptr) continue;
    Node& known = variant.nodes[node++];
    codegen::cuda::Launch changed;
    if (!differs(*kernel, known, numbers_.data() + place, variant.side, &changed)) continue;
    if (changed.function == nullptr || !kernel->fits(changed)) return false;
    if (variant.graph->set_kernel(known.node, changed) != 0) return refuse("a kernel's parameters cannot be changed");
    known.launch = std::move(changed);
  }
  for (Copy& copy : variant.copies) {
    int64_t first, last;
    captures.extent(session_, copy.storage, &first, &last);
    void* const to = static_cast<char*>(session_->storage_data[copy.storage]) + first;
    if (to == copy.to) continue;
    if (variant.graph->set_copy(copy.node, to, copy.from, copy.bytes) != 0) return refuse("a copy's place cannot be changed");
    copy.to = to;
  }
  for (size_t k = 0; k < stretch.storages.size(); ++k) {
    if (!stretch.staged[k]) continue;
    int64_t first, last;
    captures.extent(session_, stretch.storages[k], &first, &last);
    char* const to = static_cast<char*>(captures.data(stretch.stages[k]));
    const char* const from = static_cast<const char*>(session_->storage_data[stretch.storages[k]]);
    if (codegen::cuda::copy(device, to + first, from + first, static_cast<size_t>(last - first), variant.stream) != 0) return false;
  }
  if (const int error = variant.graph->launch(variant.stream); error != 0) {
    base::report().notes.emplace("CUDA graphs", "not launched: error " + std::to_string(error));
    return refuse("not launched");
  }
  copies_follow_ = !stretch.left.empty() && stretch.left.back().first + 1 == stretch.end;
  return true;
}

void Stretches::drop(Variant& variant) {
  variant.graph.reset();
  if (variant.capture != nullptr) plan_.captures->drop(variant.capture);
  variant.capture = nullptr;
}

// With their memory; which inputs are copied stays known.
void Stretches::drop_graphs(Stretch& stretch) {
  for (Variant& variant : stretch.variants) drop(variant);
  stretch.variants.clear();
  for (void*& stage : stretch.stages) {
    if (stage != nullptr) plan_.captures->forget(stage);
    stage = nullptr;
  }
}

void Stretches::clear(Stretch& stretch) {
  drop_graphs(stretch);
  stretch.staged.assign(stretch.storages.size(), false);
}

}  // namespace dynvm::runtime
