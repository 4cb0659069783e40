// Lives and slots of values (value_plan.h). One pass backwards for the last uses, one forwards for slots.
#include "codegen/trace/value_plan.h"

#include <algorithm>

#include "ir/effects.h"

namespace dynvm::codegen {

using ir::Inst;
using ir::Op;
using ir::Ref;
using ir::Trace;
using ir::Type;

namespace {

bool is_constant(Op op) {
  return op == Op::k_const_obj || op == Op::k_const_int || op == Op::k_const_float || op == Op::k_const_bool || op == Op::k_slot;
}

bool is_nullable(Op op) {
  switch (op) {
    case Op::k_load_dict_of:
    case Op::k_load_value:
    case Op::k_load_field:
    case Op::k_dict_get:
    case Op::k_iter_next:
    case Op::k_iter_next_known: return true;
    default: return false;
  }
}

// Loads that could do without a reference of their own.
bool may_be_borrowed(Op op) {
  switch (op) {
    case Op::k_load_dict_of:
    case Op::k_load_value:
    case Op::k_load_field:
    case Op::k_tuple_item:
    case Op::k_list_item:
    case Op::k_dict_get: return true;
    default: return false;
  }
}

// Cannot make another reference go away: runs no code, writes nothing, releases nothing by itself.
bool is_quiet(const Inst& inst) {
  if (!is_executed(inst)) return true;
  constexpr uint16_t kLoud = ir::kWrite | ir::kBarrier | ir::kRaises | ir::kTensorMemory | ir::kEnd | ir::kNew;
  return (ir::op_info(inst.op).effects & kLoud) == 0 && inst.op != Op::k_get_grad;
}

class Planner {
 public:
  explicit Planner(const Trace& trace) : trace_(trace) {}

  ValuePlan run() {
    size_t n = trace_.insts.size();
    plan_.values.resize(n);
    plan_.dying.resize(n);
    plan_.spent.resize(n);
    for (Ref ref = 0; ref < n; ++ref) {
      ValuePlan::Value& value = plan_.values[ref];
      value.last_use = ref;
      const Inst& inst = trace_.insts[ref];
      value.owned = needs_slot(inst) && inst.type == Type::kObject && inst.op != Op::k_box_bool;  // True and False never die
      value.nullable = is_nullable(inst.op);
    }
    last_uses();
    spend();
    borrow();
    slots();
    return std::move(plan_);
  }

 private:
  void use(Ref value, Ref at) {
    if (value >= plan_.values.size()) return;  // kSlotNull, kSlotUnchanged, kNoRef
    const Inst& inst = trace_.insts[value];
    if (inst.sunk && inst.op != Op::k_aten) {
      if (expanded_[value] == at + 1) return;
      expanded_[value] = at + 1;
      for (uint32_t k = 0; k < inst.count; ++k) use(trace_.arg(inst, k), at);
      if (inst.op == Op::k_wrap) use_forward(inst, at);
      return;
    }
    plan_.values[value].last_use = std::max(plan_.values[value].last_use, at);
  }

  // Calls that a wrap runs again read their scalars again, and so do views by which it makes tensors.
  void use_forward(const Inst& wrap, Ref at) {
    const auto use_operands = [&](Ref call) {
      const Inst& inst = trace_.insts[call];
      for (uint32_t k = 0; k < inst.count; ++k) use(trace_.arg(inst, k), at);
    };
    for (Ref call : trace_.wraps[wrap.imm].forward) use_operands(call);
    for (Ref view : ir::views_of_wrap(trace_, wrap))
      if (trace_.calls[trace_.insts[view].imm].follows) use_operands(view);
  }

  void last_uses() {
    expanded_.assign(trace_.insts.size(), 0);
    std::vector<Ref> last_exit(trace_.snapshots.size(), ir::kNoRef);
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const Inst& inst = trace_.insts[ref];
      if (!is_executed(inst)) continue;
      for (uint32_t k = 0; k < inst.count; ++k) use(trace_.arg(inst, k), ref);
      if (inst.op == Op::k_wrap) use_forward(inst, ref);
      if (inst.snapshot >= 0) last_exit[inst.snapshot] = ref;
    }
    std::vector<Ref> last_shown(trace_.frames.size(), ir::kNoRef);
    for (size_t k = 0; k < last_exit.size(); ++k) {
      if (last_exit[k] == ir::kNoRef) continue;
      for (uint32_t frame : trace_.snapshots[k].frames)
        last_shown[frame] = last_shown[frame] == ir::kNoRef ? last_exit[k] : std::max(last_shown[frame], last_exit[k]);
      for (const ir::SnapshotStore& store : trace_.snapshots[k].stores)
        for (Ref part : {store.dict, store.key, store.value}) use(part, last_exit[k]);
    }
    for (size_t k = 0; k < last_shown.size(); ++k) {
      if (last_shown[k] == ir::kNoRef) continue;
      const ir::SnapshotFrame& frame = trace_.frames[k];
      use(frame.function, last_shown[k]);
      use(frame.continuation_value, last_shown[k]);
      for (Ref slot : frame.slots) use(slot, last_shown[k]);
    }
  }

