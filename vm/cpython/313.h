// CPython 3.13: what differs from other versions; see cpython.h for the interface.
//
// Purpose: layouts and contracts of 3.12's headers (equal over all 3.13.x). Inputs, outputs: CPython objects; nothing here keeps state
//   but g_quiet_version. Invariants: functions that return PyObject* or bool-with-exception say so. All need the GIL.
// Tests: tests/vm/ (test_decode.py checks the opcode table against the headers' numbers).
#pragma once

#ifdef HAVE_STD_ATOMIC
#undef HAVE_STD_ATOMIC  // the headers would use C11 atomics, which C++ does not have
#endif
extern "C" {
#include <internal/pycore_call.h>
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
#include <internal/pycore_setobject.h>
#include <opcode.h>
}
#include "vm/cpython/since_312.h"

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
inline PyCodeObject* code_of(const Frame* frame) { return reinterpret_cast<PyCodeObject*>(frame->f_executable); }
inline PyFunctionObject* function_of(const Frame* frame) { return reinterpret_cast<PyFunctionObject*>(frame->f_funcobj); }
inline void runs_at(Frame* frame, uint16_t* unit) { frame->instr_ptr = reinterpret_cast<_Py_CODEUNIT*>(unit); }
inline void stands_before(Frame* frame, uint16_t* unit) { frame->instr_ptr = reinterpret_cast<_Py_CODEUNIT*>(unit); }
inline int last_unit(const Frame* frame) { return static_cast<int>(frame->instr_ptr - _PyCode_CODE(code_of(frame))); }
inline int next_unit(const Frame* frame) { return last_unit(frame); }
inline const uint16_t* next_position(const Frame* frame) { return reinterpret_cast<uint16_t*>(frame->instr_ptr); }
inline int8_t suspended_state(int delegating) {  // of a generator, by YIELD_VALUE's argument
  return static_cast<int8_t>(delegating != 0 ? FRAME_SUSPENDED_YIELD_FROM : FRAME_SUSPENDED);
}

// Takes both references.
inline void init_frame(Frame* frame, PyFunctionObject* function, PyCodeObject* code) {
  frame->f_executable = reinterpret_cast<PyObject*>(code);
  frame->f_funcobj = reinterpret_cast<PyObject*>(function);
  frame->f_globals = function->func_globals;
  frame->f_builtins = function->func_builtins;
  frame->f_locals = nullptr;
  frame->frame_obj = nullptr;
  frame->instr_ptr = _PyCode_CODE(code);
  frame->stacktop = -1;
  frame->return_offset = 0;
  frame->owner = FRAME_OWNED_BY_THREAD;
}

// ---- entry and breaker

inline Frame* current_frame(PyThreadState* tstate) { return tstate->current_frame; }

class Entry {
 public:
  // false with an exception: too deep.
  [[nodiscard]] bool begin(PyThreadState* tstate, Frame* frame) {
    previous_ = tstate->current_frame;
    frame->previous = previous_;
    tstate->current_frame = frame;
    tstate->c_recursion_remaining -= kEntryUnits - 1;
    if (_Py_EnterRecursiveCallTstate(tstate, "") == 0) [[likely]] return true;
    --tstate->c_recursion_remaining;
    return false;
  }
  void link(PyThreadState* tstate, Frame* frame) { tstate->current_frame = frame; }
  Frame* current(PyThreadState* tstate) const { return tstate->current_frame; }
  Frame* current_below(PyThreadState* tstate, const Frame* entry) const {
    Frame* own = tstate->current_frame;
    for (Frame* frame = own; frame != entry; frame = frame->previous)
      if (frame->owner == FRAME_OWNED_BY_CSTACK) own = frame->previous;  // CPython's evaluator was entered from there
    return own;
  }
  void end(PyThreadState* tstate) {
    tstate->current_frame = previous_;
    tstate->c_recursion_remaining += kEntryUnits;
  }

 private:
  Frame* previous_;
};

