// Instruction bodies: calls, returns, making functions. Included by eval.cpp inside evaluate_frame.
//
// Purpose, invariants: eval.cpp. Inputs, outputs: the evaluator's registers. Tests: tests/vm/scripts/calls_*.py.
//
// Stack of a call: | function | self | arguments |, or the two slots hold the callable and NULL (cpython::Callee); `base` is the lower one.
// A class with a Python __init__ and an object with a Python __call__ are rewritten to the second form and entered in place.

INST(Call)
  if (LOOKS()) {
    specialise_call(ip, cpython::code_of(frame), sp - ip->arg - 2);
    DISPATCH();
  }
generic_Call : {
  SYNC();
  PyObject* const names = keyword_names(cpython::code_of(frame), ip);
  PyObject** base = sp - ip->arg - 2;
  const cpython::Callee callee(base);
  PyObject* callable = *callee.slot;
  bool has_self = callee.has_self;
  PyObject* pending = nullptr;  // instance whose __init__ is called
  continuation = Continuation::kPush;
  if (!has_self && Py_TYPE(callable) == &PyMethod_Type) {
    auto* method = reinterpret_cast<PyMethodObject*>(callable);
    base[0] = Py_NewRef(method->im_func);
    base[1] = Py_NewRef(method->im_self);
    Py_DECREF(callable);
    callable = base[0];
    has_self = true;
  }
  PyTypeObject* type = Py_TYPE(callable);
  if (type == &PyMethod_Type && has_self && names == nullptr && ip->arg <= 2 &&
      PyFunction_Check(reinterpret_cast<PyMethodObject*>(callable)->im_func) && CAN_INLINE()) {
    // A bound method where a function could stand, with an argument where self could: __exit__ at the end of a with.
    auto* method = reinterpret_cast<PyMethodObject*>(callable);
    detour_count = 0;
    detour_arguments[detour_count++] = Py_NewRef(method->im_self);
    for (PyObject** at = base + 1; at < sp; ++at) detour_arguments[detour_count++] = *at;
    sp = base + 1;  // the method stays below and is replaced by the result
    detour = reinterpret_cast<PyFunctionObject*>(method->im_func);
    continuation = Continuation::kReplace;
    goto enter_detour;
  }
  if (type != &PyFunction_Type && !has_self && CAN_INLINE()) {
    if (type->tp_call == PyType_Type.tp_call && PyType_Check(callable)) {
      auto* made = reinterpret_cast<PyTypeObject*>(callable);
      if (made->tp_new == cpython::g_slots.object_new && made->tp_init == cpython::g_slots.init) {
        if (PyFunctionObject* init = python_method(made, g_names.n_init)) {
          Py_INCREF(init);
          pending = made->tp_new(made, g_empty_tuple, nullptr);
          if (unlikely(pending == nullptr)) {
            Py_DECREF(init);
            goto error;
          }
          base[0] = reinterpret_cast<PyObject*>(init);
          base[1] = Py_NewRef(pending);
          Py_DECREF(callable);
          callable = base[0];
          has_self = true;
          continuation = Continuation::kInit;
        }
      }
    } else if (type->tp_call == cpython::g_slots.call) {
      if (PyFunctionObject* call = python_method(type, g_names.n_call)) {
        base[1] = callable;
        base[0] = callable = Py_NewRef(reinterpret_cast<PyObject*>(call));
        has_self = true;
      }
    }
  }
  PyObject** const arguments = has_self ? base + 1 : base + 2;
  const Py_ssize_t total = sp - arguments;
  const Py_ssize_t keywords = names != nullptr ? PyTuple_GET_SIZE(names) : 0;

  if (Py_TYPE(callable) == &PyFunction_Type && CAN_INLINE()) {
    auto* function = reinterpret_cast<PyFunctionObject*>(callable);
    Code* target = code_for(reinterpret_cast<PyCodeObject*>(function->func_code));
    if (likely(target != nullptr && (target->code->co_flags & CO_OPTIMIZED) != 0 && runs_its_code(function))) {
      entered = allocate_frame(tstate, function, target);
      if (unlikely(entered == nullptr)) {
        Py_XDECREF(pending);
        goto error;
      }
      PyObject** locals = entered->localsplus;
      bool moved = false;
      if (target->simple && keywords == 0 && total <= target->argcount) {
        PyObject* defaults = function->func_defaults;
        const Py_ssize_t missing = target->argcount - total;
        if (missing == 0 || (defaults != nullptr && missing <= PyTuple_GET_SIZE(defaults))) {
          Py_ssize_t i = 0;
          for (; i < total; ++i) locals[i] = arguments[i];
          for (; i < target->argcount; ++i) {
            locals[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, PyTuple_GET_SIZE(defaults) - (target->argcount - i)));
          }
          for (; i < target->local_count; ++i) locals[i] = nullptr;
          moved = true;
        }
      }
      if (!moved) {
        for (int i = 0; i < target->local_count; ++i) locals[i] = nullptr;
        const int bound =
            bind_arguments(function, target, locals, arguments, total - keywords,
                           keywords != 0 ? &PyTuple_GET_ITEM(names, 0) : nullptr, arguments + total - keywords, keywords);
        if (unlikely(bound <= 0)) {
          Py_DECREF(function);
          Py_DECREF(target->code);
          release_frame(tstate, entered);
          if (bound == 0) goto call_through_c;  // raises CPython's message
          Py_XDECREF(pending);
          goto error;
        }
        for (Py_ssize_t i = 0; i < total; ++i) Py_DECREF(arguments[i]);
      }
      sp = base;
      if (pending != nullptr) PUSH(pending);
      Py_DECREF(callable);  // the frame has its own reference
      goto enter_frame;
    }
    PyErr_Clear();
  }
