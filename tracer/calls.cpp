// Recording of calls and returns. See recorder.h.
//
// A call to a Python function is followed: the frame is pushed here, with arguments bound here (bind_arguments mirrors CPython's
// binder on Values, so each parameter keeps its origin). A call to a C function is folded (builtins.cpp), recorded as tensor operations
// (torch_calls.cpp), or residual. What needs the evaluator's frame (sys._getframe, locals) cannot be inside a trace.
#include <algorithm>
#include <cstring>

#include "tracer/recorder.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/policy.h"
#include "vm/objects.h"

namespace dynvm::tracer {

using ir::kNoRef;
using ir::Ref;
using ir::Type;
using vm::HookResult;
using vm::Op;
using IrOp = ir::Op;

bool Recorder::bind_arguments(V function, const std::vector<V>& args, PyObject* kwnames, std::vector<V>* locals) {
  auto* f = reinterpret_cast<PyFunctionObject*>(concrete(function));
  auto* code = reinterpret_cast<PyCodeObject*>(f->func_code);
  int positional = code->co_argcount, keyword_only = code->co_kwonlyargcount;
  int total = positional + keyword_only;
  bool star = code->co_flags & CO_VARARGS, star_star = code->co_flags & CO_VARKEYWORDS;
  size_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  size_t npos = args.size() - nkw;
  locals->assign(code->co_nlocalsplus, null_);
  for (size_t i = 0; i < npos && i < static_cast<size_t>(positional); i++) (*locals)[i] = args[i];
  if (npos > static_cast<size_t>(positional) && !star) return false;
  if (star) {
    std::vector<V> rest;
    for (size_t i = positional; i < npos; i++) rest.push_back(args[i]);
    (*locals)[total] = virtual_tuple(std::move(rest));
  }
  V keywords = kNoValue;
  if (star_star) {
    PyObject* dict = PyDict_New();
    keywords = virtual_object(Value::kDict, {}, dict);
    Py_DECREF(dict);
    (*locals)[total + (star ? 1 : 0)] = keywords;
  }
  for (size_t k = 0; k < nkw; k++) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    V value = args[npos + k];
    int found = -1;
    for (int i = code->co_posonlyargcount; i < total && found < 0; i++) {
      PyObject* parameter = PyTuple_GET_ITEM(code->co_localsplusnames, i);
      if (parameter == name || PyUnicode_Compare(parameter, name) == 0) found = i;
    }
    if (found >= 0) {
      if ((*locals)[found] != null_) return false;
      (*locals)[found] = value;
      continue;
    }
    if (!star_star) return false;
    PyDict_SetItem(concrete(keywords), name, concrete(value));
    at(keywords).keys.push_back(name);
    at(keywords).items.push_back(value);
    constant(name);
  }
  // Defaults, from the function object or from the trace that has made it.
  V defaults = kNoValue, kwdefaults = kNoValue;
  auto made = functions_.find(function);
  if (made != functions_.end()) {
    defaults = made->second.defaults;
    kwdefaults = made->second.keyword_defaults;
  }
  Py_ssize_t ndefaults = f->func_defaults ? PyTuple_GET_SIZE(f->func_defaults) : 0;
  for (int i = 0; i < positional; i++) {
    if ((*locals)[i] != null_) continue;
    Py_ssize_t index = i - (positional - ndefaults);
    if (index < 0) return false;
    if (made != functions_.end()) {
      std::vector<V> items;
      if (!known_items(defaults, &items)) return false;
      (*locals)[i] = items[index];
    } else {
      if (!known('e', f)) {
        Ref ref = emit(IrOp::k_load_field, Type::kObject, {const_ref(concrete(function))}, offsetof(PyFunctionObject, func_defaults));
        guard(IrOp::k_guard_is, {ref, const_ref(f->func_defaults)}, -1);
      }
      (*locals)[i] = constant(PyTuple_GET_ITEM(f->func_defaults, index));
    }
  }
  for (int i = positional; i < total; i++) {
    if ((*locals)[i] != null_) continue;
    PyObject* name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
    PyObject* value = f->func_kwdefaults ? PyDict_GetItemWithError(f->func_kwdefaults, name) : nullptr;
    if (value == nullptr) return false;
    if (made != functions_.end()) {
      if (at(kwdefaults).kind != Value::kDict) return false;
      V found = item_of(kwdefaults, constant(name));
      if (found == kNoValue) return false;
      (*locals)[i] = found;
    } else {
      if (!known('k', f)) {
        Ref ref = emit(IrOp::k_load_field, Type::kObject, {const_ref(concrete(function))}, offsetof(PyFunctionObject, func_kwdefaults));
        guard(IrOp::k_guard_is, {ref, const_ref(f->func_kwdefaults)}, -1);
      }
      (*locals)[i] = dict_item(f->func_kwdefaults, name);
    }
  }
  return !done_;
}

