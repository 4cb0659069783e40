// Lifetimes and arena offsets (plan.h).
#include "ir/plan.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "ir/arrange.h"
#include "ir/effects.h"
#include "ir/kernel/symbols.h"
#include "ir/marks.h"
#include "ir/passes/rewrite.h"
#include "runtime/base/defects.h"
#include "runtime/base/switches.h"

namespace dynvm::ir {
namespace {

int64_t bytes_of(const TensorMeta& meta) {
  int64_t last = meta.offset;
  for (size_t k = 0; k < meta.sizes.size(); ++k) {
    if (meta.sizes[k] == 0) return 0;
    last += (meta.sizes[k] - 1) * meta.strides[k];
  }
  return (last + 1) * dtype_size(meta.dtype);
}

class Planner {
 public:
  Planner(const Trace& trace, const std::function<bool(const AtenCall&)>& has_planned_form, const LentFrom& lent_from)
      : trace_(trace), has_planned_form_(has_planned_form), lent_from_(lent_from) {}

  Plan run() {
    live({});
    lend();
    place();
    return std::move(plan_);
  }

  std::vector<StoragePlan> run_lifetimes(const std::vector<bool>& without) {
    live(without);
    return std::move(plan_.storages);
  }

 private:
  void live(const std::vector<bool>& without) {
    plan_.storages.resize(trace_.num_storages);
    for (const TensorMeta& meta : trace_.metas)
      plan_.storages[meta.storage].bytes = std::max(plan_.storages[meta.storage].bytes, bytes_of(meta));
    same_memory_.resize(trace_.num_storages);
    std::iota(same_memory_.begin(), same_memory_.end(), 0);
    late_.assign(trace_.num_storages, false);
    if (!trace_.symbols.empty()) find_symbolic();
    const auto counts = [&](Ref ref) { return without.empty() || !without[ref]; };
    frame_shown_.assign(trace_.frames.size(), kNoRef);
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref)
      if (const Inst& inst = trace_.insts[ref]; inst.snapshot != kNoSnapshot && !inst.sunk && counts(ref))
        for (uint32_t frame : trace_.snapshots[inst.snapshot].frames) frame_shown_[frame] = ref;
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref)
      if (counts(ref)) visit(ref);
    join_lifetimes();
    for (size_t storage = 0; storage < late_.size(); ++storage)
      if (late_[storage] && plan_.storages[storage].kind == StoragePlan::kArena) plan_.storages[storage].kind = StoragePlan::kFresh;
  }

  void touch(int32_t storage, Ref ref) {
    StoragePlan& plan = plan_.storages[storage];
    if (plan.first == kNoRef) plan.first = ref;
    plan.last = ref;
  }

  // A view with a run-time index has a storage of its own, whose memory is that of another one (StoragePlan::shared).
  void note_moved_views(const Inst& inst) {
    const AtenCall& call = trace_.calls[inst.imm];
    for (size_t k = 0; k < call.results.size(); ++k) {
      if (call.results[k] < 0 || call.result_alias[k] < 0) continue;
      const int32_t view = trace_.metas[call.results[k]].storage;
      const int32_t base = storage_of(trace_, trace_.arg(inst, call.args[call.result_alias[k]].operands[0]));
      if (view == base) continue;
      same_memory_[representative(view)] = representative(base);
      plan_.storages[view].shared = plan_.storages[base].shared = true;
    }
  }

  int32_t representative(int32_t storage) const {
    while (same_memory_[storage] != storage) storage = same_memory_[storage];
    return storage;
  }

  // All storages of one memory are needed as long as any of them.
  void join_lifetimes() {
    for (int round = 0; round < 2; ++round)
      for (int32_t storage = 0; storage < trace_.num_storages; ++storage) {
        const int32_t common = representative(storage);
        if (common == storage) continue;
        StoragePlan &from = plan_.storages[round == 0 ? storage : common], &to = plan_.storages[round == 0 ? common : storage];
        if (from.first == kNoRef) continue;
        to.first = to.first == kNoRef ? from.first : std::min(to.first, from.first);
        to.last = to.last == kNoRef ? from.last : std::max(to.last, from.last);
      }
  }

