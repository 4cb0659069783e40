// What `[]` and `|` do to objects of type annotations, which code makes while it runs (typing.cast).
#pragma once

#include "tracer/recorder.h"

namespace dynvm::tracer {

// Objects of type annotations (classes, tuple[int], Optional[X], A | B): immutable, so what `[]` and `|` make of constant ones is constant.
inline bool typing_form(PyObject* o) {
  if (PyType_Check(o) || o == Py_None || strcmp(Py_TYPE(o)->tp_name, "types.GenericAlias") == 0 || strcmp(Py_TYPE(o)->tp_name, "types.UnionType") == 0) return true;
  PyObject* module = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__module__");
  bool typing = module != nullptr && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "typing") == 0;
  Py_XDECREF(module);
  PyErr_Clear();
  return typing;
}

// Is it a class of which `[]` makes a types.GenericAlias, as collections.abc's do?
inline bool makes_aliases(PyObject* cls) {
  if (!PyType_Check(cls) || _PyType_Lookup(Py_TYPE(cls), interned("__getitem__")) != nullptr) return false;
  PyObject* found = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(cls), interned("__class_getitem__"));
  if (found == nullptr || Py_TYPE(found) != &PyClassMethod_Type) return false;
  PyObject* function = PyObject_GetAttr(found, interned("__func__"));
  if (function == nullptr) PyErr_Clear();
  Py_XDECREF(function);
  return function == reinterpret_cast<PyObject*>(&Py_GenericAliasType);
}

}  // namespace dynvm::tracer
