// Recording of torch calls: what a call became below autograd is the trace, not the call. See recorder.h and runtime/bridge/bridge.h.
//
// A call runs once, for real, with the ATen recorder on. Its records name tensors by id (storage, geometry, dtype); `tensors_` maps an id
// to the instruction that holds its present value. Python numbers that change from run to run are found again among the recorded arguments
// by value (facts: a wrapped number or Scalar keeps the value it was given); where that is not unique they are frozen under a guard.
//
// backward(): the engine runs inside the call, so its operations are records like others; what it did to `.grad` is read off afterwards.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "tracer/outside_graphs.h"
#include "runtime/base/defects.h"
#include "runtime/base/report.h"
#include "runtime/base/switches.h"
#include "runtime/exec/execute.h"
#include "vm/objects.h"

namespace dynvm::tracer {

using bridge::OpRecord;
using ir::AtenArg;
using ir::kNoRef;
using ir::Ref;
using ir::Type;
using vm::HookResult;
using IrOp = ir::Op;

namespace {

bool is_number(PyObject* o) { return o != nullptr && (PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o)); }

}  // namespace

bool holds_number(const AtenArg& arg, PyObject* number) {
  double value = PyFloat_Check(number) ? PyFloat_AS_DOUBLE(number) : PyLong_AsDouble(number);
  if (PyErr_Occurred()) PyErr_Clear();
  switch (arg.kind) {
    case AtenArg::kInt: return !PyFloat_Check(number) && static_cast<double>(arg.i) == value;
    case AtenArg::kFloat: return arg.f == value || (arg.dtype == ir::DType::kF32 && arg.f == static_cast<double>(static_cast<float>(value)));
    case AtenArg::kNumberTensor: return (arg.dtype == ir::DType::kF64 ? arg.f : static_cast<double>(arg.i)) == value;
    default: return false;
  }
}

// The tensor that a number is stored from.
bool is_filled_with(const ir::AtenCall& call, PyObject* number) {
  return call.name == "aten::full" && call.args.size() > 1 && holds_number(call.args[1], number);
}

// It may as well have become a dim or a size in a list (`x.std(n)` with n = 1: dim=[1], correction=1).
bool list_holds(const AtenArg& arg, PyObject* number) {
  if (!PyLong_Check(number) || arg.kind != AtenArg::kIntList) return false;
  const int64_t value = PyLong_AsLongLong(number);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return std::find(arg.ints.begin(), arg.ints.end(), value) != arg.ints.end();
}

bool Recorder::touches_torch(PyObject* callee, const std::vector<V>& args) {
  if (bridge_ == nullptr) return false;
  std::string name = callable_name(callee);
  if (name.compare(0, 6, "torch.") == 0 || name.compare(0, 7, "Tensor.") == 0) return true;
  if (name == "torch._C.TensorBase" || name == "_ImperativeEngine" || name.find("Engine") != std::string::npos) return true;
  if (PyCFunction_Check(callee)) {
    auto* f = reinterpret_cast<PyCFunctionObject*>(callee);
    if (f->m_self != nullptr && strncmp(Py_TYPE(f->m_self)->tp_name, "torch.", 6) == 0) return true;
  }
  if (strncmp(Py_TYPE(callee)->tp_name, "torch.", 6) == 0 || strcmp(Py_TYPE(callee)->tp_name, "ScriptFunction") == 0) return true;
  // float(tensor), int(tensor), bool(tensor), abs(tensor), sum of a list of tensors is Python's own business
  if (callee == reinterpret_cast<PyObject*>(&PyFloat_Type) || callee == reinterpret_cast<PyObject*>(&PyLong_Type) ||
      callee == reinterpret_cast<PyObject*>(&PyBool_Type) || name == "builtins.abs" || name == "builtins.round" || name == "builtins.divmod")
    for (V v : args)
      if (is_tensor(concrete(v))) return true;
  return false;
}

