// A torch bridge without torch, for tests of generated code: a tensor is a bytearray, operations only write what they were given to a log.
//
// Tensors: bind_input takes a bytearray of exactly the storage's size. read_scalar reads element 0 of the storage. wrap gives a bytearray
// with a copy of the storage (kInput: the object itself). Calls: "test::raise" raises ValueError, "test::fill" stores its scalar in every
// element of argument 0 (f32), all others do nothing. The generator has seed 77 and always offset 12. Each function appends a tuple to `log`.
#pragma once

#include <Python.h>

#include <memory>

#include "runtime/bridge/bridge.h"

namespace dynvm::tests {

// log: a list; state_ok: a one-element list whose truth check_state gives. Both borrowed, must outlive the bridge.
std::unique_ptr<bridge::Bridge> make_fake_bridge(PyObject* log, PyObject* state_ok);

}  // namespace dynvm::tests
