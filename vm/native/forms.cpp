// What native runs do for single instructions; see emitter.h.
//
// Each function emits guards first, then effects. An instruction whose form is not here ends the run.
#include "vm/native/emitter.h"
#include "vm/operands.h"
#include "vm/specialise.h"
#include "runtime/base/defects.h"

#include <array>
#include <optional>

namespace dynvm::vm::native {

using namespace asmjit;
using namespace asmjit::x86;
namespace layout = cpython::layout;

namespace {

// -1: a method must be asked.
int truth_of(PyObject* object) { return quick_truth(object); }

// What the C function of an iterator's type gives; NULL, or where tools look at this thread now: the context says what has happened.
PyObject* next_item(PyObject** locals, uint16_t* position, Context* context, PyObject* iterator, iternextfunc next) {
  cpython::runs_at(frame_of_locals(locals), position);
  PyObject* item = next(iterator);
  if (item == nullptr) {
    context->stop = Stop::kLoopEnded;
  } else if (cpython::traced(context->tstate) || cpython::allocations_are_traced()) [[unlikely]] {
    context->stop = Stop::kTraced;
  }
  return item;
}

CondCode condition(int comparison) {
  switch (comparison) {
    case Py_LT: return CondCode::kL;
    case Py_LE: return CondCode::kLE;
    case Py_EQ: return CondCode::kE;
    case Py_NE: return CondCode::kNE;
    case Py_GT: return CondCode::kG;
    default: return CondCode::kGE;
  }
}

bool fits_int32(const Value& value, int64_t* constant) {
  long number;
  if (value.where != Where::kConst || value.object == nullptr || !PyLong_CheckExact(value.object) ||
      !cpython::short_int(value.object, &number) || number != static_cast<int32_t>(number)) {
    return false;
  }
  *constant = number;
  return true;
}

}  // namespace

Emitter::Method Emitter::method_of(const Inst& inst, Form form) {
  static constexpr auto kMethods = [] {
    std::array<Method, static_cast<size_t>(Form::kCount)> methods{};
#define ANY(name, method) methods[static_cast<size_t>(Op::k##name)] = &Emitter::method;
#define FORM(name, method) methods[static_cast<size_t>(Form::k##name)] = &Emitter::method;
#include "vm/native/forms.def"
    return methods;
  }();
  if (refused(&inst)) return nullptr;
  const Method any = kMethods[inst.op];
  return any != nullptr ? any : kMethods[static_cast<size_t>(form)];
}

Emitter::Next Emitter::instruction(int index) {
  const Method method = method_of(inst(index), form(index));
  return method != nullptr ? (this->*method)(index) : Next::kLeave;
}

Emitter::Next Emitter::nop(int) { return Next::kGoOn; }

// ---- locals and the stack

Emitter::Next Emitter::load_const(int index) {
  Value value;
  value.where = Where::kConst;
  value.object = reinterpret_cast<PyObject*>(inst(index).cache[0]);
  value.known = PyFloat_CheckExact(value.object)   ? Known::kFloat
                : PyLong_CheckExact(value.object)  ? Known::kInt
                : PyTuple_CheckExact(value.object) ? Known::kTuple
                                                   : Known::kBound;
  push(value);
  return Next::kGoOn;
}

Emitter::Next Emitter::push_null(int) {
  push({.where = Where::kConst});
  return Next::kGoOn;
}

Emitter::Next Emitter::pop_top(int) {
  drop(pop());
  return Next::kGoOn;
}

Emitter::Next Emitter::load_deref(int index) {
  const Gp result = gp();
  a_.mov(rax, local(inst(index).arg));
  a_.mov(result, qword_ptr(rax, layout::kCell));
  a_.test(result, result);
  a_.jz(leave());
  take_reference(result);
  push_reg(result);
  return Next::kGoOn;
}

Emitter::Next Emitter::load_fast(int index) {
  const int number = inst(index).arg;
  Known& known = model_.locals[static_cast<size_t>(number)];
  if (known == Known::kNothing) {
    a_.cmp(local(number), 0);
    a_.je(leave());
    known = Known::kBound;
  }
  Value value;
  value.where = Where::kLocal;
  value.known = known;
  value.index = number;
  push(value);
  return Next::kGoOn;
}

// The box that rax points to, an exact int or float, becomes the unboxed value; clobbers rcx.
void Emitter::set_box(const Value& value, const Label& slow) {
  if (value.where == Where::kFloat) {
    a_.movsd(qword_ptr(rax, layout::kFloat), x86::xmm(value.reg));
    return;
  }
  // Of one digit, and none of those that CPython keeps one object for.
  constexpr int kFirst = 257;
  a_.lea(rcx, ptr(gpq(value.reg), -kFirst));
  a_.cmp(rcx, (1 << PyLong_SHIFT) - kFirst);
  a_.jae(slow);
  a_.mov(qword_ptr(rax, layout::kIntTag), layout::kTaggedInts ? 1 << 3 : 1);
  a_.mov(dword_ptr(rax, layout::kIntDigits), gpd(value.reg));
}

// An unboxed value takes the place of rax's object: a box that nobody else holds takes the value, else `slow` goes on. `before`: what is
// known of the old object.
void Emitter::reuse_box(const Value& value, Known before, const Label& slow) {
  if (before == Known::kNothing) {
    a_.test(rax, rax);
    a_.jz(slow);
  }
  if (before != value.known) {
    pointer(rcx, value.where == Where::kFloat ? &PyFloat_Type : &PyLong_Type);
    a_.cmp(qword_ptr(rax, layout::kType), rcx);
    a_.jne(slow);
  }
  a_.cmp(qword_ptr(rax, layout::kRefcount), 1);
  a_.jne(slow);
  set_box(value, slow);
}

Emitter::Next Emitter::store_fast(int index) {
  const int number = inst(index).arg;
  const Value value = pop();
  Known& known = model_.locals[static_cast<size_t>(number)];
  const Known before = known;
  const bool plain_before = before == Known::kFloat || before == Known::kInt;
  settle_local(number);
  if (!plain_before) code_may_run();
  replace(local(number), value, before);
  // On what the old object runs when it dies see code_may_run().
  known = !plain_before && layout::kLocalsMayChange ? Known::kNothing : value.known == Known::kNothing ? Known::kBound : value.known;
  return Next::kGoOn;
}

// What is stored twice must be one object: it is boxed. Copies that are only looked at stay unboxed, and are twins.
Emitter::Next Emitter::copy(int index) {
  Value& value = top(inst(index).arg);
  const bool unboxed = is_unboxed(value);
  bool looked_at = false;
  if (unboxed && next_ < code_->inst_count) {
    const Op after = op(next_);
    looked_at = after == Op::kCompareOp || after == Op::kBinarySubscr || after == Op::kCopy || after == Op::kSwap;
  }
  if (unboxed && !looked_at) {
    const Gp boxed = gp();
    owned(boxed, value);
    give_back(value);
    value.where = Where::kReg;
    value.reg = static_cast<uint8_t>(boxed.id());
  }
  if (unboxed && value.twin == 0) value.twin = ++twins_;
  const Value from = value;
  switch (from.where) {
    case Where::kLocal:
    case Where::kConst: push(from); break;
    case Where::kInt: {
      const Gp reg = gp();
      a_.mov(reg, gpq(from.reg));
      push_int(reg);
      top(1).twin = from.twin;
      break;
    }
    case Where::kFloat: {
      const Xmm reg = xmm();
      a_.movapd(reg, x86::xmm(from.reg));
      push_float(reg);
      top(1).twin = from.twin;
      break;
    }
    default: {
      const Gp reg = gp();
      object(reg, from);
      take_reference(reg);
      push_reg(reg, from.known);
    }
  }
  return Next::kGoOn;
}

Emitter::Next Emitter::swap(int index) {
  const int below = inst(index).arg;
  top(below);
  for (int at : {below, 1}) {  // what is in a slot has to move
    Value& value = top(at);
    if (value.where != Where::kSlot) continue;
    const Gp reg = gp();
    a_.mov(reg, slot(value.index));
    value.where = Where::kReg;
    value.reg = static_cast<uint8_t>(reg.id());
  }
  std::swap(top(below), top(1));
  return Next::kGoOn;
}

// ---- names

Emitter::Next Emitter::load_global(int index) {
  const Inst& site = inst(index);
  const bool is_builtin = form(index) == Form::kLoadGlobalBuiltin;
  const auto version_of = [](PyObject* dict) {
    return PyDict_CheckExact(dict) ? reinterpret_cast<PyDictObject*>(dict)->ma_keys->dk_version : 0;
  };
  const auto low = static_cast<uint32_t>(site.cache[0]), high = static_cast<uint32_t>(site.cache[0] >> 32);
  if (version_of(globals_) != low || (is_builtin && version_of(builtins_) != high)) return Next::kLeave;
  // A stamped set of keys is one object: where the entry lies in it stays.
  PyDictKeysObject* keys = reinterpret_cast<PyDictObject*>(is_builtin ? builtins_ : globals_)->ma_keys;
  const auto offset = static_cast<int>(reinterpret_cast<char*>(&DK_UNICODE_ENTRIES(keys)[site.cache[1]].me_value) - reinterpret_cast<char*>(keys));
  const auto check = [&](int field, uint32_t version) {
    a_.mov(rax, qword_ptr(rdi, field - layout::kFrameLocals));
    pointer(rcx, &PyDict_Type);
    a_.cmp(qword_ptr(rax, layout::kType), rcx);
    a_.jne(fail());
    a_.mov(rax, qword_ptr(rax, layout::kDictKeys));
    a_.cmp(dword_ptr(rax, layout::kKeysVersion), version);
    a_.jne(fail());
  };
  check(layout::kFrameGlobals, low);
  if (is_builtin) check(layout::kFrameBuiltins, high);
  const Gp result = gp();
  a_.mov(result, qword_ptr(rax, offset));
  a_.test(result, result);
  a_.jz(fail());
  take_reference(result);
  if ((site.arg & 1) != 0) {
    push_lone(result);
  } else {
    push_reg(result, Known::kBound);
  }
  return Next::kGoOn;
}

// ---- arithmetic

Emitter::Next Emitter::binary_float(int index) {
  Value right = pop(), left = pop();
  if (!may_be(left, Known::kFloat) || !may_be(right, Known::kFloat)) return Next::kLeave;
  const Xmm a = float_of(left), b = float_of(right), result = xmm();
  if (form(index) == Form::kDivFloat) {
    a_.xorpd(xmm15, xmm15);
    a_.ucomisd(b, xmm15);
    a_.je(leave());  // and not a number
  }
  a_.movapd(result, a);
  switch (form(index)) {
    case Form::kAddFloat: a_.addsd(result, b); break;
    case Form::kSubFloat: a_.subsd(result, b); break;
    case Form::kMulFloat: a_.mulsd(result, b); break;
    default: a_.divsd(result, b);
  }
  used(left, a);
  used(right, b);
  push_float(result);
  return Next::kGoOn;
}

// The value of an exact float or one-digit int as a float. `other`: what must be a float where this is an int, or nullptr.
Xmm Emitter::number_of(Value& value, const Value* other) {
  if (other != nullptr && other->known == Known::kFloat) other = nullptr;
  long constant;
  const bool is_const_int = value.where == Where::kConst && PyLong_CheckExact(value.object) && cpython::short_int(value.object, &constant);
  if (is_const_int || value.where == Where::kInt) {
    const Xmm result = xmm();
    if (is_const_int) a_.mov(rax, constant);
    a_.cvtsi2sd(result, is_const_int ? Gp(rax) : gpq(value.reg));
    if (other != nullptr) {
      object(rax, *other);
      check_type(rax, *other, Known::kFloat, &PyFloat_Type, fail());
    }
    return result;
  }
  if (value.where == Where::kConst || value.known == Known::kFloat) return float_of(value);
  const Xmm result = xmm();
  Label is_int = a_.newLabel(), done = a_.newLabel();
  object(rax, value);
  check_exact(rax, &PyFloat_Type, is_int);
  a_.movsd(result, qword_ptr(rax, layout::kFloat));
  a_.bind(done);
  cold_.push_back([this, is_int, done, result, second = other != nullptr ? std::optional(*other) : std::nullopt,
                   miss = fail()] {
    a_.bind(is_int);
    check_exact(rax, &PyLong_Type, miss);
    one_digit(rax, miss);
    a_.cvtsi2sd(result, rax);
    if (second) {
      object(rax, *second);
      check_exact(rax, &PyFloat_Type, miss);
    }
    a_.jmp(done);
  });
  return result;
}

// Floats and ints mixed; of two ints only quotients are floats.
Emitter::Next Emitter::binary_number(int index) {
  const int operation = inst(index).arg % NB_INPLACE_ADD;
  Value right = pop(), left = pop();
  const auto fits = [](const Value& value) { return may_be(value, Known::kFloat) || may_be(value, Known::kInt); };
  if (!fits(left) || !fits(right)) return Next::kLeave;
  if (left.known == Known::kInt && right.known == Known::kInt && operation != NB_TRUE_DIVIDE) return Next::kLeave;
  const bool divides = operation == NB_TRUE_DIVIDE;
  // An unboxed int may have more bits than a double holds; a box is looked at.
  if (left.where == Where::kInt || right.where == Where::kInt) {
    if (divides) return Next::kLeave;
    const Gp number = gpq(left.where == Where::kInt ? left.reg : right.reg);
    a_.movsxd(rax, number.r32());
    a_.cmp(rax, number);
    a_.jne(fail());
  }
  const Xmm b = number_of(right, divides ? nullptr : &left), a = number_of(left, nullptr), result = xmm();
  if (divides) {
    a_.xorpd(xmm15, xmm15);
    a_.ucomisd(b, xmm15);
    a_.je(leave());
  }
  a_.movapd(result, a);
  switch (operation) {
    case NB_ADD: a_.addsd(result, b); break;
    case NB_SUBTRACT: a_.subsd(result, b); break;
    case NB_MULTIPLY: a_.mulsd(result, b); break;
    default: a_.divsd(result, b);
  }
  used(left, a);
  used(right, b);
  push_float(result);
  return Next::kGoOn;
}

// Only of what the run has unboxed itself.
Emitter::Next Emitter::negative(int index) {
  const Value value = pop();
  if (value.where == Where::kFloat) {
    const Xmm result = xmm();
    a_.mov(rax, uint64_t{1} << 63);
    a_.movq(result, rax);
    a_.xorpd(result, x86::xmm(value.reg));
    give_back(value);
    push_float(result);
    return Next::kGoOn;
  }
  if (value.where != Where::kInt) return Next::kLeave;
  const Gp result = gp();
  a_.mov(result, gpq(value.reg));
  a_.neg(result);
  a_.jo(fail());
  give_back(value);
  push_int(result);
  return Next::kGoOn;
}

Emitter::Next Emitter::binary_int(int index) {
  const Form form = this->form(index);
  Value right = pop(), left = pop();
  if (!may_be(left, Known::kInt) || !may_be(right, Known::kInt)) return Next::kLeave;
  const Gp a = int_of(left);
  int64_t constant = 0;
  const bool has_constant = (form == Form::kAddInt || form == Form::kSubInt || form == Form::kAndInt) && fits_int32(right, &constant);
  const Gp b = has_constant ? Gp(rcx) : int_of(right);
  const Gp result = gp();
  switch (form) {
    case Form::kAddInt:
      a_.mov(result, a);
      has_constant ? a_.add(result, constant) : a_.add(result, b);
      if (!base::seeded(base::Defect::kNativeOverflow)) a_.jo(fail());
      break;
    case Form::kSubInt:
      a_.mov(result, a);
      has_constant ? a_.sub(result, constant) : a_.sub(result, b);
      a_.jo(fail());
      break;
    case Form::kMulInt:
      a_.mov(result, a);
      a_.imul(result, b);
      a_.jo(fail());
      break;
    case Form::kAndInt:
      a_.mov(result, a);
      has_constant ? a_.and_(result, constant) : a_.and_(result, b);
      break;
    case Form::kOrInt:
      a_.mov(result, a);
      a_.or_(result, b);
      break;
    case Form::kXorInt:
      a_.mov(result, a);
      a_.xor_(result, b);
      break;
    case Form::kLshiftInt:
      a_.mov(rcx, b);
      a_.cmp(rcx, 31);
      a_.ja(fail());
      a_.mov(rax, a);
      a_.shr(rax, 31);
      a_.jnz(fail());
      a_.mov(result, a);
      a_.shl(result, cl);
      break;
    case Form::kRshiftInt:
      a_.mov(rcx, b);
      a_.cmp(rcx, 63);
      a_.ja(fail());
      a_.mov(result, a);
      a_.sar(result, cl);
      break;
    default: {  // quotient or remainder of what has one digit
      a_.mov(rax, a);
      a_.or_(rax, b);
      a_.shr(rax, PyLong_SHIFT);
      a_.jnz(fail());
      a_.test(b, b);
      a_.jz(leave());
      a_.mov(eax, a.r32());
      a_.xor_(edx, edx);
      a_.div(b.r32());
      a_.mov(result.r32(), form == Form::kModInt ? edx : eax);
    }
  }
  used(left, a);
  if (!has_constant) used(right, b);
  push_int(result);
  return Next::kGoOn;
}

// ---- tests and jumps

// Behind a comparison: the conditional jump that it decides, where no other path comes to it. -1: none.
int Emitter::jump_behind(int index) const {
  const auto alone = [&](int at) { return at < code_->inst_count && joins_[static_cast<size_t>(at)] == 0 && !refused(&inst(at)); };
  int at = index + 1;
  if (alone(at) && op(at) == Op::kToBool) ++at;
  if (!alone(at) || (op(at) != Op::kPopJumpIfFalse && op(at) != Op::kPopJumpIfTrue)) return -1;
  return at;
}

// Before an instruction that ends with decide(); false: not here.
bool Emitter::check_decided(int index) {
  const int jump = jump_behind(index);
  return jump < 0 || check_backward(jump);
}

// The flags say whether it is true: the jump is decided, or True or False pushed.
void Emitter::decide(CondCode code) {
  const int jump = jump_behind(index_);
  if (jump >= 0) {
    branch(op(jump) == Op::kPopJumpIfTrue ? code : negateCond(code), jump);
    next_ = jump + 1;
    return;
  }
  const Gp result = gp();
  pointer(result, Py_False);
  pointer(rcx, Py_True);
  a_.cmov(code, result, rcx);
  if (!layout::kImmortal) take_reference(result);
  push_reg(result, Known::kBound);
}

Emitter::Next Emitter::compare_ints(int index) {
  if (!check_decided(index)) return Next::kLeave;
  Value right = pop(), left = pop();
  if (!may_be(left, Known::kInt) || !may_be(right, Known::kInt)) return Next::kLeave;
  const Gp a = int_of(left);
  int64_t constant;
  const bool has_constant = fits_int32(right, &constant);
  const Gp b = has_constant ? Gp(rcx) : int_of(right);
  release(left);
  if (!has_constant) release(right);
  has_constant ? a_.cmp(a, constant) : a_.cmp(a, b);
  give_back(a);
  if (!has_constant) give_back(b);
  give_back(left);
  give_back(right);
  decide(condition(inst(index).arg));
  return Next::kGoOn;
}

Emitter::Next Emitter::compare_floats(int index) {
  const int comparison = inst(index).arg;
  if (!check_decided(index)) return Next::kLeave;
  Value right = pop(), left = pop();
  if (!may_be(left, Known::kFloat) || !may_be(right, Known::kFloat)) return Next::kLeave;
  const Xmm a = float_of(left), b = float_of(right);
  release(left);
  release(right);
  give_back(a);
  give_back(b);
  give_back(left);
  give_back(right);
  switch (comparison) {  // false where one is not a number, but for !=
    case Py_LT:
    case Py_LE:
      a_.ucomisd(b, a);
      decide(comparison == Py_LT ? CondCode::kA : CondCode::kAE);
      break;
    case Py_GT:
    case Py_GE:
      a_.ucomisd(a, b);
      decide(comparison == Py_GT ? CondCode::kA : CondCode::kAE);
      break;
    default:
      a_.ucomisd(a, b);
      a_.setnp(al);
      a_.sete(cl);
      a_.test(al, cl);
      decide(comparison == Py_EQ ? CondCode::kNZ : CondCode::kZ);
  }
  return Next::kGoOn;
}

Emitter::Next Emitter::compare_strings(int index) {
  const int comparison = inst(index).arg;
  if (!check_decided(index)) return Next::kLeave;
  Value right = pop(), left = pop();
  for (const Value& value : {left, right}) {
    if (!is_object(value)) return Next::kLeave;
    if (value.where == Where::kConst && PyUnicode_CheckExact(value.object)) continue;
    object(rax, value);
    check_exact(rax, &PyUnicode_Type, fail());
  }
  call_with(reinterpret_cast<const void*>(&equal_strings), left, right);
  const Gp equal = gp();
  a_.movzx(equal.r32(), al);
  drop(left);
  drop(right);
  a_.test(equal.r32(), equal.r32());
  give_back(equal);
  decide(comparison == Py_EQ ? CondCode::kNZ : CondCode::kZ);
  return Next::kGoOn;
}

Emitter::Next Emitter::is_op(int index) {
  if (!check_decided(index)) return Next::kLeave;
  const Value right = pop(), left = pop();
  if (is_unboxed(left) || is_unboxed(right)) return Next::kLeave;
  const Gp a = gp(), b = gp();
  object(a, left);
  object(b, right);
  drop(left);
  drop(right);
  a_.cmp(a, b);
  give_back(a);
  give_back(b);
  decide(inst(index).arg != 0 ? CondCode::kNE : CondCode::kE);
  return Next::kGoOn;
}

Emitter::Next Emitter::truth_jump(int index) {
  const bool wanted = op(index) == Op::kPopJumpIfTrue;
  if (!check_backward(index)) return Next::kLeave;
  const Value value = pop();
  if (value.where == Where::kFloat || (value.where == Where::kConst && value.object == nullptr)) return Next::kLeave;
  if (value.where == Where::kInt) {
    a_.test(gpq(value.reg), gpq(value.reg));
    give_back(value);
    branch(wanted ? CondCode::kNZ : CondCode::kZ, index);
    return Next::kGoOn;
  }
  const Gp truth = gp();
  Label known = a_.newLabel(), ask = a_.newLabel();
  object(rax, value);
  a_.mov(truth.r32(), 1);
  pointer(rcx, Py_True);
  a_.cmp(rax, rcx);
  a_.je(known);
  a_.mov(truth.r32(), 0);
  pointer(rcx, Py_False);
  a_.cmp(rax, rcx);
  a_.jne(ask);
  a_.bind(known);
  const Label miss = leave();
  cold_.push_back([this, ask, known, miss, truth, gps = model_.gps, xmms = model_.xmms] {
    a_.bind(ask);
    call(reinterpret_cast<const void*>(&truth_of), gps & ~(1u << truth.id()), xmms, [&](int) { a_.mov(rdi, rax); });
    a_.test(eax, eax);
    a_.js(miss);
    a_.mov(truth.r32(), eax);
    a_.jmp(known);
  });
  drop(value);
  a_.test(truth.r32(), truth.r32());
  give_back(truth);
  branch(wanted ? CondCode::kNZ : CondCode::kZ, index);
  return Next::kGoOn;
}

// In front of a jump that asks for the truth by itself there is nothing to do.
Emitter::Next Emitter::to_bool(int index) {
  const int jump = index + 1;
  if (jump >= code_->inst_count || joins_[static_cast<size_t>(jump)] != 0 || refused(&inst(jump))) return Next::kLeave;
  if (op(jump) != Op::kPopJumpIfFalse && op(jump) != Op::kPopJumpIfTrue) return Next::kLeave;
  next_ = jump + 1;
  return truth_jump(jump);
}

Emitter::Next Emitter::none_jump(int index) {
  const bool wanted = op(index) == Op::kPopJumpIfNone;
  if (!check_backward(index)) return Next::kLeave;
  const Value value = pop();
  if (is_unboxed(value)) return Next::kLeave;
  const Gp subject = gp();
  object(subject, value);
  drop(value);
  pointer(rcx, Py_None);
  a_.cmp(subject, rcx);
  give_back(subject);
  branch(wanted ? CondCode::kE : CondCode::kNE, index);
  return Next::kGoOn;
}

Emitter::Next Emitter::jump_forward(int index) {
  next_ = target(index);
  return Next::kGoOn;
}

// ---- loops

Emitter::Next Emitter::jump_backward(int index) {
  if (!check_backward(index)) return Next::kLeave;
  count_down(counter_of(index));
  if (const Join* header = find_join(target(index))) pays_ |= header->done;
  next_ = target(index);
  return Next::kGoOn;
}

Emitter::Next Emitter::for_range(int) {
  const Value iterator = top(1);
  if (is_unboxed(iterator)) return Next::kLeave;
  object(rax, iterator);
  check_exact(rax, g_range_iterator, fail());
  const Gp item = gp();
  [&](auto* layout_of_iterator) {
    using Range = std::remove_pointer_t<decltype(layout_of_iterator)>;
    if constexpr (requires(Range r) { r.index; }) {
      a_.mov(item, qword_ptr(rax, offsetof(Range, index)));
      a_.cmp(item, qword_ptr(rax, offsetof(Range, len)));
      a_.jge(leave());
      a_.imul(item, qword_ptr(rax, offsetof(Range, step)));
      a_.add(item, qword_ptr(rax, offsetof(Range, start)));
      a_.inc(qword_ptr(rax, offsetof(Range, index)));
    } else {
      a_.cmp(qword_ptr(rax, offsetof(Range, len)), 0);
      a_.jle(leave());
      a_.mov(item, qword_ptr(rax, offsetof(Range, start)));
      a_.mov(rcx, qword_ptr(rax, offsetof(Range, step)));
      a_.add(qword_ptr(rax, offsetof(Range, start)), rcx);
      a_.dec(qword_ptr(rax, offsetof(Range, len)));
    }
  }(static_cast<cpython::RangeIterator*>(nullptr));
  push_int(item);
  return Next::kGoOn;
}

Emitter::Next Emitter::for_sequence(int index) {
  const Value iterator = top(1);
  if (is_unboxed(iterator)) return Next::kLeave;
  const bool is_list = form(index) == Form::kForIterList;
  object(rax, iterator);
  check_exact(rax, is_list ? g_list_iterator : g_tuple_iterator, fail());
  a_.mov(rdx, qword_ptr(rax, offsetof(ListIterator, sequence)));
  a_.test(rdx, rdx);
  a_.jz(leave());
  a_.mov(rcx, qword_ptr(rax, offsetof(ListIterator, index)));
  a_.cmp(rcx, qword_ptr(rdx, layout::kSize));
  a_.jge(leave());
  const Gp item = gp();
  if (is_list) {
    a_.mov(rdx, qword_ptr(rdx, layout::kListItems));
    a_.mov(item, qword_ptr(rdx, rcx, 3));
  } else {
    a_.mov(item, qword_ptr(rdx, rcx, 3, layout::kTupleItems));
  }
  a_.inc(qword_ptr(rax, offsetof(ListIterator, index)));
  take_reference(item);
  push_reg(item);
  return Next::kGoOn;
}

// The C function of an iterator's type may run anything.
Emitter::Next Emitter::for_slot(int index) {
  const Inst settled = inst(forms_[static_cast<size_t>(index)].site);
  if (!check_version(top(1), static_cast<uint32_t>(settled.cache[0] >> 32))) return Next::kLeave;
  code_may_run();
  object(rax, top(1));
  call(reinterpret_cast<const void*>(&next_item), model_.gps, model_.xmms, [&](int context) {
    a_.mov(rcx, rax);
    pointer(rsi, position(index));
    a_.mov(rdx, qword_ptr(rsp, context));
    a_.mov(r8, settled.cache[1]);
  });
  const Label stopped = a_.newLabel();
  a_.mov(rcx, qword_ptr(rsp));
  a_.cmp(byte_ptr(rcx, offsetof(Context, stop)), 0);
  a_.jne(stopped);
  const Model without = model_;
  const Gp item = gp();
  a_.mov(item, rax);
  push_reg(item);
  cold_.push_back([this, stopped, without, with = model_, index, item] {
    const Label none = a_.newLabel();
    a_.bind(stopped);
    a_.test(rax, rax);
    a_.jz(none);
    a_.mov(item, rax);
    end(with, index, false, true);
    a_.bind(none);
    end(without, index, false, true);
  });
  return Next::kGoOn;
}

}  // namespace dynvm::vm::native
