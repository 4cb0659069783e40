// backward() and autograd.grad() whose graph goes on behind what the trace has recorded, at tensors that came into it with graphs of their own, or that a residual call has given it.
//
// Where gradients of certain tensors are asked for, the engine goes behind such a tensor only to reach one of them: a guard says that it does not. backward() takes two steps: the engine runs the
// trace's part of the graph, whose operations are recorded, and stops at those tensors; a residual call of it goes on from there with the gradients that have come. See outside_graphs.h.
#include "tracer/outside_graphs.h"

#include <algorithm>

#include "ir/effects.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/switches.h"

namespace dynvm::tracer {

using ir::Ref;
using IrOp = ir::Op;

namespace {

constexpr const char* kApart = "graphs_are_apart";  // runtime/torch/outside_graphs.h

// Arguments of run_backward, from the roots on. The engine stands before them where it is not bound.
constexpr size_t kGradients = 1, kCreatesGraph = 3;
size_t roots_of(PyObject* callee) { return PyCFunction_Check(callee) ? 0 : 1; }

// Has autograd seen memory written through a view? What hangs at its base then is not followed (Recorder::graph_of).
bool writes_through_view(const ir::Trace& trace) {
  return std::any_of(trace.insts.begin(), trace.insts.end(), [&](const ir::Inst& inst) {
    if (inst.op != IrOp::k_aten || !is_differentiated(trace.calls[inst.imm])) return false;
    const ir::AtenCall& call = trace.calls[inst.imm];
    return std::any_of(call.mutates.begin(), call.mutates.end(), [&](int32_t argument) {
      const std::vector<int32_t>& written = call.args[static_cast<size_t>(argument)].operands;
      return std::any_of(written.begin(), written.end(), [&](int32_t operand) {
        const Ref value = operand < 0 ? ir::kNoRef : trace.arg(inst, static_cast<uint32_t>(operand));
        return value != ir::kNoRef && trace.insts[value].op == IrOp::k_result && ir::is_view_call(trace, trace.insts[trace.arg(value, 0)]);
      });
    });
  });
}

}  // namespace

// Did this tensor come with a graph of its own?
bool Recorder::is_outside(Ref tensor) const {
  const ir::Inst& inst = trace_.insts[tensor];
  return inst.op == IrOp::k_unbox_tensor && trace_.metas[inst.meta].requires_grad && !trace_.metas[inst.meta].is_leaf;
}

// Does a call of the engine with these arguments begin outside, with no part of the graph that the trace has?
bool Recorder::is_engine_outside(const std::vector<V>& inputs, PyObject* callee) {
  if (function_ || inputs.size() <= roots_of(callee) + kCreatesGraph) return false;
  std::vector<V> roots, numbers;
  collect(inputs[roots_of(callee)], &roots, &numbers);
  return !roots.empty() && std::all_of(roots.begin(), roots.end(), [this](V v) {
    const Ref ref = done_ ? ir::kNoRef : as_tensor(v);
    return !done_ && is_outside(ref);
  });
}

// Gradients of these tensors are asked for. Those that the trace has made are behind none that came from outside.
bool Recorder::guard_apart(const std::vector<V>& asked, const std::vector<V>& outsiders) {
  PyObject* const apart = bridge_->shortcut_named(kApart);
  if (apart == nullptr) return false;
  std::vector<V> tensors;
  std::copy_if(asked.begin(), asked.end(), std::back_inserter(tensors), [this](V v) { return trace_.insts[as_tensor(v)].op == IrOp::k_unbox_tensor; });
  PyObject* const count = PyLong_FromSize_t(tensors.size());
  tensors.insert(tensors.end(), outsiders.begin(), outsiders.end());
  std::vector<V> args{constant(apart), constant(count)};
  Py_DECREF(count);
  args.insert(args.end(), tensors.begin(), tensors.end());
  bool ok = true;
  const V are_apart = run_residual(IrOp::k_call_pure, args, -1, &ok);
  if (!ok) PyErr_Clear();
  if (!ok || concrete(are_apart) != Py_True) return false;
  guard(IrOp::k_guard_is, {as_object(are_apart), const_ref(Py_True)}, -1);
  return !done_;
}

// Before the engine runs this graph. False: given up.
bool Recorder::prepare_outside(const std::set<Ref>& graph, size_t retains, EngineOutside* beyond) {
  if (graph.empty()) return true;
  std::set<Ref> outside;
  bool hidden = false;
  for (Ref ref = 0; ref < trace_.insts.size(); ref++) {
    if (!is_outside(ref)) continue;
    if (graph.count(ref) != 0 && late_.memory.count(ref) != 0) return give_up(Abort::k_graph_from_outside, "a tensor that is written where the trace ends"), false;
    if (graph.count(ref) != 0) outside.insert(ref);
    else hidden = true;
  }
  if (hidden && writes_through_view(trace_)) return give_up(Abort::k_graph_from_outside, "behind memory that is written through a view"), false;
  if (outside.empty()) return true;
  if (base::left_out(base::Part::kNodes)) return give_up(Abort::k_graph_from_outside), false;
  if (side_ && gone_round_.inside && lessons_.graphs_escaped++ < base::heuristics().node_patience) return give_up(Abort::k_graph_from_outside, "a loop around it is waited for"), false;
  std::vector<V> outsiders, roots, asked, numbers;
  for (const auto& [object, v] : leaf_objects_) {
    const bridge::TensorObject tensor = bridge_->describe(object);
    if (!tensor.requires_grad || tensor.is_leaf) continue;  // another tensor on the same memory
    const auto ref = tensors_.find(aten_->tensor_id(object));
    if (ref != tensors_.end() && outside.erase(ref->second) != 0) outsiders.push_back(v);
  }
  const size_t first = roots_of(beyond->callee);
  collect(beyond->inputs[first], &roots, &numbers);
  for (size_t i = retains; i < beyond->inputs.size() && asked.empty(); i++) collect(beyond->inputs[i], &asked, &numbers);
  bool fine = !done_ && outside.empty();
  if (fine && !asked.empty()) {
    fine = guard_apart(asked, outsiders);
  } else if (fine) {
    const auto objects = [this](const std::vector<V>& of) {
      std::vector<PyObject*> found;
      std::transform(of.begin(), of.end(), std::back_inserter(found), [this](V v) { return concrete(v); });
      return found;
    };
    const bool makes_graph = concrete(beyond->inputs[first + kCreatesGraph]) != Py_False;
    beyond->cut = makes_graph ? nullptr : bridge_->cut_graph(objects(roots), objects(outsiders));
    beyond->outsiders = std::move(outsiders);
    fine = beyond->cut != nullptr;
  }
  if (!fine && !done_) give_up(Abort::k_graph_from_outside);
  return fine;
}

void Recorder::EngineOutside::stopped() {
  gradients = cut->gradients();
  cut.reset();
  due = true;
}

Recorder::EngineOutside::~EngineOutside() {
  if (due) {
    std::vector<PyObject*> tensors, came;
    for (size_t i = 0; i < outsiders.size(); i++)
      if (gradients[i] != nullptr) tensors.push_back(recorder->concrete(outsiders[i])), came.push_back(gradients[i]);
    const auto tuple_of = [](const std::vector<PyObject*>& items) {
      PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(items.size()));
      for (size_t i = 0; i < items.size(); i++) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(items[i]));
      return tuple;
    };
    std::vector<PyObject*> arguments;
    std::transform(inputs.begin(), inputs.end(), std::back_inserter(arguments), [this](V v) { return recorder->concrete(v); });
    const size_t first = roots_of(callee);
    PyObject *const roots = arguments[first] = tuple_of(tensors), *const given = arguments[first + kGradients] = tuple_of(came);
    PyObject* const result = PyObject_Vectorcall(callee, arguments.data(), arguments.size() - (names != nullptr ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0), names);
    Py_DECREF(roots);
    Py_DECREF(given);
    if (result == nullptr) {
      *error = true;
      recorder->give_up(Abort::k_operation_raised, "autograd's engine");
    }
    Py_XDECREF(result);
  }
  for (PyObject* gradient : gradients) Py_XDECREF(gradient);
}

