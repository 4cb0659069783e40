// CPython 3.11: frames, data stack, opcodes, and stand-ins for what libpython 3.11 does not export.
//
// Purpose: everything that another CPython version would do differently and that is needed inline. Layouts are those of the 3.11
//   headers (equal over all 3.11.x). Inputs, outputs: CPython objects; nothing here keeps state.
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
#include <cstdint>

namespace dynvm::vm {
enum class Op : uint16_t;
}

namespace dynvm::vm::cpython {

using Frame = _PyInterpreterFrame;
using CFrame = _PyCFrame;

inline constexpr int kFrameWords = FRAME_SPECIALS_SIZE;

// ---- opcodes

struct OpcodeInfo {
  Op op;             // meaningless where prefix is set
  uint8_t caches;    // code units of inline cache behind the instruction
  int8_t direction;  // 0 no jump, 1 forward, -1 backward
  bool prefix;       // EXTENDED_ARG, KW_NAMES, PRECALL: belongs to the next instruction
  bool valid;
};
const OpcodeInfo& opcode_info(int opcode);
inline constexpr int kExtendedArg = 144, kKwNames = 172, kPrecall = 166;

// Opcode of a code unit with CPython's own specialisation undone; the arguments are never changed by it.
int original_opcode(_Py_CODEUNIT unit);

// What hangs on co_extra (codeobject.c).
struct CodeExtra {
  Py_ssize_t size;
  void* entries[1];
};
// As _PyCode_SetExtra, but makes room for our entry only: CPython calls the free functions of all entries there is room for, with
// nullptr too, and other users do not expect that. false with an exception.
[[nodiscard]] bool set_code_extra(PyCodeObject* code, Py_ssize_t index, void* value);

inline _Py_CODEUNIT* code_units(PyCodeObject* code) { return _PyCode_CODE(code); }

// One row of the exception table that covers `unit`; false when none does.
struct HandlerEntry {
  int level, handler;
  bool push_lasti;
};
bool find_handler(PyCodeObject* code, int unit, HandlerEntry* entry);

// ---- object internals

inline PyObject* small_int(long value) {  // borrowed; -5 <= value < 257
  return reinterpret_cast<PyObject*>(&_PyRuntime.global_objects.singletons.small_ints[5 + value]);
}
// Ints of at most one digit (30 bits).
inline bool is_compact_int(PyObject* object) { return static_cast<size_t>(Py_SIZE(object) + 1) < 3; }
inline long compact_int(PyObject* object) {
  return static_cast<long>(Py_SIZE(object)) * static_cast<long>(reinterpret_cast<PyLongObject*>(object)->ob_digit[0]);
}

// What _Py_NewReference does in a release build, without the call.
inline void new_reference(PyObject* object) {
  if (_Py_tracemalloc_config.tracing) [[unlikely]] {
    _Py_NewReference(object);
  } else {
    object->ob_refcnt = 1;
  }
}

inline PyObject* new_int(long value) {
  if (static_cast<unsigned long>(value + 5) < 262) return Py_NewRef(small_int(value));
  const unsigned long size = value < 0 ? 0ul - static_cast<unsigned long>(value) : static_cast<unsigned long>(value);
  if (size >= (1ul << PyLong_SHIFT)) [[unlikely]] return PyLong_FromLong(value);
  auto* result = static_cast<PyLongObject*>(PyObject_Malloc(offsetof(PyLongObject, ob_digit) + sizeof(digit)));
  if (result == nullptr) [[unlikely]] return PyErr_NoMemory();
  auto* object = reinterpret_cast<PyObject*>(result);
  object->ob_type = &PyLong_Type;
  result->ob_base.ob_size = value < 0 ? -1 : 1;
  result->ob_digit[0] = static_cast<digit>(size);
  new_reference(object);
  return object;
}

// Value of an int of at most two digits (60 bits), so that sums, differences and comparisons of two stay within a long.
inline bool short_int(PyObject* object, long* value) {
  const auto* number = reinterpret_cast<PyLongObject*>(object);
  const Py_ssize_t size = Py_SIZE(object);
  if (static_cast<size_t>(size + 1) < 3) [[likely]] {
    *value = static_cast<long>(size) * static_cast<long>(number->ob_digit[0]);
    return true;
  }
  if (size != 2 && size != -2) return false;
  const long magnitude = static_cast<long>(number->ob_digit[1]) << PyLong_SHIFT | static_cast<long>(number->ob_digit[0]);
  *value = size < 0 ? -magnitude : magnitude;
  return true;
}

inline _Py_float_state* float_state(PyThreadState* tstate) { return &tstate->interp->float_state; }

inline PyObject* new_float(_Py_float_state* state, double value) {
  if (PyFloatObject* free = state->free_list) [[likely]] {
    state->free_list = reinterpret_cast<PyFloatObject*>(Py_TYPE(free));
    --state->numfree;
    free->ob_base.ob_type = &PyFloat_Type;
    new_reference(reinterpret_cast<PyObject*>(free));
    free->ob_fval = value;
    return reinterpret_cast<PyObject*>(free);
  }
  return PyFloat_FromDouble(value);
}

// Drops a reference to an exact float.
inline void drop_float(_Py_float_state* state, PyObject* object) {
  if (--object->ob_refcnt == 0) [[likely]] {
    if (state->numfree < PyFloat_MAXFREELIST) {
      ++state->numfree;
      object->ob_type = reinterpret_cast<PyTypeObject*>(state->free_list);
      state->free_list = reinterpret_cast<PyFloatObject*>(object);
    } else {
      PyObject_Free(object);
    }
  }
}

// Stamps of key sets and types. 0: cannot be stamped. CPython counts key versions up from 2; dynvm counts down from the
// top, so that they never meet in practice; CPython zeroes the field when the keys change.
uint32_t stamp_keys(PyDictKeysObject* keys);
inline uint32_t type_version(PyTypeObject* type, PyObject* name) {
  _PyType_Lookup(type, name);  // gives the type a version when it can have one
  return (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
}

// Appends without the call where there is room; takes the reference. false with an exception (then the reference is gone).
inline bool append_taking(PyObject* object, PyObject* value) {
  auto* list = reinterpret_cast<PyListObject*>(object);
  const Py_ssize_t size = Py_SIZE(list);
  if (size < list->allocated) [[likely]] {
    list->ob_item[size] = value;
    Py_SET_SIZE(list, size + 1);
    return true;
  }
  const int status = PyList_Append(object, value);
  Py_DECREF(value);
  return status == 0;
}

// ---- dicts and instances

inline Py_ssize_t index_at(const PyDictKeysObject* keys, size_t slot) {
  const int bits = keys->dk_log2_size;
  if (bits < 8) return reinterpret_cast<const int8_t*>(keys->dk_indices)[slot];
  if (bits < 16) return reinterpret_cast<const int16_t*>(keys->dk_indices)[slot];
  if (bits < 32) return reinterpret_cast<const int32_t*>(keys->dk_indices)[slot];
  return reinterpret_cast<const int64_t*>(keys->dk_indices)[slot];
}

inline Py_hash_t str_hash(PyObject* str) {
  const Py_hash_t hash = reinterpret_cast<PyASCIIObject*>(str)->hash;
  return hash != -1 ? hash : PyObject_Hash(str);
}

// Position of an exact str among keys that are all str (kinds unicode and split); -1: absent.
inline Py_ssize_t find_key(PyDictKeysObject* keys, PyObject* name, Py_hash_t hash) {
  PyDictUnicodeEntry* entries = DK_UNICODE_ENTRIES(keys);
  const size_t mask = (static_cast<size_t>(1) << keys->dk_log2_size) - 1;
  size_t perturb = static_cast<size_t>(hash);
  for (size_t slot = static_cast<size_t>(hash) & mask;; perturb >>= 5, slot = (slot * 5 + perturb + 1) & mask) {
    const Py_ssize_t index = index_at(keys, slot);
    if (index == DKIX_EMPTY) return -1;
    if (index < 0) continue;
    PyObject* key = entries[index].me_key;
    if (key == name) return index;
    if (reinterpret_cast<PyASCIIObject*>(key)->hash == hash && PyUnicode_Compare(key, name) == 0) return index;
  }
}

// Value (borrowed) for an exact str; nullptr when absent or, only for dicts with other than str keys, with an exception.
inline PyObject* dict_get(PyObject* object, PyObject* name, Py_hash_t hash) {
  auto* dict = reinterpret_cast<PyDictObject*>(object);
  PyDictKeysObject* keys = dict->ma_keys;
  if (keys->dk_kind == DICT_KEYS_GENERAL) [[unlikely]] return _PyDict_GetItem_KnownHash(object, name, hash);
  const Py_ssize_t index = find_key(keys, name, hash);
  if (index < 0) return nullptr;
  return dict->ma_values != nullptr ? dict->ma_values->values[index] : DK_UNICODE_ENTRIES(keys)[index].me_value;
}

inline bool has_managed_dict(PyTypeObject* type) { return (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0; }
inline PyDictValues* inline_values(PyObject* object) { return *_PyObject_ValuesPointer(object); }
inline PyObject* managed_dict(PyObject* object) { return *_PyObject_ManagedDictPointer(object); }
inline PyDictKeysObject* shared_keys(PyTypeObject* type) { return reinterpret_cast<PyHeapTypeObject*>(type)->ht_cached_keys; }

// The instance dict (borrowed) or nullptr; only for objects without inline values.
inline PyObject* instance_dict(PyObject* object, PyTypeObject* type) {
  if (has_managed_dict(type)) return managed_dict(object);
  Py_ssize_t offset = type->tp_dictoffset;
  if (offset == 0) return nullptr;
  if (offset > 0) return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
  PyObject** pointer = _PyObject_GetDictPtr(object);
  return pointer != nullptr ? *pointer : nullptr;
}

// ---- threads

inline bool eval_breaker_set(PyThreadState* tstate) {
  return __atomic_load_n(&tstate->interp->ceval.eval_breaker._value, __ATOMIC_RELAXED) != 0;
}
inline const int* eval_breaker_word(PyThreadState* tstate) { return &tstate->interp->ceval.eval_breaker._value; }
// Signals, pending calls, requests for the GIL, asynchronous exceptions. false with an exception set.
[[nodiscard]] bool handle_pending(PyThreadState* tstate);

inline bool enter_recursion(PyThreadState* tstate) {  // false with RecursionError set, count unchanged
  return _Py_EnterRecursiveCallTstate(tstate, "") == 0;
}

// ---- frames

inline Frame* current_frame(PyThreadState* tstate) { return tstate->cframe->current_frame; }

// The frame object of the current frame of the thread (new reference) or nullptr; nullptr also while the frame is
// incomplete.
PyFrameObject* frame_object(PyThreadState* tstate, Frame* frame);

// Clears what the frame holds; it must already be unlinked (current_frame is its caller). Does not release its memory.
void clear_frame(PyThreadState* tstate, Frame* frame);

// Raw words of the thread's data stack; nullptr with MemoryError.
PyObject** push_words_slow(PyThreadState* tstate, size_t words);
inline PyObject** push_words(PyThreadState* tstate, size_t words) {
  PyObject** base = tstate->datastack_top;
  if (base != nullptr && words < static_cast<size_t>(tstate->datastack_limit - base)) [[likely]] {
    tstate->datastack_top = base + words;
    return base;
  }
  return push_words_slow(tstate, words);
}
void pop_words_slow(PyThreadState* tstate, PyObject** base);
inline void pop_words(PyThreadState* tstate, PyObject** base) {
  if (base == &tstate->datastack_chunk->data[0]) [[unlikely]] {
    pop_words_slow(tstate, base);
  } else {
    tstate->datastack_top = base;
  }
}

// Adds a traceback entry for the thread's current frame to the exception that is set.
void add_traceback(PyThreadState* tstate, Frame* frame);

// ---- generators

inline PyGenObject* generator_of(Frame* frame) { return _PyFrame_GetGenerator(frame); }
inline Frame* frame_of(PyGenObject* generator) { return reinterpret_cast<Frame*>(generator->gi_iframe); }

// RETURN_GENERATOR: moves the current frame `frame` (its stacktop set) into a new generator, coroutine or asynchronous generator.
PyObject* make_generator(PyThreadState* tstate, Frame* frame);

// ---- operations libpython does not export

PyObject* awaitable_iter(PyObject* object);             // new reference; _PyCoro_GetAwaitableIter
PyObject* async_gen_wrap(PyObject* value);              // new reference; _PyAsyncGenValueWrapperNew
PyObject* yield_from_target(PyGenObject* generator);    // new reference or nullptr without exception; _PyGen_yf
PyObject* prep_reraise_star(PyObject* orig, PyObject* list);  // new reference

// Entries of the type slots that CPython fills for methods written in Python; learnt from probe classes at start.
struct SlotFunctions {
  ternaryfunc call;
  getattrofunc getattr_hook, getattro, generic_getattr, module_getattr, type_getattr;
  setattrofunc setattr, generic_setattr;
  initproc init;
  newfunc object_new;
  getiterfunc iter;
  iternextfunc iternext;
  inquiry nb_bool;
  lenfunc length;
  objobjproc contains;
  binaryfunc subscript;
  objobjargproc ass_subscript;
  richcmpfunc richcompare;
  binaryfunc binary[26];  // by NB_ number; nullptr where none is learnt
  ternaryfunc power;
  ternaryfunc inplace_power;
};
extern SlotFunctions g_slots;
// Checks that the running interpreter matches these headers and learns the slots; false with an exception.
[[nodiscard]] bool prepare();

// Code objects that CPython's own evaluator must run (stubs made by prepare()).
bool is_stub_code(PyCodeObject* code);

}  // namespace dynvm::vm::cpython
