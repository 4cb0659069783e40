// What instructions ask of their operands without a call.
//
// Purpose: values of numbers, truth, comparisons, bounds of slices, the layout of list iterators. Inputs: objects of exact builtin types.
// Outputs: C values; where the answer would take a call, a result that says so. Invariants: no reference is taken, nothing raises.
// Tests: tests/vm/scripts/.
#pragma once

#include <cstring>

#include "vm/cpython/cpython.h"

namespace dynvm::vm {

struct ListIterator {  // listiterobject and tupleiterobject share the layout
  PyObject_HEAD
  Py_ssize_t index;
  PyObject* sequence;
};

inline double float_of(PyObject* object) { return reinterpret_cast<PyFloatObject*>(object)->ob_fval; }

// Value of an exact float or small int.
inline bool number_of(PyObject* object, double* value) {
  if (PyFloat_CheckExact(object)) {
    *value = float_of(object);
    return true;
  }
  long number;
  if (!PyLong_CheckExact(object) || !cpython::short_int(object, &number)) return false;
  *value = static_cast<double>(number);
  return true;
}

// Bounds of a slice with step 1 of a sequence of that size; false where they are not small ints or None.
inline bool slice_of(PyObject* start, PyObject* stop, Py_ssize_t size, Py_ssize_t* from, Py_ssize_t* to) {
  const auto bound = [size](PyObject* given, Py_ssize_t missing, Py_ssize_t* at) {
    long number = missing;
    if (given != Py_None && (!PyLong_CheckExact(given) || !cpython::short_int(given, &number))) return false;
    if (number < 0) number = number + size < 0 ? 0 : number + size;
    *at = number > size ? size : number;
    return true;
  };
  if (!bound(start, 0, from) || !bound(stop, size, to)) return false;
  if (*to < *from) *to = *from;
  return true;
}

// Are they the same text; both exact str.
inline bool equal_strings(PyObject* left, PyObject* right) {
  if (left == right) return true;
  const Py_ssize_t length = PyUnicode_GET_LENGTH(left);
  if (length != PyUnicode_GET_LENGTH(right) || PyUnicode_KIND(left) != PyUnicode_KIND(right)) return false;
  return std::memcmp(PyUnicode_DATA(left), PyUnicode_DATA(right), static_cast<size_t>(length * PyUnicode_KIND(left))) == 0;
}

// Counts the index from the end where it is negative; false: it is outside.
inline bool index_within(PyObject* sequence, Py_ssize_t* index) {
  if (*index < 0) *index += Py_SIZE(sequence);
  return static_cast<size_t>(*index) < static_cast<size_t>(Py_SIZE(sequence));
}

// Truth without a call: 1, 0, or -1 where a method must be asked.
inline int quick_truth(PyObject* object) {
  if (object == Py_True) return 1;
  if (object == Py_False || object == Py_None) return 0;
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyUnicode_Type) return PyUnicode_GET_LENGTH(object) != 0;
  if (type == &PyLong_Type) return !cpython::int_is_zero(object);
  if (type == &PyDict_Type) return reinterpret_cast<PyDictObject*>(object)->ma_used != 0;
  if (type == &PyList_Type || type == &PyTuple_Type) return Py_SIZE(object) != 0;
  if (type->tp_as_number == nullptr || type->tp_as_number->nb_bool == nullptr) {
    if (type->tp_as_mapping != nullptr && type->tp_as_mapping->mp_length != nullptr) return -1;
    if (type->tp_as_sequence != nullptr && type->tp_as_sequence->sq_length != nullptr) return -1;
    return 1;
  }
  return -1;
}

template <class Number>
bool compare_numbers(int op, Number left, Number right) {
  switch (op) {
    case Py_LT: return left < right;
    case Py_LE: return left <= right;
    case Py_EQ: return left == right;
    case Py_NE: return left != right;
    case Py_GT: return left > right;
    default: return left >= right;
  }
}

}  // namespace dynvm::vm
