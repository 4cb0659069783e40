// The autograd nodes that a script sees of a graph that is another one, or none any more: with the name, and in Python the class's name, that eager's would have. (What eager's own classes have beside, as
// `_saved_self`, these have not.)
//
// Invariants: the GIL is held. Tests: tests/traces/cases/graph_nodes.py, graphs_handed_out.py.
#pragma once

#include <string>

#include "runtime/torch/new_node.h"

namespace dynvm::torch_bridge {

// freed: it raises what torch raises when a graph is used after it has been freed; else it passes on what it is given.
NodePointer new_shown_node(const std::string& name, bool freed);

}  // namespace dynvm::torch_bridge