call_through_c:
  result = PyObject_Vectorcall(callable, arguments, static_cast<size_t>(total - keywords) | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
  while (sp > arguments) {
    PyObject* argument = POP();
    Py_DECREF(argument);
  }
  sp = base;
  Py_DECREF(callable);
  if (unlikely(result == nullptr)) {
    Py_XDECREF(pending);
    goto error;
  }
  if (unlikely(pending != nullptr)) {
    PUSH(pending);
    goto deliver;
  }
  PUSH(result);
  NEXT_CHECKED();
}

// Specialised calls of Python functions: `target` is what the site was specialised for.
#define IS_FUNCTION_OF(callable, target)                                                                                 \
  likely(Py_TYPE(callable) == &PyFunction_Type &&                                                                       \
         reinterpret_cast<PyFunctionObject*>(callable)->func_code == reinterpret_cast<PyObject*>((target)->code) &&     \
         runs_its_code(reinterpret_cast<PyFunctionObject*>(callable)) && interp->eval_frame == evaluate_frame)
// The last `missing` parameters have defaults.
#define HAS_DEFAULTS(function, missing) ((function)->func_defaults != nullptr && PyTuple_GET_SIZE((function)->func_defaults) >= (missing))
// Moves arguments behind the first `given` locals and fills the others.
#define FILL_LOCALS(function, target, given, arguments, count)                                                          \
  do {                                                                                                                  \
    PyObject** locals_ = entered->localsplus;                                                                           \
    int at_ = (given);                                                                                                  \
    for (int i_ = 0; i_ < (count); ++i_) locals_[at_++] = (arguments)[i_];                                              \
    for (; at_ < (target)->argcount; ++at_) {                                                                           \
      PyObject* defaults_ = (function)->func_defaults;                                                                  \
      locals_[at_] = Py_NewRef(PyTuple_GET_ITEM(defaults_, PyTuple_GET_SIZE(defaults_) - ((target)->argcount - at_)));  \
    }                                                                                                                   \
    for (; at_ < (target)->local_count; ++at_) locals_[at_] = nullptr;                                                  \
  } while (0)

