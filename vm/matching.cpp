// Pattern matching and what operators do after NotImplemented; see operations.h.
//
// Purpose, inputs, outputs, invariants, tests: operations.h.
#include "vm/attr_cache.h"
#include "vm/operations.h"

namespace dynvm::vm {

PyObject* match_keys(PyObject* subject, PyObject* keys) {
  const Py_ssize_t count = PyTuple_GET_SIZE(keys);
  if (count == 0) return PyTuple_New(0);
  const bool is_dict = PyDict_CheckExact(subject);  // nobody sees that its get() is not called
  PyObject* get = is_dict ? nullptr : PyObject_GetAttrString(subject, "get");
  if (get == nullptr && !is_dict) return nullptr;
  PyObject* seen = PySet_New(nullptr);
  PyObject* missing = is_dict ? Py_NewRef(Py_None) : PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  PyObject* values = seen != nullptr && missing != nullptr ? PyTuple_New(count) : nullptr;
  PyObject* result = values;
  for (Py_ssize_t i = 0; i < count && result == values && values != nullptr; ++i) {
    PyObject* key = PyTuple_GET_ITEM(keys, i);
    const int duplicate = PySet_Contains(seen, key);
    if (duplicate != 0 || PySet_Add(seen, key) < 0) {
      if (duplicate > 0) PyErr_Format(PyExc_ValueError, "mapping pattern checks duplicate key (%R)", key);
      result = nullptr;
      break;
    }
    PyObject* arguments[] = {key, missing};
    PyObject* value = is_dict ? Py_XNewRef(PyDict_GetItemWithError(subject, key)) : PyObject_Vectorcall(get, arguments, 2, nullptr);
    if (value == nullptr) {
      result = is_dict && PyErr_Occurred() == nullptr ? Py_None : nullptr;
    } else if (value == missing && !is_dict) {
      Py_DECREF(value);
      result = Py_None;
    } else {
      PyTuple_SET_ITEM(values, i, value);
    }
  }
  if (result != values) Py_XDECREF(values);
  if (result == Py_None) Py_INCREF(result);
  Py_XDECREF(missing);
  Py_XDECREF(seen);
  Py_XDECREF(get);
  return result;
}

namespace {

// Attribute for a class pattern; nullptr without exception for no match.
PyObject* class_attribute(PyObject* subject, PyObject* type, PyObject* name, PyObject* seen) {
  const int duplicate = PySet_Contains(seen, name);
  if (duplicate != 0 || PySet_Add(seen, name) < 0) {
    if (duplicate > 0) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple sub-patterns for attribute %R",
                   reinterpret_cast<PyTypeObject*>(type)->tp_name, name);
    }
    return nullptr;
  }
  PyObject* value = PyObject_GetAttr(subject, name);
  if (value == nullptr && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
  return value;
}

// Appends the attributes for the positional patterns; 1 done, 0 no match, -1 exception.
int positional_attributes(PyObject* subject, PyObject* type, Py_ssize_t positional, PyObject* seen, PyObject* values) {
  const char* type_name = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  bool match_self = false;
  PyObject* match_args = PyObject_GetAttr(type, g_names.n_match_args);
  if (match_args != nullptr) {
    if (!PyTuple_CheckExact(match_args)) {
      PyErr_Format(PyExc_TypeError, "%s.__match_args__ must be a tuple (got %s)", type_name, Py_TYPE(match_args)->tp_name);
      Py_DECREF(match_args);
      return -1;
    }
  } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Clear();
    match_args = PyTuple_New(0);
    if (match_args == nullptr) return -1;
    match_self = PyType_HasFeature(reinterpret_cast<PyTypeObject*>(type), _Py_TPFLAGS_MATCH_SELF);
  } else {
    return -1;
  }
  const Py_ssize_t allowed = match_self ? 1 : PyTuple_GET_SIZE(match_args);
  int status = 1;
  if (allowed < positional) {
    PyErr_Format(PyExc_TypeError, "%s() accepts %zd positional sub-pattern%s (%zd given)", type_name, allowed,
                 allowed == 1 ? "" : "s", positional);
    status = -1;
  } else if (match_self) {
    if (PyList_Append(values, subject) < 0) status = -1;
  } else {
    for (Py_ssize_t i = 0; i < positional && status == 1; ++i) {
      PyObject* name = PyTuple_GET_ITEM(match_args, i);
      if (!PyUnicode_CheckExact(name)) {
        PyErr_Format(PyExc_TypeError, "__match_args__ elements must be strings (got %s)", Py_TYPE(name)->tp_name);
        status = -1;
        break;
      }
      PyObject* value = class_attribute(subject, type, name, seen);
      if (value == nullptr) {
        status = PyErr_Occurred() ? -1 : 0;
        break;
      }
      if (PyList_Append(values, value) < 0) status = -1;
      Py_DECREF(value);
    }
  }
  Py_DECREF(match_args);
  return status;
}

}  // namespace

PyObject* match_class(PyObject* subject, PyObject* type, Py_ssize_t positional, PyObject* names) {
  if (!PyType_Check(type)) {
    PyErr_SetString(PyExc_TypeError, cpython::kMatchNeedsClass);
    return nullptr;
  }
  if (PyObject_IsInstance(subject, type) <= 0) return nullptr;
  PyObject* seen = PySet_New(nullptr);
  PyObject* values = PyList_New(0);
  int status = seen != nullptr && values != nullptr ? 1 : -1;
  if (status == 1 && positional > 0) status = positional_attributes(subject, type, positional, seen, values);
  for (Py_ssize_t i = 0; status == 1 && i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* value = class_attribute(subject, type, PyTuple_GET_ITEM(names, i), seen);
    if (value == nullptr) {
      status = 0;  // or an exception, which the caller looks for
      break;
    }
    if (PyList_Append(values, value) < 0) status = -1;
    Py_DECREF(value);
  }
  PyObject* result = status == 1 ? PyList_AsTuple(values) : nullptr;
  Py_XDECREF(values);
  Py_XDECREF(seen);
  return result;
}