// The tensors and numbers in an argument of a torch call. frozen: the call becomes the operations that it ran, so anything else in the
// argument must be what it was.
void Recorder::collect(V v, std::vector<V>* tensors, std::vector<V>* numbers, bool frozen) {
  PyObject* o = concrete(v);
  if (o == nullptr || done_) return;
  if (is_tensor(o)) {
    tensors->push_back(v);
    return;
  }
  if (is_number(o)) {
    if (at(v).kind == Value::kObject) {
      if (PyBool_Check(o)) as_bool(v);
      else if (PyLong_CheckExact(o)) as_int(v);
      else as_float(v);
    }
    numbers->push_back(v);
    return;
  }
  if (PySlice_Check(o) && at(v).kind == Value::kObject && !at(v).items_known && know_type(v)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(o);
    std::vector<V> items;
    for (auto [offset, item] : {std::pair{offsetof(PySliceObject, start), slice->start}, {offsetof(PySliceObject, stop), slice->stop}, {offsetof(PySliceObject, step), slice->step}})
      items.push_back(object(emit(IrOp::k_load_field, Type::kObject, {as_object(v)}, static_cast<int64_t>(offset)), item, true));
    at(v).items = std::move(items);
    at(v).items_known = true;
  }
  if (at(v).items_known && (at(v).kind != Value::kObject || PySlice_Check(o))) {
    for (V item : std::vector<V>(at(v).items)) collect(item, tensors, numbers, frozen);
    return;
  }
  if (PyTuple_Check(o) || PyList_CheckExact(o)) {
    bool interesting = false;
    PyObject* fast = PySequence_Fast(o, "");
    for (Py_ssize_t i = 0; fast && i < PySequence_Fast_GET_SIZE(fast); i++) {
      PyObject* item = PySequence_Fast_GET_ITEM(fast, i);
      interesting = interesting || is_tensor(item) || PyTuple_Check(item) || PyList_Check(item) || (is_number(item) && !is_const(v));
    }
    interesting = interesting || (PyTuple_CheckExact(o) && at(v).kind == Value::kObject && !at(v).stable);
    Py_XDECREF(fast);
    PyErr_Clear();
    if (!interesting) {
      // A constant shape or the like: its contents must not change.
      if (PyList_CheckExact(o) && at(v).kind == Value::kObject && !at(v).stable) {
        std::vector<V> items;
        if (known_items(v, &items))
          for (V item : items) collect(item, tensors, numbers, frozen);
      } else {
        promote(v);
        if (PyList_CheckExact(o) && is_const(v)) list_guard(v);
      }
      return;
    }
    std::vector<V> items;
    if (known_items(v, &items))
      for (V item : items) collect(item, tensors, numbers, frozen);
    else if (frozen && !is_const(v)) freeze(v);
    return;
  }
  if (PyDict_CheckExact(o)) {
    std::vector<PyObject*> keys;
    std::vector<V> items;
    if (known_dict(v, &keys, &items))
      for (V item : items) collect(item, tensors, numbers, frozen);
    return;
  }
  if (at(v).kind == Value::kObject && !promote(v)) {
    if (frozen) freeze(v);
    else if (!PyUnicode_CheckExact(o)) know_type(v);
  }
}

// As promote, also for what may be another object each time: a device or a string must be equal then; anything else fails the guard, and the
// trace is left here each time.
void Recorder::freeze(V v) {
  if (promote(v) || done_) return;
  PyObject* o = concrete(v);
  if (is_immutable(o) && !PyTuple_Check(o) && know_type(v)) {
    const Ref equal = emit(IrOp::k_call_pure, Type::kObject, {const_ref(equality(true)), as_object(v), const_ref(o)}, -1, false);
    trace_.insts[equal].snapshot = current_snapshot_;
    guard(IrOp::k_guard_is, {equal, const_ref(Py_True)}, -1);
    return;
  }
  guard(IrOp::k_guard_is, {as_object(v), const_ref(concrete(v))}, -1);
  at(v).kind = Value::kConst;
}

int32_t Recorder::meta_of(int32_t id) {
  auto found = metas_.find(id);
  if (found != metas_.end()) return found->second;
  ir::TensorMeta meta = aten_->meta(id);
  auto storage = storages_.emplace(meta.storage, trace_.num_storages);
  if (storage.second) trace_.num_storages++;
  meta.storage = storage.first->second;
  trace_.metas.push_back(std::move(meta));
  int32_t index = static_cast<int32_t>(trace_.metas.size()) - 1;
  metas_[id] = index;
  return index;
}

Ref Recorder::as_tensor(V v) {
  PyObject* o = concrete(v);
  int32_t id = aten_->tensor_id(o);
  if (id < 0) {
    give_up(Abort::k_tensor_subclass, "a tensor that is no plain one, as functorch's are");
    return kNoRef;
  }
  auto found = tensors_.find(id);
  V first = leaf_objects_.emplace(o, v).first->second;
  // A constant is known to be its object; what else has been on this memory, or was this object, is not known to be the constant.
  const bool given = at(v).kind == Value::kObject || at(v).kind == Value::kConst;
  const bool identified = !given || !identified_.insert(v).second || (first != v && at(v).kind == Value::kConst && at(first).kind != Value::kObject);
  if (found != tensors_.end() && identified) return found->second;
  if (found != tensors_.end() && first != v) {  // another value gave this object before: a coincidence until guarded
    sites_.push_back({Site::kCoincidence, reinterpret_cast<PyObject*>(top().code), nullptr, current_unit_});
    guard(IrOp::k_guard_is, {as_object(v), as_object(first)}, static_cast<int32_t>(sites_.size()) - 1);
    return found->second;
  }
  if (at(v).kind == Value::kTensor) return tensors_[id] = at(v).ref;
  bridge::TensorObject object = bridge_->describe(o);
  if (found != tensors_.end()) {
    const bool made_here = input_storages_.count(trace_.metas[meta_of(id)].storage) == 0;
    if (object.requires_grad && !object.is_leaf && (made_here || trace_.metas[trace_.insts[found->second].meta].requires_grad)) {
      give_up(Abort::k_graph_from_outside, "two tensors on the same memory, as of an autograd.Function that returns what it was given");
      return kNoRef;
    }
    // A residual call has made another tensor on it. One that gets gradients is the leaf of what it is used for.
    if (made_here && !(object.requires_grad && object.is_leaf)) return found->second;
  }
  if (!object.exact_type && !know_type(v)) return kNoRef;
  if (object.has_hooks && !object.python_hooks) {
    give_up(Abort::k_python_in_torch_call, "hooks of a tensor that is no leaf, or that are not in Python");
    return kNoRef;
  }
  if (at(v).kind == Value::kObject && at(v).stable && object.is_leaf && object.requires_grad) promote(v);
  // A residual call may have made it a view of memory that the trace itself made: no input then, but checked to be that memory.
  auto made = storages_.find(aten_->meta(id).storage);
  const bool of_own_memory = made != storages_.end() && input_storages_.count(made->second) == 0;
  if (of_own_memory && late_.storages.count(made->second) != 0) {
    give_up(Abort::k_graph_from_outside, "another tensor on memory that is written where the trace ends");
    return kNoRef;
  }
  int32_t meta = meta_of(id);
  if (found != tensors_.end()) {  // the same memory, but not as the other one is
    trace_.metas.push_back(trace_.metas[meta]);
    meta = static_cast<int32_t>(trace_.metas.size()) - 1;
  }
  if (!of_own_memory && found == tensors_.end() && !object.requires_grad) meta = place_apart(id, meta);
  trace_.metas[meta].requires_grad = object.requires_grad;
  trace_.metas[meta].is_leaf = object.is_leaf;
  trace_.metas[meta].has_hooks = object.has_hooks;
  trace_.metas[meta].is_parameter = object.exact_type && strcmp(Py_TYPE(o)->tp_name, "Parameter") == 0;
  trace_.metas[meta].is_subclass = !object.exact_type;
  if (!of_own_memory) input_storages_.insert(trace_.metas[meta].storage);
  Ref ref = emit(IrOp::k_unbox_tensor, Type::kTensor, {as_object(v)}, meta, true);
  trace_.insts[ref].meta = meta;
  if (of_own_memory && found != tensors_.end()) return found->second = ref;
  if (found != tensors_.end()) note_counter(o, ref);
  return tensors_.emplace(id, ref).first->second;  // another tensor on the same memory: what that holds now
}