INST(CallPythonExact) {
  PyObject** base = sp - ip->arg - 2;
  const cpython::Callee callee(base);
  PyObject* callable = *callee.slot;
  auto* target = reinterpret_cast<Code*>(ip->cache[0]);
  auto* function = reinterpret_cast<PyFunctionObject*>(callable);
  if (!IS_FUNCTION_OF(callable, target) || unlikely(target->argcount != sp - callee.arguments)) MISS(Call);
  SYNC();
  entered = take_frame(tstate, function, target);
  if (unlikely(entered == nullptr)) goto error;
  PyObject** locals = entered->localsplus;
  const int count = target->argcount;
  int i = 0;
  for (; i < count; ++i) locals[i] = callee.arguments[i];
  for (; i < target->local_count; ++i) locals[i] = nullptr;
  sp = base;
  START_FRAME(target, Continuation::kPush);
}
INST(CallPythonAny) {
  PyObject** base = sp - ip->arg - 2;
  const cpython::Callee callee(base);
  PyObject* callable = *callee.slot;
  auto* function = reinterpret_cast<PyFunctionObject*>(callable);
  if (unlikely(Py_TYPE(callable) != &PyFunction_Type)) MISS(Call);
  Code* target = find_code(reinterpret_cast<PyCodeObject*>(function->func_code));
  const int given = static_cast<int>(sp - callee.arguments);
  if (unlikely(target == nullptr || !target->simple || !IS_FUNCTION_OF(callable, target))) MISS(Call);
  const int missing = target->argcount - given;
  if (unlikely(missing < 0 || (missing > 0 && !HAS_DEFAULTS(function, missing)))) MISS(Call);
  SYNC();
  entered = take_frame(tstate, function, target);
  if (unlikely(entered == nullptr)) goto error;
  FILL_LOCALS(function, target, 0, callee.arguments, given);
  sp = base;
  START_FRAME(target, Continuation::kPush);
}
INST(CallBoundMethod) {
  PyObject** base = sp - ip->arg - 2;
  const cpython::Callee callee(base);
  PyObject* callable = *callee.slot;
  auto* target = reinterpret_cast<Code*>(ip->cache[0]);
  if (unlikely(callee.has_self || Py_TYPE(callable) != &PyMethod_Type)) MISS(Call);
  auto* method = reinterpret_cast<PyMethodObject*>(callable);
  auto* function = reinterpret_cast<PyFunctionObject*>(method->im_func);
  const int missing = target->argcount - ip->arg - 1;
  if (!IS_FUNCTION_OF(method->im_func, target) || unlikely(missing < 0 || (missing > 0 && !HAS_DEFAULTS(function, missing)))) MISS(Call);
  SYNC();
  entered = allocate_frame(tstate, function, target);
  if (unlikely(entered == nullptr)) goto error;
  entered->localsplus[0] = Py_NewRef(method->im_self);
  FILL_LOCALS(function, target, 1, callee.arguments, ip->arg);
  sp = base;
  Py_DECREF(callable);
  START_FRAME(target, Continuation::kPush);
}
// cache[1] has for each keyword the parameter it is for, one byte each, and in the last byte the number of positional arguments.
INST(CallPythonKeywords) {
  PyObject** base = sp - ip->arg - 2;
  const cpython::Callee callee(base);
  PyObject* callable = *callee.slot;
  auto* target = reinterpret_cast<Code*>(ip->cache[0]);
  auto* function = reinterpret_cast<PyFunctionObject*>(callable);
  const int keywords = static_cast<int>(PyTuple_GET_SIZE(keyword_names(cpython::code_of(frame), ip)));
  const int positional = static_cast<int>(sp - callee.arguments) - keywords;
  const auto* map = reinterpret_cast<const uint8_t*>(&ip->cache[1]);
  if (!IS_FUNCTION_OF(callable, target) || unlikely(positional != map[kMostMapped])) MISS(Call);
  SYNC();
  entered = take_frame(tstate, function, target);
  if (unlikely(entered == nullptr)) goto error;
  PyObject** locals = entered->localsplus;
  int at = 0;
  for (; at < positional; ++at) locals[at] = callee.arguments[at];
  for (; at < target->local_count; ++at) locals[at] = nullptr;
  for (int i = 0; i < keywords; ++i) locals[map[i]] = callee.arguments[positional + i];
  if (unlikely(!fill_defaults(function, target, locals, positional))) {
    Py_DECREF(target->code);
    release_frame(tstate, entered);
    if (unlikely(cpython::exception_is_set(tstate))) goto error;
    set_form(ip, Form::kCall);
    ip->state = after_giving_up();
    goto generic_Call;
  }
  sp = base;
  START_FRAME(target, Continuation::kPush);
}
// cache[0] is the class's version, cache[1] its __init__.
INST(CallClassInit) {
  PyObject** base = sp - ip->arg - 2;
  const cpython::Callee callee(base);
  auto* made = reinterpret_cast<PyTypeObject*>(*callee.slot);
  if (unlikely(callee.has_self || !PyType_Check(made) || made->tp_version_tag != ip->cache[0] || Py_TYPE(made)->tp_call != PyType_Type.tp_call)) {
    MISS(Call);
  }
  auto* function = reinterpret_cast<PyFunctionObject*>(ip->cache[1]);
  Code* target = find_code(reinterpret_cast<PyCodeObject*>(function->func_code));
  if (unlikely(target == nullptr || !target->simple || !runs_its_code(function) || interp->eval_frame != evaluate_frame)) MISS(Call);
  const int missing = target->argcount - ip->arg - 1;
  if (unlikely(missing < 0 || (missing > 0 && !HAS_DEFAULTS(function, missing)))) MISS(Call);
  SYNC();
  PyObject* pending = cpython::g_slots.object_new(made, g_empty_tuple, nullptr);
  if (unlikely(pending == nullptr)) goto error;
  entered = allocate_frame(tstate, function, target);
  if (unlikely(entered == nullptr)) {
    Py_DECREF(pending);
    goto error;
  }
  entered->localsplus[0] = Py_NewRef(pending);
  FILL_LOCALS(function, target, 1, callee.arguments, ip->arg);
  sp = base;
  PUSH(pending);
  Py_DECREF(made);
  START_FRAME(target, Continuation::kInit);
}
// cache[0] is the callable's type, cache[1] the callable itself where that matters.
INST(CallVectorcall) {
  PyObject** base = sp - ip->arg - 2;
  const cpython::Callee callee(base);
  PyObject* callable = *callee.slot;
  PyTypeObject* type = Py_TYPE(callable);
  if (unlikely(type != reinterpret_cast<PyTypeObject*>(ip->cache[0]) || (ip->cache[1] != 0 && reinterpret_cast<uint64_t>(callable) != ip->cache[1]))) {
    MISS(Call);
  }
  const vectorcallfunc function = *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(callable) + type->tp_vectorcall_offset);
  if (unlikely(function == nullptr)) MISS(Call);
  SYNC();
  PyObject* const names = keyword_names(cpython::code_of(frame), ip);
  PyObject** const arguments = callee.arguments;
  const Py_ssize_t positional = sp - arguments - (names != nullptr ? PyTuple_GET_SIZE(names) : 0);
  result = function(callable, arguments, static_cast<size_t>(positional) | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
  if (unlikely(result == nullptr)) _Py_CheckFunctionResult(tstate, callable, nullptr, nullptr);
  while (sp > arguments) {
    PyObject* argument = POP();
    Py_DECREF(argument);
  }
  sp = base;
  Py_DECREF(callable);
  if (unlikely(result == nullptr)) goto error;
  PUSH(result);
  NEXT_CHECKED();
}

