// Instruction bodies: locals, constants, names, cells, stack. Included by eval.cpp inside evaluate_frame.
//
// Purpose, invariants: eval.cpp. Inputs, outputs: the evaluator's registers. Tests: tests/vm/scripts/names_*.py, scopes_*.py.

INST(Nop) NEXT();

INST(Resume) {
  if (unlikely(cpython::code_is_monitored(cpython::code_of(frame)))) goto hand_over;
  if ((ip->arg & 3) < 2) {
    if (unlikely(breaker.raised())) {
      SYNC();
      if (breaker.pending() && !cpython::handle_pending(tstate)) goto error;
      if (breaker.traced()) goto hand_over;
    }
    if ((ip->arg & 3) == 0) {
      hot = COUNTER_OF(ip);
      if (unlikely(--hot->count < 0)) goto hot_counter;
    }
  }
  NEXT();
}

INST(PopTop) {
  PyObject* value = POP();
  DROP(value);
  NEXT();
}
INST(PushNull) {
  PUSH(nullptr);
  NEXT();
}
INST(Copy) {
  PyObject* value = sp[-ip->arg];
  Py_INCREF(value);
  PUSH(value);
  NEXT();
}
INST(Swap) {
  PyObject* top = TOP;
  TOP = sp[-ip->arg];
  sp[-ip->arg] = top;
  NEXT();
}

#define LOAD_LOCAL(inst, variable)          \
  PyObject* variable = LOCAL((inst)->arg);  \
  if (unlikely(variable == nullptr)) goto generic_LoadFast;  // raises

INST(LoadFast)
generic_LoadFast : {
  PyObject* value = LOCAL(ip->arg);
  if (unlikely(value == nullptr)) {
    SYNC();
    raise_unbound(cpython::code_of(frame), ip->arg);
    goto error;
  }
  Py_INCREF(value);
  PUSH(value);
  NEXT();
}
INST(LoadFastLoadFast) {
  LOAD_LOCAL(ip, first);
  PyObject* second = LOCAL(ip[1].arg);
  if (unlikely(second == nullptr)) goto generic_LoadFast;
  Py_INCREF(first);
  Py_INCREF(second);
  sp[0] = first;
  sp[1] = second;
  sp += 2;
  NEXT_AFTER(2);
}
INST(LoadFastLoadConst) {
  LOAD_LOCAL(ip, first);
  PyObject* second = reinterpret_cast<PyObject*>(ip[1].cache[0]);
  Py_INCREF(first);
  Py_INCREF(second);
  sp[0] = first;
  sp[1] = second;
  sp += 2;
  NEXT_AFTER(2);
}
INST(LoadConst) {
  PyObject* value = reinterpret_cast<PyObject*>(ip->cache[0]);
  Py_INCREF(value);
  PUSH(value);
  NEXT();
}

INST(StoreFast)
generic_StoreFast : {
  PyObject* old = LOCAL(ip->arg);
  LOCAL(ip->arg) = POP();
  XDROP(old);
  NEXT();
}
INST(StoreFastLoadFast) {
  PyObject* old = LOCAL(ip->arg);
  PyObject* value = TOP;
  LOCAL(ip->arg) = value;
  PyObject* next = LOCAL(ip[1].arg);
  if (unlikely(next == nullptr)) {
    --sp;
    XDROP(old);
    NEXT();
  }
  Py_INCREF(next);
  TOP = next;
  XDROP(old);
  NEXT_AFTER(2);
}
INST(StoreFastStoreFast) {
  PyObject* old = LOCAL(ip->arg);
  LOCAL(ip->arg) = POP();
  XDROP(old);
  ++ip;
  goto generic_StoreFast;
}
INST(DeleteFast) {
  PyObject* old = LOCAL(ip->arg);
  if (unlikely(old == nullptr)) {
    SYNC();
    raise_unbound(cpython::code_of(frame), ip->arg);
    goto error;
  }
  LOCAL(ip->arg) = nullptr;
  DROP(old);
  NEXT();
}

#define PUSH_GLOBAL(value)                      \
  do {                                          \
    if (ip->arg & 1) {                          \
      cpython::set_lone_callable(sp, value);    \
      sp += 2;                                  \
    } else {                                    \
      PUSH(value);                              \
    }                                           \
    NEXT();                                     \
  } while (0)
INST(LoadFastAndClear) {
  PUSH(LOCAL(ip->arg));
  LOCAL(ip->arg) = nullptr;
  NEXT();
}

INST(LoadGlobal)
  if (LOOKS()) {
    specialise_load_global(ip, NAME_AT(ip->arg >> 1), frame->f_globals, frame->f_builtins);
    DISPATCH();
  }
generic_LoadGlobal : {
  SYNC();
  PyObject* value = load_global(frame, NAME_AT(ip->arg >> 1));
  if (unlikely(value == nullptr)) goto error;
  PUSH_GLOBAL(value);
}
INST(LoadGlobalModule) {
  auto* globals = reinterpret_cast<PyDictObject*>(frame->f_globals);
  if (unlikely(!PyDict_CheckExact(frame->f_globals) || globals->ma_keys->dk_version != LOW(ip->cache[0]))) MISS(LoadGlobal);
  PyObject* value = DK_UNICODE_ENTRIES(globals->ma_keys)[ip->cache[1]].me_value;
  if (unlikely(value == nullptr)) MISS(LoadGlobal);
  Py_INCREF(value);
  PUSH_GLOBAL(value);
}
INST(LoadGlobalBuiltin) {
  auto* globals = reinterpret_cast<PyDictObject*>(frame->f_globals);
  auto* builtins = reinterpret_cast<PyDictObject*>(frame->f_builtins);
  if (unlikely(!PyDict_CheckExact(frame->f_globals) || globals->ma_keys->dk_version != LOW(ip->cache[0]) ||
               !PyDict_CheckExact(frame->f_builtins) || builtins->ma_keys->dk_version != HIGH(ip->cache[0]))) {
    MISS(LoadGlobal);
  }
  PyObject* value = DK_UNICODE_ENTRIES(builtins->ma_keys)[ip->cache[1]].me_value;
  if (unlikely(value == nullptr)) MISS(LoadGlobal);
  Py_INCREF(value);
  PUSH_GLOBAL(value);
}

