// Chooses the file that knows the running CPython's internals.
//
// Purpose: the only way for the rest of vm/ to reach CPython-internal headers. Inputs: PY_VERSION_HEX. Outputs: namespace
// dynvm::vm::cpython with the same names for every version. Tests: tests/vm/.
#pragma once

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1  // before Python.h: internal headers refuse to be included without it
#endif
#include <Python.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include "vm/cpython/311.h"
#else
#error "dynvm's evaluator has no vm/cpython/ file for this CPython version yet"
#endif
