// Numbering tensors, calls and wraps (program.h).
#include "runtime/exec/program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/effects.h"
#include "runtime/base/heuristics.h"

namespace dynvm::runtime {

using ir::Inst;
using ir::Op;
using ir::Ref;
using ir::Type;

namespace {

bridge::StorageSpec::Kind kind_of(ir::StoragePlan::Kind kind) {
  switch (kind) {
    case ir::StoragePlan::kInput: return bridge::StorageSpec::kInput;
    case ir::StoragePlan::kArena: return bridge::StorageSpec::kArena;
    case ir::StoragePlan::kFresh: return bridge::StorageSpec::kFresh;
    case ir::StoragePlan::kLent: return bridge::StorageSpec::kLent;
    case ir::StoragePlan::kResult: break;
  }
  return bridge::StorageSpec::kResult;
}

class Builder {
 public:
  Builder(const ir::Trace& trace, const ir::Plan& plan, TracePrograms* out) : trace_(trace), plan_(plan), out_(*out), on_gpu_(plan.storages.size(), false) {
    for (const ir::TensorMeta& meta : trace_.metas) {
      if (meta.device_type == 1) on_gpu_[static_cast<size_t>(meta.storage)] = true;
      if (meta.requires_grad && !meta.is_leaf) has_graphs_ = true;
    }
  }

  base::Status run() {
    size_t n = trace_.insts.size();
    out_.plan.tensor.assign(n, -1);
    out_.plan.call.assign(n, -1);
    out_.plan.wrap.assign(n, -1);
    out_.plan.allocate.assign(n, {});
    out_.plan.drop.assign(n, {});
    for (size_t storage = 0; storage < plan_.storages.size(); ++storage) {
      const ir::StoragePlan& of = plan_.storages[storage];
      const bool lent = of.kind == ir::StoragePlan::kLent;
      if (lent) out_.plan.allocate[of.first].push_back(static_cast<int32_t>(storage));
      if ((lent || of.kind == ir::StoragePlan::kResult || (of.kind == ir::StoragePlan::kFresh && on_gpu_[storage] && !has_graphs_)) && of.last != ir::kNoRef)
        out_.plan.drop[of.last].push_back(static_cast<int32_t>(storage));
    }
    find_written();
    drop_replaced();
    for (const ir::StoragePlan& storage : plan_.storages)
      out_.spec.storages.push_back({kind_of(storage.kind), storage.bytes, storage.offset, storage.symbolic, storage.first, storage.last, storage.shared});
    for (size_t storage = 0; storage < written_.size(); ++storage) out_.spec.storages[storage].exclusive = written_[storage];
    for (const Inst& inst : trace_.insts)
      if (inst.op == Op::k_unbox_tensor && trace_.metas[inst.meta].requires_grad) out_.spec.storages[static_cast<size_t>(trace_.metas[inst.meta].storage)].exclusive = true;
    note_late();
    note_changed();
    out_.spec.arena_bytes = plan_.arena_bytes;
    out_.spec.symbols = trace_.symbols;
    out_.spec.sums = trace_.sums;
    out_.spec.arranges = plan_.arranged_at != ir::kNoRef;
    out_.plan.arranged_at = plan_.arranged_at;
    out_.spec.states = trace_.torch_states;
    if (plan_.storages.size() != static_cast<size_t>(trace_.num_storages))
      return base::Status::failure("the memory plan has " + std::to_string(plan_.storages.size()) + " storages, the trace " +
                                   std::to_string(trace_.num_storages));
    call_of_.assign(n, -1);
    number_tensors();
    note_unwritten();
    for (Ref ref = 0; ref < n; ++ref) {
      const Op op = trace_.insts[ref].op;
      if (op == Op::k_aten && runs(ref)) out_.plan.call[ref] = call(ref);
      if (op == Op::k_draw_seed || op == Op::k_draw_offset) out_.plan.call[ref] = call(trace_.arg(ref, 0));
    }
    for (Ref ref = 0; ref < n; ++ref)
      if (trace_.insts[ref].op == Op::k_wrap) wrap(ref);
    allocations();
    out_.spec.keeps_small = small_pieces() * static_cast<size_t>(base::heuristics().cuda_few) > operations();
    return {};
  }

