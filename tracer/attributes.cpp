// Recording of attribute access: the look-up that CPython would do, folded under guards on types and dicts. See recorder.h.
//
// The order is that of object.__getattribute__: data descriptor of the class, instance dict, other class attribute, __getattr__. Each step
// that finds nothing is part of the proof too, so it is guarded (the dict's version, the types' versions).
#include <algorithm>
#include <cstring>

#include "tracer/recorder.h"
#include "vm/objects.h"

namespace dynvm::tracer {

using ir::kNoRef;
using ir::Ref;
using ir::Type;
using vm::HookResult;
using vm::Op;
using IrOp = ir::Op;

namespace {

// The `__getattribute__` that all ordinary classes have.
PyObject* object_getattribute() {
  static PyObject* found = vm::own_attribute(&PyBaseObject_Type, "__getattribute__");
  return found;
}
PyObject* module_getattribute() {
  static PyObject* found = vm::own_attribute(&PyModule_Type, "__getattribute__");
  return found;
}

}  // namespace

bool is_module(PyTypeObject* type) {
  static auto* module = [] {
    PyObject* torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch.nn.modules.module");
    PyObject* found = torch != nullptr ? PyObject_GetAttrString(torch, "Module") : nullptr;
    PyErr_Clear();
    return reinterpret_cast<PyTypeObject*>(found);
  }();
  return module != nullptr && PyType_IsSubtype(type, module);
}

// The __dict__ of an instance that is always the same one, where that is the name and d what its class has there; else kNoValue.
V Recorder::own_dict(V v, PyObject* name, PyObject* d) {
  PyObject* o = concrete(v);
  if (d == nullptr || strcmp(PyUnicode_AsUTF8(name), "__dict__") != 0 || !is_const(v) || Py_TYPE(d) != &PyGetSetDescr_Type) return kNoValue;
  PyObject* dict = vm::instance_dict(o);
  if (dict == nullptr) return kNoValue;
  guard_dict_of(o);
  return constant(dict);
}

// The value of an instance attribute: kNoValue when the instance has none of that name. *hidden: could not be decided.
V Recorder::instance_item(V object_value, PyObject* name, bool* hidden) {
  *hidden = false;
  PyObject* o = concrete(object_value);
  auto field = fields_.find({object_value, name});
  if (field != fields_.end()) return field->second;
  if (!vm::may_have_dict(o)) return kNoValue;
  if (at(object_value).fresh && (!at(object_value).escaped || at(object_value).escaped_at == barriers_)) return kNoValue;
  if (is_tensor(o) && !is_const(object_value)) {  // a tensor's own attribute never hides one of its class: docs/ARCHITECTURE.md, "Limits"
    PyObject* d = _PyType_Lookup(Py_TYPE(o), name);
    if (d != nullptr && (bridge_->describe(o).exact_type || Py_TYPE(d) == &PyMethodDescr_Type)) return kNoValue;
  }
  if (!is_const(object_value)) {
    *hidden = true;
    return kNoValue;
  }
  PyObject* dict = vm::instance_dict(o);
  if (dict == nullptr || !PyDict_CheckExact(dict)) {
    *hidden = true;
    return kNoValue;
  }
  guard_dict_of(o);
  // Instances that are made anew elsewhere are written as those were that went before them.
  auto changing = lessons_.changing_instances.find(Py_TYPE(o));
  const bool keeps_count = top().nlocals > 0 && top().slots[0] == object_value && vm::stores_to_first(top().code);
  if (((changing != lessons_.changing_instances.end() && changing->second > 1) || keeps_count) && !guarded_dicts_.count(dict)) lessons_.changing_dicts.insert(dict);
  V value = dict_item(dict, name);
  return value == null_ ? kNoValue : value;
}

// Does this function that Cython has compiled become a method, as no static one does?
static bool binds_as_function(PyObject* d, PyObject* object) {
  if (!is_cython(d) || Py_TYPE(d)->tp_descr_get == nullptr) return false;
  PyObject* bound = Py_TYPE(d)->tp_descr_get(d, object, reinterpret_cast<PyObject*>(Py_TYPE(object)));
  const bool binds = bound != nullptr && PyMethod_Check(bound) && PyMethod_GET_FUNCTION(bound) == d && PyMethod_GET_SELF(bound) == object;
  Py_XDECREF(bound);
  PyErr_Clear();
  return binds;
}

// A class attribute that is no data descriptor (or whose kind is known), bound to the object.
Recorder::Attribute Recorder::bind_class_attribute(V object_value, PyObject* d) {
  Attribute result;
  PyTypeObject* kind = Py_TYPE(d);
  if (PyFunction_Check(d) || kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || is_caching(d) || binds_as_function(d, concrete(object_value))) {
    result.kind = Attribute::kMethod;
    result.value = constant(d);
    return result;
  }
  if (kind == &PyStaticMethod_Type) {
    PyObject* function = PyObject_GetAttrString(d, "__func__");
    result.kind = Attribute::kValue;
    result.value = constant(function);
    Py_XDECREF(function);
    return result;
  }
  if (kind == &PyClassMethod_Type) {
    PyObject* function = PyObject_GetAttrString(d, "__func__");
    PyObject* o = concrete(object_value);
    PyObject* type = PyType_Check(o) ? o : reinterpret_cast<PyObject*>(Py_TYPE(o));
    if (function != nullptr && PyFunction_Check(function)) {
      PyObject* method = PyMethod_New(function, type);
      result.kind = Attribute::kValue;
      result.value = virtual_object(Value::kMethod, {constant(function), constant(type)}, method);
      Py_DECREF(method);
    }
    Py_XDECREF(function);
    return result;
  }
  if (kind == &PyClassMethodDescr_Type && is_const(object_value) && PyType_Check(concrete(object_value))) {
    PyObject* bound = kind->tp_descr_get(d, nullptr, concrete(object_value));
    if (bound == nullptr) PyErr_Clear();
    else result.kind = Attribute::kValue, result.value = constant(bound);
    Py_XDECREF(bound);
    return result;
  }
  if (kind->tp_descr_get == nullptr) {
    result.kind = Attribute::kValue;
    result.value = constant(d);
    return result;
  }
  return PyType_Check(concrete(object_value)) ? result : call_descriptor(d, object_value, constant(reinterpret_cast<PyObject*>(Py_TYPE(concrete(object_value)))));
}

// The __get__ in Python that the descriptor's class has, borrowed; null where it has none.
static PyObject* python_get(PyObject* descriptor) {
  PyObject* get = _PyType_Lookup(Py_TYPE(descriptor), interned("__get__"));
  return get != nullptr && PyFunction_Check(get) ? get : nullptr;
}

Recorder::Attribute Recorder::look_up(V v, PyObject* name) {
  Attribute result;
  PyObject* o = concrete(v);
  PyTypeObject* type = Py_TYPE(o);
  if (PyType_Check(o)) return look_up_type(v, name);
  if (signatures_.count(v) != 0 && PyUnicode_CompareWithASCIIString(name, "parameters") == 0) {
    PyObject* parameters = PyObject_GetAttr(o, name);
    if (parameters == nullptr) PyErr_Clear();
    else result.kind = Attribute::kValue, result.value = signature_constant(parameters, o, true);
    return result;
  }
  if (at(v).kind == Value::kMethod && PyMethod_Check(o))
    for (int part : {0, 1})
      if (PyUnicode_CompareWithASCIIString(name, part == 0 ? "__func__" : "__self__") == 0) {
        result.kind = Attribute::kValue;
        result.value = at(v).items[static_cast<size_t>(part)];
        return result;
      }
  if (type == &PySuper_Type) return look_up_super(v, name);
  if (PyModule_Check(o) || (is_module(type) && !at(v).fresh)) likely_same(v);  // Python's, torch's
  if (at(v).kind == Value::kObject && at(v).stable && !PyList_CheckExact(o)) promote(v);  // a list's methods are those of its class, and its function may be called again
  if (at(v).kind == Value::kObject || is_const(v)) know_type(v);
  if (done_) {
    result.kind = Attribute::kAborted;
    return result;
  }

  PyObject* getattribute = _PyType_Lookup(type, interned("__getattribute__"));
  bool ordinary = getattribute == object_getattribute() || type->tp_getattro == PyObject_GenericGetAttr;
  bool module = PyModule_Check(o) && (getattribute == module_getattribute() || type->tp_getattro == PyModule_Type.tp_getattro);
  if (!ordinary && !module) {
    if (getattribute != nullptr && PyFunction_Check(getattribute)) {
      guard_type_unchanged(type);
      result.kind = Attribute::kPython;
      result.function = getattribute;
      result.args = {v, constant(name)};
    }
    return result;
  }
  guard_type_unchanged(type);
  PyObject* d = _PyType_Lookup(type, name);
  if (d != nullptr && is_data_descriptor(d)) {
    if (Py_TYPE(d) == &PyProperty_Type) {
      PyObject* getter = PyObject_GetAttrString(d, "fget");
      if (getter != nullptr && PyFunction_Check(getter)) {
        constant(getter);  // keeps it
        result.kind = Attribute::kPython;
        result.function = getter;
        result.args = {v};
      }
      Py_XDECREF(getter);
      return result;
    }
    if (is_tensor(o)) return look_up_tensor(v, name);
    Py_ssize_t offset = vm::field_offset(d);
    if (offset >= 0) {
      auto field = fields_.find({v, name});
      if (field != fields_.end()) {
        result.kind = Attribute::kValue;
        result.value = field->second;
        return result;
      }
      PyObject* value = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + offset);
      if (value == nullptr) return result;
      Ref ref = emit(IrOp::k_load_field, Type::kObject, {as_object(v)}, offset);
      guard(IrOp::k_guard_bound, {ref});
      result.kind = Attribute::kValue;
      result.value = object(ref, value, false);
      if (is_const(v)) likely_same(result.value);
      fields_[{v, name}] = result.value;
      return result;
    }
    if (at(v).fresh && !at(v).escaped && strcmp(PyUnicode_AsUTF8(name), "__dict__") == 0 && Py_TYPE(d) == &PyGetSetDescr_Type) {
      bool ok = true;
      result.value = run_residual(IrOp::k_get_attr_known, {v, constant(name)}, 0, &ok);
      if (!ok) PyErr_Clear();
      if (ok) result.kind = Attribute::kValue, dict_of_[result.value] = v;
      return result;
    }
    if (const V dict = own_dict(v, name, d); dict != kNoValue) {
      result.kind = Attribute::kValue;
      result.value = dict;
      return result;
    }
    if (strcmp(PyUnicode_AsUTF8(name), "__class__") == 0 && vm::is_c_descriptor(d)) {
      result.kind = Attribute::kValue;
      result.value = constant(reinterpret_cast<PyObject*>(type));
      return result;
    }
    if (const V part = part_of_code(v, name); part != kNoValue) {
      result.kind = Attribute::kValue;
      result.value = part;
      return result;
    }
    if (!vm::is_c_descriptor(d)) return call_descriptor(d, v, constant(reinterpret_cast<PyObject*>(type)));
    result.kind = Attribute::kKnown;
    return result;
  }

