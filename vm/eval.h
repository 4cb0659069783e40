// The evaluator's entry point.
//
// Purpose: declares the function that goes into CPython's frame evaluation slot. Inputs, outputs: eval.cpp. Tests: tests/vm/.
#pragma once

#include "vm/cpython/cpython.h"
#include "vm/frames.h"

namespace dynvm::vm {

// Runs a frame as _PyEval_EvalFrameDefault does.
PyObject* evaluate_frame(PyThreadState* tstate, cpython::Frame* frame, int throwing);
enum class Start : uint8_t {
  kHere,
  kPastResume,  // this is a kResume with nothing to do
  kThrow,       // from the exception that is set
};
inline Start start_of(const Code* code) {
  return code->idle_resume && !cpython::code_is_monitored(code->code) ? Start::kPastResume : Start::kHere;
}
// Runs a frame from an instruction of fast code on. The thread is not traced. With tstate == nullptr it only fills g_label_table.
PyObject* run_frame(PyThreadState* tstate, cpython::Frame* frame, Inst* ip, Start start);
// The same, counting what it executes (counting.h).
PyObject* count_run(PyThreadState* tstate, cpython::Frame* frame, Inst* ip, Start start);
extern const void* const* g_label_table;
extern decltype(&run_frame) g_run;  // the one that is installed

// Ends the recording of an activation; positions become fast ones.
void end_recording(Activation& activation);
const Inst* end_recording_at(Activation& activation, const Inst* ip);
// An activation that has just been entered joins the one that records, whose C code entered it.
const Inst* join_recording(Activation& activation, const Inst* ip);
// The entry frame of a recorded activation is left with `result`: the one that it joined records on, or recording ends.
void leave_recorded(Activation& activation, const Inst* ip, PyObject** sp, cpython::Frame* frame, PyObject* result);

}  // namespace dynvm::vm
