// What torch would give to __torch_function__ (overrides.h). A mode is asked before any argument's class is, with the same function, types and arguments, so
// one that only keeps them tells without doing anything.
#include "runtime/torch/overrides.h"

#include <utility>

#include "runtime/torch/python_tensor.h"

namespace dynvm::torch_bridge {
namespace {

PyObject* kept = nullptr;  // by the mode, since it was last asked

PyObject* keep(PyObject* mode, PyObject* arguments) {
  Py_XSETREF(kept, Py_NewRef(arguments));
  return Py_NewRef(mode);
}

PyMethodDef methods[] = {{"__torch_function__", keep, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};
PyType_Spec spec = {"dynvm.AskingMode", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};

struct Stack {
  PyObject *push = nullptr, *pop = nullptr, *mode = nullptr, *disabled = nullptr;
  Stack() {
    PyObject* module = PyImport_ImportModule("torch._C");
    if (module == nullptr) return;
    push = PyObject_GetAttrString(module, "_push_on_torch_function_stack");
    pop = PyObject_GetAttrString(module, "_pop_torch_function_stack");
    disabled = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
    Py_DECREF(module);
    PyObject* type = PyType_FromSpec(&spec);
    if (type != nullptr) mode = PyObject_CallNoArgs(type);
    Py_XDECREF(type);
  }
  bool complete() const { return push != nullptr && pop != nullptr && mode != nullptr && disabled != nullptr; }
};

const Stack& stack() {
  static const Stack found;
  PyErr_Clear();
  return found;
}

}  // namespace

bool overrides(PyObject* object) {
  if (!is_tensor_object(object) || is_plain_tensor(object) || is_plain_parameter(object)) return false;
  static PyObject* const name = PyUnicode_InternFromString("__torch_function__");
  return _PyType_Lookup(Py_TYPE(object), name) != stack().disabled;
}

PyObject* ask_override(const std::function<PyObject*()>& function, PyObject** asked) {
  *asked = nullptr;
  const Stack& torch = stack();
  if (!torch.complete()) return function();
  PyObject* pushed = PyObject_CallOneArg(torch.push, torch.mode);
  if (pushed == nullptr) return nullptr;
  Py_DECREF(pushed);
  PyObject* result = function();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Py_XDECREF(PyObject_CallNoArgs(torch.pop));
  PyErr_Restore(type, value, traceback);
  if (kept == nullptr) return result;
  *asked = std::exchange(kept, nullptr);
  PyErr_Clear();
  if (result == torch.mode) Py_CLEAR(result);
  else if (result == nullptr) result = Py_NewRef(torch.mode);
  return result;
}

}  // namespace dynvm::torch_bridge