// Is this call of a Python function, by a call instruction, followed? Inside of what is one operation to the outside (a hook, a consumer of a generator)
// always: a residual call there could be left by no guard.
bool Recorder::follows(PyObject* function) {
  if (!consumers_.empty() || in_callback()) return true;
  if (lessons_.opaque_calls.count({top().code, current_unit_}) != 0) return false;
  if (base::policy() == nullptr) return true;
  auto* code = reinterpret_cast<PyCodeObject*>(reinterpret_cast<PyFunctionObject*>(function)->func_code);
  if ((code->co_flags & kGeneratorFlags) != 0) return true;
  return base::decide(base::Decision::kInline, static_cast<int>(frames_.size()) <= base::heuristics().max_depth, [&] {
    std::string name = callable_name(function);
    if (name.starts_with("python:")) name.erase(0, 7);
    return base::Facts{{"file", PyUnicode_AsUTF8(top().code->co_filename)},
                       {"line", int64_t{PyCode_Addr2Line(top().code, current_unit_ * 2)}},
                       {"name", name},
                       {"depth", static_cast<int64_t>(frames_.size())},
                       {"instructions", static_cast<int64_t>(vm::inst_count(code))},
                       {"recorded", static_cast<int64_t>(trace_.insts.size())}};
  });
}

HookResult Recorder::call_dunder(vm::ThreadView& view, const char* name, std::vector<V> args, IrOp op, int pops, vm::Continuation k) {
  V self = args[0];
  PyTypeObject* type = Py_TYPE(concrete(self));
  PyObject* method = _PyType_Lookup(type, interned(name));
  if (method != nullptr && PyFunction_Check(method)) {
    if (at(self).kind == Value::kObject || is_const(self)) know_type(self);
    guard_type_unchanged(type);
    if (done_) return HookResult::kContinue;
    int entered_pops = k == vm::Continuation::kIter ? 0 : pops;
    if (enter_function(view, constant(method), args, nullptr, entered_pops, k)) return HookResult::kReload;
    if (entered_error_) return HookResult::kError;
    if (done_) return HookResult::kContinue;
  }
  if (op == IrOp::k_set_item && args.size() == 3) return residual(view, op, args, 0, pops, false);
  return residual(view, op, args, 0, pops);
}

HookResult Recorder::finish_call(vm::ThreadView& view, V result, int pops) {
  pop(view, pops);
  push(view, result);
  return next(view);
}

// The call of a functools.partial that is the same each time, as the call of its function. False: not known.
bool Recorder::open_partial(V* callee, std::vector<V>* args, PyObject** kwnames) {
  if (at(*callee).kind == Value::kObject) likely_same(*callee);
  if (!promote(*callee)) return false;
  V parts[3];
  const char* const names[] = {"func", "args", "keywords"};
  for (int i = 0; i < 3; i++) {
    const Attribute part = look_up(*callee, interned(names[i]));
    if (done_ || part.kind != Attribute::kValue || !promote(part.value)) return false;
    parts[i] = part.value;
  }
  PyObject* keywords = concrete(parts[2]);
  std::vector<V> all;
  if (!known_items(parts[1], &all) || !PyDict_CheckExact(keywords) || !guard_dict_unchanged(keywords)) return false;
  const size_t given = *kwnames != nullptr ? static_cast<size_t>(PyTuple_GET_SIZE(*kwnames)) : 0;
  const size_t positional = args->size() - given;
  all.insert(all.end(), args->begin(), args->begin() + static_cast<ptrdiff_t>(positional));
  // The partial's keywords, then the call's others; where both have one, the call's value counts.
  std::vector<PyObject*> merged;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(keywords, &position, &key, &value)) {
    size_t k = 0;
    while (k < given && PyUnicode_Compare(PyTuple_GET_ITEM(*kwnames, static_cast<Py_ssize_t>(k)), key) != 0) k++;
    merged.push_back(key);
    all.push_back(k < given ? (*args)[positional + k] : constant(value));
  }
  for (size_t k = 0; k < given; k++) {
    key = PyTuple_GET_ITEM(*kwnames, static_cast<Py_ssize_t>(k));
    if (PyDict_Contains(keywords, key) == 1) continue;
    merged.push_back(key);
    all.push_back((*args)[positional + k]);
  }
  *kwnames = merged.empty() ? nullptr : names_tuple(merged);
  *callee = parts[0];
  *args = std::move(all);
  return true;
}

// The call of a function compiled by torch.jit.script, as the Python function that it was compiled from, which runs the same operations. To what can be
// seen it stays one call: all guards inside leave to before it, and where that is not possible it is a residual call from the next recording
// on. Not followed: arguments that TorchScript would copy, graphs (its own differ from autograd's). False: not followed.
bool Recorder::enter_script(vm::ThreadView& view, V callee, const std::vector<V>& args, PyObject* kwnames, int pops) {
  PyObject* o = concrete(callee);
  if (strcmp(Py_TYPE(o)->tp_name, "ScriptFunction") != 0 || handling_.open || bridge_ == nullptr) return false;
  const std::pair<PyCodeObject*, int> place{top().code, current_unit_};
  if (lessons_.opaque_consumers.count(place) != 0 || !promote(callee)) return false;
  const bool graphs = bridge_->torch_state().grad_mode;
  for (V v : args) {
    PyObject* argument = concrete(v);
    if (is_tensor(argument) ? graphs && bridge_->describe(argument).requires_grad : !is_immutable(argument)) return false;
  }
  PyObject* source = PyObject_GetAttr(o, interned("_torchdynamo_inline"));
  if (source == nullptr) PyErr_Clear();
  if (source == nullptr || !PyFunction_Check(source)) {
    Py_XDECREF(source);
    return false;
  }
  const V function = constant(source);
  Py_DECREF(source);
  Consumer consumer;
  consumer.kind = Consumer::kScript;
  consumer.place = place;
  consumer.snapshot = snapshot();
  if (done_ || !enter_function(view, function, args, kwnames, pops, vm::Continuation::kPush)) return false;
  consumer.frame = view.frame;
  consumers_.push_back(std::move(consumer));
  return true;
}

