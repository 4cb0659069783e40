// Raising and matching exceptions; see operations.h.
//
// Purpose, inputs, outputs, invariants, tests: operations.h.
#include "vm/attr_cache.h"
#include "vm/operations.h"

namespace dynvm::vm {
namespace {

constexpr char kNotAnException[] = "calling %R should have returned an instance of BaseException, not %R";

}  // namespace

bool raise_exception(PyObject* exc, PyObject* cause) {
  if (exc == nullptr) {
    PyObject* value = PyErr_GetHandledException();
    if (value == nullptr || value == Py_None) {
      Py_XDECREF(value);
      PyErr_SetString(PyExc_RuntimeError, "No active exception to reraise");
      return false;
    }
    cpython::set_exception(value);
    return true;
  }
  PyObject *type = nullptr, *value = nullptr;
  const auto fail = [&] {
    Py_XDECREF(value);
    Py_XDECREF(type);
    Py_XDECREF(cause);
    return false;
  };
  if (PyExceptionClass_Check(exc)) {
    type = exc;
    value = PyObject_CallNoArgs(exc);
    if (value == nullptr) return fail();
    if (!PyExceptionInstance_Check(value)) {
      PyErr_Format(PyExc_TypeError, kNotAnException, type, Py_TYPE(value));
      return fail();
    }
  } else if (PyExceptionInstance_Check(exc)) {
    value = exc;
    type = Py_NewRef(PyExceptionInstance_Class(exc));
  } else {
    Py_DECREF(exc);
    PyErr_SetString(PyExc_TypeError, "exceptions must derive from BaseException");
    return fail();
  }
  if (cause != nullptr) {
    PyObject* fixed = nullptr;
    if (PyExceptionClass_Check(cause)) {
      fixed = PyObject_CallNoArgs(cause);
      if (fixed == nullptr) return fail();
      if (cpython::kChecksMadeCause && !PyExceptionInstance_Check(fixed)) {
        PyErr_Format(PyExc_TypeError, kNotAnException, cause, Py_TYPE(fixed));
        Py_DECREF(fixed);
        return fail();
      }
      Py_DECREF(cause);
    } else if (PyExceptionInstance_Check(cause)) {
      fixed = cause;
    } else if (cause == Py_None) {
      Py_DECREF(cause);
    } else {
      PyErr_SetString(PyExc_TypeError, "exception causes must derive from BaseException");
      return fail();
    }
    PyException_SetCause(value, fixed);
  }
  PyErr_SetObject(type, value);
  Py_DECREF(value);
  Py_DECREF(type);
  return false;
}

bool check_except_type(PyObject* type) {
  bool good = true;
  if (PyTuple_Check(type)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type) && good; ++i) good = PyExceptionClass_Check(PyTuple_GET_ITEM(type, i));
  } else {
    good = PyExceptionClass_Check(type);
  }
  if (!good) PyErr_SetString(PyExc_TypeError, "catching classes that do not inherit from BaseException is not allowed");
  return good;
}

bool check_except_star_type(PyObject* type) {
  if (!check_except_type(type)) return false;
  int is_group = 0;
  if (PyTuple_Check(type)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type) && is_group == 0; ++i) {
      is_group = PyObject_IsSubclass(PyTuple_GET_ITEM(type, i), PyExc_BaseExceptionGroup);
    }
  } else {
    is_group = PyObject_IsSubclass(type, PyExc_BaseExceptionGroup);
  }
  if (is_group > 0) {
    PyErr_SetString(PyExc_TypeError, "catching ExceptionGroup with except* is not allowed. Use except instead.");
  }
  return is_group == 0;
}

bool match_exception_group(PyObject* exc, PyObject* type, PyObject** match, PyObject** rest) {
  const bool is_group = PyObject_TypeCheck(exc, reinterpret_cast<PyTypeObject*>(PyExc_BaseExceptionGroup));
  *match = *rest = nullptr;
  if (exc != Py_None && PyErr_GivenExceptionMatches(exc, type)) {
    if (is_group) {
      *match = Py_NewRef(exc);
    } else {
      // A bare exception goes into a group of its own.
      PyObject* members = PyTuple_Pack(1, exc);
      if (members == nullptr) return false;
      *match = PyObject_CallFunction(PyExc_BaseExceptionGroup, "sO", "", members);
      Py_DECREF(members);
      if (*match == nullptr) return false;
    }
    *rest = Py_NewRef(Py_None);
    return true;
  }
  if (exc != Py_None && is_group) {
    PyObject* pair = PyObject_CallMethod(exc, "split", "(O)", type);
    if (pair == nullptr) return false;
    *match = Py_NewRef(PyTuple_GET_ITEM(pair, 0));
    *rest = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
    Py_DECREF(pair);
    return true;
  }
  *match = Py_NewRef(Py_None);
  *rest = Py_NewRef(Py_None);
  return true;
}

void describe_attribute_error(PyObject* object, PyObject* name) {
  PyObject* value = cpython::take_exception(PyThreadState_Get());
  if (PyErr_GivenExceptionMatches(value, PyExc_AttributeError)) {
    auto* error = reinterpret_cast<PyAttributeErrorObject*>(value);
    const bool unset = error->name == nullptr && error->obj == nullptr;
    if (unset && reinterpret_cast<PyObject*>(Py_TYPE(value)) == PyExc_AttributeError) {
      error->name = Py_NewRef(name);
      error->obj = Py_NewRef(object);
    } else if (unset && (PyObject_SetAttrString(value, "name", name) < 0 || PyObject_SetAttrString(value, "obj", object) < 0)) {
      Py_DECREF(value);
      return;
    }
  }
  cpython::set_exception(value);
}

}  // namespace dynvm::vm
