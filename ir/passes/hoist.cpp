// hoist: moves guards and loads up, to where one look at the state of Python serves the whole stretch that cannot change it.
//
// Tensor work cannot change what guards on Python objects see, and residual calls (barriers) are few; so most guards of an iteration can
// stand together at its top, or just behind the barrier or write that forced them to stay. There they merge (the last step, as cse does),
// a failing one has not yet cost any tensor work, and they no longer stand between the tensor operations that want to become one kernel.
//
// A guard may stand anywhere that is described by a snapshot: the places are the top (snapshot 0, the entry) and, after any instruction x,
// the first instruction behind x that has a snapshot and stands before every effect of its bytecode instruction (a call that became five
// tensor operations has one snapshot, good for the first of them only). A moved guard takes that place's snapshot; when it fails, the
// interpreter goes on from there, and no effect behind the place has happened yet. The place of an instruction is the first one behind
//   - its operands (pure operands move along on demand),
//   - the last barrier, or write that may change what it reads (effects.h),
//   - the guards that vouch for what it reads, see below.
// Loads that can raise do not move: the exception would come from another instruction. A number that is read of an input in the host's memory cannot: it moves too, up to
// the last instruction that may write that memory, and what is computed from it follows. So the step counters of an optimizer are read before it updates anything, and no guard
// on what comes of them stands between the updates. (What the trace computes itself is read where the script reads it: sooner, it would have to be in memory before its kernel
// has met what is computed next.)
//
// Memory safety: a load may only touch objects that an earlier guard has shown to be what they are taken for. Guards and loads moved to one
// place keep their order there. A guard left behind may be what protects a later instruction, so a guard never moves above one on the same
// operand, and a load never above any guard on the identity, type or layout of objects (an item: nor above a condition, which may be its
// bounds check; a tensor's grad is guarded by what has opened the tensor, so it may: whether it is there decides what backward() does, and once there is a
// graph it is late to find out). The walk visits each instruction once and each is placed once, so it ends.
//
// Tests: tests/ir/passes/hoist.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/effects.h"
#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"
#include "runtime/base/defects.h"
#include "runtime/base/heuristics.h"

namespace dynvm::ir {
namespace {

constexpr Ref kStays = kNoRef;

class Hoist {
 public:
  explicit Hoist(Trace& trace) : trace_(trace), count_(static_cast<Ref>(trace.insts.size())), place_(count_, kStays), bucket_(count_) {}

  void run() {
    find_places();
    // What the entry's snapshot names (a side trace's frames) stands before all that moves there.
    for_each_value(trace_, trace_.snapshots[0], [&](Ref value) { bring(value, 0); });
    for (Ref ref = 0; ref < count_; ++ref) {
      const Inst& inst = trace_.insts[ref];
      if (has_effect(inst, kWrite | kBarrier)) writes_.push_back(ref);
      const bool reads = reads_host(inst);
      if (!reads) note_tensor_writes(ref);
      if (inst.sunk || !(reads || has_effect(inst, kGuard | kLoad))) continue;
      bool own_exit = inst.snapshot != kNoSnapshot && trace_.snapshots[inst.snapshot].elsewhere;
      if ((reads || !has_effect(inst, kRaises)) && !own_exit) move(ref);
      if (has_effect(inst, kGuard)) note_guard(ref);
    }
    emit();
  }

 private:
  void find_places() {
    std::vector<bool> seen(trace_.snapshots.size(), false), spent(trace_.snapshots.size(), false);
    std::vector<int32_t> open;  // snapshots seen since the last effect
    place_snapshot_.assign(count_, kNoSnapshot);
    for (Ref ref = 0; ref < count_; ++ref) {
      const Inst& inst = trace_.insts[ref];
      if (inst.snapshot != kNoSnapshot && !trace_.snapshots[inst.snapshot].elsewhere) {
        if (!seen[inst.snapshot]) open.push_back(inst.snapshot);
        seen[inst.snapshot] = true;
        if (!spent[inst.snapshot]) place_snapshot_[ref] = inst.snapshot;
      }
      if (!has_effect(inst, kWrite | kBarrier | kTensorMemory) || inst.sunk || inst.op == Op::k_wrap) continue;
      for (int32_t snapshot : open) spent[snapshot] = true;
      open.clear();
    }
    next_place_.assign(count_ + 1, count_);
    for (Ref ref = count_; ref-- > 0;) next_place_[ref] = place_snapshot_[ref] != kNoSnapshot ? ref : next_place_[ref + 1];
  }

  bool reads_host(const Inst& inst) const {
    if (inst.op != Op::k_read_scalar) return false;
    const Ref tensor = trace_.arg(inst, 0);
    return trace_.metas[trace_.insts[tensor].meta].device_type == 0 && inputs_.count(storage_of(trace_, tensor)) != 0;
  }

  void note_tensor_writes(Ref ref) {
    if (trace_.insts[ref].op == Op::k_unbox_tensor) inputs_.insert(storage_of(trace_, ref));
    if (!has_effect(trace_.insts[ref], kTensorMemory)) return;
    for (int32_t storage : tensor_effects(trace_, ref).writes) behind_writes_of_[storage] = ref + 1;
  }

