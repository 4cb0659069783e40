// Recording: switching an activation between fast and plain code, events, and rebuilding frames for side exits; see vm.h.
//
// Purpose: the evaluator's side of the recorder's interface. Inputs: a ThreadView of a live activation. Outputs: its frames and
//   positions changed. Invariants: while an activation records, the Link of each of its frames points into plain code; all
//   functions leave the view consistent (frame is the current frame of the thread). Tests: tests/vm/test_recording.py.
#include "vm/eval.h"

namespace dynvm::vm {

const Hooks* g_hooks = nullptr;
Activation* g_recorder = nullptr;
bool g_follow_nested = false;

namespace {

Activation& activation_of(const ThreadView& view) { return *static_cast<Activation*>(view.activation); }

}  // namespace

// From an activation's current frame outwards.
struct LinkWalk {
  explicit LinkWalk(const Activation& activation)
      : frame(activation.inner_top != nullptr ? activation.inner_frame : activation.cpython_entry.current(activation.tstate)),
        entry(activation.entry),
        top(activation.inner_top != nullptr ? activation.inner_top : activation.tstate->datastack_top),
        chunk(activation.tstate->datastack_chunk) {
    find_chunk();
  }
  explicit LinkWalk(const Callers& callers) : frame(callers.frame), entry(callers.entry_), top(callers.top_), chunk(callers.chunk_) {}
  void keep_in(Callers* callers) const {
    callers->frame = frame;
    callers->entry_ = entry;
    callers->top_ = top;
    callers->chunk_ = chunk;
  }

  // That of `frame`, which is the caller's then; nullptr at the entry frame.
  Link* next() {
    if (frame == nullptr || frame == entry) return nullptr;
    // The Links of generators are found from the top of the data stack: each lies directly below what was pushed after it.
    Link* const link = (is_inlined_generator(frame) ? reinterpret_cast<Link*>(top) : reinterpret_cast<Link*>(frame)) - 1;
    top = reinterpret_cast<PyObject**>(link);
    find_chunk();
    frame = frame->previous;
    return link;
  }
  void find_chunk() {  // a chunk's beginning is the end of the one before
    while (chunk->previous != nullptr && (top <= &chunk->data[0] || reinterpret_cast<char*>(top) > reinterpret_cast<char*>(chunk) + chunk->size)) {
      const bool at_beginning = top == &chunk->data[0];
      chunk = chunk->previous;
      if (at_beginning) top = &chunk->data[chunk->top];
    }
  }

