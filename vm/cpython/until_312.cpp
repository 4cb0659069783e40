// What CPython 3.11 and 3.12 have in common: making generators, values of asynchronous generators.
//
// Purpose, inputs, outputs, invariants: see cpython.h. Tests: tests/vm/.
#include "vm/cpython/cpython.h"

namespace dynvm::vm::cpython {

namespace {

// Where a coroutine was made, a row for each frame from its caller on: sys.set_coroutine_origin_tracking_depth. New reference.
PyObject* origin_of(Frame* caller, int depth) {
  int count = 0;
  for (Frame* frame = caller; frame != nullptr && count < depth; frame = complete_frame(frame->previous)) ++count;
  PyObject* origin = PyTuple_New(count);
  if (origin == nullptr) return nullptr;
  Frame* frame = caller;
  for (int i = 0; i < count; ++i, frame = complete_frame(frame->previous)) {
    PyCodeObject* code = code_of(frame);
    PyObject* row = Py_BuildValue("OiO", code->co_filename, PyCode_Addr2Line(code, last_unit(frame) * static_cast<int>(sizeof(_Py_CODEUNIT))), code->co_name);
    if (row == nullptr) {
      Py_DECREF(origin);
      return nullptr;
    }
    PyTuple_SET_ITEM(origin, i, row);
  }
  return origin;
}

struct WrappedValue {  // layout of _PyAsyncGenWrappedValue
  PyObject_HEAD
  PyObject* value;
};

}  // namespace

PyObject* make_generator(PyThreadState* tstate, Frame* frame) {
  PyFunctionObject* function = function_of(frame);
  PyCodeObject* code = code_of(frame);
  const int kind = code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
  PyTypeObject* type = kind == CO_GENERATOR ? &PyGen_Type : kind == CO_COROUTINE ? &PyCoro_Type : &PyAsyncGen_Type;
  auto* generator = reinterpret_cast<PyGenObject*>(_PyObject_GC_NewVar(type, code->co_nlocalsplus + code->co_stacksize));
  if (generator == nullptr) return nullptr;
  generator->gi_frame_state = FRAME_CLEARED;
  keep_code(generator, code);
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
    PyObject* origin = origin_of(complete_frame(frame->previous), tstate->coroutine_origin_tracking_depth);
    if (origin == nullptr) {
      Py_DECREF(generator);
      return nullptr;
    }
    generator->gi_origin_or_finalizer = origin;
  }
  return with_frame(generator, frame);
}

PyObject* async_gen_wrap(PyObject* value) {
  _Py_async_gen_state& free = PyThreadState_Get()->interp->async_gen;
  WrappedValue* wrapped;
  if (free.value_numfree > 0) {  // where CPython's own destructor puts them
    wrapped = reinterpret_cast<WrappedValue*>(free.value_freelist[--free.value_numfree]);
    _Py_NewReference(reinterpret_cast<PyObject*>(wrapped));
  } else {
    wrapped = PyObject_GC_New(WrappedValue, &_PyAsyncGenWrappedValue_Type);
    if (wrapped == nullptr) return nullptr;
  }
  wrapped->value = Py_NewRef(value);
  PyObject_GC_Track(reinterpret_cast<PyObject*>(wrapped));
  return reinterpret_cast<PyObject*>(wrapped);
}

}  // namespace dynvm::vm::cpython
