// What CPython 3.12 and 3.13 have in common: monitoring, events, intrinsics.
//
// Purpose, inputs, outputs: see cpython.h. Invariants: each function has the effects of the CPython function that its comment in common.h
// or below names, in the same order where Python code can see it. Tests: tests/vm/.
#include "vm/cpython/cpython.h"

#include <cstring>

#include "vm/operations.h"

namespace dynvm::vm::cpython {

uint64_t g_quiet_version = UINT64_MAX;

namespace {

PyObject* g_look_up = nullptr;       // hidden function: its RESUME sees to whatever the eval breaker asks for
PyObject* g_intrinsic_1[MAX_INTRINSIC_1 + 1];  // hidden functions, made on demand
PyObject* g_intrinsic_2[MAX_INTRINSIC_2 + 1];

// Moves what `frame` holds into its frame object, which outlives it.
void give_to_frame_object(PyThreadState* tstate, PyFrameObject* object, Frame* frame) {
  const size_t size = reinterpret_cast<char*>(&frame->localsplus[frame->stacktop]) - reinterpret_cast<char*>(frame);
  Py_INCREF(code_of(frame));
  std::memcpy(object->_f_frame_data, frame, size);
  Frame* moved = reinterpret_cast<Frame*>(object->_f_frame_data);
  object->f_frame = moved;
  moved->owner = FRAME_OWNED_BY_FRAME_OBJECT;
  if (_PyFrame_IsIncomplete(moved)) {
    // It is dead anyway: let it look as if its first RESUME had run.
    stands_before(moved, code_units(code_of(moved)) + code_of(moved)->_co_firsttraceable + 1);
  }
  Frame* previous = _PyFrame_GetFirstComplete(moved->previous);
  moved->previous = nullptr;
  if (previous != nullptr) {
    PyFrameObject* back = previous->frame_obj;
    if (back != nullptr) {
      Py_INCREF(back);
    } else {
      back = PyThreadState_GetFrame(tstate);  // the frame is unlinked, so the current frame is its caller
    }
    object->f_back = back;
  }
  if (!_PyObject_GC_IS_TRACKED(reinterpret_cast<PyObject*>(object))) _PyObject_GC_TRACK(reinterpret_cast<PyObject*>(object));
}

// Tells the tools about an event of the current frame that has the exception that is set as its argument.
void send_exception_event(PyThreadState* tstate, Frame* frame, int event) {
  const uint8_t tools = tstate->interp->monitors.tools[event];
  if (tools == 0 || tstate->tracing != 0) return;
  PyObject* exception = PyErr_GetRaisedException();
  PyObject* offset = PyLong_FromLong(last_unit(frame) * static_cast<long>(sizeof(_Py_CODEUNIT)));
  PyObject* arguments[] = {nullptr, reinterpret_cast<PyObject*>(code_of(frame)), offset, exception};
  for (int tool = 0; tool < PY_MONITORING_TOOL_IDS; ++tool) {
    PyObject* callable = tstate->interp->monitoring_callables[tool][event];
    if ((tools >> tool & 1) == 0 || callable == nullptr || offset == nullptr) continue;
    const int old = tstate->what_event;
    tstate->what_event = event;
    ++tstate->tracing;
    PyObject* result = PyObject_Vectorcall(callable, arguments + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    --tstate->tracing;
    tstate->what_event = old;
    if (result == nullptr) break;  // its exception takes the other one's place
    Py_DECREF(result);
  }
  Py_XDECREF(offset);
  if (PyErr_Occurred()) {
    Py_DECREF(exception);
  } else {
    PyErr_SetRaisedException(exception);
  }
}

PyObject* call_numbered(PyThreadState* tstate, PyObject** functions, int opcode, int number, int most, PyObject* const* arguments, int count) {
  if (number > most) {
    PyErr_SetString(PyExc_SystemError, "invalid intrinsic function");
    return nullptr;
  }
  if (functions[number] == nullptr) functions[number] = make_hidden(count, opcode, number, nullptr);
  if (functions[number] == nullptr) return nullptr;
  return call_hidden(tstate, functions[number], arguments, static_cast<size_t>(count));
}

// INTRINSIC_STOPITERATION_ERROR: what leaves a generator instead of `exception`; new reference.
PyObject* stop_iteration_error(PyCodeObject* code, PyObject* exception) {
  const bool async_generator = (code->co_flags & CO_ASYNC_GENERATOR) != 0;
  const char* text = nullptr;
  if (PyErr_GivenExceptionMatches(exception, PyExc_StopIteration)) {
    text = async_generator                       ? "async generator raised StopIteration"
           : (code->co_flags & CO_COROUTINE) != 0 ? "coroutine raised StopIteration"
                                                  : "generator raised StopIteration";
  } else if (async_generator && PyErr_GivenExceptionMatches(exception, PyExc_StopAsyncIteration)) {
    text = "async generator raised StopAsyncIteration";
  }
  if (text == nullptr) return Py_NewRef(exception);
  PyObject* error = PyObject_CallFunction(PyExc_RuntimeError, "s", text);
  if (error == nullptr) return nullptr;
  PyException_SetCause(error, Py_NewRef(exception));
  PyException_SetContext(error, Py_NewRef(exception));
  return error;
}

}  // namespace

bool recursion_is_too_deep(PyThreadState* tstate) {
  if (tstate->recursion_headroom != 0) {
    if (tstate->py_recursion_remaining < -50) Py_FatalError("Cannot recover from Python stack overflow.");
    return false;
  }
  if (tstate->py_recursion_remaining > 0) return false;
  ++tstate->recursion_headroom;
  PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
  --tstate->recursion_headroom;
  return true;
}

// ---- monitoring

bool anything_traced(PyInterpreterState* interp) {
  for (uint8_t tools : interp->monitors.tools) {
    if (tools != 0) return true;
  }
  return false;
}

bool look_for_tools(PyThreadState* tstate) {
  if (anything_traced(tstate->interp)) return tstate->tracing == 0;  // a tool's own code is not monitored
  g_quiet_version = monitoring_version(tstate);
  return false;
}

bool has_local_tools(PyCodeObject* code) {
  for (uint8_t tools : code->_co_monitoring->local_monitors.tools) {
    if (tools != 0) return true;
  }
  return false;
}

void take_for_instrumented(PyThreadState* tstate, PyCodeObject* code) { code->_co_instrumentation_version = monitoring_version(tstate); }

void clear_frame(PyThreadState* tstate, Frame* frame) {
  PyCodeObject* code = is_generator_frame(frame) ? nullptr : code_of(frame);
  PyFrameObject* object = frame->frame_obj;
  frame->frame_obj = nullptr;
  if (object != nullptr && Py_REFCNT(object) > 1) {
    give_to_frame_object(tstate, object, frame);
    Py_DECREF(object);
  } else {
    Py_XDECREF(object);
    for (int i = 0; i < frame->stacktop; ++i) Py_XDECREF(frame->localsplus[i]);
    Py_XDECREF(frame->f_locals);
    Py_DECREF(frame->f_funcobj);
  }
  Py_XDECREF(code);
}

bool withdraw_entry(vectorcallfunc entry) {
  const auto visit = [](PyObject* object, void* given) {
    auto* function = reinterpret_cast<PyFunctionObject*>(object);
    if (PyFunction_Check(object) && function->vectorcall == *static_cast<vectorcallfunc*>(given)) function->vectorcall = g_slots.function_call;
    return 1;
  };
  PyUnstable_GC_VisitObjects(visit, &entry);
  return true;
}

bool handle_pending(PyThreadState* tstate) {
  PyObject* none = call_hidden(tstate, g_look_up, nullptr, 0);
  Py_XDECREF(none);
  return none != nullptr;
}

void finish_generator(PyThreadState* tstate, Frame* frame, int local_count, bool) {
  PyGenObject* generator = generator_of(frame);
  generator->gi_frame_state = FRAME_CLEARED;
  leave_generator(tstate, generator);
  frame->stacktop = local_count;
  clear_frame(tstate, frame);
  frame->previous = nullptr;
  Py_CLEAR(generator->gi_exc_state.exc_value);
}

PyObject* take_duplicate_key() {
  PyObject* error = PyErr_GetRaisedException();
  PyObject* arguments = reinterpret_cast<PyBaseExceptionObject*>(error)->args;
  if (arguments == nullptr || !PyTuple_Check(arguments) || PyTuple_GET_SIZE(arguments) != 1) {
    PyErr_SetRaisedException(error);
    return nullptr;
  }
  PyObject* key = Py_NewRef(PyTuple_GET_ITEM(arguments, 0));
  Py_DECREF(error);
  return key;
}

PyObject* prep_reraise_star(PyObject* orig, PyObject* list) { return PyUnstable_Exc_PrepReraiseStar(orig, list); }

void raise_import_from(PyObject* module, PyObject* name) {
  PyObject* function = make_hidden(1, IMPORT_FROM, 0, name);
  if (function == nullptr) return;
  PyObject* found = call_hidden(PyThreadState_Get(), function, &module, 1);
  Py_DECREF(function);
  if (found != nullptr) {
    Py_DECREF(found);
    PyErr_Format(PyExc_ImportError, "cannot import name %R", name);
  }
}

void raise_unknown_opcode(Frame* frame) {
  PyCodeObject* code = code_of(frame);
  const int unit = last_unit(frame);
  PyErr_Format(PyExc_SystemError, "%U:%d: unknown opcode %d", code->co_filename,
               PyCode_Addr2Line(code, unit * static_cast<int>(sizeof(_Py_CODEUNIT))), written_opcode(code, unit));
}

PyObject* intrinsic_1(PyThreadState* tstate, Frame* frame, int number, PyObject* value) {
  switch (number) {
    case INTRINSIC_IMPORT_STAR: return import_star(frame, value) ? Py_NewRef(Py_None) : nullptr;
    case INTRINSIC_STOPITERATION_ERROR: return stop_iteration_error(code_of(frame), value);
    default: return call_numbered(tstate, g_intrinsic_1, CALL_INTRINSIC_1, number, MAX_INTRINSIC_1, &value, 1);
  }
}

PyObject* intrinsic_2(PyThreadState* tstate, int number, PyObject* first, PyObject* second) {
  PyObject* arguments[] = {first, second};
  return call_numbered(tstate, g_intrinsic_2, CALL_INTRINSIC_2, number, MAX_INTRINSIC_2, arguments, 2);
}

void trace_exception(PyThreadState* tstate, Frame* frame) { send_exception_event(tstate, frame, PY_MONITORING_EVENT_RAISE); }
void trace_unwound(PyThreadState* tstate, Frame* frame) { send_exception_event(tstate, frame, PY_MONITORING_EVENT_PY_UNWIND); }

PyObject* prepare_hidden() { return g_look_up = make_hidden(0, 0, 0, nullptr); }

}  // namespace dynvm::vm::cpython