INST(LoadName) {
  SYNC();
  PyObject* value = load_name(frame, NAME_OF(ip));
  if (unlikely(value == nullptr)) goto error;
  PUSH(value);
  NEXT();
}
INST(LoadLocals) {
  SYNC();
  if (unlikely(frame->f_locals == nullptr)) {
    PyErr_SetString(PyExc_SystemError, "no locals found");
    goto error;
  }
  PUSH(Py_NewRef(frame->f_locals));
  NEXT();
}
INST(LoadFromDictOrGlobals) {
  SYNC();
  PyObject* space = TOP;
  PyObject* value = load_from_mapping(space, NAME_OF(ip));
  if (value == nullptr && !cpython::exception_is_set(tstate)) value = load_global(frame, NAME_OF(ip));
  if (unlikely(value == nullptr)) goto error;
  TOP = value;
  DROP(space);
  NEXT();
}
INST(LoadFromDictOrDeref) {
  SYNC();
  PyObject* space = TOP;
  PyObject* value = load_from_mapping(space, PyTuple_GET_ITEM(cpython::code_of(frame)->co_localsplusnames, ip->arg));
  if (value == nullptr && !cpython::exception_is_set(tstate)) {
    value = Py_XNewRef(PyCell_GET(LOCAL(ip->arg)));
    if (value == nullptr) raise_unbound(cpython::code_of(frame), ip->arg);
  }
  if (unlikely(value == nullptr)) goto error;
  TOP = value;
  DROP(space);
  NEXT();
}
INST(StoreName) {
  SYNC();
  PyObject* value = POP();
  PyObject* space = frame->f_locals;
  int status;
  if (unlikely(space == nullptr)) {
    PyErr_Format(PyExc_SystemError, "no locals found when storing %R", NAME_OF(ip));
    status = -1;
  } else if (PyDict_CheckExact(space)) {
    status = PyDict_SetItem(space, NAME_OF(ip), value);
  } else {
    status = PyObject_SetItem(space, NAME_OF(ip), value);
  }
  Py_DECREF(value);
  if (unlikely(status != 0)) goto error;
  NEXT();
}
INST(DeleteName) {
  SYNC();
  PyObject* space = frame->f_locals;
  if (unlikely(space == nullptr)) {
    PyErr_Format(PyExc_SystemError, "no locals when deleting %R", NAME_OF(ip));
    goto error;
  }
  if (PyObject_DelItem(space, NAME_OF(ip)) != 0) {
    raise_name_error(NAME_OF(ip));
    goto error;
  }
  NEXT();
}
INST(StoreGlobal) {
  SYNC();
  PyObject* value = POP();
  const int status = PyDict_SetItem(frame->f_globals, NAME_OF(ip), value);
  Py_DECREF(value);
  if (unlikely(status != 0)) goto error;
  NEXT();
}
INST(DeleteGlobal) {
  SYNC();
  if (PyDict_DelItem(frame->f_globals, NAME_OF(ip)) != 0) {
    if (PyErr_ExceptionMatches(PyExc_KeyError)) raise_name_error(NAME_OF(ip));
    goto error;
  }
  NEXT();
}

INST(MakeCell) {
  PyObject* initial = LOCAL(ip->arg);
  PyObject* cell = PyCell_New(initial);
  if (unlikely(cell == nullptr)) goto error;
  LOCAL(ip->arg) = cell;
  Py_XDECREF(initial);
  NEXT();
}
INST(LoadClosure) goto generic_LoadFast;
INST(LoadDeref) {
  PyObject* value = PyCell_GET(LOCAL(ip->arg));
  if (unlikely(value == nullptr)) {
    SYNC();
    raise_unbound(cpython::code_of(frame), ip->arg);
    goto error;
  }
  Py_INCREF(value);
  PUSH(value);
  NEXT();
}
INST(LoadClassderef) {
  SYNC();
  PyObject* value = load_classderef(frame, ip->arg);
  if (unlikely(value == nullptr)) goto error;
  PUSH(value);
  NEXT();
}
INST(StoreDeref) {
  PyObject* cell = LOCAL(ip->arg);
  PyObject* old = PyCell_GET(cell);
  PyCell_SET(cell, POP());
  XDROP(old);
  NEXT();
}
INST(DeleteDeref) {
  PyObject* cell = LOCAL(ip->arg);
  PyObject* old = PyCell_GET(cell);
  if (unlikely(old == nullptr)) {
    SYNC();
    raise_unbound(cpython::code_of(frame), ip->arg);
    goto error;
  }
  PyCell_SET(cell, nullptr);
  DROP(old);
  NEXT();
}
INST(CopyFreeVars) {
  PyCodeObject* object = cpython::code_of(frame);
  PyObject* closure = cpython::function_of(frame)->func_closure;
  PyObject** to = frame->localsplus + object->co_nlocalsplus - ip->arg;
  for (int i = 0; i < ip->arg; ++i) to[i] = Py_NewRef(PyTuple_GET_ITEM(closure, i));
  NEXT();
}