  void visit(Ref ref) {
    const Inst& inst = trace_.insts[ref];
    if (inst.op == Op::k_aten) note_moved_views(inst);
    TensorEffects effects = tensor_effects(trace_, ref);
    for (int32_t storage : effects.reads) touch(storage, ref);
    for (int32_t storage : effects.writes) touch(storage, ref);
    if (inst.op == Op::k_unbox_tensor) {
      const int32_t storage = storage_of(trace_, ref);
      if (plan_.storages[storage].first == kNoRef) plan_.storages[storage].kind = StoragePlan::kInput;
      else touch(storage, ref);  // a view, made outside, of memory that the trace has handed out
    }
    if (inst.op == Op::k_aten && !inst.sunk && !is_view_call(trace_, inst)) {
      const AtenCall& call = trace_.calls[inst.imm];
      if (opens(trace_, call) || !has_planned_form_(call))
        for (int32_t result : call.results) {  // not what it is given to write: memory that nobody has touched before, as a random operation's noise
          if (result < 0) continue;
          const int32_t storage = trace_.metas[result].storage;
          StoragePlan& plan = plan_.storages[storage];
          const bool given = std::find(effects.reads.begin(), effects.reads.end(), storage) != effects.reads.end();
          if (!given && plan.first == ref && plan.kind != StoragePlan::kInput) plan.kind = StoragePlan::kResult;
        }
    }
    if (inst.op == Op::k_wrap && !inst.sunk) {
      const std::vector<int32_t> storages = wrap_storages(trace_, ref);
      for (int32_t storage : storages) touch(storage, ref);
      StoragePlan& plan = plan_.storages[storage_of(trace_, trace_.arg(inst, 0))];
      if (plan.kind == StoragePlan::kArena) plan.kind = StoragePlan::kFresh;
      // An object with a graph may be asked for it when the trace is long over.
      for (int32_t storage : storages)
        if (plan_.storages[storage].kind == StoragePlan::kArena) plan_.storages[storage].kind = StoragePlan::kFresh;
    }
    if (inst.snapshot != kNoSnapshot && !inst.sunk) show(inst.snapshot, ref);
  }

  // An exit here makes the snapshot's sunk objects from memory.
  void show(int32_t snapshot, Ref ref) {
    std::vector<int32_t> shown;
    made_.clear();
    for (uint32_t frame : trace_.snapshots[snapshot].frames)
      if (frame_shown_[frame] == ref) for_each_value(trace_.frames[frame], [&](Ref value) { add_made_of(value, &shown); });
    for_each_store_value(trace_.snapshots[snapshot], [&](Ref value) { add_made_of(value, &shown); });
    for (int32_t storage : shown) keep(storage, ref);
  }

  // Before something has worked on it there is nothing to keep: what an exit makes of it then is computed anew, or out of memory.
  void keep(int32_t storage, Ref ref) {
    if (plan_.storages[storage].first != kNoRef) touch(storage, ref);
  }

  // The storages that a sunk object is made of.
  const std::vector<int32_t>& made_of(Ref object) {
    const auto [entry, added] = made_of_.try_emplace(object);
    if (!added) return entry->second;
    const Inst& inst = trace_.insts[object];
    std::vector<int32_t> storages;
    if (inst.op == Op::k_wrap) storages = wrap_storages(trace_, object);
    for (uint32_t k = 0; k < inst.count; ++k)
      if (const Ref part = trace_.arg(inst, k); trace_.insts[part].sunk)
        for (const int32_t storage : made_of(part)) storages.push_back(storage);
    std::sort(storages.begin(), storages.end());
    storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
    return made_of_[object] = std::move(storages);
  }

  // Those that `made_` does not have yet.
  void add_made_of(Ref object, std::vector<int32_t>* storages) {
    if (!trace_.insts[object].sunk) return;
    for (const int32_t storage : made_of(object))
      if (made_.insert(static_cast<size_t>(storage))) storages->push_back(storage);
  }

  void lend() {
    const bool arranged = std::any_of(plan_.storages.begin(), plan_.storages.end(), [](const StoragePlan& plan) { return plan.kind == StoragePlan::kArena && plan.symbolic && plan.first != kNoRef; });
    const int64_t from = arranged ? std::min(lent_from_.arranged, lent_from_.planned) : lent_from_.planned;
    for (const TensorMeta& meta : trace_.metas) {
      StoragePlan& plan = plan_.storages[meta.storage];
      if (plan.kind != StoragePlan::kArena || meta.device_type != 1 || plan.bytes < from || plan.first == kNoRef) continue;
      const Inst& inst = trace_.insts[plan.first];
      if (!inst.sunk && (inst.op == Op::k_kernel || (inst.op == Op::k_aten && !is_view_call(trace_, inst)))) plan.kind = StoragePlan::kLent;
    }
  }

