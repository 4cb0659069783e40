// Instruction bodies: arithmetic, comparisons, truth. Included by eval.cpp inside evaluate_frame.
//
// Purpose, invariants: eval.cpp. Inputs, outputs: the evaluator's registers. Tests: tests/vm/scripts/arith_*.py, operators_*.py.
//
// "small int" is an exact int of at most two digits (60 bits): sums of two fit a long, products are checked.

INST(BinaryOp)
  if (LOOKS()) {
    specialise_binary_op(ip, SECOND, TOP, frame->localsplus);
    DISPATCH();
  }
generic_BinaryOp : {
  SYNC();
  PyObject *left = SECOND, *right = TOP;
  PyTypeObject* type = Py_TYPE(left);
  // A Python method of the left operand, where the protocol asks it first.
  if (type->tp_as_number != nullptr && (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && CAN_INLINE()) {
    const binaryfunc slot = cpython::g_slots.binary[ip->arg];
    PyNumberMethods* methods = type->tp_as_number;
    PyObject* name = nullptr;
    switch (ip->arg) {
      case NB_ADD: if (methods->nb_add == slot) name = g_names.n_add; break;
      case NB_SUBTRACT: if (methods->nb_subtract == slot) name = g_names.n_sub; break;
      case NB_MULTIPLY: if (methods->nb_multiply == slot) name = g_names.n_mul; break;
      case NB_TRUE_DIVIDE: if (methods->nb_true_divide == slot) name = g_names.n_truediv; break;
      case NB_AND: if (methods->nb_and == slot) name = g_names.n_and; break;
      case NB_OR: if (methods->nb_or == slot) name = g_names.n_or; break;
      case NB_MATRIX_MULTIPLY: if (methods->nb_matrix_multiply == slot) name = g_names.n_matmul; break;
      default: break;
    }
    if (name != nullptr && (Py_TYPE(right) == type || !PyType_IsSubtype(Py_TYPE(right), type))) {
      detour = python_method(type, name);
      if (detour != nullptr) {
        detour_arguments[0] = Py_NewRef(left);
        detour_arguments[1] = Py_NewRef(right);
        detour_count = 2;
        continuation = Continuation::kBinary;
        goto enter_detour;
      }
    }
  }
  PyObject* value = kBinaryOperators[ip->arg](left, right);
  if (unlikely(value == nullptr)) goto error;
  --sp;
  TOP = value;
  DROP(left);
  DROP(right);
  NEXT_CHECKED();
}

#define BOTH_FLOATS(a, b) likely(PyFloat_CheckExact(a) && PyFloat_CheckExact(b))
#define BOTH_SMALL(left, right, a, b)                                                                         \
  likely(PyLong_CheckExact(left) && PyLong_CheckExact(right) && cpython::short_int(left, &a) && \
         cpython::short_int(right, &b))

// A dying operand takes the result: no float is freed and made.
#define FLOAT_OP(Name, expression)                                             \
  INST(Name) {                                                                 \
    PyObject *left = SECOND, *right = TOP;                                     \
    if (!BOTH_FLOATS(left, right)) MISS(BinaryOp);                             \
    const double a = float_of(left), b = float_of(right);                      \
    const double value = expression;                                           \
    --sp;                                                                      \
    if (left->ob_refcnt == 1) {                                                \
      reinterpret_cast<PyFloatObject*>(left)->ob_fval = value;                 \
      cpython::drop_float(floats, right);                                      \
    } else if (right->ob_refcnt == 1) {                                        \
      reinterpret_cast<PyFloatObject*>(right)->ob_fval = value;                \
      cpython::drop_shared(left);                                                       \
      TOP = right;                                                             \
    } else {                                                                   \
      SYNC();                                                                  \
      PyObject* made = cpython::new_float(floats, value);                      \
      if (unlikely(made == nullptr)) {                                         \
        ++sp;                                                                  \
        goto error;                                                            \
      }                                                                        \
      cpython::drop_float(floats, left);                                       \
      cpython::drop_float(floats, right);                                      \
      TOP = made;                                                              \
    }                                                                          \
    NEXT();                                                                    \
  }
FLOAT_OP(AddFloat, a + b)
FLOAT_OP(SubFloat, a - b)
FLOAT_OP(MulFloat, a* b)
INST(DivFloat) {
  PyObject *left = SECOND, *right = TOP;
  if (!BOTH_FLOATS(left, right)) MISS(BinaryOp);
  if (unlikely(float_of(right) == 0.0)) goto generic_BinaryOp;
  SYNC();
  PyObject* made = cpython::new_float(floats, float_of(left) / float_of(right));
  if (unlikely(made == nullptr)) goto error;
  --sp;
  cpython::drop_float(floats, left);
  cpython::drop_float(floats, right);
  TOP = made;
  NEXT();
}

#define SMALL_OP(Name, condition)                                                    \
  INST(Name) {                                                                       \
    PyObject *left = SECOND, *right = TOP;                                           \
    long a, b, value;                                                                \
    if (!BOTH_SMALL(left, right, a, b)) MISS(BinaryOp);                              \
    if (!(condition)) goto generic_BinaryOp;                                         \
    SYNC();                                                                          \
    PyObject* made = cpython::new_int(value);                                        \
    if (unlikely(made == nullptr)) goto error;                                       \
    --sp;                                                                            \
    TOP = made;                                                                      \
    DROP(left);                                                                      \
    DROP(right);                                                                     \
    NEXT();                                                                          \
  }
// Each condition also computes `value`.
SMALL_OP(AddInt, (value = a + b, true))
SMALL_OP(SubInt, (value = a - b, true))
SMALL_OP(MulInt, !__builtin_mul_overflow(a, b, &value))
SMALL_OP(AndInt, a >= 0 && b >= 0 && (value = a & b, true))
SMALL_OP(OrInt, a >= 0 && b >= 0 && (value = a | b, true))
SMALL_OP(XorInt, a >= 0 && b >= 0 && (value = a ^ b, true))
SMALL_OP(LshiftInt, a >= 0 && b >= 0 && b < 32 && a < (1l << 30) && (value = a << b, true))
SMALL_OP(RshiftInt, a >= 0 && b >= 0 && (value = b < 63 ? a >> b : 0, true))
// The remainder of a number of fewer digits than the divisor is that number itself, the same object.
SMALL_OP(ModInt, a >= 0 && b > 0 && ((b >> PyLong_SHIFT) == 0 || a >= b) && (value = a % b, true))
SMALL_OP(FloorDivInt, a >= 0 && b > 0 && (value = a / b, true))

INST(BinaryNumber) {
  PyObject *left = SECOND, *right = TOP;
  const int op = ip->arg < NB_INPLACE_ADD ? ip->arg : ip->arg - NB_INPLACE_ADD;
  double a, b, value;
  if (unlikely(!number_of(left, &a) || !number_of(right, &b))) MISS(BinaryOp);
  if (unlikely(PyLong_CheckExact(left) && PyLong_CheckExact(right))) {
    // Only quotients of ints are floats, and exact ones of what a double holds: 2**53 may be the next int rounded.
    constexpr double kExact = 1l << 53;
    if (op != NB_TRUE_DIVIDE || a >= kExact || a <= -kExact || b >= kExact || b <= -kExact) goto generic_BinaryOp;
  }
  switch (op) {
    case NB_ADD: value = a + b; break;
    case NB_SUBTRACT: value = a - b; break;
    case NB_MULTIPLY: value = a * b; break;
    default:
      if (b == 0.0) goto generic_BinaryOp;
      value = a / b;
  }
  SYNC();
  PyObject* made = cpython::new_float(floats, value);
  if (unlikely(made == nullptr)) goto error;
  --sp;
  TOP = made;
  DROP(left);
  DROP(right);
  NEXT();
}
INST(BinarySlot) {
  PyObject *left = SECOND, *right = TOP;
  if (unlikely(Py_TYPE(left)->tp_version_tag != LOW(ip->cache[0]) || Py_TYPE(right)->tp_version_tag != HIGH(ip->cache[0]))) MISS(BinaryOp);
  SYNC();
  PyObject* value = reinterpret_cast<binaryfunc>(ip->cache[1])(left, right);
  if (unlikely(value == nullptr)) goto error;
  if (unlikely(value == Py_NotImplemented)) {
    Py_DECREF(value);
    MISS(BinaryOp);
  }
  --sp;
  TOP = value;
  DROP(left);
  DROP(right);
  NEXT_CHECKED();
}

INST(AddStr) {
  SYNC();
  PyObject *left = SECOND, *right = TOP;
  if (unlikely(!PyUnicode_CheckExact(left) || !PyUnicode_CheckExact(right))) MISS(BinaryOp);
  PyObject* value = PyUnicode_Concat(left, right);
  if (unlikely(value == nullptr)) goto error;
  --sp;
  TOP = value;
  DROP(left);
  DROP(right);
  NEXT();
}
INST(AppendStr) {
  SYNC();
  PyObject *left = SECOND, *right = TOP;
  PyObject** local = &LOCAL(ip[1].arg);
  if (unlikely(!PyUnicode_CheckExact(left) || !PyUnicode_CheckExact(right) || *local != left)) MISS(BinaryOp);
  // The local keeps the only other reference, so the string may grow in place.
  cpython::drop_shared(left);
  sp -= 2;
  PyUnicode_Append(local, right);
  DROP(right);
  if (unlikely(*local == nullptr)) goto error;
  NEXT_AFTER(2);
}

// Locals as operands: no reference is taken. Anything unexpected executes the LoadFast alone.
CHOOSE_LOCALS(BinaryLL, RIGHT_LOCAL, specialise_binary_locals(ip, left, right, ip[2].arg, false))
CHOOSE_LOCALS(BinaryLC, RIGHT_CONST, specialise_binary_locals(ip, left, right, ip[2].arg, true))
#define LOCAL_FLOAT_OP(Name, second, expression)                                             \
  INST(Name) {                                                                               \
    PyObject *left = LOCAL(ip->arg), *right = second;                                        \
    if (unlikely(left == nullptr || right == nullptr)) goto generic_LoadFast;                \
    if (!BOTH_FLOATS(left, right)) MISS_FUSED(LoadFast);                                     \
    const double a = float_of(left), b = float_of(right);                                    \
    ip += 2;                                                                                 \
    SYNC();                                                                                  \
    PyObject* made = cpython::new_float(floats, expression);                                 \
    if (unlikely(made == nullptr)) goto error;                                               \
    PUSH(made);                                                                              \
    NEXT();                                                                                  \
  }
#define LOCAL_SMALL_OP(Name, second, condition)                                              \
  INST(Name) {                                                                               \
    PyObject *left = LOCAL(ip->arg), *right = second;                                        \
    if (unlikely(left == nullptr || right == nullptr)) goto generic_LoadFast;                \
    long a, b, value;                                                                        \
    if (!BOTH_SMALL(left, right, a, b)) MISS_FUSED(LoadFast);                                \
    if (!(condition)) goto generic_LoadFast;                                                 \
    ip += 2;                                                                                 \
    SYNC();                                                                                  \
    PyObject* made = cpython::new_int(value);                                                \
    if (unlikely(made == nullptr)) goto error;                                               \
    PUSH(made);                                                                              \
    NEXT();                                                                                  \
  }
LOCAL_FLOAT_OP(AddLLFloat, RIGHT_LOCAL, a + b)
LOCAL_FLOAT_OP(SubLLFloat, RIGHT_LOCAL, a - b)
LOCAL_FLOAT_OP(MulLLFloat, RIGHT_LOCAL, a* b)
LOCAL_FLOAT_OP(AddLCFloat, RIGHT_CONST, a + b)
LOCAL_FLOAT_OP(SubLCFloat, RIGHT_CONST, a - b)
LOCAL_FLOAT_OP(MulLCFloat, RIGHT_CONST, a* b)
LOCAL_SMALL_OP(AddLLInt, RIGHT_LOCAL, (value = a + b, true))
LOCAL_SMALL_OP(SubLLInt, RIGHT_LOCAL, (value = a - b, true))
LOCAL_SMALL_OP(MulLLInt, RIGHT_LOCAL, !__builtin_mul_overflow(a, b, &value))
LOCAL_SMALL_OP(AddLCInt, RIGHT_CONST, (value = a + b, true))
LOCAL_SMALL_OP(SubLCInt, RIGHT_CONST, (value = a - b, true))
LOCAL_SMALL_OP(MulLCInt, RIGHT_CONST, !__builtin_mul_overflow(a, b, &value))

// ---- comparisons

INST(CompareOp)
  if (LOOKS()) {
    specialise_compare(ip, SECOND, TOP, false);
    DISPATCH();
  }
generic_CompareOp : {
  SYNC();
  PyObject *left = SECOND, *right = TOP;
  PyTypeObject* type = Py_TYPE(left);
  if (type->tp_richcompare == cpython::g_slots.richcompare && CAN_INLINE() &&
      (Py_TYPE(right) == type || !PyType_IsSubtype(Py_TYPE(right), type))) {
    PyObject* const names[] = {g_names.n_lt, g_names.n_le, g_names.n_eq, g_names.n_ne, g_names.n_gt, g_names.n_ge};
    detour = python_method(type, names[ip->arg]);
    if (detour != nullptr) {
      detour_arguments[0] = Py_NewRef(left);
      detour_arguments[1] = Py_NewRef(right);
      detour_count = 2;
      continuation = Continuation::kCompare;
      goto enter_detour;
    }
  }
  PyObject* value = PyObject_RichCompare(left, right, ip->arg);
  if (unlikely(value == nullptr)) goto error;
  --sp;
  TOP = value;
  DROP(left);
  DROP(right);
  NEXT_CHECKED();
}
INST(CompareInt) {
  PyObject *left = SECOND, *right = TOP;
  long a, b;
  if (!BOTH_SMALL(left, right, a, b)) MISS(CompareOp);
  const bool value = compare_numbers(ip->arg, a, b);
  --sp;
  TOP = Py_NewRef(value ? Py_True : Py_False);
  DROP(left);
  DROP(right);
  NEXT();
}
INST(CompareFloat) {
  PyObject *left = SECOND, *right = TOP;
  if (!BOTH_FLOATS(left, right)) MISS(CompareOp);
  const bool value = compare_numbers(ip->arg, float_of(left), float_of(right));
  --sp;
  TOP = Py_NewRef(value ? Py_True : Py_False);
  cpython::drop_float(floats, left);
  cpython::drop_float(floats, right);
  NEXT();
}
INST(CompareStr) {
  PyObject *left = SECOND, *right = TOP;
  if (unlikely(!PyUnicode_CheckExact(left) || !PyUnicode_CheckExact(right))) MISS(CompareOp);
  const bool equal = equal_strings(left, right);
  --sp;
  TOP = Py_NewRef(equal == (ip->arg == Py_EQ) ? Py_True : Py_False);
  DROP(left);
  DROP(right);
  NEXT();
}

// Fused with the conditional jump in the next slot, or behind the ToBool there. ip becomes that jump before it is taken.
#define BRANCH(value)                                                                    \
  do {                                                                                   \
    const bool truth_ = (value);                                                         \
    ip += 1 + ip->cache[1];                                                              \
    if (truth_ != (ip->op == static_cast<uint16_t>(Op::kPopJumpIfTrue))) NEXT();        \
    TAKE_JUMP();                                                                         \
  } while (0)

INST(CompareJump) {
  if (LOOKS()) {
    specialise_compare(ip, SECOND, TOP, true);
    DISPATCH();
  }
  goto generic_CompareOp;
}
generic_CompareJump:
  goto generic_CompareOp;
INST(CompareJumpInt) {
  PyObject *left = SECOND, *right = TOP;
  long a, b;
  if (!BOTH_SMALL(left, right, a, b)) MISS(CompareJump);
  const bool value = compare_numbers(ip->arg, a, b);
  sp -= 2;
  DROP(left);
  DROP(right);
  BRANCH(value);
}
INST(CompareJumpFloat) {
  PyObject *left = SECOND, *right = TOP;
  if (!BOTH_FLOATS(left, right)) MISS(CompareJump);
  const bool value = compare_numbers(ip->arg, float_of(left), float_of(right));
  sp -= 2;
  cpython::drop_float(floats, left);
  cpython::drop_float(floats, right);
  BRANCH(value);
}
INST(CompareJumpStr) {
  PyObject *left = SECOND, *right = TOP;
  if (unlikely(!PyUnicode_CheckExact(left) || !PyUnicode_CheckExact(right))) MISS(CompareJump);
  const bool equal = equal_strings(left, right);
  sp -= 2;
  DROP(left);
  DROP(right);
  BRANCH(equal == (ip->arg == Py_EQ));
}

// The same with both operands loaded here: no reference is taken. Anything unexpected executes the LoadFast alone.
#define COMPARE_LOCAL_INTS(Name, second)                                                            \
  INST(Name) {                                                                                      \
    PyObject *left = LOCAL(ip->arg), *right = second;                                               \
    long a, b;                                                                                      \
    if (unlikely(left == nullptr || right == nullptr)) goto generic_LoadFast;                       \
    if (!BOTH_SMALL(left, right, a, b)) MISS_FUSED(LoadFast);                                       \
    ip += 2;                                                                                        \
    BRANCH(compare_numbers(ip->arg, a, b));                                                           \
  }
#define COMPARE_LOCAL_FLOATS(Name, second)                                                          \
  INST(Name) {                                                                                      \
    PyObject *left = LOCAL(ip->arg), *right = second;                                               \
    if (unlikely(left == nullptr || right == nullptr)) goto generic_LoadFast;                       \
    if (!BOTH_FLOATS(left, right)) MISS_FUSED(LoadFast);                                            \
    ip += 2;                                                                                        \
    BRANCH(compare_numbers(ip->arg, float_of(left), float_of(right)));                              \
  }
CHOOSE_LOCALS(CompareLL, RIGHT_LOCAL, specialise_compare_locals(ip, left, right, false))
CHOOSE_LOCALS(CompareLC, RIGHT_CONST, specialise_compare_locals(ip, left, right, true))
COMPARE_LOCAL_INTS(CompareLLInt, RIGHT_LOCAL)
COMPARE_LOCAL_INTS(CompareLCInt, RIGHT_CONST)
COMPARE_LOCAL_FLOATS(CompareLLFloat, RIGHT_LOCAL)
COMPARE_LOCAL_FLOATS(CompareLCFloat, RIGHT_CONST)

INST(IsOp) {
  PyObject *right = POP(), *left = TOP;
  TOP = Py_NewRef((left == right) != (ip->arg != 0) ? Py_True : Py_False);
  DROP(left);
  DROP(right);
  NEXT();
}
INST(IsOpJump) {
  PyObject *right = TOP, *left = SECOND;
  const bool value = (left == right) != (ip->arg != 0);
  sp -= 2;
  DROP(left);
  DROP(right);
  BRANCH(value);
}
INST(ContainsOp)
  if (LOOKS()) {
    specialise_contains(ip, TOP);
    DISPATCH();
  }
generic_ContainsOp : {
  SYNC();
  PyObject *container = TOP, *item = SECOND;
  PyTypeObject* type = Py_TYPE(container);
  int is_in;
  if (type == &PyDict_Type && PyUnicode_CheckExact(item)) {
    is_in = cpython::dict_get(container, item, cpython::str_hash(item)) != nullptr;
    if (!is_in && unlikely(cpython::exception_is_set(tstate))) is_in = -1;
  } else {
    if (type->tp_as_sequence != nullptr && type->tp_as_sequence->sq_contains == cpython::g_slots.contains && CAN_INLINE()) {
      detour = python_method(type, g_names.n_contains);
      if (detour != nullptr) {
        detour_arguments[0] = container;
        detour_arguments[1] = item;
        detour_count = 2;
        sp -= 2;
        continuation = Continuation::kContains;
        goto enter_detour;
      }
    }
    is_in = PySequence_Contains(container, item);
  }
  if (unlikely(is_in < 0)) goto error;
  --sp;
  TOP = Py_NewRef((is_in ^ ip->arg) ? Py_True : Py_False);
  DROP(item);
  DROP(container);
  NEXT_CHECKED();
}

INST(ContainsSlot) {
  PyObject *container = TOP, *item = SECOND;
  if (unlikely(Py_TYPE(container)->tp_version_tag != ip->cache[0])) MISS(ContainsOp);
  SYNC();
  const int is_in = reinterpret_cast<objobjproc>(ip->cache[1])(container, item);
  if (unlikely(is_in < 0)) goto error;
  --sp;
  TOP = Py_NewRef((is_in ^ ip->arg) ? Py_True : Py_False);
  DROP(item);
  DROP(container);
  NEXT_CHECKED();
}

INST(ToBool) {
  if (PyBool_Check(TOP)) NEXT();
  goto ask_truth;
}
INST(UnaryNot) goto ask_truth;

#define UNARY(Name, function)                   \
  INST(Name) {                                  \
    SYNC();                                     \
    PyObject* operand = TOP;                    \
    PyObject* value = function(operand);        \
    if (unlikely(value == nullptr)) goto error; \
    TOP = value;                                \
    DROP(operand);                              \
    NEXT();                                     \
  }
UNARY(UnaryNegative, PyNumber_Negative)
UNARY(UnaryPositive, PyNumber_Positive)
UNARY(UnaryInvert, PyNumber_Invert)
