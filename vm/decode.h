// Decoded code objects.
//
// Purpose: turns a CPython code object into arrays of wide instructions, once, and finds them again.
// Inputs: a code object. Outputs: Code, kept in the code object's extra data; lives as long as the code object.
// Invariants: fast and plain have one Inst for each original instruction (prefixes folded) and equal indices. A Code's memory is
//   never given back to the system, and `code` is nullptr once the code object is gone, so a stale Code* may be compared.
// Tests: tests/vm/test_decode.py.
#pragma once

#include "vm/cpython/cpython.h"
#include "vm/vm.h"

namespace dynvm::vm {

// All instructions: the generic ones as in Op, then the specialised ones.
enum class Form : uint16_t {
#define GENERIC(name, effect, text) k##name,
#include "vm/insts.def"
  kGenericCount,
  kLastGeneric = kGenericCount - 1,
#define SPECIAL(name, generic, text) k##name,
#include "vm/insts.def"
  kCount
};

// Marks the unit of the second of two instructions that one of CPython's is decoded to (vm.h: unit_offset).
inline constexpr int kSecondHalf = 1 << 28;

struct Code {
  PyCodeObject* code;       // nullptr when dead
  Inst* fast;
  int32_t frame_words;      // frame header, locals and stack
  int32_t argcount;
  int32_t local_count;      // co_nlocalsplus
  bool simple;              // optimized, positional parameters only, no *args, **kwargs or keyword-only ones
  bool hidden;              // CPython's evaluator runs it
  bool generator;           // starts by making a generator
  bool idle_resume;         // starts with kResume, and calls are not counted
  bool loose_names;         // calls find the names of their keywords on the stack only: kCallNamed
  int32_t inst_count;
  int32_t unit_count;
  int32_t counter_count;
  Inst* plain;              // made on demand
  int32_t* unit_to_index;   // for each code unit, prefixes and caches included, the instruction it belongs to
  int32_t* start_unit;      // for each instruction its first unit; one more entry for the end
  HotCounter* counters;     // [0] is the function's, then one for each loop header
  mutable int32_t heat;     // calls until native code is made
  uint64_t heated_from;     // calls of all functions when its heat began to be counted
  void* native;             // what vm/native/ keeps
};

extern Py_ssize_t g_extra_index;

// The instruction labels of the evaluator, by Form; then the recording stub, a bad instruction, a watched loop header, the stop of a native run.
extern const void* const* g_labels;
inline constexpr size_t kLabels = static_cast<size_t>(Form::kCount) + 4;
// Where a handler stands among them.
size_t label_index(const void* handler);

// Decodes now; nullptr with MemoryError.
Code* decode(PyCodeObject* code);
// Called with each code object that has been decoded, where it is set.
inline void (*on_decoded)(PyCodeObject*) = nullptr;
// Makes the plain form; false with MemoryError.
bool make_plain(Code* code);

inline Code* find_code(PyCodeObject* code) {
  auto* extra = static_cast<cpython::CodeExtra*>(code->co_extra);
  if (extra != nullptr && extra->size > g_extra_index) [[likely]] {
    return static_cast<Code*>(extra->entries[g_extra_index]);
  }
  return nullptr;
}
inline Code* code_for(PyCodeObject* code) {
  Code* found = find_code(code);
  return found != nullptr ? found : decode(code);
}

// Where suspended generators went on lately: instructions of fast code by their position, which no two codes share.
struct Resumption {
  const uint16_t* position;
  Inst* inst;
};
inline constexpr size_t kResumptions = 64;
extern Resumption g_resumptions[kResumptions];
// The instruction that the frame, not running, goes on with; nullptr with MemoryError.
Inst* find_resumption(cpython::Frame* frame);
inline Inst* known_resumption(cpython::Frame* frame) {  // or nullptr
  const uint16_t* position = cpython::next_position(frame);
  const Resumption& known = g_resumptions[reinterpret_cast<uintptr_t>(position) / sizeof(uint16_t) % kResumptions];
  return known.position == position ? known.inst : nullptr;
}
inline Inst* resumption(cpython::Frame* frame) {
  Inst* known = known_resumption(frame);
  return known != nullptr ? known : find_resumption(frame);
}

inline const Inst* to_plain(Code* code, const Inst* inst) { return code->plain + (inst - code->fast); }
inline const Inst* to_fast(Code* code, const Inst* inst) { return code->fast + (inst - code->plain); }
inline bool in_plain(const Code* code, const Inst* inst) {
  return code->plain != nullptr && inst >= code->plain && inst < code->plain + code->inst_count;
}

// Of a jump, kForIter and kSend.
inline Inst* target_of(const Inst* jump) {
  return const_cast<Inst*>(reinterpret_cast<const Inst*>(reinterpret_cast<const char*>(jump) + static_cast<int32_t>(jump->cache[0])));
}

inline constexpr uint32_t kNamed = 1u << 31;  // in Inst::extra
// Of a kCall, borrowed, or nullptr.
inline PyObject* keyword_names(PyCodeObject* code, const Inst* call) {
  return (call->extra & kNamed) != 0 ? PyTuple_GET_ITEM(code->co_consts, call->extra & ~kNamed) : nullptr;
}

// What the frame that executes the instruction keeps.
inline uint16_t* position_of(const cpython::Frame* frame, const Inst* inst) { return cpython::code_units(cpython::code_of(frame)) + inst->unit; }

inline void set_form(Inst* inst, Form form) { inst->handler = g_labels[static_cast<int>(form)]; }

// The counter of the loop whose header (in fast code) this is.
HotCounter* counter_of_header(const Inst* header, PyCodeObject* code);
// While watched, a loop's header asks the hook at each arrival in fast code, and stays generic.
void watch_header(HotCounter& counter, bool watched);

// Counters get the limits of the hooks that are set from now on.
void set_counter_limits(int32_t loop_limit, int32_t call_limit);

// Called once with the evaluator's labels; false with an exception.
bool prepare_decoder(const void* const* labels);

uint64_t decoded_count();

}  // namespace dynvm::vm