HookResult Recorder::call(vm::ThreadView& view, V callee, std::vector<V> args, PyObject* kwnames, int pops) {
  PyObject* o = concrete(callee);
  // Bound methods are taken apart.
  for (;;) {
    if (at(callee).kind == Value::kObject && (PyFunction_Check(o) || PyCFunction_Check(o) || PyType_Check(o))) likely_same(callee);
    if (at(callee).kind == Value::kObject && PyMethod_Check(o)) {  // made anew by each look-up, so what it binds is looked at
      const bool stable = at(callee).stable;
      const int32_t site = at(callee).site;
      know_type(callee);
      V function = object(emit(IrOp::k_load_field, Type::kObject, {at(callee).ref}, offsetof(PyMethodObject, im_func)), PyMethod_GET_FUNCTION(o), false);
      V self = object(emit(IrOp::k_load_field, Type::kObject, {at(callee).ref}, offsetof(PyMethodObject, im_self)), PyMethod_GET_SELF(o), false);
      if (stable) became_stable(self, site);
      args.insert(args.begin(), self);
      callee = function;
      o = concrete(callee);
      continue;
    }
    if (at(callee).kind == Value::kMethod) {
      args.insert(args.begin(), at(callee).items[1]);
      callee = at(callee).items[0];
      o = concrete(callee);
      continue;
    }
    if (PyMethod_Check(o) && is_const(callee)) {
      args.insert(args.begin(), constant(PyMethod_GET_SELF(o)));
      callee = constant(PyMethod_GET_FUNCTION(o));
      o = concrete(callee);
      continue;
    }
    if (strcmp(Py_TYPE(o)->tp_name, "functools.partial") == 0 && open_partial(&callee, &args, &kwnames)) {
      o = concrete(callee);
      continue;
    }
    if (PyCFunction_Check(o) && is_const(callee) && PyCFunction_GET_SELF(o) != nullptr && !PyModule_Check(PyCFunction_GET_SELF(o)) &&
        !PyType_Check(PyCFunction_GET_SELF(o)) && is_tensor(PyCFunction_GET_SELF(o))) {
      give_up(Abort::k_unsupported_operation, "a tensor's bound method kept across iterations");
      return HookResult::kContinue;
    }
    break;
  }
  if (done_) return HookResult::kContinue;
  if (PyType_Check(o) && !args.empty() && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(o), &_PyWeakref_RefType)) note_mortal(concrete(args[0]));
  if (PyFunction_Check(o)) {
    if (const IrOp op = residual_op(o, args); op != IrOp::k_call) return residual_call(view, op, callee, args, kwnames, pops);
    if (kwnames == nullptr && args.size() == 1 && callable_name(o) == "python:inspect.signature")
      if (const V signature = signature_of(args[0]); signature != kNoValue) return finish_call(view, signature, pops);
    if (switches_evaluation(o)) return residual_call(view, IrOp::k_call, callee, args, kwnames, pops);
    if (is_opaque(o) && promote(callee)) {
      PyObject* shortcut = kwnames == nullptr && bridge_ != nullptr ? bridge_->shortcut(o) : nullptr;
      return residual_call(view, IrOp::k_call, shortcut != nullptr ? constant(shortcut) : callee, args, kwnames, pops);
    }
    if (V generator = make_generator(callee, args, kwnames); generator != kNoValue) return finish_call(view, generator, pops);
    if (done_) return HookResult::kContinue;
    if (kwnames == nullptr)
      if (const std::optional<HookResult> registered = register_tensor_hook(view, callee, args, pops)) return *registered;
    if (done_) return HookResult::kContinue;
    if (V bound = bind_default_args(callee, args, kwnames); bound != kNoValue) return finish_call(view, bound, pops);
    if (done_) return HookResult::kContinue;
    if (!follows(o)) return residual_call(view, IrOp::k_call, callee, args, kwnames, pops);
    if (enter_function(view, callee, args, kwnames, pops, vm::Continuation::kPush)) return HookResult::kReload;
    if (entered_error_) return HookResult::kError;
    if (done_) return HookResult::kContinue;
    return residual_call(view, IrOp::k_call, callee, args, kwnames, pops);
  }
  if (PyType_Check(o)) return call_type(view, callee, args, kwnames, pops);
  if (PyCFunction_Check(o) || Py_TYPE(o) == &PyMethodDescr_Type || Py_TYPE(o) == &PyWrapperDescr_Type || Py_TYPE(o) == &PyClassMethodDescr_Type ||
      strcmp(Py_TYPE(o)->tp_name, "method-wrapper") == 0)
    return call_c(view, callee, args, kwnames, pops);
  // An instance whose class has a Python __call__.
  PyTypeObject* type = Py_TYPE(o);
  PyObject* method = _PyType_Lookup(type, interned("__call__"));
  if (method != nullptr && PyFunction_Check(method)) {
    if (!follows(method)) return residual_call(view, IrOp::k_call, callee, args, kwnames, pops);
    if (at(callee).kind == Value::kObject && at(callee).stable) promote(callee);
    know_type(callee);
    guard_type_unchanged(type);
    if (done_) return HookResult::kContinue;
    std::vector<V> all{callee};
    all.insert(all.end(), args.begin(), args.end());
    if (enter_function(view, constant(method), all, kwnames, pops, vm::Continuation::kPush)) return HookResult::kReload;
    if (entered_error_) return HookResult::kError;
    if (done_) return HookResult::kContinue;
  }
  if (enter_script(view, callee, args, kwnames, pops)) return HookResult::kReload;
  if (entered_error_) return HookResult::kError;
  if (done_) return HookResult::kContinue;
  if (touches_torch(o, args)) return torch_call(view, callee, args, kwnames, pops);
  if (at(callee).kind == Value::kObject && is_cython(o)) likely_same(callee);
  if (args.empty() && kwnames == nullptr && is_caching(o))
    if (const std::optional<HookResult> called = call_cached(view, callee, pops)) return *called;
  if (PyWeakref_CheckRefExact(o)) {
    if (at(callee).kind == Value::kObject) know_type(callee);
    return residual_call(view, residual_op(o, args), callee, args, kwnames, pops);
  }
  const IrOp op = (is_caching(o) || is_cython(o)) && promote(callee) ? residual_op(o, args) : IrOp::k_call;
  return residual_call(view, op, callee, args, kwnames, pops);
}