  // Finds where root slots are spent: behind an operation on tensors, where there is one, as these are few. Not where the trace reads what was there: a tensor that it works on is held for all of
  // the iteration, and an object that a guard has found to be a certain one stands behind constants, which are borrowed.
  void spend() {
    if (trace_.insts.empty() || trace_.insts.back().op != Op::k_loop) return;
    const std::vector<Ref>& next = root_slots(trace_.insts.back().snapshot);
    std::vector<bool> of_tensor(trace_.insts.size(), false);
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      if (trace_.insts[ref].op == Op::k_wrap) of_tensor[ref] = true;
      if (trace_.insts[ref].op == Op::k_unbox_tensor) of_tensor[trace_.arg(ref, 0)] = true;
    }
    std::vector<Ref> needed(next.size(), ir::kNoRef);  // kNoRef: it stays
    for (size_t slot = 0; slot < next.size(); ++slot)
      if (next[slot] < trace_.insts.size() && of_tensor[next[slot]]) needed[slot] = 0;
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const Inst& inst = trace_.insts[ref];
      const auto slot = static_cast<size_t>(inst.imm);
      if (inst.op == Op::k_slot && slot < needed.size() && needed[slot] != ir::kNoRef) needed[slot] = std::max(needed[slot], plan_.values[ref].last_use);
      for (uint32_t k = 0; k < inst.count && inst.op != Op::k_guard_type && inst.op != Op::k_guard_bound; ++k) {
        const Inst& from = trace_.insts[trace_.arg(inst, k)];
        if (from.op == Op::k_slot && static_cast<size_t>(from.imm) < needed.size()) needed[static_cast<size_t>(from.imm)] = ir::kNoRef;
      }
      if (!is_executed(inst) || inst.snapshot < 0) continue;
      const std::vector<Ref>& slots = root_slots(inst.snapshot);
      for (size_t k = 0; k < needed.size(); ++k)
        if (needed[k] != ir::kNoRef && (k >= slots.size() || slots[k] == ir::kSlotUnchanged)) needed[k] = std::max(needed[k], ref);
    }
    for (size_t slot = 0; slot < needed.size(); ++slot) {
      if (needed[slot] == ir::kNoRef) continue;
      Ref behind = needed[slot] + 1;
      while (behind + 1 < trace_.insts.size() && !works_on_tensors(trace_.insts[behind])) ++behind;
      if (behind + 1 < trace_.insts.size()) plan_.spent[behind].push_back(static_cast<int32_t>(slot));
    }
  }

  const std::vector<Ref>& root_slots(int32_t snapshot) const { return trace_.frame(trace_.snapshots[snapshot], 0).slots; }
  static bool works_on_tensors(const Inst& inst) { return is_executed(inst) && (inst.op == Op::k_aten || inst.op == Op::k_kernel); }

  // Gives up the reference of loads that need none. In order of definition, so that a value's own borrowing is known to later ones; an
  // owned value that dies inside ends the time, whether or not it would be borrowed in the end.
  void borrow() {
    size_t n = trace_.insts.size();
    std::vector<uint32_t> deaths(n, 0);
    for (Ref ref = 0; ref < n; ++ref)
      if (plan_.values[ref].owned) ++deaths[plan_.values[ref].last_use];
    for (Ref ref = 0; ref < n; ++ref) {
      ValuePlan::Value& value = plan_.values[ref];
      if (!value.owned || !may_be_borrowed(trace_.insts[ref].op)) continue;
      bool quiet = true;
      for (Ref at = ref; at < value.last_use && quiet; ++at) {
        uint32_t others = deaths[at];
        quiet = (at == ref || is_quiet(trace_.insts[at])) && others == 0;
      }
      // What the last user does with it happens after its operands are read: a call holds its arguments only by our reference.
      quiet = quiet && (value.last_use == ref || is_quiet(trace_.insts[value.last_use]));
      if (!quiet) continue;
      value.owned = false;
      --deaths[value.last_use];
    }
  }

  void slots() {
    std::vector<int32_t> free;
    std::vector<std::vector<Ref>> ending(trace_.insts.size());
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      if (needs_slot(trace_.insts[ref])) {
        ValuePlan::Value& value = plan_.values[ref];
        if (free.empty()) {
          value.slot = plan_.num_slots++;
        } else {
          value.slot = free.back();
          free.pop_back();
        }
        ending[value.last_use].push_back(ref);
        if (value.owned) {
          plan_.owned.push_back(ref);
          plan_.dying[value.last_use].push_back(ref);
        }
      }
      for (Ref dead : ending[ref]) free.push_back(plan_.values[dead].slot);
    }
  }

  const Trace& trace_;
  ValuePlan plan_;
  std::vector<Ref> expanded_;  // by sunk instruction: 1 + the use it was expanded for last
};

}  // namespace

bool is_executed(const Inst& inst) {
  return !inst.sunk && !is_constant(inst.op) && inst.op != Op::k_result && inst.op != Op::k_graph_freed;
}

bool needs_slot(const Inst& inst) { return is_executed(inst) && inst.type != Type::kVoid && inst.type != Type::kTensor; }

ValuePlan plan_values(const Trace& trace) { return Planner(trace).run(); }

}  // namespace dynvm::codegen
