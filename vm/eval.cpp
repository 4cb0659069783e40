// The evaluator: dispatch, frames entered and left in place, continuations, unwinding, hand-over.
//
// Purpose: executes the decoded instructions of CPython frames. Inputs: the arguments of CPython's frame evaluation slot.
// Outputs: what _PyEval_EvalFrameDefault returns, with the frame in the state that it leaves.
//
// Registers: `frame`, `ip` (the instruction being executed), `sp` (one past the top). An instruction's body ends in NEXT or a jump to one of the
// labels below. Instruction bodies stand in insts_*.inc.h, grouped; this file has what is common to them.
//
// Invariants
//  - The frame's position is written (SYNC) before anything that can run other code or look at the frame; elsewhere it is stale.
//  - A reference that may be the last one is dropped by DROP, which syncs before the object dies.
//  - While act.recording, all `ip`s of the activation's frames point into plain code, else into fast code.
//  - Any instruction of fast code can be executed alone: fused forms only skip slots.
// Tests: tests/vm/.
//
// Compiled twice: with DYNVM_COUNTING it is count_run, which reports each dispatch (counting.h).
#include "vm/eval.h"

#include "vm/arrays.h"
#include "vm/attr_cache.h"
#include "vm/counting.h"
#include "vm/frames.h"
#include "vm/native/native.h"
#include "vm/objects.h"
#include "vm/operands.h"
#include "vm/operations.h"
#include "vm/specialise.h"

