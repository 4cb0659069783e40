// Recording of operators and subscripts: numbers unboxed, tensors through torch_calls.cpp, the rest residual. See recorder.h.
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "tracer/annotations.h"
#include "tracer/recorder.h"
#include "runtime/base/heuristics.h"
#include "vm/objects.h"

namespace dynvm::tracer {

using ir::kNoRef;
using ir::Ref;
using ir::Type;
using vm::HookResult;
using vm::Op;
using IrOp = ir::Op;

namespace {

enum Nb { kAdd, kAnd, kFloorDivide, kLshift, kMatMul, kMultiply, kRemainder, kOr, kPower, kRshift, kSubtract, kTrueDivide, kXor };

constexpr Py_ssize_t kGuardedListItems = 64;  // longer lists are read item by item instead of guarded whole

PyObject* zero() {
  static PyObject* object = PyLong_FromLong(0);
  return object;
}

bool is_int(PyObject* o) { return PyLong_CheckExact(o); }
bool is_number(PyObject* o) { return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o); }
// Builtin values that compare and convert without running Python code.
bool is_plain(PyObject* o) {
  return is_number(o) || o == Py_None || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) || o == Py_Ellipsis || PyType_CheckExact(o);
}

// The Python method of an operand's class that `a op b` calls first, borrowed; null where there is none, or another comes first. Only for the
// operators that kBinary knows (vm/continuations.def). *reflected: it is the right operand's, as the left one is a number.
PyObject* operator_method(PyObject* a, PyObject* b, int op, bool* reflected) {
  static const std::unordered_map<int, std::pair<const char*, const char*>> names = {
      {kAdd, {"__add__", "__radd__"}}, {kSubtract, {"__sub__", "__rsub__"}}, {kMultiply, {"__mul__", "__rmul__"}}, {kTrueDivide, {"__truediv__", "__rtruediv__"}},
      {kAnd, {"__and__", "__rand__"}}, {kOr, {"__or__", "__ror__"}}, {kMatMul, {"__matmul__", "__rmatmul__"}}};
  const auto known = names.find(op);
  *reflected = is_number(a);
  PyTypeObject* type = Py_TYPE(*reflected ? b : a);
  if (known == names.end() || !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return nullptr;
  if (!*reflected && Py_TYPE(b) != type && PyType_IsSubtype(Py_TYPE(b), type)) return nullptr;
  if (*reflected && (PyLong_Check(b) || PyFloat_Check(b))) return nullptr;
  PyObject* method = _PyType_Lookup(type, interned(*reflected ? known->second.second : known->second.first));
  return method != nullptr && PyFunction_Check(method) ? method : nullptr;
}

// Immutable objects of torch's.
bool is_torch_constant(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  return strcmp(name, "torch.dtype") == 0 || strcmp(name, "torch.device") == 0 || strcmp(name, "torch.layout") == 0;
}

// An immutable value whose operators run no Python code: a builtin one, torch.Size and other tuples of C types, of such.
bool computes_natively(PyObject* o) {
  if (PyTuple_Check(o) && !PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
      if (!computes_natively(PyTuple_GET_ITEM(o, i))) return false;
    return true;
  }
  return (is_plain(o) && !PyType_Check(o)) || is_torch_constant(o);
}

PyObject* apply_binary(int arg, PyObject* a, PyObject* b) {
  static binaryfunc table[] = {PyNumber_Add, PyNumber_And, PyNumber_FloorDivide, PyNumber_Lshift, PyNumber_MatrixMultiply,
                               PyNumber_Multiply, PyNumber_Remainder, PyNumber_Or, nullptr, PyNumber_Rshift, PyNumber_Subtract,
                               PyNumber_TrueDivide, PyNumber_Xor};
  return arg == kPower ? PyNumber_Power(a, b, Py_None) : table[arg](a, b);
}

}  // namespace

// A new reference as a constant; kNoValue, and no exception, where it is null.
V Recorder::taken(PyObject* made) {
  if (made == nullptr) {
    PyErr_Clear();
    return kNoValue;
  }
  V v = constant(made);
  Py_DECREF(made);
  return v;
}

// Typed arithmetic on numbers; kNoValue when this pair is not modelled.
V Recorder::number_operator(int op, V left, V right) { return number_of_sizes(plain_number_operator(op, left, right), left, right); }

