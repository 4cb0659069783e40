// CPython 3.12: frames and generators, which libpython 3.12 does not let others make or end.
//
// Purpose, inputs, outputs: see cpython.h. Invariants: each function has the effects of the CPython function that its comment in common.h
// or below names, in the same order where Python code can see it. Tests: tests/vm/.
#include "vm/cpython/cpython.h"

#include "vm/vm.h"

namespace dynvm::vm::cpython {

namespace {

PyObject* origin_of(Frame* caller, int depth) {
  int count = 0;
  for (Frame* frame = caller; frame != nullptr && count < depth; frame = _PyFrame_GetFirstComplete(frame->previous)) ++count;
  PyObject* origin = PyTuple_New(count);
  if (origin == nullptr) return nullptr;
  Frame* frame = caller;
  for (int i = 0; i < count; ++i, frame = _PyFrame_GetFirstComplete(frame->previous)) {
    PyObject* row = Py_BuildValue("OiO", frame->f_code->co_filename, PyUnstable_InterpreterFrame_GetLine(frame), frame->f_code->co_name);
    if (row == nullptr) {
      Py_DECREF(origin);
      return nullptr;
    }
    PyTuple_SET_ITEM(origin, i, row);
  }
  return origin;
}

}  // namespace

PyObject* make_generator(PyThreadState* tstate, Frame* frame) {
  PyFunctionObject* function = function_of(frame);
  PyCodeObject* code = frame->f_code;
  const int kind = code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
  PyTypeObject* type = kind == CO_GENERATOR ? &PyGen_Type : kind == CO_COROUTINE ? &PyCoro_Type : &PyAsyncGen_Type;
  auto* generator = reinterpret_cast<PyGenObject*>(_PyObject_GC_NewVar(type, _PyFrame_NumSlotsForCodeObject(code)));
  if (generator == nullptr) return nullptr;
  generator->gi_frame_state = FRAME_CLEARED;
  generator->gi_weakreflist = nullptr;
  generator->gi_exc_state.exc_value = nullptr;
  generator->gi_exc_state.previous_item = nullptr;
  generator->gi_name = Py_NewRef(function->func_name);
  generator->gi_qualname = Py_NewRef(function->func_qualname);
  generator->gi_origin_or_finalizer = nullptr;
  generator->gi_hooks_inited = 0;
  generator->gi_closed = 0;
  generator->gi_running_async = 0;
  _PyObject_GC_TRACK(reinterpret_cast<PyObject*>(generator));
  if (kind == CO_COROUTINE && tstate->coroutine_origin_tracking_depth != 0) {
    PyObject* origin = origin_of(_PyFrame_GetFirstComplete(frame->previous), tstate->coroutine_origin_tracking_depth);
    if (origin == nullptr) {
      Py_DECREF(generator);
      return nullptr;
    }
    generator->gi_origin_or_finalizer = origin;
  }
  return with_frame(generator, frame);
}

void mark_position(PyGenObject* generator) {
  if (frame_of(generator)->prev_instr->op.code != RETURN_GENERATOR) generator->gi_frame_state = FRAME_SUSPENDED;
}

PyCodeObject* code_of_generator(PyGenObject* generator) { return frame_of(generator)->f_code; }

bool delegates(PyGenObject* generator) {
  if (generator->gi_frame_state >= FRAME_CLEARED || generator->gi_frame_state == FRAME_CREATED) return false;
  const Frame* frame = frame_of(generator);
  const Decoded next = decode_unit(frame->f_code, next_unit(frame), 0);
  return next.info.op == Op::kResume && next.arg >= 2;
}

}  // namespace dynvm::vm::cpython