Ref Recorder::tensor_of_id(int32_t id) {
  auto found = tensors_.find(id);
  return found == tensors_.end() ? kNoRef : found->second;
}

// Tensor objects that backward() may give a gradient, in the order of the program: another recording has the same.
std::vector<std::pair<PyObject*, V>> Recorder::differentiated_leaves() const {
  std::vector<std::pair<PyObject*, V>> found;
  for (const auto& leaf : leaf_objects_) {
    const bridge::TensorObject object = bridge_->describe(leaf.first);
    if (object.requires_grad && object.is_leaf) found.push_back(leaf);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return found;
}

// Gradients that backward() may accumulate into are inputs of the call: load them before it.
void Recorder::note_grads() {
  for (const auto& [o, v] : differentiated_leaves()) {
    V grad = grad_of(v);
    if (done_) return;
    if (concrete(grad) != Py_None) as_tensor(grad);
  }
}

V Recorder::grad_of(V tensor) {
  if (in_callback()) note_new_grads();
  return known_grad(tensor);
}

V Recorder::known_grad(V tensor) {
  PyObject* o = concrete(tensor);
  auto canonical = leaf_objects_.find(o);
  if (canonical != leaf_objects_.end()) tensor = canonical->second;
  auto known_grad = grads_.find(tensor);
  if (known_grad != grads_.end()) return known_grad->second;
  PyObject* grad = bridge_->get_grad(o);
  Ref ref = emit(IrOp::k_get_grad, Type::kObject, {as_object(tensor)});
  V v = object(ref, grad, true);
  if (grad == Py_None) {
    guard(IrOp::k_guard_is, {ref, const_ref(Py_None)}, -1);
    at(v).kind = Value::kConst;
    V none = constant(Py_None);
    v = none;
  } else {
    know_type(v);
  }
  Py_XDECREF(grad);
  grads_[tensor] = v;
  return v;
}

void Recorder::set_grad(V tensor, V grad) {
  auto canonical = leaf_objects_.find(concrete(tensor));
  if (canonical != leaf_objects_.end()) tensor = canonical->second;
  Ref value = as_object(grad);
  escape(grad);
  emit(IrOp::k_set_grad, Type::kVoid, {as_object(tensor), value}, 0, true);
  effect();
  grads_[tensor] = grad;
}

static bool asks_for_grad(PyObject* kwnames) {
  for (Py_ssize_t i = 0; kwnames != nullptr && i < PyTuple_GET_SIZE(kwnames); i++)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), "requires_grad") == 0) return true;
  return false;
}

// Is a tensor among them, or in their lists and tuples, that autograd tracks?
bool Recorder::any_asks_for_grad(const std::vector<PyObject*>& objects) {
  return std::any_of(objects.begin(), objects.end(), [&](PyObject* o) {
    if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) return any_asks_for_grad({PySequence_Fast_ITEMS(o), PySequence_Fast_ITEMS(o) + PySequence_Fast_GET_SIZE(o)});
    return is_tensor(o) && bridge_->describe(o).requires_grad;
  });
}