// The first step has been recorded: takes the second one. False: given up, or raised.
bool Recorder::go_on_outside(EngineOutside* beyond) {
  std::vector<V> tensors, came;
  for (size_t i = 0; i < beyond->outsiders.size(); i++) {
    PyObject* const gradient = beyond->gradients[i];
    if (gradient == nullptr) continue;
    const int32_t id = aten_->tensor_id(gradient);
    if (tensors_.count(id) == 0) return give_up(Abort::k_unknown_tensor, "gradient"), false;
    tensors.push_back(beyond->outsiders[i]);
    came.push_back(tensor_value(gradient, id));
  }
  beyond->due = false;
  if (tensors.empty()) return true;
  std::vector<V> args{constant(beyond->callee)};
  args.insert(args.end(), beyond->inputs.begin(), beyond->inputs.end());
  const size_t first = 1 + roots_of(beyond->callee);
  args[first] = virtual_tuple(std::move(tensors));
  args[first + kGradients] = virtual_tuple(std::move(came));
  bool ok = true;
  run_residual(IrOp::k_call, args, beyond->names != nullptr ? object_index(beyond->names) : -1, &ok);
  if (!ok) {
    *beyond->error = true;
    give_up(Abort::k_operation_raised, "autograd's engine");
  }
  return ok && !done_;
}

}  // namespace dynvm::tracer
