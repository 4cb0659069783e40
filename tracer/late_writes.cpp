// See late_writes.h.
#include "tracer/late_writes.h"

#include <algorithm>
#include <iterator>

#include "tracer/recorder.h"

namespace dynvm::tracer {

using ir::AtenArg;
using ir::kNoRef;
using ir::Ref;
using ir::Type;
using IrOp = ir::Op;

namespace {

constexpr std::string_view kPutOff[] = {
#define L(name) name,
#include "tracer/late_writes.def"
#undef L
};

// Row-major without gaps, from the memory's beginning on, as the results of these operations are where what they write is so.
bool is_whole(const ir::TensorMeta& meta) {
  int64_t expected = 1;
  for (size_t d = meta.sizes.size(); d-- > 0; expected *= meta.sizes[d])
    if (meta.strides[d] != expected) return false;
  return meta.offset == 0 && meta.open == 0 && meta.shown.empty();
}

}  // namespace

// May this write to a tensor from outside be put off? Then the call gives the result instead, on memory of its own; false: nothing has changed.
bool Recorder::put_off(ir::AtenCall* call, const bridge::OpRecord& record, const std::vector<Ref>& operands, LateWrite* late, V* object) {
  if (std::find(std::begin(kPutOff), std::end(kPutOff), call->name) == std::end(kPutOff)) return false;
  if (call->mutates != std::vector<int32_t>{0} || call->results.size() != 1 || call->result_alias[0] != 0 || !record.unversioned.empty() || call->args[0].kind != AtenArg::kTensor) return false;
  const Ref memory = operands[static_cast<size_t>(call->args[0].operands[0])];
  const ir::TensorMeta meta = trace_.metas[trace_.insts[memory].meta];
  if (trace_.insts[memory].op != IrOp::k_unbox_tensor || meta.inference || meta.is_subclass || !is_whole(meta)) return false;
  PyObject* const tensor = object_of(memory);
  const auto known = leaf_objects_.find(tensor);
  if (tensor == nullptr || known == leaf_objects_.end()) return false;
  const bridge::TensorObject facts = bridge_->describe(tensor);
  if (!facts.exact_type || facts.is_view || facts.has_hooks) return false;
  for (Ref operand : operands) {
    const ir::Inst& inst = trace_.insts[operand];
    if (inst.type == Type::kTensor && ir::is_floating(trace_.metas[inst.meta].dtype) && trace_.metas[inst.meta].dtype != meta.dtype) return false;  // the result would have another type
  }
  const auto looks_there = [&](const ir::Inst& inst) { return inst.type == Type::kTensor && inst.meta >= 0 && trace_.metas[inst.meta].storage == meta.storage; };
  if (std::count_if(trace_.insts.begin(), trace_.insts.end(), looks_there) != 1) return false;
  snapshot();  // from before the write: whoever leaves to this instruction does it again
  call->name.pop_back();
  call->mutates.clear();
  call->result_alias[0] = -1;
  const int32_t id = record.call.results[0];
  storages_[aten_->meta(id).storage] = trace_.num_storages++;
  metas_.erase(id);
  late_.storages.insert(trace_.metas[meta_of(id)].storage);
  late_.memory.insert(memory);
  *late = {memory, kNoValue, 1};
  *object = known->second;
  return true;
}

// A write to what an earlier one has made of such a tensor.
void Recorder::note_late(int32_t storage) {
  for (auto& [object, late] : late_.of)
    if (trace_.metas[trace_.insts[at(late.value).ref].meta].storage == storage) late.writes++;
}

// What exits store.
void Recorder::store_late(ir::Snapshot* snapshot) {
  for (auto& [object, late] : late_.of) {
    refresh(late.value);
    snapshot->stores.push_back({as_snapshot(object), const_index(static_cast<size_t>(late.writes)), as_snapshot(late.value)});
  }
}

// Autograd has seen this tensor of the trace's own written, which is an object already.
void Recorder::note_written_object(V v) {
  if (twins_.count(v) == 0) live_graph_.push_back(v);
  late_.own[at(v).object] = static_cast<Ref>(trace_.insts.size());
  hand_out_graph(v);
}

// Does the object have a graph that it is to get where the trace ends?
bool Recorder::is_late(V v) const {
  return twins_.count(v) != 0 && late_.own.count(values_[v].object) != 0 && freed_.count(values_[v].ref) == 0;
}

// The loop goes round: the objects get what they are to become. Their graphs are made before any of them is written.
void Recorder::write_back() {
  std::vector<Ref> made, memory;
  std::vector<std::pair<Ref, Ref>> own;
  for (const auto& [v, twin] : std::map<V, Ref>(twins_))
    if (is_late(v)) own.emplace_back(at(v).object, make(v, false));
  for (auto& [object, late] : late_.of) {
    refresh(late.value);
    made.push_back(as_object(late.value));
    memory.push_back(late.memory);
  }
  before_write(memory);
  size_t k = 0;
  for (auto& [object, late] : late_.of) {
    ir::AtenCall copy;
    copy.name = "aten::copy_";
    copy.args.resize(3);
    for (int32_t operand : {0, 1}) copy.args[static_cast<size_t>(operand)].kind = AtenArg::kTensor, copy.args[static_cast<size_t>(operand)].operands = {operand};
    copy.args[2].kind = AtenArg::kBool;
    copy.results = {trace_.insts[late.memory].meta};
    copy.result_alias = copy.mutates = {0};
    copy.count = 0;
    trace_.calls.push_back(copy);
    sizes_.torch_call_of.push_back(static_cast<int32_t>(sizes_.torch_calls.size()) - 1);
    sizes_.after_effect.push_back(effect_done_ || drawn_);
    const Ref call = emit(IrOp::k_aten, Type::kVoid, {late.memory, at(late.value).ref}, static_cast<int64_t>(trace_.calls.size()) - 1);
    late_.written.insert(call);
    trace_.insts[emit(IrOp::k_result, Type::kTensor, {call}, 0)].meta = trace_.insts[late.memory].meta;
    emit(IrOp::k_bump_version, Type::kVoid, {late.memory}, late.writes);
    emit(IrOp::k_take_graph, Type::kVoid, {as_object(object), made[k++]});
  }
  for (const auto& [object, from] : own) emit(IrOp::k_take_graph, Type::kVoid, {object, from});
  late_.gives_graphs = !made.empty() || !own.empty();
  late_.of.clear();
}

// Do only the recording and its frames hold this object, as one result of a call that gave several? Then no code that is called finds it. It stays so until it is given to somebody.
bool Recorder::is_hidden(V v) {
  if (late_.hidden.count(v) != 0) return true;
  std::vector<PyObject*> local;
  for (const ShadowFrame& frame : frames_)
    for (V slot : frame.slots)
      if (concrete(slot) != nullptr) local.push_back(concrete(slot));
  if (held_alone(std::move(local)).count(concrete(v)) == 0) return false;
  return late_.hidden.insert(v).second;
}

// Would this residual operation see an object that is behind?
bool Recorder::sees_late(IrOp op, const std::vector<V>& args) {
  if (ir::op_info(op).effects & ir::kBarrier) {
    const bool reached = std::any_of(twins_.begin(), twins_.end(), [this](const auto& each) { return at(each.first).escaped && is_late(each.first) && !is_hidden(each.first); });
    if (reached || !late_.of.empty()) return true;
  }
  const auto sees = [this](V given) {
    return is_late(given) || std::any_of(late_.of.begin(), late_.of.end(), [&](const auto& each) { return concrete(each.first) == concrete(given); });
  };
  return std::any_of(args.begin(), args.end(), [&](V v) {
    const std::vector<V>& items = at(v).items;
    return sees(v) || std::any_of(items.begin(), items.end(), sees);
  });
}

// Does autograd see these tensors, which were there before the trace, as it did before the call? False: given up. A write that is put off changes the object where the trace ends.
bool Recorder::stay_as_given(const std::vector<std::pair<V, bridge::TensorObject>>& given, const char* what) {
  for (const auto& [v, before] : given) {
    const bridge::TensorObject after = bridge_->describe(concrete(v));
    const bool put_off = std::any_of(late_.of.begin(), late_.of.end(), [&](const auto& late) { return concrete(late.first) == concrete(v); });
    if (put_off || (after.requires_grad == before.requires_grad && after.is_leaf == before.is_leaf)) continue;
    give_up(Abort::k_unsupported_operation, std::string(what) + ": autograd sees a tensor in another way than when the trace was given it");
    return false;
  }
  return true;
}

// Does this wrap look at what such a write has made, as another tensor on that memory?
bool Recorder::looks_at_late(const ir::Inst& wrap) const {
  const Ref tensor = trace_.arg(wrap, 0);
  const ir::Inst& inst = trace_.insts[tensor];
  if (inst.op != IrOp::k_result || late_.storages.count(trace_.metas[inst.meta].storage) == 0) return false;
  const ir::AtenCall& call = trace_.calls[trace_.insts[trace_.arg(inst, 0)].imm];
  return call.mutates.empty() && call.result_alias[static_cast<size_t>(inst.imm)] >= 0;
}

}  // namespace dynvm::tracer
