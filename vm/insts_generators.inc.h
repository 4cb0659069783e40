// Instruction bodies: generators, coroutines, asynchronous iteration. Included by eval.cpp inside evaluate_frame.
//
// Purpose, invariants: eval.cpp. Inputs, outputs: the evaluator's registers. Tests: tests/vm/scripts/generators_*.py, async_*.py.
//
// A generator or coroutine that a for loop, yield from or await resumes runs in this loop: its frame is linked behind the current
// one, with a Link of its own on the data stack.

INST(ReturnGenerator) {
  cpython::stands_before(frame, position_of(frame, ip) + 1);
  frame->stacktop = static_cast<int>(sp - frame->localsplus);
  result = cpython::make_generator(tstate, frame);
  if (unlikely(result == nullptr)) {
    frame->stacktop = -1;
    goto error;
  }
  if (unlikely(act.recording)) send_event(act, ip, sp, Event::kGeneratorMade, Continuation::kPush, frame, result);
  cpython::leave_recursion(tstate);
  if (frame == act.entry) {
    if (unlikely(act.recording)) {
      leave_recorded(act, ip, sp, frame, result);
    }
    cpython::leave_moved_entry_frame(tstate, act.cpython_entry, frame);
    goto exit_activation;
  }
  const Link link = *(reinterpret_cast<Link*>(frame) - 1);
  Frame* made = frame;
  act.cpython_entry.link(tstate, frame = made->previous);
  release_frame(tstate, made);
  ip = const_cast<Inst*>(link.ip);
  sp = link.sp;
  continuation = link.continuation;
  goto deliver;
}

INST(YieldValue) {
  result = POP();
  PyGenObject* generator = cpython::generator_of(frame);
  cpython::suspend(frame, position_of(frame, ip), ip->arg);
  frame->stacktop = static_cast<int>(sp - frame->localsplus);
  cpython::leave_recursion(tstate);
  if (frame == act.entry) {
    if (unlikely(act.recording)) {
      leave_recorded(act, ip, sp, frame, result);
    }
    cpython::suspend_entry_frame(tstate, act.cpython_entry, frame);
    goto exit_activation;
  }
  const Link link = *(reinterpret_cast<Link*>(tstate->datastack_top) - 1);
  if (unlikely(act.recording)) send_event(act, ip, sp, Event::kFrameYielded, link.continuation, frame, result);
  cpython::pop_words(tstate, tstate->datastack_top - kLinkWords);
  cpython::leave_generator(tstate, generator);
  Frame* suspended = frame;
  act.cpython_entry.link(tstate, frame = suspended->previous);
  suspended->previous = nullptr;
  ip = const_cast<Inst*>(link.ip);
  sp = link.sp;
  if (unlikely(link.continuation == Continuation::kAsked)) {
    SYNC();
    sp = drop_asked(sp);
  }
  PUSH(result);
  NEXT();
}

INST(ForIterGenerator) {
  if (unlikely(Py_TYPE(TOP) != &PyGen_Type)) MISS(ForIter);
  SYNC();
  goto resume_for;
}

// The generator on top is asked for its next value by a for loop.
resume_for : {
  auto* generator = reinterpret_cast<PyGenObject*>(TOP);
  if (likely(cpython::can_resume(generator) && CAN_INLINE())) {
    result = Py_NewRef(Py_None);
    continuation = Continuation::kForGenerator;
    goto resume_generator;
  }
  PyObject* item = PyGen_Type.tp_iternext(TOP);
  if (item != nullptr) {
    PUSH(item);
    NEXT_CHECKED();
  }
  if (cpython::exception_is_set(tstate)) {
    if (!PyErr_ExceptionMatches(PyExc_StopIteration)) goto error;
    PyErr_Clear();
  }
  goto end_loop;
}

// Resumes the suspended generator on top with `result` (a reference is taken over).
resume_generator : {
  auto* generator = reinterpret_cast<PyGenObject*>(TOP);
  entered = cpython::frame_of(generator);
  Inst* target = resumption(entered);
  PyObject** words = target != nullptr ? cpython::push_words(tstate, kLinkWords) : nullptr;
  if (unlikely(words == nullptr)) {
    Py_DECREF(result);
    goto error;
  }
  Link* link = reinterpret_cast<Link*>(words);
  link->ip = ip;
  link->sp = sp;
  link->continuation = continuation;
  entered->localsplus[entered->stacktop++] = result;
  cpython::enter_generator(tstate, generator);
  entered->previous = frame;
  act.cpython_entry.link(tstate, frame = entered);
  sp = frame->localsplus + frame->stacktop;
  frame->stacktop = -1;
  ++g_stats.resumed_generators;
  ip = target;
  if (unlikely(act.recording)) {
    Code* code = find_code(cpython::code_of(frame));
    if (!make_plain(code)) goto resumption_failed;
    send_event(act, link->ip, link->sp, Event::kFrameResumed, continuation, frame, nullptr);
    ip = code->plain + (target - code->fast);
  }
  if (unlikely(!cpython::enter_recursion(tstate))) goto resumption_failed;
  DISPATCH();
}
resumption_failed : {
  PyObject** base = frame->localsplus + cpython::code_of(frame)->co_nlocalsplus;
  while (sp > base) {
    PyObject* value = POP();
    Py_XDECREF(value);
  }
  cpython::count_recursion(tstate);
  goto exit_unwind;
}