V Recorder::plain_number_operator(int op, V left, V right) {
  PyObject *a = concrete(left), *b = concrete(right);
  if (!is_number(a) || !is_number(b)) return kNoValue;
  PyObject* result = apply_binary(op, a, b);
  if (result == nullptr) {
    PyErr_Clear();
    return kNoValue;
  }
  V v = kNoValue;
  if ((is_const(left) && is_const(right)) || (PyBool_Check(a) && PyBool_Check(b) && PyBool_Check(result) && promote(left) && promote(right))) {  // bools decide
    v = constant(result);
  } else if (PyLong_CheckExact(result) && is_int(a) && is_int(b)) {
    IrOp table[] = {IrOp::k_add_int, IrOp::k_and_int, IrOp::k_floordiv_int, IrOp::kCount, IrOp::kCount, IrOp::k_mul_int, IrOp::k_mod_int,
                    IrOp::k_or_int, IrOp::kCount, IrOp::kCount, IrOp::k_sub_int, IrOp::kCount, IrOp::k_xor_int};
    IrOp ir_op = table[op];
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(result, &overflow);
    if (ir_op != IrOp::kCount && (ir::op_info(ir_op).effects & ir::kGuard) != 0 && no_guard_may_follow()) {
      v = int_operator_without_guard(op, left, right);
    } else if (ir_op != IrOp::kCount && overflow == 0) {
      Ref x = as_int(left), y = as_int(right);
      if (x != kNoRef && y != kNoRef) {
        bool guards = ir::op_info(ir_op).effects & ir::kGuard;
        v = scalar(Type::kInt, emit(ir_op, Type::kInt, {x, y}, 0, guards), result);
      }
    }
  } else if (PyFloat_CheckExact(result)) {
    IrOp ir_op = op == kAdd ? IrOp::k_add_float : op == kSubtract ? IrOp::k_sub_float : op == kMultiply ? IrOp::k_mul_float
               : op == kTrueDivide ? IrOp::k_div_float : op == kPower ? IrOp::k_pow_float : IrOp::kCount;
    if (ir_op != IrOp::kCount) {
      Ref x = as_float(left), y = as_float(right);
      if (x != kNoRef && y != kNoRef) {
        bool guards = ir::op_info(ir_op).effects & ir::kGuard;
        v = scalar(Type::kFloat, emit(ir_op, Type::kFloat, {x, y}, 0, guards), result);
      }
    }
  }
  Py_DECREF(result);
  return v;
}

// Of Python's module operator, new reference.
static PyObject* operator_function(const char* name) {
  static PyObject* const module = PyImport_ImportModule("_operator");
  return PyObject_GetAttrString(module, name);
}

// The same by the function that Python has for it, on objects: it never leaves the trace. kNoValue: not for these.
V Recorder::int_operator_without_guard(int op, V left, V right) {
  const char* name = op == kAdd ? "add" : op == kSubtract ? "sub" : op == kMultiply ? "mul" : nullptr;
  if (name == nullptr) return kNoValue;
  for (V v : {left, right})
    if (at(v).kind == Value::kObject && !at(v).type_known) as_int(v);  // needs a guard, which is a lesson
  PyObject* function = operator_function(name);
  const V callee = constant(function);
  Py_DECREF(function);
  bool ok = true;
  const V v = run_residual(IrOp::k_call_known, {callee, left, right}, -1, &ok);
  if (!ok) return kNoValue;
  at(v).type_known = true;
  return v;
}

V Recorder::number_compare(int op, V left, V right) {
  PyObject *a = concrete(left), *b = concrete(right);
  if (is_const(left) && is_const(right) && (is_plain(a) || computes_natively(a)) && (is_plain(b) || computes_natively(b))) {
    return taken(PyObject_RichCompare(a, b, op));
  }
  if ((op == Py_EQ || op == Py_NE) && !is_number(a) && !is_number(b) && compares_natively(left) && compares_natively(right)) return taken(PyObject_RichCompare(a, b, op));
  if (done_ || !is_number(a) || !is_number(b)) return kNoValue;
  int truth = PyObject_RichCompareBool(a, b, op);
  if (truth < 0) {
    PyErr_Clear();
    return kNoValue;
  }
  if (PyFloat_CheckExact(a) && std::isnan(PyFloat_AS_DOUBLE(a)) && a == b) return kNoValue;
  bool floats = PyFloat_CheckExact(a) || PyFloat_CheckExact(b);
  Ref x = floats ? as_float(left) : as_int(left), y = floats ? as_float(right) : as_int(right);
  if (x == kNoRef || y == kNoRef) return kNoValue;
  IrOp ints[] = {IrOp::k_lt_int, IrOp::k_le_int, IrOp::k_eq_int, IrOp::k_ne_int, IrOp::k_gt_int, IrOp::k_ge_int};
  IrOp reals[] = {IrOp::k_lt_float, IrOp::k_le_float, IrOp::k_eq_float, IrOp::k_ne_float, IrOp::k_gt_float, IrOp::k_ge_float};
  return scalar(Type::kBool, emit(floats ? reals[op] : ints[op], Type::kBool, {x, y}), truth ? Py_True : Py_False);
}

// A virtual list or tuple so many times; kNoValue: not known, or many.
V Recorder::repeated(V items, V times) {
  PyObject* number = concrete(times);
  const bool is_list = at(items).kind == Value::kList && at(items).object == kNoRef;
  if ((!is_list && at(items).kind != Value::kTuple) || !PyLong_CheckExact(number) || at(times).kind == Value::kScalar) return kNoValue;
  const Py_ssize_t count = PyLong_AsSsize_t(number);
  PyErr_Clear();
  const std::vector<V> once = at(items).items;
  if (count < 0 || static_cast<size_t>(count) * once.size() > static_cast<size_t>(base::heuristics().max_repeated) || !promote(times) || done_) return kNoValue;
  if (!is_list && !PyTuple_CheckExact(concrete(items))) return kNoValue;
  PyObject* object = PySequence_Repeat(concrete(items), count);
  if (object == nullptr) PyErr_Clear();
  if (object == nullptr) return kNoValue;
  std::vector<V> all;
  for (Py_ssize_t i = 0; i < count; i++) all.insert(all.end(), once.begin(), once.end());
  const V result = virtual_object(is_list ? Value::kList : Value::kTuple, std::move(all), object);
  Py_DECREF(object);
  return result;
}

