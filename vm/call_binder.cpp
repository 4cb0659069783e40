// Binding call arguments to parameters.
//
// Purpose: what CPython's initialize_locals does, for all forms of parameters and arguments. Inputs: a function and argument
//   arrays. Outputs: filled locals. Invariants: no error is raised here for arguments that do not fit; the caller makes the same call
//   through the function's vectorcall then, which raises CPython's own message. Only comparisons of keyword names of str subclasses can run Python code.
// Tests: tests/vm/scripts/calls_*.py.
#include "vm/frames.h"

namespace dynvm::vm {
namespace {

void clear(PyObject** locals, int count) {
  for (int i = 0; i < count; ++i) Py_CLEAR(locals[i]);
}

// Index of the parameter called `keyword`, -1 when there is none, -2 with an exception set.
Py_ssize_t find_parameter(PyCodeObject* code, PyObject* keyword, Py_ssize_t parameters) {
  PyObject* const* names = &PyTuple_GET_ITEM(code->co_localsplusnames, 0);
  for (Py_ssize_t i = code->co_posonlyargcount; i < parameters; ++i) {
    if (names[i] == keyword) return i;  // interned names nearly always
  }
  for (Py_ssize_t i = code->co_posonlyargcount; i < parameters; ++i) {
    const int equal = PyObject_RichCompareBool(keyword, names[i], Py_EQ);
    if (equal < 0) return -2;
    if (equal > 0) return i;
  }
  return -1;
}

}  // namespace

int bind_arguments(PyFunctionObject* function, const Code* decoded, PyObject** locals, PyObject* const* arguments,
                   Py_ssize_t positional, PyObject* const* kwnames, PyObject* const* kwvalues, Py_ssize_t keywords) {
  PyCodeObject* code = decoded->code;
  const int local_count = decoded->local_count;
  const Py_ssize_t argcount = code->co_argcount;
  const Py_ssize_t parameters = argcount + code->co_kwonlyargcount;
  const auto fail = [&](int result) {
    clear(locals, local_count);
    return result;
  };

  PyObject* extra_keywords = nullptr;
  if (code->co_flags & CO_VARKEYWORDS) {
    extra_keywords = PyDict_New();
    if (extra_keywords == nullptr) return fail(-1);
    locals[parameters + ((code->co_flags & CO_VARARGS) ? 1 : 0)] = extra_keywords;
  }

  const Py_ssize_t direct = positional < argcount ? positional : argcount;
  for (Py_ssize_t i = 0; i < direct; ++i) locals[i] = Py_NewRef(arguments[i]);
  if (code->co_flags & CO_VARARGS) {
    PyObject* rest = PyTuple_New(positional - direct);
    if (rest == nullptr) return fail(-1);
    for (Py_ssize_t i = direct; i < positional; ++i) PyTuple_SET_ITEM(rest, i - direct, Py_NewRef(arguments[i]));
    locals[parameters] = rest;
  } else if (positional > argcount) {
    return fail(0);
  }

  for (Py_ssize_t i = 0; i < keywords; ++i) {
    PyObject* keyword = kwnames[i];
    if (!PyUnicode_Check(keyword)) return fail(0);
    const Py_ssize_t index = find_parameter(code, keyword, parameters);
    if (index == -2) return fail(-1);
    if (index >= 0) {
      if (locals[index] != nullptr) return fail(0);
      locals[index] = Py_NewRef(kwvalues[i]);
    } else if (extra_keywords != nullptr) {
      if (PyDict_SetItem(extra_keywords, keyword, kwvalues[i]) < 0) return fail(-1);
    } else {
      return fail(0);
    }
  }

  if (!fill_defaults(function, decoded, locals, direct)) return fail(PyErr_Occurred() != nullptr ? -1 : 0);
  return 1;
}

bool fill_defaults(PyFunctionObject* function, const Code* decoded, PyObject** locals, Py_ssize_t given) {
  PyCodeObject* code = decoded->code;
  const Py_ssize_t argcount = code->co_argcount, parameters = argcount + code->co_kwonlyargcount;
  PyObject* defaults = function->func_defaults;
  const Py_ssize_t required = argcount - (defaults == nullptr ? 0 : PyTuple_GET_SIZE(defaults));
  for (Py_ssize_t i = given; i < required; ++i) {
    if (locals[i] == nullptr) return false;
  }
  uint64_t filled = 0;
  for (Py_ssize_t i = given; i < parameters; ++i) {
    if (locals[i] != nullptr) continue;
    PyObject* value = nullptr;
    if (i < argcount) {
      value = PyTuple_GET_ITEM(defaults, i - required);
    } else if (function->func_kwdefaults != nullptr) {
      value = PyDict_GetItemWithError(function->func_kwdefaults, PyTuple_GET_ITEM(code->co_localsplusnames, i));
    }
    if (value == nullptr) {
      for (Py_ssize_t k = given; k < i; ++k) {
        if (k < 64 && (filled >> k & 1) != 0) Py_CLEAR(locals[k]);
      }
      return false;
    }
    if (i < 64) filled |= uint64_t{1} << i;
    locals[i] = Py_NewRef(value);
  }
  return true;
}

int bind_collected(PyFunctionObject* function, const Code* decoded, PyObject** locals, PyObject* self, PyObject* arguments, PyObject* kwargs) {
  PyObject *values[kMostCollected + 1], *names[kMostCollected], *named[kMostCollected];
  Py_ssize_t count = 0, position = 0, keywords = 0;
  if (self != nullptr) values[count++] = self;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); ++i) values[count++] = PyTuple_GET_ITEM(arguments, i);
  if (kwargs != nullptr) {
    while (PyDict_Next(kwargs, &position, &names[keywords], &named[keywords])) ++keywords;
  }
  return bind_arguments(function, decoded, locals, values, count, names, named, keywords);
}

}  // namespace dynvm::vm
