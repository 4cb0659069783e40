// Frames that the evaluator enters by itself, and activations.
//
// Purpose: layout of the words the evaluator puts on CPython's data stack beside a frame, and the state of one entry into the
//   evaluator from C. Inputs: decoded code, a caller's position. Outputs: frames that CPython can inspect.
// Invariants:
//   - An inlined thread-owned frame stands directly behind its Link:   | ip | sp | kind | frame ... locals | stack |
//   - A generator resumed in place lives in its generator object; its Link stands on the data stack alone and is on top of
//     it whenever the generator's frame is the current one.
//   - Link::ip is the instruction of the caller that is still going on; Link::sp the caller's stack with what the
//     continuation needs on top.
// Tests: tests/vm/.
#pragma once

#include "vm/decode.h"

namespace dynvm::vm {

struct Link {
  const Inst* ip;
  PyObject** sp;
  Continuation continuation;
  int32_t local_count;  // of the frame, unless it is a generator's
};
inline constexpr size_t kLinkWords = sizeof(Link) / sizeof(PyObject*);
static_assert(sizeof(Link) == 3 * sizeof(PyObject*));

inline bool is_inlined_generator(const cpython::Frame* frame) { return cpython::is_generator_frame(frame); }

// One entry of the evaluator from C; lives on the C stack.
struct Activation {
  cpython::Entry cpython_entry;  // what CPython sees of it
  PyThreadState* tstate;
  cpython::Frame* entry;
  bool recording = false;     // this activation runs plain code through Hooks::record
  bool unseen = false;        // recording has just begun: the hook is to see the present instruction
  bool stopped = false;       // stop_recording() came from an event: fast code from the next instruction on
  bool entered_handler = false;
  Activation* outer = nullptr;  // that recorded before this one joined it; else nullptr
  // While C code of this one, which records, has entered others: where its own part of the data stack ends, and the frame that it stands in.
  PyObject** inner_top = nullptr;
  cpython::Frame* inner_frame;
};
// The activation whose C code enters `frame`, for as long as that runs, where it records and no other of ours lies between.
class Below {
 public:
  Below(Activation* recorder, PyThreadState* tstate, cpython::Frame* frame) {
    if (recorder != nullptr && recorder->tstate == tstate && recorder->inner_top == nullptr) [[unlikely]] stand_below(recorder, frame);
  }
  ~Below() {
    if (activation_ != nullptr) [[unlikely]] activation_->inner_top = nullptr;
  }
  explicit operator bool() const { return activation_ != nullptr; }

 private:
  void stand_below(Activation* recorder, cpython::Frame* frame);
  Activation* activation_ = nullptr;
};

extern const Hooks* g_hooks;
extern Activation* g_recorder;  // the innermost activation that records, or nullptr
extern bool g_follow_nested;    // the one that is being entered joins it
extern Stats g_stats;
inline uint64_t calls_so_far() { return g_stats.inlined_frames + g_stats.resumed_generators + g_stats.activations; }

// Link of an inlined frame that is the current frame.
inline Link* link_of_current(PyThreadState* tstate, cpython::Frame* frame) {
  return is_inlined_generator(frame) ? reinterpret_cast<Link*>(tstate->datastack_top) - 1
                                     : reinterpret_cast<Link*>(frame) - 1;
}

// How C calls a function that C has called before: its frame is made here, and not by CPython (entry.cpp).
PyObject* call_function(PyObject* callable, PyObject* const* arguments, size_t count, PyObject* kwnames);
// Nobody has changed the way that C calls the function (PyFunction_SetVectorcall).
inline bool runs_its_code(const PyFunctionObject* function) {
  return function->vectorcall == cpython::g_slots.function_call || function->vectorcall == call_function;
}

// Memory for a frame of `code` with its Link in front (an entry frame has none), header set, locals unset; takes the reference to
// `function` over. nullptr with MemoryError.
inline cpython::Frame* take_frame(PyThreadState* tstate, PyFunctionObject* function, const Code* code, size_t link_words = kLinkWords) {
  PyObject** words = cpython::push_words(tstate, static_cast<size_t>(code->frame_words) + link_words);
  if (words == nullptr) [[unlikely]] return nullptr;
  auto* frame = reinterpret_cast<cpython::Frame*>(words + link_words);
  PyCodeObject* object = code->code;
  Py_INCREF(object);
  cpython::init_frame(frame, function, object);
  return frame;
}
// The same with a new reference.
inline cpython::Frame* allocate_frame(PyThreadState* tstate, PyFunctionObject* function, const Code* code, size_t link_words = kLinkWords) {
  cpython::Frame* frame = take_frame(tstate, function, code, link_words);
  if (frame != nullptr) [[likely]] Py_INCREF(function);
  return frame;
}

// Gives the words of an inlined thread-owned frame and its Link back.
inline void release_frame(PyThreadState* tstate, cpython::Frame* frame) {
  cpython::pop_words(tstate, reinterpret_cast<PyObject**>(frame) - kLinkWords);
}

// Clears and releases an inlined thread-owned frame that is already unlinked, and leaves its level of recursion. Its stack must
// be empty.
inline void drop_inlined_frame(PyThreadState* tstate, cpython::Frame* frame, int local_count) {
  if (frame->frame_obj == nullptr) [[likely]] {
    cpython::clear_plain_frame(frame, local_count);
  } else {
    frame->stacktop = local_count;
    cpython::clear_frame(tstate, frame);
  }
  cpython::leave_recursion(tstate);
  release_frame(tstate, frame);
}

// Fills the parameters of `locals` (local_count NULLs) for a call: `kwnames`/`kwvalues` are `keywords` pairs. Takes new references.
// 1: done. 0: the arguments do not fit (locals are cleared, no exception; a real call raises CPython's error). -1: exception set.
int bind_arguments(PyFunctionObject* function, const Code* code, PyObject** locals, PyObject* const* arguments,
                   Py_ssize_t positional, PyObject* const* kwnames, PyObject* const* kwvalues, Py_ssize_t keywords);
// The same for arguments in a tuple, behind `self` (nullptr: none), and in a dict (nullptr: none), where there are not too many. A
// function of its own: the evaluator's C frame must stay small (CPython counts levels of recursion in C, not bytes).
inline constexpr Py_ssize_t kMostCollected = 48;
inline bool can_bind_collected(PyObject* arguments, PyObject* kwargs) {
  return PyTuple_GET_SIZE(arguments) <= kMostCollected && (kwargs == nullptr || PyDict_GET_SIZE(kwargs) <= kMostCollected);
}
int bind_collected(PyFunctionObject* function, const Code* code, PyObject** locals, PyObject* self, PyObject* arguments, PyObject* kwargs);

// Gives the parameters behind the first `given` that are still NULL their defaults. false: one has none, or with an exception; then those
// it filled are NULL again.
bool fill_defaults(PyFunctionObject* function, const Code* code, PyObject** locals, Py_ssize_t given);

// Drops the operands of next(generator), which has yielded: Continuation::kAsked. The stack pointer below them.
inline PyObject** drop_asked(PyObject** sp) {
  for (int operands = 3; operands > 0; --operands) Py_XDECREF(*--sp);
  return sp;
}

// Sends an event of the recorded activation.
void send_event(Activation& activation, const Inst* ip, PyObject** sp, Event event, Continuation continuation,
                cpython::Frame* frame, PyObject* value);

// Converts the positions of all frames of an activation to the other form; returns `ip` converted.
const Inst* convert_positions(Activation& activation, const Inst* ip, bool plain);

}  // namespace dynvm::vm
