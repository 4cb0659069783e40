// CPython 3.11: what differs from other versions; see cpython.h for the interface.
//
// Purpose: layouts and contracts of 3.11's headers (equal over all 3.11.x). Inputs, outputs: CPython objects; nothing here keeps state.
// Invariants: functions that return PyObject* or bool-with-exception say so. All need the GIL.
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
#include <internal/pycore_moduleobject.h>
#include <internal/pycore_object.h>
#include <internal/pycore_pyerrors.h>
#include <internal/pycore_pymem.h>
#include <internal/pycore_runtime.h>
#include <opcode.h>
}
#include "vm/cpython/until_312.h"

namespace dynvm::vm::cpython {

// ---- position

inline uint16_t* code_units(PyCodeObject* code) { return _PyCode_CODE(code); }
// The opcode at a unit as it stands there, with what sys.monitoring wrote over it undone.
inline int written_opcode(PyCodeObject* code, int unit) { return code_units(code)[unit] & 255; }
inline PyCodeObject* code_of(const Frame* frame) { return frame->f_code; }
inline PyFunctionObject* function_of(const Frame* frame) { return frame->f_func; }
inline void runs_at(Frame* frame, uint16_t* unit) { frame->prev_instr = unit; }
inline void stands_before(Frame* frame, uint16_t* unit) { frame->prev_instr = unit - 1; }
inline int next_unit(const Frame* frame) { return static_cast<int>(frame->prev_instr - code_units(frame->f_code)) + 1; }
inline int last_unit(const Frame* frame) { return static_cast<int>(frame->prev_instr - code_units(frame->f_code)); }
inline Frame* complete_frame(Frame* frame) { return frame; }  // the first from it on that has begun
inline void keep_code(PyGenObject* generator, PyCodeObject* code) { generator->gi_code = reinterpret_cast<PyCodeObject*>(Py_NewRef(code)); }

// Takes both references.
inline void init_frame(Frame* frame, PyFunctionObject* function, PyCodeObject* code) {
  frame->f_func = function;
  frame->f_globals = function->func_globals;
  frame->f_builtins = function->func_builtins;
  frame->f_locals = nullptr;
  frame->f_code = code;
  frame->frame_obj = nullptr;
  frame->prev_instr = code_units(code) - 1;
  frame->stacktop = -1;
  frame->is_entry = false;
  frame->owner = FRAME_OWNED_BY_THREAD;
}

// ---- recursion: one count for Python and C

inline bool enter_recursion(PyThreadState* tstate) {  // false with RecursionError set, count unchanged
  return _Py_EnterRecursiveCallTstate(tstate, "") == 0;
}
inline void leave_recursion(PyThreadState* tstate) { ++tstate->recursion_remaining; }
inline void count_recursion(PyThreadState* tstate) { --tstate->recursion_remaining; }  // for a frame that is left at once

inline void add_levels(PyThreadState* tstate, int count) { tstate->recursion_remaining += count; }

// ---- entry and breaker

inline PyThreadState* current_thread() {
  return reinterpret_cast<PyThreadState*>(__atomic_load_n(&_PyRuntime.gilstate.tstate_current._value, __ATOMIC_RELAXED));
}
// The caller clears the frame that the evaluator was entered with, and ends a generator that it resumed.
inline constexpr bool kEvaluatorEndsFrames = false;
inline constexpr bool kSendsAnyFirst = false;  // SEND gives a generator that has not started None only, as send() does

inline Frame* current_frame(PyThreadState* tstate) { return tstate->cframe->current_frame; }

class Entry {
 public:
  // false with an exception: too deep.
  [[nodiscard]] bool begin(PyThreadState* tstate, Frame* frame) {
    previous_ = tstate->cframe;
    cframe_.use_tracing = 0;
    cframe_.previous = previous_;
    cframe_.current_frame = frame;
    tstate->cframe = &cframe_;
    frame->is_entry = true;
    frame->previous = previous_->current_frame;
    return true;
  }
  void link(PyThreadState*, Frame* frame) { cframe_.current_frame = frame; }
  Frame* current(PyThreadState*) const { return cframe_.current_frame; }
  Frame* current_below(PyThreadState*, const Frame*) const { return cframe_.current_frame; }
  void end(PyThreadState* tstate) {
    tstate->cframe = previous_;
    previous_->use_tracing = cframe_.use_tracing;
  }
  const uint8_t* use_tracing() const { return &cframe_.use_tracing; }

 private:
  _PyCFrame cframe_;
  _PyCFrame* previous_;
};

class Breaker {
 public:
  Breaker(PyThreadState* tstate, const Entry& entry) : word_(eval_breaker_word(tstate)), use_tracing_(entry.use_tracing()) {}
  bool raised() const { return (__atomic_load_n(word_, __ATOMIC_RELAXED) | *use_tracing_) != 0; }
  bool pending() const { return __atomic_load_n(word_, __ATOMIC_RELAXED) != 0; }
  bool traced() const { return *use_tracing_ != 0; }

