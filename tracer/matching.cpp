// Recording of match statements. See recorder.h. What a pattern decides by is known under guards: types, lengths, keys, attributes that a class
// promises; so each case of a match is either taken or not at no cost in the trace.
#include "tracer/recorder.h"

namespace dynvm::tracer {

using vm::HookResult;
using vm::Op;
using IrOp = ir::Op;

// As it was when the first one was asked for, whatever builtins a frame has: what is followed is CPython's own.
PyObject* Recorder::builtin(const char* name) {
  static PyObject* const all = PyDict_Copy(PyModule_GetDict(PyImport_AddModule("builtins")));
  return PyDict_GetItemString(all, name);
}

// What a class pattern reads of the subject; constant None: the subject does not match. kNoValue: not followed.
V Recorder::match_class(V subject, V type, Py_ssize_t positional, PyObject* names) {
  V is_instance = kNoValue;
  if (!PyType_Check(concrete(type)) || !promote(type)) return kNoValue;
  if (!fold_builtin(builtin("isinstance"), {subject, type}, nullptr, &is_instance) || done_ || !is_const(is_instance)) return kNoValue;
  if (concrete(is_instance) != Py_True) return constant(Py_None);
  auto* cls = reinterpret_cast<PyTypeObject*>(concrete(type));
  std::vector<V> items;
  std::vector<PyObject*> attributes;
  if (positional > 0) {
    guard_type_unchanged(cls);
    PyObject* own = _PyType_Lookup(cls, interned("__match_args__"));
    if (own == nullptr) {
      if (positional != 1 || !PyType_HasFeature(cls, _Py_TPFLAGS_MATCH_SELF)) return kNoValue;
      items.push_back(subject);
    } else {
      if (!PyTuple_CheckExact(own) || PyTuple_GET_SIZE(own) < positional) return kNoValue;
      for (Py_ssize_t i = 0; i < positional; i++) attributes.push_back(PyTuple_GET_ITEM(own, i));
    }
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) attributes.push_back(PyTuple_GET_ITEM(names, i));
  for (PyObject* name : attributes) {
    if (!PyUnicode_CheckExact(name)) return kNoValue;
    const Attribute attribute = look_up(subject, name);
    if (done_) return kNoValue;
    if (attribute.kind == Attribute::kMissing) return constant(Py_None);
    bool ok = attribute.kind == Attribute::kValue || attribute.kind == Attribute::kKnown;
    if (ok) items.push_back(attribute.kind == Attribute::kValue ? attribute.value : run_residual(IrOp::k_get_attr_known, {subject, constant(name)}, 0, &ok));
    if (!ok) {
      PyErr_Clear();
      return kNoValue;
    }
  }
  return virtual_tuple(items);
}

// The values of a mapping's keys; constant None: one is missing. kNoValue: not followed.
V Recorder::match_keys(V subject, V keys) {
  std::vector<V> wanted, items, found;
  std::vector<PyObject*> names;
  if (!known_items(keys, &wanted) || !known_dict(subject, &names, &items)) return kNoValue;
  for (V key : wanted) {
    if (!is_const(key) || !PyUnicode_CheckExact(concrete(key))) return kNoValue;
    size_t i = 0;
    while (i < names.size() && PyUnicode_Compare(names[i], concrete(key)) != 0) i++;
    if (i == names.size()) return constant(Py_None);
    found.push_back(items[i]);
  }
  return virtual_tuple(found);
}

HookResult Recorder::record_matching(vm::ThreadView& view, Op op, int arg) {
  switch (op) {
    case Op::kMatchMapping:
    case Op::kMatchSequence: {
      V subject = peek(1);
      if (at(subject).kind == Value::kObject || is_const(subject)) know_type(subject);
      if (done_) return HookResult::kContinue;
      const unsigned long flag = op == Op::kMatchMapping ? Py_TPFLAGS_MAPPING : Py_TPFLAGS_SEQUENCE;
      push(view, constant(PyType_HasFeature(Py_TYPE(concrete(subject)), flag) ? Py_True : Py_False));
      return next(view);
    }
    case Op::kMatchKeys: {
      const V values = match_keys(peek(2), peek(1));
      if (done_) return HookResult::kContinue;
      if (values == kNoValue) break;
      push(view, values);
      return next(view);
    }
    case Op::kMatchClass: {
      const V attributes = match_class(peek(3), peek(2), arg, concrete(peek(1)));
      if (done_) return HookResult::kContinue;
      if (attributes == kNoValue) break;
      pop(view, 3);
      push(view, attributes);
      return next(view);
    }
    default: break;
  }
  give_up(Abort::k_opcode, std::string(vm::op_name(op)));
  return HookResult::kContinue;
}

}  // namespace dynvm::tracer