// list += items, of a virtual list; false: it is none, or the items are not known.
bool Recorder::extended(V list, V items) {
  std::vector<V> more;
  if (at(list).kind != Value::kList || at(list).object != kNoRef || iterators_.count(items) != 0 || !iteration_items(items, &more) || done_) return false;
  PyObject* same = PySequence_InPlaceConcat(concrete(list), concrete(items));
  if (same == nullptr) PyErr_Clear();
  if (same == nullptr) return false;
  Py_DECREF(same);
  at(list).items.insert(at(list).items.end(), more.begin(), more.end());
  changed(list);
  return true;
}

// The concatenation of two virtual lists, or of two tuples of which one is virtual; kNoValue: the items of the other are not known.
V Recorder::sequence_sum(V left, V right) {
  std::vector<V> items, more;
  const bool lists = at(left).kind == Value::kList && at(right).kind == Value::kList && at(left).object == kNoRef && at(right).object == kNoRef;
  if (!lists && (!is_plain_tuple(concrete(left)) || !is_plain_tuple(concrete(right)))) return kNoValue;
  if (!known_items(left, &items) || !known_items(right, &more) || done_) return kNoValue;
  items.insert(items.end(), more.begin(), more.end());
  PyObject* sum = PySequence_Concat(concrete(left), concrete(right));
  if (sum == nullptr) {
    PyErr_Clear();
    return kNoValue;
  }
  if (!lists && !PyTuple_CheckExact(sum)) {  // a torch.Size: constant, or virtual where sizes are numbers, and of numbers
    if (std::all_of(items.begin(), items.end(), [this](V item) { return is_const(item); })) return taken(sum);
    bool numbers = sizes_are_numbers_;
    for (V item : items) numbers = numbers && as_int(item) != kNoRef && (is_const(item) || at(item).of_sizes);
    if (!numbers) {
      Py_DECREF(sum);
      return kNoValue;
    }
  }
  V result = virtual_object(lists ? Value::kList : Value::kTuple, std::move(items), sum);
  Py_DECREF(sum);
  return result;
}

// Equality of two tuples of numbers of which one is virtual: a guard for each pair of items.
V Recorder::tuple_compare(int op, V left, V right) {
  if (op != Py_EQ && op != Py_NE) return kNoValue;
  if (!is_plain_tuple(concrete(left)) || !is_plain_tuple(concrete(right))) return kNoValue;
  std::vector<V> x, y;
  if (!known_items(left, &x) || !known_items(right, &y) || done_) return kNoValue;
  bool equal = x.size() == y.size();
  for (const std::vector<V>& items : {x, y})
    for (V v : items)
      if (concrete(v) == nullptr || !is_int(concrete(v))) return kNoValue;
  for (size_t i = 0; equal && i < x.size(); i++) {
    V same = number_compare(Py_EQ, x[i], y[i]);
    if (same == kNoValue || !promote(same)) return kNoValue;
    equal = concrete(same) == Py_True;
  }
  return constant(equal == (op == Py_EQ) ? Py_True : Py_False);
}

// Of a bool.
V Recorder::negation(V truth) {
  PyObject* inverse = concrete(truth) == Py_True ? Py_False : Py_True;
  if (is_const(truth)) return constant(inverse);
  return scalar(Type::kBool, emit(IrOp::k_not_bool, Type::kBool, {as_bool(truth)}), inverse);
}

