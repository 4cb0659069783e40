// Items of array.array, whose struct the array module keeps to itself.
//
// Purpose: arrays of numbers are read and written without going through the mapping protocol, which parses each key and value anew. Inputs: objects.
// Outputs: whether they are arrays; their items. Invariants: the type is recognised by its module and compared with what it says of itself before
//   the mirror below is believed; nothing else has g_array_type.
// Tests: tests/vm/scripts/arrays.py.
#pragma once

#include <Python.h>

namespace dynvm::vm {

// Mirrors of arraymodule.c, equal from 3.11 to 3.13.
struct ArrayObject;
struct ArrayDescription {
  char typecode;
  int itemsize;
  PyObject* (*getitem)(ArrayObject*, Py_ssize_t);
  int (*setitem)(ArrayObject*, Py_ssize_t, PyObject*);
};
struct ArrayObject {
  PyObject_VAR_HEAD
  char* items;
  Py_ssize_t allocated;
  const ArrayDescription* description;
  PyObject* weak_references;
  Py_ssize_t exports;
};

extern PyTypeObject* g_array_type;  // nullptr until one was seen
inline bool is_array(PyObject* object) { return Py_TYPE(object) == g_array_type; }
// The same, for the first time too.
bool recognise_array(PyObject* object);

inline const ArrayDescription* array_description(PyObject* array) { return reinterpret_cast<ArrayObject*>(array)->description; }
// `index` is within the array. New reference, or nullptr with an exception.
inline PyObject* array_item(PyObject* array, Py_ssize_t index) {
  return array_description(array)->getitem(reinterpret_cast<ArrayObject*>(array), index);
}
// -1 with an exception. May run the value's __float__ or __index__.
inline int set_array_item(PyObject* array, Py_ssize_t index, PyObject* value) {
  auto* object = reinterpret_cast<ArrayObject*>(array);
  if (object->description->typecode == 'd' && PyFloat_CheckExact(value)) {
    reinterpret_cast<double*>(object->items)[index] = PyFloat_AS_DOUBLE(value);
    return 0;
  }
  return object->description->setitem(object, index, value);
}

}  // namespace dynvm::vm