  bool hidden = false;
  V own = kNoValue;
  if (module) {
    if (!promote(v)) return result;
    own = dict_item(PyModule_GetDict(o), name);
    if (own == null_) own = kNoValue;
  } else {
    own = instance_item(v, name, &hidden);
  }
  if (done_) {
    result.kind = Attribute::kAborted;
    return result;
  }
  if (own != kNoValue) {
    result.kind = Attribute::kValue;
    result.value = own;
    return result;
  }
  if (hidden) {
    // An instance that differs from run to run: whether it has an attribute of its own is only known by looking.
    PyObject* own_dict = vm::instance_dict(o);
    bool has_own = own_dict != nullptr && PyDict_GetItemWithError(own_dict, name) != nullptr;
    PyErr_Clear();
    if (!has_own && d != nullptr && PyFunction_Check(d)) {
      // A method: the bound method that the look-up gives must be of this function.
      Ref bound = emit(IrOp::k_get_attr_known, Type::kObject, {as_object(v), const_ref(name)}, 0, true);
      guard(IrOp::k_guard_type, {bound, const_ref(reinterpret_cast<PyObject*>(&PyMethod_Type))});
      guard(IrOp::k_guard_is, {emit(IrOp::k_load_field, Type::kObject, {bound}, offsetof(PyMethodObject, im_func)), const_ref(d)}, -1);
      return bind_class_attribute(v, d);
    }
    if (!has_own && d != nullptr && python_get(d) != nullptr && own_dict != nullptr) {
      const Ref own_items = emit(IrOp::k_get_attr_known, Type::kObject, {as_object(v), const_ref(interned("__dict__"))}, 0, true);
      guard(IrOp::k_guard_is, {emit(IrOp::k_dict_get, Type::kObject, {own_items, const_ref(name)}), const_ref(nullptr)}, -1);
      return call_descriptor(d, v, constant(reinterpret_cast<PyObject*>(type)));
    }
    PyObject* fallback = _PyType_Lookup(type, interned("__getattr__"));
    bool plain = has_own || (fallback == nullptr && (d == nullptr || vm::is_c_descriptor(d) || Py_TYPE(d)->tp_descr_get == nullptr));
    result.kind = plain ? Attribute::kKnown : Attribute::kResidual;
    return result;
  }
  if (d != nullptr) return bind_class_attribute(v, d);
  PyObject* fallback = _PyType_Lookup(type, interned("__getattr__"));
  if (fallback != nullptr && PyFunction_Check(fallback)) {
    result.kind = Attribute::kPython;
    result.function = fallback;
    result.args = {v, constant(name)};
    return result;
  }
  if (fallback == nullptr && !(module && dict_item(PyModule_GetDict(o), interned("__getattr__")) != null_)) result.kind = Attribute::kMissing;
  return result;
}

