// __torch_function__: which tensors have one, and what torch would give to it. Invariants: the GIL is held. Tests: tests/torch, tests/whole.
#pragma once

#include <Python.h>

#include <functional>

namespace dynvm::torch_bridge {

bool overrides(PyObject* object);                                                              // see bridge::Bridge
PyObject* ask_override(const std::function<PyObject*()>& function, PyObject** asked);          // likewise

}  // namespace dynvm::torch_bridge