INST(Send) {
  SYNC();
  PyObject *value = TOP, *receiver = SECOND;
  if ((PyGen_CheckExact(receiver) || PyCoro_CheckExact(receiver)) && CAN_INLINE()) {
    auto* generator = reinterpret_cast<PyGenObject*>(receiver);
    if (cpython::is_suspended(generator) || (cpython::can_resume(generator) && (cpython::kSendsAnyFirst || value == Py_None))) {
      result = POP();
      continuation = Continuation::kSendGenerator;
      goto resume_generator;
    }
  }
  --sp;
  result = nullptr;
  const PySendResult outcome = PyIter_Send(receiver, value, &result);
  Py_DECREF(value);
  if (unlikely(outcome == PYGEN_ERROR)) goto error;
  if (outcome == PYGEN_RETURN) {
    TOP = result;
    DROP(receiver);
    ip = target_of(ip);
    DISPATCH();
  }
  PUSH(result);
  NEXT();
}
// What a generator that delegates does with each value sent to it.
INST(ResumeSend) {
  if (unlikely(cpython::code_is_monitored(cpython::code_of(frame)))) goto hand_over;
  ip = target_of(ip + 1);
  DISPATCH();
}
INST(EndSend) {
  PyObject* value = POP();
  PyObject* receiver = TOP;
  TOP = value;
  DROP(receiver);
  NEXT();
}
// An exception was thrown in at a yield from or await: the receiver has returned if it is a StopIteration.
INST(CleanupThrow) {
  SYNC();
  PyObject* exception = TOP;
  if (!PyErr_GivenExceptionMatches(exception, PyExc_StopIteration)) {
    cpython::set_exception(Py_NewRef(exception));
    goto unwind;
  }
  PyObject* value = Py_NewRef(reinterpret_cast<PyStopIterationObject*>(exception)->value);
  PyObject *last = SECOND, *receiver = sp[-3];
  --sp;
  TOP = value;
  SECOND = Py_NewRef(Py_None);
  DROP(receiver);
  DROP(last);
  DROP(exception);
  NEXT();
}
INST(GetYieldFromIter) {
  SYNC();
  PyObject* iterable = TOP;
  if (PyCoro_CheckExact(iterable)) {
    if (unlikely((cpython::code_of(frame)->co_flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE)) == 0)) {
      PyErr_SetString(PyExc_TypeError, "cannot 'yield from' a coroutine object in a non-coroutine generator");
      goto error;
    }
  } else if (!PyGen_CheckExact(iterable)) {
    goto get_iter;
  }
  NEXT();
}
INST(GetAwaitable) {
  SYNC();
  PyObject* object = TOP;
  PyObject* iterator = get_awaitable(object, ip->arg);
  if (unlikely(iterator == nullptr)) goto error;
  TOP = iterator;
  Py_DECREF(object);
  NEXT();
}
INST(GetAiter) {
  SYNC();
  PyObject* object = TOP;
  PyObject* iterator = get_aiter(object);
  if (unlikely(iterator == nullptr)) goto error;
  TOP = iterator;
  Py_DECREF(object);
  NEXT();
}
INST(GetAnext) {
  SYNC();
  PyObject* awaitable = get_anext(TOP);
  if (unlikely(awaitable == nullptr)) goto error;
  PUSH(awaitable);
  NEXT();
}
INST(EndAsyncFor) {
  SYNC();
  PyObject* value = POP();
  if (PyErr_GivenExceptionMatches(value, PyExc_StopAsyncIteration)) {
    Py_DECREF(value);
    PyObject* iterator = POP();
    Py_DECREF(iterator);
    NEXT();
  }
  cpython::set_exception(value);
  goto unwind;
}
INST(AsyncGenWrap) {
  PyObject* value = TOP;
  PyObject* wrapped = cpython::async_gen_wrap(value);
  if (unlikely(wrapped == nullptr)) goto error;
  TOP = wrapped;
  Py_DECREF(value);
  NEXT();
}