// The code of a function, and what is read of code objects, which do not change: names of variables, numbers of arguments.
V Recorder::part_of_code(V v, PyObject* name) {
  PyObject* o = concrete(v);
  if (PyFunction_Check(o) && strcmp(PyUnicode_AsUTF8(name), "__code__") == 0 && promote(v)) {
    guard_code_unchanged(o);
    return constant(PyFunction_GET_CODE(o));
  }
  if (!PyCode_Check(o) || !promote(v)) return kNoValue;
  PyObject* part = PyObject_GetAttr(o, name);
  PyErr_Clear();
  const V known = part != nullptr && is_immutable(part) ? constant(part) : kNoValue;
  Py_XDECREF(part);
  return known;
}

Recorder::Attribute Recorder::look_up_type(V v, PyObject* name) {
  Attribute result;
  PyObject* o = concrete(v);
  auto* type = reinterpret_cast<PyTypeObject*>(o);
  PyTypeObject* meta = Py_TYPE(o);
  if (!promote(v)) return result;
  // A metaclass with a __getattr__ of its own, as enumerations have on 3.11, looks there last.
  static PyObject* type_getattribute = vm::own_attribute(&PyType_Type, "__getattribute__");
  PyObject* fallback = _PyType_Lookup(meta, interned("__getattr__"));
  if (meta->tp_getattro != PyType_Type.tp_getattro &&
      (fallback == nullptr || !PyFunction_Check(fallback) || _PyType_Lookup(meta, interned("__getattribute__")) != type_getattribute))
    return result;
  PyObject* m = _PyType_Lookup(meta, name);
  if (m != nullptr && is_data_descriptor(m)) {
    static PyObject* type_name = interned("__name__");
    if (PyUnicode_Compare(name, type_name) == 0) {
      guard_type_unchanged(type);
      PyObject* text = PyObject_GetAttr(o, name);
      result.kind = Attribute::kValue;
      result.value = constant(text);
      Py_XDECREF(text);
      return result;
    }
    result.kind = vm::is_c_descriptor(m) ? Attribute::kKnown : Attribute::kResidual;
    return result;
  }
  guard_type_unchanged(type);
  if (meta != &PyType_Type) guard_type_unchanged(meta);
  PyObject* d = _PyType_Lookup(type, name);
  if (d != nullptr && python_get(d) != nullptr) return call_descriptor(d, constant(Py_None), v);
  if (d != nullptr) {
    if (PyFunction_Check(d) || Py_TYPE(d) == &PyMethodDescr_Type || Py_TYPE(d) == &PyWrapperDescr_Type) {
      result.kind = Attribute::kValue;
      result.value = constant(d);
      return result;
    }
    if (Py_TYPE(d)->tp_descr_get == nullptr || Py_TYPE(d) == &PyStaticMethod_Type || Py_TYPE(d) == &PyClassMethod_Type)
      return bind_class_attribute(v, d);
    if (vm::is_c_descriptor(d) || Py_TYPE(d) == &PyProperty_Type) {
      result.kind = Attribute::kKnown;
      return result;
    }
    return result;
  }
  if (m != nullptr) {
    if (Py_TYPE(m) == &PyMethodDescr_Type || PyFunction_Check(m)) {
      result.kind = Attribute::kMethod;
      result.value = constant(m);
    }
    return result;
  }
  if (fallback == nullptr) {
    result.kind = Attribute::kMissing;
  } else if (PyFunction_Check(fallback)) {
    result.kind = Attribute::kPython;
    result.function = fallback;
    result.args = {v, constant(name)};
  }
  return result;
}

