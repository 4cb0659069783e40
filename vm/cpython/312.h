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
#include "vm/cpython/since_312.h"
#include "vm/cpython/until_312.h"

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
inline Frame* complete_frame(Frame* frame) { return _PyFrame_GetFirstComplete(frame); }  // the first from it on that has begun
inline void keep_code(PyGenObject*, PyCodeObject*) {}  // its frame does

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

// ---- entry and breaker

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
  Frame* current_below(PyThreadState*, const Frame*) const { return cframe_.current_frame; }
  void end(PyThreadState* tstate) {
    tstate->cframe = previous_;
    tstate->c_recursion_remaining += kEntryUnits;
  }

 private:
  _PyCFrame cframe_;
  _PyCFrame* previous_;
};

inline uint64_t monitoring_version(const PyThreadState* tstate) { return tstate->interp->monitoring_version; }
inline bool traced(PyThreadState* tstate) {
  return monitoring_version(tstate) != g_quiet_version && look_for_tools(tstate);
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
// What native code reads at a backward jump: it goes on while the word is zero and the version is g_quiet_version.
struct LoopProbe {
  const int* word;
  const uint64_t* version;
  const uint64_t* quiet = &g_quiet_version;
  LoopProbe(PyThreadState* tstate, const Entry&) : word(eval_breaker_word(tstate)), version(&tstate->interp->monitoring_version) {}
};
// ---- stack of a call: | NULL | callable | arguments | or | function | self | arguments |

inline constexpr int kLoneCallable = 1;  // the slot of a callable without self

// ---- objects

inline bool allocations_are_traced() { return _PyRuntime.tracemalloc.config.tracing != 0; }

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

// Makes an instance's dict the only place of its items: its version tells of every change then. false where that cannot be.
inline bool own_items(PyObject*) { return true; }
// 0: none.
inline uint32_t current_version(const PyTypeObject* type) {
  return (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
}
// __builtins__ need not be a dict to have __import__: since 3.12.2.
inline bool imports_from_any_builtins() { return Py_Version >= 0x030c0200; }
inline constexpr bool kChecksMadeCause = false;  // `raise ... from` a class whose instances are no exceptions
inline PyObject* import_function(PyThreadState* tstate) { return tstate->interp->imports.import_func; }
inline int optional_attribute(PyObject* object, PyObject* name, PyObject** value) { return _PyObject_LookupAttr(object, name, value); }
inline int int_argument(PyObject* object) { return _PyLong_AsInt(object); }
}  // namespace dynvm::vm::cpython
