// Instruction bodies: jumps, truth, loops over iterators. Included by eval.cpp inside evaluate_frame.
//
// Purpose, invariants: eval.cpp. Inputs, outputs: the evaluator's registers. Tests: tests/vm/scripts/loops_*.py, truth_*.py.

INST(JumpForward) {
  ip = target_of(ip);
  DISPATCH();
}
INST(JumpBackwardNoInterrupt) {
  ip = target_of(ip);
  DISPATCH();
}
INST(JumpBackward) {
  if (unlikely(breaker.raised())) goto periodic_jump;
  hot = COUNTER_OF(ip);
  ip = target_of(ip);
  if (unlikely(--hot->heat == 0) && !act.recording) native::compile(find_code(cpython::code_of(frame)), frame);
  if (unlikely(--hot->count < 0)) goto hot_counter;
  DISPATCH();
}

#define POP_JUMP_IF(Name, wanted)                        \
  INST(Name) {                                           \
    PyObject* value = TOP;                               \
    if (value == ((wanted) ? Py_False : Py_True)) {      \
      --sp;                                              \
      cpython::drop_singleton(value);                    \
      NEXT();                                            \
    }                                                    \
    if (value == ((wanted) ? Py_True : Py_False)) {      \
      --sp;                                              \
      cpython::drop_singleton(value);                    \
      TAKE_JUMP();                                       \
    }                                                    \
    truth = quick_truth(value);                          \
    if (unlikely(truth < 0)) goto ask_method;            \
    --sp;                                                \
    DROP(value);                                         \
    if ((truth != 0) == (wanted)) TAKE_JUMP();           \
    NEXT();                                              \
  }
POP_JUMP_IF(PopJumpIfFalse, false)
POP_JUMP_IF(PopJumpIfTrue, true)
INST(JumpIfFalseOrPop) goto ask_truth;
INST(JumpIfTrueOrPop) goto ask_truth;

// Decides ip by the truth of the top.
ask_truth:
  truth = quick_truth(TOP);
  if (likely(truth >= 0)) goto decide;
ask_method : {
  PyObject* object = TOP;
  SYNC();
  PyTypeObject* type = Py_TYPE(object);
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && CAN_INLINE()) {
    const bool by_bool = type->tp_as_number != nullptr && type->tp_as_number->nb_bool != nullptr;
    detour = nullptr;
    if (by_bool) {
      if (type->tp_as_number->nb_bool == cpython::g_slots.nb_bool) detour = python_method(type, g_names.n_bool);
    } else if (type->tp_as_mapping->mp_length == cpython::g_slots.length) {
      detour = python_method(type, g_names.n_len);
    }
    if (detour != nullptr) {
      detour_arguments[0] = Py_NewRef(object);
      detour_count = 1;
      continuation = by_bool ? Continuation::kTruth : Continuation::kLength;
      goto enter_detour;
    }
  }
  truth = PyObject_IsTrue(object);
  if (unlikely(truth < 0)) goto error;
  goto decide;
}

INST(PopJumpIfNone) {
  PyObject* value = POP();
  if (value == Py_None) {
    cpython::drop_singleton(value);
    TAKE_JUMP();
  }
  DROP(value);
  NEXT();
}
INST(PopJumpIfNotNone) {
  PyObject* value = POP();
  if (value == Py_None) {
    cpython::drop_singleton(value);
    NEXT();
  }
  DROP(value);
  TAKE_JUMP();
}

INST(GetIter)
get_iter : {
  PyObject* iterable = TOP;
  PyTypeObject* type = Py_TYPE(iterable);
  SYNC();
  if (type->tp_iter == cpython::g_slots.iter && CAN_INLINE()) {
    detour = python_method(type, g_names.n_iter);
    if (detour != nullptr) {
      detour_arguments[0] = Py_NewRef(iterable);
      detour_count = 1;
      continuation = Continuation::kIter;
      goto enter_detour;
    }
  }
  PyObject* iterator = PyObject_GetIter(iterable);
  if (unlikely(iterator == nullptr)) goto error;
  TOP = iterator;
  DROP(iterable);
  NEXT_CHECKED();
}
INST(GetLen) {
  SYNC();
  const Py_ssize_t length = PyObject_Length(TOP);
  if (unlikely(length < 0)) goto error;
  PyObject* value = PyLong_FromSsize_t(length);
  if (unlikely(value == nullptr)) goto error;
  PUSH(value);
  NEXT();
}

INST(ForIter)
  if (LOOKS()) {
    specialise_for_iter(ip, TOP);
    DISPATCH();
  }