// The attribute that a descriptor with a Python __get__ gives for the instance, or None, of that class; kResidual where it has no such __get__.
Recorder::Attribute Recorder::call_descriptor(PyObject* descriptor, V instance, V owner) {
  Attribute result;
  PyTypeObject* kind = Py_TYPE(descriptor);
  PyObject* get = python_get(descriptor);
  if (get == nullptr) return result;
  const V own = constant(descriptor);
  know_type(own);
  guard_type_unchanged(kind);
  result.kind = done_ ? Attribute::kAborted : Attribute::kPython;
  result.function = get;
  result.args = {own, instance, owner};
  return result;
}

Recorder::Attribute Recorder::look_up_super(V v, PyObject* name) {
  Attribute result;
  PyTypeObject *type = nullptr, *self_type = nullptr;
  PyObject* self = nullptr;
  if (!vm::super_parts(concrete(v), &type, &self, &self_type) || at(v).items.size() != 1) return result;
  V self_value = at(v).items[0];
  if (strcmp(PyUnicode_AsUTF8(name), "__class__") == 0) return result;
  if (self == reinterpret_cast<PyObject*>(self_type) && !promote(self_value)) return result;  // of a class method: what is found depends on the class
  PyObject* mro = self_type->tp_mro;
  Py_ssize_t i = 0, n = PyTuple_GET_SIZE(mro);
  while (i < n && PyTuple_GET_ITEM(mro, i) != reinterpret_cast<PyObject*>(type)) i++;
  PyObject* d = nullptr;
  guard_type_unchanged(self_type);
  for (i++; i < n && d == nullptr; i++) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    d = vm::own_attribute(base, name);
  }
  if (d == nullptr) return result;
  if (PyFunction_Check(d) || Py_TYPE(d) == &PyMethodDescr_Type || Py_TYPE(d) == &PyWrapperDescr_Type) {
    if (PyType_Check(concrete(self_value)) && reinterpret_cast<PyTypeObject*>(concrete(self_value)) == self_type) {
      result.kind = Attribute::kValue;
      result.value = constant(d);
      return result;
    }
    result.kind = Attribute::kMethod;
    result.value = constant(d);
    result.args = {self_value};
    return result;
  }
  if (Py_TYPE(d) == &PyProperty_Type) {
    PyObject* getter = PyObject_GetAttrString(d, "fget");
    if (getter != nullptr && PyFunction_Check(getter)) {
      constant(getter);
      result.kind = Attribute::kPython;
      result.function = getter;
      result.args = {self_value};
    }
    Py_XDECREF(getter);
    return result;
  }
  return bind_class_attribute(self_value, d);
}

