// torch.autograd.Function: calls of apply(), and the contexts that forward() and backward() share. See recorder.h.
//
// apply() is a function of torch's that calls forward() of the class, without grad mode, and makes a node of its results' graphs. forward() is followed
// as hooks are (callbacks.cpp), and so is backward(), which torch's engine calls. The context is an object to these two alone: it is no value of the trace,
// and its attributes are what was stored in it. Each result with a graph is a view of what forward() gave (runtime/torch/function_nodes.h), through which
// graphs go on to the arguments; what an exit needs to make the node again (the recipe) are sunk instructions.
#include <algorithm>
#include <cstddef>

#include "tracer/recorder.h"

namespace dynvm::tracer {

using bridge::OpRecord;
using ir::AtenArg;
using ir::Ref;
using ir::Type;
using vm::HookResult;
using IrOp = ir::Op;

// Is it apply() of torch's base class, bound to a class?
bool Recorder::is_function_apply(PyObject* callee) {
  static const PyMethodDef* const apply = []() -> const PyMethodDef* {
    PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch._C");
    PyObject* base = module != nullptr ? PyObject_GetAttrString(module, "_FunctionBase") : nullptr;
    PyErr_Clear();
    PyObject* method = base != nullptr && PyType_Check(base) ? vm::own_attribute(reinterpret_cast<PyTypeObject*>(base), "apply") : nullptr;
    Py_XDECREF(base);
    return method != nullptr && Py_TYPE(method) == &PyClassMethodDescr_Type ? reinterpret_cast<PyMethodDescrObject*>(method)->d_method : nullptr;
  }();
  return apply != nullptr && PyCFunction_Check(callee) && reinterpret_cast<PyCFunctionObject*>(callee)->m_ml == apply && PyType_Check(PyCFunction_GET_SELF(callee));
}

HookResult Recorder::apply_function(vm::ThreadView& view, V callee, const std::vector<V>& args, int pops) {
  PyObject* const cls = PyCFunction_GET_SELF(concrete(callee));
  const std::string name = reinterpret_cast<PyTypeObject*>(cls)->tp_name;
  guard_type_unchanged(reinterpret_cast<PyTypeObject*>(cls));
  guard_type_unchanged(Py_TYPE(cls));
  const auto part = [&](const char* attribute) {
    PyObject* function = PyObject_GetAttrString(cls, attribute);
    PyErr_Clear();
    const V v = function != nullptr && PyFunction_Check(function) ? constant(function) : kNoValue;
    Py_XDECREF(function);
    return v;
  };
  const std::set<Ref> no_graph;
  std::vector<V> tensors;
  TorchCall call{tensors, false, no_graph};
  call.arguments = &args;
  call.forward = part("forward");
  call.setup = part("setup_context");
  if (call.forward != kNoValue) call.place = {reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(concrete(call.forward))), 0};
  if (aten_ == nullptr || call.forward == kNoValue || handling_.open || lessons_.opaque_consumers.count(call.place) != 0) {
    give_up(Abort::k_python_in_torch_call, name);
    return HookResult::kContinue;
  }
  std::map<int32_t, Ref> before;  // ids of the arguments: what forward() makes may look the same
  for (V v : args) {
    if (!is_tensor(concrete(v))) continue;
    tensors.push_back(v);
    const Ref ref = as_tensor(v);
    if (done_) return HookResult::kContinue;
    before.emplace(aten_->tensor_id(concrete(v)), ref);
  }
  guard_early(call.place);
  snapshot();
  if (done_) return HookResult::kContinue;

  std::vector<PyObject*> objects;
  for (V v : args) objects.push_back(concrete(v));
  const size_t outer_callbacks = callbacks_.size();
  aten_->take();
  in_torch_ = true;
  python_in_torch_ = false;
  TorchCall* const outer_call = std::exchange(torch_call_, &call);
  aten_->enable();
  PyObject* const result = PyObject_Vectorcall(concrete(callee), objects.data(), objects.size(), nullptr);
  aten_->disable();
  in_torch_ = false;
  torch_call_ = outer_call;
  std::vector<OpRecord> records = aten_->take();
  if (result == nullptr) give_up(Abort::k_operation_raised, name);
  else if (!call.followed) give_up(Abort::k_python_in_torch_call, name);
  V given = kNoValue;
  if (!done_) given = function_results(call, cls, result, records, before);
  for (const auto& [id, ref] : before) {
    const Ref now = tensors_[id];
    const bool written = trace_.insts[now].op == IrOp::k_result && !trace_.calls[trace_.insts[trace_.arg(now, 0)].imm].mutates.empty();
    if (!done_ && !written) tensors_[id] = ref;
  }
  if (call.followed) end_callbacks(outer_callbacks);
  if (result == nullptr) return raised(view);
  if (done_) given = object(ir::kNoRef, result, true);
  Py_DECREF(result);
  return finish_call(view, given, pops);
}