HookResult Recorder::record_operators(vm::ThreadView& view, Op op, int arg) {
  switch (op) {
    case Op::kBinaryOp: {
      V left = peek(2), right = peek(1);
      int nb = arg % 13;
      V result = number_operator(nb, left, right);
      bool reflected = false;
      if (PyObject* method = result == kNoValue && arg < 13 ? operator_method(concrete(left), concrete(right), nb, &reflected) : nullptr) {
        V self = reflected ? right : left, other = reflected ? left : right;
        know_type(self);
        guard_type_unchanged(Py_TYPE(concrete(self)));
        if (at(other).kind == Value::kObject) know_type(other);  // no class whose method would come first
        if (done_) return HookResult::kContinue;
        if (enter_function(view, constant(method), {self, other}, nullptr, 0, vm::Continuation::kBinary)) return HookResult::kReload;
        if (entered_error_) return HookResult::kError;
        if (done_) return HookResult::kContinue;
      }
      if (result == kNoValue && (is_tensor(concrete(left)) || is_tensor(concrete(right)))) {
        // Some of a tensor's operators are Python functions around the C ones (`**`, reflected and floor division).
        static const char* names[] = {"add", "and", "floordiv", "lshift", "matmul", "mul", "mod", "or", "pow", "rshift", "sub", "truediv", "xor"};
        bool on_left = is_tensor(concrete(left));
        V self = on_left ? left : right, other = on_left ? right : left;
        // Only a number leaves the operation to the tensor for certain.
        if (!is_number(concrete(other)) && !is_tensor(concrete(other))) return residual(view, IrOp::k_binary, {left, right}, arg, 2);
        std::string name = std::string(arg >= 13 && on_left ? "__i" : on_left ? "__" : "__r") + names[nb] + "__";
        PyObject* method = PyUnicode_FromString(name.c_str());
        PyObject* found = _PyType_Lookup(Py_TYPE(concrete(self)), method);
        Py_DECREF(method);
        if (found == nullptr && arg >= 13) {
          method = PyUnicode_FromString((std::string("__") + names[nb] + "__").c_str());
          found = _PyType_Lookup(Py_TYPE(concrete(self)), method);
          Py_DECREF(method);
        }
        if (found != nullptr && PyFunction_Check(found)) {
          if (at(self).kind == Value::kObject) know_type(self);
          guard_type_unchanged(Py_TYPE(concrete(self)));
          if (done_) return HookResult::kContinue;
          if (enter_function(view, constant(found), {self, other}, nullptr, 0, vm::Continuation::kBinary)) return HookResult::kReload;
          if (entered_error_) return HookResult::kError;
          if (done_) return HookResult::kContinue;
        }
        return torch_operator(view, IrOp::k_binary, {left, right}, arg, 2, "binary operator");
      }
      PyObject *a = concrete(left), *b = concrete(right);
      if (result == kNoValue && nb == kOr && is_const(left) && is_const(right) && typing_form(a) && typing_form(b)) {
        PyObject* form = PyNumber_Or(a, b);
        if (form == nullptr) return raised(view);
        result = constant(form);
        Py_DECREF(form);
      }
      if (result == kNoValue && is_const(left) && is_const(right) && computes_natively(a) && computes_natively(b)) {
        result = taken(apply_binary(nb, a, b));  // (None,) * 3, "%s" % name, Size + tuple
      }
      const auto adds = [this](V v) { return at(v).kind == Value::kTuple || at(v).kind == Value::kList; };
      if (result == kNoValue && nb == kAdd && (arg < 13 || !PyList_CheckExact(a)) && (adds(left) || adds(right))) result = sequence_sum(left, right);
      if (result == kNoValue && nb == kMultiply && arg < 13) result = repeated(left, right);
      if (result == kNoValue && nb == kAdd && arg >= 13 && extended(left, right)) result = left;
      if (done_) return HookResult::kContinue;
      if (result == kNoValue) return residual(view, IrOp::k_binary, {left, right}, arg, 2);
      pop(view, 2);
      push(view, result);
      return next(view);
    }
    case Op::kCompareOp: {
      V left = peek(2), right = peek(1);
      V result = number_compare(arg, left, right);
      if (result == kNoValue && (at(left).kind == Value::kTuple || at(right).kind == Value::kTuple)) result = tuple_compare(arg, left, right);
      if (done_) return HookResult::kContinue;
      if (result == kNoValue && (is_tensor(concrete(left)) || is_tensor(concrete(right))))
        return torch_operator(view, IrOp::k_compare, {left, right}, arg, 2, "comparison");
      if (result == kNoValue && (arg == Py_EQ || arg == Py_NE)) {
        // Strings and other plain values that can be made constant.
        PyObject *a = concrete(left), *b = concrete(right);
        if (is_plain(a) && is_plain(b) && !is_number(a) && !is_number(b) && promote(left) && promote(right)) result = number_compare(arg, left, right);
        if (result == kNoValue && is_const(left) && is_const(right) && Py_TYPE(a) == Py_TYPE(b) && is_immutable(a) && is_immutable(b)) {
          PyObject* same = PyObject_RichCompare(a, b, arg);
          if (same == nullptr) return raised(view);
          result = constant(same);
          Py_DECREF(same);
        }
      }
      if (done_) return HookResult::kContinue;
      if (result == kNoValue && (arg == Py_EQ || arg == Py_NE) && is_plain(concrete(left)) && is_plain(concrete(right))) {
        for (V side : {left, right}) know_type(side);  // values of builtin types: no Python code runs
        bool ok = !done_;
        if (ok) result = run_residual(IrOp::k_call_pure, {constant(equality(arg == Py_EQ)), left, right}, -1, &ok);
        if (done_) return HookResult::kContinue;
        if (!ok) return raised(view);
      }
      if (result == kNoValue) return residual(view, IrOp::k_compare, {left, right}, arg, 2);
      pop(view, 2);
      push(view, result);
      return next(view);
    }
    case Op::kIsOp: {
      V left = peek(2), right = peek(1);
      V result = identity(left, right);
      bool same = at(result).concrete == Py_True;
      if (arg) {
        if (is_const(result)) {
          result = constant(same ? Py_False : Py_True);
        } else {
          result = scalar(Type::kBool, emit(IrOp::k_not_bool, Type::kBool, {at(result).ref}), same ? Py_False : Py_True);
        }
      }
      pop(view, 2);
      push(view, result);
      return next(view);
    }
    case Op::kContainsOp: {
      V value = peek(2), container = peek(1);
      V result = contains(container, value);
      if (done_) return HookResult::kContinue;
      PyTypeObject* type = Py_TYPE(concrete(container));
      PyObject* method = result == kNoValue ? _PyType_Lookup(type, interned("__contains__")) : nullptr;
      if (method != nullptr && PyFunction_Check(method)) {
        if (at(container).kind == Value::kObject || is_const(container)) know_type(container);
        guard_type_unchanged(type);
        if (done_) return HookResult::kContinue;
        if (enter_function(view, constant(method), {container, value}, nullptr, 2, vm::Continuation::kContains)) return HookResult::kReload;
        if (entered_error_) return HookResult::kError;
        if (done_) return HookResult::kContinue;
      }
      if (result == kNoValue && (is_tensor(concrete(value)) || is_tensor(concrete(container)))) {
        give_up(Abort::k_unsupported_operation, "in on tensors");
        return HookResult::kContinue;
      }
      if (result == kNoValue) {
        bool ok = true;
        const bool native = (PyAnySet_CheckExact(concrete(container)) || PyDict_CheckExact(concrete(container))) && know_type(container) && is_const(value) && hashes_natively(value);
        if (done_) return HookResult::kContinue;
        result = run_residual(native ? IrOp::k_contains_known : IrOp::k_contains, {container, value}, 0, &ok);
        if (!ok) return raised(view);
      }
      if (arg) result = negation(result);
      pop(view, 2);
      push(view, result);
      return next(view);
    }
    case Op::kUnaryNot: {
      V v = peek(1);
      V truth = kNoValue;
      if (!truth_value(view, v, &truth)) return done_ ? HookResult::kContinue : raised(view);
      V result = negation(truth);
      pop(view, 1);
      push(view, result);
      return next(view);
    }
    case Op::kToBool: {
      V truth = kNoValue;
      if (!truth_value(view, peek(1), &truth)) return done_ ? HookResult::kContinue : raised(view);
      pop(view, 1);
      push(view, truth);
      return next(view);
    }
    case Op::kUnaryNegative:
    case Op::kUnaryPositive:
    case Op::kUnaryInvert: {
      V v = peek(1);
      int which = op == Op::kUnaryNegative ? 0 : op == Op::kUnaryInvert ? 1 : 2;
      PyObject* o = concrete(v);
      if (is_tensor(o)) return torch_operator(view, IrOp::k_unary, {v}, which, 1, "unary operator");
      if (op == Op::kUnaryNegative && is_number(o) && !PyBool_Check(o)) {
        PyObject* negated = PyNumber_Negative(o);
        if (negated == nullptr) return raised(view);
        V result = kNoValue;
        if (is_const(v)) {
          result = constant(negated);
        } else if (PyFloat_CheckExact(o)) {
          result = scalar(Type::kFloat, emit(IrOp::k_neg_float, Type::kFloat, {as_float(v)}), negated);
        } else if (Ref ref = as_int(v); ref != kNoRef) {
          result = number_of_sizes(scalar(Type::kInt, emit(IrOp::k_neg_int, Type::kInt, {ref}, 0, true), negated), v, v);
        }
        Py_DECREF(negated);
        if (result != kNoValue) {
          pop(view, 1);
          push(view, result);
          return next(view);
        }
      }
      return residual(view, IrOp::k_unary, {v}, which, 1);
    }
    case Op::kBinarySubscr: {
      V container = peek(2), key = peek(1);
      if (is_tensor(concrete(container))) return torch_operator(view, IrOp::k_get_item, {container, key}, 0, 2, "subscript");
      V result = item_of(container, key);
      if (done_) return HookResult::kContinue;
      if (result != kNoValue) {
        pop(view, 2);
        push(view, result);
        return next(view);
      }
      if (known_missing(container, key)) return raise(view, constant(PyExc_KeyError));
      if (done_) return HookResult::kContinue;
      const bool of_text = PyDict_CheckExact(concrete(container)) && PyUnicode_CheckExact(concrete(key)) && know_type(container) && know_type(key);
      if (done_) return HookResult::kContinue;
      if (of_text) return residual_call(view, IrOp::k_call_known, constant(vm::own_attribute(&PyDict_Type, "__getitem__")), {container, key}, nullptr, 2);  // runs none of the script's code
      return call_dunder(view, "__getitem__", {container, key}, IrOp::k_get_item, 2, vm::Continuation::kPush);
    }
    case Op::kStoreSubscr: {
      V value = peek(3), container = peek(2), key = peek(1);
      if (is_tensor(concrete(container))) return torch_operator(view, IrOp::k_set_item, {container, key, value}, 0, 3, "subscript store", false);
      return store_item(view, container, key, value);
    }
    case Op::kDeleteSubscr: {
      V container = peek(2), key = peek(1);
      PyObject* dict = concrete(container);
      if (PyDict_Check(dict)) dict_written(dict);
      return residual(view, IrOp::k_set_item, {container, key, null_}, 0, 2, false);
    }
    default: break;
  }
  give_up(Abort::k_opcode, std::string(vm::op_name(op)));
  return HookResult::kContinue;
}