HookResult Recorder::residual_call(vm::ThreadView& view, IrOp op, V callee, const std::vector<V>& args, PyObject* kwnames, int pops) {
  std::vector<V> all{callee};
  all.insert(all.end(), args.begin(), args.end());
  int64_t names = kwnames && PyTuple_GET_SIZE(kwnames) > 0 ? object_index(kwnames) : -1;
  bool ok = true;
  const bool known = op == IrOp::k_call_known && !args.empty();
  if (known) before_known_call(concrete(callee), args);
  V result = run_residual(op, all, names, &ok);
  if (!ok) return raised(view);
  if (known) after_known_call(concrete(callee), args);
  return finish_call(view, result, pops);
}

// Does this __init__ of a kind of dict, given so many arguments, leave it empty, by C code alone?
static bool leaves_empty(PyObject* init, size_t arguments) {
  static PyObject* const defaults = parts::qualified("collections", "defaultdict");
  if (init == vm::own_attribute(reinterpret_cast<PyTypeObject*>(defaults), "__init__")) return arguments <= 1;
  return arguments == 0 && (init == vm::own_attribute(&PyODict_Type, "__init__") || init == vm::own_attribute(&PyDict_Type, "__init__"));
}

HookResult Recorder::call_type(vm::ThreadView& view, V callee, std::vector<V> args, PyObject* kwnames, int pops) {
  PyObject* o = concrete(callee);
  auto* type = reinterpret_cast<PyTypeObject*>(o);
  const bool known = promote(callee);
  if (done_) return HookResult::kContinue;
  if (!known && type == &PySuper_Type) guard(IrOp::k_guard_is, {as_object(callee), const_ref(o)}, -1);  // what it finds depends on who calls it
  else if (!known) return residual_call(view, IrOp::k_call, callee, args, kwnames, pops);
  V result = kNoValue;
  // super() without arguments looks at the calling frame: say what it would find.
  if (type == &PySuper_Type) {
    ShadowFrame& frame = top();
    std::vector<V> parts = args;
    if (args.empty()) {
      V cls = kNoValue;
      for (int i = frame.code->co_nlocalsplus - frame.code->co_nfreevars; i < frame.code->co_nlocalsplus; i++) {
        PyObject* name = PyTuple_GET_ITEM(frame.code->co_localsplusnames, i);
        if (PyUnicode_CompareWithASCIIString(name, "__class__") != 0) continue;
        PyObject* content = PyCell_GET(concrete(frame.slots[i]));
        if (content != nullptr) cls = constant(content);  // the compiler's cell of a class statement is never rebound
      }
      if (cls == kNoValue || frame.code->co_argcount == 0) {
        give_up(Abort::k_frame_introspection, "super");
        return HookResult::kContinue;
      }
      V self = frame.slots[0];
      auto cell = cells_.find(self);
      if (at(self).kind == Value::kCell) self = at(self).items[0];
      else if (cell != cells_.end()) self = cell->second;
      if (concrete(self) == nullptr || PyCell_Check(concrete(self))) {
        give_up(Abort::k_frame_introspection, "super");
        return HookResult::kContinue;
      }
      parts = {cls, self};
    }
    if (parts.size() == 2 && kwnames == nullptr) {
      if (at(parts[1]).kind == Value::kObject) know_type(parts[1]);
      bool ok = true;
      std::vector<V> all{callee, parts[0], parts[1]};
      V object_value = run_residual(IrOp::k_call_pure, all, -1, &ok);
      if (!ok) return raised(view);
      at(object_value).items = {parts[1]};
      at(object_value).type_known = true;
      return finish_call(view, object_value, pops);
    }
  }
  if (kwnames == nullptr && args.size() == 1 && at(args[0]).kind == Value::kGenerator && (type == &PyTuple_Type || type == &PyList_Type)) {
    if (consume(view, type == &PyTuple_Type ? Consumer::kTuple : Consumer::kList, args[0], pops)) return HookResult::kReload;
    if (entered_error_) return HookResult::kError;
    if (done_) return HookResult::kContinue;
  }
  if (kwnames == nullptr && args.size() == 1 && peek(1) == args[0] && (type == &PySet_Type || type == &PyFrozenSet_Type || type == &PyDict_Type))
    if (std::optional<HookResult> entered = consume_operand(view, args[0], 1)) return *entered;
  // An argument whose __iter__ is in Python, as that of torch.nn.ModuleList: what it gives takes its place, and is no such argument, as iterators are not.
  if (kwnames == nullptr && args.size() == 1 && peek(1) == args[0] && (type == &PyEnum_Type || type == &PyList_Type || type == &PyTuple_Type))
    if (PyObject* const method = python_iter(Py_TYPE(concrete(args[0]))); method != nullptr && !PyIter_Check(concrete(args[0])) && !is_tensor(concrete(args[0]))) {
      know_type(args[0]);
      guard_type_unchanged(Py_TYPE(concrete(args[0])));
      if (!done_ && enter_function(view, constant(method), {args[0]}, nullptr, 0, vm::Continuation::kOperand)) return HookResult::kReload;
      if (entered_error_) return HookResult::kError;
      if (done_) return HookResult::kContinue;
    }
  if (kwnames == nullptr)
    if (const std::optional<HookResult> entered = call_in_python(view, o, args, pops)) return *entered;
  if (kwnames == nullptr && (!read_numbers(o, &args) || !iterate_tensors(type, &args))) return HookResult::kContinue;
  if (fold_builtin(o, args, kwnames, &result)) return finish_call(view, result, pops);
  if (done_) return HookResult::kContinue;
  PyObject* meta_call = _PyType_Lookup(Py_TYPE(o), interned("__call__"));
  static PyObject* type_call = vm::own_attribute(&PyType_Type, "__call__");
  PyObject* make = _PyType_Lookup(type, interned("__new__"));
  PyObject* init = _PyType_Lookup(type, interned("__init__"));
  // Made by a __new__ in Python, and not initialised.
  static PyObject* object_init = vm::own_attribute(&PyBaseObject_Type, "__init__");
  PyObject* maker = meta_call == type_call && make != nullptr && Py_TYPE(make) == &PyStaticMethod_Type ? PyObject_GetAttrString(make, "__func__") : nullptr;
  const V function = maker != nullptr ? constant(maker) : kNoValue;
  Py_XDECREF(maker);
  if (maker != nullptr && (init == object_init || never_returns(maker))) {
    guard_type_unchanged(type);
    if (done_) return HookResult::kContinue;
    std::vector<V> all{callee};
    all.insert(all.end(), args.begin(), args.end());
    if (enter_function(view, function, all, kwnames, pops, vm::Continuation::kPush)) return HookResult::kReload;
    if (entered_error_) return HookResult::kError;
    if (done_) return HookResult::kContinue;
  }
  if (touches_torch(o, args)) return torch_call(view, callee, args, kwnames, pops);

  if (kwnames == nullptr && PyExceptionClass_Check(o)) {
    const V made = make_exception(o, args);
    if (made != kNoValue) return finish_call(view, made, pops);
    if (done_) return HookResult::kContinue;
  }
  // A class whose instances are made by object.__new__, as a dict or as an exception is, and initialised in Python: the __init__ is followed.
  static PyObject* object_new = vm::own_attribute(&PyBaseObject_Type, "__new__");
  static PyObject* dict_new = vm::own_attribute(&PyDict_Type, "__new__");
  static PyObject* exception_new = vm::own_attribute(reinterpret_cast<PyTypeObject*>(PyExc_BaseException), "__new__");
  if (meta_call == type_call && (make == object_new || make == dict_new || (make == exception_new && kwnames == nullptr)) && init != nullptr && PyFunction_Check(init) && !(type->tp_flags & Py_TPFLAGS_IS_ABSTRACT)) {
    guard_type_unchanged(type);
    if (done_) return HookResult::kContinue;
    bool followed = !(reinterpret_cast<PyCodeObject*>(reinterpret_cast<PyFunctionObject*>(init)->func_code)->co_flags & kGeneratorFlags);
    std::vector<V> probe;
    V init_value = constant(init);
    std::vector<V> bound{callee};
    bound.insert(bound.end(), args.begin(), args.end());
    followed = followed && bind_arguments(init_value, bound, kwnames, &probe);
    if (done_) return HookResult::kContinue;
    if (followed) {
      guard_code_unchanged(init);
      snapshot();  // frames before the instance exists: an exit re-executes the whole call
      bool ok = true;
      std::vector<V> making{constant(make), callee};
      if (make == exception_new) making.insert(making.end(), args.begin(), args.end());
      V instance = is_generator_manager(type) ? virtual_instance(type) : run_residual(IrOp::k_call_new, making, -1, &ok);
      if (!ok || instance == kNoValue) return raised(view);
      at(instance).type_known = true;
      at(instance).fresh = true;
      at(instance).escaped = false;
      if (PyType_IsSubtype(type, &PyODict_Type)) contents_[instance] = {};
      bound[0] = instance;
      // The evaluator's layout for kInit: the operands are gone, the instance is on top.
      pop(view, pops);
      push(view, instance);
      if (enter_function(view, init_value, bound, kwnames, 0, vm::Continuation::kInit)) return HookResult::kReload;
      if (entered_error_) return HookResult::kError;
      give_up(Abort::k_shadow_mismatch, "__init__");
      PyErr_SetString(PyExc_SystemError, "dynvm: could not enter __init__");
      return HookResult::kError;
    }
  }
  if (kwnames == nullptr && meta_call == type_call && make == dict_new && leaves_empty(init, args.size())) {
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) guard_type_unchanged(type);
    std::vector<V> making{callee};
    making.insert(making.end(), args.begin(), args.end());
    bool ok = true;
    const V made = run_residual(IrOp::k_call_new, making, -1, &ok);
    if (!ok) return raised(view);
    at(made).type_known = at(made).fresh = true;
    at(made).escaped = false;
    contents_[made] = {};
    return finish_call(view, made, pops);
  }
  return residual_call(view, residual_op(o, args), callee, args, kwnames, pops);
}