// The function inside torch's apply() that binds arguments of a forward() whose context is made apart: inspect would be asked for its signature. kNoValue: it
// is not that function, or has to be followed.
V Recorder::bind_default_args(V callee, const std::vector<V>& args, PyObject* kwnames) {
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(concrete(callee)));
  if (kwnames != nullptr || args.empty() || PyUnicode_CompareWithASCIIString(code->co_qualname, "Function.apply.<locals>.bind_default_args") != 0) return kNoValue;
  PyObject* o = concrete(args[0]);
  if (!PyFunction_Check(o) || !promote(args[0])) return kNoValue;
  auto* function = reinterpret_cast<PyFunctionObject*>(o);
  auto* bound = reinterpret_cast<PyCodeObject*>(function->func_code);
  if (function->func_dict != nullptr || bound->co_kwonlyargcount != 0 || (bound->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) != 0) return kNoValue;
  guard_code_unchanged(o);
  if (!known('w', o)) guard(IrOp::k_guard_is, {emit(IrOp::k_load_field, Type::kObject, {const_ref(o)}, offsetof(PyFunctionObject, func_dict)), const_ref(nullptr)}, -1);
  std::vector<V> locals;
  if (done_ || !bind_arguments(args[0], std::vector<V>(args.begin() + 1, args.end()), nullptr, &locals)) return kNoValue;
  locals.resize(static_cast<size_t>(bound->co_argcount));
  std::vector<PyObject*> objects;
  for (V v : args) objects.push_back(concrete(v));
  PyObject* result = PyObject_Vectorcall(concrete(callee), objects.data(), objects.size(), nullptr);
  if (result == nullptr) PyErr_Clear();
  const auto is_bound = [&](PyObject* tuple) {
    if (tuple == nullptr || !PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) != bound->co_argcount) return false;
    for (size_t i = 0; i < locals.size(); i++)
      if (PyTuple_GET_ITEM(tuple, static_cast<Py_ssize_t>(i)) != concrete(locals[i])) return false;
    return true;
  };
  V made = kNoValue;
  if (is_bound(result)) {
    made = virtual_object(Value::kTuple, locals, result);
  } else if (result != nullptr && PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == 2 && is_bound(PyTuple_GET_ITEM(result, 0)) &&
             PyDict_CheckExact(PyTuple_GET_ITEM(result, 1)) && PyDict_Size(PyTuple_GET_ITEM(result, 1)) == 0) {
    const V first = virtual_object(Value::kTuple, locals, PyTuple_GET_ITEM(result, 0));
    made = virtual_object(Value::kTuple, {first, virtual_object(Value::kDict, {}, PyTuple_GET_ITEM(result, 1))}, result);
  }
  Py_XDECREF(result);
  return made;
}

// A context, which is new.
V Recorder::new_context(PyObject* context) {
  Value value;
  value.kind = Value::kContext;
  value.concrete = Py_NewRef(context);
  value.fresh = value.type_known = true;
  return add_value(std::move(value));
}