// C functions: CPython checks the depth of recursion around those that vectorcall would check.
#define ENTER_C()                                                                              \
  do {                                                                                         \
    if (unlikely(!cpython::enter_c(tstate))) goto error;                                        \
  } while (0)
#define LEAVE_C() (cpython::leave_c(tstate))

INST(CallBuiltinO) {
  PyObject** base = sp - ip->arg - 2;
  const cpython::Callee callee(base);
  PyObject* callable = *callee.slot;
  if (unlikely(!PyCFunction_CheckExact(callable) || PyCFunction_GET_FLAGS(callable) != METH_O || sp - callee.arguments != 1)) {
    MISS(Call);
  }
  SYNC();
  ENTER_C();
  PyObject* argument = TOP;
  result = PyCFunction_GET_FUNCTION(callable)(PyCFunction_GET_SELF(callable), argument);
  LEAVE_C();
  sp = base;
  Py_DECREF(argument);
  Py_DECREF(callable);
  if (unlikely(result == nullptr)) goto error;
  PUSH(result);
  NEXT_CHECKED();
}
INST(CallBuiltinFast) {
  PyObject** base = sp - ip->arg - 2;
  const cpython::Callee callee(base);
  PyObject* callable = *callee.slot;
  if (unlikely(!PyCFunction_CheckExact(callable) || PyCFunction_GET_FLAGS(callable) != METH_FASTCALL)) MISS(Call);
  SYNC();
  PyObject** const arguments = callee.arguments;
  result = reinterpret_cast<_PyCFunctionFast>(reinterpret_cast<void (*)()>(PyCFunction_GET_FUNCTION(callable)))(
      PyCFunction_GET_SELF(callable), arguments, sp - arguments);
  while (sp > arguments) {
    PyObject* argument = POP();
    Py_DECREF(argument);
  }
  sp = base;
  Py_DECREF(callable);
  if (unlikely(result == nullptr)) goto error;
  PUSH(result);
  NEXT_CHECKED();
}
#define IS_LONE(base, callable) (!cpython::Callee(base).has_self && (base)[cpython::kLoneCallable] == (callable))
#define METHOD_OF(callable) (reinterpret_cast<PyMethodDescrObject*>(callable)->d_method)
#define IS_C_METHOD(base, flags)                                                             \
  likely(cpython::Callee(base).has_self && Py_TYPE((base)[0]) == &PyMethodDescr_Type &&      \
         METHOD_OF((base)[0])->ml_flags == (flags) &&                                        \
         Py_TYPE((base)[1]) == reinterpret_cast<PyMethodDescrObject*>((base)[0])->d_common.d_type)
