// Which residual operations may look at a device, or at the memory of tensors, while a trace has put tensor work off.
//
// Inputs: the operation, and its operands as objects (null where one is none). Output: whether it may. Code in Python does not count: the evaluator has such work done before it
// runs any (runtime/base/pending.h). What is left are C functions. Those of Python's own types look at no tensor unless they are given one, or compare the items of a list; those of
// torch's that only read or set a mode do not either. All others may.
// Invariants: the GIL is held; never raises. Tests: tests/cuda/test_whole.py (on a machine with a GPU).
#pragma once

#include <Python.h>

#include <vector>

#include "ir/trace.h"

namespace dynvm::runtime {

bool looks_at_devices(ir::Op op, const std::vector<PyObject*>& operands);

}  // namespace dynvm::runtime