// Immutable all the way down, so that equal constants stay equal.
bool Recorder::is_immutable(PyObject* o) {
  if (is_plain(o) || PyType_Check(o)) return true;  // classes compare by identity, or their metaclass is torch's
  if (PyTuple_Check(o)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
      if (!is_immutable(PyTuple_GET_ITEM(o, i))) return false;
    return true;
  }
  return is_torch_constant(o);
}

PyObject* Recorder::equality(bool equal) {
  static PyObject* const functions[] = {operator_function("ne"), operator_function("eq")};
  return functions[equal];
}

// A constant whose class leaves == to object or str, as members of enumerations do.
bool Recorder::compares_natively(V v) {
  PyTypeObject* type = Py_TYPE(concrete(v));
  if (!is_const(v) || (type->tp_richcompare != PyBaseObject_Type.tp_richcompare && type->tp_richcompare != PyUnicode_Type.tp_richcompare)) return false;
  know_type(v);
  guard_type_unchanged(type);
  return !done_;
}

// Makes it a constant (guarded) whose hash and equality run no Python code: by identity, or a builtin value.
bool Recorder::hashes_natively(V v) {
  PyObject* o = concrete(v);
  PyTypeObject* type = Py_TYPE(o);
  bool by_identity = type->tp_hash == PyBaseObject_Type.tp_hash && type->tp_richcompare == PyBaseObject_Type.tp_richcompare;
  if (!by_identity && !is_immutable(o) && !is_tensor(o)) return false;
  if (!promote(v)) return false;
  if (by_identity) {
    know_type(v);
    guard_type_unchanged(type);
  }
  return !done_;
}

