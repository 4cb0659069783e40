// What an instruction does to tensor memory, by storage, and to Python memory, by kind of place.
//
// Inputs: a trace and an instruction. Outputs: sets of storages read and written; whether a write to Python memory can change what a load
// or a guard sees. Passes order instructions by these answers and by nothing else. Invariant: when in doubt the answer is "yes".
// Tests: tests/ir/passes.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/trace.h"

namespace dynvm::ir {

struct TensorEffects {
  std::vector<int32_t> reads;    // storages, without repetition
  std::vector<int32_t> writes;   // storages whose memory changes, fresh results included
  bool random = false;           // advances the generator
  bool may_raise = false;        // can leave the trace with an exception in practice: bad indexes, singular matrices, unknown operations
};

// Of aten (a sunk one does nothing), kernel, read_scalar, draw_offset. Other ops touch no tensor memory themselves: wrap only shares it.
TensorEffects tensor_effects(const Trace& trace, Ref ref);

// What an operation in place gives is the tensor that it was given: that, or kNoRef.
Ref written_operand(const Trace& trace, Ref ref);
// The calls of views by which a tensor's object is made from its base's, the last one first.
std::vector<Ref> views_behind(const Trace& trace, Ref tensor);
// Those by which a wrap makes tensors: its own, what its nodes save, and what calls read that it runs again.
std::vector<Ref> views_of_wrap(const Trace& trace, const Inst& wrap);

// Of a copy that the trace makes for itself (is_relayout), what it copies: that, or kNoRef.
Ref relaid_operand(const Trace& trace, Ref ref);

// The call computes nothing: each result looks at the memory of an argument (view, detach, _unsafe_view).
bool is_view_call(const Trace& trace, const Inst& inst);
// A view whose place is known before the trace runs: nothing runs for it, and it cannot leave the trace.
bool is_known_view(const Trace& trace, const Inst& inst);

// What an exit needs in memory to make a wrap's object: the tensor's own storage, and where the exit runs forward calls again, what random
// ones among them drew (but for those that draw the same numbers again) and what they read that neither they nor the trace's inputs provide, or what its graph's nodes save. value: also the tensor's own
// where those calls give its value again.
std::vector<int32_t> wrap_storages(const Trace& trace, Ref wrap, bool value = true);

// The storage of a tensor value, -1 where it has none.
int32_t storage_of(const Trace& trace, Ref tensor);

// Is its result memory as it comes (empty, new_empty and their kin)?
bool gives_unwritten(const AtenCall& call);

// Can two tensor values have an element in common? Conservative.
bool may_overlap(const TensorMeta& a, const TensorMeta& b);

// Whether `write` (an instruction with effect W or B) can change what `reader` (effect L or G) gives: the reader must stay behind it.
bool may_change(const Trace& trace, Ref write, Ref reader);

inline bool has_effect(const Inst& inst, uint16_t effects) { return (op_info(inst.op).effects & effects) != 0; }

// Runs Python code, or for other reasons is a wall for every guard.
inline bool is_barrier(const Inst& inst) { return has_effect(inst, kBarrier); }

}  // namespace dynvm::ir
