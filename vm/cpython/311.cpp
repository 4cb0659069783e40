// CPython 3.11: frames, generators and the operations that libpython 3.11 hides.
//
// Purpose, inputs, outputs: see cpython.h. Invariants: each function has the effects of the CPython function that its comment in common.h
// or below names, in the same order where Python code can see it. Tests: tests/vm/.
#include "vm/cpython/cpython.h"

#include <cstdio>
#include <cstring>

namespace dynvm::vm::cpython {

namespace {

PyObject* g_prep_reraise_star = nullptr;  // hidden function

// Moves what `frame` holds into its frame object, which outlives it.
void give_to_frame_object(PyThreadState* tstate, PyFrameObject* object, Frame* frame) {
  const size_t size = reinterpret_cast<char*>(&frame->localsplus[frame->stacktop]) - reinterpret_cast<char*>(frame);
  std::memcpy(object->_f_frame_data, frame, size);
  Frame* moved = reinterpret_cast<Frame*>(object->_f_frame_data);
  object->f_frame = moved;
  moved->owner = FRAME_OWNED_BY_FRAME_OBJECT;
  if (_PyFrame_IsIncomplete(moved)) {
    // It is dead anyway: let it look as if its first RESUME had run.
    moved->prev_instr = _PyCode_CODE(moved->f_code) + moved->f_code->_co_firsttraceable;
  }
  Frame* previous = moved->previous;
  while (previous != nullptr && _PyFrame_IsIncomplete(previous)) previous = previous->previous;
  if (previous != nullptr) {
    PyFrameObject* back = previous->frame_obj;
    if (back != nullptr) {
      Py_INCREF(back);
    } else {
      back = PyThreadState_GetFrame(tstate);  // the frame is unlinked, so the current frame is its caller
      if (back == nullptr) PyErr_Clear();
    }
    object->f_back = back;
  }
  moved->previous = nullptr;
  if (!_PyObject_GC_IS_TRACKED(reinterpret_cast<PyObject*>(object))) _PyObject_GC_TRACK(reinterpret_cast<PyObject*>(object));
}

}  // namespace

void clear_frame(PyThreadState* tstate, Frame* frame) {
  if (PyFrameObject* object = frame->frame_obj) {
    frame->frame_obj = nullptr;
    if (Py_REFCNT(object) > 1) {
      give_to_frame_object(tstate, object, frame);
      Py_DECREF(object);
      return;
    }
    Py_DECREF(object);
  }
  for (int i = 0; i < frame->stacktop; ++i) Py_XDECREF(frame->localsplus[i]);
  Py_XDECREF(frame->f_locals);
  Py_DECREF(frame->f_func);
  Py_DECREF(frame->f_code);
}

bool withdraw_entry(vectorcallfunc) { return false; }

bool handle_pending(PyThreadState* tstate) {
  PyInterpreterState* interp = tstate->interp;
  _ceval_runtime_state* runtime = &_PyRuntime.ceval;
  _ceval_state* state = &interp->ceval;
  if (__atomic_load_n(&runtime->signals_pending._value, __ATOMIC_RELAXED) != 0 ||
      __atomic_load_n(&state->pending.calls_to_do._value, __ATOMIC_RELAXED) != 0) {
    if (Py_MakePendingCalls() != 0) return false;
  }
  if (__atomic_load_n(&state->gil_drop_request._value, __ATOMIC_RELAXED) != 0) {
    PyEval_RestoreThread(PyEval_SaveThread());
  }
  if (tstate->async_exc != nullptr) {
    PyObject* exception = tstate->async_exc;
    tstate->async_exc = nullptr;
    state->pending.async_exc = 0;
    // A request that comes between the two stores sets the word again or is seen by the loads.
    __atomic_store_n(&state->eval_breaker._value, 0, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&state->gil_drop_request._value, __ATOMIC_SEQ_CST) |
        __atomic_load_n(&runtime->signals_pending._value, __ATOMIC_SEQ_CST) |
        __atomic_load_n(&state->pending.calls_to_do._value, __ATOMIC_SEQ_CST)) {
      __atomic_store_n(&state->eval_breaker._value, 1, __ATOMIC_SEQ_CST);
    }
    _PyErr_SetNone(tstate, exception);
    Py_DECREF(exception);
    return false;
  }
  return true;
}

PyCodeObject* code_of_generator(PyGenObject* generator) { return generator->gi_code; }

bool delegates(PyGenObject* generator) {
  if (generator->gi_frame_state != FRAME_SUSPENDED) return false;
  const _Py_CODEUNIT next = frame_of(generator)->prev_instr[1];
  const int opcode = _Py_OPCODE(next);
  return (opcode == RESUME || opcode == RESUME_QUICK) && _Py_OPARG(next) >= 2;
}

void mark_position(PyGenObject* generator) {
  if (_Py_OPCODE(*frame_of(generator)->prev_instr) != RETURN_GENERATOR) generator->gi_frame_state = FRAME_SUSPENDED;
}

void finish_generator(PyThreadState* tstate, Frame* frame, int local_count, bool raised) {
  PyGenObject* generator = generator_of(frame);
  leave_generator(tstate, generator);
  frame->previous = nullptr;
  if (raised) {
    const bool coroutine = PyCoro_CheckExact(generator);
    if (PyErr_ExceptionMatches(PyExc_StopIteration)) {
      _PyErr_FormatFromCause(PyExc_RuntimeError, "%s",
                             coroutine ? "coroutine raised StopIteration" : "generator raised StopIteration");
    }
  }
  Py_CLEAR(generator->gi_exc_state.exc_value);
  generator->gi_frame_state = FRAME_CLEARED;
  frame->stacktop = local_count;
  clear_frame(tstate, frame);
}