HookResult Recorder::call_c(vm::ThreadView& view, V callee, std::vector<V> args, PyObject* kwnames, int pops) {
  PyObject* o = concrete(callee);
  if (!promote(callee)) {
    if (!done_ && looks_at_frames(o, args)) give_up(Abort::k_frame_introspection, callable_name(o));
    if (done_) return HookResult::kContinue;
    const bool of_tensor = PyCFunction_Check(o) && PyCFunction_GET_SELF(o) != nullptr && is_tensor(PyCFunction_GET_SELF(o));  // another object each time
    if (!of_tensor && touches_torch(o, args)) return torch_call(view, callee, args, kwnames, pops);
    return residual_call(view, IrOp::k_call, callee, args, kwnames, pops);
  }
  if (looks_at_frames(o, args)) {
    give_up(Abort::k_frame_introspection, callable_name(o));
    return HookResult::kContinue;
  }
  if (const std::string name = callable_name(o); name == "torch._C._cuda_setStream" || name.ends_with(".capture_begin")) {
    give_up(Abort::k_stream_changes);
    return HookResult::kContinue;
  }
  if (!may_follow(callable_name(o), args)) return HookResult::kContinue;
  V result = kNoValue;
  if (kwnames == nullptr && !args.empty() && at(args.back()).kind == Value::kGenerator) {
    const std::string name = callable_name(o);
    if (args.size() == 1 && (name == "builtins.all" || name == "builtins.any" || name == "builtins.sum")) {
      Consumer::Kind kind = name == "builtins.all" ? Consumer::kAll : name == "builtins.any" ? Consumer::kAny : Consumer::kSum;
      if (consume(view, kind, args[0], pops)) return HookResult::kReload;
      if (entered_error_) return HookResult::kError;
      if (done_) return HookResult::kContinue;
    }
    if (name == "builtins.next" && args.size() == 1 && pops == 3 && at(args[0]).position != Value::kOver) {
      if (resume(view, args[0], vm::Continuation::kAsked)) return HookResult::kReload;
      return entered_error_ ? HookResult::kError : HookResult::kContinue;
    }
    if (peek(1) == args.back() && takes_all_items(name, args.size()))
      if (std::optional<HookResult> entered = consume_operand(view, args.back(), 1)) return *entered;
  }
  if (call_followed(view, o, args, kwnames, pops)) return HookResult::kReload;
  if (entered_error_) return HookResult::kError;
  if (kwnames == nullptr)
    if (const std::optional<HookResult> entered = call_in_python(view, o, args, pops)) return *entered;
  if (done_) return HookResult::kContinue;
  PyObject* exception = kwnames == nullptr ? known_to_raise(callable_name(o), args) : nullptr;
  if (done_) return HookResult::kContinue;
  if (exception != nullptr) return raise(view, constant(exception));
  const bool asks = callable_name(o).find("_has_torch_function") != std::string::npos;
  if (PyObject* const own = kwnames == nullptr ? accessor(o) : nullptr) {
    if (enter_function(view, constant(own), args, nullptr, pops, vm::Continuation::kPush)) return HookResult::kReload;
    if (entered_error_) return HookResult::kError;
    if (done_) return HookResult::kContinue;
  }
  if (!asks && touches_torch(o, args) && overridden(callable_name(o), args)) return torch_call(view, callee, args, kwnames, pops);
  if (kwnames == nullptr && !read_numbers(o, &args)) return HookResult::kContinue;
  if (asks_moving_layout(o, args)) return residual_call(view, IrOp::k_call_known, callee, args, kwnames, pops);
  if (done_) return HookResult::kContinue;
  if (fold_builtin(o, args, kwnames, &result)) {
    if (result == kNoValue) return raised(view);
    return finish_call(view, result, pops);
  }
  if (done_) return HookResult::kContinue;
  if (kwnames == nullptr)
    if (const std::optional<HookResult> called = call_node_method(view, callable_name(o), args, pops)) return *called;
  if (kwnames == nullptr && is_function_apply(o)) return apply_function(view, callee, args, pops);
  if (kwnames == nullptr && callable_name(o) == "builtins.setattr" && sets_item(args)) return store_item(args[0], concrete(args[1]), args[2]) ? finish_call(view, constant(Py_None), pops) : raised(view);
  if (done_) return HookResult::kContinue;
  if (touches_torch(o, args)) return torch_call(view, callee, args, kwnames, pops);
  if (kwnames == nullptr && args.size() == 1 && PyGen_CheckExact(concrete(args[0])) && callable_name(o) == "builtins.next") return call_next(view, callee, args[0], pops);
  const IrOp op = residual_op(o, args);
  if (op == IrOp::k_call) return residual_call(view, op, callee, args, kwnames, pops);
  const bool pure = is_pure(callable_name(o)) && std::all_of(args.begin(), args.end(), [this](V v) { return is_immutable(concrete(v)); });
  return residual_call(view, pure ? IrOp::k_call_pure : op, callee, args, kwnames, pops);
}

