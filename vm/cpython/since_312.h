// What CPython 3.12 and 3.13 have in common; included by their files only.
//
// Purpose: recursion counts, monitoring, immortal objects, ints. Inputs, outputs, invariants: cpython.h. Tests: tests/vm/.
#pragma once

namespace dynvm::vm::cpython {

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

// ---- entry

inline PyThreadState* current_thread() { return _PyThreadState_UncheckedGet(); }

// The evaluator clears the frame that it was entered with and releases its memory; it also ends or suspends a generator.
inline constexpr bool kEvaluatorEndsFrames = true;
inline constexpr bool kSendsAnyFirst = true;  // SEND gives a generator that has not started any value; send() only None
inline constexpr int kEntryUnits = 2;  // of C recursion, as CPython's own evaluator counts itself

// The interpreter's monitoring version for which it is known that no tool looks at anything. sys.settrace() and sys.setprofile()
// are tools too.
extern uint64_t g_quiet_version;
bool look_for_tools(PyThreadState* tstate);  // the version is another one: must this thread's frames be monitored
// Tools that look at this code object only (sys.monitoring.set_local_events).
bool has_local_tools(PyCodeObject* code);
// Taken for instrumented with all tools that there are now.
void take_for_instrumented(PyThreadState* tstate, PyCodeObject* code);
inline bool code_is_monitored(PyCodeObject* code) { return code->_co_monitoring != nullptr && has_local_tools(code); }

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
inline void set_one_digit(PyLongObject* number, digit magnitude, bool negative) {
  number->long_value.lv_tag = 1 << _PyLong_NON_SIZE_BITS | (negative ? 2 : 0);
  number->long_value.ob_digit[0] = magnitude;
}

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

// The exception that is set, complete with its traceback; none is set afterwards.
inline PyObject* take_exception(PyThreadState* tstate) { return std::exchange(tstate->current_exception, nullptr); }
inline bool exception_is_set(const PyThreadState* tstate) { return tstate->current_exception != nullptr; }
// Sets what is set aside for as long as it lives; nothing may be set when it ends.
class ExceptionAside {
 public:
  explicit ExceptionAside(PyThreadState* tstate) : tstate_(tstate), exception_(take_exception(tstate)) {}
  ~ExceptionAside() { tstate_->current_exception = exception_; }

 private:
  PyThreadState* tstate_;
  PyObject* exception_;
};
// Takes the reference; its traceback is left as it is.
inline void set_exception(PyObject* exception) { PyErr_SetRaisedException(exception); }
// The key that _PyDict_MergeEx found twice, new reference, its KeyError removed; nullptr where the KeyError came from elsewhere.
PyObject* take_duplicate_key();

inline PyObject* type_dict(PyTypeObject* type) { return PyType_GetDict(type); }  // new reference
inline Py_ssize_t request_extra_index(freefunc release) { return PyUnstable_Eval_RequestCodeExtraIndex(release); }
inline int set_extra(PyCodeObject* code, Py_ssize_t index, void* value) {
  return PyUnstable_Code_SetExtra(reinterpret_cast<PyObject*>(code), index, value);
}

inline constexpr char kMatchNeedsClass[] = "called match pattern must be a class";

// A generator whose frame was put together: marks it as suspended where it does not stand at its beginning.
void mark_position(PyGenObject* generator);

[[nodiscard]] PyObject* prepare_hidden();  // makes the functions needed at any time; one of them, borrowed, or nullptr with an exception

}  // namespace dynvm::vm::cpython
