// What the tracer does with switches (runtime/base/switches.h): the bridge is told of them, and places are asked for.
#pragma once

#include <Python.h>

#include "runtime/bridge/bridge.h"

namespace dynvm::tracer {

// Once it is loaded. Names of operations that torch does not have are refused now, as nobody knows them before: a line on standard error, and a note.
void tell_switches(bridge::Bridge& bridge);

// Does the loop or function that begins there get no traces?
bool is_left_out(PyCodeObject* code, int unit);

}  // namespace dynvm::tracer
