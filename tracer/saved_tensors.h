// Does a backward() through an autograd graph take something from it? Each node drops the tensors that it has kept for its gradient, and raises when it is run again. A graph of sums,
// views and the like keeps none, and can be run again and again.
//
// Method: a node's class in Python has an attribute `_raw_saved_NAME` for each tensor that nodes of its kind can keep, and `_saved_NAME`, which is None where this one does not. A class
// that autograd has not generated, as torch.autograd.Function's, may keep anything.
// Invariants: runs no code of the script; hooks on what is kept are not called. Tests: tests/traces/cases/graphs_that_keep_nothing.py.
#pragma once

#include <Python.h>

namespace dynvm::tracer {

// Does the graph behind this tensor keep a tensor? True too where it cannot be known, and for a graph that is too large to look through.
bool keeps_tensors(PyObject* tensor);

}  // namespace dynvm::tracer
