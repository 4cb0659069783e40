// Which calls of a trace write to the memory of a tensor value.
#pragma once

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/effects.h"
#include "ir/trace.h"
#include "tracer/recorder.h"

namespace dynvm::tracer {

void set_operands(ir::Trace* trace, ir::Ref ref, const std::vector<ir::Ref>& operands);

// What a trace's calls write, by storage.
class Writes {
 public:
  explicit Writes(const ir::Trace& trace) : trace_(trace) {
    for (ir::Ref r = 0; r < trace.insts.size(); r++) {
      const ir::Inst& inst = trace.insts[r];
      if (inst.op != ir::Op::k_aten) continue;
      const ir::AtenCall& call = trace.calls[inst.imm];
      for (int32_t argument : call.mutates)
        for (int32_t operand : call.args[argument].operands)
          if (const int32_t meta = operand < 0 ? -1 : trace.insts[trace.arg(inst, static_cast<uint32_t>(operand))].meta; meta >= 0) of_storage_[trace.metas[meta].storage].emplace_back(r, meta);
    }
  }

  // Does a call between two instructions, other than these, write to the memory of this tensor value?
  bool between(ir::Ref tensor, ir::Ref after, ir::Ref before, const ir::Marks& but_by) const { return any(tensor, after, before, but_by, false); }
  // Does autograd hang a graph at this memory in between, by a write that is none of these calls, as one through a view?
  bool graph_between(ir::Ref tensor, ir::Ref after, ir::Ref before, const ir::Marks& but_by) const {
    return any(tensor, after, before, but_by, false, [this](ir::Ref call) { return is_differentiated(trace_.calls[trace_.insts[call].imm]); });
  }
  // Calls `with` on each call between its making and `before` that writes to the memory of this tensor value.
  template <typename With>
  void each(ir::Ref tensor, ir::Ref before, const With& with) const {
    const ir::TensorMeta& read = trace_.metas[trace_.insts[tensor].meta];
    const auto found = of_storage_.find(read.storage);
    if (found == of_storage_.end()) return;
    for (const auto& [call, meta] : found->second)
      if (call > tensor && call < before && ir::may_overlap(read, trace_.metas[meta])) with(call);
  }
  // Does one of these?
  bool by(const ir::Marks& calls, ir::Ref tensor, ir::Ref after, ir::Ref before) const { return any(tensor, after, before, calls, true); }

 private:
  bool any(ir::Ref tensor, ir::Ref after, ir::Ref before, const ir::Marks& calls, bool among, const std::function<bool(ir::Ref)>& counts = nullptr) const {
    const ir::TensorMeta& read = trace_.metas[trace_.insts[tensor].meta];
    const auto found = of_storage_.find(read.storage);
    return found != of_storage_.end() && std::any_of(found->second.begin(), found->second.end(), [&](const std::pair<ir::Ref, int32_t>& write) {
      return write.first > after && write.first < before && calls.contains(write.first) == among && (!counts || counts(write.first)) && ir::may_overlap(read, trace_.metas[write.second]);
    });
  }

  const ir::Trace& trace_;
  std::unordered_map<int32_t, std::vector<std::pair<ir::Ref, int32_t>>> of_storage_;
};

}  // namespace dynvm::tracer
