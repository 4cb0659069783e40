// Hooks that the iteration itself registers: on tensors that it has made, and on nodes of torch.autograd.Function, as torch does for the backward hooks of
// modules. See recorder.h.
//
// The registration is carried out for real in the recording, and torch's engine then calls the function, which is followed (callbacks.cpp). In the trace
// nothing is registered: what the engine calls is part of it. An exit that makes the graph registers the function again: a tensor with a hook is the result
// of `dynvm::hooked`, a view of the tensor as it was before, and a node's recipe has its hooks (functions.cpp). The handle is no value of the trace.
#include "tracer/recorder.h"

namespace dynvm::tracer {

using ir::AtenArg;
using ir::Ref;
using ir::Type;
using vm::HookResult;
using IrOp = ir::Op;

namespace {

// Handles are numbered: what a trace does in the place of making one.
PyObject* count_handle(PyObject*, PyObject*) {
  static PyObject* const handle_class = [] {
    PyObject* module = PyImport_ImportModule("torch.utils.hooks");
    PyObject* found = module != nullptr ? PyObject_GetAttrString(module, "RemovableHandle") : nullptr;
    Py_XDECREF(module);
    return found;
  }();
  PyObject* next = handle_class != nullptr ? PyObject_GetAttrString(handle_class, "next_id") : nullptr;
  PyObject* one = next != nullptr ? PyLong_FromLong(1) : nullptr;
  PyObject* sum = one != nullptr ? PyNumber_Add(next, one) : nullptr;
  const bool fine = sum != nullptr && PyObject_SetAttrString(handle_class, "next_id", sum) == 0;
  Py_XDECREF(next);
  Py_XDECREF(one);
  Py_XDECREF(sum);
  return fine ? Py_NewRef(Py_None) : nullptr;
}

PyObject* handle_counter() {
  static PyMethodDef method{"count_handle", count_handle, METH_NOARGS, nullptr};
  static PyObject* const counter = PyCFunction_New(&method, nullptr);
  return counter;
}

// The function of this name that torch.Tensor has.
PyObject* tensor_function(const char* name) {
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch._tensor");
  PyObject* tensor = module != nullptr ? PyObject_GetAttrString(module, "Tensor") : nullptr;
  PyErr_Clear();
  PyObject* function = tensor != nullptr && PyType_Check(tensor) ? vm::own_attribute(reinterpret_cast<PyTypeObject*>(tensor), name) : nullptr;
  Py_XDECREF(tensor);
  return function;
}

}  // namespace

// A function that the engine may call from now on: with so many arguments, after what it is bound to. False: it cannot be followed.
bool Recorder::note_hook(V hook, int arguments) {
  Hook known{hook, kNoValue, arguments};
  PyObject* o = concrete(hook);
  if (at(hook).kind == Value::kMethod) {
    known.function = at(hook).items[0];
    known.self = at(hook).items[1];
  } else if (PyMethod_Check(o) && (is_const(hook) || promote(hook))) {
    known.function = constant(PyMethod_GET_FUNCTION(o));
    known.self = constant(PyMethod_GET_SELF(o));
  }
  PyObject* function = concrete(known.function);
  if (done_ || !PyFunction_Check(function) || !know_function(known.function)) return false;
  as_object(hook);  // it is kept until backward(), which may see other contents of its cells by then
  hooks_.insert_or_assign(function, known);
  return true;
}

// What the engine gives to a hook's frame. False: given up.
bool Recorder::given_to_hook(_PyInterpreterFrame* entered, const Hook& hook, std::vector<V>* locals) {
  PyObject** base = vm::FrameView::locals(entered);
  const PyCodeObject* code = vm::FrameView::code(entered);
  std::vector<V> all;
  if (hook.self != kNoValue) all.push_back(hook.self);
  for (int i = 0; i < hook.arguments && !done_; i++) {
    const auto place = static_cast<int>(all.size());
    PyObject* given = nullptr;
    if (place < code->co_argcount) given = base[place];
    else if ((code->co_flags & CO_VARARGS) != 0) given = PyTuple_GET_ITEM(base[code->co_argcount + code->co_kwonlyargcount], place - code->co_argcount);
    all.push_back(given_to_callback(given));
    if (all.back() == kNoValue) give_up(Abort::k_python_in_torch_call, "what a hook is given");
  }
  return !done_ && same_locals(entered, hook.function, all, locals);
}

V Recorder::hook_handle(PyObject* handle) {
  emit(IrOp::k_call_known, Type::kObject, {const_ref(handle_counter())}, -1, true);
  effect();
  const V v = new_context(handle);
  at(v).fresh = false;
  return v;
}

// tensor.register_hook(function) of a tensor that the trace has made. nullopt: not for here.
std::optional<HookResult> Recorder::register_tensor_hook(vm::ThreadView& view, V callee, const std::vector<V>& args, int pops) {
  static PyObject* const function = tensor_function("register_hook");
  if (function == nullptr || concrete(callee) != function || args.size() != 2 || !at(args[0]).has_graph() || at(args[1]).kind == Value::kContext) return std::nullopt;
  const V tensor = args[0];
  const Ref before = as_tensor(tensor);
  if (done_ || !promote(callee)) return std::nullopt;
  guard_code_unchanged(function);
  for (Ref r = before + 1; r < trace_.insts.size(); r++) {  // what it was used for would go back to it without the hook
    if (trace_.insts[r].op != IrOp::k_aten || recipes_.count(r) != 0) continue;
    for (int32_t operand : differentiated_operands(trace_.calls[trace_.insts[r].imm]))
      if (trace_.arg(r, static_cast<uint32_t>(operand)) == before) give_up(Abort::k_python_in_torch_call, "a hook on a tensor that has been used");
  }
  if (at(tensor).object != ir::kNoRef) give_up(Abort::k_python_in_torch_call, "a hook on a tensor that has been handed out");
  if (!done_ && !note_hook(args[1], 1)) give_up(Abort::k_python_in_torch_call, "a hook that is no function");
  snapshot();
  if (done_) return HookResult::kContinue;
  PyObject* const objects[] = {concrete(tensor), concrete(args[1])};
  PyObject* handle = PyObject_Vectorcall(function, objects, 2, nullptr);
  if (handle == nullptr) {
    give_up(Abort::k_operation_raised, "register_hook");
    return raised(view);
  }
  const int32_t id = aten_->tensor_id(concrete(tensor));
  ir::AtenCall node;
  node.name = "dynvm::hooked";
  node.grad_mode = true;
  node.count = 0;
  node.args.resize(1);
  node.args[0].kind = AtenArg::kTensor;
  node.args[0].operands = {0};
  node.args[0].ints = {1};
  ir::TensorMeta meta = trace_.metas[meta_of(id)];
  const Ref call = add_node(std::move(node), {before}, id, std::move(meta));
  refresh(tensor);
  const Ref recipe = emit(IrOp::k_build_tuple, Type::kObject, {as_snapshot(args[1])});
  trace_.insts[recipe].sunk = true;
  recipes_[call].push_back(recipe);
  const V result = hook_handle(handle);
  Py_DECREF(handle);
  return finish_call(view, result, pops);
}

// A method of C of a Function's node: its name, or a hook is registered. nullopt: another one.
std::optional<HookResult> Recorder::call_node_method(vm::ThreadView& view, const std::string& name, const std::vector<V>& args, int pops) {
  const bool is_pre = name.ends_with(".register_prehook");
  if (args.empty() || at(args[0]).kind != Value::kContext) return std::nullopt;
  const auto context = contexts_.find(concrete(args[0]));
  if (context == contexts_.end()) return std::nullopt;
  if (name.ends_with(".name") && args.size() == 1) {
    PyObject* text = PyUnicode_FromString(Py_TYPE(concrete(args[0]))->tp_name);
    const V result = constant(text);
    Py_DECREF(text);
    return finish_call(view, result, pops);
  }
  if ((!is_pre && !name.ends_with(".register_hook")) || args.size() != 2) return std::nullopt;
  if (!note_hook(args[1], is_pre ? 1 : 2) && !done_) give_up(Abort::k_python_in_torch_call, "a hook that is no function");
  snapshot();
  if (done_) return HookResult::kContinue;
  PyObject* handle = PyObject_CallMethod(concrete(args[0]), is_pre ? "register_prehook" : "register_hook", "O", concrete(args[1]));
  if (handle == nullptr) {
    give_up(Abort::k_operation_raised, name);
    return raised(view);
  }
  Node& node = nodes_.at(context->second);
  node.hooks.push_back(const_ref(is_pre ? Py_True : Py_False));
  node.hooks.push_back(as_snapshot(args[1]));
  const Ref hooks = emit(IrOp::k_build_tuple, Type::kObject, node.hooks);
  trace_.insts[hooks].sunk = true;
  const Ref recipe = emit(IrOp::k_build_tuple, Type::kObject, {node.cls, node.attributes, hooks});
  trace_.insts[recipe].sunk = true;
  for (Ref call : node.calls) recipes_[call].push_back(recipe);
  forget_graphs();  // exits from here on make them with the hook
  const V result = hook_handle(handle);
  Py_DECREF(handle);
  return finish_call(view, result, pops);
}

}  // namespace dynvm::tracer