// What the call of apply() under way gives to the frame of forward() or setup_context(). False: given up.
bool Recorder::given_to_function(_PyInterpreterFrame* entered, V function, std::vector<V>* locals) {
  PyObject** base = vm::FrameView::locals(entered);
  const PyCodeObject* code = vm::FrameView::code(entered);
  const std::vector<V>& args = *torch_call_->arguments;
  std::vector<V> all;
  const bool setup = function == torch_call_->setup;
  const bool has_context = setup || vm::FrameView::local_count(entered) > 0;
  PyObject* first = has_context ? base[0] : nullptr;
  if (first != nullptr && code->co_argcount == 0 && PyTuple_CheckExact(first)) first = PyTuple_GET_SIZE(first) > 0 ? PyTuple_GET_ITEM(first, 0) : nullptr;
  static PyObject* const context_class = [] {
    PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch._C");
    PyObject* found = module != nullptr ? PyObject_GetAttrString(module, "_FunctionBase") : nullptr;
    PyErr_Clear();
    return found;
  }();
  if (first != nullptr && context_class != nullptr && PyObject_TypeCheck(first, reinterpret_cast<PyTypeObject*>(context_class)) &&
      (args.empty() || first != concrete(args[0]))) {
    torch_call_->context = new_context(first);
    guard_type_unchanged(Py_TYPE(first));
    all.push_back(torch_call_->context);
  }
  if (setup) {
    if (torch_call_->context == kNoValue || torch_call_->output == kNoValue || code->co_argcount != 3 || !PyTuple_CheckExact(base[1])) {
      give_up(Abort::k_python_in_torch_call, "setup_context()");
      return false;
    }
    all.push_back(virtual_object(Value::kTuple, args, base[1]));
    all.push_back(torch_call_->output);
  } else {
    all.insert(all.end(), args.begin(), args.end());
  }
  return same_locals(entered, function, all, locals);
}

// Binds arguments to the parameters of a function whose frame has them already. False: given up.
bool Recorder::same_locals(_PyInterpreterFrame* entered, V function, const std::vector<V>& args, std::vector<V>* locals) {
  PyObject** base = vm::FrameView::locals(entered);
  bool same = bind_arguments(function, args, nullptr, locals);
  for (size_t i = 0; i < locals->size() && same; i++) {
    Value& value = at((*locals)[i]);
    if (value.concrete == base[i]) continue;
    same = (value.kind == Value::kTuple || value.kind == Value::kDict) && base[i] != nullptr && Py_TYPE(base[i]) == Py_TYPE(value.concrete);
    if (same) Py_SETREF(value.concrete, Py_NewRef(base[i]));  // *args, **kwargs
  }
  if (!same) give_up(Abort::k_python_in_torch_call, "what a function is given");
  return !done_;
}

// A view of a tensor of this id, from here on its value, with a node of its own in the graph.
Ref Recorder::add_node(ir::AtenCall call, const std::vector<Ref>& operands, int32_t id, ir::TensorMeta meta) {
  const auto index = static_cast<int32_t>(trace_.metas.size());
  trace_.metas.push_back(std::move(meta));
  call.results = {index};
  call.result_alias = {0};
  trace_.calls.push_back(std::move(call));
  sizes_.torch_call_of.push_back(static_cast<int32_t>(sizes_.torch_calls.size()) - 1);
  sizes_.after_effect.push_back(effect_done_ || drawn_);
  const Ref node = emit(IrOp::k_aten, Type::kVoid, operands, static_cast<int64_t>(trace_.calls.size()) - 1, true);
  const Ref made = emit(IrOp::k_result, Type::kTensor, {node}, 0);
  trace_.insts[made].meta = index;
  metas_[id] = index;
  tensors_[id] = made;
  return node;
}

// The value of an attribute of a context; kNoValue: as of any object. Or given up.
V Recorder::context_attribute(V context, PyObject* name) {
  PyObject* o = concrete(context);
  if (auto set = fields_.find({context, name}); set != fields_.end()) return set->second;
  guard_type_unchanged(Py_TYPE(o));
  PyObject* descriptor = _PyType_Lookup(Py_TYPE(o), name);
  if (done_ || descriptor == nullptr || Py_TYPE(descriptor)->tp_descr_set == nullptr) return kNoValue;
  const std::string text = PyUnicode_AsUTF8(name);
  V result = kNoValue;
  if (text == "saved_tensors" || text == "needs_input_grad") {
    PyObject* value = PyObject_GetAttr(o, name);
    if (value == nullptr) PyErr_Clear();
    else result = text == "needs_input_grad" ? constant(value) : given_to_callback(value);
    Py_XDECREF(value);
  }
  if (result == kNoValue) give_up(Abort::k_python_in_torch_call, "a context's " + text);
  return result;
}

