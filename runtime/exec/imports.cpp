// IMPORT_NAME and IMPORT_FROM (helpers.h).
#include "runtime/exec/helpers.h"

namespace dynvm::runtime::helpers {
namespace {

// The builtins that code with these globals sees; borrowed, null with an exception.
PyObject* builtins_of(PyObject* globals) {
  PyObject* builtins = PyDict_GetItemString(globals, "__builtins__");
  if (builtins != nullptr && PyModule_Check(builtins)) builtins = PyModule_GetDict(builtins);
  return builtins != nullptr && PyDict_Check(builtins) ? builtins : PyEval_GetBuiltins();
}

bool is_initializing(PyObject* module) {
  PyObject* spec = PyObject_GetAttrString(module, "__spec__");
  PyObject* flag = spec == nullptr ? nullptr : PyObject_GetAttrString(spec, "_initializing");
  int truth = flag == nullptr ? 0 : PyObject_IsTrue(flag);
  Py_XDECREF(spec);
  Py_XDECREF(flag);
  PyErr_Clear();
  return truth > 0;
}

void cannot_import(PyObject* module, PyObject* name, PyObject* module_name) {
  PyObject* shown = module_name != nullptr ? Py_NewRef(module_name) : PyUnicode_FromString("<unknown module name>");
  if (shown == nullptr) return;
  PyObject* path = PyModule_GetFilenameObject(module);
  PyObject* message = nullptr;
  if (path == nullptr) {
    PyErr_Clear();
    message = PyUnicode_FromFormat("cannot import name %R from %R (unknown location)", name, shown);
  } else if (is_initializing(module)) {
    message = PyUnicode_FromFormat(
        "cannot import name %R from partially initialized module %R (most likely due to a circular import) (%S)", name, shown, path);
  } else {
    message = PyUnicode_FromFormat("cannot import name %R from %R (%S)", name, shown, path);
  }
  if (message != nullptr) PyErr_SetImportError(message, module_name, path);
  Py_XDECREF(message);
  Py_XDECREF(path);
  Py_DECREF(shown);
}

}  // namespace

PyObject* import_name(PyObject* name, PyObject* globals, PyObject* from_list, PyObject* level) {
  PyObject* builtins = builtins_of(globals);
  PyObject* import = builtins == nullptr ? nullptr : PyDict_GetItemString(builtins, "__import__");
  if (import == nullptr) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "__import__ not found");
    return nullptr;
  }
  Py_INCREF(import);
  PyObject* arguments[] = {name, globals, Py_None, from_list, level};
  PyObject* module = PyObject_Vectorcall(import, arguments, 5, nullptr);
  Py_DECREF(import);
  return module;
}

PyObject* import_from(PyObject* module, PyObject* name) {
  PyObject* value = PyObject_GetAttr(module, name);
  if (value != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  PyErr_Clear();
  // A submodule whose package has not got its attribute yet (circular imports).
  PyObject* module_name = PyObject_GetAttrString(module, "__name__");
  if (module_name == nullptr || !PyUnicode_Check(module_name)) {
    PyErr_Clear();
    Py_CLEAR(module_name);
  } else {
    PyObject* full_name = PyUnicode_FromFormat("%U.%U", module_name, name);
    if (full_name != nullptr) value = PyImport_GetModule(full_name);
    Py_XDECREF(full_name);
  }
  if (value == nullptr && !PyErr_Occurred()) cannot_import(module, name, module_name);
  Py_XDECREF(module_name);
  return value;
}

}  // namespace dynvm::runtime::helpers