  void note_guard(Ref ref) {
    const Inst& inst = trace_.insts[ref];
    Ref behind = place_[ref] == kStays ? ref + 1 : place_[ref];
    if (inst.count > 0) {
      Ref& last = behind_guards_of_[trace_.arg(inst, 0)];
      last = std::max(last, behind);
    }
    switch (inst.op) {
      case Op::k_guard_true:
      case Op::k_guard_false: behind_conditions_ = std::max(behind_conditions_, behind); break;
      case Op::k_guard_is:
      case Op::k_guard_type:
      case Op::k_guard_type_version:
      case Op::k_guard_dict_version:
      case Op::k_guard_keys_version:
      case Op::k_guard_func_version:
      case Op::k_guard_list_items: behind_object_guards_ = std::max(behind_object_guards_, behind); break;
      default: break;
    }
  }

  // First position behind which `ref` may stand: as a bucket (an instruction in front of which moved ones are put).
  Ref bound(Ref ref) {
    const Inst& inst = trace_.insts[ref];
    Ref bound = 0;
    for (uint32_t k = 0; k < inst.count; ++k) bound = std::max(bound, available(trace_.arg(inst, k)));
    const bool reads = reads_host(inst);
    if (reads) {
      const auto written = behind_writes_of_.find(storage_of(trace_, trace_.arg(inst, 0)));
      if (written != behind_writes_of_.end() && !base::seeded(base::Defect::kReadsEarly)) bound = std::max(bound, written->second);
    }
    if (reads || has_effect(inst, kGuard | kLoad)) {
      size_t seen = 0;
      for (size_t k = writes_.size(); k-- > 0;) {
        if (writes_[k] > ref) continue;
        if (writes_[k] < bound) break;
        if (is_barrier(trace_.insts[writes_[k]]) || (reads && trace_.insts[writes_[k]].op == Op::k_call_known) || ++seen > static_cast<size_t>(base::heuristics().search_writes) || (may_change(trace_, writes_[k], ref) && !(base::seeded(base::Defect::kHoistAcrossWrites) && !has_effect(inst, kGuard)))) {
          bound = std::max(bound, writes_[k] + 1);
          break;
        }
      }
    }
    // Reading inside an object, also inside one that never changes, needs the guards on what it is.
    if (has_effect(inst, kGuard | kLoad) || inst.op == Op::k_tuple_item) {
      for (uint32_t k = 0; k < inst.count; ++k) {
        auto guard = behind_guards_of_.find(trace_.arg(inst, k));
        if (guard != behind_guards_of_.end()) bound = std::max(bound, guard->second);
      }
      if (!has_effect(inst, kGuard) && inst.op != Op::k_get_grad) bound = std::max(bound, behind_object_guards_);
      if (inst.op == Op::k_list_item || inst.op == Op::k_tuple_item) bound = std::max(bound, behind_conditions_);
    }
    return bound;
  }

  // The first bucket in which the value can be used, moving it there if it is pure.
  Ref available(Ref value) {
    const Inst& inst = trace_.insts[value];
    if (place_[value] != kStays) return place_[value];
    if (inst.sunk || !has_effect(inst, kPure) || inst.op == Op::k_result) return value + 1;
    return std::min(bound(value), value + 1);
  }

  void move(Ref ref) {
    Ref first = bound(ref);
    Ref place = first == 0 ? 0 : next_place_[first];
    if (place > ref) return;
    // At its own place it leads the ones that move there: they may rely on it.
    if (place < ref && (has_effect(trace_.insts[ref], kGuard) || reads_host(trace_.insts[ref]))) trace_.insts[ref].snapshot = place == 0 ? 0 : place_snapshot_[place];
    for (uint32_t k = 0; k < trace_.insts[ref].count; ++k) bring(trace_.arg(ref, k), place);
    put(ref, place);
  }

  // Makes a value available in a bucket.
  void bring(Ref value, Ref place) {
    if (place_[value] != kStays || value < place) return;
    for (uint32_t k = 0; k < trace_.insts[value].count; ++k) bring(trace_.arg(value, k), place);
    put(value, place);
  }

  void put(Ref ref, Ref place) {
    place_[ref] = place;
    bucket_[place].push_back(ref);
  }

  void emit() {
    std::vector<Ref> order;
    order.reserve(count_);
    for (Ref ref = 0; ref < count_; ++ref) {
      order.insert(order.end(), bucket_[ref].begin(), bucket_[ref].end());
      if (place_[ref] == kStays) order.push_back(ref);
    }
    Replacements none(count_);
    rebuild(&trace_, order, &none);
  }

  Trace& trace_;
  Ref count_;
  std::vector<Ref> place_;                  // bucket of a moved instruction
  std::vector<std::vector<Ref>> bucket_;    // by the instruction in front of which they go
  std::vector<int32_t> place_snapshot_;     // the snapshot of a place as it was recorded, kNoSnapshot where no guard can go
  std::vector<Ref> next_place_;
  std::vector<Ref> writes_;
  std::unordered_map<Ref, Ref> behind_guards_of_;  // by operand: the first position behind its guards so far
  std::unordered_set<int32_t> inputs_;             // storages
  std::unordered_map<int32_t, Ref> behind_writes_of_;  // by storage: the first position behind what has written it so far
  Ref behind_object_guards_ = 0, behind_conditions_ = 0;
};

}  // namespace

void pass_hoist(Trace& trace, const PassOptions&) {
  if (trace.snapshots.empty()) return;
  Hoist(trace).run();
  merge_equal(trace, true);
}

}  // namespace dynvm::ir
