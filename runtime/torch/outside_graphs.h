// Graphs that a trace has not recorded, where autograd's engine comes to them from one that it has.
//
// Invariants: the GIL is held. Tests: tests/traces/cases/graphs_from_outside.py.
#pragma once

#include <Python.h>

#include <memory>
#include <vector>

#include "runtime/bridge/bridge.h"

namespace dynvm::torch_bridge {

// See bridge::Bridge::cut_graph.
std::unique_ptr<bridge::GraphCut> cut_graph(const std::vector<PyObject*>& roots, const std::vector<PyObject*>& outsiders);

// The function graphs_are_apart(count, *tensors): does the engine reach none of the first `count` tensors from the graphs of the others? It looks at a bounded number of nodes, and says no
// where there are more. A tensor that is among both is not behind itself. Named for shortcut_named (shortcuts.h).
inline constexpr const char* kApartName = "graphs_are_apart";
PyObject* graphs_are_apart(PyObject*, PyObject* const* args, Py_ssize_t count);

}  // namespace dynvm::torch_bridge