// An attribute that is a method of C bound to `self`: calls of it are calls of that, and its object is made where somebody needs it.
V Recorder::bound_method_of_c(V object_value, PyObject* name, V method, V self, bool* ok) {
  PyObject* bound = PyObject_GetAttr(concrete(object_value), name);
  *ok = bound != nullptr;
  if (!*ok) return kNoValue;
  constant(name);  // keeps it
  const V result = virtual_object(Value::kMethod, {method, self}, bound);
  at(result).keys = {name};
  at(result).source = object_value;
  Py_DECREF(bound);
  return result;
}

HookResult Recorder::load_attribute(vm::ThreadView& view, PyObject* name, bool method) {
  V v = peek(1);
  if (at(v).kind == Value::kTensor && at(v).cls == nullptr && !method && PyUnicode_CompareWithASCIIString(name, "data") == 0) {
    // Of a tensor that the trace has made. What an exit makes of it shares the version counter, which only a write through it could show.
    PyObject* detach = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(concrete(v))), "detach");
    if (detach == nullptr) return raised(view);
    const V function = constant(detach);
    Py_DECREF(detach);
    const HookResult outcome = torch_call(view, function, {v}, nullptr, 1);
    if (!done_ && outcome == HookResult::kReload) aten_->note_data(concrete(peek(1)));
    return outcome;
  }
  if (at(v).kind == Value::kContext) {
    const V value = context_attribute(v, name);
    if (done_) return HookResult::kContinue;
    if (value != kNoValue) {
      pop(view, 1);
      push_callable(view, value, method);
      return next(view);
    }
  }
  Attribute a = look_up(v, name);
  if (done_) return HookResult::kContinue;
  switch (a.kind) {
    case Attribute::kValue:
      pop(view, 1);
      push_callable(view, a.value, method);
      return next(view);
    case Attribute::kMethod: {
      V self = a.args.empty() ? v : a.args[0];
      if (method) {
        pop(view, 1);
        push(view, a.value);
        push(view, self);
        return next(view);
      }
      PyObject* function = concrete(a.value);
      PyObject* bound = Py_TYPE(function)->tp_descr_get(function, concrete(self), reinterpret_cast<PyObject*>(Py_TYPE(concrete(self))));
      if (bound == nullptr) return raised(view);
      V result;
      if (PyFunction_Check(function)) {
        result = virtual_object(Value::kMethod, {a.value, self}, bound);
        Py_DECREF(bound);
      } else {
        Py_DECREF(bound);
        bool ok = true;
        result = bound_method_of_c(v, name, a.value, self, &ok);
        if (!ok) return raised(view);
      }
      pop(view, 1);
      push(view, result);
      return next(view);
    }
    case Attribute::kPython: {
      // The object stays on the stack for the continuation.
      V function = constant(a.function);
      // A getter's AttributeError makes CPython try __getattr__, where there is one; __getattr__'s own is final.
      PyObject* fallback = _PyType_Lookup(Py_TYPE(concrete(v)), interned("__getattr__"));
      bool retries = fallback != nullptr && fallback != a.function;
      vm::Continuation k = retries ? (method ? vm::Continuation::kMethodAttribute : vm::Continuation::kAttribute)
                                   : (method ? vm::Continuation::kReplaceMethod : vm::Continuation::kReplace);
      if (enter_function(view, function, a.args, nullptr, 0, k)) return HookResult::kReload;
      if (entered_error_) return HookResult::kError;
      if (done_) return HookResult::kContinue;
      break;
    }
    case Attribute::kMissing:
      return raise(view, constant(PyExc_AttributeError));
    case Attribute::kAborted: return HookResult::kContinue;
    default: break;
  }
  if (is_tensor(concrete(v)) && a.kind != Attribute::kKnown) a = look_up_tensor(v, name);
  if (done_) return HookResult::kContinue;
  if (a.kind == Attribute::kValue) {
    pop(view, 1);
    push_callable(view, a.value, method);
    return next(view);
  }
  if (a.kind == Attribute::kGetter) {
    PyObject* descriptor = _PyType_Lookup(Py_TYPE(concrete(v)), name);
    PyObject* get = descriptor != nullptr ? PyObject_GetAttrString(descriptor, "__get__") : nullptr;
    if (get == nullptr) return raised(view);
    const V getter = constant(get);
    Py_DECREF(get);
    bool ok = true;
    V result = run_residual(IrOp::k_call_known, {getter, v}, -1, &ok);
    if (!ok) return raised(view);
    if (PyUnicode_CompareWithASCIIString(name, "data") == 0) aten_->note_data(concrete(result));
    pop(view, 1);
    push_callable(view, result, method);
    return next(view);
  }
  if (is_tensor(concrete(v))) return torch_operator(view, IrOp::k_get_attr, {v, constant(name)}, method ? 1 : 0, 1, "tensor attribute");
  if (a.kind == Attribute::kKnown && is_const(v) && is_immutable(concrete(v)) && !PyType_Check(concrete(v))) {
    PyObject* value = PyObject_GetAttr(concrete(v), name);
    if (value == nullptr) return raised(view);
    V folded = constant(value);
    Py_DECREF(value);
    pop(view, 1);
    push_callable(view, folded, method);
    return next(view);
  }
  bool ok = true;
  V result = run_residual(a.kind == Attribute::kKnown ? IrOp::k_get_attr_known : IrOp::k_get_attr, {v, constant(name)}, 0, &ok);
  if (!ok) return raised(view);
  pop(view, 1);
  push_callable(view, result, method);
  return next(view);
}

