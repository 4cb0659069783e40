// Functions that do what functions of torch, and of what is called beside it, do at less cost.
//
// Inputs: a callable that a trace is about to call. Output: one to call in its place, or null. Invariants: nothing that the script can see
// tells them apart; where that depends on torch's state, the shortcut asks each time and calls the original.
// Tests: tests/traces/cases/record_function.py, signatures.py.
#pragma once

#include <Python.h>

#include <string>

namespace dynvm::torch_bridge {

// A borrowed reference that stays valid. No Python exception is left set.
PyObject* shortcut_of(PyObject* callee);
// The shortcuts, and the functions that only traces call (outside_graphs.h), by their names; "" and null where there is none.
std::string shortcut_name(PyObject* shortcut);
PyObject* shortcut_named(const std::string& name);

}  // namespace dynvm::torch_bridge
