// Instruction bodies: building and taking apart containers. Included by eval.cpp inside evaluate_frame.
//
// Purpose, invariants: eval.cpp. Inputs, outputs: the evaluator's registers. Tests: tests/vm/scripts/containers_*.py.

INST(BuildTuple) {
  SYNC();
  const int count = ip->arg;
  PyObject* tuple = PyTuple_New(count);
  if (unlikely(tuple == nullptr)) goto error;
  sp -= count;
  for (int i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple, i, sp[i]);
  PUSH(tuple);
  NEXT();
}
INST(BuildList) {
  SYNC();
  const int count = ip->arg;
  PyObject* list = PyList_New(count);
  if (unlikely(list == nullptr)) goto error;
  sp -= count;
  for (int i = 0; i < count; ++i) PyList_SET_ITEM(list, i, sp[i]);
  PUSH(list);
  NEXT();
}
INST(BuildSet) {
  SYNC();
  const int count = ip->arg;
  PyObject* set = PySet_New(nullptr);
  if (unlikely(set == nullptr)) goto error;
  int status = 0;
  sp -= count;
  for (int i = 0; i < count; ++i) {
    if (status == 0) status = PySet_Add(set, sp[i]);
    Py_DECREF(sp[i]);
  }
  if (unlikely(status != 0)) {
    Py_DECREF(set);
    goto error;
  }
  PUSH(set);
  NEXT();
}
INST(BuildMap) {
  SYNC();
  const int count = ip->arg;
  PyObject* dict = dict_from_items(sp - 2 * count, 2, sp - 2 * count + 1, 2, count);
  if (unlikely(dict == nullptr)) goto error;
  for (int i = 0; i < 2 * count; ++i) {
    PyObject* value = POP();
    Py_DECREF(value);
  }
  PUSH(dict);
  NEXT();
}
INST(BuildConstKeyMap) {
  SYNC();
  const int count = ip->arg;
  PyObject* keys = TOP;
  if (unlikely(!PyTuple_CheckExact(keys) || PyTuple_GET_SIZE(keys) != count)) {
    PyErr_SetString(PyExc_SystemError, "bad BUILD_CONST_KEY_MAP keys argument");
    goto error;
  }
  PyObject* dict = dict_from_items(&PyTuple_GET_ITEM(keys, 0), 1, sp - count - 1, 1, count);
  if (unlikely(dict == nullptr)) goto error;
  for (int i = 0; i < count + 1; ++i) {
    PyObject* value = POP();
    Py_DECREF(value);
  }
  PUSH(dict);
  NEXT();
}
INST(BuildString) {
  SYNC();
  const int count = ip->arg;
  PyObject* empty = PyUnicode_New(0, 0);
  PyObject* text = empty != nullptr ? _PyUnicode_JoinArray(empty, sp - count, count) : nullptr;
  Py_XDECREF(empty);
  if (unlikely(text == nullptr)) goto error;
  for (int i = 0; i < count; ++i) {
    PyObject* value = POP();
    DROP(value);
  }
  PUSH(text);
  NEXT();
}
INST(BuildSlice)
generic_BuildSlice : {
  SYNC();
  PyObject* step = ip->arg == 3 ? POP() : nullptr;
  PyObject *stop = POP(), *start = POP();
  PyObject* slice = PySlice_New(start, stop, step);
  Py_DECREF(start);
  Py_DECREF(stop);
  Py_XDECREF(step);
  if (unlikely(slice == nullptr)) goto error;
  PUSH(slice);
  NEXT();
}
// Slices of exact lists, without the slice object. Anything else executes BuildSlice alone. What the items' finalizers see, and where an
// exception is raised, is the second instruction.
INST(SliceSubscr) {
  PyObject *list = sp[-3], *start = SECOND, *stop = TOP;
  Py_ssize_t from, to;
  if (unlikely(!PyList_CheckExact(list) || !slice_of(start, stop, PyList_GET_SIZE(list), &from, &to))) goto generic_BuildSlice;
  ++ip;
  SYNC();
  PyObject* part = PyList_GetSlice(list, from, to);
  if (unlikely(part == nullptr)) goto error;
  sp -= 2;
  TOP = part;
  DROP(list);
  DROP(start);
  DROP(stop);
  NEXT();
}
INST(SliceStore) {
  PyObject *value = sp[-4], *list = sp[-3], *start = SECOND, *stop = TOP;
  Py_ssize_t from, to;
  if (unlikely(!PyList_CheckExact(list) || !slice_of(start, stop, PyList_GET_SIZE(list), &from, &to))) goto generic_BuildSlice;
  if (unlikely(!PyList_CheckExact(value) && !PyTuple_CheckExact(value))) goto generic_BuildSlice;  // may run code, or is no iterable
  ++ip;
  SYNC();
  const int status = PyList_SetSlice(list, from, to, value);
  sp -= 4;
  DROP(value);
  DROP(list);
  DROP(start);
  DROP(stop);
  if (unlikely(status != 0)) goto error;
  NEXT();
}
INST(FormatValue) {
  SYNC();
  PyObject* spec = (ip->arg & 4) != 0 ? POP() : nullptr;
  PyObject* value = POP();
  PyObject* text = format_value(value, ip->arg & 3, spec);
  if (unlikely(text == nullptr)) goto error;
  PUSH(text);
  NEXT_CHECKED();
}
INST(ConvertValue) {
  SYNC();
  PyObject* text = convert_value(POP(), ip->arg);
  if (unlikely(text == nullptr)) goto error;
  PUSH(text);
  NEXT();
}
INST(ListAppend) {
  SYNC();
  PyObject* value = POP();
  if (unlikely(!cpython::append_taking(sp[-ip->arg], value))) goto error;
  NEXT();
}
INST(ListExtend) {
  SYNC();
  PyObject* iterable = POP();
  PyObject* none = _PyList_Extend(reinterpret_cast<PyListObject*>(sp[-ip->arg]), iterable);
  if (unlikely(none == nullptr)) {
    fix_extend_error(iterable);
    Py_DECREF(iterable);
    goto error;
  }
  Py_DECREF(none);
  DROP(iterable);
  NEXT_CHECKED();
}
INST(ListToTuple) {
  SYNC();
  PyObject* list = TOP;
  PyObject* tuple = PyList_AsTuple(list);
  if (unlikely(tuple == nullptr)) goto error;
  TOP = tuple;
  Py_DECREF(list);
  NEXT();
}
INST(SetAdd) {
  SYNC();
  PyObject* value = POP();
  const int status = PySet_Add(sp[-ip->arg], value);
  Py_DECREF(value);
  if (unlikely(status != 0)) goto error;
  NEXT();
}
INST(SetUpdate) {
  SYNC();
  PyObject* iterable = POP();
  const int status = _PySet_Update(sp[-ip->arg], iterable);
  Py_DECREF(iterable);
  if (unlikely(status < 0)) goto error;
  NEXT();
}
INST(MapAdd) {
  SYNC();
  PyObject *value = POP(), *key = POP();
  const int status = PyDict_SetItem(sp[-ip->arg], key, value);
  Py_DECREF(key);
  Py_DECREF(value);
  if (unlikely(status != 0)) goto error;
  NEXT();
}
INST(DictUpdate) {
  SYNC();
  PyObject* update = POP();
  const int status = PyDict_Update(sp[-ip->arg], update);
  if (unlikely(status < 0)) fix_update_error(update);
  Py_DECREF(update);
  if (unlikely(status < 0)) goto error;
  NEXT();
}
INST(DictMerge) {
  SYNC();
  PyObject* update = POP();
  const int status = _PyDict_MergeEx(sp[-ip->arg], update, 2);
  if (unlikely(status < 0)) fix_merge_error(sp[cpython::kLoneCallable - 3 - ip->arg], update);
  Py_DECREF(update);
  if (unlikely(status < 0)) goto error;
  NEXT();
}

