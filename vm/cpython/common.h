// What is the same in every CPython version, in terms of the version files' names; included by cpython.h only.
//
// Purpose: opcodes, ints and floats, dicts, the data stack, frames, generators and operations as the evaluator uses them.
// Inputs, outputs: CPython objects; nothing here keeps state. Invariants: functions that return PyObject* or bool-with-exception say so.
// All need the GIL. Tests: tests/vm/ (test_decode.py checks the opcode tables against the headers' numbers).
#pragma once

namespace dynvm::vm::cpython {

inline constexpr int kFrameWords = FRAME_SPECIALS_SIZE;

// ---- opcodes

struct OpcodeInfo {
  Op op;             // meaningless where prefix is set
  uint8_t caches;    // code units of inline cache behind the instruction
  int8_t direction;  // 0 no jump, 1 forward, -1 backward
  uint8_t skip;      // code units that a jump goes beyond its target: what stands there is part of this instruction
  bool prefix;       // EXTENDED_ARG, KW_NAMES, PRECALL: belongs to the next instruction
  bool valid;
};

// An instruction of CPython's as one or two of dynvm's.
struct Decoded {
  OpcodeInfo info;
  int arg;
  bool two;
  Op second;
  int second_arg;
  bool extends;       // EXTENDED_ARG
  bool names;         // KW_NAMES: arg is the constant
  bool named;         // a call with the names of its keywords on the stack: mostly the constant that is loaded before it
};
// The instruction at `unit` is a call with the names of its keywords on the stack.
bool is_named_call(PyCodeObject* code, int unit);
// A jump leads to such a call, so that what stands before it need not be what has pushed the names.
bool jumps_to_named_call(PyCodeObject* code);
// The instruction at a unit; `extended` is the argument so far, shifted.
Decoded decode_unit(PyCodeObject* code, int unit, int extended);

// What hangs on co_extra (codeobject.c).
struct CodeExtra {
  Py_ssize_t size;
  void* entries[1];
};
// As _PyCode_SetExtra, but makes room for our entry only: CPython calls the free functions of all entries there is room for, with
// nullptr too, and other users do not expect that. false with an exception.
[[nodiscard]] bool set_code_extra(PyCodeObject* code, Py_ssize_t index, void* value);

// One row of the exception table that covers `unit`; false when none does.
struct HandlerEntry {
  int level, handler;
  bool push_lasti;
};
bool find_handler(PyCodeObject* code, int unit, HandlerEntry* entry);

// ---- numbers

// What _Py_NewReference does in a release build, without the call.
inline void new_reference(PyObject* object) {
  if (allocations_are_traced()) [[unlikely]] {
    _Py_NewReference(object);
  } else {
    object->ob_refcnt = 1;
  }
}

inline PyObject* new_int(long value) {
  if (static_cast<unsigned long>(value + 5) < 262) return Py_NewRef(small_int(value));
  const unsigned long size = value < 0 ? 0ul - static_cast<unsigned long>(value) : static_cast<unsigned long>(value);
  if (size >= (1ul << PyLong_SHIFT)) [[unlikely]] return PyLong_FromLong(value);
  auto* result = static_cast<PyLongObject*>(PyObject_Malloc(sizeof(PyLongObject)));  // its padding too, as CPython: tracemalloc shows sizes
  if (result == nullptr) [[unlikely]] return PyErr_NoMemory();
  auto* object = reinterpret_cast<PyObject*>(result);
  object->ob_type = &PyLong_Type;
  set_one_digit(result, static_cast<digit>(size), value < 0);
  new_reference(object);
  return object;
}

// Value of an int of at most two digits (60 bits), so that sums, differences and comparisons of two stay within a long.
inline bool short_int(PyObject* object, long* value) {
  if (is_compact_int(object)) [[likely]] {
    *value = compact_int(object);
    return true;
  }
  const digit* digits;
  bool negative;
  if (int_digits(object, &digits, &negative) != 2) return false;
  const long magnitude = static_cast<long>(digits[1]) << PyLong_SHIFT | static_cast<long>(digits[0]);
  *value = negative ? -magnitude : magnitude;
  return true;
}

inline PyObject* new_float(const FloatList& list, double value) {
  if (PyFloatObject* free = list.take()) [[likely]] {
    auto* object = reinterpret_cast<PyObject*>(free);
    object->ob_type = &PyFloat_Type;
    new_reference(object);
    free->ob_fval = value;
    return object;
  }
  return PyFloat_FromDouble(value);
}

// Drops a reference to an exact float.
inline void drop_float(const FloatList& list, PyObject* object) {
  if (drop_is_last(object)) [[likely]] {
    if (!list.give(object)) PyObject_Free(object);
  }
}

// ---- stamps of key sets and types. 0: cannot be stamped. CPython counts key versions up from 2; dynvm counts down from the
// top, so that they never meet in practice; CPython zeroes the field when the keys change.
uint32_t stamp_keys(PyDictKeysObject* keys);
inline uint32_t type_version(PyTypeObject* type, PyObject* name) {
  _PyType_Lookup(type, name);  // gives the type a version when it can have one
  return current_version(type);
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

// Is an exact str in a set or frozenset: 1 or 0; -1: an object that is no exact str would have to be asked. Probes as set_lookkey does.
inline int set_has_str(PyObject* object, PyObject* name, Py_hash_t hash) {
  constexpr size_t kLinearProbes = 9;
  const auto* set = reinterpret_cast<PySetObject*>(object);
  const auto mask = static_cast<size_t>(set->mask);
  size_t perturb = static_cast<size_t>(hash);
  for (size_t slot = perturb & mask;; perturb >>= 5, slot = (slot * 5 + 1 + perturb) & mask) {
    const size_t last = slot + kLinearProbes <= mask ? slot + kLinearProbes : slot;
    for (size_t at = slot; at <= last; ++at) {
      const setentry& entry = set->table[at];
      if (entry.key == nullptr && entry.hash == 0) return 0;
      if (entry.hash != hash) continue;
      if (entry.key == name) return 1;
      if (!PyUnicode_CheckExact(entry.key)) return -1;
      if (PyUnicode_Compare(entry.key, name) == 0) return 1;
    }
  }
}

inline bool has_managed_dict(PyTypeObject* type) { return (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0; }
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
// The same with an offset that was looked up before; 0: managed.
inline PyObject* dict_at(PyObject* object, Py_ssize_t offset) {
  return offset == 0 ? managed_dict(object) : *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
}

// ---- threads

// Signals, pending calls, requests for the GIL, asynchronous exceptions. false with an exception set.
[[nodiscard]] bool handle_pending(PyThreadState* tstate);

// Around calls of C functions that CPython's own call would count.
inline bool enter_c(PyThreadState* tstate) { return _Py_EnterRecursiveCallTstate(tstate, " while calling a Python object") == 0; }
inline void leave_c(PyThreadState* tstate) { _Py_LeaveRecursiveCallTstate(tstate); }

// ---- the stack of a call, from the lower of the two slots below its arguments

struct Callee {
  explicit Callee(PyObject** base)
      : has_self(base[1 - kLoneCallable] != nullptr), slot(has_self ? base : base + kLoneCallable),
        arguments(has_self ? base + 1 : base + 2) {}
  bool has_self;
  PyObject** slot;       // of the callable
  PyObject** arguments;  // self included
};
inline void set_lone_callable(PyObject** base, PyObject* callable) {
  base[1 - kLoneCallable] = nullptr;
  base[kLoneCallable] = callable;
}

// ---- frames

// The frame object of the current frame of the thread (new reference) or nullptr; nullptr also while the frame is
// incomplete.
PyFrameObject* frame_object(PyThreadState* tstate, Frame* frame);
inline PyObject** stack_base(Frame* frame) { return frame->localsplus + code_of(frame)->co_nlocalsplus; }
inline bool is_generator_frame(const Frame* frame) { return frame->owner == FRAME_OWNED_BY_GENERATOR; }

// Clears what the frame holds; it must already be unlinked (current_frame is its caller). Does not release its memory. A
// generator's frame keeps its code where the generator needs it.
void clear_frame(PyThreadState* tstate, Frame* frame);
// The same for a thread-owned frame without a frame object whose stack is empty.
inline void clear_plain_frame(Frame* frame, int local_count) {
  for (int i = 0; i < local_count; ++i) Py_XDECREF(frame->localsplus[i]);
  Py_XDECREF(frame->f_locals);
  Py_DECREF(function_of(frame));
  Py_DECREF(code_of(frame));
}

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
void hide_frames_of(PyObject* filename);

// ---- generators

inline PyGenObject* generator_of(Frame* frame) { return _PyFrame_GetGenerator(frame); }
PyCodeObject* code_of_generator(PyGenObject* generator);  // borrowed
inline Frame* frame_of(PyGenObject* generator) { return reinterpret_cast<Frame*>(generator->gi_iframe); }
inline bool is_suspended(const PyGenObject* generator) {  // and has begun
  return generator->gi_frame_state > FRAME_CREATED && generator->gi_frame_state < FRAME_EXECUTING;
}
inline bool can_resume(const PyGenObject* generator) { return generator->gi_frame_state < FRAME_EXECUTING; }

// RETURN_GENERATOR: moves the current frame `frame` (its stacktop set) into a new generator, coroutine or asynchronous generator.
PyObject* make_generator(PyThreadState* tstate, Frame* frame);
// Its last part, the same in all versions: a new generator gets the frame's contents.
PyObject* with_frame(PyGenObject* generator, Frame* frame);
// YIELD_VALUE of `frame`, whose stacktop is set: `unit` is the instruction, `arg` its argument.
inline void suspend(Frame* frame, uint16_t* unit, int arg) {
  generator_of(frame)->gi_frame_state = suspended_state(arg);
  stands_before(frame, unit + 1);
}
// The generator is about to run.
inline void enter_generator(PyThreadState* tstate, PyGenObject* generator) {
  generator->gi_exc_state.previous_item = tstate->exc_info;
  tstate->exc_info = &generator->gi_exc_state;
  generator->gi_frame_state = FRAME_EXECUTING;
}
// The thread no longer handles the generator's exceptions.
inline void leave_generator(PyThreadState* tstate, PyGenObject* generator) {
  tstate->exc_info = generator->gi_exc_state.previous_item;
  generator->gi_exc_state.previous_item = nullptr;
}
// Ends a generator that was resumed in place and has returned or raised; its stack is empty.
void finish_generator(PyThreadState* tstate, Frame* frame, int local_count, bool raised);

// ---- ends of an entry frame (kEvaluatorEndsFrames)

// It has returned or raised, or cannot be run; its stacktop is set. What its caller does not do is done.
inline void end_entry_frame(PyThreadState* tstate, Entry& entry, Frame* frame) {
  if constexpr (kEvaluatorEndsFrames) {
    entry.link(tstate, frame->previous);
    if (is_generator_frame(frame)) {
      finish_generator(tstate, frame, frame->stacktop, false);
    } else {
      clear_frame(tstate, frame);
      pop_words(tstate, reinterpret_cast<PyObject**>(frame));
    }
  }
}
inline void suspend_entry_frame(PyThreadState* tstate, Entry& entry, Frame* frame) {
  if constexpr (kEvaluatorEndsFrames) {
    entry.link(tstate, frame->previous);
    frame->previous = nullptr;
    leave_generator(tstate, generator_of(frame));
  }
}
// It has become a generator.
inline void leave_moved_entry_frame(PyThreadState* tstate, Entry& entry, Frame* frame) {
  if constexpr (kEvaluatorEndsFrames) {
    entry.link(tstate, frame->previous);
    pop_words(tstate, reinterpret_cast<PyObject**>(frame));
  } else {  // the caller clears this frame: something valid to clear
    frame->stacktop = 0;
    frame->f_locals = nullptr;
    Py_INCREF(function_of(frame));
    Py_INCREF(code_of(frame));
  }
}

// ---- calls from C

inline bool has_fast_locals(const PyCodeObject* code) {
  constexpr int kFunctionFlags = CO_OPTIMIZED | CO_NEWLOCALS;
  return (code->co_flags & kFunctionFlags) == kFunctionFlags;
}
// C calls the function through `entry` from now on, and until CPython's evaluator has to see functions as it makes them (slot.cpp).
void set_entry(PyFunctionObject* function, vectorcallfunc entry);
inline void call_directly(Frame* frame, vectorcallfunc entry);
// All functions with that entry get CPython's own again; false where CPython's evaluator does not look at it.
bool withdraw_entry(vectorcallfunc entry);

// ---- hand-over to CPython's evaluator, with the evaluation slot left empty while something is traced (slot.cpp)

// In any thread, by sys.settrace, sys.setprofile or, from 3.12 on, a tool that looks at all code.
bool anything_traced(PyInterpreterState* interp);
// The slot may hold this function; nullptr: no longer.
void prepare_slot(_PyFrameEvalFunction function);
bool slot_is_left();
// Runs a frame to its end, or up to the next value of a generator. New reference or nullptr with an exception.
PyObject* run_foreign(PyThreadState* tstate, Frame* frame, int throwing);

// ---- after CPython's evaluator has run a frame of ours that stands behind others: what it leaves to its caller

inline void end_foreign_suspension(PyThreadState* tstate, Frame* frame) {  // of a generator's frame, which goes on another time
  if constexpr (!kEvaluatorEndsFrames) {
    leave_generator(tstate, generator_of(frame));
    frame->previous = nullptr;
  }
}
inline void end_foreign_generator(PyThreadState* tstate, Frame* frame, bool raised) {
  if constexpr (!kEvaluatorEndsFrames) finish_generator(tstate, frame, code_of(frame)->co_nlocalsplus, raised);
}
inline void end_foreign_frame(PyThreadState* tstate, Frame* frame) {  // its memory is not released
  // Where it made a generator of itself, it left references to clear, as after any return.
  if constexpr (!kEvaluatorEndsFrames) clear_frame(tstate, frame);
}

// ---- operations libpython does not export

PyObject* awaitable_iter(PyObject* object);             // new reference; _PyCoro_GetAwaitableIter
PyObject* async_gen_wrap(PyObject* value);              // new reference; _PyAsyncGenValueWrapperNew
bool delegates(PyGenObject* generator);                 // suspended in a yield from or await; _PyGen_yf
PyObject* prep_reraise_star(PyObject* orig, PyObject* list);  // new reference
void raise_import_from(PyObject* module, PyObject* name);     // `from module import name` has failed
void raise_unknown_opcode(Frame* frame);                      // it stands at an instruction that there is not
// CALL_INTRINSIC_1 and 2 where they are not instructions of dynvm's; new reference or nullptr with an exception.
PyObject* intrinsic_1(PyThreadState* tstate, Frame* frame, int number, PyObject* value);
PyObject* intrinsic_2(PyThreadState* tstate, int number, PyObject* first, PyObject* second);

// sys.settrace and sys.setprofile callbacks and monitoring events for a frame that CPython's evaluator cannot take over any more,
// because an exception is on its way through it.
void trace_exception(PyThreadState* tstate, Frame* frame);
void trace_unwound(PyThreadState* tstate, Frame* frame);

// Entries of the type slots that CPython fills for methods written in Python; learnt from probe classes at start.
struct SlotFunctions {
  vectorcallfunc function_call;  // of functions written in Python
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
inline void call_directly(Frame* frame, vectorcallfunc entry) {
  if (function_of(frame)->vectorcall == g_slots.function_call) [[unlikely]] set_entry(function_of(frame), entry);
}
// Checks that the running interpreter matches these headers and learns the slots; false with an exception.
[[nodiscard]] bool prepare();

// ---- hidden calls

// A function that CPython's evaluator runs: its parameters are pushed, then there is one instruction (0: none), whose result is
// returned; `name` is what co_names has. New reference or nullptr with an exception. Its frames count as incomplete: no traceback
// and no sys._getframe() shows them. No tool is told of them: the code object claims to have no instructions, so none is instrumented.
PyObject* make_hidden(int parameters, int opcode, int arg, PyObject* name);
// Calls it; its own level of recursion is free. New reference or nullptr with an exception.
PyObject* call_hidden(PyThreadState* tstate, PyObject* function, PyObject* const* arguments, size_t count);
inline bool is_hidden_code(const PyCodeObject* code) { return Py_SIZE(code) == 0; }

}  // namespace dynvm::vm::cpython
