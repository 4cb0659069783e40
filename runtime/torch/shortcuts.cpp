// See shortcuts.h.
//
// torch.profiler.record_function, which each optimizer step enters, makes an at::RecordFunction even where nobody listens: one that has no
// callbacks when it is made does nothing for good. While there are no callbacks, one such object serves all.
#include "runtime/torch/shortcuts.h"

#include <ATen/record_function.h>

namespace dynvm::torch_bridge {
namespace {

PyObject* enter_original = nullptr;
PyObject* exit_original = nullptr;
PyObject* idle_record = nullptr;  // made while nobody listened

PyObject* enter(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (at::hasCallbacks() || count != 2 || !PyUnicode_CheckExact(args[0]) || args[1] != Py_None)
    return PyObject_Vectorcall(enter_original, args, count, nullptr);
  if (idle_record == nullptr && (idle_record = PyObject_Vectorcall(enter_original, args, count, nullptr)) == nullptr) return nullptr;
  return Py_NewRef(idle_record);
}

PyObject* exit(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 1 || args[0] != idle_record) return PyObject_Vectorcall(exit_original, args, count, nullptr);
  Py_RETURN_NONE;
}

// torch.ops.profiler.A[.B]._op, or null.
PyObject* find_operator(const char* packet, const char* overload) {
  PyObject* object = PyImport_ImportModule("torch");
  for (const char* name : {"ops", "profiler", packet, overload, "_op"}) {
    if (object == nullptr || name == nullptr) continue;
    PyObject* next = PyObject_GetAttrString(object, name);
    Py_DECREF(object);
    object = next;
  }
  PyErr_Clear();
  return object;
}

template <typename Function>
PyObject* function_of(PyMethodDef* definition, const char* name, Function* function) {
  *definition = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)), METH_FASTCALL, nullptr};
  return PyCFunction_New(definition, nullptr);
}

}  // namespace

PyObject* shortcut_of(PyObject* callee) {
  static PyMethodDef enter_definition, exit_definition;
  static PyObject* enter_shortcut = nullptr;
  static PyObject* exit_shortcut = nullptr;
  if (enter_shortcut == nullptr) {
    enter_original = find_operator("_record_function_enter_new", nullptr);
    exit_original = find_operator("_record_function_exit", "_RecordFunction");
    enter_shortcut = function_of(&enter_definition, "_record_function_enter_new", &enter);
    exit_shortcut = function_of(&exit_definition, "_record_function_exit", &exit);
    PyErr_Clear();
  }
  if (callee == enter_original && enter_original != nullptr) return enter_shortcut;
  if (callee == exit_original && exit_original != nullptr) return exit_shortcut;
  return nullptr;
}

}  // namespace dynvm::torch_bridge