// `a is b`, folded where the kinds decide.
V Recorder::identity(V left, V right) {
  bool same = concrete(left) == concrete(right);
  PyObject* truth = same ? Py_True : Py_False;
  if (left == right) return constant(Py_True);
  if (is_const(left) && is_const(right)) return constant(truth);
  auto fresh = [&](V v) {  // certainly not None, True, a class ...: made in this trace or of a known other type
    return at(v).kind == Value::kTensor || (at(v).kind >= Value::kTuple) || at(v).kind == Value::kScalar;
  };
  for (auto [a, b] : {std::pair{left, right}, std::pair{right, left}}) {
    if (is_const(b) && fresh(a) && at(a).scalar != Type::kBool) return constant(Py_False);
    // A value of guarded type is not None.
    if (is_const(b) && concrete(b) == Py_None && at(a).kind == Value::kObject && at(a).type_known && !same) return constant(Py_False);
    if (is_const(b) && at(a).kind == Value::kObject && promote(a)) return constant(truth);
    if (is_const(b) && concrete(b) == Py_None && at(a).kind == Value::kObject && !same && know_type(a)) return constant(Py_False);
  }
  Ref ref = emit(IrOp::k_is_same, Type::kBool, {as_object(left), as_object(right)});
  return scalar(Type::kBool, ref, truth);
}

// Is it known, under guards, that the dict has no such key?
bool Recorder::known_missing(V dict, V key) {
  PyObject* k = concrete(key);
  if (!PyDict_CheckExact(concrete(dict)) || !(PyUnicode_CheckExact(k) || PyBytes_CheckExact(k))) return false;  // os.environ's are bytes
  if (at(dict).kind == Value::kDict) {
    const auto& keys = at(dict).keys;
    return PyUnicode_CheckExact(k) && promote(key) && std::none_of(keys.begin(), keys.end(), [k](PyObject* other) { return PyUnicode_CheckExact(other) && PyUnicode_Compare(other, k) == 0; });
  }
  return PyDict_GetItemWithError(concrete(dict), k) == nullptr && promote(dict) && promote(key) && dict_item(concrete(dict), k) == null_;
}