 private:
  // Which object it is, as far as the trace says: a constant's address, else the value. An object stands for its dict.
  using Identity = std::pair<bool, int64_t>;
  Identity identity(Ref value) const {
    const Inst& inst = trace_.insts[value];
    if (inst.op == Op::k_load_dict_of) return identity(trace_.arg(inst, 0));
    const bool constant = inst.op == Op::k_const_obj;
    const Identity own{constant, constant ? reinterpret_cast<int64_t>(trace_.objects[inst.imm].pointer) : static_cast<int64_t>(value)};
    const auto dict = dict_of_.find(own);
    return dict == dict_of_.end() ? own : dict->second;
  }

  void find_written() {
    written_.assign(plan_.storages.size(), false);
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref)
      for (int32_t storage : ir::tensor_effects(trace_, ref).writes) written_[static_cast<size_t>(storage)] = true;
  }

  // Of an input that comes from an attribute or item which the trace gives another value, nobody may need the memory behind that: a cache's keys when there are longer ones. Not where there are
  // graphs, which exits and objects rebuild from inputs, and not what the trace writes.
  void drop_replaced() {
    if (has_graphs_) return;
    for (const Inst& inst : trace_.insts) {
      if (inst.op != Op::k_guard_is || trace_.insts[trace_.arg(inst, 0)].op != Op::k_load_dict_of) continue;
      dict_of_.emplace(identity(trace_.arg(inst, 1)), identity(trace_.arg(inst, 0)));
    }
    std::multimap<Ref, Ref> same;  // what a guard has found to be the same object
    for (const Inst& inst : trace_.insts)
      if (inst.op == Op::k_guard_is) same.emplace(trace_.arg(inst, 1), trace_.arg(inst, 0));
    const auto place = [&](const Inst& inst) { return std::pair(identity(trace_.arg(inst, 0)), identity(trace_.arg(inst, 1))); };
    std::map<std::pair<Identity, Identity>, Ref> stored;  // object, name: the last store
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const Op op = trace_.insts[ref].op;
      if (op != Op::k_set_attr_known && op != Op::k_dict_set && op != Op::k_list_set) continue;
      const Inst& value = trace_.insts[trace_.arg(trace_.insts[ref], 2)];
      stored[place(trace_.insts[ref])] = value.op == Op::k_wrap ? ref : ir::kNoRef;  // kNoRef: it may be what was there before
    }
    if (stored.empty()) return;
    std::vector<Ref> behind(plan_.storages.size(), 0);  // kNoRef: an input on it stays
    for (const Inst& inst : trace_.insts) {
      if (inst.op != Op::k_unbox_tensor) continue;
      const ir::TensorMeta& meta = trace_.metas[inst.meta];
      const Ref object = trace_.arg(inst, 0);
      const auto replaced = [&](Ref value) {  // by the last store to where it was loaded from, kNoRef: none
        const Inst& from = trace_.insts[value];
        const bool loaded = from.op == Op::k_get_attr_known || from.op == Op::k_dict_get || from.op == Op::k_list_item;
        const auto store = loaded ? stored.find(place(from)) : stored.end();
        return store == stored.end() ? ir::kNoRef : store->second;
      };
      Ref by = replaced(object);
      for (auto [other, end] = same.equal_range(object); by == ir::kNoRef && other != end; ++other) by = replaced(other->second);
      Ref& latest = behind[static_cast<size_t>(meta.storage)];
      latest = by == ir::kNoRef || written_[static_cast<size_t>(meta.storage)] ? ir::kNoRef : std::max(latest, by);
    }
    for (size_t storage = 0; storage < behind.size(); ++storage) {
      const ir::StoragePlan& of = plan_.storages[storage];
      if (of.kind == ir::StoragePlan::kInput && of.last != ir::kNoRef && behind[storage] != ir::kNoRef && behind[storage] != 0)
        out_.plan.drop[std::max(of.last, behind[storage])].push_back(static_cast<int32_t>(storage));
    }
  }

