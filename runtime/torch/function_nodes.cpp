// See function_nodes.h.
#include "runtime/torch/function_nodes.h"

#include <ATen/ops/alias.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/torch/python_tensor.h"

namespace dynvm::torch_bridge {
namespace {

struct Drop {
  void operator()(PyObject* object) const { Py_XDECREF(object); }
};
using Owned = std::unique_ptr<PyObject, Drop>;

Owned checked(PyObject* object) {
  if (object == nullptr) throw PythonRaised();
  return Owned(object);
}

// What the stand-in's forward() gives, while it runs.
struct Forward {
  PyObject* attributes;  // of the context
  PyObject* results;
};
thread_local const Forward* current = nullptr;

// A tuple of what is saved, with the call's own results and arguments in their places.
Owned with_results(PyObject* items, PyObject* results, PyObject* args) {
  if (!PyTuple_Check(items)) return Owned(Py_NewRef(items));
  Owned out = checked(PyTuple_New(PyTuple_GET_SIZE(items)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i) {
    PyObject* item = PyTuple_GET_ITEM(items, i);
    if (PyLong_CheckExact(item)) {
      const Py_ssize_t place = PyLong_AsSsize_t(item);
      item = place >= 0 ? PyTuple_GetItem(results, place) : PyTuple_GetItem(args, -place);  // behind the context
    }
    if (item == nullptr) throw PythonRaised();
    PyTuple_SET_ITEM(out.get(), i, Py_NewRef(item));
  }
  return out;
}

PyObject* forward(PyObject*, PyObject* args) {
  PyObject *name, *value, *context = PyTuple_GetItem(args, 0);
  if (context == nullptr) return nullptr;
  if (current == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "dynvm: forward() of a stand-in is called");
    return nullptr;
  }
  try {
    for (Py_ssize_t position = 0; PyDict_Next(current->attributes, &position, &name, &value);) {
      const bool holds_results = PyUnicode_CompareWithASCIIString(name, "to_save") == 0 || PyUnicode_CompareWithASCIIString(name, "non_differentiable") == 0;
      const Owned given = holds_results ? with_results(value, current->results, args) : Owned(Py_NewRef(value));
      if (PyObject_SetAttr(context, name, given.get()) < 0) return nullptr;
    }
  } catch (const PythonRaised&) {
    return nullptr;
  }
  return Py_NewRef(current->results);
}

// A class like the Function, with another forward(), and its apply().
struct StandIn {
  PyObject *type = nullptr, *apply = nullptr;
};

const StandIn& stand_in() {
  static const StandIn made = [] {
    static PyMethodDef method{"forward", forward, METH_VARARGS, nullptr};
    const Owned module = checked(PyImport_ImportModule("torch.autograd.function"));
    const Owned function = checked(PyObject_GetAttrString(module.get(), "Function"));
    const Owned body = checked(PyDict_New());
    const Owned own = checked(PyCFunction_New(&method, nullptr));
    if (PyDict_SetItemString(body.get(), "forward", own.get()) < 0) throw PythonRaised();
    StandIn out;
    out.type = checked(PyObject_CallFunction(reinterpret_cast<PyObject*>(Py_TYPE(function.get())), "s(O)O", "StandIn", function.get(), body.get())).release();
    const Owned super = checked(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type), function.get(), out.type, nullptr));
    out.apply = checked(PyObject_GetAttrString(super.get(), "apply")).release();  // torch's own, without what Python does before
    return out;
  }();
  return made;
}

// What torch asks the class for, beside forward().
void look_like(PyObject* function) {
  for (const char* name : {"_backward_cls", "clear_saved_tensors_on_access", "boxed_grads_call"}) {
    const Owned value(PyObject_GetAttrString(function, name));
    if (!value) PyErr_Clear();
    else if (PyObject_SetAttrString(stand_in().type, name, value.get()) < 0) throw PythonRaised();
  }
}

Owned object_of(const at::Tensor& tensor) { return checked(to_python(tensor)); }