// container[key] where the result is known or a cheap load; kNoValue otherwise.
V Recorder::item_of(V container, V key) {
  PyObject *c = concrete(container), *k = concrete(key);
  if ((at(container).kind == Value::kTuple || at(container).kind == Value::kList ||
       (at(container).kind == Value::kObject && at(container).items_known && is_plain_tuple(c))) &&
      PyLong_CheckExact(k) && promote(key)) {
    Py_ssize_t index = PyLong_AsSsize_t(k);
    Py_ssize_t size = static_cast<Py_ssize_t>(at(container).items.size());
    if (index < 0) index += size;
    if (index >= 0 && index < size) return at(container).items[index];
    return kNoValue;
  }
  bool known_sequence = at(container).kind == Value::kTuple || at(container).kind == Value::kList;
  auto known_slice = [&]() {
    if (at(key).kind != Value::kSlice) return is_const(key);
    for (V part : std::vector<V>(at(key).items))
      if (!promote_deeply(part)) return false;
    return true;
  };
  if (known_sequence && PySlice_Check(k) && known_slice()) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(k, &start, &stop, &step) < 0) {
      PyErr_Clear();
      return kNoValue;
    }
    Py_ssize_t length = PySlice_AdjustIndices(static_cast<Py_ssize_t>(at(container).items.size()), &start, &stop, step);
    std::vector<V> items;
    for (Py_ssize_t i = 0; i < length; i++) items.push_back(at(container).items[start + i * step]);
    PyObject* part = PyObject_GetItem(c, k);
    if (part == nullptr) {
      PyErr_Clear();
      return kNoValue;
    }
    V result = virtual_object(at(container).kind, std::move(items), part);
    Py_DECREF(part);
    return result;
  }
  if (at(container).kind == Value::kDict) {
    if (!PyUnicode_CheckExact(k) || !promote(key)) return kNoValue;
    const size_t i = find_key(at(container).keys, k);
    return i < at(container).keys.size() ? at(container).items[i] : kNoValue;
  }
  if (known_contents(container) != nullptr && PyUnicode_CheckExact(k) && _PyType_Lookup(Py_TYPE(c), interned("__getitem__")) == vm::own_attribute(&PyDict_Type, "__getitem__") && promote(key)) {
    const Contents& contents = *known_contents(container);
    if (const size_t i = find_key(contents.keys, k); i < contents.keys.size()) return contents.items[i];
  }
  const bool alias = makes_aliases(c);
  bool annotation = alias || (PyType_CheckExact(c) ? !(reinterpret_cast<PyTypeObject*>(c)->tp_flags & Py_TPFLAGS_HEAPTYPE) : typing_form(c) && !PyType_Check(c) && c != Py_None);
  if (annotation && promote(container) && (typing_form(k) || PyTuple_CheckExact(k) || PyUnicode_CheckExact(k)) && promote_deeply(key)) {
    if (alias) guard_type_unchanged(reinterpret_cast<PyTypeObject*>(c));
    return done_ ? kNoValue : taken(PyObject_GetItem(c, k));  // tuple[int], Optional[X], Sequence[X]: new but immutable
  }
  bool dict = PyDict_CheckExact(c) || Py_TYPE(c) == &PyODict_Type;
  bool hashes_plainly = PyUnicode_CheckExact(k) || PyBytes_CheckExact(k) || PyLong_CheckExact(k) || PyType_CheckExact(k) || is_tensor(k);
  if (PyDict_Check(c) && !dict) {  // defaultdict and other subclasses without an own __getitem__, for a key that is there
    PyObject* getitem = _PyType_Lookup(Py_TYPE(c), PyUnicode_InternFromString("__getitem__"));
    dict = getitem != nullptr && getitem == vm::own_attribute(&PyDict_Type, "__getitem__");
    if (dict && promote(container)) {
      know_type(container);
      guard_type_unchanged(Py_TYPE(c));
    }
  }
  if (dict && PyTuple_CheckExact(k) && is_immutable(k) && promote(container) && promote_deeply(key)) {  // of classes, names and numbers
    PyObject* value = PyDict_GetItemWithError(c, k);
    PyErr_Clear();
    return value != nullptr && !done_ && guard_dict_unchanged(c) ? constant(value) : kNoValue;
  }
  if (dict && hashes_plainly && promote(container) && promote(key)) {
    auto cached = items_.find({c, k});
    if (cached != items_.end() && cached->second != null_) return cached->second;
    PyObject* value = PyDict_GetItemWithError(c, k);
    if (value == nullptr) {
      PyErr_Clear();
      return kNoValue;
    }
    if (PyUnicode_CheckExact(k) && PyDict_CheckExact(c)) return dict_item(c, k);
    if (guard_dict_unchanged(c, k)) return constant(value);
    return kNoValue;
  }
  if (is_const(container) && computes_natively(c) && (PySlice_Check(k) ? known_slice() : is_number(k) && promote(key))) {  // torch.Size too
    return taken(PyObject_GetItem(c, k));
  }
  if (PyTuple_CheckExact(c) && is_const(container) && PyLong_CheckExact(k) && promote(key)) {
    Py_ssize_t index = PyLong_AsSsize_t(k);
    if (index < 0) index += PyTuple_GET_SIZE(c);
    if (index >= 0 && index < PyTuple_GET_SIZE(c)) return constant(PyTuple_GET_ITEM(c, index));
  }
  if (PyList_CheckExact(c) && PyLong_CheckExact(k)) {
    Py_ssize_t size = PyList_GET_SIZE(c), index = PyLong_AsSsize_t(k);
    PyErr_Clear();
    Py_ssize_t wrapped = index < 0 ? index + size : index;
    if (wrapped < 0 || wrapped >= size) return kNoValue;
    // A computed index is another one in the next iteration.
    bool small = size <= kGuardedListItems && !lessons_.changing_lists.count(c) && at(key).kind != Value::kScalar;
    if (small && promote(container) && promote(key)) {
      list_guard(container);
      return constant(PyList_GET_ITEM(c, wrapped));
    }
    if (at(container).kind == Value::kObject || is_const(container)) {
      if (!know_type(container)) return kNoValue;
      Ref list = as_object(container), position = as_int(key);
      if (position == kNoRef) return kNoValue;
      Ref length = emit(IrOp::k_list_len, Type::kInt, {list});
      if (index < 0) position = emit(IrOp::k_add_int, Type::kInt, {position, length}, 0, true);
      guard(IrOp::k_guard_true, {emit(IrOp::k_lt_int, Type::kBool, {position, length})});
      guard(IrOp::k_guard_true, {emit(IrOp::k_ge_int, Type::kBool, {position, as_int(constant(zero()))})});
      return object(emit(IrOp::k_list_item, Type::kObject, {list, position}), PyList_GET_ITEM(c, wrapped), true);
    }
  }
  if (PyDict_CheckExact(c) && PyUnicode_CheckExact(k) && at(container).kind == Value::kObject && know_type(container) && promote(key)) {
    PyObject* value = PyDict_GetItemWithError(c, k);
    if (value == nullptr) {
      PyErr_Clear();
      return kNoValue;
    }
    Ref ref = emit(IrOp::k_dict_get, Type::kObject, {as_object(container), as_object(key)});
    guard(IrOp::k_guard_bound, {ref});
    return object(ref, value, true);
  }
  return kNoValue;
}

