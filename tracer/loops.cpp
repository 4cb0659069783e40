// Recording of jumps, truth tests and iteration. See recorder.h.
//
// An iterator over known items is virtual: exits make one that stands where it stood. One that had to become an object still gives known
// items (iterators_): its step is an operation, its item needs no guard. Any other iterator's item is guarded to be there.
#include "tracer/recorder.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "ir/effects.h"
#include "runtime/base/defects.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/policy.h"
#include "runtime/base/switches.h"
#include "tracer/decisions.h"

namespace dynvm::tracer {

using ir::kNoRef;
using ir::Ref;
using ir::Type;
using vm::HookResult;
using vm::Op;
using IrOp = ir::Op;

namespace {

constexpr int kAlike = 8;  // rounds of which one has other sizes than the one before, or the loop is taken to do the same in all of them

}  // namespace

// Taking an item of it is an effect: it cannot be put back.
bool Recorder::advances_unseen(V iterator) {
  PyObject* it = concrete(iterator);
  if (at(iterator).kind != Value::kObject || !PyIter_Check(it) || iterators_.count(iterator) != 0) return false;
  PyObject* method = _PyType_Lookup(Py_TYPE(it), next_name());
  return method == nullptr || !PyFunction_Check(method);
}

// A snapshot of another state than "before this instruction": the innermost frame stands before `unit` with these slots. For guards on
// what an operation of this instruction returned.
int32_t Recorder::snapshot_at(int unit, std::vector<V> slots) {
  int32_t kept = current_snapshot_;
  int kept_unit = current_unit_;
  bool kept_effect = effect_done_;
  std::swap(top().slots, slots);
  current_snapshot_ = -1;
  current_unit_ = unit;
  effect_done_ = false;
  int32_t result = snapshot();
  trace_.snapshots[result].elsewhere = true;
  std::swap(top().slots, slots);
  current_snapshot_ = kept;
  current_unit_ = kept_unit;
  effect_done_ = kept_effect;
  return result;
}

// Truth of a value as a constant or a bool scalar. kNoValue: needs a residual is_true. May abort.
V Recorder::fold_truth(V v) {
  PyObject* o = concrete(v);
  auto known_truth = [&](bool truth) { return constant(truth ? Py_True : Py_False); };
  switch (at(v).kind) {
    case Value::kTuple:
    case Value::kList:
    case Value::kDict:
    case Value::kSet:
    case Value::kSlice:
    case Value::kMethod: return known_truth(PyObject_IsTrue(o) == 1);
    case Value::kScalar: {
      bool truth = PyObject_IsTrue(o) == 1;
      if (at(v).scalar == Type::kBool) return v;
      static PyObject* zero_int = PyLong_FromLong(0);
      static PyObject* zero_float = PyFloat_FromDouble(0.0);
      Ref ref = at(v).scalar == Type::kInt ? emit(IrOp::k_ne_int, Type::kBool, {at(v).ref, as_int(constant(zero_int))})
                                           : emit(IrOp::k_ne_float, Type::kBool, {at(v).ref, as_float(constant(zero_float))});
      return scalar(Type::kBool, ref, truth ? Py_True : Py_False);
    }
    default: break;
  }
  if (o == Py_True || o == Py_False) {
    if (is_const(v)) return v;
    if (promote(v)) return v;
    as_bool(v);
    return v;
  }
  if (is_const(v) && is_immutable(o)) return known_truth(PyObject_IsTrue(o) == 1);
  if (o == Py_None) {
    if (promote(v)) return known_truth(false);
  }
  if (PyDict_Check(o) && (PyDict_CheckExact(o) || Py_TYPE(o) == &PyODict_Type)) {
    if (promote(v) && guard_dict_unchanged(o)) return known_truth(PyDict_GET_SIZE(o) != 0);
  }
  if (PyLong_CheckExact(o) || PyFloat_CheckExact(o)) {
    if (!promote(v)) {
      if (PyLong_CheckExact(o) ? as_int(v) != kNoRef : as_float(v) != kNoRef) return fold_truth(v);
    } else {
      return known_truth(PyObject_IsTrue(o) == 1);
    }
  }
  if (PyUnicode_CheckExact(o) || PyTuple_CheckExact(o)) {
    if (promote(v)) return known_truth(PyObject_IsTrue(o) == 1);
  }
  if (PyList_CheckExact(o) || PyDict_CheckExact(o) || Py_TYPE(o) == &PyODict_Type || PyUnicode_CheckExact(o) || PyTuple_CheckExact(o) || o == Py_None) {
    if (!know_type(v)) return kNoValue;
    Ref ref = emit(IrOp::k_is_true_builtin, Type::kBool, {as_object(v)});
    return scalar(Type::kBool, ref, PyObject_IsTrue(o) == 1 ? Py_True : Py_False);
  }
  PyTypeObject* type = Py_TYPE(o);
  bool plain = (type->tp_as_number == nullptr || type->tp_as_number->nb_bool == nullptr) &&
               (type->tp_as_mapping == nullptr || type->tp_as_mapping->mp_length == nullptr) &&
               (type->tp_as_sequence == nullptr || type->tp_as_sequence->sq_length == nullptr);
  if (plain && know_type(v)) {
    guard_type_unchanged(type);
    return known_truth(true);
  }
  return kNoValue;
}

bool Recorder::truth_value(vm::ThreadView& view, V v, V* truth) {
  PyObject* o = concrete(v);
  if (is_tensor(o)) {
    bool error = false;
    bool done = with_torch([&]() -> PyObject* {
      int result = PyObject_IsTrue(o);
      return result < 0 ? nullptr : Py_NewRef(result ? Py_True : Py_False);
    }, {v}, "truth of a tensor", truth, &error);
    if (done && *truth == kNoValue) {
      give_up(Abort::k_unsupported_operation, "truth of a tensor");
      return false;
    }
    return done;
  }
  *truth = fold_truth(v);
  if (done_) return false;
  if (*truth != kNoValue) return true;
  bool ok = true;
  *truth = run_residual(IrOp::k_is_true, {v}, 0, &ok);
  return ok;
}

// The test of a conditional jump. On success the jump is decided; the caller moves. Returns false when the instruction must be left
// (aborted, raised: *result; or the operand was replaced by its truth and the instruction is to be seen again).
bool Recorder::decide(vm::ThreadView& view, V v, bool replace, bool* truth, HookResult* result) {
  V t = kNoValue;
  bool was_effect = effect_done_;
  if (!truth_value(view, v, &t)) {
    *result = done_ ? HookResult::kContinue : raised(view);
    return false;
  }
  *truth = concrete(t) == Py_True;
  if (is_const(t)) return true;
  branches_ = true;
  if (effect_done_ && !was_effect) {
    // The test itself was an effect, so the guard needs the state after it: put the truth in the operand's place.
    if (!replace) {
      give_up(Abort::k_opcode, "truth of an object in `and` or `or`");
      *result = HookResult::kContinue;
      return false;
    }
    pop(view, 1);
    push(view, t);
    trace_.add(*truth ? IrOp::k_guard_true : IrOp::k_guard_false, Type::kVoid, {as_bool(t)}, 0, snapshot_at(current_unit_, top().slots));
    return true;
  }
  if (base::seeded(base::Defect::kGuardLeftOut)) return true;
  guard(*truth ? IrOp::k_guard_true : IrOp::k_guard_false, {as_bool(t)});
  return true;
}

// Has a round of a loop, recorded from this instruction on, tensors of sizes that the one before had not? *before: hashes of these, of the new round's then.
static bool has_other_sizes(const ir::Trace& trace, int64_t first, std::set<uint64_t>* before) {
  std::set<uint64_t> now;
  for (size_t k = static_cast<size_t>(first); k < trace.insts.size(); ++k) {
    if (trace.insts[k].meta < 0) continue;
    uint64_t hash = 0;
    for (const int64_t size : trace.metas[trace.insts[k].meta].sizes) hash = (hash ^ static_cast<uint64_t>(size)) * 1099511628211u;  // as FNV-1a
    now.insert(hash);
  }
  const bool other = !std::includes(before->begin(), before->end(), now.begin(), now.end());
  *before = std::move(now);
  return other;
}

// An inner loop goes round. Rounds that recorded nothing, since all in them was known, cost nothing. traced: it runs long in a trace of its own. iterator: the
// loop's, kNoValue where it has none. Rounds may be more than the limit if those that are to come fit into three quarters of what a recording may have and work on tensors
// of other sizes ever again, as an optimizer's loop over all parameters: a trace of the loop would have an exit for each of these. Else it is given up as soon as
// that is seen.
bool Recorder::count_loop(int unit, bool traced, V iterator) {
  ShadowFrame::Loop& loop = top().loops[unit];
  const auto insts = static_cast<int64_t>(trace_.insts.size());
  if (loop.insts == insts && !traced) return true;
  if (loop.count > 0 && has_other_sizes(trace_, loop.insts, &loop.sizes)) loop.changes++;
  loop.insts = insts;
  if (loop.count == 0) loop.ops = tensor_ops_, loop.first = insts;
  const bool light = tensor_ops_ - loop.ops <= loop.count;
  const base::Heuristics& limits = base::heuristics();
  int64_t limit = light ? limits.max_unroll_light : limits.max_unroll;
  loop.count++;
  const bool alike = loop.changes <= loop.count / kAlike;
  // One over a model's parts does the same each time; which way one takes whose rounds are alike may depend on data.
  const bool varies = !light && loop.count > 1 && alike;
  if (insts >= limits.large_unrolled && too_early(static_cast<uint64_t>(insts), varies ? limits.large_pays : limits.unroll_pays, gone_round_)) {
    give_up(Abort::k_trace_too_long, "it unrolls loops, too early to pay");
    return false;
  }
  const int64_t left = iterator != kNoValue && loop.count > 1 ? left_of(iterator) : -1;
  if (loop.count > 1 && loop.count + left > limit) {
    const int64_t more = left >= 0 ? left : loop.count;  // of an unknown number as many again
    const bool fits = insts + (insts - loop.first) / (loop.count - 1) * more <= limits.max_insts / 4 * 3;
    if (!fits || (alike && loop.count >= 2 * kAlike)) limit = loop.count - 1;
    else if (!alike) limit = loop.count + more;
  }
  const bool goes_on = base::decide(base::Decision::kUnroll, !traced && loop.count <= limit, [&] {
    return base::Facts{{"file", PyUnicode_AsUTF8(top().code->co_filename)},
                       {"line", int64_t{PyCode_Addr2Line(top().code, unit * 2)}},
                       {"name", PyUnicode_AsUTF8(top().code->co_qualname)},
                       {"rounds", int64_t{loop.count}},
                       {"limit", limit},
                       {"operations", int64_t{tensor_ops_ - loop.ops}},
                       {"recorded", insts},
                       {"has_trace", traced}};
  });
  if (!goes_on && traced) inner_loop_ = {top().code, unit};
  if (!goes_on) give_up(traced ? Abort::k_inner_loop_has_trace : Abort::k_loop_unrolled_too_often);
  return goes_on;
}

// The innermost frame comes to a loop, from outside, that runs long in a trace of its own and so is not part of this one. Work before it is worth a trace that ends
// here; with little the recording goes on, as this time the loop may not go round. A policy is asked when it does. Where both loops are one frame's, a side trace of the
// inner one goes from its end around the outer one back to it, and does all of this. True: it has been given up.
bool Recorder::ends_before_loop() {
  if (top().long_loops.count(current_unit_) == 0 || (frames_.size() == 1 && !function_)) return false;
  if (tensor_ops_ < base::heuristics().before_inner || top().loops.count(current_unit_) != 0 || base::policy() != nullptr) return false;
  if (!consumers_.empty() || !callbacks_.empty() || handling_.open || graph_alive()) return false;
  inner_loop_ = {top().code, current_unit_};
  give_up(Abort::k_inner_loop_begins);
  return true;
}

// Is one tensor written that looks at another's memory in the same way (x.detach())? What reads the other then is recorded as reading the first, and views of it would have that as their base.
static bool writes_look_alikes(const ir::Trace& trace) {
  const auto geometry = [&](ir::Ref tensor) {
    const ir::TensorMeta& meta = trace.metas[trace.insts[tensor].meta];
    return std::tie(meta.sizes, meta.strides, meta.offset);
  };
  for (const ir::Inst& inst : trace.insts) {
    if (inst.op != IrOp::k_aten) continue;
    const ir::AtenCall& call = trace.calls[inst.imm];
    for (int32_t argument : call.mutates)
      for (int32_t operand : call.args[static_cast<size_t>(argument)].operands) {
        if (operand < 0) continue;
        const ir::Ref written = trace.arg(inst, static_cast<uint32_t>(operand));
        const std::vector<ir::Ref> views = ir::views_behind(trace, written);
        if (views.empty()) continue;
        const ir::Inst& view = trace.insts[views.front()];
        for (uint32_t k = 0; k < view.count; ++k)
          if (const ir::Ref from = trace.arg(view, k); trace.insts[from].type == Type::kTensor && geometry(from) == geometry(written)) return true;
      }
  }
  return false;
}

// At the header, behind an iteration. False: it had tensors of other sizes than the one before, and so the next one will; the recording is given up for one of a single iteration.
bool Recorder::goes_round_alike() {
  if (tensor_ops_ > base::heuristics().unroll_ops) return true;  // it does not go round again
  const bool other = has_other_sizes(trace_, static_cast<int64_t>(std::exchange(round_began_, trace_.insts.size())), &round_sizes_);
  if (rounds_ == 1 || !other) return true;
  lessons_.one_round = true;
  give_up(Abort::k_further_iteration, "of tensors of other sizes");
  return false;
}

// At the header: is the next iteration to be part of the trace too? What variables have in between is then never made, kernels are fused across iterations, and a GPU gets the work of all in
// one graph. Not where a branch has been decided: that may be another one in each of them. No more iterations than a quarter of those left and a
// thirty-second of all in this run of the loop, of those that there have been where nobody knows what is left: what is recorded is interpreted.
bool Recorder::goes_round_again() {
  const base::Heuristics& limits = base::heuristics();
  if (side_ || function_ || handling_.open || lessons_.one_round || branches_ || base::left_out(base::Part::kUnroll)) return false;
  if (rounds_ >= limits.unroll_rounds || tensor_ops_ == 0 || tensor_ops_ / rounds_ * (rounds_ + 1) > limits.unroll_ops) return false;
  const int64_t left = frames_[0].slots.empty() ? -1 : left_of(frames_[0].slots.back());
  return (left < 0 || rounds_ < left / 4) && rounds_ < (gone_round_.arrivals + std::max<int64_t>(left, 0)) / 32 && !graph_alive() && !writes_look_alikes(trace_);
}

HookResult Recorder::record_loops(vm::ThreadView& view, Op op, int arg) {
  const vm::Inst* target = vm::jump_target(view.ip);
  auto backward = [&]() {
    int unit = vm::unit_of(top().code, target);
    bool root = frames_.size() == 1 && unit == root_unit_;
    if (root) return true;
    const bool iterates = vm::opcode(target) == Op::kForIter;  // the iterator is on top
    return count_loop(unit, top().long_loops.count(unit) != 0, iterates ? top().slots.back() : kNoValue);
  };
  switch (op) {
    case Op::kJumpForward: return HookResult::kContinue;
    case Op::kJumpBackward:
    case Op::kJumpBackwardNoInterrupt:
      backward();
      return HookResult::kContinue;
    case Op::kPopJumpIfFalse:
    case Op::kPopJumpIfTrue: {
      bool truth = false;
      HookResult result;
      if (!decide(view, peek(1), true, &truth, &result)) return result;
      bool taken = truth == (op == Op::kPopJumpIfTrue);
      if (taken && vm::is_backward_jump(view.ip) && !backward()) return HookResult::kContinue;
      pop(view, 1);
      return taken ? jump(view, target) : next(view);
    }
    case Op::kPopJumpIfNone:
    case Op::kPopJumpIfNotNone: {
      V v = peek(1);
      V same = identity(v, constant(Py_None));
      bool none = concrete(v) == Py_None;
      if (!is_const(same)) {
        branches_ = true;
        guard(none ? IrOp::k_guard_true : IrOp::k_guard_false, {at(same).ref});
      }
      bool taken = none == (op == Op::kPopJumpIfNone);
      if (taken && vm::is_backward_jump(view.ip) && !backward()) return HookResult::kContinue;
      pop(view, 1);
      return taken ? jump(view, target) : next(view);
    }
    case Op::kJumpIfFalseOrPop:
    case Op::kJumpIfTrueOrPop: {
      bool truth = false;
      HookResult result;
      if (!decide(view, peek(1), false, &truth, &result)) return result;
      if (truth == (op == Op::kJumpIfTrueOrPop)) return jump(view, target);
      pop(view, 1);
      return next(view);
    }
    case Op::kGetIter: {
      V v = peek(1);
      PyObject* o = concrete(v);
      PyTypeObject* type = Py_TYPE(o);
      if (is_tensor(o)) return call_dunder(view, "__iter__", {v}, IrOp::k_get_iter, 1, vm::Continuation::kPush);
      if (type->tp_iter == PyObject_SelfIter) {
        know_type(v);
        return next(view);
      }
      if (iterates_natively(type) && (at(v).kind != Value::kObject || know_type(v))) {
        if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) guard_type_unchanged(type);
        std::vector<V> items;
        bool items_known = iteration_items(v, &items);
        if (done_) return HookResult::kContinue;
        if (items_known) {
          V iterator = take_iterator(builtin("iter"), {v}, std::move(items));
          if (iterator == kNoValue) return raised(view);
          pop(view, 1);
          push(view, iterator);
          return next(view);
        }
        bool ok = true;
        V iterator = run_residual(IrOp::k_get_iter_known, {v}, 0, &ok);
        if (!ok) return raised(view);
        at(iterator).type_known = true;
        pop(view, 1);
        push(view, iterator);
        return next(view);
      }
      return call_dunder(view, "__iter__", {v}, IrOp::k_get_iter, 1, vm::Continuation::kIter);
    }
    case Op::kForIter: {
      V iterator = peek(1);
      PyObject* it = concrete(iterator);
      if (at(iterator).kind == Value::kIterator) {
        PyObject* object = Py_TYPE(it)->tp_iternext(it);
        if (object == nullptr && PyErr_Occurred()) return raised(view);
        size_t position = at(iterator).position;
        bool fits = object ? position < at(iterator).items.size() && same_item(at(iterator).items[position], object) : position >= at(iterator).items.size();
        if (!fits) give_up(Abort::k_shadow_mismatch, "iterator");
        if (object == nullptr) {
          end_iterator(iterator);
          pop(view, 1);
          return jump(view, target);
        }
        V item = fits ? renew(at(iterator).items[position], object) : this->object(kNoRef, object);
        at(iterator).position++;
        changed(iterator);
        push(view, item);
        Py_DECREF(object);
        return next(view);
      }
      if (at(iterator).kind == Value::kGenerator) {
        if (resume(view, iterator, vm::Continuation::kForGenerator)) return HookResult::kReload;
        return entered_error_ ? HookResult::kError : HookResult::kContinue;
      }
      auto known_iterator = iterators_.find(iterator);
      if (known_iterator == iterators_.end() && !plain_iterator(it)) {
        know_type(iterator);
        PyObject* method = _PyType_Lookup(Py_TYPE(it), next_name());
        if (method != nullptr && PyFunction_Check(method)) {
          guard_type_unchanged(Py_TYPE(it));
          if (done_) return HookResult::kContinue;
          if (enter_function(view, constant(method), {iterator}, nullptr, 0, vm::Continuation::kNext)) return HookResult::kReload;
          if (done_) return HookResult::kContinue;
        }
      } else {
        know_type(iterator);
      }
      if (done_) return HookResult::kContinue;
      bool plain = known_iterator != iterators_.end() || plain_iterator(it);
      IrOp ir_op = plain ? IrOp::k_iter_next_known : IrOp::k_iter_next;
      bool ok = true;
      V item = run_residual(ir_op, {iterator}, 0, &ok);
      if (!ok) return raised(view);
      PyObject* object = concrete(item);
      const vm::Inst* after = vm::next(view.ip);
      std::vector<V> slots = top().slots;
      if (known_iterator != iterators_.end() && iterators_.count(iterator)) {
        std::vector<V> items = iterators_[iterator].items;
        size_t& position = iterators_[iterator].position;
        if (object != nullptr && position < items.size() && same_item(items[position], object)) {
          item = renew(items[position++], object);
        } else if (!(object == nullptr && position >= items.size())) {
          give_up(Abort::k_shadow_mismatch, "iterator");
          return HookResult::kReload;
        }
      } else if (object != nullptr) {
        slots.pop_back();
        trace_.add(IrOp::k_guard_bound, Type::kVoid, {at(item).ref}, 0, snapshot_at(vm::unit_of(top().code, target), slots));
        at(item).is_result = true;
      } else {
        branches_ = true;
        slots.push_back(item);
        Ref none = const_ref(nullptr);
        // The state when there is a next item after all: behind this instruction, with the item pushed. Its slot must not read as null.
        trace_.add(IrOp::k_guard_is, Type::kVoid, {at(item).ref, none}, -1, snapshot_with_item(vm::unit_of(top().code, after), slots, item));
      }
      if (object == nullptr) {
        if (frames_.size() == 1 && current_unit_ == root_unit_) {
          give_up(Abort::k_loop_left);
          return HookResult::kContinue;
        }
        pop(view, 1);
        return jump(view, target);
      }
      push(view, item);
      return next(view);
    }
    default: break;
  }
  give_up(Abort::k_opcode, std::string(vm::op_name(op)));
  return HookResult::kContinue;
}