HookResult Recorder::torch_call(vm::ThreadView& view, V callee, std::vector<V> args, PyObject* kwnames, int pops) {
  PyObject* o = concrete(callee);
  if (at(callee).kind == Value::kObject) freeze(callee);  // its operations are recorded, not its call
  if (done_) return HookResult::kContinue;
  std::vector<PyObject*> objects;
  for (V v : args) objects.push_back(concrete(v));
  size_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  V result = kNoValue;
  bool error = false;
  std::string name = callable_name(o);
  if ((name == "torch.tensor" || name == "torch.as_tensor") && !args.empty() && changing_numbers(args[0], false) && !asks_for_grad(kwnames)) return residual_call(view, IrOp::k_call_apart, callee, args, kwnames, pops);
  if (kwnames == nullptr && moves_mode(o, args, &result)) return finish_call(view, result, pops);
  if (done_) return HookResult::kContinue;
  // Which of its tensors are one object is not to be seen in what is recorded, nor how sizes come about in C++: a call of rows drawn by chance, or of padding to the longest, stays a call.
  const std::pair<PyCodeObject*, int> place{top().code, current_unit_};
  if ((lessons_.coincidences.count(place) != 0 || lessons_.size_calls.count(place) != 0) && !any_asks_for_grad(objects)) return residual_call(view, residual_op(o, args), callee, args, kwnames, pops);
  if (name.ends_with("run_backward") && is_engine_outside(args, o)) return residual_call(view, IrOp::k_call, callee, args, kwnames, pops);
  Asked asked{.names = kwnames};
  bool fine = with_torch([&]() { return PyObject_Vectorcall(o, objects.data(), objects.size() - nkw, kwnames); }, args, name.c_str(), &result, &error, o, &asked);
  if (error) return raised(view);
  if (asked.what != nullptr) return call_override(view, asked.what, args, pops, vm::Continuation::kOverride);
  if (!executed_) return HookResult::kContinue;  // given up before anything was done
  if (!fine) {
    // Done, but not recordable: the program goes on with the result.
    result = object(kNoRef, raw_result_, true);
  } else if (result == kNoValue && sets_grad_mode(name)) {
    result = constant(raw_result_);
  } else if (result == kNoValue) {
    // No tensor operation: an ordinary residual call, already carried out. A mode that it switches on or off decides what comes after.
    for (V v : args)
      if (at(v).kind == Value::kScalar && PyBool_Check(concrete(v))) promote(v);
    mode_entered_ |= chooses_gpu(name);
    PyObject* shortcut = nkw == 0 && is_const(callee) && !base::left_out(base::Part::kShortcuts) ? bridge_->shortcut(o) : nullptr;
    std::vector<V> all{shortcut ? constant(shortcut) : callee};
    all.insert(all.end(), args.begin(), args.end());
    std::vector<Ref> refs;
    for (V v : all) {
      refs.push_back(as_object(v));
      escape(v);
    }
    const IrOp op = shortcut != nullptr ? IrOp::k_call_known : residual_op(o, args);
    const bool known_call = op != IrOp::k_call;
    look_at_graphs(op, all);
    if (!known_call || !modes_.off.empty()) flush_pending();
    int64_t names = nkw > 0 ? object_index(kwnames) : -1;
    Ref ref = emit(op, Type::kObject, refs, names, true);
    effect();
    if (!known_call) barrier();
    result = object(ref, raw_result_, true);
  }
  Py_CLEAR(raw_result_);
  return finish_call(view, result, pops);
}

HookResult Recorder::torch_operator(vm::ThreadView& view, IrOp op, std::vector<V> args, int64_t imm, int pops, const char* name, bool pushes) {
  if ((op == IrOp::k_get_item || op == IrOp::k_set_item) && is_tensor(concrete(args[0]))) args[1] = with_index_tensors(args[1], concrete(args[0]));
  if (done_) return HookResult::kContinue;
  std::vector<PyObject*> objects;
  for (V v : args) objects.push_back(concrete(v));
  V result = kNoValue;
  bool error = false;
  Asked asked{.drops = !pushes};
  bool method = op == IrOp::k_get_attr && imm == 1;  // load_attribute passes whether NULL goes below
  subscript_ = op == IrOp::k_get_item || op == IrOp::k_set_item;
  bool fine = with_torch([&]() -> PyObject* {
    PyObject* made = nullptr;
    int truth = 0;
    if (!runtime::execute(op, op == IrOp::k_get_attr ? 0 : imm, objects.data(), static_cast<int>(objects.size()), nullptr, &made, &truth)) return nullptr;
    return made ? made : Py_NewRef(Py_None);
  }, args, name, &result, &error, nullptr, &asked);
  subscript_ = false;
  if (error) return raised(view);
  if (asked.what != nullptr) {
    const vm::Continuation k = !pushes ? vm::Continuation::kDiscard : op != IrOp::k_get_attr ? vm::Continuation::kOverride
                               : method ? vm::Continuation::kReplaceMethod : vm::Continuation::kReplace;
    return call_override(view, asked.what, args, op == IrOp::k_get_attr ? 0 : pops, k);
  }
  if (!executed_) return HookResult::kContinue;
  if (!fine) {
    result = object(kNoRef, raw_result_, true);
  } else if (result == kNoValue) {
    flush_pending();
    std::vector<Ref> refs;
    for (V v : args) refs.push_back(as_object(v));
    look_at_graphs(op, args);
    const ir::OpInfo& info = ir::op_info(op);
    Ref ref = emit(op, info.result == 'o' ? Type::kObject : Type::kVoid, refs, op == IrOp::k_get_attr ? 0 : imm, true);
    effect();
    barrier();
    result = object(ref, raw_result_, true);
  }
  Py_CLEAR(raw_result_);
  pop(view, pops);
  if (pushes) push_callable(view, result, method);
  return next(view);
}

