// What CPython 3.11 and 3.12 have in common; included by their files only.
//
// Purpose: position of a suspended frame, the breaker's word, free floats. Inputs, outputs, invariants: cpython.h. Tests: tests/vm/.
#pragma once

namespace dynvm::vm::cpython {

inline int8_t suspended_state(int) { return FRAME_SUSPENDED; }  // of a generator, by YIELD_VALUE's argument
inline const uint16_t* next_position(const Frame* frame) { return reinterpret_cast<uint16_t*>(frame->prev_instr) + 1; }
inline const int* eval_breaker_word(PyThreadState* tstate) { return &tstate->interp->ceval.eval_breaker._value; }

struct FloatList {  // free floats, chained by ob_type
  _Py_float_state* state;
  explicit FloatList(PyThreadState* tstate) : state(&tstate->interp->float_state) {}
  PyFloatObject* take() const {
    PyFloatObject* free = state->free_list;
    if (free != nullptr) {
      state->free_list = reinterpret_cast<PyFloatObject*>(Py_TYPE(reinterpret_cast<PyObject*>(free)));
      --state->numfree;
    }
    return free;
  }
  bool give(PyObject* object) const {
    if (state->numfree >= PyFloat_MAXFREELIST) return false;
    ++state->numfree;
    object->ob_type = reinterpret_cast<PyTypeObject*>(state->free_list);
    state->free_list = reinterpret_cast<PyFloatObject*>(object);
    return true;
  }
};

}  // namespace dynvm::vm::cpython
