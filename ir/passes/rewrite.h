// Building a trace anew: the one place where instructions are moved, dropped and renamed.
//
// Inputs: a trace, the instructions to keep in their new order, replacements of values. Outputs: the trace rewritten, all references
// (operands, snapshots, wraps) renamed. Invariant: operands end up defined before their users only if `order` says so; the verifier checks.
// Tests: all of tests/ir/passes.
#pragma once

#include <vector>

#include "ir/trace.h"

namespace dynvm::ir {

// Which value stands for which: identity at first.
class Replacements {
 public:
  explicit Replacements(size_t count) : to_(count, kNoRef) {}
  void set(Ref from, Ref to) { to_[from] = to; }
  bool replaced(Ref ref) const { return to_[ref] != kNoRef; }
  Ref operator[](Ref ref) {  // the last one of the chain, which is shortened on the way
    if (ref >= to_.size() || to_[ref] == kNoRef) return ref;
    return to_[ref] = (*this)[to_[ref]];
  }

 private:
  std::vector<Ref> to_;
};

// `order`: old references. Snapshots that no kept instruction has are dropped (the first stays: it is the entry) and the others renumbered.
void rebuild(Trace* trace, const std::vector<Ref>& order, Replacements* replacements);

// The usual case: the old order without the instructions marked dead.
void rebuild_without(Trace* trace, const std::vector<bool>& dead, Replacements* replacements);

// Memory of the trace's own that looks so (its storage is made here), for kernels to hand something on in: a value of empty memory, which nothing runs for. Its instructions come last in `order`.
Ref add_empty(Trace* trace, TensorMeta meta, std::vector<Ref>* order);

// All tensors on the storage `from`, and kernels' operands, lie on `to` from now on.
void move_storage(Trace* trace, int32_t from, int32_t to);

// Calls visit(Ref&) for each value that the frame names.
template <class Frame, class Visit>
void for_each_value(Frame& frame, Visit visit) {
  if (frame.function != kNoRef) visit(frame.function);
  if (frame.continuation_value != kNoRef) visit(frame.continuation_value);
  for (auto& slot : frame.slots)
    if (slot != kSlotNull && slot != kSlotUnchanged) visit(slot);
}

// The same for what the snapshot itself names, beside its frames.
template <class SnapshotType, class Visit>
void for_each_store_value(SnapshotType& snapshot, Visit visit) {
  for (auto& store : snapshot.stores) {
    visit(store.dict);
    visit(store.key);
    visit(store.value);
  }
}

// Beside its operands, what a wrap's graph is made of.
template <class Visit>
void for_each_value(Wrap& wrap, Visit visit) {
  for (Ref& call : wrap.forward) visit(call);
  for (FreedNode& freed : wrap.freed_behind) visit(freed.value);
  for (GraphNode& node : wrap.nodes) {
    for (std::vector<Ref>* values : {&node.outputs, &node.inputs, &node.saved, &node.sized, &node.calls})
      for (Ref& value : *values) visit(value);
    for (CallNumber& number : node.numbers) visit(number.call);
  }
}

// And for a snapshot with its frames.
template <class Visit>
void for_each_value(const Trace& trace, const Snapshot& snapshot, Visit visit) {
  for (uint32_t frame : snapshot.frames) for_each_value(trace.frames[frame], visit);
  for_each_store_value(snapshot, visit);
}

}  // namespace dynvm::ir
