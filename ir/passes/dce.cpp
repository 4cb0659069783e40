// dce: removes what nothing sees.
//
// Marking from the roots. Roots are instructions with an effect outside the trace: guards, writes to Python state, barriers, ends, random
// draws, tensor operations whose data decides whether they raise. A live instruction makes its operands live, and the values its snapshot
// names; a tensor value that something reads makes its *storage* live, and a live storage makes every instruction live that writes to it.
// The last rule looks at no order, so a write behind the last read stays if anything else reads that storage: simple, and safe for loops
// and exits, which may look at the memory at any time. Inputs' storages are live because the guard that unboxes the tensor is a root, so
// in-place operations on what outlives the trace always stay.
//
// A sunk aten call was fused into a kernel: it stays while its results name tensors or an exit may run it again under autograd, but its
// operands need no memory for that. Marking visits each instruction once.
//
// Tests: tests/ir/passes/dce.
#include "ir/effects.h"
#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"
#include "runtime/base/defects.h"

namespace dynvm::ir {
namespace {

class Mark {
 public:
  Mark(const Trace& trace, const std::vector<bool>& quiet)
      : trace_(trace), quiet_(quiet), live_(trace.insts.size(), false), frame_live_(trace.frames.size(), false), storage_live_(trace.num_storages, false), writers_(trace.num_storages) {}

  std::vector<bool> run() {
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      TensorEffects effects = tensor_effects(trace_, ref);
      for (int32_t storage : effects.writes) writers_[storage].push_back(ref);
      if (root(trace_.insts[ref], effects) && !quiet(ref)) mark(ref);
    }
    while (!work_.empty()) {
      Ref ref = work_.back();
      work_.pop_back();
      visit(ref);
    }
    return std::move(live_);
  }

 private:
  bool quiet(Ref ref) const { return !quiet_.empty() && quiet_[ref]; }

  bool root(const Inst& inst, const TensorEffects& effects) const {
    if (inst.sunk) return false;
    if (has_effect(inst, kGuard | kWrite | kBarrier | kEnd)) return !is_checked_arithmetic(inst);
    switch (inst.op) {
      case Op::k_aten: return effects.random || (effects.may_raise && !base::seeded(base::Defect::kDceRaising));
      case Op::k_result: {  // of a view whose place is a number: the trace is left where it looks otherwise than recorded, as torch may raise there
        const AtenCall& call = trace_.calls[trace_.insts[trace_.arg(inst, 0)].imm];
        if (call.defines_sizes) return true;  // the program may have asked for the size alone: another one leaves the trace
        return is_index(call) && has_run_time_numbers(call) && !call.follows;
      }
      case Op::k_bump_version:
      case Op::k_draw_offset:
      case Op::k_graph_freed: return true;
      case Op::k_get_attr_known: return true;  // can raise AttributeError
      default: return false;
    }
  }

  // Leaves the trace only to have the interpreter compute the same in another way: not needed where the result is not.
  static bool is_checked_arithmetic(const Inst& inst) {
    bool number = inst.type == Type::kInt || inst.type == Type::kFloat;
    return number && inst.op != Op::k_unbox_int && inst.op != Op::k_unbox_float && !has_effect(inst, kWrite | kBarrier) &&
           inst.op != Op::k_div_float && inst.op != Op::k_floordiv_int && inst.op != Op::k_mod_int && inst.op != Op::k_pow_float &&
           inst.op != Op::k_sqrt_float;
  }

  void mark(Ref ref) {
    if (live_[ref]) return;
    live_[ref] = true;
    work_.push_back(ref);
  }

  // Something looks at the memory of this tensor value.
  void mark_memory(Ref tensor) {
    if (int32_t storage = storage_of(trace_, tensor); storage >= 0) mark_storage(storage);
  }

  void visit(Ref ref) {
    const Inst& inst = trace_.insts[ref];
    bool reads = !(inst.op == Op::k_aten && (inst.sunk || is_view_call(trace_, inst))) && inst.op != Op::k_bump_version &&
                 inst.op != Op::k_graph_freed;
    for (uint32_t k = 0; k < inst.count; ++k) {
      Ref operand = trace_.arg(inst, k);
      mark(operand);
      if (reads && trace_.insts[operand].type == Type::kTensor) mark_memory(operand);
    }
    if (inst.op == Op::k_unbox_tensor) mark_memory(ref);
    if (inst.op == Op::k_wrap) {
      for (Ref call : trace_.wraps[inst.imm].forward) mark(call);
      for (const GraphNode& node : trace_.wraps[inst.imm].nodes)
        for (const std::vector<Ref>* values : {&node.outputs, &node.inputs, &node.saved, &node.sized})
          for (Ref value : *values) mark(value);
      for (int32_t storage : wrap_storages(trace_, ref)) mark_storage(storage);
    }
    if (inst.snapshot == kNoSnapshot || inst.sunk || quiet(ref)) return;
    const Snapshot& snapshot = trace_.snapshots[inst.snapshot];
    for (uint32_t frame : snapshot.frames) {
      if (frame_live_[frame]) continue;
      frame_live_[frame] = true;
      for_each_value(trace_.frames[frame], [&](Ref value) { mark(value); });
    }
    for_each_store_value(snapshot, [&](Ref value) { mark(value); });
  }

  void mark_storage(int32_t storage) {
    if (storage_live_[storage]) return;
    storage_live_[storage] = true;
    for (Ref writer : writers_[storage]) mark(writer);
  }

  const Trace& trace_;
  const std::vector<bool>& quiet_;
  std::vector<bool> live_, frame_live_, storage_live_;
  std::vector<std::vector<Ref>> writers_;
  std::vector<Ref> work_;
};

}  // namespace

std::vector<bool> live_instructions(const Trace& trace, const std::vector<bool>& quiet) { return Mark(trace, quiet).run(); }

void pass_dce(Trace& trace, const PassOptions&) {
  std::vector<bool> dead = live_instructions(trace, {});
  dead.flip();
  Replacements none(dead.size());
  rebuild_without(&trace, dead, &none);
}

}  // namespace dynvm::ir
