// Python tensor objects and autograd metadata: the only part of the bridge that includes torch's expensive Python and autograd headers.
//
// Inputs and outputs: tensor objects, at::Tensors. Invariants: the GIL is held; a null or -1 result has set a Python exception.
// Tests: tests/torch.
#pragma once

#include <Python.h>
#include <ATen/core/Tensor.h>

#include <exception>
#include <string>

#include "runtime/bridge/bridge.h"

namespace dynvm::torch_bridge {

// Finds torch.nn.Parameter; call once. False with a Python exception when torch is not there.
bool load_python_classes();

bool is_tensor_object(PyObject* object);            // an instance, subclasses included
bool is_plain_tensor(PyObject* object);             // exactly torch.Tensor
bool is_plain_parameter(PyObject* object);          // exactly torch.nn.Parameter
bool dies_quietly(PyObject* object);                // see bridge::Bridge
const at::Tensor& unpack(PyObject* tensor);         // borrowed
PyObject* to_python(const at::Tensor& tensor);      // new reference

// Hooks on the tensor, on its gradient accumulator, or a retained gradient of a non-leaf.
bool has_hooks(const at::Tensor& tensor);
bool has_python_hooks_only(PyObject* tensor);  // see bridge::TensorObject
bridge::TensorObject describe_tensor(PyObject* object);
std::string grad_fn_name(const at::Tensor& tensor);

PyObject* get_grad_object(PyObject* tensor);
int set_grad_object(PyObject* tensor, PyObject* grad_or_none);

// Gives `tensor` an autograd node called `name`, as its result number `output_nr`, that raises what torch raises when a graph is used
// after it has been freed.
void attach_freed_graph(const at::Tensor& tensor, const std::string& name, int32_t output_nr);

// tensor, which has a node, gets the one of `from`.
void take_graph(PyObject* tensor, PyObject* from);
void take_contents(PyObject* tensor, PyObject* from, int writes);
at::Tensor copy_with_graph(const at::Tensor& tensor);  // on memory of its own, with the same autograd node

bool autograd_engine_is_running();                  // on this thread
bool saved_tensor_hooks_active();

// The Python exception that torch itself would raise for a C++ one.
void set_python_error(const std::exception_ptr& error);

// Runs function(), which may throw and may warn, as one of torch's own bindings does. -1 with a Python exception when it threw or when a
// warning was turned into an error, else its result.
int guarded(int (*function)(void*), void* argument);

template <class F>
int guarded_call(F&& function) {
  return guarded([](void* f) { return (*static_cast<std::remove_reference_t<F>*>(f))(); }, &function);
}

}  // namespace dynvm::torch_bridge
