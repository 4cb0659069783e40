// Recording of generators, and of builtins that consume one whole. See recorder.h.
#include <algorithm>

#include "tracer/generator_ends.h"
#include "tracer/object_parts.h"
#include "tracer/recorder.h"
#include "runtime/base/heuristics.h"
#include "runtime/exec/execute.h"
#include "vm/objects.h"

namespace dynvm::tracer {

using ir::kNoRef;
using vm::HookResult;
using vm::Op;

// A generator that is suspended, perhaps inside of a `try` or `with`: what drops it runs that code, and has to be the last one to hold it.
bool would_run_handlers(PyObject* object) {
  if (object == nullptr || !PyGen_CheckExact(object)) return false;
  PyObject* code = PyObject_GetAttrString(object, "gi_code");
  PyObject* suspended = PyObject_GetAttrString(object, "gi_suspended");
  const bool result = code != nullptr && suspended == Py_True && vm::has_handlers(reinterpret_cast<PyCodeObject*>(code));
  if (code == nullptr || suspended == nullptr) PyErr_Clear();
  Py_XDECREF(code);
  Py_XDECREF(suspended);
  return result;
}

// Calling a generator function runs none of its code but the copying of cells: the generator stays virtual. kNoValue: not such a call, or one
// that is not followed. One that dies inside of a `try` or `with` would have to run the code there: it is a mortal (mortals.cpp).
V Recorder::make_generator(V function, const std::vector<V>& args, PyObject* kwnames) {
  auto* f = reinterpret_cast<PyFunctionObject*>(concrete(function));
  auto* code = reinterpret_cast<PyCodeObject*>(f->func_code);
  if ((code->co_flags & kGeneratorFlags) != CO_GENERATOR || lessons_.opaque_consumers.count({code, 0}) != 0) return kNoValue;
  if (!know_function(function)) return kNoValue;
  std::vector<V> locals;
  if (!bind_arguments(function, args, kwnames, &locals) || done_) return kNoValue;
  const vm::Inst* inst = vm::first_inst(code, true);
  for (; vm::opcode(inst) != Op::kReturnGenerator; inst = vm::next(inst)) {
    int arg = vm::oparg(inst);
    if (vm::opcode(inst) == Op::kMakeCell) {
      locals[arg] = make_cell(locals[arg]);
      if (locals[arg] == kNoValue) {
        PyErr_Clear();
        return kNoValue;
      }
    } else if (vm::opcode(inst) == Op::kCopyFreeVars) {
      for (int i = 0; i < arg; i++) locals[locals.size() - arg + i] = free_variable(function, i);
    } else {
      return kNoValue;
    }
  }
  std::vector<PyObject*> objects;
  for (V v : args) objects.push_back(concrete(v));
  PyObject* made = PyObject_Vectorcall(concrete(function), objects.data(), objects.size() - (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), kwnames);
  if (made == nullptr) {
    PyErr_Clear();
    return kNoValue;
  }
  objects.clear();
  for (V v : locals) objects.push_back(concrete(v));
  vm::set_generator_locals(made, objects.data());
  std::vector<V> items{function};
  items.insert(items.end(), locals.begin(), locals.end());
  V v = virtual_object(Value::kGenerator, std::move(items), made);
  at(v).position = static_cast<size_t>(vm::lasti_of(code, inst)) + 1;
  Py_DECREF(made);
  return v;
}

// A class of contextlib's whose instances stand for a generator in a `with`. The trace keeps them virtual: what they hold of the generator and its arguments need not be made.
bool is_generator_manager(PyTypeObject* type) {
  static PyObject* const manager = Py_XNewRef(parts::qualified("contextlib", "_GeneratorContextManager"));
  return manager != nullptr && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(manager));
}

// Of a class that object.__new__ makes instances of. kNoValue: an exception is set.
V Recorder::virtual_instance(PyTypeObject* type) {
  PyObject *const cls = reinterpret_cast<PyObject*>(type), *made = nullptr;
  int truth = 0;
  if (!runtime::execute(ir::Op::k_build_instance, 0, &cls, 1, nullptr, &made, &truth)) return kNoValue;
  const V instance = virtual_object(Value::kInstance, {}, made);
  note_mortal(made);
  Py_DECREF(made);
  return instance;
}