INST(CallMethodO) {
  PyObject** base = sp - ip->arg - 2;
  if (!IS_C_METHOD(base, METH_O) || unlikely(ip->arg != 1)) MISS(Call);
  SYNC();
  ENTER_C();
  PyObject *callable = base[0], *self = base[1], *argument = base[2];
  result = METHOD_OF(callable)->ml_meth(self, argument);
  LEAVE_C();
  sp = base;
  Py_DECREF(self);
  Py_DECREF(argument);
  Py_DECREF(callable);
  if (unlikely(result == nullptr)) goto error;
  PUSH(result);
  NEXT_CHECKED();
}
INST(CallMethodNoArgs) {
  PyObject** base = sp - ip->arg - 2;
  if (!IS_C_METHOD(base, METH_NOARGS) || unlikely(ip->arg != 0)) MISS(Call);
  SYNC();
  ENTER_C();
  PyObject *callable = base[0], *self = base[1];
  result = METHOD_OF(callable)->ml_meth(self, nullptr);
  LEAVE_C();
  sp = base;
  Py_DECREF(self);
  Py_DECREF(callable);
  if (unlikely(result == nullptr)) goto error;
  PUSH(result);
  NEXT_CHECKED();
}
INST(CallMethodFast) {
  PyObject** base = sp - ip->arg - 2;
  if (!IS_C_METHOD(base, METH_FASTCALL)) MISS(Call);
  SYNC();
  PyObject* callable = base[0];
  result = reinterpret_cast<_PyCFunctionFast>(reinterpret_cast<void (*)()>(METHOD_OF(callable)->ml_meth))(base[1], base + 2, ip->arg);
  while (sp > base + 1) {
    PyObject* argument = POP();
    Py_DECREF(argument);
  }
  sp = base;
  Py_DECREF(callable);
  if (unlikely(result == nullptr)) goto error;
  PUSH(result);
  NEXT_CHECKED();
}
INST(CallListAppend) {
  PyObject** base = sp - ip->arg - 2;
  if (unlikely(base[0] != g_list_append || ip->arg != 1 || base[1] == nullptr || !PyList_Check(base[1]))) MISS(Call);
  PyObject *list = base[1], *value = base[2];
  SYNC();
  sp = base;
  const bool appended = cpython::append_taking(list, value);
  cpython::drop_shared(g_list_append);
  if (unlikely(!appended)) {
    Py_DECREF(list);
    goto error;
  }
  DROP(list);
  NEXT_AFTER(2);
}
INST(CallLen) {
  PyObject** base = sp - ip->arg - 2;
  if (unlikely(!IS_LONE(base, g_len) || ip->arg != 1)) MISS(Call);
  SYNC();
  PyObject* object = TOP;
  const Py_ssize_t length = PyObject_Length(object);
  if (unlikely(length < 0)) goto error;
  PyObject* value = PyLong_FromSsize_t(length);
  if (unlikely(value == nullptr)) goto error;
  sp = base;
  PUSH(value);
  cpython::drop_shared(g_len);
  DROP(object);
  NEXT_CHECKED();
}
INST(CallIsInstance) {
  PyObject** base = sp - ip->arg - 2;
  if (unlikely(!IS_LONE(base, g_isinstance) || ip->arg != 2)) MISS(Call);
  PyObject *object = SECOND, *cls = TOP;
  int is_instance = is_instance_quietly(object, cls);
  if (unlikely(is_instance < 0)) {
    SYNC();
    is_instance = PyObject_IsInstance(object, cls);
    if (unlikely(is_instance < 0)) goto error;
  }
  sp = base;
  PUSH(Py_NewRef(is_instance ? Py_True : Py_False));
  cpython::drop_shared(g_isinstance);
  DROP(object);
  DROP(cls);
  NEXT_CHECKED();
}
// cache[1] is the C function that does what the type does with one argument.
INST(CallConvert) {
  PyObject** base = sp - ip->arg - 2;
  if (unlikely(!IS_LONE(base, reinterpret_cast<PyObject*>(ip->cache[0])) || ip->arg != 1)) MISS(Call);
  SYNC();
  PyObject* object = TOP;
  PyObject* value = reinterpret_cast<unaryfunc>(ip->cache[1])(object);
  if (unlikely(value == nullptr)) goto error;
  sp = base;
  PUSH(value);
  Py_DECREF(reinterpret_cast<PyObject*>(ip->cache[0]));
  DROP(object);
  NEXT_CHECKED();
}
INST(CallType1) {
  PyObject** base = sp - ip->arg - 2;
  if (unlikely(!IS_LONE(base, reinterpret_cast<PyObject*>(&PyType_Type)) || ip->arg != 1)) MISS(Call);
  PyObject* object = TOP;
  sp = base;
  PUSH(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(object))));
  Py_DECREF(&PyType_Type);
  DROP(object);
  NEXT();
}