void hook_node(PyObject* hooks, const std::vector<at::Tensor>& outputs) {
  const auto output = std::find_if(outputs.begin(), outputs.end(), [](const at::Tensor& each) { return each.defined() && each.grad_fn(); });
  if (output == outputs.end()) return;
  const Owned node = checked(PyObject_GetAttrString(object_of(*output).get(), "grad_fn"));
  for (Py_ssize_t i = 0; i + 1 < PyTuple_GET_SIZE(hooks); i += 2)
    checked(PyObject_CallMethod(node.get(), PyTuple_GET_ITEM(hooks, i) == Py_True ? "register_prehook" : "register_hook", "O", PyTuple_GET_ITEM(hooks, i + 1)));
}

at::Tensor function_output(const at::Tensor& output, at::TensorList, at::TensorList, at::IntArrayRef) { return at::alias(output); }
at::Tensor hooked(const at::Tensor& tensor) { return at::alias(tensor); }

}  // namespace

void register_function_output() {
  static torch::Library library(torch::Library::FRAGMENT, "dynvm", std::nullopt, __FILE__, __LINE__);
  static const bool once = [] {
    library.def("function_output(Tensor(a) output, Tensor[] outputs, Tensor[] inputs, int[] layout) -> Tensor(a)");
    library.def("hooked(Tensor(a) tensor) -> Tensor(a)");
    library.impl("hooked", torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(hooked)));
    library.impl("function_output", torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(function_output)));
    return true;
  }();
  (void)once;
}

std::vector<at::Tensor> apply_again(PyObject* recipe, const std::function<at::Tensor(size_t)>& value, const std::vector<at::Tensor>& inputs,
                                    const std::vector<int64_t>& layout) {
  PyObject* function = PyTuple_GetItem(recipe, 0);
  PyObject* attributes = function != nullptr ? PyTuple_GetItem(recipe, 1) : nullptr;
  if (attributes == nullptr) throw PythonRaised();
  size_t at = 2;
  const auto num_results = static_cast<size_t>(layout.at(at++));
  const std::vector<int64_t> results(layout.begin() + 3, layout.begin() + 3 + static_cast<ptrdiff_t>(2 * num_results));
  at += 2 * num_results;
  const auto num_arguments = static_cast<size_t>(layout.at(at++));

  const Owned arguments = checked(PyTuple_New(static_cast<Py_ssize_t>(num_arguments)));
  for (size_t i = 0; i < num_arguments; ++i) {
    const int64_t input = layout.at(at++);
    PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i), input < 0 ? Py_NewRef(Py_None) : object_of(inputs.at(static_cast<size_t>(input))).release());
  }
  const Owned given = checked(PyTuple_New(static_cast<Py_ssize_t>(num_results)));
  size_t num_outputs = 0;
  for (size_t i = 0; i < num_results; ++i) {
    const int64_t output = results[2 * i], argument = results[2 * i + 1];
    num_outputs += output >= 0;
    PyObject* item = argument >= 0 ? Py_NewRef(PyTuple_GET_ITEM(arguments.get(), argument)) : output >= 0 ? object_of(value(static_cast<size_t>(output))).release() : Py_NewRef(Py_None);
    PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i), item);
  }
  look_like(function);
  const Forward now{attributes, given.get()};
  const Forward* const outer = std::exchange(current, &now);
  PyObject* made = PyObject_CallObject(stand_in().apply, arguments.get());
  current = outer;
  const Owned tuple = checked(made);
  std::vector<at::Tensor> outputs(num_outputs);
  for (size_t i = 0; i < num_results; ++i)
    if (results[2 * i] >= 0) outputs.at(static_cast<size_t>(results[2 * i])) = unpack(PyTuple_GetItem(tuple.get(), static_cast<Py_ssize_t>(i)));
  if (PyTuple_GET_SIZE(recipe) > 2) hook_node(PyTuple_GET_ITEM(recipe, 2), outputs);
  return outputs;
}

void hook_again(PyObject* recipe, const at::Tensor& tensor) {
  checked(PyObject_CallMethod(object_of(tensor).get(), "register_hook", "O", PyTuple_GetItem(recipe, 0)));
}

}  // namespace dynvm::torch_bridge
