// See size_backwards.h.
#include "tracer/size_backwards.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tracer/trace_writes.h"

namespace dynvm::tracer {

using ir::AtenArg;
using ir::kNoRef;
using ir::Ref;
using ir::TensorMeta;
using ir::Type;
using IrOp = ir::Op;

namespace {

// Visits the graph nodes whose backward has this number: each wrap that the node is behind has its own description of it.
template <class Visit>
void for_each_node(ir::Trace& trace, size_t number, Visit visit) {
  for (Ref wrap = 0; wrap < trace.insts.size(); ++wrap)
    if (trace.insts[wrap].op == IrOp::k_wrap)
      for (ir::GraphNode& node : trace.wraps[trace.insts[wrap].imm].nodes)
        if (static_cast<size_t>(node.number) == number) visit(wrap, node);
}

// `aten::empty_like` of the operand lies as autograd lays out its gradient.
ir::AtenCall empty_like(int32_t meta) {
  ir::AtenCall call;
  call.name = "aten::empty_like";
  call.args.resize(6);
  call.args[0].kind = AtenArg::kTensor;
  call.args[0].operands = {0};
  call.results = {meta};
  call.result_alias = {-1};
  call.in_backward = true;
  return call;
}

}  // namespace

void JoinedBackwards::join(ir::Trace* trace, std::vector<ir::Trace> backwards, SizeFacts* sizes) {
  calls_ = trace->calls.size();
  metas_ = trace->metas.size();
  storages_ = trace->num_storages;
  ends_.push_back(static_cast<Ref>(trace->insts.size()));
  for (size_t number = 0; number < backwards.size(); ++number) {
    const ir::GraphNode* node = nullptr;
    for_each_node(*trace, number, [&](Ref, const ir::GraphNode& each) { node = &each; });
    Tail tail{std::move(backwards[number]), {}};
    const ir::Trace& recorded = tail.recorded;
    std::map<int32_t, int32_t> storages;
    const auto meta_of = [&](const TensorMeta& of) {
      TensorMeta meta = of;
      const auto storage = storages.emplace(meta.storage, trace->num_storages);
      if (storage.second) trace->num_storages++;
      meta.storage = storage.first->second;
      trace->metas.push_back(std::move(meta));
      return static_cast<int32_t>(trace->metas.size()) - 1;
    };
    const auto call = [&](ir::AtenCall how, const std::vector<Ref>& operands) {
      trace->calls.push_back(std::move(how));
      sizes->torch_call_of.push_back(static_cast<int32_t>(sizes->torch_calls.size()));
      sizes->torch_calls.emplace_back();
      sizes->after_effect.push_back(false);
      return trace->add(IrOp::k_aten, Type::kVoid, operands, static_cast<int64_t>(trace->calls.size()) - 1);
    };
    const auto result = [&](Ref made, int64_t index, int32_t meta) {
      const Ref ref = trace->add(IrOp::k_result, Type::kTensor, {made}, index);
      trace->insts[ref].meta = meta;
      return ref;
    };
    tail.refs.assign(recorded.insts.size(), kNoRef);
    size_t inputs = 0, numbers = 0;
    for (Ref ref = 0; ref < recorded.insts.size(); ++ref) {
      const ir::Inst& inst = recorded.insts[ref];
      if (inst.op == IrOp::k_unbox_tensor) {
        const size_t input = inputs++, outputs = node->outputs.size();
        if (input < outputs) {
          const int32_t meta = meta_of(recorded.metas[inst.meta]);
          tail.refs[ref] = result(call(empty_like(meta), {node->outputs[input]}), 0, meta);
        } else {
          const Ref saved = tail.refs[ref] = node->saved[input - outputs];
          storages.emplace(recorded.metas[inst.meta].storage, trace->metas[trace->insts[saved].meta].storage);
        }
      } else if (inst.op == IrOp::k_unbox_int || inst.op == IrOp::k_unbox_float) {
        const ir::CallNumber& number = node->numbers[numbers++];
        tail.refs[ref] = trace->arg(number.call, static_cast<uint32_t>(trace->calls[trace->insts[number.call].imm].args[static_cast<size_t>(number.argument)].operands[0]));
      } else if (inst.op == IrOp::k_aten) {
        ir::AtenCall how = recorded.calls[inst.imm];
        for (int32_t& meta : how.results)
          if (meta >= 0) meta = meta_of(recorded.metas[meta]);
        std::vector<Ref> operands;
        for (uint32_t k = 0; k < inst.count; ++k) operands.push_back(tail.refs[recorded.arg(inst, k)]);
        tail.refs[ref] = call(std::move(how), operands);
      } else if (inst.op == IrOp::k_result) {
        const Ref made = tail.refs[recorded.arg(inst, 0)];
        tail.refs[ref] = result(made, inst.imm, trace->calls[trace->insts[made].imm].results[static_cast<size_t>(inst.imm)]);
      }
    }
    ends_.push_back(static_cast<Ref>(trace->insts.size()));
    tails_.push_back(std::move(tail));
  }
}

// Moves one tail out.
class JoinedBackwards::Parting {
 public:
  Parting(const JoinedBackwards& all, const Made& made, size_t number)
      : made_(made), from_(*made.trace), tail_(all.tails_[number]), number_(number), begin_(made.ends[number]), end_(made.ends[number + 1]), own_end_(made.ends[0]) {
    for (Ref ref = 0; ref < tail_.refs.size(); ++ref)
      if (tail_.refs[ref] != kNoRef) recorded_[made.renamed[tail_.refs[ref]]] = ref;
    joined_metas_.assign(tail_.recorded.metas.size(), -1);
  }

