// sink: objects that only snapshots name are made when an exit is taken.
//
// One walk backwards: a new object whose users are all sunk already (or are no instructions, only snapshots and sunk wraps) is marked sunk.
// Code generation skips it and the exit makes it, operands first. Its value is the same then: its operands are values of the trace, and a
// tensor object shares its storage, so it shows what has been written until the exit, as the object made early would. Objects whose making
// depends on the time (iterators, functions with cells) are not sunk, nor is what a loop writes back to its frame: each iteration makes that, and a tensor
// would be copied out of the arena each time. A sunk instruction needs no snapshot.
//
// Tests: tests/ir/passes/sink.
#include "ir/effects.h"
#include "ir/passes/pass.h"

namespace dynvm::ir {
namespace {

bool can_sink(const Inst& inst) {
  switch (inst.op) {
    case Op::k_box_int:
    case Op::k_box_float:
    case Op::k_box_bool:
    case Op::k_build_tuple:
    case Op::k_build_list:
    case Op::k_build_slice:
    case Op::k_build_map:
    case Op::k_bind_method:
    case Op::k_wrap: return true;
    default: return false;
  }
}

}  // namespace

void pass_sink(Trace& trace, const PassOptions&) {
  std::vector<bool> used(trace.insts.size(), false);
  if (const Inst& last = trace.insts.back(); last.op == Op::k_loop)
    for (Ref slot : trace.frame(trace.snapshots[last.snapshot], 0).slots)
      if (slot < used.size()) used[slot] = true;
  for (Ref ref = static_cast<Ref>(trace.insts.size()); ref-- > 0;) {
    Inst& inst = trace.insts[ref];
    if (!used[ref] && can_sink(inst)) {
      inst.sunk = true;
      inst.snapshot = kNoSnapshot;
    }
    if (inst.sunk) continue;
    for (uint32_t k = 0; k < inst.count; ++k) used[trace.arg(inst, k)] = true;
  }
}

}  // namespace dynvm::ir
