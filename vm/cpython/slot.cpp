// The evaluation slot while CPython's evaluator runs frames of ours.
//
// Purpose: a frame that was handed over, and all that it calls, goes on as it would without dynvm. With a function in the slot CPython's
// evaluator calls Python functions through C: it holds their arguments until they return, so that objects die later, and tools are told
// of other calls. So the slot is empty as long as there is such a frame, also when it is traced no longer, because it stays with CPython's
// evaluator to its end. Inputs, outputs: common.h.
// Invariants: the slot is empty from the first hand-over until the last frame that was handed over has ended, in whatever thread. Python
// calls of frames that our evaluator runs in other threads stay in it (recover_slot in eval.cpp). Tests: tests/vm/scripts/tracing_*.py.
#include "vm/cpython/cpython.h"

namespace dynvm::vm::cpython {

namespace {

_PyFrameEvalFunction g_ours = nullptr;
bool g_left = false;
uint64_t g_running = 0;  // frames that were handed over and have not ended

}  // namespace

void prepare_slot(_PyFrameEvalFunction function) {
  g_ours = function;
  g_left = false;
}

bool slot_is_left() { return g_left; }

PyObject* run_foreign(PyThreadState* tstate, Frame* frame, int throwing) {
  PyInterpreterState* interp = tstate->interp;
  if (g_ours != nullptr && interp->eval_frame == g_ours) {
    g_left = true;
    _PyInterpreterState_SetEvalFrameFunc(interp, _PyEval_EvalFrameDefault);
  }
  ++g_running;
  PyObject* result = _PyEval_EvalFrameDefault(tstate, frame, throwing);
  if (--g_running == 0 && g_left) {
    g_left = false;
    if (interp->eval_frame == nullptr) _PyInterpreterState_SetEvalFrameFunc(interp, g_ours);
  }
  return result;
}

}  // namespace dynvm::vm::cpython
