// CPython 3.12: what differs from other versions; see cpython.h for the interface.
//
// Purpose: layouts and contracts of 3.12's headers (equal over all 3.12.x). Inputs, outputs: CPython objects; nothing here keeps state
//   but g_quiet_version. Invariants: functions that return PyObject* or bool-with-exception say so. All need the GIL.
// Tests: tests/vm/ (test_decode.py checks the opcode table against the headers' numbers).
#pragma once

#ifdef HAVE_STD_ATOMIC
#undef HAVE_STD_ATOMIC  // the headers would use C11 atomics, which C++ does not have
#endif
extern "C" {
#include <internal/pycore_ceval.h>
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_floatobject.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_genobject.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_intrinsics.h>
#include <internal/pycore_moduleobject.h>
#include <internal/pycore_object.h>
#include <internal/pycore_pyerrors.h>
#include <internal/pycore_pymem.h>
#include <internal/pycore_runtime.h>
#include <opcode.h>
}

namespace dynvm::vm::cpython {

// ---- position

inline uint16_t* code_units(PyCodeObject* code) { return reinterpret_cast<uint16_t*>(_PyCode_CODE(code)); }
// The opcode at a unit as it stands there, with what sys.monitoring wrote over it undone where that is kept aside.
inline int written_opcode(PyCodeObject* code, int unit) {
  int opcode = code_units(code)[unit] & 255;
  if (opcode == INSTRUMENTED_LINE) opcode = code->_co_monitoring->lines[unit].original_opcode;
  if (opcode == INSTRUMENTED_INSTRUCTION) opcode = code->_co_monitoring->per_instruction_opcodes[unit];
  return opcode;
}
inline PyCodeObject* code_of(const Frame* frame) { return frame->f_code; }
inline PyFunctionObject* function_of(const Frame* frame) { return reinterpret_cast<PyFunctionObject*>(frame->f_funcobj); }
inline void runs_at(Frame* frame, uint16_t* unit) { frame->prev_instr = reinterpret_cast<_Py_CODEUNIT*>(unit); }
inline void stands_before(Frame* frame, uint16_t* unit) { frame->prev_instr = reinterpret_cast<_Py_CODEUNIT*>(unit) - 1; }
inline int last_unit(const Frame* frame) { return static_cast<int>(frame->prev_instr - _PyCode_CODE(frame->f_code)); }
inline int next_unit(const Frame* frame) { return last_unit(frame) + 1; }

// Takes both references.
inline void init_frame(Frame* frame, PyFunctionObject* function, PyCodeObject* code) {
  frame->f_code = code;
  frame->f_funcobj = reinterpret_cast<PyObject*>(function);
  frame->f_globals = function->func_globals;
  frame->f_builtins = function->func_builtins;
  frame->f_locals = nullptr;
  frame->frame_obj = nullptr;
  frame->prev_instr = _PyCode_CODE(code) - 1;
  frame->stacktop = -1;
  frame->return_offset = 0;
  frame->owner = FRAME_OWNED_BY_THREAD;
}

// ---- recursion: Python frames are counted apart from C

bool recursion_is_too_deep(PyThreadState* tstate);  // with RecursionError set
inline bool enter_recursion(PyThreadState* tstate) {  // false with RecursionError set, count unchanged
  if (tstate->py_recursion_remaining-- > 0) [[likely]] return true;
  if (!recursion_is_too_deep(tstate)) return true;
  ++tstate->py_recursion_remaining;
  return false;
}
inline void leave_recursion(PyThreadState* tstate) { ++tstate->py_recursion_remaining; }
inline void count_recursion(PyThreadState* tstate) { --tstate->py_recursion_remaining; }  // for a frame that is left at once
inline void add_levels(PyThreadState* tstate, int count) {
  tstate->py_recursion_remaining += count;
  tstate->c_recursion_remaining += 2 * count;
}

// ---- entry and breaker

// The evaluator clears the frame that it was entered with and releases its memory; it also ends or suspends a generator.
inline constexpr bool kEvaluatorEndsFrames = true;
inline constexpr int kEntryUnits = 2;  // of C recursion, as CPython's own evaluator counts itself

inline Frame* current_frame(PyThreadState* tstate) { return tstate->cframe->current_frame; }

class Entry {
 public:
  // false with an exception: too deep.
  [[nodiscard]] bool begin(PyThreadState* tstate, Frame* frame) {
    previous_ = tstate->cframe;
    cframe_.previous = previous_;
    cframe_.current_frame = frame;
    tstate->cframe = &cframe_;
    frame->previous = previous_->current_frame;
    tstate->c_recursion_remaining -= kEntryUnits - 1;
    if (_Py_EnterRecursiveCallTstate(tstate, "") == 0) [[likely]] return true;
    --tstate->c_recursion_remaining;
    return false;
  }
  void link(PyThreadState*, Frame* frame) { cframe_.current_frame = frame; }
  Frame* current(PyThreadState*) const { return cframe_.current_frame; }
  void end(PyThreadState* tstate) {
    tstate->cframe = previous_;
    tstate->c_recursion_remaining += kEntryUnits;
  }