// super().name: the super object is made in the trace only where somebody needs it.
HookResult Recorder::load_super_attribute(vm::ThreadView& view, int arg) {
  PyObject* name = PyTuple_GET_ITEM(top().code->co_names, arg >> 2);
  const bool method = (arg & 1) != 0;
  V super = peek(3), cls = peek(2), self = peek(1);
  if (concrete(super) != reinterpret_cast<PyObject*>(&PySuper_Type) || !promote(super) || !promote(cls)) {
    if (!done_) give_up(Abort::k_opcode, "LoadSuperAttr");
    return HookResult::kContinue;
  }
  if (at(self).kind == Value::kObject) know_type(self);
  if (done_) return HookResult::kContinue;
  bool ok = true;
  V object_value = run_residual(IrOp::k_call_pure, {super, cls, self}, -1, &ok);
  if (!ok) return raised(view);
  at(object_value).items = {self};
  at(object_value).type_known = true;
  Attribute a = look_up_super(object_value, name);
  if (done_) return HookResult::kContinue;
  V value = kNoValue;
  if (a.kind == Attribute::kMethod) {
    V owner = a.args.empty() ? self : a.args[0];
    if (method) {
      pop(view, 3);
      push(view, a.value);
      push(view, owner);
      return next(view);
    }
    PyObject* function = concrete(a.value);
    if (PyFunction_Check(function)) {
      PyObject* bound = PyMethod_New(function, concrete(owner));
      if (bound == nullptr) return raised(view);
      value = virtual_object(Value::kMethod, {a.value, owner}, bound);
      Py_DECREF(bound);
    }
  } else if (a.kind == Attribute::kValue) {
    value = a.value;
  }
  if (value == kNoValue) {
    value = run_residual(a.kind == Attribute::kKnown ? IrOp::k_get_attr_known : IrOp::k_get_attr, {object_value, constant(name)}, 0, &ok);
    if (!ok) return raised(view);
  }
  pop(view, 3);
  push_callable(view, value, method);
  return next(view);
}

