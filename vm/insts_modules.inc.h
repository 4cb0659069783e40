// Instruction bodies: imports, pattern matching, annotations, the interactive loop. Included by eval.cpp inside evaluate_frame.
//
// Purpose, invariants: eval.cpp. Inputs, outputs: the evaluator's registers. Tests: tests/vm/scripts/imports_*.py, match_*.py.

INST(ImportName) {
  SYNC();
  PyObject *fromlist = TOP, *level = SECOND;
  PyObject* module = import_name(tstate, frame, NAME_OF(ip), fromlist, level);
  if (unlikely(module == nullptr)) goto error;
  --sp;
  TOP = module;
  Py_DECREF(fromlist);
  Py_DECREF(level);
  NEXT_CHECKED();
}
INST(ImportFrom) {
  SYNC();
  PyObject* value = import_from(TOP, NAME_OF(ip));
  if (unlikely(value == nullptr)) goto error;
  PUSH(value);
  NEXT();
}
INST(ImportStar) {
  SYNC();
  PyObject* module = POP();
  const bool good = import_star(frame, module);
  Py_DECREF(module);
  if (unlikely(!good)) goto error;
  NEXT();
}
INST(SetupAnnotations) {
  SYNC();
  if (unlikely(!setup_annotations(frame))) goto error;
  NEXT();
}
INST(PrintExpr) {
  SYNC();
  PyObject* value = POP();
  const bool good = print_expression(tstate, value);
  Py_DECREF(value);
  if (unlikely(!good)) goto error;
  NEXT_CHECKED();
}

INST(CallIntrinsic1) {
  SYNC();
  PyObject* value = TOP;
  result = cpython::intrinsic_1(tstate, frame, ip->arg, value);
  if (unlikely(result == nullptr)) goto error;
  TOP = result;
  DROP(value);
  NEXT_CHECKED();
}
INST(CallIntrinsic2) {
  SYNC();
  PyObject *second = TOP, *first = SECOND;
  result = cpython::intrinsic_2(tstate, ip->arg, first, second);
  if (unlikely(result == nullptr)) goto error;
  --sp;
  TOP = result;
  DROP(first);
  DROP(second);
  NEXT_CHECKED();
}

INST(MatchMapping) {
  const bool is = (Py_TYPE(TOP)->tp_flags & Py_TPFLAGS_MAPPING) != 0;
  PUSH(Py_NewRef(is ? Py_True : Py_False));
  NEXT();
}
INST(MatchSequence) {
  const bool is = (Py_TYPE(TOP)->tp_flags & Py_TPFLAGS_SEQUENCE) != 0;
  PUSH(Py_NewRef(is ? Py_True : Py_False));
  NEXT();
}
INST(MatchKeys) {
  SYNC();
  PyObject* values = match_keys(SECOND, TOP);
  if (unlikely(values == nullptr)) goto error;
  PUSH(values);
  NEXT();
}
INST(MatchClass) {
  SYNC();
  PyObject *names = TOP, *type = SECOND, *subject = sp[-3];
  PyObject* attributes = match_class(subject, type, ip->arg, names);
  if (attributes == nullptr) {
    if (unlikely(cpython::exception_is_set(tstate))) goto error;
    attributes = Py_NewRef(Py_None);
  }
  sp -= 2;
  TOP = attributes;
  Py_DECREF(names);
  Py_DECREF(type);
  Py_DECREF(subject);
  NEXT();
}
