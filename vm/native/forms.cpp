// What native runs do for single instructions; see emitter.h.
//
// Each function emits guards first, then effects. An instruction whose form is not here ends the run.
#include "vm/attr_cache.h"
#include "vm/native/emitter.h"
#include "vm/operands.h"
#include "vm/specialise.h"

namespace dynvm::vm::native {

using namespace asmjit;
using namespace asmjit::x86;
namespace layout = cpython::layout;

namespace {

// ---- forms that look further than a few loads: the object and the instruction; new reference, nullptr: a miss

PyObject* value_of_types(PyObject* owner, const Inst* inst) {
  auto* name = reinterpret_cast<PyObject*>(inst->cache[2]);
  const ValuePlace* place = find_value_place(owner, name);
  PyDictValues* values = place != nullptr ? cpython::inline_values(owner) : nullptr;
  return values != nullptr ? Py_XNewRef(values->values[place->index]) : nullptr;
}
PyObject* value_by_hint(PyObject* owner, const Inst* inst) {
  if (Py_TYPE(owner)->tp_version_tag != static_cast<uint32_t>(inst->cache[0])) return nullptr;
  return Py_XNewRef(hinted_value(owner, reinterpret_cast<PyObject*>(inst->cache[2]), static_cast<Py_ssize_t>(inst->cache[1]),
                                 static_cast<uint32_t>(inst->cache[0] >> 32)));
}
PyObject* value_of_class(PyObject* owner, const Inst* inst) {
  PyTypeObject* type = Py_TYPE(owner);
  if (type->tp_version_tag != static_cast<uint32_t>(inst->cache[0])) return nullptr;
  if (!hides_nothing(owner, type, reinterpret_cast<PyObject*>(inst->cache[2]), static_cast<uint32_t>(inst->cache[0] >> 32))) return nullptr;
  return Py_NewRef(reinterpret_cast<PyObject*>(inst->cache[1]));
}
PyObject* value_of_module(PyObject* owner, const Inst* inst) {
  if (!PyModule_CheckExact(owner)) return nullptr;
  auto* dict = reinterpret_cast<PyDictObject*>(reinterpret_cast<PyModuleObject*>(owner)->md_dict);
  if (dict == nullptr || dict->ma_keys->dk_version != static_cast<uint32_t>(inst->cache[0])) return nullptr;
  return Py_XNewRef(DK_UNICODE_ENTRIES(dict->ma_keys)[inst->cache[1]].me_value);
}
PyObject* method_of_types(PyObject* owner, const Inst* inst) {
  auto* name = reinterpret_cast<PyObject*>(inst->cache[2]);
  const MethodPlace* place = find_method_place(owner, name);
  if (place == nullptr || !hides_nothing(owner, Py_TYPE(owner), name, place->keys_version)) return nullptr;
  return Py_NewRef(place->method);
}
// -1: a method must be asked.
int truth_of(PyObject* object) { return quick_truth(object); }

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

// May the instruction be part of a run; what the run's own model says against it shows in instruction().
bool Emitter::can(const Inst& inst, Form form) {
  if (refused(&inst)) return false;
  switch (static_cast<Op>(inst.op)) {
    case Op::kNop: case Op::kLoadFast: case Op::kLoadClosure: case Op::kLoadConst: case Op::kPushNull: case Op::kStoreFast: case Op::kPopTop:
    case Op::kCopy: case Op::kSwap: case Op::kLoadDeref: case Op::kIsOp: case Op::kToBool: case Op::kPopJumpIfFalse: case Op::kPopJumpIfTrue:
    case Op::kPopJumpIfNone: case Op::kPopJumpIfNotNone: case Op::kJumpForward: case Op::kJumpBackward:
      return true;
    default: break;
  }
  switch (form) {
    case Form::kLoadGlobalModule: case Form::kLoadGlobalBuiltin: case Form::kAddFloat: case Form::kSubFloat: case Form::kMulFloat:
    case Form::kDivFloat: case Form::kAddInt: case Form::kSubInt: case Form::kMulInt: case Form::kAndInt: case Form::kOrInt: case Form::kXorInt:
    case Form::kLshiftInt: case Form::kRshiftInt: case Form::kModInt: case Form::kFloorDivInt: case Form::kCompareInt: case Form::kCompareFloat:
    case Form::kCompareJumpInt: case Form::kCompareJumpFloat: case Form::kForIterRange: case Form::kForIterList: case Form::kForIterTuple:
    case Form::kSubscrListInt: case Form::kSubscrTupleInt: case Form::kStoreSubscrListInt: case Form::kUnpackTwoTuple: case Form::kUnpackTuple:
    case Form::kUnpackList: case Form::kLoadAttrValue: case Form::kLoadAttrSlot: case Form::kLoadAttrValues: case Form::kLoadAttrHint:
    case Form::kLoadAttrClassValue: case Form::kLoadAttrModule: case Form::kLoadMethodValues: case Form::kLoadMethodNoDict:
    case Form::kLoadMethodTypes: case Form::kStoreAttrValue: case Form::kStoreAttrSlot:
      return true;
    default: return false;
  }
}

Emitter::Next Emitter::instruction(int index) {
  if (native::refused(&inst(index))) return Next::kLeave;
  Value value;
  switch (op(index)) {
    case Op::kNop: return Next::kGoOn;
    case Op::kLoadFast:
    case Op::kLoadClosure: return load_fast(index);
    case Op::kLoadConst:
      value.where = Where::kConst;
      value.object = reinterpret_cast<PyObject*>(inst(index).cache[0]);
      value.known = PyFloat_CheckExact(value.object)   ? Known::kFloat
                    : PyLong_CheckExact(value.object)  ? Known::kInt
                    : PyTuple_CheckExact(value.object) ? Known::kTuple
                                                       : Known::kBound;
      push(value);
      return Next::kGoOn;
    case Op::kPushNull:
      value.where = Where::kConst;
      push(value);
      return Next::kGoOn;
    case Op::kStoreFast: return store_fast(index);
    case Op::kPopTop:
      value = pop();
      drop(value);
      return Next::kGoOn;
    case Op::kCopy: return copy(index);
    case Op::kSwap: return swap(index);
    case Op::kLoadDeref: {
      const Gp result = gp();
      a_.mov(rax, local(inst(index).arg));
      a_.mov(result, qword_ptr(rax, layout::kCell));
      a_.test(result, result);
      a_.jz(leave());
      take_reference(result);
      push_reg(result);
      return Next::kGoOn;
    }
    case Op::kLoadGlobal: return load_global(index);
    case Op::kBinaryOp: return binary(index);
    case Op::kCompareOp: return compare(index);
    case Op::kIsOp: return is_op(index);
    case Op::kPopJumpIfFalse: return truth_jump(index, false);
    case Op::kPopJumpIfTrue: return truth_jump(index, true);
    case Op::kPopJumpIfNone: return none_jump(index, true);
    case Op::kPopJumpIfNotNone: return none_jump(index, false);
    case Op::kJumpForward:
      next_ = target(index);
      return Next::kGoOn;
    case Op::kJumpBackward:
      if (!check_backward(index)) return Next::kLeave;
      count_backward(index);
      pays_ |= is_done(target(index));
      next_ = target(index);
      return Next::kGoOn;
    case Op::kToBool: return to_bool(index);
    case Op::kForIter: return for_iter(index);
    case Op::kBinarySubscr: return subscript(index);
    case Op::kStoreSubscr: return store_subscript(index);
    case Op::kUnpackSequence: return unpack(index);
    case Op::kLoadAttr: return load_attr(index);
    case Op::kLoadMethod: return load_method(index);
    case Op::kStoreAttr: return store_attr(index);
    default: return Next::kLeave;
  }
}

// ---- locals and the stack

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
  Label done = a_.newLabel();
  if (value.where == Where::kInt || value.where == Where::kFloat) {
    const Label no_memory = fail();
    Label slow = a_.newLabel();
    a_.mov(rax, local(number));
    reuse_box(value, before, slow);
    a_.bind(done);
    const uint32_t gps = model_.gps, xmms = model_.xmms;
    cold_.push_back([this, slow, done, no_memory, value, number, gps, xmms, position = inst(index).position] {
      a_.bind(slow);
      box(value, gps, xmms, position);
      a_.test(rax, rax);
      a_.jz(no_memory);
      a_.mov(rdx, local(number));
      a_.mov(local(number), rax);
      a_.test(rdx, rdx);
      a_.jz(done);
      drop_here(rdx, gps, xmms, position);
      a_.jmp(done);
    });
    give_back(value);
    known = !plain_before && layout::kLocalsMayChange ? Known::kNothing : value.known;
    return Next::kGoOn;
  }
  const Gp fresh = value.where == Where::kReg ? gpq(value.reg) : Gp(rdx);
  if (value.where != Where::kReg) owned(rdx, value);
  a_.mov(rax, local(number));
  a_.mov(local(number), fresh);
  give_back(value);
  known = value.known == Known::kNothing ? Known::kBound : value.known;
  if (before == Known::kNothing) {
    a_.test(rax, rax);
    a_.jz(done);
  }
  drop_reg(rax, before);
  a_.bind(done);
  return Next::kGoOn;
}

Emitter::Next Emitter::copy(int index) {
  Value value = top(inst(index).arg);
  switch (value.where) {
    case Where::kLocal:
    case Where::kConst: push(value); break;
    case Where::kInt: {
      const Gp reg = gp();
      a_.mov(reg, gpq(value.reg));
      push_int(reg);
      break;
    }
    case Where::kFloat: {
      const Xmm reg = xmm();
      a_.movapd(reg, x86::xmm(value.reg));
      push_float(reg);
      break;
    }
    default: {
      const Gp reg = gp();
      object(reg, value);
      take_reference(reg);
      push_reg(reg, value.known);
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
  const Form form = forms_[static_cast<size_t>(index)].form;
  if (form != Form::kLoadGlobalModule && form != Form::kLoadGlobalBuiltin) return Next::kLeave;
  const bool is_builtin = form == Form::kLoadGlobalBuiltin;
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
  Value null;
  null.where = Where::kConst;
  if ((site.arg & 1) != 0 && cpython::kLoneCallable == 1) push(null);
  push_reg(result, Known::kBound);
  if ((site.arg & 1) != 0 && cpython::kLoneCallable == 0) push(null);
  return Next::kGoOn;
}

// ---- arithmetic

Emitter::Next Emitter::binary(int index) {
  const Form form = forms_[static_cast<size_t>(index)].form;
  const Value right = pop(), left = pop();
  switch (form) {
    case Form::kAddFloat: case Form::kSubFloat: case Form::kMulFloat: case Form::kDivFloat: {
      if (!may_be(left, Known::kFloat) || !may_be(right, Known::kFloat)) return Next::kLeave;
      const Xmm a = float_of(left), b = float_of(right), result = xmm();
      if (form == Form::kDivFloat) {
        a_.xorpd(xmm15, xmm15);
        a_.ucomisd(b, xmm15);
        a_.je(leave());  // and not a number
      }
      a_.movapd(result, a);
      if (form == Form::kAddFloat) a_.addsd(result, b);
      if (form == Form::kSubFloat) a_.subsd(result, b);
      if (form == Form::kMulFloat) a_.mulsd(result, b);
      if (form == Form::kDivFloat) a_.divsd(result, b);
      used(left, a);
      used(right, b);
      push_float(result);
      return Next::kGoOn;
    }
    case Form::kAddInt: case Form::kSubInt: case Form::kMulInt: case Form::kAndInt: case Form::kOrInt: case Form::kXorInt:
    case Form::kLshiftInt: case Form::kRshiftInt: case Form::kModInt: case Form::kFloorDivInt:
      if (!may_be(left, Known::kInt) || !may_be(right, Known::kInt)) return Next::kLeave;
      return binary_int(form, left, right);
    default: return Next::kLeave;
  }
}

Emitter::Next Emitter::binary_int(Form form, const Value& left, const Value& right) {
  const Gp a = int_of(left);
  int64_t constant = 0;
  const bool has_constant = (form == Form::kAddInt || form == Form::kSubInt || form == Form::kAndInt) && fits_int32(right, &constant);
  const Gp b = has_constant ? Gp(rcx) : int_of(right);
  const Gp result = gp();
  switch (form) {
    case Form::kAddInt:
      a_.mov(result, a);
      has_constant ? a_.add(result, constant) : a_.add(result, b);
      a_.jo(fail());
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
    default: {  // quotient or remainder of what fits half a register
      a_.mov(rax, a);
      a_.or_(rax, b);
      a_.shr(rax, 31);
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

// The flags say whether it is true: the jump is decided, or True or False pushed.
void Emitter::decide(CondCode code, int jump) {
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

Emitter::Next Emitter::compare(int index) {
  const Form form = forms_[static_cast<size_t>(index)].form;
  const int comparison = inst(index).arg, jump = jump_behind(index);
  const bool is_int = form == Form::kCompareInt || form == Form::kCompareJumpInt;
  if (!is_int && form != Form::kCompareFloat && form != Form::kCompareJumpFloat) return Next::kLeave;
  if (jump >= 0 && !check_backward(jump)) return Next::kLeave;
  const Value right = pop(), left = pop();
  const Known wanted = is_int ? Known::kInt : Known::kFloat;
  if (!may_be(left, wanted) || !may_be(right, wanted)) return Next::kLeave;
  if (is_int) {
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
    decide(condition(comparison), jump);
    return Next::kGoOn;
  }
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
      decide(comparison == Py_LT ? CondCode::kA : CondCode::kAE, jump);
      break;
    case Py_GT:
    case Py_GE:
      a_.ucomisd(a, b);
      decide(comparison == Py_GT ? CondCode::kA : CondCode::kAE, jump);
      break;
    default:
      a_.ucomisd(a, b);
      a_.setnp(al);
      a_.sete(cl);
      a_.test(al, cl);
      decide(comparison == Py_EQ ? CondCode::kNZ : CondCode::kZ, jump);
  }
  return Next::kGoOn;
}

Emitter::Next Emitter::is_op(int index) {
  const int jump = jump_behind(index);
  if (jump >= 0 && !check_backward(jump)) return Next::kLeave;
  const Value right = pop(), left = pop();
  if (left.where == Where::kInt || left.where == Where::kFloat || right.where == Where::kInt || right.where == Where::kFloat) {
    return Next::kLeave;
  }
  const Gp a = gp(), b = gp();
  object(a, left);
  object(b, right);
  drop(left);
  drop(right);
  a_.cmp(a, b);
  give_back(a);
  give_back(b);
  decide(inst(index).arg != 0 ? CondCode::kNE : CondCode::kE, jump);
  return Next::kGoOn;
}

Emitter::Next Emitter::truth_jump(int index, bool wanted) {
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
  return truth_jump(jump, op(jump) == Op::kPopJumpIfTrue);
}

Emitter::Next Emitter::none_jump(int index, bool wanted) {
  if (!check_backward(index)) return Next::kLeave;
  const Value value = pop();
  if (value.where == Where::kInt || value.where == Where::kFloat) return Next::kLeave;
  const Gp subject = gp();
  object(subject, value);
  drop(value);
  pointer(rcx, Py_None);
  a_.cmp(subject, rcx);
  give_back(subject);
  branch(wanted ? CondCode::kE : CondCode::kNE, index);
  return Next::kGoOn;
}

// ---- loops

Emitter::Next Emitter::for_iter(int index) {
  const Form form = forms_[static_cast<size_t>(index)].form;
  const Value iterator = top(1);
  if (iterator.where == Where::kInt || iterator.where == Where::kFloat) return Next::kLeave;
  if (form == Form::kForIterRange) {
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
  if (form != Form::kForIterList && form != Form::kForIterTuple) return Next::kLeave;
  const bool is_list = form == Form::kForIterList;
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

// ---- sequences

Emitter::Next Emitter::subscript(int index) {
  const Form form = forms_[static_cast<size_t>(index)].form;
  if (form != Form::kSubscrListInt && form != Form::kSubscrTupleInt) return Next::kLeave;
  const Value key = pop(), container = pop();
  if (!may_be(key, Known::kInt) || !may_be(container, Known::kList)) return Next::kLeave;
  const Gp number = int_of(key);
  object(rax, container);
  Label is_tuple = a_.newLabel(), done = a_.newLabel(), positive = a_.newLabel();
  const bool tuple_only = form == Form::kSubscrTupleInt || container.known == Known::kTuple;
  check_type(rax, container, tuple_only ? Known::kTuple : Known::kList, tuple_only ? &PyTuple_Type : &PyList_Type,
             tuple_only ? fail() : is_tuple);
  const Gp result = gp();
  const auto bounds = [&](const Label& inside) {
    a_.mov(rcx, number);
    a_.test(rcx, rcx);
    a_.jns(inside);
    a_.add(rcx, qword_ptr(rax, layout::kSize));
    a_.bind(inside);
    a_.cmp(rcx, qword_ptr(rax, layout::kSize));
    a_.jae(leave());
  };
  bounds(positive);
  if (tuple_only) {
    a_.mov(result, qword_ptr(rax, rcx, 3, layout::kTupleItems));
  } else {
    a_.mov(rdx, qword_ptr(rax, layout::kListItems));
    a_.mov(result, qword_ptr(rdx, rcx, 3));
    const Label miss = fail(), out = leave();
    cold_.push_back([this, is_tuple, done, miss, out, number, result] {
      Label inside = a_.newLabel();
      a_.bind(is_tuple);
      pointer(rcx, &PyTuple_Type);
      a_.cmp(qword_ptr(rax, layout::kType), rcx);
      a_.jne(miss);
      a_.mov(rcx, number);
      a_.test(rcx, rcx);
      a_.jns(inside);
      a_.add(rcx, qword_ptr(rax, layout::kSize));
      a_.bind(inside);
      a_.cmp(rcx, qword_ptr(rax, layout::kSize));
      a_.jae(out);
      a_.mov(result, qword_ptr(rax, rcx, 3, layout::kTupleItems));
      a_.jmp(done);
    });
    if (container.where == Where::kLocal) model_.locals[static_cast<size_t>(container.index)] = Known::kBound;  // a list or a tuple
  }
  a_.bind(done);
  take_reference(result);
  used(key, number);
  drop(container);
  push_reg(result);
  return Next::kGoOn;
}

// `place` holds an object and gets the value; only memory for a box may be missing then.
void Emitter::replace(const Mem& place, const Value& value, Known before) {
  if (value.where == Where::kInt || value.where == Where::kFloat) {
    Label slow = a_.newLabel(), done = a_.newLabel();
    const Label no_memory = fail();
    a_.mov(rax, place);
    reuse_box(value, before, slow);
    a_.bind(done);
    cold_.push_back([this, slow, done, no_memory, place, value, gps = model_.gps, xmms = model_.xmms, position = inst(index_).position] {
      a_.bind(slow);
      box(value, gps, xmms, position);
      a_.test(rax, rax);
      a_.jz(no_memory);
      a_.mov(rdx, place);
      a_.mov(place, rax);
      drop_here(rdx, gps, xmms, position);
      a_.jmp(done);
    });
    give_back(value);
    return;
  }
  const Gp fresh = value.where == Where::kReg ? gpq(value.reg) : Gp(rdx);
  if (value.where != Where::kReg) owned(rdx, value);
  a_.mov(rax, place);
  a_.mov(place, fresh);
  give_back(value);
  drop_reg(rax, Known::kNothing);
}

Emitter::Next Emitter::store_subscript(int index) {
  if (forms_[static_cast<size_t>(index)].form != Form::kStoreSubscrListInt) return Next::kLeave;
  const Value key = pop(), container = pop(), value = pop();
  if (!may_be(key, Known::kInt) || !may_be(container, Known::kList)) return Next::kLeave;
  const Gp number = int_of(key);
  const Gp items = gp();
  object(rax, container);
  check_type(rax, container, Known::kList, &PyList_Type, fail());
  a_.cmp(number, qword_ptr(rax, layout::kSize));
  a_.jae(leave());
  a_.mov(items, qword_ptr(rax, layout::kListItems));
  code_may_run();
  replace(qword_ptr(items, number, 3), value, Known::kBound);
  give_back(items);
  used(key, number);
  drop(container);
  return Next::kGoOn;
}

Emitter::Next Emitter::unpack(int index) {
  const Form form = forms_[static_cast<size_t>(index)].form;
  const int count = inst(index).arg;
  if (form != Form::kUnpackTwoTuple && form != Form::kUnpackTuple && form != Form::kUnpackList) return Next::kLeave;
  const bool is_list = form == Form::kUnpackList;
  const Value sequence = pop();
  if (!may_be(sequence, is_list ? Known::kList : Known::kTuple)) return Next::kLeave;
  object(rax, sequence);
  check_type(rax, sequence, is_list ? Known::kList : Known::kTuple, is_list ? &PyList_Type : &PyTuple_Type, fail());
  a_.cmp(qword_ptr(rax, layout::kSize), count);
  a_.jne(fail());
  if (count > 3) return unpack_to_slots(sequence, count, is_list);
  if (is_list) a_.mov(rdx, qword_ptr(rax, layout::kListItems));
  std::vector<Gp> items;
  for (int i = 0; i < count; ++i) {
    items.push_back(gp());
    a_.mov(items.back(), is_list ? qword_ptr(rdx, i * 8) : qword_ptr(rax, layout::kTupleItems + i * 8));
    take_reference(items.back());
  }
  drop(sequence);
  for (int i = count - 1; i >= 0; --i) push_reg(items[static_cast<size_t>(i)]);
  return Next::kGoOn;
}

// rax is the sequence, whose guards are done.
Emitter::Next Emitter::unpack_to_slots(const Value& sequence, int count, bool is_list) {
  if (sequence.where == Where::kSlot) {  // its slot is written to
    const Gp held = gp();
    a_.mov(held, rax);
    Value moved = sequence;
    moved.where = Where::kReg;
    moved.reg = static_cast<uint8_t>(held.id());
    return unpack_to_slots(moved, count, is_list);
  }
  if (is_list) a_.mov(rdx, qword_ptr(rax, layout::kListItems));
  for (int i = count - 1; i >= 0; --i) {
    a_.mov(rcx, is_list ? qword_ptr(rdx, i * 8) : qword_ptr(rax, layout::kTupleItems + i * 8));
    take_reference(rcx);
    a_.mov(slot(model_.depth), rcx);
    Value item;
    item.index = model_.depth;
    push(item);
  }
  drop(sequence);
  return Next::kGoOn;
}

// ---- attributes

// rdx: the inline values of the object, whose type is checked; misses where there are none.
void Emitter::values_of(const Gp& object, bool write) {
  if constexpr (layout::kValues == layout::Values::kEmbedded) {
#if PY_MINOR_VERSION >= 13
    if (write) {
      a_.cmp(qword_ptr(object, layout::kManagedDict), 0);
      a_.jne(fail());
    }
    a_.cmp(byte_ptr(object, layout::kValuesAreValid), 0);
    a_.je(fail());
    a_.lea(rdx, ptr(object, layout::kFirstValue));
#endif
  } else {
    a_.mov(rdx, qword_ptr(object, layout::kManagedDict));
    if (layout::kValues == layout::Values::kTaggedPointer) {
      a_.test(dl, 1);
      a_.jz(fail());
      a_.inc(rdx);
    } else {
      a_.test(rdx, rdx);
      a_.jz(fail());
    }
  }
}

// rax: the object; its type has the version. rcx: the type.
bool Emitter::check_version(const Value& owner, uint32_t version) {
  if (owner.where == Where::kInt || owner.where == Where::kFloat || (owner.where == Where::kConst && owner.object == nullptr)) return false;
  object(rax, owner);
  a_.mov(rcx, qword_ptr(rax, layout::kType));
  a_.cmp(dword_ptr(rcx, layout::kTypeVersion), version);
  a_.jne(fail());
  return true;
}

// rax: what a function of an object and an instruction gives; NULL is a miss.
bool Emitter::ask(const void* function, const Value& owner, int site) {
  if (owner.where == Where::kInt || owner.where == Where::kFloat || (owner.where == Where::kConst && owner.object == nullptr)) return false;
  object(rax, owner);
  call(function, model_.gps, model_.xmms, [&](int) {
    a_.mov(rdi, rax);
    pointer(rsi, &inst(site));
  });
  a_.test(rax, rax);
  a_.jz(fail());
  return true;
}

Emitter::Next Emitter::load_attr(int index) {
  const Settled& settled = forms_[static_cast<size_t>(index)];
  const Inst& site = inst(settled.site);
  const auto low = static_cast<uint32_t>(site.cache[0]), high = static_cast<uint32_t>(site.cache[0] >> 32);
  const Value owner = pop();
  const void* function = nullptr;
  switch (settled.form) {
    case Form::kLoadAttrValue:
    case Form::kLoadAttrSlot: {
      if (!check_version(owner, low)) return Next::kLeave;
      Gp base = rax;
      int offset = static_cast<int>(high);
      if (settled.form == Form::kLoadAttrValue) {
        values_of(rax, false);
        base = rdx;
        offset *= 8;
      }
      const Gp result = gp();
      a_.mov(result, qword_ptr(base, offset));
      a_.test(result, result);
      a_.jz(fail());
      take_reference(result);
      drop(owner);
      push_reg(result);
      return Next::kGoOn;
    }
    case Form::kLoadAttrValues: function = reinterpret_cast<const void*>(&value_of_types); break;
    case Form::kLoadAttrHint: function = reinterpret_cast<const void*>(&value_by_hint); break;
    case Form::kLoadAttrClassValue: function = reinterpret_cast<const void*>(&value_of_class); break;
    case Form::kLoadAttrModule: function = reinterpret_cast<const void*>(&value_of_module); break;
    default: return Next::kLeave;
  }
  if (!ask(function, owner, settled.site)) return Next::kLeave;
  const Gp result = gp();
  a_.mov(result, rax);
  drop(owner);
  push_reg(result);
  return Next::kGoOn;
}

Emitter::Next Emitter::load_method(int index) {
  const Settled& settled = forms_[static_cast<size_t>(index)];
  const Inst& site = inst(settled.site);
  const auto low = static_cast<uint32_t>(site.cache[0]), high = static_cast<uint32_t>(site.cache[0] >> 32);
  const Value owner = pop();
  Gp method;
  switch (settled.form) {
    case Form::kLoadMethodValues:
    case Form::kLoadMethodNoDict:
      if (!check_version(owner, low)) return Next::kLeave;
      if (settled.form == Form::kLoadMethodValues) {
        a_.mov(rcx, qword_ptr(rcx, layout::kSharedKeys));
        a_.cmp(dword_ptr(rcx, layout::kKeysVersion), high);
        a_.jne(fail());
        values_of(rax, false);
      }
      method = gp();
      pointer(method, reinterpret_cast<const void*>(site.cache[1]));
      take_reference(method);
      break;
    case Form::kLoadMethodTypes:
      if (!ask(reinterpret_cast<const void*>(&method_of_types), owner, settled.site)) return Next::kLeave;
      method = gp();
      a_.mov(method, rax);
      break;
    default: return Next::kLeave;
  }
  Value self = owner;
  if (self.where == Where::kSlot) {  // the method takes its slot
    const Gp moved = gp();
    a_.mov(moved, slot(owner.index));
    self.where = Where::kReg;
    self.reg = static_cast<uint8_t>(moved.id());
  }
  push_reg(method, Known::kBound);
  push(self);
  return Next::kGoOn;
}

Emitter::Next Emitter::store_attr(int index) {
  const Settled& settled = forms_[static_cast<size_t>(index)];
  if (settled.form != Form::kStoreAttrValue && settled.form != Form::kStoreAttrSlot) return Next::kLeave;
  const Inst& site = inst(settled.site);
  const auto low = static_cast<uint32_t>(site.cache[0]), high = static_cast<uint32_t>(site.cache[0] >> 32);
  const Value owner = pop(), value = pop();
  if (!check_version(owner, low)) return Next::kLeave;
  Gp base = gp();
  int offset = static_cast<int>(high);
  if (settled.form == Form::kStoreAttrValue) {
    values_of(rax, true);
    a_.mov(base, rdx);
    offset *= 8;
  } else {
    a_.mov(base, rax);
  }
  a_.cmp(qword_ptr(base, offset), 0);
  a_.je(leave());  // a new value: the order of the values changes
  code_may_run();
  replace(qword_ptr(base, offset), value, Known::kBound);
  give_back(base);
  drop(owner);
  return Next::kGoOn;
}

}  // namespace dynvm::vm::native