// Runs fn with the recorder on. Afterwards executed_ says whether it ran; raw_result_ owns its result.
bool Recorder::with_torch(const std::function<PyObject*()>& fn, const std::vector<V>& inputs, const char* what, V* out, bool* error, PyObject* callee, Asked* asked) {
  executed_ = false;
  *error = false;
  if (aten_ == nullptr) {
    give_up(Abort::k_no_bridge);
    return false;
  }
  std::vector<V> tensors, numbers;
  for (V v : inputs) collect(v, &tensors, &numbers);
  if (done_) return false;
  for (V v : tensors) {
    as_tensor(v);
    if (done_) return false;
  }
  bool backward = callee != nullptr && callable_name(callee).ends_with("run_backward");
  // The engine's first truth value says whether the graph stays: then exits rebuild it, and a later backward() may go through it again.
  const auto keeps = backward ? std::find_if(inputs.begin(), inputs.end(), [this](V v) { return PyBool_Check(concrete(v)); }) : inputs.end();
  if (keeps != inputs.end() && !is_const(*keeps)) promote(*keeps);
  const std::set<Ref> graph = backward ? graph_of(tensors) : std::set<Ref>{};
  std::set<Ref> run = backward ? run_by_engine(inputs, static_cast<size_t>(keeps - inputs.begin())) : std::set<Ref>{};
  EngineOutside beyond{this, callee, asked != nullptr ? asked->names : nullptr, inputs, error};
  if (!prepare_outside(graph, static_cast<size_t>(keeps - inputs.begin()), &beyond)) return false;
  if (backward) {
    note_grads();
    if (!guard_hooks(graph)) return false;
    guard_early({top().code, current_unit_});
  }
  snapshot();
  if (done_) return false;

  std::vector<std::pair<V, bridge::TensorObject>> given;  // tensors that were there before the trace
  for (V v : tensors)
    if (at(v).kind != Value::kTensor) given.emplace_back(v, bridge_->describe(concrete(v)));
  free_dead_tensors();
  aten_->take();
  in_torch_ = true;
  python_in_torch_ = false;
  const bool keeps_graph = keeps != inputs.end() && concrete(*keeps) == Py_True;
  if (!run.empty() && !keeps_graph) leave_what_keeps_nothing(&run);
  TorchCall call{inputs, backward, run, {top().code, current_unit_}, keeps_graph, what};
  const size_t outer_callbacks = callbacks_.size();
  TorchCall* const outer_call = std::exchange(torch_call_, &call);
  // Entering or leaving a mode runs no operations, and may keep the thread's dispatch keys for later: the recorder's must not be among them.
  const bool is_mode = strcmp(what, "torch._C.__enter__") == 0 || strcmp(what, "torch._C.__exit__") == 0;
  PyObject* override_asked = nullptr;
  const bool may_override = overridden(what, tensors);
  if (!is_mode) aten_->enable();
  PyObject* result = may_override ? bridge_->ask_override(fn, &override_asked) : fn();
  if (!is_mode) aten_->disable();
  mode_entered_ |= is_mode;
  in_torch_ = false;
  torch_call_ = outer_call;
  if (override_asked != nullptr) {
    const bool drops = result == Py_None;
    const bool passes = result == nullptr;
    Py_XDECREF(result);
    if (asked != nullptr && (passes || (drops && asked->drops))) {
      asked->what = override_asked;
      return false;
    }
    Py_DECREF(override_asked);
    give_up(Abort::k_tensor_subclass, std::string(what) + " is overridden");
    result = fn();
  }
  executed_ = true;
  if (result != nullptr && beyond.cut != nullptr) beyond.stopped();
  std::vector<OpRecord> records = aten_->take();
  Py_XSETREF(raw_result_, result);
  struct Over {
    Recorder* recorder;
    size_t outer;
    ~Over() {
      if (recorder != nullptr) recorder->end_callbacks(outer);
    }
  } const over{call.followed ? this : nullptr, outer_callbacks};
  if (result == nullptr) {
    *error = true;
    give_up(Abort::k_operation_raised, what);
  }
  if (done_) return false;
  const bool writes = std::any_of(records.begin(), records.end(), [](const OpRecord& record) { return !record.call.mutates.empty(); });
  if (!writes && !stay_as_given(given, what)) return false;
  if (records.empty() && !is_tensor(result) && !call.followed && !backward) {  // the engine sets gradients without an operation, too
    bool holds_tensor = false;
    if (PyTuple_Check(result))
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); i++) holds_tensor = holds_tensor || is_tensor(PyTuple_GET_ITEM(result, i));
    if (!holds_tensor) {
      *out = kNoValue;
      return true;
    }
  }
  if (python_in_torch_) {
    give_up(Abort::k_python_in_torch_call, what);
    return false;
  }
  std::string why = not_repeatable(records, result, inputs, what);
  if (why.empty() && !backward) why = read_unseen(records, tensors, result, what);
  if (!why.empty()) {
    // Not to be repeated as operations: the call itself is, unless it writes memory that the trace has a picture of.
    if (backward || (first_write_to_given(records) < records.size() && !moves_given(records, tensors))) {
      give_up(Abort::k_unsupported_operation, std::string(what) + ": " + why);
      return false;
    }
    *out = kNoValue;
    return true;
  }
  if (!convert_records(records, inputs, backward)) {
    if (!done_) give_up(Abort::k_unknown_tensor, what);
    return false;
  }
  if (!stay_as_given(given, what)) return false;
  refresh_written(records);
  if (backward) note_new_grads();
  if (backward && !call.followed && !call.keeps_graph && !done_) free_graph(run);
  if (done_ || (beyond.due && !go_on_outside(&beyond))) return false;
  bool ok = true;
  *out = tensor_result(result, inputs, records, &ok);
  if (!ok && !done_) give_up(Abort::k_tensor_result, what);
  return ok && !done_;
}