INST(UnpackSequence)
  if (LOOKS()) {
    specialise_unpack(ip, TOP);
    DISPATCH();
  }
generic_UnpackSequence : {
  SYNC();
  PyObject* sequence = POP();
  if (unlikely(!unpack_iterable(sequence, ip->arg, -1, sp + ip->arg))) {
    Py_DECREF(sequence);
    goto error;
  }
  sp += ip->arg;
  DROP(sequence);
  NEXT();
}
INST(UnpackTwoTuple) {
  PyObject* tuple = TOP;
  if (unlikely(!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) != 2)) MISS(UnpackSequence);
  TOP = Py_NewRef(PyTuple_GET_ITEM(tuple, 1));
  PUSH(Py_NewRef(PyTuple_GET_ITEM(tuple, 0)));
  DROP(tuple);
  NEXT();
}
INST(UnpackItems) {
  PyObject* sequence = TOP;
  int i = ip->arg;
  if (unlikely((!PyTuple_CheckExact(sequence) && !PyList_CheckExact(sequence)) || Py_SIZE(sequence) != i)) MISS(UnpackSequence);
  PyObject** items = PySequence_Fast_ITEMS(sequence);
  --sp;
  while (i-- > 0) PUSH(Py_NewRef(items[i]));
  DROP(sequence);
  NEXT();
}
INST(UnpackEx) {
  SYNC();
  const int before = ip->arg & 0xff, after = ip->arg >> 8;
  PyObject* sequence = POP();
  if (unlikely(!unpack_iterable(sequence, before, after, sp + before + 1 + after))) {
    Py_DECREF(sequence);
    goto error;
  }
  sp += before + 1 + after;
  Py_DECREF(sequence);
  NEXT();
}
