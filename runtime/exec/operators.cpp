// Calls, operators, attributes, items and iteration (helpers.h).
#include "runtime/exec/helpers.h"

namespace dynvm::runtime::helpers {
namespace {

PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
PyObject* power_in_place(PyObject* a, PyObject* b) { return PyNumber_InPlacePower(a, b, Py_None); }

// By the oparg of BINARY_OP: NB_ADD ... NB_XOR, then the in-place forms in the same order.
constexpr binaryfunc kBinary[] = {
    PyNumber_Add, PyNumber_And, PyNumber_FloorDivide, PyNumber_Lshift, PyNumber_MatrixMultiply, PyNumber_Multiply, PyNumber_Remainder,
    PyNumber_Or, power, PyNumber_Rshift, PyNumber_Subtract, PyNumber_TrueDivide, PyNumber_Xor,
    PyNumber_InPlaceAdd, PyNumber_InPlaceAnd, PyNumber_InPlaceFloorDivide, PyNumber_InPlaceLshift, PyNumber_InPlaceMatrixMultiply,
    PyNumber_InPlaceMultiply, PyNumber_InPlaceRemainder, PyNumber_InPlaceOr, power_in_place, PyNumber_InPlaceRshift,
    PyNumber_InPlaceSubtract, PyNumber_InPlaceTrueDivide, PyNumber_InPlaceXor};
static_assert(sizeof(kBinary) / sizeof(kBinary[0]) == 26);

// "f() argument after * must be ..., not int".
void bad_argument(PyObject* callable, const char* what, PyObject* argument) {
  PyObject* name = _PyObject_FunctionStr(callable);
  if (name == nullptr) return;
  PyErr_Format(PyExc_TypeError, "%U argument after %s, not %.200s", name, what, Py_TYPE(argument)->tp_name);
  Py_DECREF(name);
}

}  // namespace

PyObject* call(PyObject** callable_and_arguments, int64_t count, PyObject* names) {
  Py_ssize_t keywords = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  size_t positional = static_cast<size_t>(count - 1 - keywords);
  // The word before the arguments is the callable's: free for the callee from here on.
  return PyObject_Vectorcall(callable_and_arguments[0], callable_and_arguments + 1, positional | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
}

PyObject* call_ex(PyObject* callable, PyObject* arguments, PyObject* keywords) {
  PyObject *tuple = nullptr, *dict = nullptr, *result = nullptr;
  if (keywords != nullptr && !PyDict_CheckExact(keywords)) {
    dict = PyDict_New();
    if (dict == nullptr) return nullptr;
    if (PyDict_Update(dict, keywords) < 0) {
      if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        bad_argument(callable, "** must be a mapping", keywords);
      }
      Py_DECREF(dict);
      return nullptr;
    }
    keywords = dict;
  }
  if (!PyTuple_CheckExact(arguments)) {
    if (Py_TYPE(arguments)->tp_iter == nullptr && !PySequence_Check(arguments)) {
      bad_argument(callable, "* must be an iterable", arguments);
    } else {
      tuple = PySequence_Tuple(arguments);
    }
    if (tuple == nullptr) {
      Py_XDECREF(dict);
      return nullptr;
    }
    arguments = tuple;
  }
  result = PyObject_Call(callable, arguments, keywords);
  Py_XDECREF(tuple);
  Py_XDECREF(dict);
  return result;
}

PyObject* binary(PyObject* left, PyObject* right, int64_t oparg) { return kBinary[oparg](left, right); }

PyObject* unary(PyObject* operand, int64_t which) {
  switch (which) {
    case 0: return PyNumber_Negative(operand);
    case 1: return PyNumber_Invert(operand);
    default: return PyNumber_Positive(operand);
  }
}

PyObject* compare(PyObject* left, PyObject* right, int64_t op) { return PyObject_RichCompare(left, right, static_cast<int>(op)); }
int contains(PyObject* container, PyObject* value) { return PySequence_Contains(container, value); }
int is_true(PyObject* object) { return PyObject_IsTrue(object); }
PyObject* get_attr(PyObject* object, PyObject* name) { return PyObject_GetAttr(object, name); }
int set_attr(PyObject* object, PyObject* name, PyObject* value) { return PyObject_SetAttr(object, name, value); }
PyObject* get_item(PyObject* object, PyObject* key) { return PyObject_GetItem(object, key); }

int set_item(PyObject* object, PyObject* key, PyObject* value) {
  return value == nullptr ? PyObject_DelItem(object, key) : PyObject_SetItem(object, key, value);
}

PyObject* get_iter(PyObject* object) { return PyObject_GetIter(object); }

int iter_next(PyObject* iterator, PyObject** item) {
  *item = Py_TYPE(iterator)->tp_iternext(iterator);
  if (*item != nullptr || !PyErr_Occurred()) return 0;
  if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return -1;
  PyErr_Clear();
  return 0;
}

PyObject* format_value(PyObject* value, PyObject* spec, int64_t conversion) {
  PyObject* converted = nullptr;
  switch (conversion & 3) {
    case 0: converted = Py_NewRef(value); break;
    case 1: converted = PyObject_Str(value); break;
    case 2: converted = PyObject_Repr(value); break;
    default: converted = PyObject_ASCII(value); break;
  }
  if (converted == nullptr || (spec == nullptr && PyUnicode_CheckExact(converted))) return converted;
  PyObject* result = PyObject_Format(converted, spec);
  Py_DECREF(converted);
  return result;
}

}  // namespace dynvm::runtime::helpers