int32_t Recorder::snapshot_with_item(int unit, std::vector<V> slots, V item) {
  PyObject* kept = at(item).concrete;
  at(item).concrete = Py_None;  // only tested for null
  int32_t result = snapshot_at(unit, std::move(slots));
  at(item).concrete = kept;
  return result;
}

PyObject* Recorder::next_name() {
  static PyObject* name = PyUnicode_InternFromString("__next__");
  return name;
}

// The known item stands for this object: identical, or an equal fresh tuple or number (enumerate, zip, range make new ones).
bool Recorder::same_item(V v, PyObject* object) {
  PyObject* mine = concrete(v);
  if (mine == object) return true;
  if (mine == nullptr || Py_TYPE(mine) != Py_TYPE(object)) return false;
  if (PyLong_CheckExact(mine)) return PyObject_RichCompareBool(mine, object, Py_EQ) == 1;
  if (PyTuple_CheckExact(mine) && at(v).kind == Value::kTuple && PyTuple_GET_SIZE(mine) == PyTuple_GET_SIZE(object)) {
    std::vector<V> items = at(v).items;
    for (size_t i = 0; i < items.size(); i++)
      if (!same_item(items[i], PyTuple_GET_ITEM(object, i))) return false;
    return true;
  }
  return false;
}

// The known item, standing for the equal object that the iterator has just made.
V Recorder::renew(V v, PyObject* object) {
  if (concrete(v) == object) return v;
  if (at(v).kind == Value::kTuple) {
    std::vector<V> items = at(v).items;
    for (size_t i = 0; i < items.size(); i++) items[i] = renew(items[i], PyTuple_GET_ITEM(object, i));
    return virtual_object(Value::kTuple, std::move(items), object);
  }
  return constant(object);
}

}  // namespace dynvm::tracer