  std::string run(ir::Trace* out) {
    out_.id = tail_.recorded.id;
    out_.name = tail_.recorded.name;
    out_.num_storages = tail_.recorded.num_storages;
    out_.metas = tail_.recorded.metas;
    out_.snapshots.emplace_back();
    inputs();
    for (Ref ref = begin_; ref < end_; ++ref)
      if (std::string why = step(ref); !why.empty()) return why;
    finish();
    if (made_.other != nullptr) symbols();
    if (std::string why = tell_node(); !why.empty()) return why;
    *out = std::move(out_);
    return "";
  }

 private:
  void place(int32_t meta, int32_t joined) {
    const TensorMeta& as = made_.metas[static_cast<size_t>(joined)];
    TensorMeta& now = out_.metas[static_cast<size_t>(meta)];
    now.sizes = as.sizes;
    now.strides = as.strides;
    now.offset = as.offset;
    now.open = as.open;
    joined_metas_[static_cast<size_t>(meta)] = joined;
  }

  Ref next_slot() {
    inputs_.push_back(out_.add(IrOp::k_slot, Type::kObject, {}, static_cast<int64_t>(inputs_.size())));
    return inputs_.back();
  }

  Ref input(int32_t meta) {
    const Ref slot = next_slot();
    const Ref ref = out_.add(IrOp::k_unbox_tensor, Type::kTensor, {slot}, meta, 0);
    out_.insts[ref].meta = meta;
    slots_[ref] = slot;
    return ref;
  }

  void inputs() {
    for (Ref ref = 0; ref < tail_.recorded.insts.size(); ++ref) {
      const ir::Inst& inst = tail_.recorded.insts[ref];
      if (inst.op == IrOp::k_unbox_int || inst.op == IrOp::k_unbox_float) {
        values_[made_.renamed[tail_.refs[ref]]] = out_.add(inst.op, inst.type, {next_slot()}, 0, 0);
        continue;
      }
      if (inst.op != IrOp::k_unbox_tensor) continue;
      const Ref stands = made_.renamed[tail_.refs[ref]];
      place(inst.meta, from_.insts[stands].meta);
      values_[stands] = input(inst.meta);
    }
    for (Ref ref = begin_; ref < end_; ++ref) {
      if (from_.insts[ref].op != IrOp::k_tensor_size) continue;
      const Ref of = from_.arg(ref, 0);
      if (of >= own_end_ || values_.count(of) != 0) continue;
      TensorMeta meta;
      const TensorMeta& as = made_.metas[static_cast<size_t>(from_.insts[of].meta)];
      meta.dtype = ir::DType::kU8;
      meta.storage = out_.num_storages++;
      meta.sizes = as.sizes;
      meta.strides.assign(as.sizes.size(), 0);
      meta.open = as.open;
      out_.metas.push_back(std::move(meta));
      joined_metas_.push_back(from_.insts[of].meta);
      values_[of] = input(static_cast<int32_t>(out_.metas.size()) - 1);
      sized_.push_back(of);
    }
  }

  std::string step(Ref ref) {
    const ir::Inst& inst = from_.insts[ref];
    if (values_.count(ref) != 0) return "";  // a gradient
    const auto known = recorded_.find(ref);
    const ir::Inst* const recorded = known == recorded_.end() ? nullptr : &tail_.recorded.insts[known->second];
    if (inst.op == IrOp::k_aten && recorded == nullptr) return "";  // that stands for a gradient's
    std::vector<Ref> operands;
    for (uint32_t k = 0; k < inst.count; ++k) {
      const auto operand = values_.find(from_.arg(inst, k));
      if (operand == values_.end()) return "its backward computes with what is no size";
      operands.push_back(operand->second);
    }
    int64_t imm = inst.imm;
    if (inst.op == IrOp::k_aten) {
      ir::AtenCall call = from_.calls[inst.imm];
      call.follows = false;
      const std::vector<int32_t> joined = std::exchange(call.results, tail_.recorded.calls[recorded->imm].results);
      for (size_t k = 0; k < joined.size(); ++k)
        if (joined[k] >= 0) place(call.results[k], joined[k]);
      joined_calls_.push_back(static_cast<size_t>(inst.imm));
      out_.calls.push_back(std::move(call));
      imm = static_cast<int64_t>(out_.calls.size()) - 1;
    }
    const Ref copy = out_.add(inst.op, inst.type, operands, imm, inst.op == IrOp::k_aten || inst.snapshot >= 0 ? 0 : ir::kNoSnapshot);
    if (recorded != nullptr) out_.insts[copy].meta = recorded->meta;
    values_[ref] = copy;
    return "";
  }