// No compiler makes this: it goes through C.
INST(CallNamed) {
  SYNC();
  PyObject* names = POP();
  PyObject** base = sp - ip->arg - 2;
  const cpython::Callee callee(base);
  const Py_ssize_t positional = sp - callee.arguments - PyTuple_GET_SIZE(names);
  result = PyObject_Vectorcall(*callee.slot, callee.arguments, static_cast<size_t>(positional) | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
  Py_DECREF(names);
  while (sp > base) {
    PyObject* operand = POP();
    Py_XDECREF(operand);
  }
  if (unlikely(result == nullptr)) goto error;
  PUSH(result);
  NEXT_CHECKED();
}
INST(CallFunctionEx) {
  SYNC();
  if ((ip->arg & 1) != 0 && !PyDict_CheckExact(TOP)) {
    PyObject* kwargs = TOP;
    PyObject* dict = PyDict_New();
    if (dict == nullptr) goto error;
    if (_PyDict_MergeEx(dict, kwargs, 2) < 0) {
      Py_DECREF(dict);
      fix_merge_error(sp[-4 + cpython::kLoneCallable], kwargs);
      goto error;
    }
    TOP = dict;
    Py_DECREF(kwargs);
  }
  PyObject** at = sp - 2 - (ip->arg & 1);  // | callable and NULL at[-1], at[0] | arguments at[1] | dict at[2] |
  PyObject* callable = at[cpython::kLoneCallable - 1];
  if (!PyTuple_CheckExact(at[1])) {
    if (!check_star_arguments(callable, at[1])) goto error;
    PyObject* tuple = PySequence_Tuple(at[1]);
    if (tuple == nullptr) goto error;
    Py_SETREF(at[1], tuple);
  }
  PyObject* const arguments = at[1];
  PyObject* const kwargs = (ip->arg & 1) != 0 ? at[2] : nullptr;
  // As in kCall: what leads to a Python function is entered in place.
  PyObject *self = nullptr, *pending = nullptr;
  PyFunctionObject* function = nullptr;
  continuation = Continuation::kPush;
  PyTypeObject* type = Py_TYPE(callable);
  if (CAN_INLINE()) {
    if (type == &PyFunction_Type) {
      function = reinterpret_cast<PyFunctionObject*>(callable);
    } else if (type == &PyMethod_Type) {
      auto* method = reinterpret_cast<PyMethodObject*>(callable);
      if (PyFunction_Check(method->im_func)) {
        function = reinterpret_cast<PyFunctionObject*>(method->im_func);
        self = method->im_self;
      }
    } else if (type->tp_call == PyType_Type.tp_call && PyType_Check(callable)) {
      auto* made = reinterpret_cast<PyTypeObject*>(callable);
      if (made->tp_new == cpython::g_slots.object_new && made->tp_init == cpython::g_slots.init &&
          python_method(made, g_names.n_init) != nullptr) {
        pending = made->tp_new(made, g_empty_tuple, nullptr);
        if (unlikely(pending == nullptr)) goto error;
        function = python_method(made, g_names.n_init);
        self = pending;
        continuation = Continuation::kInit;
      }
    } else if (type->tp_call == cpython::g_slots.call) {
      function = python_method(type, g_names.n_call);
      self = callable;
    }
  }
  if (function != nullptr) {
    Code* target = code_for(reinterpret_cast<PyCodeObject*>(function->func_code));
    int bound = 0;
    if (target != nullptr && (target->code->co_flags & CO_OPTIMIZED) != 0 && runs_its_code(function) && can_bind_collected(arguments, kwargs)) {
      entered = allocate_frame(tstate, function, target);
      if (entered == nullptr) {
        Py_XDECREF(pending);
        goto error;
      }
      for (int i = 0; i < target->local_count; ++i) entered->localsplus[i] = nullptr;
      bound = bind_collected(function, target, entered->localsplus, self, arguments, kwargs);
      if (bound <= 0) {
        Py_DECREF(function);
        Py_DECREF(target->code);
        release_frame(tstate, entered);
      }
    } else {
      PyErr_Clear();
    }
    if (bound < 0) {
      Py_XDECREF(pending);
      goto error;
    }
    if (bound > 0) {
      sp = at - 1;
      if (pending != nullptr) PUSH(pending);
      Py_XDECREF(kwargs);
      Py_DECREF(arguments);
      Py_DECREF(callable);
      goto enter_frame;
    }
  }
  if (pending != nullptr) {
    // The arguments do not fit __init__: the error is its own.
    PyObject* init = PyObject_GetAttr(pending, g_names.n_init);
    result = init != nullptr ? PyObject_Call(init, arguments, kwargs) : nullptr;
    Py_XDECREF(init);
  } else {
    result = PyObject_Call(callable, arguments, kwargs);
  }
  sp = at - 1;
  Py_XDECREF(kwargs);
  Py_DECREF(arguments);
  Py_DECREF(callable);
  if (unlikely(result == nullptr)) {
    Py_XDECREF(pending);
    goto error;
  }
  if (pending != nullptr) {
    PUSH(pending);
    goto deliver;
  }
  PUSH(result);
  NEXT_CHECKED();
}

INST(ReturnValue) {
  result = POP();
  goto leave_frame;
}
INST(LoadFastReturn) {
  result = LOCAL(ip->arg);
  if (unlikely(result == nullptr)) goto generic_LoadFast;  // raises
  if (likely(frame->frame_obj == nullptr)) {
    LOCAL(ip->arg) = nullptr;  // nobody can look any more
  } else {
    Py_INCREF(result);
  }
  ++ip;
  goto leave_frame;
}
INST(LoadConstReturn) {
  result = Py_NewRef(reinterpret_cast<PyObject*>(ip->cache[0]));
  ++ip;
  goto leave_frame;
}

INST(MakeFunction) {
  SYNC();
  PyObject* object = POP();
  auto* function = reinterpret_cast<PyFunctionObject*>(PyFunction_New(object, frame->f_globals));
  Py_DECREF(object);
  if (unlikely(function == nullptr)) goto error;
  if (ip->arg & 8) function->func_closure = POP();
  if (ip->arg & 4) function->func_annotations = POP();
  if (ip->arg & 2) function->func_kwdefaults = POP();
  if (ip->arg & 1) function->func_defaults = POP();
  PUSH(reinterpret_cast<PyObject*>(function));
  NEXT();
}
INST(SetFunctionAttribute) {
  auto* function = reinterpret_cast<PyFunctionObject*>(TOP);
  PyObject* value = SECOND;
  switch (ip->arg) {
    case 8: function->func_closure = value; break;
    case 4: function->func_annotations = value; break;
    case 2: function->func_kwdefaults = value; break;
    default: function->func_defaults = value; break;
  }
  --sp;
  TOP = reinterpret_cast<PyObject*>(function);
  NEXT();
}
INST(LoadBuildClass) {
  SYNC();
  PyObject* builder = load_build_class(frame);
  if (unlikely(builder == nullptr)) goto error;
  PUSH(builder);
  NEXT();
}