// Goes on inside a suspended virtual generator, to which None is sent; what `k` needs is on the caller's stack. False: given up.
bool Recorder::resume(vm::ThreadView& view, V generator, vm::Continuation k) {
  if (at(generator).running || static_cast<int>(frames_.size()) > base::heuristics().max_depth) {
    give_up(at(generator).running ? Abort::k_generator_frame : Abort::k_call_depth);
    return false;
  }
  V function = at(generator).items[0];
  ShadowFrame frame;
  frame.function = concrete(function);
  frame.function_value = function;
  frame.code = reinterpret_cast<PyCodeObject*>(reinterpret_cast<PyFunctionObject*>(frame.function)->func_code);
  frame.generator = generator;
  frame.continuation = k;
  frame.call_unit = current_unit_;
  frame.nlocals = frame.code->co_nlocalsplus;
  frame.slots.assign(at(generator).items.begin() + 1, at(generator).items.end());
  frame.frame = vm::resume_generator(view, concrete(generator), k);
  if (frame.frame == nullptr) {
    give_up(Abort::k_exception, "RecursionError");
    entered_error_ = true;
    return false;
  }
  follow(std::move(frame));
  at(generator).running = true;
  changed(generator);
  push(view, constant(Py_None));
  return true;
}

// The frame on top is about to yield: its state goes into its generator, the yielded value onto the caller's stack.
void Recorder::suspend(vm::ThreadView& view) {
  V value = peek(1);
  shadow_pop(1);
  V generator = top().generator;
  int position = vm::lasti_of(top().code, view.ip) + 1;
  Value& state = at(generator);
  state.items.resize(1);
  state.items.insert(state.items.end(), top().slots.begin(), top().slots.end());
  state.position = static_cast<size_t>(position);
  state.running = false;
  changed(generator);
  const bool asked = top().continuation == vm::Continuation::kAsked;
  frames_.pop_back();
  if (asked) shadow_pop(3);
  shadow_push(value);
}

// The frame on top has returned. If it is a generator's, whoever still holds that has one that gives nothing more.
void Recorder::generator_returns() {
  const V generator = top().generator;
  frames_.pop_back();
  if (generator == kNoValue) return;
  at(generator).position = Value::kOver;
  changed(generator);
}

// The frame on top is that of a generator that next() has resumed, and returns: the call raises.
HookResult Recorder::generator_ends(vm::ThreadView& view) {
  const HookResult result = raise(view, constant(PyExc_StopIteration), 1);
  if (!done_) generator_returns();
  return result;
}

bool Recorder::consume(vm::ThreadView& view, Consumer::Kind kind, V generator, int pops, int depth) {
  Consumer consumer;
  consumer.place = {top().code, current_unit_};
  if (lessons_.opaque_consumers.count(consumer.place) != 0) return false;
  const std::vector<V>& state = at(generator).items;
  if (state.size() > 1 && advances_unseen(state[1])) return false;  // where a generator expression has its iterator
  consumer.kind = kind;
  consumer.pops = pops;
  consumer.depth = depth;
  consumer.snapshot = snapshot();
  if (done_ || !resume(view, generator, vm::Continuation::kPush)) return false;
  consumer.frame = view.frame;
  consumers_.push_back(std::move(consumer));
  return true;
}

PyObject* end_of_generator() { return reinterpret_cast<PyObject*>(&PyCallIter_Type); }

static PyObject* give(PyObject*, PyObject* given) {
  if (given != end_of_generator()) return Py_NewRef(given);
  PyErr_SetNone(PyExc_StopIteration);
  return nullptr;
}

// Asks a generator. Its end without a value has something that stands for it.
static PyObject* ask(PyObject*, PyObject* generator) {
  PyObject* result = nullptr;
  if (PyIter_Send(generator, Py_None, &result) != PYGEN_RETURN) return result;
  if (result != Py_None) return vm::raise_stop_iteration(result), nullptr;
  Py_DECREF(result);
  return Py_NewRef(end_of_generator());
}

static PyObject* asking_function() {
  static PyMethodDef method{"ask_generator", ask, METH_O, nullptr};
  static PyObject* const function = PyCFunction_New(&method, nullptr);
  return function;
}

PyObject* given_by_next() {
  static PyMethodDef method{"given_by_next", give, METH_O, nullptr};
  static PyObject* const function = PyCFunction_New(&method, nullptr);
  return function;
}