// Guards that a constant list has the items it has now.
ir::Ref Recorder::list_guard(V v) {
  PyObject* list = concrete(v);
  if (!known('l', list)) {
    std::vector<Ref> refs{const_ref(list)};
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) refs.push_back(const_ref(PyList_GET_ITEM(list, i)));
    sites_.push_back({Site::kList, list, nullptr, 0});
    guard(IrOp::k_guard_list_items, refs, static_cast<int64_t>(sites_.size()) - 1);
  }
  return const_ref(list);
}

// dict[key] = value in a virtual dict, list[index] = value in a virtual list; false: it is none, or the key is no constant string or index in range.
bool Recorder::put_item(V container, V key, V value) {
  PyObject* k = concrete(key);
  if (at(container).kind == Value::kList && at(container).object == kNoRef && PyLong_CheckExact(k) && at(key).kind != Value::kScalar && promote(key)) {
    const auto size = static_cast<Py_ssize_t>(at(container).items.size());
    Py_ssize_t index = PyLong_AsSsize_t(k);
    PyErr_Clear();
    if (index < 0) index += size;
    if (index < 0 || index >= size || PyList_SetItem(concrete(container), index, Py_NewRef(concrete(value))) < 0) return false;
    at(container).items[static_cast<size_t>(index)] = value;
    changed(container);
    return true;
  }
  if (at(container).kind != Value::kDict || at(container).object != kNoRef || !PyUnicode_CheckExact(k) || !promote(key)) return false;
  if (PyDict_Contains(concrete(container), k) == 0) settle_iterators(concrete(container));
  if (PyDict_SetItem(concrete(container), k, concrete(value)) < 0) {
    PyErr_Clear();
    return false;
  }
  Value& dict = at(container);
  size_t i = 0;
  while (i < dict.keys.size() && PyUnicode_Compare(dict.keys[i], k) != 0) i++;
  if (i == dict.keys.size()) {
    owned_.push_back(Py_NewRef(k));
    dict.keys.push_back(k);
    dict.items.push_back(value);
  } else {
    dict.items[i] = value;
  }
  changed(container);
  return true;
}

HookResult Recorder::store_item(vm::ThreadView& view, V container, V key, V value) {
  PyObject *c = concrete(container), *k = concrete(key);
  if (put_item(container, key, value)) {
    pop(view, 3);
    return next(view);
  }
  PyObject* const method = known_contents(container) != nullptr && PyUnicode_CheckExact(k) ? _PyType_Lookup(Py_TYPE(c), interned("__setitem__")) : nullptr;
  if (method != nullptr && keeps_instance(method) && promote(key)) {
    bool ok = true;
    run_residual(IrOp::k_call_known, {constant(method), container, key, value}, -1, &ok);
    if (!ok) return raised(view);
    after_known_call(method, {container, key, value});
    pop(view, 3);
    return next(view);
  }
  devirtualise(container);
  if (PyDict_CheckExact(c) && PyUnicode_CheckExact(k)) {
    if (at(container).kind == Value::kObject && at(container).stable) promote(container);
    know_type(container);
    if (!promote(key)) return residual(view, IrOp::k_set_item, {container, key, value}, 0, 3, false);
    if (is_const(container) && !holds(c, k, concrete(value))) dict_written(c);
    bool ok = true;
    other_container_written(container, k);
    run_residual(IrOp::k_dict_set, {container, key, value}, 0, &ok);
    if (!ok) return raised(view);
    if (is_const(container)) item_stored(c, k, value);
    pop(view, 3);
    return next(view);
  }
  if (PyDict_Check(c) && is_const(container)) dict_written(c);
  return call_dunder(view, "__setitem__", {container, key, value}, IrOp::k_set_item, 3, vm::Continuation::kDiscard);
}

}  // namespace dynvm::tracer
