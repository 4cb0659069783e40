// Recording: switching an activation between fast and plain code, events, and rebuilding frames for side exits; see vm.h.
//
// Purpose: the evaluator's side of the recorder's interface. Inputs: a ThreadView of a live activation. Outputs: its frames and
//   positions changed. Invariants: while an activation records, the Link of each of its frames points into plain code; all
//   functions leave the view consistent (frame is the current frame of the thread). Tests: tests/vm/test_recording.py.
#include "vm/eval.h"

namespace dynvm::vm {

const Hooks* g_hooks = nullptr;
Activation* g_recorder = nullptr;

namespace {

Activation& activation_of(const ThreadView& view) { return *static_cast<Activation*>(view.activation); }

// Calls visit(Link&, frame) for each inlined frame from the current one outwards, then the entry frame is reached.
template <class Visit>
void each_link(const Activation& activation, Visit visit) {
  cpython::Frame* frame = activation.cframe.current_frame;
  // The Links of generators are found from the top of the data stack: each lies directly below what was pushed after it.
  auto* top = activation.tstate->datastack_top;
  _PyStackChunk* chunk = activation.tstate->datastack_chunk;
  while (frame != nullptr && !frame->is_entry) {
    Link* link;
    if (is_inlined_generator(frame)) {
      link = reinterpret_cast<Link*>(top) - 1;
    } else {
      link = reinterpret_cast<Link*>(frame) - 1;
    }
    top = reinterpret_cast<PyObject**>(link);
    if (top == &chunk->data[0] && chunk->previous != nullptr) {
      chunk = chunk->previous;
      top = &chunk->data[chunk->top];
    }
    visit(*link, frame);
    frame = frame->previous;
  }
}

}  // namespace

void set_hooks(const Hooks* hooks) {
  if (g_recorder != nullptr) {
    Activation& activation = *g_recorder;
    end_recording(activation);
    activation.stopped = true;
  }
  g_hooks = hooks;
  set_counter_limits(hooks != nullptr ? hooks->loop_limit : 0, hooks != nullptr ? hooks->call_limit : 0);
}

void send_event(Activation& activation, const Inst* ip, PyObject** sp, Event event, Continuation continuation,
                cpython::Frame* frame, PyObject* value) {
  if (g_hooks == nullptr || g_hooks->event == nullptr) return;
  ThreadView view{activation.tstate, activation.cframe.current_frame, ip, sp, activation.entry, nullptr, false, &activation};
  g_hooks->event(view, EventInfo{event, continuation, frame, value});
}

const Inst* convert_positions(Activation& activation, const Inst* ip, bool plain) {
  const auto convert = [plain](PyCodeObject* code, const Inst* inst) {
    return plain ? as_plain(code, inst) : as_fast(code, inst);
  };
  each_link(activation, [&](Link& link, cpython::Frame* frame) { link.ip = convert(frame->previous->f_code, link.ip); });
  return ip != nullptr ? convert(activation.cframe.current_frame->f_code, ip) : nullptr;
}

bool start_recording(ThreadView& view) {
  if (g_recorder != nullptr) return false;
  Activation& activation = activation_of(view);
  activation.recording = true;
  activation.unseen = true;
  activation.stopped = false;
  g_recorder = &activation;
  view.ip = convert_positions(activation, view.ip, true);
  return true;
}

void end_recording(Activation& activation) { end_recording_at(activation, nullptr); }

const Inst* end_recording_at(Activation& activation, const Inst* ip) {
  if (!activation.recording) return ip;
  activation.recording = false;
  g_recorder = nullptr;
  return convert_positions(activation, ip, false);
}

void stop_recording(ThreadView& view) {
  Activation* activation = g_recorder;
  if (activation == nullptr) return;
  const bool own = view.activation == activation;
  const Inst* ip = end_recording_at(*activation, own ? view.ip : nullptr);
  if (own) view.ip = ip;
  activation->stopped = true;  // plain code that is still running notices at its next instruction
}

bool recording() { return g_recorder != nullptr; }

// ---- rebuilding frames

_PyInterpreterFrame* push_frame(ThreadView& view, PyFunctionObject* function, Continuation continuation) {
  PyThreadState* tstate = view.tstate;
  Activation& activation = activation_of(view);
  Code* code = code_for(reinterpret_cast<PyCodeObject*>(function->func_code));
  if (code == nullptr || (activation.recording && !make_plain(code))) return nullptr;
  if (!cpython::enter_recursion(tstate)) return nullptr;
  cpython::Frame* frame = allocate_frame(tstate, function, code);
  if (frame == nullptr) {
    ++tstate->recursion_remaining;
    return nullptr;
  }
  for (int i = 0; i < code->local_count; ++i) frame->localsplus[i] = nullptr;
  Link* link = reinterpret_cast<Link*>(frame) - 1;
  link->ip = view.ip;
  link->sp = view.sp;
  link->continuation = continuation;
  view.frame->prev_instr = view.ip->position;
  frame->previous = view.frame;
  activation.cframe.current_frame = frame;
  view.frame = frame;
  view.ip = activation.recording ? code->plain : code->fast;
  view.sp = frame->localsplus + code->local_count;
  return frame;
}

_PyInterpreterFrame* resume_generator(ThreadView& view, PyObject* object, Continuation continuation) {
  PyThreadState* tstate = view.tstate;
  Activation& activation = activation_of(view);
  auto* generator = reinterpret_cast<PyGenObject*>(object);
  cpython::Frame* frame = cpython::frame_of(generator);
  Code* code = code_for(frame->f_code);
  if (code == nullptr || (activation.recording && !make_plain(code))) return nullptr;
  if (!cpython::enter_recursion(tstate)) return nullptr;
  PyObject** words = cpython::push_words(tstate, kLinkWords);
  if (words == nullptr) {
    ++tstate->recursion_remaining;
    return nullptr;
  }
  *reinterpret_cast<Link*>(words) = Link{view.ip, view.sp, continuation};
  view.frame->prev_instr = view.ip->position;
  generator->gi_exc_state.previous_item = tstate->exc_info;
  tstate->exc_info = &generator->gi_exc_state;
  generator->gi_frame_state = FRAME_EXECUTING;
  frame->previous = view.frame;
  frame->is_entry = false;
  activation.cframe.current_frame = frame;
  const int unit = static_cast<int>(frame->prev_instr - cpython::code_units(frame->f_code)) + 1;
  view.frame = frame;
  view.sp = frame->localsplus + frame->stacktop;
  view.ip = (activation.recording ? code->plain : code->fast) + code->unit_to_index[unit];
  frame->stacktop = -1;
  return frame;
}

void set_position(ThreadView& view, const Inst* at) {
  view.ip = activation_of(view).recording ? as_plain(view.frame->f_code, at) : as_fast(view.frame->f_code, at);
  // Complete, so that it can be seen: the position of the instruction before is as good as any.
  view.frame->prev_instr = view.ip->position - 1;
}

void drop_frame(ThreadView& view) {
  PyThreadState* tstate = view.tstate;
  Activation& activation = activation_of(view);
  cpython::Frame* frame = view.frame;
  if (frame->is_entry) return;
  const Link link = *link_of_current(tstate, frame);
  PyObject** base = _PyFrame_Stackbase(frame);
  while (view.sp > base) {
    PyObject* value = *--view.sp;
    Py_XDECREF(value);
  }
  activation.cframe.current_frame = frame->previous;
  view.frame = frame->previous;
  view.ip = link.ip;
  view.sp = link.sp;
  const int local_count = frame->f_code->co_nlocalsplus;
  if (is_inlined_generator(frame)) {
    PyGenObject* generator = cpython::generator_of(frame);
    cpython::pop_words(tstate, tstate->datastack_top - kLinkWords);
    ++tstate->recursion_remaining;
    tstate->exc_info = generator->gi_exc_state.previous_item;
    generator->gi_exc_state.previous_item = nullptr;
    frame->previous = nullptr;
    Py_CLEAR(generator->gi_exc_state.exc_value);
    generator->gi_frame_state = FRAME_CLEARED;
    frame->stacktop = local_count;
    cpython::clear_frame(tstate, frame);
  } else {
    drop_inlined_frame(tstate, frame, local_count);
  }
}

bool caller_of(const ThreadView& view, _PyInterpreterFrame* frame, Continuation* continuation, const Inst** at, PyObject*** sp) {
  bool found = false;
  each_link(activation_of(view), [&](Link& link, cpython::Frame* candidate) {
    if (candidate != frame) return;
    *continuation = link.continuation;
    *at = link.ip;
    if (sp != nullptr) *sp = link.sp;
    found = true;
  });
  return found;
}

}  // namespace dynvm::vm