// next() of a generator that is not followed. Where one ends, as that of a context manager does when its `with` is left, the exception is the trace's to catch: the call does not
// raise it, and where something else comes the interpreter calls given_by_next with it in the place of next. To ask a generator that has ended once more,
// as the evaluator does to raise, and as an exit from the handler does, changes nothing.
HookResult Recorder::call_next(vm::ThreadView& view, V callee, V generator, int pops) {
  const std::pair<PyCodeObject*, int> place{top().code, current_unit_};
  const auto asked = lessons_.asked_generators.find(place);
  const bool plain = consumers_.empty() && callbacks_.empty() && !handling_.open, ends = plain && asked != lessons_.asked_generators.end() && !asked->second;
  const std::vector<V> all{ends ? constant(asking_function()) : callee, generator};
  bool ok = true;
  const V result = run_residual(ir::Op::k_call, all, -1, &ok);
  if (!ok) {
    if (plain && !done_ && PyErr_ExceptionMatches(PyExc_StopIteration) && lessons_.asked_generators.emplace(place, false).second) give_up(Abort::k_generator_ends);
    return done_ ? HookResult::kError : raised(view);
  }
  const bool over = ends && concrete(result) == end_of_generator();
  if (!over) lessons_.asked_generators[place] = true;
  if (!ends) return finish_call(view, result, pops);
  const std::vector<V> before = top().slots;
  std::replace(top().slots.end() - pops, top().slots.end(), callee, constant(given_by_next()));
  top().slots.back() = result;
  begin_step();
  guard(over ? ir::Op::k_guard_true : ir::Op::k_guard_false, {emit(ir::Op::k_is_same, ir::Type::kBool, {as_object(result), const_ref(end_of_generator())})}, ir::kTruth);
  top().slots = before;
  begin_step();
  if (!over) effect();
  if (!over) return finish_call(view, result, pops);
  return done_ ? HookResult::kContinue : raise(view, constant(PyExc_StopIteration));
}

// A generator that an instruction takes as a whole, `depth` below the top, or at most so many of its items: a tuple takes its place, and then the
// instruction comes again. Nothing: it is none, or is not followed.
std::optional<HookResult> Recorder::consume_operand(vm::ThreadView& view, V generator, int depth, size_t most) {
  if (at(generator).kind != Value::kGenerator) return std::nullopt;
  if (consume(view, Consumer::kTuple, generator, 0, depth)) {
    consumers_.back().most = most;
    return HookResult::kReload;
  }
  if (entered_error_) return HookResult::kError;
  if (done_) return HookResult::kContinue;
  return std::nullopt;
}

HookResult Recorder::consumer_yield(vm::ThreadView& view) {
  V v = peek(1);
  Consumer::Kind kind = consumers_.back().kind;
  bool truth = false;
  if (kind == Consumer::kAll || kind == Consumer::kAny) {
    HookResult result;
    if (!decide(view, v, false, &truth, &result)) return done_ && result == HookResult::kContinue ? drain(view) : result;
    if (truth == (kind == Consumer::kAny)) return consumer_end(view, true, truth);
  }
  consumers_.back().items.push_back(v);
  consumers_.back().objects.push_back(Py_NewRef(concrete(v)));
  if (consumers_.back().objects.size() == consumers_.back().most) return consumer_end(view, true, false);
  pop(view, 1);
  push(view, constant(Py_None));
  return next(view);
}

void Recorder::drop_consumer() {
  for (PyObject* object : consumers_.back().objects) Py_DECREF(object);
  consumers_.pop_back();
}

// The call of sum() whose generator has given these items. Steals the tuple of them.
HookResult Recorder::sum_items(vm::ThreadView& view, std::vector<V> items, PyObject* tuple, int pops) {
  V all = virtual_object(Value::kTuple, std::move(items), tuple);
  Py_DECREF(tuple);
  bool tensors = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) tensors = tensors || is_tensor(PyTuple_GET_ITEM(tuple, i));
  if (!tensors) return residual_call(view, ir::Op::k_call, constant(builtin("sum")), {all}, nullptr, pops);
  HookResult result = torch_call(view, constant(builtin("sum")), {all}, nullptr, pops);
  if (executed_ || result == HookResult::kError) return result;
  PyObject* made = PyObject_CallOneArg(builtin("sum"), tuple);  // given up before: the generator cannot be asked again
  if (made == nullptr) return HookResult::kError;
  V value = object(kNoRef, made, true);
  Py_DECREF(made);
  return finish_call(view, value, pops);
}