bool Recorder::convert_records(std::vector<OpRecord>& records, const std::vector<V>& inputs, bool backward) {
  std::vector<V> tensors, numbers;
  for (V v : inputs) collect(v, &tensors, &numbers, true);
  if (done_) return false;
  drawn_ = false;
  const size_t first = numbers_read_first(records);
  for (size_t r = 0; r < first; r++) {
    if (!convert_record(records[r], {}, backward)) return false;
    const bool is_float = records[r].number == OpRecord::kFloatNumber, is_bool = records[r].number == OpRecord::kBoolNumber;
    PyObject* number = is_float ? PyFloat_FromDouble(records[r].float_value) : is_bool ? PyBool_FromLong(records[r].int_value) : PyLong_FromLongLong(records[r].int_value);
    numbers.push_back(scalar(is_float ? Type::kFloat : is_bool ? Type::kBool : Type::kInt, last_number_, number));
    Py_DECREF(number);
  }
  records.erase(records.begin(), records.begin() + static_cast<ptrdiff_t>(first));
  last_number_ = kNoRef;
  // Which recorded argument is which changing number? Decided for all before anything is emitted: freezing one needs the state before.
  std::vector<BoundNumber> bound;
  std::vector<V> changing;
  SizeFacts::TorchCall facts;
  for (V v : numbers) {
    if (at(v).kind != Value::kScalar) continue;
    if (at(v).of_sizes) facts.numbers.push_back(at(v).ref);
    else if (std::find(changing.begin(), changing.end(), v) == changing.end()) changing.push_back(v);
  }
  if (sizes_are_numbers_) {
    for (V v : tensors) facts.tensors.push_back(as_tensor(v));
    sizes_.torch_calls.push_back(std::move(facts));
  }
  // Numbers that become a tensor's data decide no sizes.
  const bool lifts = std::any_of(records.begin(), records.end(), [](const OpRecord& record) { return record.call.name == "aten::lift_fresh"; });
  const bool decide_sizes = !changing.empty() && std::any_of(records.begin(), records.end(), [&](const OpRecord& record) { return bridge_->sizes_by_numbers(record.call); });
  const std::vector<BoundList> lists = bind_lists(records, inputs);
  std::vector<BoundNumber> of_index;
  const bool index_known = subscript_ && !changing.empty() && inputs.size() >= 2 && find_index_numbers(inputs[0], inputs[1], records, &of_index);
  for (V v : changing) {
    if (base::seeded(base::Defect::kFrozenNumber)) break;
    // It may be given more than once, as in `t[i] = i`: each of its uses has to be found.
    const auto uses = static_cast<size_t>(std::count(numbers.begin(), numbers.end(), v));
    size_t in_lists = 0;
    for (const BoundList& list : lists) in_lists += static_cast<size_t>(std::count(list.items.begin(), list.items.end(), v));
    if (in_lists != 0) {
      if (in_lists < uses) promote(v);
      if (done_) return false;
      continue;
    }
    PyObject* number = concrete(v);
    const bool stored = subscript_ && inputs.size() == 3 && inputs[2] == v;
    bool same_constant = false, in_list = false;
    for (V other : numbers)
      if (other != v && PyObject_RichCompareBool(concrete(other), number, Py_EQ) == 1) same_constant = true;
    std::vector<BoundNumber> places, number_tensors;
    if (index_known) std::copy_if(of_index.begin(), of_index.end(), std::back_inserter(places), [v](const BoundNumber& each) { return each.value == v; });
    const bool indexes = !places.empty();
    if (stored)
      for (size_t r = 0; r < records.size(); r++)
        if (is_filled_with(records[r].call, number)) places.push_back({v, r, 1});
    for (size_t r = 0; r < records.size() && !indexes && !stored; r++)
      for (size_t a = 0; a < records[r].call.args.size(); a++) {
        in_list = in_list || list_holds(records[r].call.args[a], number);
        if (index_known && is_index(records[r].call)) continue;
        if (holds_number(records[r].call.args[a], number) && (!subscript_ || (is_index(records[r].call) && a >= 2) || records[r].call.args[a].kind == AtenArg::kNumberTensor)) {
          places.push_back({v, r, a});
          if (records[r].call.args[a].kind == AtenArg::kNumberTensor) number_tensors.push_back({v, r, a});
        }
      }
    if (indexes || stored) {
      if (places.size() == uses && !PyBool_Check(number)) bound.insert(bound.end(), places.begin(), places.end());
      else promote(v);
      if (done_) return false;
      continue;
    }
    const auto takes_any = [&](const BoundNumber& place) {
      const ir::AtenCall& call = records[place.record].call;
      return call.args[place.arg].kind != AtenArg::kInt || takes_any_int(call, place.arg);
    };
    const auto is_in_graph = [&](const BoundNumber& place) { return is_differentiated(records[place.record].call) && !ir::is_index(records[place.record].call); };
    std::vector<BoundNumber> its;
    if (!same_constant && !in_list && !decide_sizes && !PyBool_Check(number)) {
      if (number_tensors.size() == uses) its = std::move(number_tensors);
      else if (places.size() == uses && std::all_of(places.begin(), places.end(), takes_any)) its = places;
    }
    if (!its.empty() && lessons_.known_graph_numbers && std::any_of(its.begin(), its.end(), is_in_graph)) {
      promote(v);
    } else if (!its.empty()) {
      bound.insert(bound.end(), its.begin(), its.end());
    } else if (at(v).scalar == Type::kInt && !lifts && (in_list || decide_sizes || !places.empty()) && std::none_of(places.begin(), places.end(), [&](const BoundNumber& each) { return records[each.record].call.name == "aten::select"; })) {
      int64_t value = PyLong_AsLongLong(number);
      sizes_.free.push_back({at(v).ref, value});
      if (sizes_are_numbers_) sizes_.torch_calls.back().numbers.push_back(at(v).ref);
      else promote(v, ir::kSameSize);
    } else {
      promote(v);
    }
    if (done_) return false;
  }
  if (backward && !bind_graph_numbers(records, &bound)) return false;
  note_graph_numbers(records, bound);
  for (size_t r = 0; r < records.size(); r++) {
    OpRecord& record = records[r];
    if (record.raised) continue;
    ScalarArguments scalars;
    for (const BoundNumber& number : bound)
      if (number.record == r) scalars.push_back({number.arg, {number.value}});
    for (const BoundList& list : lists)
      if (list.record == r) scalars.push_back({list.arg, list.items});
    record.call.defines_sizes |= lessons_.sizes_by_slices && record.call.name == "aten::slice" && !scalars.empty();
    if (!convert_record(record, scalars, backward)) return false;
  }
  return true;
}