 private:
  _PyCFrame cframe_;
  _PyCFrame* previous_;
};

// CPython's evaluator runs a frame because it is traced. With a function in the evaluation slot it would not go on in place at Python
// calls, which tools can tell: the slot is left empty while there are tools.
PyObject* run_traced(PyThreadState* tstate, Frame* frame, int throwing);
// The evaluation slot may hold this function (nullptr: no longer), or has been left to CPython's evaluator for a while.
void prepare_slot(_PyFrameEvalFunction function);
bool slot_is_left(PyInterpreterState* interp);

inline const int* eval_breaker_word(PyThreadState* tstate) { return &tstate->interp->ceval.eval_breaker._value; }

// The interpreter's monitoring version for which it is known that no tool looks at anything. sys.settrace() and sys.setprofile()
// are tools too.
extern uint64_t g_quiet_version;
bool look_for_tools(PyThreadState* tstate);  // the version is another one: must this thread's frames be monitored
inline bool traced(PyThreadState* tstate) {
  return tstate->interp->monitoring_version != g_quiet_version && look_for_tools(tstate);
}

class Breaker {
 public:
  Breaker(PyThreadState* tstate, const Entry&)
      : word_(eval_breaker_word(tstate)), version_(&tstate->interp->monitoring_version), tstate_(tstate) {}
  bool raised() const { return pending() || *version_ != g_quiet_version; }
  bool pending() const { return __atomic_load_n(word_, __ATOMIC_RELAXED) != 0; }
  bool traced() const { return *version_ != g_quiet_version && look_for_tools(tstate_); }