// The generator is exhausted, and its frame goes; or, early, its consumer has what it needs, and the generator stays suspended behind its yield, since it
// may be asked again. The call's result is pushed.
HookResult Recorder::consumer_end(vm::ThreadView& view, bool early, bool truth) {
  Consumer& consumer = consumers_.back();
  PyObject* made = nullptr;
  auto n = static_cast<Py_ssize_t>(consumer.objects.size());
  switch (consumer.kind) {
    case Consumer::kSum:
    case Consumer::kTuple: made = PyTuple_New(n); break;
    case Consumer::kList: made = PyList_New(n); break;
    case Consumer::kAll: made = Py_NewRef(early ? (truth ? Py_True : Py_False) : Py_True); break;
    case Consumer::kAny: made = Py_NewRef(early ? (truth ? Py_True : Py_False) : Py_False); break;
    case Consumer::kScript: case Consumer::kTorch: break;  // its frames are ordinary ones
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    if (PyTuple_CheckExact(made)) PyTuple_SET_ITEM(made, i, Py_NewRef(consumer.objects[i]));
    if (consumer.kind == Consumer::kList) PyList_SET_ITEM(made, i, Py_NewRef(consumer.objects[i]));
  }
  if (early && !done_) {
    suspend(view);
    shadow_pop(1);
  }
  if (early) vm::suspend_frame(view);
  else vm::drop_frame(view);
  const int consumer_depth = consumer.depth;
  if (done_) {
    if (consumer.depth > 0) {
      drop_consumer();
      Py_SETREF(view.sp[-consumer_depth], made);
      return HookResult::kReload;
    }
    for (int i = 0; i < consumer.pops; i++) Py_XDECREF(*--view.sp);
    if (consumer.kind == Consumer::kSum) Py_SETREF(made, PyObject_CallOneArg(builtin("sum"), made));
    drop_consumer();
    if (made == nullptr) return HookResult::kError;
    *view.sp++ = made;
    view.ip = vm::next(view.ip);
    return HookResult::kReload;
  }
  if (!early) generator_returns();
  if (consumer.kind == Consumer::kSum) {
    current_snapshot_ = consumer.snapshot;
    std::vector<V> items = std::move(consumer.items);
    int pops = consumer.pops;
    drop_consumer();
    return sum_items(view, std::move(items), made, pops);
  }
  if (consumer_depth > 0) {
    V arguments = virtual_object(Value::kTuple, std::move(consumer.items), made);
    Py_DECREF(made);
    drop_consumer();
    replace_operand(view, consumer_depth, arguments);
    return HookResult::kReload;  // the call itself is still to come
  }
  pop(view, consumer.pops);
  V result;
  if (consumer.kind == Consumer::kTuple || consumer.kind == Consumer::kList) {
    result = virtual_object(consumer.kind == Consumer::kTuple ? Value::kTuple : Value::kList, consumer.items, made);
  } else {
    result = constant(made);
  }
  Py_DECREF(made);
  drop_consumer();
  push(view, result);
  return next(view);
}

// Recording has been given up inside a consumed generator: its consumer is no Python frame, so its yields are still seen to here.
HookResult Recorder::drain(vm::ThreadView& view) {
  if (!in_consumer(view)) return HookResult::kContinue;
  Consumer& consumer = consumers_.back();
  if (consumer.kind == Consumer::kScript) {
    if (vm::opcode(view.ip) == Op::kReturnValue) drop_consumer();
    return HookResult::kContinue;
  }
  switch (vm::opcode(view.ip)) {
    case Op::kReturnValue: return consumer_end(view, false, false);
    case Op::kYieldValue: {
      PyObject* object = view.sp[-1];
      if (consumer.kind == Consumer::kAll || consumer.kind == Consumer::kAny) {
        int truth = PyObject_IsTrue(object);
        if (truth < 0) return HookResult::kError;
        if ((truth == 1) == (consumer.kind == Consumer::kAny)) return consumer_end(view, true, truth == 1);
      }
      consumer.objects.push_back(object);  // takes the stack's reference
      view.sp[-1] = Py_NewRef(Py_None);
      if (consumer.objects.size() == consumer.most) return consumer_end(view, true, false);
      view.ip = vm::next(view.ip);
      return HookResult::kReload;
    }
    default: return HookResult::kContinue;
  }
}

}  // namespace dynvm::tracer