// What may be changed later is an object from now on.
void Recorder::settle(V v) {
  const Value::Kind kind = at(v).kind;
  if (kind == Value::kTuple)
    for (V item : std::vector<V>(at(v).items)) settle(item);
  else if (kind == Value::kList || kind == Value::kDict || kind == Value::kSet || kind == Value::kCell || kind == Value::kIterator || kind == Value::kFunction) as_object(v);
}

// Stores an attribute of a context. False: given up, or *error.
bool Recorder::store_context_attribute(V context, PyObject* name, V value, bool* error) {
  static const std::set<std::string> known = {"to_save", "non_differentiable", "materialize_grads", "saved_for_forward"};
  PyObject* o = concrete(context);
  guard_type_unchanged(Py_TYPE(o));
  PyObject* descriptor = _PyType_Lookup(Py_TYPE(o), name);
  const std::string text = PyUnicode_AsUTF8(name);
  if (descriptor != nullptr && Py_TYPE(descriptor)->tp_descr_set != nullptr && known.count(text) == 0) {
    give_up(Abort::k_python_in_torch_call, "a context's " + text);
    return false;
  }
  if (text == "materialize_grads") promote(value);
  else settle(value);
  if (done_) return false;
  *error = PyObject_SetAttr(o, name, concrete(value)) < 0;
  if (*error) return false;
  fields_[{context, name}] = value;
  return true;
}