// C functions that only lead back to Python code which can be followed: getattr of a property or through __getattr__, next of an
// iterator with a Python __next__, len of an object with a Python __len__, object.__getattribute__.
bool Recorder::call_followed(vm::ThreadView& view, PyObject* callee, const std::vector<V>& args, PyObject* kwnames, int pops) {
  if (kwnames != nullptr) return false;
  std::string name = callable_name(callee);
  if (name == "builtins.getattr" && args.size() == 2 && promote_name(args[1])) {
    Attribute a = look_up(args[0], concrete(args[1]));
    if (done_) return false;
    if (a.kind == Attribute::kPython) {
      PyObject* getattribute = _PyType_Lookup(Py_TYPE(concrete(args[0])), interned("__getattr__"));
      // A getter that may raise AttributeError for __getattr__ to catch needs the evaluator's own continuation.
      if (getattribute == nullptr || getattribute == a.function)
        return enter_function(view, constant(a.function), a.args, nullptr, pops, vm::Continuation::kPush);
    }
  }
  if (name == "object.__getattribute__" && args.size() == 2 && promote_name(args[1])) {
    PyTypeObject* type = Py_TYPE(concrete(args[0]));
    PyObject* property = _PyType_Lookup(type, concrete(args[1]));
    PyObject* getter = property != nullptr && Py_TYPE(property) == &PyProperty_Type ? PyObject_GetAttrString(property, "fget") : nullptr;
    PyErr_Clear();
    if (getter != nullptr && PyFunction_Check(getter)) {
      know_type(args[0]);
      guard_type_unchanged(type);
      const V function = constant(getter);
      Py_DECREF(getter);
      return !done_ && enter_function(view, function, {args[0]}, nullptr, pops, vm::Continuation::kPush);
    }
    Py_XDECREF(getter);
  }
  const bool length = name == "builtins.len";
  if (args.size() == 1 && (name == "builtins.next" || (length && !is_tensor(concrete(args[0]))))) {
    PyTypeObject* type = Py_TYPE(concrete(args[0]));
    PyObject* method = _PyType_Lookup(type, length ? interned("__len__") : next_name());
    if (method != nullptr && PyFunction_Check(method)) {
      know_type(args[0]);
      guard_type_unchanged(type);
      return !done_ && enter_function(view, constant(method), {args[0]}, nullptr, pops, length ? vm::Continuation::kSize : vm::Continuation::kPush);
    }
  }
  return false;
}

