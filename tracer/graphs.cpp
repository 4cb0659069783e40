// Autograd graphs at a trace's borders: what backward() did, which graphs it may not reach, and how a tensor that a trace hands out gets its
// graph. See recorder.h.
#include "tracer/recorder.h"

namespace dynvm::tracer {

using ir::kNoRef;
using ir::Ref;
using ir::Type;
using IrOp = ir::Op;

// Does the graph of one of these tensors go back to a tensor that came into the trace with a graph of its own?
bool Recorder::graph_from_outside(const std::vector<V>& tensors) {
  std::set<Ref> needed;
  for (V v : tensors) needed.insert(as_tensor(v));
  while (!needed.empty()) {
    Ref ref = *needed.rbegin();
    needed.erase(ref);
    const ir::Inst& inst = trace_.insts[ref];
    if (inst.op == IrOp::k_unbox_tensor) {
      const ir::TensorMeta& meta = trace_.metas[inst.meta];
      if (meta.requires_grad && !meta.is_leaf) return true;
    } else if (inst.op == IrOp::k_result) {
      Ref made = trace_.arg(ref, 0);
      const ir::Inst& call = trace_.insts[made];
      for (uint32_t k = 0; trace_.calls[call.imm].grad_mode && k < call.count; k++)
        if (trace_.insts[trace_.arg(made, k)].type == Type::kTensor) needed.insert(trace_.arg(made, k));
    }
  }
  return false;
}

void Recorder::after_backward() {
  std::vector<std::pair<PyObject*, V>> leaves(leaf_objects_.begin(), leaf_objects_.end());
  for (auto& [o, v] : leaves) {
    bridge::TensorObject object = bridge_->describe(o);
    if (!object.requires_grad || !object.is_leaf) continue;
    PyObject* grad = bridge_->get_grad(o);
    V before = grad_of(v);
    if (grad == concrete(before)) {
      Py_XDECREF(grad);
      continue;
    }
    if (grad == nullptr || grad == Py_None) {
      Py_XDECREF(grad);
      continue;
    }
    int32_t id = aten_->tensor_id(grad);
    auto found = tensors_.find(id);
    if (found == tensors_.end()) {
      Py_DECREF(grad);
      give_up(Abort::k_unknown_tensor, "gradient");
      return;
    }
    V g = tensor_value(grad, id);
    Py_DECREF(grad);
    set_grad(v, g);
  }
  // Graphs of everything that fed this backward are freed (retain_graph is seen by the second backward not failing; its values stay the same).
  std::vector<Ref> freed;
  for (auto& [id, ref] : tensors_)
    if (requires_graph_.count(ref)) freed.push_back(ref);
  emit(IrOp::k_graph_freed, Type::kVoid, freed);
  for (Value& value : values_)
    if (value.kind == Value::kTensor && value.wrap.requires_grad) value.snap = kNoRef;  // exits from here on find no graph
  for (V v : live_graph_)
    if (at(v).object != kNoRef && at(v).escaped) return give_up(Abort::k_graph_escaped);  // the graphs live on, to cut()
  freed_.insert(freed.begin(), freed.end());
}

// Does a call between two instructions, other than these, write to the memory of this tensor value?
bool Recorder::written_between(Ref tensor, Ref after, Ref before, const std::set<Ref>& but_by) {
  int32_t storage = trace_.metas[trace_.insts[tensor].meta].storage;
  for (Ref r = after + 1; r < before; r++) {
    const ir::Inst& inst = trace_.insts[r];
    if (inst.op != IrOp::k_aten || but_by.count(r) != 0) continue;
    const ir::AtenCall& call = trace_.calls[inst.imm];
    for (int32_t argument : call.mutates)
      for (int32_t operand : call.args[argument].operands) {
        int32_t meta = operand < 0 ? -1 : trace_.insts[trace_.arg(inst, static_cast<uint32_t>(operand))].meta;
        if (meta >= 0 && trace_.metas[meta].storage == storage) return true;
      }
  }
  return false;
}

// For each tensor that becomes a Python object: has its graph been freed where it is made, and if not, what rebuilds it under autograd.
// False: nothing can.
bool Recorder::fill_wraps() {
  size_t count = trace_.insts.size();
  std::vector<size_t> freed_at;  // positions of graph_freed
  for (size_t i = 0; i < count; i++)
    if (trace_.insts[i].op == IrOp::k_graph_freed) freed_at.push_back(i);
  for (size_t i = 0; i < count; i++) {
    if (trace_.insts[i].op != IrOp::k_wrap) continue;
    ir::Wrap& wrap = trace_.wraps[trace_.insts[i].imm];
    if (!wrap.requires_grad || wrap.is_leaf) continue;
    Ref tensor = trace_.arg(static_cast<Ref>(i), 0);
    for (size_t position : freed_at)
      for (uint32_t k = 0; k < trace_.insts[position].count && position < i; k++)
        if (trace_.arg(static_cast<Ref>(position), k) == tensor) wrap.freed = true;
    if (wrap.freed) continue;
    // Backward slice through the differentiable operations.
    std::set<Ref> needed{tensor}, leaves;
    std::set<Ref> rerun;                      // the slice
    std::map<Ref, std::pair<Ref, Ref>> uses;  // first and last in it
    for (Ref r = tensor + 1; r-- > 0;) {
      if (!needed.count(r)) continue;
      const ir::Inst& inst = trace_.insts[r];
      if (inst.op == IrOp::k_result) {
        const ir::AtenCall& call = trace_.calls[trace_.insts[trace_.arg(r, 0)].imm];
        auto use = uses.find(r);
        auto [first, last] = use != uses.end() ? use->second : std::pair<Ref, Ref>(static_cast<Ref>(i), static_cast<Ref>(i));
        if (call.is_random || !is_differentiated(call)) {
          if (written_between(r, first, static_cast<Ref>(count), rerun)) return false;
          leaves.insert(r);  // to autograd what it gave or wrote is a leaf
        } else if (written_between(r, r, last, rerun)) {
          return false;  // written through another name before it was used: the calls that made it would give what it was before
        } else {
          needed.insert(trace_.arg(r, 0));
        }
      } else if (inst.op == IrOp::k_aten) {
        rerun.insert(r);
        for (uint32_t k = 0; k < inst.count; k++) {
          Ref operand = trace_.arg(r, k);
          needed.insert(operand);
          auto use = uses.emplace(operand, std::pair<Ref, Ref>(r, r)).first;
          use->second.first = r;  // walking backwards
        }
      } else if (inst.type == Type::kTensor) {
        leaves.insert(r);
      }
    }
    wrap.forward.assign(rerun.begin(), rerun.end());
    std::vector<Ref> operands{tensor};
    for (Ref leaf : leaves)
      if (trace_.insts[leaf].type == Type::kTensor) operands.push_back(leaf);
    trace_.insts[i].first = static_cast<uint32_t>(trace_.operands.size());
    trace_.insts[i].count = static_cast<uint32_t>(operands.size());
    trace_.operands.insert(trace_.operands.end(), operands.begin(), operands.end());
  }
  return true;
}

}  // namespace dynvm::tracer
