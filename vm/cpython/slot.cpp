// The evaluation slot while CPython's evaluator runs frames of ours.
//
// Purpose: a frame that was handed over, and all that it calls while it is traced, goes on as it would without dynvm. With a function in
// the slot CPython's evaluator calls Python functions through C: it holds their arguments until they return, so that objects die later,
// and tools are told of other calls. Inputs, outputs: common.h.
// Invariants: the slot is empty from the first hand-over until nothing is traced any more or the last frame that was handed over has ended,
// in whatever thread. Python calls of frames that our evaluator runs in other threads stay in it (recover_slot in eval.cpp).
// Method: a frame stays with CPython's evaluator to its end, which for a script's own is that of the program, and no event tells that the
// last tool has gone. It is looked for after each audited operation: sys.settrace, sys.setprofile and sys.monitoring.register_callback are
// audited, before they take effect, and so are imports, open() and many others. What such a frame calls from then on has its arguments held
// by it, as always where a function is in the slot (PEP 523).
// Functions that C enters directly (entry.cpp) have CPython's own entry while the slot is left: from 3.12 on its evaluator would call others
// through C. The walk over all objects that takes it from them is made for the first vm_withdrawals times that tools are switched on; no function
// gets the direct entry after that.
// Tests: tests/vm/scripts/tracing_*.py, tests/vm/test_native.py.
#include "runtime/base/heuristics.h"
#include "vm/cpython/cpython.h"

namespace dynvm::vm::cpython {

namespace {

_PyFrameEvalFunction g_ours = nullptr;
bool g_left = false, g_asked = false, g_listens = false;
uint64_t g_running = 0;  // frames that were handed over and have not ended
vectorcallfunc g_entry = nullptr;  // functions may have it
int g_withdrawn = 0;               // times that it was taken from all of them

void take_back(PyInterpreterState* interp) {
  if (!g_left) return;
  g_left = false;
  if (interp->eval_frame == nullptr) _PyInterpreterState_SetEvalFrameFunc(interp, g_ours);
}

int look_again(void*) {
  PyInterpreterState* interp = PyInterpreterState_Main();
  g_asked = false;
  if (!anything_traced(interp)) take_back(interp);
  return 0;
}

int after_audit(const char*, PyObject*, void*) {
  if (g_left && !g_asked) g_asked = Py_AddPendingCall(look_again, nullptr) == 0;
  return 0;
}

void leave(PyInterpreterState* interp) {
  if (!g_listens) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    g_listens = PySys_AddAuditHook(after_audit, nullptr) == 0;
    PyErr_Restore(type, value, traceback);
  }
  g_left = true;
  if (g_entry != nullptr && withdraw_entry(g_entry)) {
    ++g_withdrawn;
    g_entry = nullptr;
  }
  _PyInterpreterState_SetEvalFrameFunc(interp, _PyEval_EvalFrameDefault);
}

}  // namespace

void prepare_slot(_PyFrameEvalFunction function) {
  g_ours = function;
  g_left = false;
}

bool slot_is_left() { return g_left; }

void set_entry(PyFunctionObject* function, vectorcallfunc entry) {
  if (g_left || g_withdrawn >= base::heuristics().vm_withdrawals || !has_fast_locals(reinterpret_cast<PyCodeObject*>(function->func_code))) return;
  g_entry = function->vectorcall = entry;
}

PyObject* run_foreign(PyThreadState* tstate, Frame* frame, int throwing) {
  PyInterpreterState* interp = tstate->interp;
  if (g_ours != nullptr && interp->eval_frame == g_ours) leave(interp);
  ++g_running;
  PyObject* result = _PyEval_EvalFrameDefault(tstate, frame, throwing);
  if (--g_running == 0) take_back(interp);
  return result;
}

}  // namespace dynvm::vm::cpython