// ---- after NotImplemented

namespace {

struct BinarySlot {
  Py_ssize_t offset;       // in PyNumberMethods
  PyObject** reflected;
  const char* sign;
};

binaryfunc number_slot(PyObject* object, Py_ssize_t offset) {
  PyNumberMethods* methods = Py_TYPE(object)->tp_as_number;
  if (methods == nullptr) return nullptr;
  return *reinterpret_cast<binaryfunc*>(reinterpret_cast<char*>(methods) + offset);
}

const BinarySlot* slot_of(int op) {
  static const BinarySlot add{offsetof(PyNumberMethods, nb_add), &g_names.n_radd, "+"};
  static const BinarySlot sub{offsetof(PyNumberMethods, nb_subtract), &g_names.n_rsub, "-"};
  static const BinarySlot mul{offsetof(PyNumberMethods, nb_multiply), &g_names.n_rmul, "*"};
  static const BinarySlot div{offsetof(PyNumberMethods, nb_true_divide), &g_names.n_rtruediv, "/"};
  static const BinarySlot band{offsetof(PyNumberMethods, nb_and), &g_names.n_rand, "&"};
  static const BinarySlot bor{offsetof(PyNumberMethods, nb_or), &g_names.n_ror, "|"};
  static const BinarySlot mat{offsetof(PyNumberMethods, nb_matrix_multiply), &g_names.n_rmatmul, "@"};
  switch (op) {
    case NB_ADD: return &add;
    case NB_SUBTRACT: return &sub;
    case NB_MULTIPLY: return &mul;
    case NB_TRUE_DIVIDE: return &div;
    case NB_AND: return &band;
    case NB_OR: return &bor;
    case NB_MATRIX_MULTIPLY: return &mat;
    default: return nullptr;
  }
}

PyObject* repeat(PyObject* sequence, PyObject* count) {
  if (!PyIndex_Check(count)) {
    PyErr_Format(PyExc_TypeError, "can't multiply sequence by non-int of type '%.200s'", Py_TYPE(count)->tp_name);
    return nullptr;
  }
  return PySequence_Repeat(sequence, PyNumber_AsSsize_t(count, PyExc_OverflowError));
}

}  // namespace

PyObject* binary_after_not_implemented(int op, PyObject* left, PyObject* right) {
  const BinarySlot* slot = slot_of(op);
  PyObject* result = nullptr;
  const binaryfunc left_slot = number_slot(left, slot->offset), right_slot = number_slot(right, slot->offset);
  if (right_slot != nullptr && right_slot != left_slot) {
    result = right_slot(left, right);
    if (result == nullptr || result != Py_NotImplemented) return result;
    Py_DECREF(result);
  } else if (right_slot != nullptr && Py_TYPE(left) != Py_TYPE(right)) {
    // Both slots are CPython's generic one: the reflected method of the right operand.
    PyObject* method = _PyObject_LookupSpecial(right, *slot->reflected);
    if (method == nullptr && PyErr_Occurred()) return nullptr;
    if (method != nullptr) {
      result = PyObject_CallOneArg(method, left);
      Py_DECREF(method);
      if (result == nullptr || result != Py_NotImplemented) return result;
      Py_DECREF(result);
    }
  }
  if (op == NB_ADD && Py_TYPE(left)->tp_as_sequence != nullptr && Py_TYPE(left)->tp_as_sequence->sq_concat != nullptr) {
    return Py_TYPE(left)->tp_as_sequence->sq_concat(left, right);
  }
  if (op == NB_MULTIPLY) {
    PySequenceMethods *of_left = Py_TYPE(left)->tp_as_sequence, *of_right = Py_TYPE(right)->tp_as_sequence;
    if (of_left != nullptr && of_left->sq_repeat != nullptr) return repeat(left, right);
    if (of_right != nullptr && of_right->sq_repeat != nullptr) return repeat(right, left);
  }
  PyErr_Format(PyExc_TypeError, "unsupported operand type(s) for %.100s: '%.100s' and '%.100s'", slot->sign,
               Py_TYPE(left)->tp_name, Py_TYPE(right)->tp_name);
  return nullptr;
}

PyObject* compare_after_not_implemented(int op, PyObject* left, PyObject* right) {
  static const char* const kSigns[] = {"<", "<=", "==", "!=", ">", ">="};
  if (richcmpfunc compare = Py_TYPE(right)->tp_richcompare) {
    PyObject* result = compare(right, left, _Py_SwappedOp[op]);
    if (result == nullptr || result != Py_NotImplemented) return result;
    Py_DECREF(result);
  }
  if (op == Py_EQ) return PyBool_FromLong(left == right);
  if (op == Py_NE) return PyBool_FromLong(left != right);
  PyErr_Format(PyExc_TypeError, "'%s' not supported between instances of '%.100s' and '%.100s'", kSigns[op],
               Py_TYPE(left)->tp_name, Py_TYPE(right)->tp_name);
  return nullptr;
}

}  // namespace dynvm::vm
