// Carries out one operation of ir/ops.def through the helper that compiled traces call.
//
// Purpose: the recorder executes an instruction and records it as one thing; exits make what was not made.
// Tests: tests/exec/test_objects.py.
#pragma once

#include <Python.h>

#include <cstdint>

#include "ir/trace.h"

namespace dynvm::runtime {

// args: borrowed, null where the op allows it; names: keyword names of a call, or null. On success *result is a new reference (ops with an
// object result; null at an iterator's end or for a missing item) or *truth is set (bool results); either may be null where the op has no
// such result. False: a Python exception is set; an op without a helper raises SystemError.
[[nodiscard]] bool execute(ir::Op op, int64_t imm, PyObject* const* args, int count, PyObject* names, PyObject** result, int* truth);

}  // namespace dynvm::runtime