namespace dynvm::vm {

using cpython::Frame;

#ifdef DYNVM_COUNTING
#define run_frame count_run
#define COUNT_DISPATCH() count_dispatch(frame, ip, sp)
#else
const void* const* g_label_table = nullptr;
#define COUNT_DISPATCH()
#endif

namespace {

// Notices that somebody else has taken the evaluation slot; true when Python calls may stay in this loop.
bool __attribute__((noinline)) recover_slot(PyInterpreterState* interp) {
  if (interp->eval_frame != nullptr && interp->eval_frame != _PyEval_EvalFrameDefault) return false;
  if (!installed()) return false;
  if (cpython::slot_is_left()) return true;  // by a frame of another thread
  // It was set back to CPython's evaluator (torch's dynamo does that when it is switched off): take it again.
  ++g_stats.reinstalls;
  _PyInterpreterState_SetEvalFrameFunc(interp, evaluate_frame);
  return true;
}

}  // namespace

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define TOP sp[-1]
#define SECOND sp[-2]
#define PUSH(value) (*sp++ = (value))
#define POP() (*--sp)
#define LOCAL(i) (frame->localsplus[i])
// A callable without self takes the place of the top, in two slots.
#define SET_LONE_CALLABLE(callable) (cpython::set_lone_callable(sp - 1, callable), ++sp)

#define SYNC() (cpython::runs_at(frame, position_of(frame, ip)))
#define DISPATCH()      \
  do {                  \
    COUNT_DISPATCH();   \
    goto* ip->handler;  \
  } while (0)
#define NEXT()   \
  do {           \
    ++ip;        \
    DISPATCH();  \
  } while (0)
#define NEXT_AFTER(n) \
  do {                \
    ip += (n);        \
    DISPATCH();       \
  } while (0)

// Drops a reference; the position is written only when the object dies, because only then can anybody look.
#define DROP(object)                       \
  do {                                     \
    PyObject* dropped_ = (object);         \
    if (cpython::drop_is_last(dropped_)) { \
      SYNC();                              \
      _Py_Dealloc(dropped_);               \
    }                                      \
  } while (0)
#define XDROP(object)                       \
  do {                                      \
    PyObject* maybe_ = (object);            \
    if (maybe_ != nullptr) DROP(maybe_);    \
  } while (0)

#define CAN_INLINE() (likely(interp->eval_frame == evaluate_frame) || recover_slot(interp))

// After a call into C: signals, the GIL, tracing that was switched on.
#define NEXT_CHECKED()                                                     \
  do {                                                                     \
    if (unlikely(breaker.raised())) goto periodic_next;   \
    NEXT();                                                                \
  } while (0)

#define COUNTER_OF(inst) (reinterpret_cast<HotCounter*>((inst)->cache[1]))
#define NAME_AT(index) PyTuple_GET_ITEM(cpython::code_of(frame)->co_names, index)
#define NAME_OF(inst) NAME_AT((inst)->arg)
// Of forms that keep it, because it is not theirs or is asked for each time.
#define CACHED_NAME reinterpret_cast<PyObject*>(ip->cache[1])
#define LOW(word) (static_cast<uint32_t>(word))
#define HIGH(word) (static_cast<uint32_t>((word) >> 32))

// A conditional jump is taken: forward ones here, backward ones check and count.
#define TAKE_JUMP()                                        \
  do {                                                     \
    if (unlikely(COUNTER_OF(ip) != nullptr)) goto take_jump; \
    ip = target_of(ip);                                    \
    DISPATCH();                                            \
  } while (0)

// Goes on in `entered`, whose locals are filled, in fast code: ip is the calling instruction and sp the caller's stack.
#define START_FRAME(target_, next_)                                          \
  do {                                                                       \
    const Code* started_ = (target_);                                        \
    Link* link_ = reinterpret_cast<Link*>(entered) - 1;                      \
    link_->ip = ip;                                                          \
    link_->sp = sp;                                                          \
    link_->continuation = continuation = (next_);                            \
    link_->local_count = started_->local_count;                              \
    entered->previous = frame;                                               \
    act.cpython_entry.link(tstate, frame = entered);                         \
    sp = frame->localsplus + started_->local_count;                          \
    ip = started_->fast;                                                     \
    ++g_stats.inlined_frames;                                                \
    if (unlikely(--started_->heat == 0)) native::compile(const_cast<Code*>(started_), frame); \
    if (unlikely(!cpython::enter_recursion(tstate))) {                       \
      cpython::count_recursion(tstate);                                      \
      goto exit_unwind;                                                      \
    }                                                                        \
    /* What kResume would do, where that is nothing. */                      \
    if (likely(started_->idle_resume && !breaker.raised() && !cpython::code_is_monitored(started_->code))) ++ip; \
    DISPATCH();                                                              \
  } while (0)

// A generic instruction of fast code looks at its operands when its state runs out; plain code has state 0.
#define LOOKS() (unlikely(ip->state != 0 && --ip->state == 0))
// A specialised form met operands that it is not for.
#define MISS(Name)                        \
  do {                                    \
    if (--ip->state == 0) {               \
      set_form(ip, Form::k##Name);        \
      ip->state = after_giving_up();       \
    }                                     \
    goto generic_##Name;                  \
  } while (0)
// The same for a fused form: its first instruction is executed alone this time.
#define MISS_FUSED(Name)                  \
  do {                                    \
    if (--ip->state == 0) {               \
      set_form(ip, Form::k##Name);        \
      ip->state = look_again();           \
    }                                     \
    goto generic_##Name;                  \
  } while (0)

#define INST(Name) inst_##Name:

// Forms that start with a LoadFast and load their second operand too.
#define RIGHT_LOCAL LOCAL(ip[1].arg)
#define RIGHT_CONST reinterpret_cast<PyObject*>(ip[1].cache[0])
#define CHOOSE_LOCALS(Name, second, specialise)                                                     \
  INST(Name) {                                                                                      \
    PyObject *left = LOCAL(ip->arg), *right = second;                                               \
    if (left != nullptr && right != nullptr && LOOKS()) {                                           \
      specialise;                                                                                   \
      DISPATCH();                                                                                   \
    }                                                                                               \
    goto generic_LoadFast;                                                                          \
  }

PyObject* run_frame(PyThreadState* tstate, Frame* frame, Inst* ip, Start start) {
  static const void* const labels[] = {
#define GENERIC(name, effect, text) &&inst_##name,
#include "vm/insts.def"
#define SPECIAL(name, generic, text) &&inst_##name,
#include "vm/insts.def"
      &&record_stub, &&bad_instruction, &&watched_header, &&native_stopped};
  if (tstate == nullptr) {
    g_label_table = labels;
    return nullptr;
  }

  ++g_stats.activations;
  const Below below(g_recorder, tstate, frame);
  Activation act;
  act.tstate = tstate;
  act.entry = frame;
  const bool deep = !act.cpython_entry.begin(tstate, frame);

  PyInterpreterState* const interp = tstate->interp;
  const cpython::Breaker breaker(tstate, act.cpython_entry);
  const cpython::FloatList floats(tstate);
  native::Context natives(tstate, act.cpython_entry);

  PyObject** sp;
  // What the common labels work on.
  PyObject* result = nullptr;
  Continuation continuation = Continuation::kPush;
  Frame* entered = nullptr;
  int truth = 0;
  HotCounter* hot = nullptr;
  PyFunctionObject* detour = nullptr;
  PyObject* detour_arguments[4];
  int detour_count = 0;

  bool joins = false;
  if (unlikely(g_recorder != nullptr && g_recorder->tstate == tstate)) {
    send_event(*g_recorder, nullptr, nullptr, Event::kNestedEntry, Continuation::kPush, frame, nullptr);
    joins = std::exchange(g_follow_nested, false) && below && !is_inlined_generator(frame);
  }
  sp = frame->localsplus + frame->stacktop;
  if (unlikely(deep || !cpython::enter_recursion(tstate))) {
    cpython::end_entry_frame(tstate, act.cpython_entry, frame);
    goto exit_activation;
  }
  frame->stacktop = -1;
  if (unlikely(joins && make_plain(find_code(cpython::code_of(frame))))) ip = const_cast<Inst*>(join_recording(act, ip));
  if (unlikely(start == Start::kThrow)) goto error_here;
  if (start == Start::kPastResume && likely(!breaker.raised())) ++ip;
  DISPATCH();

#include "vm/insts_stack.inc.h"
#include "vm/insts_attributes.inc.h"
#include "vm/insts_operators.inc.h"
#include "vm/insts_jumps.inc.h"
#include "vm/insts_containers.inc.h"
#include "vm/insts_calls.inc.h"
#include "vm/insts_generators.inc.h"
#include "vm/insts_exceptions.inc.h"
#include "vm/insts_modules.inc.h"

INST(Native) {
  const native::Entry* run = native::g_entries[ip->extra];
  if (unlikely(cpython::allocations_are_traced())) goto* run->handler;  // a run makes boxes later than the lines that they belong to
  const native::State state = run->function(frame->localsplus, sp, &natives);
  sp = state.sp;
  if (state.ip == ip) goto* run->handler;  // it is for the interpreter this time
  ip = const_cast<Inst*>(state.ip);
  DISPATCH();
}
native_stopped:
  ip = const_cast<Inst*>(natives.at);
  switch (std::exchange(natives.stop, native::Stop::kRetired)) {
    case native::Stop::kRaised: goto error;
    case native::Stop::kLoopEnded: goto iterator_ended;
    case native::Stop::kTraced: goto periodic_next;
    case native::Stop::kRetired: break;
  }
  native::retire(find_code(cpython::code_of(frame)), ip);
  DISPATCH();

bad_instruction:
  SYNC();
  cpython::raise_unknown_opcode(frame);
  goto error;

// ---- recording -------------------------------------------------------------------------------------------------------

record_stub: {
  if (unlikely(!act.recording)) {  // plain code is left here, whoever has ended the recording, and wherever this frame's position was kept meanwhile
    act.stopped = false;
    ip = const_cast<Inst*>(as_fast(cpython::code_of(frame), ip));
    DISPATCH();
  }
  ThreadView view{tstate, frame, ip, sp, act.entry, nullptr, act.entered_handler, &act};
  act.entered_handler = false;
  act.unseen = false;
  SYNC();
  const HookResult outcome = g_hooks->record(view);
  if (likely(outcome == HookResult::kContinue && act.recording)) goto* labels[ip->op];
  if (outcome == HookResult::kContinue) {
    ip = const_cast<Inst*>(as_fast(cpython::code_of(frame), ip));
    act.stopped = false;
    DISPATCH();
  }
  const bool moved = frame != view.frame || ip != view.ip;
  frame = view.frame;
  sp = view.sp;
  ip = const_cast<Inst*>(view.ip);
  result = view.result;
  act.stopped = false;
  if (outcome == HookResult::kError) goto error_here;
  if (outcome == HookResult::kReturn) goto leave_frame;
  ip = const_cast<Inst*>(act.recording ? as_plain(cpython::code_of(frame), ip) : as_fast(cpython::code_of(frame), ip));
  if (act.recording && !moved && !act.unseen) goto* labels[ip->op];  // the hook has seen this state already
  DISPATCH();
}

watched_header:  // in fast code: arrived at a loop that has a trace, from above too
  hot = counter_of_header(ip, cpython::code_of(frame));
// A counter has run out; ip is what comes next.
hot_counter: {
  const bool is_call = hot->is_call;
  const auto hook = g_hooks == nullptr ? nullptr : is_call ? g_hooks->hot_call : g_hooks->hot_loop;
  if (hook == nullptr || hot->limit == 0) {
    hot->count = INT32_MAX;
    goto past_counter;
  }
  hot->count = 0;
  if (act.recording) goto past_counter;
  SYNC();
  ThreadView view{tstate, frame, ip, sp, act.entry, nullptr, false, &act};
  HotCounter* const asked = hot;
  const HookResult outcome = hook(view, *asked);
  if (asked->trace != nullptr) asked->count = is_call ? 0 : INT32_MAX;
  if (!is_call) watch_header(*asked, asked->trace != nullptr);
  if (outcome == HookResult::kContinue) goto past_counter;
  frame = view.frame;
  sp = view.sp;
  ip = const_cast<Inst*>(view.ip);
  result = view.result;
  act.stopped = false;
  if (outcome == HookResult::kError) goto error_here;
  if (outcome == HookResult::kReturn) goto leave_frame;
  ip = const_cast<Inst*>(act.recording ? as_plain(cpython::code_of(frame), ip) : as_fast(cpython::code_of(frame), ip));
  if (!act.recording && ip->op == static_cast<uint16_t>(Op::kResume)) NEXT();
  if (unlikely(breaker.raised())) {
    truth = 0;
    goto periodic_here;
  }
  DISPATCH();
}

past_counter:  // a function's kResume and a watched header must not ask again
  goto* (hot->is_call ? labels[static_cast<int>(Op::kNop)] : ip->handler == &&watched_header ? labels[ip->op] : ip->handler);

// ---- periodic work ---------------------------------------------------------------------------------------------------

periodic_next:  // at the end of ip
  SYNC();
  if (breaker.pending() && !cpython::handle_pending(tstate)) goto error;
  ++ip;
  if (breaker.traced()) goto hand_over;
  DISPATCH();

periodic_jump:  // ip jumps to its target
  SYNC();
  if (breaker.pending() && !cpython::handle_pending(tstate)) goto error;
  ip = target_of(ip);
  if (breaker.traced()) goto hand_over;
  DISPATCH();

periodic_here:  // before ip
  if (breaker.pending() && !cpython::handle_pending(tstate)) goto error_here;
  if (breaker.traced()) goto hand_over;
  DISPATCH();

// ---- entering and leaving frames -------------------------------------------------------------------------------------

// Calls `detour` with detour_count arguments (references are taken over); `continuation` gets the result. sp is already as the
// continuation needs it, and SYNC has been done.
enter_detour: {
  Code* target = code_for(reinterpret_cast<PyCodeObject*>(detour->func_code));
  if (likely(target != nullptr && runs_its_code(detour) && CAN_INLINE())) {
    entered = allocate_frame(tstate, detour, target);
    if (unlikely(entered == nullptr)) goto detour_memory;
    PyObject** locals = entered->localsplus;
    if (likely(target->simple && target->argcount == detour_count)) {
      int i = 0;
      for (; i < detour_count; ++i) locals[i] = detour_arguments[i];
      for (; i < target->local_count; ++i) locals[i] = nullptr;
      goto enter_frame;
    }
    for (int i = 0; i < target->local_count; ++i) locals[i] = nullptr;
    const int bound = bind_arguments(detour, target, locals, detour_arguments, detour_count, nullptr, nullptr, 0);
    if (bound > 0) {
      for (int i = 0; i < detour_count; ++i) Py_DECREF(detour_arguments[i]);
      goto enter_frame;
    }
    Py_DECREF(cpython::function_of(entered));
    Py_DECREF(cpython::code_of(entered));
    release_frame(tstate, entered);
    if (bound < 0) goto detour_memory;
  } else {
    PyErr_Clear();
  }
  // Not from here: through C, with the same continuation.
  Py_INCREF(detour);
  result = PyObject_Vectorcall(reinterpret_cast<PyObject*>(detour), detour_arguments, static_cast<size_t>(detour_count), nullptr);
  for (int i = 0; i < detour_count; ++i) Py_DECREF(detour_arguments[i]);
  Py_DECREF(detour);
  if (result == nullptr) goto callee_raised;
  goto deliver;
detour_memory:
  for (int i = 0; i < detour_count; ++i) Py_DECREF(detour_arguments[i]);
  goto error;
}

// Goes on in `entered`, whose locals are filled; ip is the calling instruction and sp the caller's stack.
enter_frame: {
  Link* link = reinterpret_cast<Link*>(entered) - 1;
  link->ip = ip;
  link->sp = sp;
  Code* target = find_code(cpython::code_of(entered));
  link->continuation = continuation;
  link->local_count = target->local_count;
  entered->previous = frame;
  act.cpython_entry.link(tstate, frame = entered);
  sp = frame->localsplus + target->local_count;
  ++g_stats.inlined_frames;
  ip = target->fast;
  if (unlikely(act.recording)) {
    if (!make_plain(target)) {
      cpython::count_recursion(tstate);
      goto exit_unwind;
    }
    send_event(act, link->ip, link->sp, Event::kFramePushed, continuation, frame, nullptr);
    ip = target->plain;
  }
  if (unlikely(!cpython::enter_recursion(tstate))) {
    cpython::count_recursion(tstate);
    goto exit_unwind;
  }
  DISPATCH();
}

// The frame returns `result`; its stack is empty.
leave_frame: {
  if (unlikely(frame == act.entry)) {
    if (unlikely(act.recording)) {
      leave_recorded(act, ip, sp, frame, result);
    }
    SYNC();
    frame->stacktop = cpython::code_of(frame)->co_nlocalsplus;
    cpython::leave_recursion(tstate);
    cpython::end_entry_frame(tstate, act.cpython_entry, frame);
    goto exit_activation;
  }
  const Link* link = link_of_current(tstate, frame);
  Frame* leaving = frame;
  continuation = link->continuation;
  if (unlikely(act.recording)) send_event(act, ip, sp, Event::kFrameReturned, continuation, frame, result);
  if (unlikely(leaving->frame_obj != nullptr)) SYNC();  // it may live on
  act.cpython_entry.link(tstate, frame = leaving->previous);
  ip = const_cast<Inst*>(link->ip);
  sp = link->sp;
  if (likely(!is_inlined_generator(leaving))) {
    drop_inlined_frame(tstate, leaving, link->local_count);
  } else {
    cpython::generator_of(leaving)->gi_frame_state = FRAME_COMPLETED;
    cpython::pop_words(tstate, tstate->datastack_top - kLinkWords);
    cpython::leave_recursion(tstate);
    cpython::finish_generator(tstate, leaving, cpython::code_of(leaving)->co_nlocalsplus, false);
  }
  if (likely(continuation == Continuation::kPush)) {
    PUSH(result);
    NEXT();
  }
}
  // falls through

// Gives `result` to the instruction ip of the current frame as its continuation says.
deliver:
  switch (continuation) {
    case Continuation::kOverride:
      if (unlikely(result == Py_NotImplemented)) {
        SYNC();
        Py_DECREF(result);
        PyErr_SetString(PyExc_TypeError, "the overriding method returned NotImplemented");
        goto error;
      }
      [[fallthrough]];
    case Continuation::kPush:
      PUSH(result);
      NEXT();
    case Continuation::kDiscard:
      DROP(result);
      NEXT();
    case Continuation::kInit:
      if (unlikely(result != Py_None)) {
        PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'", Py_TYPE(result)->tp_name);
        Py_DECREF(result);
        goto error;
      }
      Py_DECREF(result);
      NEXT();
    case Continuation::kReplace:
    case Continuation::kAttribute: {
      PyObject* owner = TOP;
      TOP = result;
      DROP(owner);
      NEXT();
    }
    case Continuation::kReplaceMethod:
    case Continuation::kMethodAttribute: {
      PyObject* owner = TOP;
      SET_LONE_CALLABLE(result);
      DROP(owner);
      NEXT();
    }
    case Continuation::kTruth:
      if (unlikely(!PyBool_Check(result))) {
        PyErr_Format(PyExc_TypeError, "__bool__ should return bool, returned %s", Py_TYPE(result)->tp_name);
        Py_DECREF(result);
        goto error;
      }
      truth = result == Py_True;
      Py_DECREF(result);
      goto decide;
    case Continuation::kLength: {
      const Py_ssize_t length = as_length(result);
      Py_DECREF(result);
      if (length < 0) goto error;
      truth = length != 0;
      goto decide;
    }
    case Continuation::kSize: {
      const Py_ssize_t length = as_length(result);
      if (length < 0 || !PyLong_CheckExact(result)) Py_SETREF(result, length < 0 ? nullptr : PyLong_FromSsize_t(length));
      if (result == nullptr) goto error;
      PUSH(result);
      NEXT();
    }
    case Continuation::kContains: {
      SYNC();
      const int is_in = PyObject_IsTrue(result);
      Py_DECREF(result);
      if (is_in < 0) goto error;
      PUSH(Py_NewRef((is_in ^ ip->arg) ? Py_True : Py_False));
      NEXT();
    }
    case Continuation::kBinary:
    case Continuation::kCompare: {
      SYNC();
      if (unlikely(result == Py_NotImplemented)) {
        Py_DECREF(result);
        result = continuation == Continuation::kCompare ? compare_after_not_implemented(ip->arg, SECOND, TOP)
                                                        : binary_after_not_implemented(ip->arg, SECOND, TOP);
        if (result == nullptr) goto error;
      }
      PyObject *right = TOP, *left = SECOND;
      --sp;
      TOP = result;
      DROP(left);
      DROP(right);
      NEXT();
    }
    case Continuation::kOperand:
    case Continuation::kIter: {
      if (unlikely(!PyIter_Check(result))) {
        PyErr_Format(PyExc_TypeError, "iter() returned non-iterator of type '%.100s'", Py_TYPE(result)->tp_name);
        Py_DECREF(result);
        goto error;
      }
      PyObject* iterable = TOP;
      TOP = result;
      DROP(iterable);
      if (continuation == Continuation::kOperand) DISPATCH();
      NEXT();
    }
    case Continuation::kNext:
      PUSH(result);
      NEXT();
    case Continuation::kForGenerator: {
      DROP(result);
      PyObject* iterator = POP();
      DROP(iterator);
      ip = target_of(ip);
      DISPATCH();
    }
    case Continuation::kSendGenerator: {
      PyObject* receiver = TOP;
      TOP = result;
      DROP(receiver);
      ip = target_of(ip);
      DISPATCH();
    }
    case Continuation::kAsked:
      SYNC();
      raise_stop_iteration(result);
      goto error;
    case Continuation::kCount:
      break;
  }
  __builtin_unreachable();

// The object whose truth ip asks for is on top; `truth` is the answer.
decide:
  switch (static_cast<Op>(ip->op)) {
    case Op::kPopJumpIfFalse:
    case Op::kPopJumpIfTrue: {
      PyObject* object = POP();
      DROP(object);
      if ((truth != 0) != (ip->op == static_cast<uint16_t>(Op::kPopJumpIfTrue))) NEXT();
      goto take_jump;
    }
    case Op::kJumpIfFalseOrPop:
    case Op::kJumpIfTrueOrPop: {
      if ((truth != 0) == (ip->op == static_cast<uint16_t>(Op::kJumpIfTrueOrPop))) goto take_jump;
      PyObject* object = POP();
      DROP(object);
      NEXT();
    }
    default: {  // kUnaryNot, kToBool
      PyObject* object = TOP;
      TOP = Py_NewRef((truth != 0) == (ip->op == static_cast<uint16_t>(Op::kToBool)) ? Py_True : Py_False);
      DROP(object);
      NEXT();
    }
  }

// A conditional jump is taken; backward ones check and count.
take_jump:
  if (COUNTER_OF(ip) != nullptr) {
    if (unlikely(breaker.raised())) goto periodic_jump;
    hot = COUNTER_OF(ip);
    ip = target_of(ip);
    if (unlikely(--hot->heat == 0) && !act.recording) native::compile(find_code(cpython::code_of(frame)), frame);
    if (unlikely(--hot->count < 0)) goto hot_counter;
    DISPATCH();
  }
  ip = target_of(ip);
  DISPATCH();

// ---- exceptions ------------------------------------------------------------------------------------------------------

// A frame entered from ip was left by an exception, or the C call instead of it raised.
callee_raised:
  if (likely(continuation == Continuation::kPush)) goto error;
  if (continuation == Continuation::kNext) {
    if (!PyErr_ExceptionMatches(PyExc_StopIteration)) goto error;
    cpython::trace_exception(tstate, frame);
    PyErr_Clear();
    PyObject* iterator = POP();
    DROP(iterator);
    ip = target_of(ip);
    DISPATCH();
  }
  if (ip->op == static_cast<uint16_t>(Op::kLoadAttr) || ip->op == static_cast<uint16_t>(Op::kLoadMethod)) {
    AttrEntry* entry = find_attr(Py_TYPE(TOP), NAME_OF(ip));
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
      const bool ask = continuation == Continuation::kAttribute || continuation == Continuation::kMethodAttribute;
      if (ask && entry != nullptr && entry->getattr != nullptr) {
        // The object's own look-up failed: its __getattr__ is next.
        PyErr_Clear();
        SYNC();
        detour = entry->getattr;
        detour_arguments[0] = Py_NewRef(TOP);
        detour_arguments[1] = Py_NewRef(NAME_OF(ip));
        detour_count = 2;
        continuation = continuation == Continuation::kMethodAttribute ? Continuation::kReplaceMethod : Continuation::kReplace;
        goto enter_detour;
      }
      // LOAD_METHOD with the generic look-up leaves the error of a getter alone.
      const bool generic = entry != nullptr && entry->access == AttrAccess::kGeneric && entry->getattr == nullptr;
      if (ip->op != static_cast<uint16_t>(Op::kLoadMethod) || !generic) describe_attribute_error(TOP, NAME_OF(ip));
    }
  }
  goto error;

error:
  SYNC();
error_here:
  if (unlikely(!cpython::exception_is_set(tstate))) PyErr_SetString(PyExc_SystemError, "error return without exception set");
  if (unlikely(act.recording)) send_event(act, ip, sp, Event::kUnwind, Continuation::kPush, frame, nullptr);
  cpython::add_traceback(tstate, frame);
  if (unlikely(breaker.traced())) cpython::trace_exception(tstate, frame);

unwind: {
  PyCodeObject* object = cpython::code_of(frame);
  PyObject** base = frame->localsplus + object->co_nlocalsplus;
  cpython::HandlerEntry handler;
  if (!cpython::find_handler(object, static_cast<int>(ip->unit), &handler)) {
    while (sp > base) {
      PyObject* value = POP();
      Py_XDECREF(value);
    }
    if (unlikely(breaker.traced())) cpython::trace_unwound(tstate, frame);
    goto exit_unwind;
  }
  while (sp > base + handler.level) {
    PyObject* value = POP();
    Py_XDECREF(value);
  }
  if (handler.push_lasti) {
    PyObject* lasti = PyLong_FromLong(cpython::last_unit(frame));
    if (lasti == nullptr) goto unwind;
    PUSH(lasti);
  }
  PUSH(cpython::take_exception(tstate));
  Code* own = find_code(object);
  ip = (act.recording ? own->plain : own->fast) + own->unit_to_index[handler.handler];
  act.entered_handler = act.recording;
  if (unlikely(breaker.traced())) goto hand_over;
  DISPATCH();
}

// The frame is left by the exception that is set; its stack is empty. Its level of recursion has been entered.
exit_unwind: {
  if (frame == act.entry) {
    if (unlikely(act.recording)) {
      leave_recorded(act, ip, sp, frame, nullptr);
    }
    frame->stacktop = cpython::code_of(frame)->co_nlocalsplus;
    cpython::leave_recursion(tstate);
    cpython::end_entry_frame(tstate, act.cpython_entry, frame);
    result = nullptr;
    goto exit_activation;
  }
  const Link link = *link_of_current(tstate, frame);
  Frame* leaving = frame;
  const int local_count = cpython::code_of(leaving)->co_nlocalsplus;
  continuation = link.continuation;
  if (unlikely(act.recording)) send_event(act, ip, sp, Event::kFrameUnwound, continuation, frame, nullptr);
  act.cpython_entry.link(tstate, frame = leaving->previous);
  ip = const_cast<Inst*>(link.ip);
  sp = link.sp;
  if (is_inlined_generator(leaving)) {
    cpython::generator_of(leaving)->gi_frame_state = FRAME_COMPLETED;
    cpython::pop_words(tstate, tstate->datastack_top - kLinkWords);
    cpython::leave_recursion(tstate);
    cpython::finish_generator(tstate, leaving, local_count, true);
  } else {
    drop_inlined_frame(tstate, leaving, local_count);
  }
  goto callee_raised;
}

exit_activation:
  act.cpython_entry.end(tstate);
  if (unlikely(g_recorder != nullptr && g_recorder->tstate == tstate)) {
    send_event(*g_recorder, nullptr, nullptr, Event::kNestedExit, Continuation::kPush, frame, result);
  }
  return result;

// ---- hand-over to CPython's evaluator --------------------------------------------------------------------------------

// Tracing was switched on: CPython's evaluator finishes this frame from ip on.
hand_over: {
  ++g_stats.handovers;
  if (act.recording) {
    send_event(act, ip, sp, Event::kHandover, Continuation::kPush, frame, nullptr);
    ip = const_cast<Inst*>(end_recording_at(act, ip));
  } else if (act.stopped) {
    ip = const_cast<Inst*>(as_fast(cpython::code_of(frame), ip));
  }
  PyCodeObject* object = cpython::code_of(frame);
  Code* own = find_code(object);
  cpython::stands_before(frame, cpython::code_units(object) + own->start_unit[ip - own->fast]);
  frame->stacktop = static_cast<int>(sp - frame->localsplus);
  cpython::leave_recursion(tstate);  // the other evaluator counts for itself
  Frame* const handed = frame;
  Frame* const caller = frame->previous;
  const bool generator_handed = is_inlined_generator(handed);
  act.cpython_entry.link(tstate, caller);
  if (handed == act.entry) {
    act.cpython_entry.end(tstate);
    return cpython::run_foreign(tstate, handed, 0);
  }
  const Link link = *link_of_current(tstate, handed);
  result = cpython::run_foreign(tstate, handed, 0);
  frame = caller;
  ip = const_cast<Inst*>(link.ip);
  sp = link.sp;
  continuation = link.continuation;
  if (generator_handed) {
    // Its memory is the generator's, which the caller's stack holds.
    PyGenObject* generator = cpython::generator_of(handed);
    cpython::pop_words(tstate, tstate->datastack_top - kLinkWords);
    if (result != nullptr && cpython::is_suspended(generator)) {
      cpython::end_foreign_suspension(tstate, handed);
      if (continuation == Continuation::kAsked) sp = drop_asked(sp);
      PUSH(result);
      ++ip;
      if (breaker.traced()) goto hand_over;
      DISPATCH();
    }
    cpython::end_foreign_generator(tstate, handed, result == nullptr);
  } else {
    cpython::end_foreign_frame(tstate, handed);
    cpython::pop_words(tstate, reinterpret_cast<PyObject**>(handed) - kLinkWords);
  }
  if (result == nullptr) goto callee_raised;
  if (continuation == Continuation::kPush) {
    PUSH(result);
    ++ip;
    if (breaker.traced()) goto hand_over;
    DISPATCH();
  }
  goto deliver;
}
}

}  // namespace dynvm::vm