// The value of what the call of apply() has given. before: what its arguments were, by id. kNoValue: given up.
V Recorder::function_results(const TorchCall& call, PyObject* cls, PyObject* result, std::vector<OpRecord>& records, const std::map<int32_t, Ref>& before) {
  const int32_t first_storage = consumers_.back().first_storage;
  const std::string name = reinterpret_cast<PyTypeObject*>(cls)->tp_name;
  const auto refuse = [&](const char* why, Abort reason = Abort::k_python_in_torch_call) {
    if (!done_) give_up(reason, name + ": " + why);
    return kNoValue;
  };
  if (!records.empty()) {
    if (const std::string why = not_repeatable(records, Py_None, {}, {}); !why.empty()) return refuse(why.c_str(), Abort::k_unsupported_operation);
    if (!convert_records(records, call.inputs, false)) return refuse("operations", Abort::k_unknown_tensor);
  }
  const bool several = PyTuple_CheckExact(result);
  std::vector<V> given{call.output};
  if (call.output == kNoValue || (several && !known_items(call.output, &given))) return refuse("its results");
  const size_t count = several ? static_cast<size_t>(PyTuple_GET_SIZE(result)) : 1;
  if (given.size() != count) return refuse("its results");

  struct Output { PyObject* object; int32_t id; Ref value; size_t position; bool graph; };
  std::vector<Output> outputs;
  std::vector<V> results(count, kNoValue);
  static int64_t calls = 0;
  std::vector<int64_t> layout{++calls, 0, static_cast<int64_t>(count)};
  bool graph = false;
  for (size_t i = 0; i < count; i++) {
    PyObject* item = several ? PyTuple_GET_ITEM(result, static_cast<Py_ssize_t>(i)) : result;
    if (!is_tensor(item)) {
      if (concrete(given[i]) != item) return refuse("its results");
      results[i] = given[i];
      layout.insert(layout.end(), {-1, -1});
      continue;
    }
    const bridge::TensorObject info = bridge_->describe(item);
    Output output{item, aten_->tensor_id(item), ir::kNoRef, i, info.requires_grad && !info.is_leaf};
    if (output.id < 0 || tensors_.count(output.id) == 0) return refuse("a result that no recorded operation has made", Abort::k_tensor_result);
    output.value = tensors_[output.id];
    int64_t argument = -1;
    for (size_t k = call.arguments->size(); k-- > 0;) {
      PyObject* o = concrete((*call.arguments)[k]);
      if (!is_tensor(o)) continue;
      const ir::TensorMeta &a = aten_->meta(aten_->tensor_id(o)), &b = aten_->meta(output.id);
      const bool alike = a.storage == b.storage && a.offset == b.offset && a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides;
      if (alike) argument = static_cast<int64_t>(k);
    }
    if (output.graph && argument < 0 && trace_.metas[meta_of(output.id)].storage < first_storage) return refuse("a result on memory from before");
    if (output.graph && info.grad_fn != std::string(Py_TYPE(concrete(call.context))->tp_name)) return refuse("a result with another node");
    layout.insert(layout.end(), {static_cast<int64_t>(outputs.size()), argument});
    outputs.push_back(output);
    graph = graph || output.graph;
  }
  layout.push_back(static_cast<int64_t>(call.arguments->size()));
  int64_t inputs = 0;
  for (V v : *call.arguments) layout.push_back(is_tensor(concrete(v)) ? inputs++ : -1);

  std::vector<Ref> nodes;
  for (size_t k = 0; k < outputs.size(); k++) {
    Output& output = outputs[k];
    if (output.graph) {
      ir::AtenCall node;
      node.name = "dynvm::function_output";
      node.grad_mode = true;
      node.count = 0;
      node.args.resize(4);
      std::vector<Ref> operands{output.value};
      node.args[0].kind = AtenArg::kTensor;
      node.args[0].operands = {0};
      node.args[0].ints = {0};
      const auto list = [&](AtenArg& arg, Ref ref, bool requires_grad) {
        arg.kind = AtenArg::kTensorList;
        arg.operands.push_back(static_cast<int32_t>(operands.size()));
        arg.ints.push_back(requires_grad);
        operands.push_back(ref);
      };
      for (const Output& each : outputs) list(node.args[1], each.value, false);
      node.args[2].kind = AtenArg::kTensorList;
      for (V v : call.inputs) {
        PyObject* o = concrete(v);
        list(node.args[2], before.at(aten_->tensor_id(o)), bridge_->describe(o).requires_grad);
      }
      layout[1] = static_cast<int64_t>(k);
      node.args[3].kind = AtenArg::kIntList;
      node.args[3].ints = layout;
      ir::TensorMeta meta = trace_.metas[meta_of(output.id)];
      meta.requires_grad = true;
      meta.is_leaf = false;
      if (layout[2 * output.position + 4] >= 0) output.id = aten_->separate(output.object);
      nodes.push_back(add_node(std::move(node), operands, output.id, std::move(meta)));
    }
    auto known = leaf_objects_.find(output.object);
    V v = known != leaf_objects_.end() && concrete(known->second) == output.object ? known->second : kNoValue;
    if (v != kNoValue && output.graph && (at(v).kind != Value::kTensor || at(v).object != ir::kNoRef)) return refuse("a result that has been handed out before");
    if (v != kNoValue) refresh(v);
    else v = tensor_value(output.object, output.id);
    results[output.position] = v;
  }
  if (done_) return kNoValue;
  if (graph) {
    contexts_[concrete(call.context)] = call.context;
    const Ref attributes = context_attributes(call, results);
    if (done_) return kNoValue;
    const Ref recipe = emit(IrOp::k_build_tuple, Type::kObject, {const_ref(cls), attributes});
    trace_.insts[recipe].sunk = true;
    for (Ref node : nodes) recipes_[node].push_back(recipe);
    const auto first = std::find_if(outputs.begin(), outputs.end(), [](const Output& each) { return each.graph; });
    const V output = results[first->position];
    nodes_[call.context] = {output, at(output).ref, nodes, const_ref(cls), attributes, {}};
  }
  return several ? virtual_object(Value::kTuple, results, result) : results[0];
}