HookResult Recorder::record_calls(vm::ThreadView& view, Op op, int arg) {
  switch (op) {
    case Op::kCall: {
      PyObject* kwnames = vm::kwnames(vm::FrameView::code(view.frame), view.ip);
      auto& slots = top().slots;
      std::vector<V> args(slots.end() - arg, slots.end());
      V callee = peek(arg + 2), self = peek(arg + 1);
      if (callee == null_) std::swap(callee, self);
      if (self != null_) args.insert(args.begin(), self);
      return call(view, callee, std::move(args), kwnames, arg + 2);
    }
    case Op::kCallFunctionEx: {
      bool with_dict = arg & 1;
      V dict = with_dict ? peek(1) : null_;
      V tuple = peek(with_dict ? 2 : 1), callee = peek((with_dict ? 3 : 2) + (vm::kLoneCallableFirst ? 1 : 0));
      int pops = (with_dict ? 1 : 0) + 3;
      std::vector<V> args;
      if (known_items(tuple, &args)) {
        PyObject* kwnames = nullptr;
        bool fine = true;
        if (with_dict) {
          std::vector<PyObject*> keys;
          std::vector<V> values;
          fine = known_dict(dict, &keys, &values);
          if (fine && !keys.empty()) {
            kwnames = names_tuple(keys);
            args.insert(args.end(), values.begin(), values.end());
          }
        }
        if (done_) return HookResult::kContinue;
        if (fine) return call(view, callee, std::move(args), kwnames, pops);
      }
      if (done_) return HookResult::kContinue;
      bool ok = true;
      if (!PyTuple_CheckExact(concrete(tuple)) && Py_TYPE(concrete(tuple))->tp_iter != nullptr) {  // a tuple is made of it first
        const int depth = with_dict ? 2 : 1;
        if (std::optional<HookResult> entered = consume_operand(view, tuple, depth)) return *entered;
        V made = run_residual(IrOp::k_call, {constant(reinterpret_cast<PyObject*>(&PyTuple_Type)), tuple}, -1, &ok);
        if (!ok) return raised(view);
        replace_operand(view, depth, made);
        begin_step();  // the call is an instruction by itself now
        return record_calls(view, op, arg);
      }
      if (!PyTuple_CheckExact(concrete(tuple)) || (with_dict && !PyDict_CheckExact(concrete(dict)))) {
        give_up(Abort::k_opcode, "CallFunctionEx with other iterables");
        return HookResult::kContinue;
      }
      V result = run_residual(IrOp::k_call_ex, {callee, tuple, dict}, 0, &ok);
      if (!ok) return raised(view);
      return finish_call(view, result, pops);
    }
    case Op::kReturnValue: {
      if (in_consumer(view)) {
        if (consumers_.back().kind != Consumer::kScript) return consumer_end(view, false, false);
        drop_consumer();
      }
      if (in_callback(view.frame)) {
        callbacks_.back().result = peek(1);
        frames_.pop_back();
        return HookResult::kContinue;
      }
      if (frames_.size() == 1) {
        if (function_) finish();
        else give_up(Abort::k_loop_left);
        return HookResult::kContinue;
      }
      V result = peek(1);
      vm::Continuation k = top().continuation;
      if ((k == vm::Continuation::kBinary || k == vm::Continuation::kCompare || k == vm::Continuation::kOverride) && concrete(result) == Py_NotImplemented) {
        give_up(Abort::k_opcode, "NotImplemented");
        return HookResult::kContinue;
      }
      if (k == vm::Continuation::kAsked) return generator_ends(view);
      if (k == vm::Continuation::kContains) {
        if (!PyBool_Check(concrete(result))) {
          give_up(Abort::k_opcode, "__contains__ that gives no bool");
          return HookResult::kContinue;
        }
        vm::Callers callers(view);
        if (callers.next() && vm::oparg(callers.at) != 0) result = negation(result);
      }
      if (k == vm::Continuation::kSize) {
        const bool fits = PyLong_CheckExact(concrete(result)) && PyLong_AsSsize_t(concrete(result)) >= 0;
        PyErr_Clear();
        if (!fits) {
          give_up(Abort::k_opcode, "__len__ that gives no length");
          return HookResult::kContinue;
        }
        if (!is_const(result)) guard(IrOp::k_guard_false, {emit(IrOp::k_lt_int, Type::kBool, {as_int(result), emit(IrOp::k_const_int, Type::kInt, {}, 0)})}, ir::kTruth);
        if (done_) return HookResult::kContinue;
      }
      generator_returns();
      switch (k) {
        case vm::Continuation::kPush:
        case vm::Continuation::kSize:
        case vm::Continuation::kOverride:
        case vm::Continuation::kContains:
        case vm::Continuation::kNext: shadow_push(result); break;
        case vm::Continuation::kDiscard:
        case vm::Continuation::kInit: break;
        case vm::Continuation::kAttribute:
        case vm::Continuation::kReplace:
        case vm::Continuation::kIter:
        case vm::Continuation::kOperand:
          shadow_pop(1);
          shadow_push(result);
          break;
        case vm::Continuation::kMethodAttribute:
        case vm::Continuation::kReplaceMethod:
          shadow_pop(1);
          shadow_push(vm::kLoneCallableFirst ? result : null_);
          shadow_push(vm::kLoneCallableFirst ? null_ : result);
          break;
        case vm::Continuation::kForGenerator: shadow_pop(1); break;
        case vm::Continuation::kSendGenerator:
          shadow_pop(1);
          shadow_push(result);
          break;
        case vm::Continuation::kBinary:
        case vm::Continuation::kCompare:
          shadow_pop(2);
          shadow_push(result);
          break;
        default: give_up(Abort::k_shadow_mismatch, "continuation"); break;
      }
      return HookResult::kContinue;
    }
    case Op::kBeforeWith: {
      V manager = peek(1);
      PyTypeObject* type = Py_TYPE(concrete(manager));
      PyObject* enter = _PyType_Lookup(type, interned("__enter__"));
      PyObject* exit = _PyType_Lookup(type, interned("__exit__"));
      auto method = [](PyObject* o) { return o != nullptr && (PyFunction_Check(o) || Py_TYPE(o) == &PyMethodDescr_Type); };
      if (!method(enter) || !method(exit)) {
        give_up(Abort::k_opcode, "with on an unusual context manager");
        return HookResult::kContinue;
      }
      if (at(manager).kind == Value::kObject && at(manager).stable) promote(manager);
      know_type(manager);
      guard_type_unchanged(type);
      if (done_) return HookResult::kContinue;
      PyObject* bound = Py_TYPE(exit)->tp_descr_get(exit, concrete(manager), reinterpret_cast<PyObject*>(type));
      if (bound == nullptr) return raised(view);
      V exit_value;
      if (PyFunction_Check(exit)) {
        exit_value = virtual_object(Value::kMethod, {constant(exit), manager}, bound);
      } else {
        bool ok = true;
        exit_value = bound_method_of_c(manager, interned("__exit__"), constant(exit), manager, &ok);
        if (!ok) {
          Py_DECREF(bound);
          return raised(view);
        }
      }
      Py_DECREF(bound);
      if (PyFunction_Check(enter)) {
        V enter_value = constant(enter);
        // Check before the stack changes that the function will be entered.
        std::vector<V> probe;
        auto* code = reinterpret_cast<PyCodeObject*>(reinterpret_cast<PyFunctionObject*>(enter)->func_code);
        if ((code->co_flags & kGeneratorFlags) || switches_evaluation(enter) || !bind_arguments(enter_value, {manager}, nullptr, &probe)) {
          if (!done_) give_up(Abort::k_opcode, "with on an unusual __enter__");
          return HookResult::kContinue;
        }
        guard_code_unchanged(enter);
        snapshot();
        pop(view, 1);
        push(view, exit_value);
        if (enter_function(view, enter_value, {manager}, nullptr, 0, vm::Continuation::kPush)) return HookResult::kReload;
        if (!entered_error_) PyErr_SetString(PyExc_SystemError, "dynvm: could not enter __enter__");
        give_up(Abort::k_shadow_mismatch, "__enter__");
        return HookResult::kError;
      }
      bool ok = true;
      V entered = run_residual(residual_op(enter, {manager}), {constant(enter), manager}, -1, &ok);
      if (!ok) return raised(view);
      pop(view, 1);
      push(view, exit_value);
      push(view, entered);
      return next(view);
    }
    default: break;
  }
  give_up(Abort::k_opcode, std::string(vm::op_name(op)));
  return HookResult::kContinue;
}

}  // namespace dynvm::tracer
