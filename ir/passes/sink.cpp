// sink: objects that only snapshots name are made when an exit is taken.
//
// One walk backwards: a new object whose users are all sunk already (or are no instructions, only snapshots and sunk wraps) is marked sunk.
// Code generation skips it and the exit makes it, operands first. Its value is the same then: its operands are values of the trace, and a
// tensor object shares its storage, so it shows what has been written until the exit, as the object made early would. Objects whose making
// depends on the time (iterators, functions with cells) are not sunk, nor is what a loop writes back to its frame: each iteration makes that, and a tensor
// would be copied out of the arena each time. A sunk instruction needs no snapshot. A tensor object with a graph is not sunk past a write to what the graph goes
// back to: built behind it, the graph would go through other values.
//
// For the same reason the tensors that frames hold where a trace ends are made in front of the `leave`, from memory that is theirs from the start: its snapshot becomes one of its own
// that names those. Tensors inside of sunk objects are not, as they have to be the same objects there.
//
// Tests: tests/ir/passes/sink.
#include <map>

#include "ir/effects.h"
#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"

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
    case Op::k_tensor_instance:
    case Op::k_build_instance:
    case Op::k_wrap: return true;
    default: return false;
  }
}

// Does an exit have to rebuild the graph of this tensor object from memory among these storages?
bool rebuilt_from(const Trace& trace, const Inst& inst, const std::vector<bool>& storages) {
  if (inst.op != Op::k_wrap || trace.wraps[inst.imm].forward.empty()) return false;
  for (uint32_t k = 1; k < inst.count; ++k)
    if (const int32_t storage = storage_of(trace, trace.arg(inst, k)); storage >= 0 && storages[static_cast<size_t>(storage)]) return true;
  return false;
}

void note_parts(const Trace& trace, Ref object, std::vector<bool>* parts) {
  const Inst& inst = trace.insts[object];
  if (!inst.sunk || inst.op == Op::k_wrap) return;
  for (uint32_t k = 0; k < inst.count; ++k) {
    const Ref part = trace.arg(inst, k);
    if ((*parts)[part]) continue;
    (*parts)[part] = true;
    note_parts(trace, part, parts);
  }
}

void make_at_leave(Trace& trace) {
  const Inst leave = trace.insts.back();
  if (leave.op != Op::k_leave) return;
  Snapshot snapshot = trace.snapshots[leave.snapshot];
  std::vector<bool> parts(trace.insts.size(), false);
  for (uint32_t frame : snapshot.frames)
    for_each_value(trace.frames[frame], [&](Ref value) { note_parts(trace, value, &parts); });
  for_each_store_value(snapshot, [&](Ref value) {
    parts[value] = true;
    note_parts(trace, value, &parts);
  });
  std::map<Ref, Ref> made;
  for (uint32_t frame : snapshot.frames)
    for (Ref slot : trace.frames[frame].slots)
      if (slot < parts.size() && trace.insts[slot].op == Op::k_wrap && trace.insts[slot].sunk && !parts[slot]) made.emplace(slot, kNoRef);
  if (made.empty()) return;
  trace.insts.pop_back();
  for (auto& [sunk, now] : made) {
    Inst wrap = trace.insts[sunk];
    wrap.sunk = false;
    now = static_cast<Ref>(trace.insts.size());
    trace.insts.push_back(wrap);
  }
  for (uint32_t& frame : snapshot.frames) {
    SnapshotFrame copy = trace.frames[frame];
    for (Ref& slot : copy.slots)
      if (const auto found = made.find(slot); found != made.end()) slot = found->second;
    frame = static_cast<uint32_t>(trace.frames.size());
    trace.frames.push_back(std::move(copy));
  }
  trace.snapshots.push_back(std::move(snapshot));
  trace.insts.push_back(leave);
  trace.insts.back().snapshot = static_cast<int32_t>(trace.snapshots.size()) - 1;
}

}  // namespace

void pass_sink(Trace& trace, const PassOptions&) {
  std::vector<bool> used(trace.insts.size(), false);
  if (const Inst& last = trace.insts.back(); last.op == Op::k_loop)
    for (Ref slot : trace.frame(trace.snapshots[last.snapshot], 0).slots)
      if (slot < used.size()) used[slot] = true;
  std::vector<bool> written(static_cast<size_t>(trace.num_storages), false);  // behind this
  for (Ref ref = static_cast<Ref>(trace.insts.size()); ref-- > 0;) {
    Inst& inst = trace.insts[ref];
    for (int32_t storage : tensor_effects(trace, ref).writes) written[static_cast<size_t>(storage)] = true;
    if (!used[ref] && can_sink(inst) && !rebuilt_from(trace, inst, written)) {
      inst.sunk = true;
      inst.snapshot = kNoSnapshot;
    }
    if (inst.sunk) continue;
    for (uint32_t k = 0; k < inst.count; ++k) used[trace.arg(inst, k)] = true;
  }
  make_at_leave(trace);
}

}  // namespace dynvm::ir
