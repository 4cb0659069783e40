// Blocks, ends and values of native runs; see emitter.h. What single instructions do is in forms.cpp.
#include "vm/native/emitter.h"

#include "runtime/base/heuristics.h"
#include "vm/cpython/layout.h"

namespace dynvm::vm::native {

using namespace asmjit;
using namespace asmjit::x86;
namespace layout = cpython::layout;

namespace {

constexpr uint32_t kAllGps = 0xf00;     // r8-r11
constexpr uint32_t kAllXmms = 0x3fff;
constexpr int kFreeGps = 3, kFreeXmms = 3;  // that an instruction may need

// ---- what runs call

PyObject* box_float(PyObject** locals, uint16_t* position, Context* context, double value) {
  cpython::runs_at(frame_of_locals(locals), position);
  PyObject* made = cpython::new_float(cpython::FloatList(context->tstate), value);
  if (made == nullptr) PyErr_Clear();
  return made;
}
PyObject* box_int(PyObject** locals, uint16_t* position, Context*, long value) {
  cpython::runs_at(frame_of_locals(locals), position);
  PyObject* made = cpython::new_int(value);
  if (made == nullptr) PyErr_Clear();
  return made;
}
PyObject* without_memory(Context* context) {
  context->stop = Stop::kRaised;
  PyErr_NoMemory();
  return Py_NewRef(Py_None);
}
void destroy(PyObject** locals, uint16_t* position, PyObject* object) {
  cpython::runs_at(frame_of_locals(locals), position);
  _Py_Dealloc(object);
}

int bits(uint32_t mask) { return __builtin_popcount(mask); }

}  // namespace

Emitter::Emitter(Code* code, const std::vector<Settled>& forms, const std::vector<uint8_t>& joins, PyObject* globals, PyObject* builtins)
    : code_(code), globals_(globals), builtins_(builtins), forms_(forms), joins_(joins) {}

bool Emitter::run(int entry, JitRuntime& runtime, int32_t* misses, Function* function, size_t* size, std::vector<int>* rest) {
  misses_ = misses;
  holder_.init(runtime.environment());
  holder_.attach(&a_);
  model_.locals.assign(static_cast<size_t>(code_->local_count), Known::kNothing);
  a_.push(rdx);
  block(entry);
  while (!pending_.empty() && !broken_) {
    Pending next = std::move(pending_.back());
    pending_.pop_back();
    a_.bind(next.label);
    model_ = std::move(next.model);
    straight_ = -1;
    count_down(next.counter);
    block(next.index);
  }
  for (size_t i = 0; i < cold_.size() && !broken_; ++i) cold_[i]();
  if (broken_ || !pays_) return false;
  if (runtime.add(function, &holder_) != kErrorOk) return false;
  *size = holder_.codeSize();
  rest->insert(rest->end(), rest_.begin(), rest_.end());
  return true;
}

// ---- blocks

Emitter::Join* Emitter::find_join(int index) {
  for (auto& [at, known] : known_joins_) {
    if (at == index) return &known;
  }
  return nullptr;
}
Emitter::Join* Emitter::join(int index) {
  if (Join* known = find_join(index)) {
    if (known->depth != model_.depth) broken_ = true;
    return known;
  }
  known_joins_.push_back({index, Join{a_.newLabel(), model_.depth, false}});
  return &known_joins_.back().second;
}

void Emitter::block(int index) {
  while (!broken_) {
    if (joins_[static_cast<size_t>(index)]) {
      index_ = index;
      Join* here = join(index);
      flush();
      if (here->done) {
        a_.jmp(here->label);
        return;
      }
      here->done = true;
      a_.bind(here->label);
      forget_locals();
      for (Value& value : model_.stack) value.known = Known::kNothing, value.twin = 0;  // the other path may bring another type
    }
    // Long straight code is cut at the same places whatever entry it is come to from.
    const bool cut = done_ >= limits_.native_cut_from && index % limits_.native_cut_every == 0;
    if (cut || done_ >= limits_.native_max_run || index >= code_->inst_count) {
      if (cut) rest_.push_back(index);
      end(model_, index, false);
      return;
    }
    begin(index);
    next_ = index + 1;
    const Next outcome = instruction(index);
    if (outcome == Next::kLeave) {
      end(start_, index, false);
      return;
    }
    ++done_;
    if (straight_ >= 0 && !forms_[static_cast<size_t>(index)].covered) ++straight_;
    if (straight_ >= limits_.native_pays) pays_ = true;
    index = next_;
  }
}

void Emitter::branch(CondCode taken, int jump) {
  Label label = a_.newLabel();
  a_.j(taken, label);
  pending_.push_back({target(jump), label, model_, counter_of(jump)});
}

bool Emitter::check_backward(int jump) {
  HotCounter* counter = counter_of(jump);
  if (counter == nullptr) return true;
  if (counter->trace != nullptr) return false;
  const Label label = leave();
  a_.mov(rax, qword_ptr(rsp));
  const int probe = static_cast<int>(offsetof(Context, probe));
  [&](auto* layout_of_probe) {
    using Probe = std::remove_pointer_t<decltype(layout_of_probe)>;
    if constexpr (requires(Probe p) { p.word; }) {
      a_.mov(rcx, qword_ptr(rax, probe + static_cast<int>(offsetof(Probe, word))));
      a_.cmp(dword_ptr(rcx), 0);
      a_.jne(label);
    }
    if constexpr (requires(Probe p) { p.byte; }) {
      a_.mov(rcx, qword_ptr(rax, probe + static_cast<int>(offsetof(Probe, byte))));
      a_.cmp(byte_ptr(rcx), 0);
      a_.jne(label);
    }
    const auto compare = [&](size_t at, size_t quiet) {
      a_.mov(rcx, qword_ptr(rax, probe + static_cast<int>(at)));
      a_.mov(rcx, qword_ptr(rcx));
      a_.mov(rdx, qword_ptr(rax, probe + static_cast<int>(quiet)));
      a_.cmp(rcx, qword_ptr(rdx));
      a_.jne(label);
    };
    if constexpr (requires(Probe p) { p.version; }) compare(offsetof(Probe, version), offsetof(Probe, quiet));
    if constexpr (requires(Probe p) { p.bits; }) compare(offsetof(Probe, bits), offsetof(Probe, quiet));
  }(static_cast<cpython::LoopProbe*>(nullptr));
  pointer(rax, &counter->count);
  a_.cmp(dword_ptr(rax), 0);
  a_.jle(label);
  return true;
}

void Emitter::count_down(HotCounter* counter) {
  if (counter == nullptr) return;
  pointer(rax, &counter->count);
  a_.dec(dword_ptr(rax));
}

void Emitter::begin(int index) {
  index_ = index;
  for (size_t i = 0; i < model_.stack.size(); ++i) {
    const Value& value = model_.stack[i];
    const bool short_of_gps = bits(kAllGps & ~model_.gps) < kFreeGps, short_of_xmms = bits(kAllXmms & ~model_.xmms) < kFreeXmms;
    if (!short_of_gps && !short_of_xmms) break;
    const bool holds_gp = value.where == Where::kReg || value.where == Where::kInt;
    if ((holds_gp && short_of_gps) || (value.where == Where::kFloat && short_of_xmms)) {
      put(i, end_label(model_, index, false));
    }
  }
  start_ = model_;
  miss_ = Label();
  leave_ = Label();
}

// ---- ends

Label Emitter::end_label(const Model& model, int index, bool miss) {
  Label label = a_.newLabel();
  cold_.push_back([this, label, model, index, miss] {
    a_.bind(label);
    end(model, index, miss);
  });
  return label;
}
Label Emitter::fail() {
  if (!miss_.isValid()) miss_ = end_label(start_, index_, true);
  return miss_;
}
Label Emitter::leave() {
  if (!leave_.isValid()) leave_ = end_label(start_, index_, false);
  return leave_;
}

void Emitter::end(const Model& model, int index, bool miss, bool stopped) {
  model_ = model;
  index_ = index;
  bool boxed = false;
  for (size_t i = 0; i < model_.stack.size(); ++i) {
    boxed |= is_unboxed(model_.stack[i]);
    put(i, Label());
  }
  Label stop = a_.newLabel();
  pointer(rax, &inst(index));
  a_.lea(rdx, ptr(rsi, model_.depth * 8));
  a_.pop(rcx);
  if (miss) {
    pointer(r8, misses_);
    a_.dec(dword_ptr(r8));
    a_.js(stop);
  }
  if (boxed && !stopped) {
    a_.cmp(byte_ptr(rcx, offsetof(Context, stop)), 0);
    a_.jne(stop);
  }
  if (!stopped) a_.ret();
  if (miss || boxed || stopped) {
    a_.bind(stop);
    a_.mov(qword_ptr(rcx, offsetof(Context, at)), rax);
    pointer(rax, g_stopped);
    a_.ret();
  }
}

// ---- values

Mem Emitter::slot(int depth) const { return qword_ptr(rsi, depth * 8); }
Mem Emitter::local(int index) const { return qword_ptr(rdi, index * 8); }
void Emitter::call_with(const void* function, const Value& first, const Value& second) {
  object(rax, first);
  object(rdx, second);
  call(function, model_.gps, model_.xmms, [&](int) {
    a_.mov(rdi, rax);
    a_.mov(rsi, rdx);
  });
}
void Emitter::pointer(const Gp& to, const void* value) { a_.mov(to, reinterpret_cast<uint64_t>(value)); }

Value Emitter::pop() {
  --model_.depth;
  if (model_.depth < model_.low) {
    model_.low = model_.depth;
    Value value;
    value.index = model_.depth;
    return value;
  }
  Value value = model_.stack.back();
  model_.stack.pop_back();
  return value;
}
Value& Emitter::top(int below) {
  while (model_.depth - below < model_.low) {
    --model_.low;
    Value value;
    value.index = model_.low;
    model_.stack.insert(model_.stack.begin(), value);
  }
  return model_.stack[static_cast<size_t>(model_.depth - below - model_.low)];
}
void Emitter::push(const Value& value) {
  model_.stack.push_back(value);
  ++model_.depth;
}
void Emitter::push_reg(const Gp& reg, Known known) {
  push({.where = Where::kReg, .known = known, .reg = static_cast<uint8_t>(reg.id())});
}
void Emitter::push_int(const Gp& reg) { push({.where = Where::kInt, .known = Known::kInt, .reg = static_cast<uint8_t>(reg.id())}); }
void Emitter::push_float(const Xmm& reg) { push({.where = Where::kFloat, .known = Known::kFloat, .reg = static_cast<uint8_t>(reg.id())}); }

// A free register stays free for others only once it is given back; one that the start of the instruction names is not taken.
Gp Emitter::gp() {
  const uint32_t free = kAllGps & ~model_.gps & ~start_.gps;
  if (free == 0) {
    broken_ = true;
    return r8;
  }
  const uint32_t number = static_cast<uint32_t>(__builtin_ctz(free));
  model_.gps |= 1u << number;
  return gpq(number);
}
Xmm Emitter::xmm() {
  const uint32_t free = kAllXmms & ~model_.xmms & ~start_.xmms;
  if (free == 0) {
    broken_ = true;
    return xmm0;
  }
  const uint32_t number = static_cast<uint32_t>(__builtin_ctz(free));
  model_.xmms |= 1u << number;
  return x86::xmm(number);
}
void Emitter::give_back(const Gp& reg) { model_.gps &= ~(1u << reg.id()); }
void Emitter::give_back(const Xmm& reg) { model_.xmms &= ~(1u << reg.id()); }
void Emitter::give_back(const Value& value) {
  if (value.where == Where::kReg || value.where == Where::kInt) model_.gps &= ~(1u << value.reg);
  if (value.where == Where::kFloat) model_.xmms &= ~(1u << value.reg);
}

void Emitter::object(const Gp& to, const Value& value) {
  switch (value.where) {
    case Where::kSlot: a_.mov(to, slot(value.index)); break;
    case Where::kLocal: a_.mov(to, local(value.index)); break;
    case Where::kConst: pointer(to, value.object); break;
    case Where::kReg: a_.mov(to, gpq(value.reg)); break;
    default: broken_ = true;
  }
}

void Emitter::check_type(const Gp& reg, const Value& value, Known known, PyTypeObject* type, const Label& miss) {
  if (value.known == known) return;
  if (value.where == Where::kLocal && model_.locals[static_cast<size_t>(value.index)] == known) return;
  check_exact(reg, type, miss);
  if (value.where == Where::kLocal) model_.locals[static_cast<size_t>(value.index)] = known;
}

void Emitter::check_exact(const Gp& reg, PyTypeObject* type, const Label& miss) {
  pointer(rcx, type);
  a_.cmp(qword_ptr(reg, layout::kType), rcx);
  a_.jne(miss);
}

// The value of the int that rax points to, where it has one digit at most. At `more` rcx is its tag and `to` its lowest digit. Clobbers rdx.
void Emitter::one_digit(const Gp& to, const Label& more) {
  a_.mov(rcx, qword_ptr(rax, layout::kIntTag));
  a_.mov(to.r32(), dword_ptr(rax, layout::kIntDigits));
  if constexpr (layout::kTaggedInts) {
    a_.cmp(rcx, 2 << 3);
    a_.jae(more);
    a_.and_(ecx, 3);
    a_.mov(edx, 1);
    a_.sub(rdx, rcx);
    a_.imul(to, rdx);
  } else {
    a_.lea(rdx, ptr(rcx, 1));
    a_.cmp(rdx, 2);
    a_.ja(more);
    a_.imul(to, rcx);
  }
}

Gp Emitter::int_of(Value& value) {
  if (value.where == Where::kInt) return gpq(value.reg);
  const Gp result = gp();
  long constant;
  if (value.where == Where::kConst && value.object != nullptr && PyLong_CheckExact(value.object) &&
      cpython::short_int(value.object, &constant)) {
    a_.mov(result, constant);
    return result;
  }
  if (!is_object(value)) {
    broken_ = true;
    return result;
  }
  object(rax, value);
  check_type(rax, value, Known::kInt, &PyLong_Type, fail());
  value.known = Known::kInt;
  Label more = a_.newLabel(), done = a_.newLabel();
  const Label miss = fail();
  one_digit(result, more);
  a_.bind(done);
  // Two digits.
  cold_.push_back([this, more, done, miss, result] {
    a_.bind(more);
    if constexpr (layout::kTaggedInts) {
      a_.mov(rdx, rcx);
      a_.shr(rdx, 3);
      a_.cmp(rdx, 2);
      a_.jne(miss);
      a_.mov(edx, dword_ptr(rax, layout::kIntDigits + 4));
      a_.shl(rdx, PyLong_SHIFT);
      a_.or_(result, rdx);
      a_.and_(ecx, 3);
      a_.jz(done);
    } else {
      a_.lea(rdx, ptr(rcx, 2));
      a_.test(rdx, -5);  // -2 or 2
      a_.jnz(miss);
      a_.mov(edx, dword_ptr(rax, layout::kIntDigits + 4));
      a_.shl(rdx, PyLong_SHIFT);
      a_.or_(result, rdx);
      a_.test(rcx, rcx);
      a_.jns(done);
    }
    a_.neg(result);
    a_.jmp(done);
  });
  return result;
}
Xmm Emitter::float_of(Value& value) {
  if (value.where == Where::kFloat) return x86::xmm(value.reg);
  const Xmm result = xmm();
  if (value.where == Where::kConst && value.object != nullptr && PyFloat_CheckExact(value.object)) {
    const double constant = PyFloat_AS_DOUBLE(value.object);
    uint64_t pattern;
    memcpy(&pattern, &constant, sizeof pattern);
    a_.mov(rax, pattern);
    a_.movq(result, rax);
    return result;
  }
  if (!is_object(value)) {
    broken_ = true;
    return result;
  }
  object(rax, value);
  check_type(rax, value, Known::kFloat, &PyFloat_Type, fail());
  value.known = Known::kFloat;
  a_.movsd(result, qword_ptr(rax, layout::kFloat));
  return result;
}
void Emitter::used(const Value& value, const Gp& reg) {
  if (value.where != Where::kInt) give_back(reg);
  drop(value);
}
void Emitter::used(const Value& value, const Xmm& reg) {
  if (value.where != Where::kFloat) give_back(reg);
  drop(value);
}

bool Emitter::may_be(const Value& value, Known known) {
  if (value.where == Where::kInt) return known == Known::kInt;
  if (value.where == Where::kFloat) return known == Known::kFloat;
  if (value.where != Where::kConst) return true;
  long number;
  if (value.object == nullptr || value.known != known) return known == Known::kList && value.known == Known::kTuple;
  return known != Known::kInt || cpython::short_int(value.object, &number);
}

// ---- references

void Emitter::take_reference(const Gp& reg) {
  if constexpr (layout::kImmortal) {
    Label immortal = a_.newLabel();
    a_.cmp(dword_ptr(reg, layout::kRefcount), 0);
    a_.jl(immortal);
    a_.inc(dword_ptr(reg, layout::kRefcount));
    a_.bind(immortal);
  } else {
    a_.inc(qword_ptr(reg, layout::kRefcount));
  }
}

void Emitter::drop_reg(const Gp& reg, Known known) {
  Label dead = a_.newLabel(), done = a_.newLabel();
  if constexpr (layout::kImmortal) {
    a_.cmp(dword_ptr(reg, layout::kRefcount), 0);
    a_.jl(done);
  }
  a_.dec(qword_ptr(reg, layout::kRefcount));
  a_.jz(dead);
  a_.bind(done);
  const uint32_t gps = model_.gps, xmms = model_.xmms;
  cold_.push_back([this, dead, done, reg, known, gps, xmms, position = position(index_)] {
    a_.bind(dead);
    destroy_here(reg, known, gps, xmms, position);
    a_.jmp(done);
  });
}
void Emitter::destroy_here(const Gp& reg, Known known, uint32_t gps, uint32_t xmms, uint16_t* position) {
  Label done = a_.newLabel();
  if (known == Known::kFloat && reg != rcx && reg != rdx) {
    Label full = a_.newLabel();
    a_.mov(rcx, qword_ptr(rsp));
    a_.mov(rcx, qword_ptr(rcx, offsetof(Context, floats)));
    a_.cmp(dword_ptr(rcx, layout::kFreeFloatCount), layout::kMostFreeFloats);
    a_.jae(full);
    a_.inc(dword_ptr(rcx, layout::kFreeFloatCount));
    a_.mov(rdx, qword_ptr(rcx, layout::kFreeFloats));
    a_.mov(qword_ptr(reg, layout::kType), rdx);
    a_.mov(qword_ptr(rcx, layout::kFreeFloats), reg);
    a_.jmp(done);
    a_.bind(full);
  }
  call(reinterpret_cast<const void*>(&destroy), gps, xmms, [&](int) {
    a_.mov(rdx, reg);
    pointer(rsi, position);
  });
  a_.bind(done);
}
void Emitter::drop_here(const Gp& reg, Known known, uint32_t gps, uint32_t xmms, uint16_t* position) {
  Label done = a_.newLabel();
  if constexpr (layout::kImmortal) {
    a_.cmp(dword_ptr(reg, layout::kRefcount), 0);
    a_.jl(done);
  }
  a_.dec(qword_ptr(reg, layout::kRefcount));
  a_.jnz(done);
  destroy_here(reg, known, gps, xmms, position);
  a_.bind(done);
}

void Emitter::drop(const Value& value) {
  release(value);
  give_back(value);
}
void Emitter::release(const Value& value) {
  if (value.where != Where::kReg && value.where != Where::kSlot) return;
  if (value.known != Known::kFloat && value.known != Known::kInt) code_may_run();
  if (value.where == Where::kSlot) a_.mov(rax, slot(value.index));
  drop_reg(value.where == Where::kSlot ? Gp(rax) : gpq(value.reg), value.known);
}

void Emitter::owned(const Gp& to, const Value& value) {
  switch (value.where) {
    case Where::kFloat:
    case Where::kInt:
      box(value, model_.gps, model_.xmms, position(index_));
      a_.test(rax, rax);
      a_.jz(fail());
      a_.mov(to, rax);
      break;
    case Where::kLocal:
      object(to, value);
      take_reference(to);
      break;
    case Where::kConst:
      object(to, value);
      if (value.object != nullptr && !is_immortal(value.object)) take_reference(to);
      break;
    default:
      object(to, value);
  }
}

void Emitter::put(size_t place, const Label& no_memory) {
  Value& value = model_.stack[place];
  const int depth = model_.low + static_cast<int>(place);
  for (size_t i = 0; value.twin != 0 && i < model_.stack.size(); ++i) {
    const Value& other = model_.stack[i];
    if (i == place || other.twin != value.twin || (other.where != Where::kSlot && other.where != Where::kReg)) continue;
    object(rax, other);
    take_reference(rax);
    a_.mov(slot(depth), rax);
    give_back(value);
    value.where = Where::kSlot;
    value.index = depth;
    return;
  }
  switch (value.where) {
    case Where::kSlot: return;
    case Where::kReg: a_.mov(slot(depth), gpq(value.reg)); break;
    case Where::kFloat:
    case Where::kInt: {
      box(value, model_.gps, model_.xmms, position(index_));
      a_.test(rax, rax);
      if (no_memory.isValid()) {
        a_.jz(no_memory);
      } else {
        Label there = a_.newLabel();
        a_.jnz(there);
        call(reinterpret_cast<const void*>(&without_memory), model_.gps, model_.xmms,
             [&](int context) { a_.mov(rdi, qword_ptr(rsp, context)); });
        a_.bind(there);
      }
      a_.mov(slot(depth), rax);
      break;
    }
    default:
      owned(rax, value);
      a_.mov(slot(depth), rax);
  }
  give_back(value);
  value.where = Where::kSlot;
  value.index = depth;
}

void Emitter::flush() {
  for (size_t i = 0; i < model_.stack.size(); ++i) {
    put(i, is_unboxed(model_.stack[i]) ? end_label(model_, index_, false) : Label());
  }
}
void Emitter::settle_local(int index) {
  for (size_t i = 0; i < model_.stack.size(); ++i) {
    const Value& value = model_.stack[i];
    if (value.where == Where::kLocal && (index < 0 || value.index == index)) put(i, Label());
  }
}
void Emitter::forget_locals() { std::fill(model_.locals.begin(), model_.locals.end(), Known::kNothing); }
void Emitter::code_may_run() {
  if constexpr (layout::kLocalsMayChange) {
    settle_local(-1);
    forget_locals();
  }
}

// ---- calls

void Emitter::call(const void* function, uint32_t gps, uint32_t xmms, const std::function<void(int)>& arguments) {
  const int words = (2 + bits(gps) + bits(xmms) + 1) & ~1;
  a_.sub(rsp, words * 8);
  a_.mov(qword_ptr(rsp), rdi);
  a_.mov(qword_ptr(rsp, 8), rsi);
  const auto each = [&](auto on_gp, auto on_xmm) {
    int at = 16;
    for (uint32_t i = 0; i < 16; ++i) {
      if (gps >> i & 1) on_gp(gpq(i), at), at += 8;
      if (xmms >> i & 1) on_xmm(x86::xmm(i), at), at += 8;
    }
  };
  each([&](Gp reg, int at) { a_.mov(qword_ptr(rsp, at), reg); }, [&](Xmm reg, int at) { a_.movsd(qword_ptr(rsp, at), reg); });
  arguments(words * 8);
  pointer(rax, function);
  a_.call(rax);
  a_.mov(rdi, qword_ptr(rsp));
  a_.mov(rsi, qword_ptr(rsp, 8));
  each([&](Gp reg, int at) { a_.mov(reg, qword_ptr(rsp, at)); }, [&](Xmm reg, int at) { a_.movsd(reg, qword_ptr(rsp, at)); });
  a_.add(rsp, words * 8);
}

// A float of the free list or a small int at once, else by a call in cold code.
void Emitter::box(const Value& value, uint32_t gps, uint32_t xmms, uint16_t* position) {
  const bool is_float = value.where == Where::kFloat;
  Label slow = a_.newLabel(), done = a_.newLabel();
  if (is_float) {
    a_.mov(rcx, qword_ptr(rsp));
    a_.mov(rcx, qword_ptr(rcx, offsetof(Context, floats)));
    a_.mov(rax, qword_ptr(rcx, layout::kFreeFloats));
    a_.test(rax, rax);
    a_.jz(slow);
    a_.mov(rdx, qword_ptr(rax, layout::kType));
    a_.mov(qword_ptr(rcx, layout::kFreeFloats), rdx);
    a_.dec(dword_ptr(rcx, layout::kFreeFloatCount));
    pointer(rdx, &PyFloat_Type);
    a_.mov(qword_ptr(rax, layout::kRefcount), 1);
    a_.mov(qword_ptr(rax, layout::kType), rdx);
    a_.movsd(qword_ptr(rax, layout::kFloat), x86::xmm(value.reg));
  } else {
    constexpr int kFirst = -5, kCount = 262;
    a_.lea(rax, ptr(gpq(value.reg), -kFirst));
    a_.cmp(rax, kCount);
    a_.jae(slow);
    static_assert(layout::kIntStride == 32);
    a_.shl(rax, 5);
    pointer(rcx, cpython::small_int(kFirst));
    a_.add(rax, rcx);
    if (!layout::kImmortal) take_reference(rax);
  }
  a_.bind(done);
  cold_.push_back([this, slow, done, is_float, value, gps, xmms, position] {
    a_.bind(slow);
    call(is_float ? reinterpret_cast<const void*>(&box_float) : reinterpret_cast<const void*>(&box_int), gps, xmms, [&](int context) {
      if (is_float) {
        if (value.reg != 0) a_.movapd(xmm0, x86::xmm(value.reg));
      } else {
        a_.mov(rcx, gpq(value.reg));
      }
      pointer(rsi, position);
      a_.mov(rdx, qword_ptr(rsp, context));
    });
    a_.jmp(done);
  });
}

}  // namespace dynvm::vm::native