// A dict of what an exit gives to the context of the node that it makes; see runtime/torch/function_nodes.h.
Ref Recorder::context_attributes(const TorchCall& call, const std::vector<V>& results) {
  const auto sunk = [this](Ref ref) {
    trace_.insts[ref].sunk = true;
    return ref;
  };
  const auto shown = [this](V v) {
    const Ref ref = as_snapshot(v);
    return ref == ir::kSlotNull ? const_ref(nullptr) : ref;
  };
  const std::function<bool(V)> holds_result = [&](V v) {
    if (at(v).has_graph() && std::find(results.begin(), results.end(), v) != results.end()) return true;
    const std::vector<V> items = at(v).items;
    return std::any_of(items.begin(), items.end(), holds_result);
  };
  std::vector<std::pair<PyObject*, V>> attributes;
  for (const auto& [key, v] : fields_)
    if (key.first == call.context) attributes.emplace_back(key.second, v);
  std::vector<Ref> items;
  for (const auto& [attribute, v] : attributes) {
    const bool own = PyUnicode_CompareWithASCIIString(attribute, "to_save") == 0 || PyUnicode_CompareWithASCIIString(attribute, "non_differentiable") == 0;
    Ref value = ir::kNoRef;
    std::vector<V> saved;
    if (own && PyTuple_CheckExact(concrete(v)) && known_items(v, &saved)) {
      std::vector<Ref> refs;
      for (V item : saved) {
        int64_t place = 0;
        bool found = false;
        for (size_t k = 0; k < results.size() && !found; k++)
          if (concrete(results[k]) == concrete(item) && is_tensor(concrete(item))) found = true, place = static_cast<int64_t>(k);
        for (size_t k = 0; k < call.arguments->size() && !found; k++)
          if (concrete((*call.arguments)[k]) == concrete(item) && is_tensor(concrete(item))) found = true, place = -1 - static_cast<int64_t>(k);
        PyObject* number = found ? PyLong_FromLongLong(place) : nullptr;
        refs.push_back(found ? const_ref(number) : shown(item));
        Py_XDECREF(number);
      }
      value = sunk(emit(IrOp::k_build_tuple, Type::kObject, refs));
    } else if (own && concrete(v) != Py_None) {
      give_up(Abort::k_python_in_torch_call, "a context's tensors that are no tuple");
    } else if (holds_result(v)) {
      give_up(Abort::k_python_in_torch_call, "a context that holds a result");
    } else {
      value = shown(v);
    }
    if (done_) return ir::kNoRef;
    items.push_back(const_ref(attribute));
    items.push_back(value);
  }
  return sunk(emit(IrOp::k_build_map, Type::kObject, items));
}

// inspect.signature of a function in Python, or of a method, that has no attributes (such as __wrapped__): it is as constant as code, defaults and
// annotations, and nothing can be changed in it. kNoValue: of something else.
V Recorder::signature_of(V callee) {
  PyObject* o = concrete(callee);
  if (at(callee).kind == Value::kMethod ? !promote(at(callee).items[0]) : !promote(callee)) return kNoValue;
  PyObject* function = PyMethod_Check(o) ? PyMethod_GET_FUNCTION(o) : o;
  if (done_ || !PyFunction_Check(function)) return kNoValue;
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  if (f->func_dict != nullptr && PyDict_GET_SIZE(f->func_dict) != 0) return kNoValue;
  PyObject* module = PyImport_ImportModule("inspect");
  PyObject* made = module != nullptr ? PyObject_CallMethod(module, "signature", "O", o) : nullptr;
  PyErr_Clear();
  Py_XDECREF(module);
  if (made == nullptr) return kNoValue;
  guard_code_unchanged(function);
  bool fine = true;
  for (const auto& [offset, value] : {std::pair{offsetof(PyFunctionObject, func_defaults), f->func_defaults}, {offsetof(PyFunctionObject, func_kwdefaults), f->func_kwdefaults},
                                      {offsetof(PyFunctionObject, func_annotations), f->func_annotations}, {offsetof(PyFunctionObject, func_dict), f->func_dict}}) {
    guard(IrOp::k_guard_is, {emit(IrOp::k_load_field, Type::kObject, {const_ref(function)}, static_cast<int64_t>(offset)), const_ref(value)}, -1);
    if (value != nullptr && PyDict_CheckExact(value)) fine = guard_dict_unchanged(value) && fine;
  }
  if (!fine) {
    Py_DECREF(made);
    return kNoValue;
  }
  PyObject* from = PyMethod_Check(o) ? PyMethod_New(function, Py_None) : Py_NewRef(o);  // whose method it is does not matter, and may be an object of this iteration
  const V signature = signature_constant(made, from, false);
  Py_XDECREF(from);
  return signature;
}

// made: taken over.
V Recorder::signature_constant(PyObject* made, PyObject* from, bool parameters) {
  const V v = constant(made);
  if (signatures_.insert(v).second) {
    made_objects_.push_back({made, from, parameters});
    for (PyObject* each : {made, from}) owned_.push_back(Py_XNewRef(each));
  }
  Py_DECREF(made);
  return v;
}

}  // namespace dynvm::tracer