// __dict__.get(name) of an instance that the trace has made and nobody else has; null_: it has no such attribute, kNoValue: not known.
V Recorder::known_attribute(V dict, PyObject* name) {
  const auto of = dict_of_.find(dict);
  if (of == dict_of_.end() || at(of->second).escaped) return kNoValue;
  PyObject* d = _PyType_Lookup(Py_TYPE(concrete(of->second)), name);
  if (d != nullptr && is_data_descriptor(d)) return kNoValue;
  for (const auto& [place, value] : fields_)
    if (place.first == of->second && PyUnicode_Compare(place.second, name) == 0) return value;
  return null_;
}

// The items of a kind of dict that this trace has made and that nobody else has, or can have changed yet; null: they are not known.
const Recorder::Contents* Recorder::known_contents(V v) {
  const auto found = contents_.find(v);
  return found != contents_.end() && (!at(v).escaped || at(v).escaped_at == barriers_) ? &found->second : nullptr;
}

HookResult Recorder::store_attribute(vm::ThreadView& view, PyObject* name) {
  V object_value = peek(1), value = peek(2);
  PyObject* o = concrete(object_value);
  PyTypeObject* type = Py_TYPE(o);
  if (is_tensor(o)) {
    const char* text = PyUnicode_AsUTF8(name);
    PyObject* d = _PyType_Lookup(type, name);
    if (d != nullptr && vm::is_c_descriptor(d) && overridden("Tensor.__set__", {object_value})) {
      if (torch_state_.function_modes != 0) return torch_operator(view, IrOp::k_set_attr, {object_value, constant(name), value}, 0, 2, "Tensor.__set__", false);
      give_up(Abort::k_tensor_subclass, std::string("store to tensor attribute ") + text);
      return HookResult::kContinue;
    }
    if (strcmp(text, "grad") == 0) {
      as_tensor(object_value);
      if (done_) return HookResult::kContinue;
      if (bridge_->set_grad(o, concrete(value)) < 0) return raised(view);
      set_grad(object_value, value);
      pop(view, 2);
      return next(view);
    }
    if (strcmp(text, "data") == 0 && takes_data(object_value, value)) {
      const Ref own = as_tensor(object_value);
      bool ok = true;
      run_residual(IrOp::k_set_attr_known, {object_value, constant(name), value}, 0, &ok);
      if (!ok) return raised(view);
      note_counter(o, own);
      replaced_.insert(aten_->tensor_id(o));
      pop(view, 2);
      return next(view);
    }
    if (done_) return HookResult::kContinue;
    if (d != nullptr && (vm::is_c_descriptor(d) || bridge_->describe(o).exact_type)) {
      give_up(Abort::k_unsupported_operation, std::string("store to tensor attribute ") + text);
      return HookResult::kContinue;
    }
  }
  if (at(object_value).kind == Value::kContext) {
    bool error = false;
    if (!store_context_attribute(object_value, name, value, &error)) return error ? raised(view) : HookResult::kContinue;
    pop(view, 2);
    return next(view);
  }
  if (PyType_Check(o) || PyModule_Check(o)) {
    PyObject* dict = PyModule_Check(o) ? PyModule_GetDict(o) : nullptr;
    if (dict != nullptr) dict_written(dict);
    return residual(view, IrOp::k_set_attr, {object_value, constant(name), value}, 0, 2, false);
  }
  if (at(object_value).kind == Value::kObject && at(object_value).stable) promote(object_value);
  know_type(object_value);
  guard_type_unchanged(type);
  if (done_) return HookResult::kContinue;
  PyObject* setattr = _PyType_Lookup(type, interned("__setattr__"));
  if (setattr != object_setattr()) {
    if (setattr != nullptr && PyFunction_Check(setattr)) {
      std::vector<V> args{object_value, constant(name), value};
      if (enter_function(view, constant(setattr), args, nullptr, 2, vm::Continuation::kDiscard)) return HookResult::kReload;
      if (done_) return HookResult::kContinue;
    }
    return residual(view, IrOp::k_set_attr, {object_value, constant(name), value}, 0, 2, false);
  }
  PyObject* d = _PyType_Lookup(type, name);
  if (d != nullptr && is_data_descriptor(d) && vm::slot_offset(d) < 0) {
    if (Py_TYPE(d) == &PyProperty_Type) {
      PyObject* setter = PyObject_GetAttrString(d, "fset");
      Py_XDECREF(setter);
      if (setter != nullptr && PyFunction_Check(setter)) {
        if (enter_function(view, constant(setter), {object_value, value}, nullptr, 2, vm::Continuation::kDiscard)) return HookResult::kReload;
        if (done_) return HookResult::kContinue;
      }
    }
    return residual(view, IrOp::k_set_attr, {object_value, constant(name), value}, 0, 2, false);
  }
  if (!store_item(object_value, name, value)) return raised(view);
  pop(view, 2);
  return next(view);
}