generic_ForIter : {
  PyObject* iterator = TOP;
  PyTypeObject* type = Py_TYPE(iterator);
  SYNC();
  if (type == &PyGen_Type) goto resume_for;
  if (type->tp_iternext == cpython::g_slots.iternext && CAN_INLINE()) {
    detour = python_method(type, g_names.n_next);
    if (detour != nullptr) {
      detour_arguments[0] = Py_NewRef(iterator);
      detour_count = 1;
      continuation = Continuation::kNext;
      goto enter_detour;
    }
  }
  PyObject* item = type->tp_iternext(iterator);
  if (likely(item != nullptr)) {
    PUSH(item);
    if (unlikely(breaker.traced())) goto periodic_next;
    NEXT();
  }
}
// tp_iternext gave nothing.
iterator_ended:
  if (cpython::exception_is_set(tstate)) {
    if (!PyErr_ExceptionMatches(PyExc_StopIteration)) goto error;
    cpython::trace_exception(tstate, frame);
    PyErr_Clear();
  }
// The iterator on top has come to its end.
end_loop : {
  PyObject* iterator = POP();
  DROP(iterator);
  ip = target_of(ip);
  DISPATCH();
}
// CPython's own iterators, without the call. They end as their tp_iternext does: list and tuple iterators let go of the sequence.
INST(ForIterRange) {
  auto* iterator = reinterpret_cast<cpython::RangeIterator*>(TOP);
  if (unlikely(Py_TYPE(TOP) != g_range_iterator)) MISS(ForIter);
  long number;
  if (!iterator->next(&number)) goto end_loop;
  SYNC();
  PyObject* item = cpython::new_int(number);
  if (unlikely(item == nullptr)) goto error;
  PUSH(item);
  NEXT();
}
#define STORE_ITEM()                 \
  do {                               \
    ++ip;                            \
    PyObject* old = LOCAL(ip->arg);  \
    LOCAL(ip->arg) = item;           \
    XDROP(old);                      \
  } while (0)
INST(ForIterRangeStore) {
  auto* iterator = reinterpret_cast<cpython::RangeIterator*>(TOP);
  if (unlikely(Py_TYPE(TOP) != g_range_iterator)) MISS(ForIter);
  long number;
  if (!iterator->next(&number)) goto end_loop;
  SYNC();
  PyObject* item = cpython::new_int(number);
  if (unlikely(item == nullptr)) goto error;
  STORE_ITEM();
  NEXT();
}
#define FOR_LIST(Name, take)                                                                 \
  INST(Name) {                                                                               \
    auto* iterator = reinterpret_cast<ListIterator*>(TOP);                                   \
    if (unlikely(Py_TYPE(TOP) != g_list_iterator)) MISS(ForIter);                            \
    PyObject* list = iterator->sequence;                                                     \
    if (likely(list != nullptr)) {                                                           \
      if (likely(iterator->index < PyList_GET_SIZE(list))) {                                 \
        PyObject* item = Py_NewRef(PyList_GET_ITEM(list, iterator->index++));                \
        take;                                                                                \
        NEXT();                                                                              \
      }                                                                                      \
      iterator->sequence = nullptr;                                                          \
      iterator->index = -1;                                                                  \
      DROP(list);                                                                            \
    }                                                                                        \
    goto end_loop;                                                                           \
  }
FOR_LIST(ForIterList, PUSH(item))
FOR_LIST(ForIterListStore, STORE_ITEM())
INST(ForIterTuple) {
  auto* iterator = reinterpret_cast<ListIterator*>(TOP);
  if (unlikely(Py_TYPE(TOP) != g_tuple_iterator)) MISS(ForIter);
  PyObject* tuple = iterator->sequence;
  if (likely(tuple != nullptr)) {
    if (likely(iterator->index < PyTuple_GET_SIZE(tuple))) {
      PUSH(Py_NewRef(PyTuple_GET_ITEM(tuple, iterator->index++)));
      NEXT();
    }
    iterator->sequence = nullptr;
    DROP(tuple);
  }
  goto end_loop;
}
INST(ForIterSlot) {
  PyObject* iterator = TOP;
  if (unlikely(Py_TYPE(iterator)->tp_version_tag != HIGH(ip->cache[0]))) MISS(ForIter);
  SYNC();
  PyObject* item = reinterpret_cast<iternextfunc>(ip->cache[1])(iterator);
  if (likely(item != nullptr)) {
    PUSH(item);
    if (unlikely(breaker.traced())) goto periodic_next;
    NEXT();
  }
  goto iterator_ended;
}
