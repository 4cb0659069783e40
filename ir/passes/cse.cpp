// cse: computes equal things once.
//
// Value numbering in one walk: an instruction whose op, immediate and (already merged) operands equal an earlier one's is that one, if it
// gives the same still. Pure operations, and guards and unboxings that only concern values which never change (identity of a value, a
// number in an immutable object), always do. Loads and guards on state do unless an instruction between may change what they read
// (effects.h, may_change), and a guard that holds already is dropped. A load after a store to the same place is the stored value.
//
// Nothing moves, so snapshots stay right: a merged value is an older one with the same meaning, and a dropped guard would not have failed.
// One walk ends it; the search for writes between is bounded (search_writes), beyond which the answer is "changed".
//
// Tests: tests/ir/passes/cse.
#include <algorithm>
#include <string>
#include <unordered_map>

#include "ir/effects.h"
#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"
#include "runtime/base/defects.h"
#include "runtime/base/heuristics.h"

namespace dynvm::ir {
namespace {


// What the instruction tells cannot change while its operands stay what they are, whatever Python code runs.
bool timeless(const Inst& inst) {
  switch (inst.op) {
    case Op::k_guard_is:
    case Op::k_guard_bound:
    case Op::k_guard_true:
    case Op::k_guard_false:
    case Op::k_unbox_int:
    case Op::k_unbox_float:
    case Op::k_unbox_bool:
    case Op::k_tuple_len: return true;
    default: return has_effect(inst, kPure) || (has_effect(inst, kGuard) && (inst.type == Type::kInt || inst.type == Type::kFloat));
  }
}

class Merge {
 public:
  Merge(Trace& trace, bool guards_only)
      : trace_(trace), guards_only_(guards_only), to_(trace.insts.size()), dead_(trace.insts.size(), false) {}

  void run() {
    known_.reserve(trace_.insts.size());
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      Inst& inst = trace_.insts[ref];
      for (uint32_t k = 0; k < inst.count; ++k) trace_.operands[inst.first + k] = to_[trace_.operands[inst.first + k]];
      if (has_effect(inst, kWrite | kBarrier)) {
        writes_.push_back(ref);
        if (!guards_only_) remember_store(ref);
        continue;
      }
      if (!candidate(inst)) continue;
      auto [entry, added] = known_.try_emplace(key(inst.op, ref), Known{ref, ref});
      if (added) continue;
      if (timeless(inst) || unchanged_since(entry->second.since, ref)) {
        to_.set(ref, entry->second.value);
        dead_[ref] = true;
      } else {
        entry->second = Known{ref, ref};
      }
    }
    rebuild_without(&trace_, dead_, &to_);
  }

 private:
  struct Known {
    Ref value;
    Ref since;  // the instruction after which a write may have changed it
  };

  bool candidate(const Inst& inst) const {
    if (inst.sunk) return false;
    if (guards_only_) return has_effect(inst, kGuard);
    if (has_effect(inst, kRaises) && inst.op != Op::k_call_pure) return false;
    return has_effect(inst, kPure | kLoad | kGuard);
  }

  std::string key(Op op, Ref ref) {
    const Inst& inst = trace_.insts[ref];
    std::string out;
    auto append = [&](uint64_t word) { out.append(reinterpret_cast<const char*>(&word), sizeof word); };
    append(static_cast<uint64_t>(op));
    // guard_is carries the place it teaches, which is not part of what it checks.
    append(op == Op::k_guard_is ? 0 : op == Op::k_unbox_tensor ? meta_number(inst.meta) : static_cast<uint64_t>(inst.imm));
    for (uint32_t k = 0; k < inst.count; ++k) append(trace_.arg(inst, k));
    return out;
  }

  // The same for equal ones.
  int32_t meta_number(int32_t meta) {
    if (same_meta_.empty()) same_meta_.assign(trace_.metas.size(), -1);
    if (same_meta_[meta] >= 0) return same_meta_[meta];
    std::vector<int32_t>& alike = metas_on_[trace_.metas[meta].storage];
    const auto found = std::find_if(alike.begin(), alike.end(), [&](int32_t other) { return trace_.metas[other] == trace_.metas[meta]; });
    if (found != alike.end()) return same_meta_[meta] = *found;
    alike.push_back(meta);
    return same_meta_[meta] = meta;
  }

  bool unchanged_since(Ref since, Ref reader) const {
    if (base::seeded(base::Defect::kCseAcrossWrites)) return true;
    size_t seen = 0;
    for (size_t k = writes_.size(); k-- > 0 && writes_[k] > since;)
      if (++seen > static_cast<size_t>(base::heuristics().search_writes) || may_change(trace_, writes_[k], reader)) return false;
    return true;
  }

  // store_value %o, %v #k: from here on, load_value %o #k is %v.
  void remember_store(Ref ref) {
    const Inst& inst = trace_.insts[ref];
    Op load;
    uint32_t places = 1;  // operands that name the place; the next one is the value
    switch (inst.op) {
      case Op::k_store_value: load = Op::k_load_value; break;
      case Op::k_store_field: load = Op::k_load_field; break;
      case Op::k_dict_set:
        load = Op::k_dict_get;
        places = 2;
        break;
      case Op::k_list_set:
        load = Op::k_list_item;
        places = 2;
        break;
      default: return;
    }
    std::string out;
    auto append = [&](uint64_t word) { out.append(reinterpret_cast<const char*>(&word), sizeof word); };
    append(static_cast<uint64_t>(load));
    append(static_cast<uint64_t>(inst.imm));
    for (uint32_t k = 0; k < places; ++k) append(trace_.arg(inst, k));
    known_[out] = Known{trace_.arg(inst, places), ref};
  }

  Trace& trace_;
  bool guards_only_;
  Replacements to_;
  std::vector<bool> dead_;
  std::unordered_map<std::string, Known> known_;
  std::vector<Ref> writes_;
  std::vector<int32_t> same_meta_;                             // -1: not looked for yet
  std::unordered_map<int32_t, std::vector<int32_t>> metas_on_;  // by storage: those that are different
};

}  // namespace

void merge_equal(Trace& trace, bool guards_only) { Merge(trace, guards_only).run(); }

void pass_cse(Trace& trace, const PassOptions&) { merge_equal(trace, false); }

}  // namespace dynvm::ir