PyObject* take_exception(PyThreadState* tstate) {
  PyObject *type = std::exchange(tstate->curexc_type, nullptr), *value = std::exchange(tstate->curexc_value, nullptr);
  PyObject* traceback = std::exchange(tstate->curexc_traceback, nullptr);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyException_SetTraceback(value, traceback != nullptr ? traceback : Py_None);
  Py_XDECREF(traceback);
  Py_XDECREF(type);
  return value;
}

void set_exception(PyObject* exception) {
  PyErr_Restore(Py_NewRef(PyExceptionInstance_Class(exception)), exception, PyException_GetTraceback(exception));
}

PyObject* take_duplicate_key() {
  // Only CPython itself sets an exception that is not made yet, with the arguments in its value's place.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (value == nullptr || !PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 1) {
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  PyObject* key = Py_NewRef(PyTuple_GET_ITEM(value, 0));
  Py_XDECREF(type);
  Py_DECREF(value);
  Py_XDECREF(traceback);
  return key;
}

PyObject* prep_reraise_star(PyObject* orig, PyObject* list) {
  PyObject* arguments[] = {orig, list};
  return call_hidden(PyThreadState_Get(), g_prep_reraise_star, arguments, 2);
}

// These are instructions of their own in 3.11.
PyObject* intrinsic_1(PyThreadState*, Frame*, int, PyObject*) { return nullptr; }
PyObject* intrinsic_2(PyThreadState*, int, PyObject*, PyObject*) { return nullptr; }

void raise_import_from(PyObject* module, PyObject* name) {
  PyObject* package = PyObject_GetAttrString(module, "__name__");
  if (package != nullptr && !PyUnicode_Check(package)) Py_CLEAR(package);
  if (package == nullptr) PyErr_Clear();
  PyObject* path = PyModule_GetFilenameObject(module);
  PyObject* shown = package != nullptr ? Py_NewRef(package) : PyUnicode_FromString("<unknown module name>");
  PyObject* message = nullptr;
  if (shown != nullptr) {
    if (path == nullptr || !PyUnicode_Check(path)) {
      PyErr_Clear();
      message = PyUnicode_FromFormat("cannot import name %R from %R (unknown location)", name, shown);
      PyErr_SetImportError(message, package, nullptr);
    } else {
      PyObject* spec = PyObject_GetAttrString(module, "__spec__");
      const char* format = _PyModuleSpec_IsInitializing(spec)
                               ? "cannot import name %R from partially initialized module %R "
                                 "(most likely due to a circular import) (%S)"
                               : "cannot import name %R from %R (%S)";
      Py_XDECREF(spec);
      message = PyUnicode_FromFormat(format, name, shown, path);
      PyErr_SetImportError(message, package, path);
    }
  }
  Py_XDECREF(message);
  Py_XDECREF(shown);
  Py_XDECREF(package);
  Py_XDECREF(path);
}

void raise_unknown_opcode(Frame* frame) {
  PyCodeObject* code = code_of(frame);
  const int unit = last_unit(frame);
  std::fprintf(stderr, "XXX lineno: %d, opcode: %d\n", PyCode_Addr2Line(code, unit * static_cast<int>(sizeof(_Py_CODEUNIT))),
               written_opcode(code, unit));
  PyErr_SetString(PyExc_SystemError, "unknown opcode");
}

// ---- tracing

namespace {

bool call_trace(PyThreadState* tstate, Py_tracefunc function, PyObject* object, Frame* frame, int what, PyObject* argument) {
  if (tstate->tracing) return true;
  PyFrameObject* shown = frame_object(tstate, frame);
  if (shown == nullptr) return true;
  const int old = tstate->tracing_what;
  tstate->tracing_what = what;
  shown->f_lineno = PyFrame_GetLineNumber(shown);
  PyThreadState_EnterTracing(tstate);
  const int status = function(object, shown, what, argument);
  shown->f_lineno = 0;
  PyThreadState_LeaveTracing(tstate);
  tstate->tracing_what = old;
  Py_DECREF(shown);
  return status == 0;
}

}  // namespace

void trace_exception(PyThreadState* tstate, Frame* frame) {
  if (tstate->c_tracefunc == nullptr) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (value == nullptr) value = Py_NewRef(Py_None);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* argument = PyTuple_Pack(3, type, value, traceback != nullptr ? traceback : Py_None);
  bool good = true;
  if (argument != nullptr) {
    good = call_trace(tstate, tstate->c_tracefunc, tstate->c_traceobj, frame, PyTrace_EXCEPTION, argument);
    Py_DECREF(argument);
  }
  if (good) {
    PyErr_Restore(type, value, traceback);
  } else {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  }
}

void trace_unwound(PyThreadState* tstate, Frame* frame) {
  for (int i = 0; i < 2; ++i) {
    Py_tracefunc function = i == 0 ? tstate->c_tracefunc : tstate->c_profilefunc;
    if (function == nullptr) continue;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (call_trace(tstate, function, i == 0 ? tstate->c_traceobj : tstate->c_profileobj, frame, PyTrace_RETURN, nullptr)) {
      PyErr_Restore(type, value, traceback);
    } else {
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(traceback);
    }
  }
}

bool anything_traced(PyInterpreterState* interp) {
  PyThread_acquire_lock(_PyRuntime.interpreters.mutex, WAIT_LOCK);
  const PyThreadState* thread = interp->threads.head;
  while (thread != nullptr && thread->c_tracefunc == nullptr && thread->c_profilefunc == nullptr) thread = thread->next;
  PyThread_release_lock(_PyRuntime.interpreters.mutex);
  return thread != nullptr;
}

PyObject* prepare_hidden() { return g_prep_reraise_star = make_hidden(2, PREP_RERAISE_STAR, 0, nullptr); }

}  // namespace dynvm::vm::cpython