// The tensor whose version counter it shares: a view, and what has been written in place, have their operand's.
static Ref counted_as(const ir::Trace& trace, Ref tensor) {
  while (trace.insts[tensor].op == IrOp::k_result) {
    const Ref made = trace.arg(tensor, 0);
    const ir::AtenCall& call = trace.calls[trace.insts[made].imm];
    const int32_t alias = call.result_alias[trace.insts[tensor].imm];
    if (alias < 0 || call.args[static_cast<size_t>(alias)].operands.empty() || call.args[static_cast<size_t>(alias)].operands[0] < 0) break;
    tensor = trace.arg(made, call.args[static_cast<size_t>(alias)].operands[0]);
  }
  return tensor;
}

bool Recorder::convert_record(OpRecord& record, const ScalarArguments& scalars, bool backward) {
  ir::AtenCall call = record.call;
  std::vector<Ref> operands;
  for (int32_t id : record.tensors) {
    Ref ref = id < 0 ? kNoRef : tensor_of_id(id);
    if (id >= 0 && ref == kNoRef) {
      PyObject* constant_tensor = aten_->constant(id);
      if (constant_tensor == nullptr) {
        give_up(Abort::k_unknown_tensor, call.name);
        return false;
      }
      int32_t meta = meta_of(id);
      ref = emit(IrOp::k_unbox_tensor, Type::kTensor, {const_ref(constant_tensor)}, meta, false);
      trace_.insts[ref].snapshot = current_snapshot_;
      trace_.insts[ref].meta = meta;
      Py_DECREF(constant_tensor);
      tensors_[id] = ref;
    }
    operands.push_back(ref);
  }
  // Autograd keeps the leaf itself, also where none of its gradient is asked for: its backward sees what the leaf is given later, too.
  if (!replaced_.empty() && is_differentiated(call) && std::any_of(record.tensors.begin(), record.tensors.end(), [&](int32_t id) { return replaced_.count(id) != 0; })) {
    give_up(Abort::k_unsupported_operation, "a leaf that has been given other data");
    return false;
  }
  // operands of undefined list entries stay -1 in the call, so compact the rest
  std::vector<Ref> compact;
  std::vector<int32_t> position(operands.size(), -1);
  for (size_t i = 0; i < operands.size(); i++)
    if (operands[i] != kNoRef) {
      position[i] = static_cast<int32_t>(compact.size());
      compact.push_back(operands[i]);
    }
  for (AtenArg& arg : call.args)
    for (int32_t& operand : arg.operands)
      if (operand >= 0) operand = position[operand];
  for (auto& [index, values] : scalars) {
    AtenArg& arg = call.args[index];
    const bool wants_float = arg.kind == AtenArg::kFloat || arg.kind == AtenArg::kFloatList || (arg.kind == AtenArg::kNumberTensor && arg.dtype == ir::DType::kF64);
    arg.operands.clear();
    arg.floats.clear();
    for (V v : values) {
      const Ref ref = wants_float ? as_float(v) : as_int(v);
      if (ref == kNoRef) {
        give_up(Abort::k_shadow_mismatch, "number");
        return false;
      }
      arg.operands.push_back(static_cast<int32_t>(compact.size()));
      compact.push_back(ref);
    }
    if (arg.kind != AtenArg::kNumberTensor) arg.dtype = wants_float ? ir::DType::kF64 : ir::DType::kI64;
    arg.kind = arg.kind == AtenArg::kNumberTensor ? AtenArg::kScalarTensor : AtenArg::kScalar;
  }
  call.in_backward = backward;
  if (!follow_offset(&call, record.tensors.empty() ? -1 : record.tensors[0])) return false;
  if (!record.note.empty()) base::report().notes.emplace("random numbers", record.note);
  if (record.number != OpRecord::kNoNumber) {
    const Type type = record.number == OpRecord::kIntNumber ? Type::kInt : record.number == OpRecord::kFloatNumber ? Type::kFloat : Type::kBool;
    const AtenArg& read = call.args[0];
    if (read.kind == AtenArg::kNumberTensor) {  // C++ code has made a tensor of a number, and reads it
      last_number_ = type == Type::kFloat ? emit(IrOp::k_const_float, type, {}, std::bit_cast<int64_t>(read.f)) : emit(type == Type::kInt ? IrOp::k_const_int : IrOp::k_const_bool, type, {}, read.i);
    } else if (read.kind == AtenArg::kScalarTensor) {
      last_number_ = compact[0];
      if (trace_.insts[last_number_].type != type) return give_up(Abort::k_shadow_mismatch, "number"), false;
    } else {
      last_number_ = emit(IrOp::k_read_scalar, type, {compact[0]}, 0, true);
    }
    tensor_ops_++;
    return true;
  }
  LateWrite late;
  V late_object = kNoValue;
  if (graph_of_outsider(call, compact) && !put_off(&call, record, compact, &late, &late_object)) {
    give_up(Abort::k_graph_from_outside, call.name + " writes memory from outside, and autograd records it");
    return false;
  }
  std::vector<int32_t> ids = call.results;
  for (int32_t& result : call.results) result = result < 0 ? -1 : meta_of(result);
  std::vector<int32_t> mutates = call.mutates;
  place_views(&call, ids, compact);
  for (size_t i = 0; i < ids.size(); i++)
    if (ids[i] >= 0 && call.result_alias[i] >= 0 && mutates.empty() && coincides(ids[i], call, compact, trace_.metas[call.results[i]])) {
      give_up(Abort::k_coincidence, call.name);
      return false;
    }
  std::vector<Ref> written, versioned;
  for (int32_t argument : mutates)
    for (int32_t operand : call.args[argument].operands) {
      if (operand < 0) continue;
      written.push_back(compact[operand]);
      if (std::find(record.unversioned.begin(), record.unversioned.end(), argument) == record.unversioned.end()) versioned.push_back(compact[operand]);
    }
  if (moving_view_written(written, call.name)) return false;
  before_write(written);
  if (done_) return false;
  trace_.calls.push_back(call);
  sizes_.torch_call_of.push_back(static_cast<int32_t>(sizes_.torch_calls.size()) - 1);
  sizes_.after_effect.push_back(effect_done_ || drawn_);
  drawn_ = drawn_ || call.is_random;
  branches_ = branches_ || call.defines_sizes;
  tensor_ops_++;
  if (base::seeded(base::Defect::kGradAddedTwice) && backward && call.name == "aten::add_")
    emit(IrOp::k_aten, Type::kVoid, compact, static_cast<int64_t>(trace_.calls.size()) - 1, true);
  Ref ref = emit(IrOp::k_aten, Type::kVoid, compact, static_cast<int64_t>(trace_.calls.size()) - 1, true);
  // backward() may look at a tensor of the graph as the script does (the transpose of a saved transpose): the script's is that one still, with its graph.
  const bool only_looks = backward && mutates.empty() && !is_differentiated(call);
  const auto has_graph = [&](int32_t id) {
    const auto known = tensors_.find(id);
    const ir::TensorMeta* meta = known != tensors_.end() ? &trace_.metas[trace_.insts[known->second].meta] : nullptr;
    return meta != nullptr && meta->requires_grad && !meta->is_leaf;
  };
  for (size_t i = 0; i < ids.size(); i++) {
    if (ids[i] < 0) continue;
    Ref result = emit(IrOp::k_result, Type::kTensor, {ref}, static_cast<int64_t>(i));
    trace_.insts[result].meta = call.results[i];
    if (!only_looks || call.result_alias[i] < 0 || !has_graph(ids[i])) tensors_[ids[i]] = result;
  }
  // Where guards leave to before several instructions, what they leave would draw other random numbers when it is done again.
  if (call.is_random && (handling_.open || !consumers_.empty())) effect();
  if (record.counted != 0) emit(IrOp::k_bump_version, Type::kVoid, {tensors_[ids[0]]}, record.counted);
  if (call.moves) emit(IrOp::k_bump_version, Type::kVoid, {counted_as(trace_, compact[0])}, 1);
  if (!mutates.empty()) {
    if (!writes_own_memory(written)) effect();
    for (Ref ref : versioned) {
      emit(IrOp::k_bump_version, Type::kVoid, {counted_as(trace_, ref)}, 1);
      note_late(trace_.metas[trace_.insts[ref].meta].storage);
    }
    for (int32_t number : record.own_counters) emit(IrOp::k_bump_version, Type::kVoid, {own_counters_[static_cast<size_t>(number)]}, 1);
  }
  if (late_object != kNoValue) {
    late.value = tensor_value(concrete(late_object), ids[0]);
    late_.of[late_object] = late;
  }
  return true;
}

}  // namespace dynvm::tracer