  cpython::Frame* frame;
  const cpython::Frame* entry;
  PyObject** top;
  _PyStackChunk* chunk;
};

void Below::stand_below(Activation* recorder, cpython::Frame* frame) {
  PyThreadState* tstate = recorder->tstate;
  activation_ = recorder;
  recorder->inner_frame = recorder->cpython_entry.current_below(tstate, recorder->entry);
  recorder->inner_top = is_inlined_generator(frame) ? tstate->datastack_top : reinterpret_cast<PyObject**>(frame);
  for (cpython::Frame* each = cpython::current_frame(tstate); each != recorder->inner_frame; each = each->previous)
    if (each->owner == FRAME_OWNED_BY_THREAD) recorder->inner_top = reinterpret_cast<PyObject**>(each);  // CPython's own evaluator runs it
}

void set_hooks(const Hooks* hooks) {
  if (g_recorder != nullptr) {
    g_recorder->stopped = true;
    end_recording(*g_recorder);
  }
  g_hooks = hooks;
  set_counter_limits(hooks != nullptr ? hooks->loop_limit : 0, hooks != nullptr ? hooks->call_limit : 0);
}

void send_event(Activation& activation, const Inst* ip, PyObject** sp, Event event, Continuation continuation,
                cpython::Frame* frame, PyObject* value) {
  if (g_hooks == nullptr || g_hooks->event == nullptr) return;
  ThreadView view{activation.tstate, activation.cpython_entry.current(activation.tstate), ip, sp, activation.entry, nullptr, false, &activation};
  g_hooks->event(view, EventInfo{event, continuation, frame, value});
}

const Inst* convert_positions(Activation& activation, const Inst* ip, bool plain) {
  const auto convert = [plain](PyCodeObject* code, const Inst* inst) {
    return plain ? as_plain(code, inst) : as_fast(code, inst);
  };
  LinkWalk walk(activation);
  while (Link* const link = walk.next()) link->ip = convert(cpython::code_of(walk.frame), link->ip);
  return ip != nullptr ? convert(cpython::code_of(activation.cpython_entry.current(activation.tstate)), ip) : nullptr;
}

bool start_recording(ThreadView& view) {
  if (g_recorder != nullptr) return false;
  Activation& activation = activation_of(view);
  activation.recording = true;
  activation.unseen = true;
  activation.stopped = false;
  activation.outer = nullptr;
  g_recorder = &activation;
  view.ip = convert_positions(activation, view.ip, true);
  return true;
}

void end_recording(Activation& activation) { end_recording_at(activation, nullptr); }

// Those that it had joined end with it; they stand in the middle of calls of C, and find out at their next instruction.
const Inst* end_recording_at(Activation& activation, const Inst* ip) {
  if (!activation.recording) return ip;
  for (Activation* each = g_recorder; each != nullptr; each = each->outer) {
    each->recording = false;
    if (each != &activation) {
      each->stopped = true;
      convert_positions(*each, nullptr, false);
    }
  }
  g_recorder = nullptr;
  return convert_positions(activation, ip, false);
}

void follow_nested() { g_follow_nested = true; }

const Inst* join_recording(Activation& activation, const Inst* ip) {
  activation.recording = activation.unseen = true;
  activation.outer = std::exchange(g_recorder, &activation);
  return convert_positions(activation, ip, true);
}

void leave_recorded(Activation& activation, const Inst* ip, PyObject** sp, cpython::Frame* frame, PyObject* result) {
  if (activation.outer != nullptr) {
    activation.recording = false;
    g_recorder = activation.outer;
    return;
  }
  send_event(activation, ip, sp, Event::kActivationEnd, Continuation::kPush, frame, result);
  end_recording(activation);
}

void stop_recording(ThreadView& view) {
  Activation* activation = g_recorder;
  if (activation == nullptr) return;
  const bool own = view.activation == activation;
  activation->stopped = true;  // plain code that is still running notices at its next instruction
  const Inst* ip = end_recording_at(*activation, own ? view.ip : nullptr);
  if (own) view.ip = ip;
}

PyThreadState* recording_thread() { return g_recorder != nullptr ? g_recorder->tstate : nullptr; }

// ---- rebuilding frames

_PyInterpreterFrame* push_frame(ThreadView& view, PyFunctionObject* function, Continuation continuation) {
  PyThreadState* tstate = view.tstate;
  Activation& activation = activation_of(view);
  Code* code = code_for(reinterpret_cast<PyCodeObject*>(function->func_code));
  if (code == nullptr || (activation.recording && !make_plain(code))) return nullptr;
  if (!cpython::enter_recursion(tstate)) return nullptr;
  cpython::Frame* frame = allocate_frame(tstate, function, code);
  if (frame == nullptr) {
    cpython::leave_recursion(tstate);
    return nullptr;
  }
  for (int i = 0; i < code->local_count; ++i) frame->localsplus[i] = nullptr;
  Link* link = reinterpret_cast<Link*>(frame) - 1;
  link->ip = view.ip;
  link->sp = view.sp;
  link->continuation = continuation;
  link->local_count = code->local_count;
  cpython::runs_at(view.frame, position_of(view.frame, view.ip));
  frame->previous = view.frame;
  activation.cpython_entry.link(tstate, frame);
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
  Code* code = code_for(cpython::code_of(frame));
  if (code == nullptr || (activation.recording && !make_plain(code))) return nullptr;
  if (!cpython::enter_recursion(tstate)) return nullptr;
  PyObject** words = cpython::push_words(tstate, kLinkWords);
  if (words == nullptr) {
    cpython::leave_recursion(tstate);
    return nullptr;
  }
  *reinterpret_cast<Link*>(words) = Link{view.ip, view.sp, continuation, 0};
  cpython::runs_at(view.frame, position_of(view.frame, view.ip));
  cpython::enter_generator(tstate, generator);
  frame->previous = view.frame;
  activation.cpython_entry.link(tstate, frame);
  const int unit = cpython::next_unit(frame);
  view.frame = frame;
  view.sp = frame->localsplus + frame->stacktop;
  view.ip = (activation.recording ? code->plain : code->fast) + code->unit_to_index[unit];
  frame->stacktop = -1;
  return frame;
}

void set_position(ThreadView& view, const Inst* at) {
  view.ip = activation_of(view).recording ? as_plain(cpython::code_of(view.frame), at) : as_fast(cpython::code_of(view.frame), at);
  // Complete, so that it can be seen: the position of the instruction before is as good as any.
  cpython::stands_before(view.frame, position_of(view.frame, view.ip));
}

void drop_frame(ThreadView& view) {
  PyThreadState* tstate = view.tstate;
  Activation& activation = activation_of(view);
  cpython::Frame* frame = view.frame;
  if (frame == activation.entry) return;
  const Link link = *link_of_current(tstate, frame);
  PyObject** base = cpython::stack_base(frame);
  while (view.sp > base) {
    PyObject* value = *--view.sp;
    Py_XDECREF(value);
  }
  activation.cpython_entry.link(tstate, frame->previous);
  view.frame = frame->previous;
  view.ip = link.ip;
  view.sp = link.sp;
  const int local_count = cpython::code_of(frame)->co_nlocalsplus;
  if (is_inlined_generator(frame)) {
    cpython::pop_words(tstate, tstate->datastack_top - kLinkWords);
    cpython::leave_recursion(tstate);
    cpython::finish_generator(tstate, frame, local_count, false);
  } else {
    drop_inlined_frame(tstate, frame, local_count);
  }
}

void suspend_frame(ThreadView& view) {
  PyThreadState* tstate = view.tstate;
  cpython::Frame* frame = view.frame;
  const Link link = *link_of_current(tstate, frame);
  PyObject* value = *--view.sp;
  cpython::suspend(frame, position_of(frame, view.ip), oparg(view.ip));
  frame->stacktop = static_cast<int>(view.sp - frame->localsplus);
  cpython::leave_recursion(tstate);
  cpython::pop_words(tstate, tstate->datastack_top - kLinkWords);
  cpython::leave_generator(tstate, cpython::generator_of(frame));
  activation_of(view).cpython_entry.link(tstate, frame->previous);
  view.frame = frame->previous;
  view.ip = link.ip;
  view.sp = link.sp;
  frame->previous = nullptr;
  Py_DECREF(value);
}

Callers::Callers(const ThreadView& view) {
  LinkWalk walk(activation_of(view));
  while (walk.frame != view.frame && walk.next() != nullptr) {}
  walk.keep_in(this);
}

bool Callers::next() {
  LinkWalk walk(*this);
  const Link* const link = walk.next();
  if (link == nullptr) return false;
  walk.keep_in(this);
  continuation = link->continuation;
  at = link->ip;
  sp = link->sp;
  return true;
}

bool is_inside(const ThreadView& view, int unit_offset, const HotCounter& loop, const cpython::Frame* frame) {
  Callers callers(view);
  while (callers.frame != frame && callers.next()) {}
  const cpython::Frame* found = callers.frame;
  while (found != nullptr && found != frame) found = found->previous;
  if (found == nullptr || cpython::code_of(found) != loop.code) return false;
  if (found != callers.frame) return true;  // C code has called what runs
  return lies_in(loop, callers.at != nullptr ? unit_of(loop.code, callers.at) : unit_offset);
}

}  // namespace dynvm::vm