  // The gradients are what the slots behind its inputs' have when it is left.
  void finish() {
    const ir::Trace& recorded = tail_.recorded;
    const ir::SnapshotFrame& last = recorded.frame(recorded.snapshots.back(), 0);
    ir::SnapshotFrame root = recorded.frame(recorded.snapshots[0], 0);
    const size_t before = root.slots.size();
    root.slots.assign(inputs_.size(), ir::kSlotUnchanged);
    ir::SnapshotFrame end = root;
    for (size_t slot = before; slot < last.slots.size(); ++slot) end.slots.push_back(last.slots[slot] == ir::kSlotNull ? ir::kSlotNull : object(last.slots[slot]));
    out_.snapshots[0].frames.push_back(out_.add_frame(root, 0));
    ir::Snapshot behind;
    behind.frames.push_back(out_.add_frame(end, 0));
    out_.snapshots.push_back(std::move(behind));
    out_.add(IrOp::k_leave, Type::kVoid, {}, 0, 1);
  }

  // Of one of the recorded backward's: an input's slot, or a wrap.
  Ref object(Ref recorded) {
    const ir::Trace& trace = tail_.recorded;
    if (trace.insts[recorded].op == IrOp::k_slot) return inputs_[static_cast<size_t>(trace.insts[recorded].imm)];
    const Ref value = values_.at(made_.renamed[tail_.refs[trace.arg(recorded, 0)]]);
    if (const auto known = slots_.find(value); known != slots_.end()) return known->second;
    out_.wraps.emplace_back();
    return slots_[value] = out_.add(IrOp::k_wrap, Type::kObject, {value}, static_cast<int64_t>(out_.wraps.size()) - 1);
  }

  void symbols() {
    std::vector<TensorMeta> other = out_.metas;
    for (size_t meta = 0; meta < other.size(); ++meta) {
      if (joined_metas_[meta] < 0) continue;
      const TensorMeta& as = (*made_.other)[static_cast<size_t>(joined_metas_[meta])];
      other[meta].sizes = as.sizes;
      if (meta < tail_.recorded.metas.size()) {
        other[meta].strides = as.strides;
        other[meta].offset = as.offset;
      }
    }
    // Where what it is given lies in its memory does not matter, but to views of it.
    for (const auto& [value, slot] : slots_) {
      const int32_t meta = out_.insts[value].meta, storage = meta < 0 ? -1 : out_.metas[static_cast<size_t>(meta)].storage;
      if (out_.insts[value].op == IrOp::k_unbox_tensor && std::count_if(other.begin(), other.end(), [storage](const TensorMeta& each) { return each.storage == storage; }) == 1)
        other[static_cast<size_t>(meta)].offset = out_.metas[static_cast<size_t>(meta)].offset;
    }
    std::vector<CallFacts> facts;
    for (size_t call : joined_calls_) {
      facts.push_back(made_.facts[call]);
      for (int32_t& meta : facts.back().named) meta = static_cast<int32_t>(std::find(joined_metas_.begin(), joined_metas_.end(), meta) - joined_metas_.begin());
    }
    give_symbols(other, facts, &out_);
  }

  // What is to be given sizes for must be there before each wrap.
  std::string tell_node() {
    std::string why;
    for_each_node(from_, number_, [&](Ref wrap, ir::GraphNode& node) {
      node.sized = sized_;
      std::vector<Ref> operands;
      for (uint32_t k = 0; k < from_.insts[wrap].count; ++k) operands.push_back(from_.arg(wrap, k));
      for (Ref sized : sized_) {
        if (sized >= wrap) why = "its backward depends on the size of a later tensor";
        if (std::find(operands.begin(), operands.end(), sized) == operands.end()) operands.push_back(sized);
      }
      set_operands(&from_, wrap, operands);
    });
    return why;
  }

  const Made& made_;
  ir::Trace& from_;
  const Tail& tail_;
  const size_t number_;
  const Ref begin_, end_, own_end_;
  ir::Trace out_;
  std::vector<Ref> inputs_;             // their slots
  std::map<Ref, Ref> recorded_;         // by instruction of the made trace: that of the backward as it was recorded
  std::map<Ref, Ref> values_, slots_;   // by instruction of the made trace, by value: of the one that is made here
  std::vector<Ref> sized_;
  std::vector<int32_t> joined_metas_;   // by meta
  std::vector<size_t> joined_calls_;    // by call
};

std::string JoinedBackwards::part(const Made& made, std::vector<ir::Trace>* backwards) const {
  for (size_t number = 0; number < tails_.size(); ++number)
    if (std::string why = Parting(*this, made, number).run(&backwards->emplace_back()); !why.empty()) return why;
  ir::Trace& trace = *made.trace;
  trace.insts.resize(made.ends[0]);
  trace.calls.resize(calls_);
  trace.metas.resize(metas_);
  trace.num_storages = storages_;
  return "";
}

}  // namespace dynvm::tracer
