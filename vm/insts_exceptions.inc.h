// Instruction bodies: raising, handling, with. Included by eval.cpp inside evaluate_frame.
//
// Purpose, invariants: eval.cpp. Inputs, outputs: the evaluator's registers. Tests: tests/vm/scripts/exceptions_*.py, with_*.py.

INST(RaiseVarargs) {
  SYNC();
  PyObject* cause = ip->arg == 2 ? POP() : nullptr;
  PyObject* exc = ip->arg >= 1 ? POP() : nullptr;
  if (raise_exception(exc, cause)) goto unwind;
  goto error;
}
INST(Reraise) {
  SYNC();
  if (ip->arg != 0) {
    // The position of the original exception, which the handler's table had pushed.
    PyObject* lasti = sp[-(ip->arg + 1)];
    if (unlikely(!PyLong_Check(lasti))) {
      PyErr_SetString(PyExc_SystemError, "lasti is not an int");
      goto error;
    }
    cpython::runs_at(frame, cpython::code_units(cpython::code_of(frame)) + PyLong_AsLong(lasti));
  }
  PyObject* value = POP();
  cpython::set_exception(value);
  if (unlikely(act.recording)) send_event(act, ip, sp, Event::kUnwind, Continuation::kPush, frame, nullptr);
  goto unwind;
}
INST(PushExcInfo) {
  PyObject* value = TOP;
  _PyErr_StackItem* handled = tstate->exc_info;
  TOP = handled->exc_value != nullptr ? handled->exc_value : Py_NewRef(Py_None);
  Py_INCREF(value);
  PUSH(value);
  handled->exc_value = value;
  NEXT();
}
INST(PopExcept) {
  _PyErr_StackItem* handled = tstate->exc_info;
  PyObject *value = handled->exc_value, *before = POP();
  handled->exc_value = before;
  if (before == Py_None) {
    handled->exc_value = nullptr;
    cpython::drop_singleton(before);
  }
  XDROP(value);
  NEXT();
}
INST(CheckExcMatch) {
  SYNC();
  PyObject* type = POP();
  if (unlikely(!check_except_type(type))) {
    Py_DECREF(type);
    goto error;
  }
  const int matches = PyErr_GivenExceptionMatches(TOP, type);
  Py_DECREF(type);
  PUSH(Py_NewRef(matches ? Py_True : Py_False));
  NEXT();
}
INST(CheckEgMatch) {
  SYNC();
  PyObject* type = POP();
  PyObject *match = nullptr, *rest = nullptr, *exc = TOP;
  const bool good = check_except_star_type(type) && match_exception_group(exc, type, &match, &rest);
  Py_DECREF(type);
  if (unlikely(!good)) goto error;
  if (match == Py_None) {
    PUSH(match);
    Py_XDECREF(rest);
  } else {
    TOP = rest;
    PUSH(match);
    PyErr_SetExcInfo(nullptr, Py_NewRef(match), nullptr);
    Py_DECREF(exc);
  }
  NEXT();
}
INST(PrepReraiseStar) {
  SYNC();
  PyObject *list = TOP, *orig = SECOND;
  PyObject* value = cpython::prep_reraise_star(orig, list);
  if (unlikely(value == nullptr)) goto error;
  sp -= 2;
  Py_DECREF(list);
  Py_DECREF(orig);
  PUSH(value);
  NEXT();
}
INST(LoadAssertionError) {
  PUSH(Py_NewRef(PyExc_AssertionError));
  NEXT();
}

INST(BeforeWith) {
  SYNC();
  PyObject* manager = TOP;
  PyTypeObject* type = Py_TYPE(manager);
  // A Python __enter__ is entered in place; the bound __exit__ goes below its result.
  PyFunctionObject* python_enter = CAN_INLINE() ? python_method(type, g_names.n_enter) : nullptr;
  PyObject* enter = nullptr;
  if (python_enter == nullptr) {
    enter = _PyObject_LookupSpecial(manager, g_names.n_enter);
    if (unlikely(enter == nullptr)) {
      if (!cpython::exception_is_set(tstate)) {
        PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the context manager protocol", type->tp_name);
      }
      goto error;
    }
  }
  PyObject* exit = _PyObject_LookupSpecial(manager, g_names.n_exit);
  if (unlikely(exit == nullptr)) {
    if (!cpython::exception_is_set(tstate)) {
      PyErr_Format(PyExc_TypeError,
                   "'%.200s' object does not support the context manager protocol (missed __exit__ method)", type->tp_name);
    }
    Py_XDECREF(enter);
    goto error;
  }
  TOP = exit;
  if (python_enter != nullptr) {
    detour = python_enter;
    detour_arguments[0] = manager;
    detour_count = 1;
    continuation = Continuation::kPush;
    goto enter_detour;
  }
  Py_DECREF(manager);
  PyObject* value = PyObject_CallNoArgs(enter);
  Py_DECREF(enter);
  if (unlikely(value == nullptr)) goto error;
  PUSH(value);
  NEXT_CHECKED();
}
INST(BeforeAsyncWith) {
  SYNC();
  PyObject* manager = TOP;
  PyTypeObject* type = Py_TYPE(manager);
  PyObject* enter = _PyObject_LookupSpecial(manager, g_names.n_aenter);
  if (unlikely(enter == nullptr)) {
    if (!cpython::exception_is_set(tstate)) {
      PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the asynchronous context manager protocol", type->tp_name);
    }
    goto error;
  }
  PyObject* exit = _PyObject_LookupSpecial(manager, g_names.n_aexit);
  if (unlikely(exit == nullptr)) {
    if (!cpython::exception_is_set(tstate)) {
      PyErr_Format(PyExc_TypeError,
                   "'%.200s' object does not support the asynchronous context manager protocol (missed __aexit__ method)",
                   type->tp_name);
    }
    Py_DECREF(enter);
    goto error;
  }
  TOP = exit;
  Py_DECREF(manager);
  PyObject* value = PyObject_CallNoArgs(enter);
  Py_DECREF(enter);
  if (unlikely(value == nullptr)) goto error;
  PUSH(value);
  NEXT_CHECKED();
}
INST(WithExceptStart) {
  SYNC();
  // | __exit__ | lasti | previous exception | exception |
  PyObject *value = TOP, *exit = sp[-4];
  PyObject* type = PyExceptionInstance_Class(value);
  PyObject* traceback = PyException_GetTraceback(value);
  if (traceback == nullptr) traceback = Py_NewRef(Py_None);
  if (Py_TYPE(exit) == &PyMethod_Type && PyFunction_Check(reinterpret_cast<PyMethodObject*>(exit)->im_func) && CAN_INLINE()) {
    auto* method = reinterpret_cast<PyMethodObject*>(exit);
    detour = reinterpret_cast<PyFunctionObject*>(method->im_func);
    detour_arguments[0] = Py_NewRef(method->im_self);
    detour_arguments[1] = Py_NewRef(type);
    detour_arguments[2] = Py_NewRef(value);
    detour_arguments[3] = traceback;
    detour_count = 4;
    continuation = Continuation::kPush;
    goto enter_detour;
  }
  PyObject* arguments[] = {nullptr, type, value, traceback};
  result = PyObject_Vectorcall(exit, arguments + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  Py_DECREF(traceback);
  if (unlikely(result == nullptr)) goto error;
  PUSH(result);
  NEXT_CHECKED();
}