 private:
  const int* word_;
  const uint64_t* version_;
  PyThreadState* tstate_;
};
// Tools that look at this code object only (sys.monitoring.set_local_events).
bool has_local_tools(PyCodeObject* code);
inline bool code_is_monitored(PyCodeObject* code) { return code->_co_monitoring != nullptr && has_local_tools(code); }

// ---- stack of a call: | NULL | callable | arguments | or | function | self | arguments |

inline constexpr int kLoneCallable = 1;  // the slot of a callable without self

// ---- objects

// Drops a reference that may be the last one: true when it was.
inline bool drop_is_last(PyObject* object) { return !_Py_IsImmortal(object) && --object->ob_refcnt == 0; }
// Drops a reference that is known not to be the last one.
inline void drop_shared(PyObject* object) {
  if (!_Py_IsImmortal(object)) --object->ob_refcnt;
}
inline void drop_singleton(PyObject*) {}  // None, True, False are immortal

inline PyObject* small_int(long value) {  // borrowed; -5 <= value < 257
  return reinterpret_cast<PyObject*>(&_PyRuntime.static_objects.singletons.small_ints[5 + value]);
}
// Ints of at most one digit (30 bits).
inline bool is_compact_int(PyObject* object) { return _PyLong_IsCompact(reinterpret_cast<PyLongObject*>(object)); }
inline long compact_int(PyObject* object) { return _PyLong_CompactValue(reinterpret_cast<PyLongObject*>(object)); }
inline uintptr_t int_tag(PyObject* object) { return reinterpret_cast<PyLongObject*>(object)->long_value.lv_tag; }
inline bool int_is_zero(PyObject* object) { return (int_tag(object) & _PyLong_SIGN_MASK) == 1; }
inline bool int_is_negative(PyObject* object) { return (int_tag(object) & _PyLong_SIGN_MASK) == 2; }
// Number of digits, the digits, and whether the number is negative.
inline Py_ssize_t int_digits(PyObject* object, const digit** digits, bool* negative) {
  *digits = reinterpret_cast<PyLongObject*>(object)->long_value.ob_digit;
  *negative = int_is_negative(object);
  return static_cast<Py_ssize_t>(int_tag(object) >> _PyLong_NON_SIZE_BITS);
}
inline constexpr size_t kOneDigitInt = offsetof(PyLongObject, long_value.ob_digit) + sizeof(digit);
inline void set_one_digit(PyLongObject* number, digit magnitude, bool negative) {
  number->long_value.lv_tag = 1 << _PyLong_NON_SIZE_BITS | (negative ? 2 : 0);
  number->long_value.ob_digit[0] = magnitude;
}

inline bool allocations_are_traced() { return _PyRuntime.tracemalloc.config.tracing != 0; }

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

struct RangeIterator {
  PyObject_HEAD
  long start, step, len;
  bool next(long* value) {
    if (len <= 0) return false;
    *value = start;
    start = static_cast<long>(static_cast<unsigned long>(start) + static_cast<unsigned long>(step));
    --len;
    return true;
  }
};

// Inline values of an instance, nullptr when it has none; and its managed dict or nullptr. It has one or the other.
inline PyDictValues* inline_values(PyObject* object) {
  const PyDictOrValues either = *_PyObject_DictOrValuesPointer(object);
  return _PyDictOrValues_IsValues(either) ? _PyDictOrValues_GetValues(either) : nullptr;
}
inline PyDictValues* writable_values(PyObject* object) { return inline_values(object); }
inline PyObject* managed_dict(PyObject* object) {
  const PyDictOrValues either = *_PyObject_DictOrValuesPointer(object);
  return _PyDictOrValues_IsValues(either) ? nullptr : _PyDictOrValues_GetDict(either);
}

// The exception that is set, complete with its traceback; none is set afterwards.
inline PyObject* take_exception() { return PyErr_GetRaisedException(); }
// Takes the reference; its traceback is left as it is.
inline void set_exception(PyObject* exception) { PyErr_SetRaisedException(exception); }
// The key that _PyDict_MergeEx found twice, new reference, its KeyError removed; nullptr where the KeyError came from elsewhere.
PyObject* take_duplicate_key();

inline PyObject* type_dict(PyTypeObject* type) { return PyType_GetDict(type); }  // new reference
inline PyObject* import_function(PyThreadState* tstate) { return tstate->interp->imports.import_func; }
inline int optional_attribute(PyObject* object, PyObject* name, PyObject** value) { return _PyObject_LookupAttr(object, name, value); }
inline int int_argument(PyObject* object) { return _PyLong_AsInt(object); }
inline Py_ssize_t request_extra_index(freefunc release) { return PyUnstable_Eval_RequestCodeExtraIndex(release); }
inline int set_extra(PyCodeObject* code, Py_ssize_t index, void* value) {
  return PyUnstable_Code_SetExtra(reinterpret_cast<PyObject*>(code), index, value);
}

inline constexpr char kMatchNeedsClass[] = "called match pattern must be a class";

// A generator whose frame was put together: marks it as suspended where it does not stand at its beginning.
void mark_position(PyGenObject* generator);

[[nodiscard]] bool prepare_hidden();  // false with an exception

}  // namespace dynvm::vm::cpython