// One word of the thread: requests in the low bits, the monitoring version above them.
inline uintptr_t breaker_bits(const PyThreadState* tstate) { return __atomic_load_n(&tstate->eval_breaker, __ATOMIC_RELAXED); }
// Its lower half, for code that compares with zero: after the first use of monitoring that looks up each time.
inline const int* eval_breaker_word(PyThreadState* tstate) { return reinterpret_cast<const int*>(&tstate->eval_breaker); }

inline uint64_t monitoring_version(const PyThreadState* tstate) { return breaker_bits(tstate) & ~static_cast<uintptr_t>(_PY_EVAL_EVENTS_MASK); }
inline bool traced(PyThreadState* tstate) {
  return monitoring_version(tstate) != g_quiet_version && look_for_tools(tstate);
}

class Breaker {
 public:
  Breaker(PyThreadState* tstate, const Entry&) : tstate_(tstate) {}
  bool raised() const { return breaker_bits(tstate_) != g_quiet_version; }
  bool pending() const { return (breaker_bits(tstate_) & _PY_EVAL_EVENTS_MASK) != 0; }
  bool traced() const { return cpython::traced(tstate_); }

 private:
  PyThreadState* tstate_;
};

// What native code reads at a backward jump: it goes on while the bits are g_quiet_version.
struct LoopProbe {
  const uintptr_t* bits;
  const uint64_t* quiet = &g_quiet_version;
  LoopProbe(PyThreadState* tstate, const Entry&) : bits(&tstate->eval_breaker) {}
};

// ---- stack of a call: | callable | NULL | arguments | or | function | self | arguments |

inline constexpr int kLoneCallable = 0;  // the slot of a callable without self

// ---- objects

inline bool allocations_are_traced() {
  return _PyRuntime.tracemalloc.config.tracing != 0 || _PyRuntime.ref_tracer.tracer_func != nullptr;
}

struct FloatList {  // free floats, chained by ob_type
  _Py_float_freelist* state;
  explicit FloatList(PyThreadState* tstate) : state(&tstate->interp->object_state.freelists.floats) {}
  PyFloatObject* take() const {
    PyFloatObject* free = state->items;
    if (free != nullptr) {
      state->items = reinterpret_cast<PyFloatObject*>(Py_TYPE(reinterpret_cast<PyObject*>(free)));
      --state->numfree;
    }
    return free;
  }
  bool give(PyObject* object) const {
    if (state->numfree < 0 || state->numfree >= PyFloat_MAXFREELIST) return false;
    ++state->numfree;
    object->ob_type = reinterpret_cast<PyTypeObject*>(state->items);
    state->items = reinterpret_cast<PyFloatObject*>(object);
    return true;
  }
};

// Inline values of an instance, nullptr when they are not valid; and its managed dict or nullptr, which may share them.
inline PyDictValues* inline_values(PyObject* object) {
  if ((Py_TYPE(object)->tp_flags & Py_TPFLAGS_INLINE_VALUES) == 0) return nullptr;
  PyDictValues* values = _PyObject_InlineValues(object);
  return values->valid ? values : nullptr;
}
inline PyObject* managed_dict(PyObject* object) { return reinterpret_cast<PyObject*>(_PyObject_GetManagedDict(object)); }
// Values that may be stored to: a dict would have to know of new ones.
inline PyDictValues* writable_values(PyObject* object) {
  PyDictValues* values = inline_values(object);
  return values != nullptr && managed_dict(object) == nullptr ? values : nullptr;
}

// Makes an instance's dict the only place of its items: its version tells of every change then. false where that cannot be.
bool own_items(PyObject* dict);
inline uint32_t current_version(const PyTypeObject* type) { return type->tp_version_tag; }  // 0: none
inline bool imports_from_any_builtins() { return true; }  // __builtins__ need not be a dict to have __import__
inline constexpr bool kChecksMadeCause = true;  // `raise ... from` a class whose instances are no exceptions
inline PyObject* import_function(PyThreadState* tstate) { return tstate->interp->imports.import_func; }
inline int optional_attribute(PyObject* object, PyObject* name, PyObject** value) { return PyObject_GetOptionalAttr(object, name, value); }
inline int int_argument(PyObject* object) { return PyLong_AsInt(object); }
}  // namespace dynvm::vm::cpython