// Puts the value into the instance, whose class has nothing to say to that. False: Python raised.
bool Recorder::store_item(V object_value, PyObject* name, V value) {
  before_store(object_value, name, value);
  bool ok = true;
  if ((at(object_value).cls != nullptr && at(object_value).object == kNoRef) || at(object_value).kind == Value::kInstance) {  // its object has not been made
    if (PyObject_GenericSetAttr(concrete(object_value), name, concrete(value)) < 0) return false;
    std::vector<PyObject*>& keys = at(object_value).keys;
    const auto key = std::find(keys.begin(), keys.end(), name);
    if (key != keys.end()) {
      at(object_value).items[static_cast<size_t>(key - keys.begin())] = value;
    } else {
      keys.push_back(name);
      at(object_value).items.push_back(value);
    }
    changed(object_value);
  } else {
    run_residual(IrOp::k_set_attr_known, {object_value, constant(name), value}, 0, &ok);
  }
  if (ok) after_store(object_value, name, value);
  return ok;
}

HookResult Recorder::delete_attribute(vm::ThreadView& view, PyObject* name) {
  static PyObject* const object_delattr = vm::own_attribute(&PyBaseObject_Type, "__delattr__");
  const V v = peek(1);
  // One that the trace has given an instance of its own, whose class has nothing to say to that.
  const bool own = is_own(v) && fields_.count({v, name}) != 0 && _PyType_Lookup(Py_TYPE(concrete(v)), interned("__delattr__")) == object_delattr;
  PyObject* dict = !own && vm::may_have_dict(concrete(v)) ? vm::instance_dict(concrete(v)) : nullptr;
  if (dict != nullptr) dict_written(dict, Py_TYPE(concrete(v)));
  fields_.erase({v, name});
  if (!own || at(v).kind != Value::kInstance) return residual(view, own ? IrOp::k_set_attr_known : IrOp::k_set_attr, {v, constant(name), null_}, 0, 1, false);
  if (PyObject_GenericSetAttr(concrete(v), name, nullptr) < 0) return raised(view);
  Value& instance = at(v);
  const auto place = std::find(instance.keys.begin(), instance.keys.end(), name) - instance.keys.begin();
  instance.keys.erase(instance.keys.begin() + place);
  instance.items.erase(instance.items.begin() + place);
  changed(v);
  pop(view, 1);
  return next(view);
}

// setattr(object, name, value) where it does no more than that.
bool Recorder::sets_item(const std::vector<V>& args) {
  if (args.size() != 3 || at(args[0]).kind == Value::kContext || !PyUnicode_CheckExact(concrete(args[1])) || !PyUnicode_CHECK_INTERNED(concrete(args[1]))) return false;
  PyObject* o = concrete(args[0]);
  PyTypeObject* type = Py_TYPE(o);
  if (PyType_Check(o) || PyModule_Check(o) || is_tensor(o) || _PyType_Lookup(type, interned("__setattr__")) != object_setattr() || !promote_name(args[1])) return false;
  PyObject* d = _PyType_Lookup(type, concrete(args[1]));
  if (d != nullptr && is_data_descriptor(d)) return false;
  if (at(args[0]).kind == Value::kObject && at(args[0]).stable) promote(args[0]);
  know_type(args[0]);
  guard_type_unchanged(type);
  return !done_;
}

HookResult Recorder::record_attributes(vm::ThreadView& view, Op op, int arg) {
  if (op == Op::kLoadSuperAttr) return load_super_attribute(view, arg);
  PyObject* name = PyTuple_GET_ITEM(top().code->co_names, arg);
  switch (op) {
    case Op::kLoadAttr: return load_attribute(view, name, false);
    case Op::kLoadMethod: return load_attribute(view, name, true);
    case Op::kStoreAttr: return store_attribute(view, name);
    case Op::kDeleteAttr: return delete_attribute(view, name);
    default: break;
  }
  give_up(Abort::k_opcode, std::string(vm::op_name(op)));
  return HookResult::kContinue;
}

}  // namespace dynvm::tracer