 private:
  const int* word_;
  const uint8_t* use_tracing_;
};
// What native code reads at a backward jump: it goes on while the word and the byte are zero.
struct LoopProbe {
  const int* word;
  const uint8_t* byte;
  LoopProbe(PyThreadState* tstate, const Entry& entry) : word(eval_breaker_word(tstate)), byte(entry.use_tracing()) {}
};
inline bool traced(PyThreadState* tstate) { return tstate->cframe->use_tracing != 0; }
inline bool code_is_monitored(PyCodeObject*) { return false; }
inline void take_for_instrumented(PyThreadState*, PyCodeObject*) {}

// ---- stack of a call: | NULL | callable | arguments | or | function | self | arguments |

inline constexpr int kLoneCallable = 1;  // the slot of a callable without self

// ---- objects

// Drops a reference that may be the last one: true when it was.
inline bool drop_is_last(PyObject* object) { return --object->ob_refcnt == 0; }
// Drops a reference that is known not to be the last one.
inline void drop_shared(PyObject* object) { --object->ob_refcnt; }
inline void drop_singleton(PyObject* object) { --object->ob_refcnt; }  // None, True, False

inline PyObject* small_int(long value) {  // borrowed; -5 <= value < 257
  return reinterpret_cast<PyObject*>(&_PyRuntime.global_objects.singletons.small_ints[5 + value]);
}
// Ints of at most one digit (30 bits).
inline bool is_compact_int(PyObject* object) { return static_cast<size_t>(Py_SIZE(object) + 1) < 3; }
inline long compact_int(PyObject* object) {
  return static_cast<long>(Py_SIZE(object)) * static_cast<long>(reinterpret_cast<PyLongObject*>(object)->ob_digit[0]);
}
inline bool int_is_zero(PyObject* object) { return Py_SIZE(object) == 0; }
inline bool int_is_negative(PyObject* object) { return Py_SIZE(object) < 0; }
// Number of digits, the digits, and whether the number is negative.
inline Py_ssize_t int_digits(PyObject* object, const digit** digits, bool* negative) {
  const Py_ssize_t size = Py_SIZE(object);
  *digits = reinterpret_cast<PyLongObject*>(object)->ob_digit;
  *negative = size < 0;
  return size < 0 ? -size : size;
}
inline void set_one_digit(PyLongObject* number, digit magnitude, bool negative) {
  number->ob_base.ob_size = negative ? -1 : 1;
  number->ob_digit[0] = magnitude;
}

inline bool allocations_are_traced() { return _Py_tracemalloc_config.tracing != 0; }

struct RangeIterator {
  PyObject_HEAD
  long index, start, step, len;
  bool next(long* value) {
    if (index >= len) return false;
    *value = static_cast<long>(static_cast<unsigned long>(start) +
                               static_cast<unsigned long>(index++) * static_cast<unsigned long>(step));
    return true;
  }
};

// Inline values of an instance, nullptr when it has none; and its managed dict or nullptr.
inline PyDictValues* inline_values(PyObject* object) { return *_PyObject_ValuesPointer(object); }
inline PyDictValues* writable_values(PyObject* object) { return inline_values(object); }
inline PyObject* managed_dict(PyObject* object) { return *_PyObject_ManagedDictPointer(object); }

// The exception that is set, complete with its traceback; none is set afterwards.
PyObject* take_exception(PyThreadState* tstate);
inline bool exception_is_set(const PyThreadState* tstate) { return tstate->curexc_type != nullptr; }
// Sets what is set aside for as long as it lives; nothing may be set when it ends.
class ExceptionAside {
 public:
  explicit ExceptionAside(PyThreadState* tstate)
      : tstate_(tstate), type_(std::exchange(tstate->curexc_type, nullptr)), value_(std::exchange(tstate->curexc_value, nullptr)),
        traceback_(std::exchange(tstate->curexc_traceback, nullptr)) {}
  ~ExceptionAside() { tstate_->curexc_type = type_, tstate_->curexc_value = value_, tstate_->curexc_traceback = traceback_; }

 private:
  PyThreadState* tstate_;
  PyObject *type_, *value_, *traceback_;
};
// Takes the reference; its traceback is left as it is.
void set_exception(PyObject* exception);

// The key that _PyDict_MergeEx found twice, new reference, its KeyError removed; nullptr where the KeyError came from elsewhere.
PyObject* take_duplicate_key();

inline PyObject* type_dict(PyTypeObject* type) { return Py_XNewRef(type->tp_dict); }  // new reference
// Makes an instance's dict the only place of its items: its version tells of every change then. false where that cannot be.
inline bool own_items(PyObject*) { return true; }
// 0: none.
inline uint32_t current_version(const PyTypeObject* type) {
  return (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
}
inline bool imports_from_any_builtins() { return false; }  // __builtins__ need not be a dict to have __import__
inline constexpr bool kChecksMadeCause = false;  // `raise ... from` a class whose instances are no exceptions
inline PyObject* import_function(PyThreadState* tstate) { return tstate->interp->import_func; }
inline int optional_attribute(PyObject* object, PyObject* name, PyObject** value) { return _PyObject_LookupAttr(object, name, value); }
inline int int_argument(PyObject* object) { return _PyLong_AsInt(object); }
inline Py_ssize_t request_extra_index(freefunc release) { return _PyEval_RequestCodeExtraIndex(release); }
inline int set_extra(PyCodeObject* code, Py_ssize_t index, void* value) {
  return _PyCode_SetExtra(reinterpret_cast<PyObject*>(code), index, value);
}

inline constexpr char kMatchNeedsClass[] = "called match pattern must be a type";

// A generator whose frame was put together: marks it as suspended where it does not stand at its beginning.
void mark_position(PyGenObject* generator);

[[nodiscard]] PyObject* prepare_hidden();  // makes the functions needed at any time; one of them, borrowed, or nullptr with an exception

}  // namespace dynvm::vm::cpython
