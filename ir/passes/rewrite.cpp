// Moving, dropping and renaming instructions (rewrite.h).
#include "ir/passes/rewrite.h"

namespace dynvm::ir {

void rebuild(Trace* trace, const std::vector<Ref>& order, Replacements* replacements) {
  std::vector<Ref> renamed(trace->insts.size(), kNoRef);
  std::vector<Inst> insts;
  std::vector<Ref> operands;
  insts.reserve(order.size());
  operands.reserve(trace->operands.size());
  for (Ref old : order) {
    renamed[old] = static_cast<Ref>(insts.size());
    insts.push_back(trace->insts[old]);
  }
  auto rename = [&](Ref ref) { return renamed[(*replacements)[ref]]; };
  std::vector<int32_t> snapshot_numbers(trace->snapshots.size(), -1);
  std::vector<Snapshot> snapshots;
  std::vector<uint32_t> frame_numbers(trace->frames.size(), kNoRef);
  std::vector<SnapshotFrame> frames;
  auto keep_snapshot = [&](int32_t old) {
    if (snapshot_numbers[old] >= 0) return snapshot_numbers[old];
    snapshot_numbers[old] = static_cast<int32_t>(snapshots.size());
    Snapshot& snapshot = snapshots.emplace_back(std::move(trace->snapshots[old]));
    for (uint32_t& frame : snapshot.frames) {
      uint32_t& number = frame_numbers[frame];
      if (number == kNoRef) {
        number = static_cast<uint32_t>(frames.size());
        for_each_value(frames.emplace_back(std::move(trace->frames[frame])), [&](Ref& value) { value = rename(value); });
      }
      frame = number;
    }
    for_each_store_value(snapshot, [&](Ref& value) { value = rename(value); });
    return snapshot_numbers[old];
  };
  if (!trace->snapshots.empty()) keep_snapshot(0);
  std::vector<bool> wrap_done(trace->wraps.size(), false);
  for (Inst& inst : insts) {
    uint32_t first = static_cast<uint32_t>(operands.size());
    for (uint32_t k = 0; k < inst.count; ++k) operands.push_back(rename(trace->operands[inst.first + k]));
    inst.first = first;
    if (inst.snapshot != kNoSnapshot) inst.snapshot = keep_snapshot(inst.snapshot);
    if (inst.op == Op::k_wrap && !wrap_done[inst.imm]) {
      wrap_done[inst.imm] = true;
      for_each_value(trace->wraps[inst.imm], [&](Ref& value) { value = rename(value); });
    }
  }
  trace->insts = std::move(insts);
  trace->operands = std::move(operands);
  trace->snapshots = std::move(snapshots);
  trace->frames = std::move(frames);
}

void rebuild_without(Trace* trace, const std::vector<bool>& dead, Replacements* replacements) {
  std::vector<Ref> order;
  order.reserve(trace->insts.size());
  for (Ref ref = 0; ref < trace->insts.size(); ++ref)
    if (!dead[ref]) order.push_back(ref);
  rebuild(trace, order, replacements);
}

Ref add_empty(Trace* trace, TensorMeta meta, std::vector<Ref>* order) {
  AtenCall call;
  call.name = "aten::empty";
  call.overload = "memory_format";
  call.args.resize(6);
  call.args[0].kind = AtenArg::kIntList;
  call.args[0].ints = meta.sizes;
  call.results = {static_cast<int32_t>(trace->metas.size())};
  call.result_alias = {-1};
  meta.storage = trace->num_storages++;
  trace->metas.push_back(std::move(meta));
  trace->calls.push_back(std::move(call));
  const Ref empty = trace->add(Op::k_aten, Type::kVoid, std::vector<Ref>{}, static_cast<int64_t>(trace->calls.size()) - 1);
  trace->insts[empty].sunk = true;
  const Ref memory = trace->add(Op::k_result, Type::kTensor, {empty}, 0);
  trace->insts[memory].meta = trace->calls.back().results[0];
  order->insert(order->end(), {empty, memory});
  return memory;
}

void move_storage(Trace* trace, int32_t from, int32_t to) {
  for (TensorMeta& meta : trace->metas)
    if (meta.storage == from) meta.storage = to;
  for (Kernel& kernel : trace->kernels)
    for (KernelOperand& operand : kernel.operands)
      if (operand.pointer == from) operand.pointer = to;
}

}  // namespace dynvm::ir
