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
PyObject* enter_shortcut = nullptr;
PyObject* exit_shortcut = nullptr;
PyObject* idle_record = nullptr;  // made while nobody listened
constexpr const char* kEnterName = "_record_function_enter_new";
constexpr const char* kExitName = "_record_function_exit";

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

void make_shortcuts() {
  static PyMethodDef enter_definition, exit_definition;
  if (enter_shortcut != nullptr) return;
  enter_original = find_operator(kEnterName, nullptr);
  exit_original = find_operator(kExitName, "_RecordFunction");
  enter_shortcut = function_of(&enter_definition, kEnterName, &enter);
  exit_shortcut = function_of(&exit_definition, kExitName, &exit);
  PyErr_Clear();
}

}  // namespace

PyObject* shortcut_of(PyObject* callee) {
  make_shortcuts();
  if (callee == enter_original && enter_original != nullptr) return enter_shortcut;
  if (callee == exit_original && exit_original != nullptr) return exit_shortcut;
  return nullptr;
}

std::string shortcut_name(PyObject* shortcut) {
  return shortcut == nullptr ? "" : shortcut == enter_shortcut ? kEnterName : shortcut == exit_shortcut ? kExitName : "";
}

PyObject* shortcut_named(const std::string& name) {
  make_shortcuts();
  return name == kEnterName ? enter_shortcut : name == kExitName ? exit_shortcut : nullptr;
}

}  // namespace dynvm::torch_bridge
