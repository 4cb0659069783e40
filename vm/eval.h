// The evaluator's entry point.
//
// Purpose: declares the function that goes into CPython's frame evaluation slot. Inputs, outputs: eval.cpp. Tests: tests/vm/.
#pragma once

#include "vm/cpython/cpython.h"
#include "vm/frames.h"

namespace dynvm::vm {

// Runs a frame as _PyEval_EvalFrameDefault does. With tstate == nullptr it only fills g_label_table.
PyObject* evaluate_frame(PyThreadState* tstate, cpython::Frame* frame, int throwing);
// The same, counting what it executes (counting.h).
PyObject* count_frame(PyThreadState* tstate, cpython::Frame* frame, int throwing);
extern const void* const* g_label_table;

// Ends the recording of an activation; positions become fast ones.
void end_recording(Activation& activation);
const Inst* end_recording_at(Activation& activation, const Inst* ip);

}  // namespace dynvm::vm