  void place() {
    std::vector<Piece> pieces(plan_.storages.size());
    const bool apart = base::left_out(base::Part::kArena);
    for (size_t storage = 0; storage < pieces.size(); ++storage) {
      StoragePlan& plan = plan_.storages[storage];
      if (plan.kind != StoragePlan::kArena) continue;
      if (plan.first == kNoRef) plan.bytes = 0;
      if (plan.bytes == 0) continue;
      if (apart) plan.first = 0, plan.last = static_cast<Ref>(trace_.insts.size()) - 1;
      if (base::seeded(base::Defect::kPlanTooShort) && plan.last > plan.first) plan.last--;
      pieces[storage] = {plan.first, plan.last, plan.bytes, 0};
      if (plan.symbolic) plan_.arranged_at = std::min(plan_.arranged_at, first_work_);
    }
    plan_.arena_bytes = arrange(&pieces);
    for (size_t storage = 0; storage < pieces.size(); ++storage) plan_.storages[storage].offset = pieces[storage].offset;
  }

  // --- symbols

  // Is all that it is a sum of?
  bool is_known(const SymbolSum& sum, const std::vector<bool>& known) const {
    for (size_t k = 0; k < known.size(); ++k)
      if (!known[k] && has_symbol(sum.terms, trace_.symbols[k])) return false;
    return true;
  }

  // Symbols whose values inputs tell before anything is computed, and what is of others: these storages are allocated when they are first needed.
  void find_symbolic() {
    std::vector<bool> known(trace_.symbols.size(), false);
    const auto for_each_symbol = [&](const TensorMeta& meta, const auto& body) {
      for (size_t k = 0; k < trace_.symbols.size(); ++k)
        if (has_symbol(meta.sizes, trace_.symbols[k])) body(k);
    };
    for (Ref ref = 0; ref < trace_.insts.size() && first_work_ == kNoRef; ++ref) {
      const Inst& inst = trace_.insts[ref];
      if (inst.op == Op::k_unbox_tensor && trace_.metas[inst.meta].symbolic) for_each_symbol(trace_.metas[inst.meta], [&](size_t k) { known[k] = true; });
      for (const SymbolSum& sum : trace_.sums)
        if (is_known(sum, known)) known[static_cast<size_t>(sum.symbol)] = true;
      const bool works = inst.op == Op::k_kernel || inst.op == Op::k_wrap || (inst.op == Op::k_aten && !is_view_call(trace_, inst));
      if (works && !inst.sunk) first_work_ = ref;
    }
    for (const TensorMeta& meta : trace_.metas) {
      if (!meta.symbolic) continue;
      StoragePlan& plan = plan_.storages[meta.storage];
      plan.symbolic = true;
      for_each_symbol(meta, [&](size_t k) {
        if (!known[k]) late_[meta.storage] = true;
      });
    }
  }

  const Trace& trace_;
  const std::function<bool(const AtenCall&)>& has_planned_form_;
  const LentFrom lent_from_;
  Plan plan_;
  Ref first_work_ = kNoRef;           // where symbols are: the first instruction that computes
  std::vector<bool> late_;            // by storage: its size has a symbol that is not known there
  std::vector<int32_t> same_memory_;  // by storage: one of the same memory, itself at the end of the chain
  std::unordered_map<Ref, std::vector<int32_t>> made_of_;  // by sunk object
  Marks made_;
  std::vector<Ref> frame_shown_;  // by a snapshot's frame: the last instruction that shows it, for which alone its storages are kept
};

}  // namespace

Plan make_plan(const Trace& trace, const std::function<bool(const AtenCall&)>& has_planned_form, const LentFrom& lent_from) {
  return Planner(trace, has_planned_form, lent_from).run();
}

std::vector<StoragePlan> storage_lifetimes(const Trace& trace, const std::vector<bool>& without) {
  const std::function<bool(const AtenCall&)> each = [](const AtenCall&) { return true; };
  return Planner(trace, each, {}).run_lifetimes(without);
}

}  // namespace dynvm::ir