  void number_tensors() {
    results_.assign(trace_.insts.size(), {});
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const Inst& inst = trace_.insts[ref];
      if (ir::op_info(inst.op).effects & ir::kTensorMemory || inst.op == Op::k_guard_torch_state) out_.has_tensors = true;
      if (inst.type != Type::kTensor) continue;
      out_.has_tensors = true;
      const Ref same = ir::written_operand(trace_, ref);
      out_.plan.tensor[ref] = same != ir::kNoRef ? out_.plan.tensor[same] : static_cast<int32_t>(out_.spec.tensors.size());
      if (same == ir::kNoRef) {
        const Ref from = ir::relaid_operand(trace_, ref);
        out_.spec.tensors.push_back(trace_.metas[inst.meta]);
        out_.spec.copy_of.push_back(from == ir::kNoRef ? -1 : out_.plan.tensor[from]);
      }
      if (inst.op != Op::k_result) continue;
      std::vector<int32_t>& results = results_[trace_.arg(inst, 0)];
      if (results.size() <= static_cast<size_t>(inst.imm)) results.resize(inst.imm + 1, -1);
      if (results[inst.imm] < 0) results[inst.imm] = out_.plan.tensor[ref];
    }
  }

  // Memory of objects that a snapshot stores the contents of another tensor in, or that take over a graph.
  void note_late() {
    std::set<Ref> objects;
    for (const ir::Snapshot& snapshot : trace_.snapshots)
      for (const ir::SnapshotStore& store : snapshot.stores) {
        const Inst& key = trace_.insts[store.key];
        if (key.op == Op::k_const_obj && PyLong_Check(static_cast<PyObject*>(trace_.objects[key.imm].pointer))) objects.insert(store.dict);
      }
    for (const Inst& inst : trace_.insts)
      if (inst.op == Op::k_take_graph) objects.insert(trace_.arg(inst, 0));
    for (const Inst& inst : trace_.insts) {
      if (inst.op != Op::k_unbox_tensor || objects.count(trace_.arg(inst, 0)) == 0) continue;
      bridge::StorageSpec& storage = out_.spec.storages[static_cast<size_t>(trace_.metas[inst.meta].storage)];
      storage.late = storage.exclusive = true;
    }
  }

  void note_changed() {
    for (const Inst& inst : trace_.insts) {
      if (inst.op != Op::k_aten) continue;
      const ir::AtenCall& call = trace_.calls[inst.imm];
      for (const int32_t argument : call.mutates)
        for (const int32_t operand : call.args[static_cast<size_t>(argument)].operands)
          if (operand >= 0) out_.spec.storages[static_cast<size_t>(trace_.metas[trace_.insts[trace_.arg(inst, static_cast<uint32_t>(operand))].meta].storage)].changed = true;
    }
  }

  void note_unwritten() {
    for (const Inst& inst : trace_.insts) {
      if (inst.op != Op::k_aten || !inst.sunk) continue;
      const ir::AtenCall& call = trace_.calls[inst.imm];
      if (!ir::gives_unwritten(call)) continue;
      for (const int32_t result : call.results)
        if (result >= 0) out_.spec.storages[static_cast<size_t>(trace_.metas[result].storage)].unwritten = true;
    }
  }

  // In the order in which the call is given them.
  std::vector<Ref> numbers_of(const Inst& inst) const {
    std::vector<Ref> numbers;
    for (uint32_t k = 0; k < inst.count; ++k)
      if (trace_.insts[trace_.arg(inst, k)].type != Type::kTensor) numbers.push_back(trace_.arg(inst, k));
    return numbers;
  }
  bool has_numbers(const Inst& inst) const { return !numbers_of(inst).empty(); }

  bool runs(Ref ref) const { return !trace_.insts[ref].sunk && !ir::is_known_view(trace_, trace_.insts[ref]); }

  // The call's index, made on first use.
  int32_t call(Ref ref) {
    if (call_of_[ref] >= 0) return call_of_[ref];
    const Inst& inst = trace_.insts[ref];
    bridge::CallSpec spec;
    spec.call = trace_.calls[inst.imm];
    int32_t numbers = 0;
    for (uint32_t k = 0; k < inst.count; ++k) {
      Ref operand = trace_.arg(inst, k);
      spec.operands.push_back(trace_.insts[operand].type == Type::kTensor ? out_.plan.tensor[operand] : numbers++);
    }
    spec.results.assign(spec.call.results.size(), -1);
    for (size_t k = 0; k < results_[ref].size(); ++k) spec.results[k] = results_[ref][k];
    for (int32_t meta : spec.call.results) spec.result_types.push_back(meta >= 0 ? trace_.metas[meta].dtype : ir::DType::kF32);
    out_.spec.calls.push_back(std::move(spec));
    return call_of_[ref] = static_cast<int32_t>(out_.spec.calls.size()) - 1;
  }

  void wrap(Ref ref) {
    const Inst& inst = trace_.insts[ref];
    bridge::WrapSpec spec;
    std::vector<FusedNumbers> numbers;
    spec.wrap = trace_.wraps[inst.imm];
    spec.tensor = out_.plan.tensor[trace_.arg(inst, 0)];
    const auto note_numbers = [&](Ref made, int32_t number) {
      if (!runs(made) && has_numbers(trace_.insts[made])) numbers.push_back({number, numbers_of(trace_.insts[made])});
    };
    // The bridge makes a view by the calls that made it, so that it has the same base as in eager: they are named, not run.
    for (Ref view : ir::views_of_wrap(trace_, inst)) note_numbers(view, call(view));
    for (ir::GraphNode& node : spec.wrap.nodes) {
      for (Ref& made : node.calls) made = static_cast<Ref>(call(made));
      for (ir::CallNumber& number : node.numbers) number.call = static_cast<Ref>(call(number.call));
    }
    for (Ref forward : spec.wrap.forward) {
      spec.forward.push_back(call(forward));
      note_numbers(forward, spec.forward.back());
    }
    spec.wrap.forward.clear();
    for (ir::GraphNode& node : spec.wrap.nodes)
      for (std::vector<Ref>* values : {&node.outputs, &node.inputs, &node.saved, &node.sized})
        for (Ref& value : *values) value = static_cast<Ref>(out_.plan.tensor[value]);
    for (ir::FreedNode& freed : spec.wrap.freed_behind) freed.value = static_cast<Ref>(out_.plan.tensor[freed.value]);
    // A leaf is one tensor of Python, wherever the trace makes it: graphs that are rebuilt have to end in the one that the script has.
    if (spec.wrap.requires_grad && spec.wrap.is_leaf) {
      const auto known = std::find_if(out_.spec.wraps.begin(), out_.spec.wraps.end(), [&](const bridge::WrapSpec& other) {
        return other.tensor == spec.tensor && other.wrap.requires_grad && other.wrap.is_leaf;
      });
      if (known != out_.spec.wraps.end()) {
        out_.plan.wrap[ref] = static_cast<int32_t>(known - out_.spec.wraps.begin());
        return;
      }
    }
    out_.wrap_numbers.push_back(std::move(numbers));
    out_.plan.wrap[ref] = static_cast<int32_t>(out_.spec.wraps.size());
    out_.spec.wraps.push_back(std::move(spec));
  }

  // Fresh ones on a GPU, those that are small.
  size_t small_pieces() const {
    size_t count = 0;
    for (size_t storage = 0; storage < plan_.storages.size(); ++storage)
      count += on_gpu_[storage] && plan_.storages[storage].kind == ir::StoragePlan::kFresh && plan_.storages[storage].bytes < int64_t{base::heuristics().cuda_kept} << 10;
    return count;
  }

  size_t operations() const {
    size_t count = 0;
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const Inst& inst = trace_.insts[ref];
      count += (inst.op == Op::k_kernel && !inst.sunk) || (inst.op == Op::k_aten && out_.plan.call[ref] >= 0);
    }
    return count;
  }

  // A fresh storage is allocated before the first instruction that works on it, or hands it out uninitialised (an empty tensor).
  void allocations() {
    std::vector<bool> done(plan_.storages.size(), false);
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const Inst& inst = trace_.insts[ref];
      if (inst.sunk || (inst.op != Op::k_aten && inst.op != Op::k_kernel && inst.op != Op::k_wrap)) continue;
      auto touch = [&](int32_t meta) {
        if (meta < 0) return;
        int32_t storage = trace_.metas[meta].storage;
        if (storage < 0 || done[storage] || plan_.storages[storage].kind != ir::StoragePlan::kFresh) return;
        done[storage] = true;
        out_.plan.allocate[ref].push_back(storage);
      };
      for (uint32_t k = 0; k < inst.count; ++k) touch(trace_.insts[trace_.arg(inst, k)].meta);
      if (inst.op == Op::k_aten)
        for (int32_t meta : trace_.calls[inst.imm].results) touch(meta);
    }
  }

  const ir::Trace& trace_;
  const ir::Plan& plan_;
  TracePrograms& out_;
  std::vector<bool> on_gpu_;  // by storage
  std::vector<bool> written_; // by storage
  bool has_graphs_ = false;   // exits and objects rebuild them, from inputs and from what was handed out
  std::vector<int32_t> call_of_;
  std::map<Identity, Identity> dict_of_;        // by a dict: its object
  std::vector<std::vector<int32_t>> results_;  // by Ref of an aten: tensor index of each result
};

}  // namespace

base::Status build_program(const ir::Trace& trace, const ir::Plan& plan, TracePrograms* out) {
  return Builder(trace, plan, out).run();
}

}  // namespace dynvm::runtime
