// Recording of generators that a builtin consumes whole. See Consumer in recorder.h.
#include "tracer/heuristics.h"
#include "tracer/recorder.h"

namespace dynvm::tracer {

using vm::HookResult;
using vm::Op;

// Calling a generator function runs none of its code: the generator stays virtual. kNoValue: not such a call.
V Recorder::make_generator(V function, const std::vector<V>& args, PyObject* kwnames) {
  auto* f = reinterpret_cast<PyFunctionObject*>(concrete(function));
  auto* code = reinterpret_cast<PyCodeObject*>(f->func_code);
  // Generator functions proper run on as generators; only expressions are consumed in one go.
  if (PyUnicode_CompareWithASCIIString(code->co_name, "<genexpr>") != 0) return kNoValue;
  if (!(code->co_flags & CO_GENERATOR) || (kwnames != nullptr && PyTuple_GET_SIZE(kwnames) > 0)) return kNoValue;
  if (functions_.count(function) == 0 && !promote(function)) return kNoValue;
  std::vector<V> locals;
  if (!bind_arguments(function, args, nullptr, &locals) || done_) return kNoValue;
  std::vector<PyObject*> objects;
  for (V v : args) objects.push_back(concrete(v));
  PyObject* made = PyObject_Vectorcall(concrete(function), objects.data(), objects.size(), nullptr);
  if (made == nullptr) {
    PyErr_Clear();
    return kNoValue;
  }
  std::vector<V> items{function};
  items.insert(items.end(), args.begin(), args.end());
  V v = virtual_object(Value::kGenerator, std::move(items), made);
  Py_DECREF(made);
  return v;
}

bool Recorder::consume(vm::ThreadView& view, Consumer::Kind kind, V generator, int pops) {
  V function = at(generator).items[0];
  std::vector<V> args(at(generator).items.begin() + 1, at(generator).items.end());
  std::vector<V> locals;
  if (static_cast<int>(frames_.size()) > heuristics().max_depth) return false;
  if (!bind_arguments(function, args, nullptr, &locals) || done_) return false;
  Consumer consumer;
  consumer.kind = kind;
  consumer.snapshot = snapshot();
  if (done_) return false;
  if (!push_callee(view, function, std::move(locals), pops, vm::Continuation::kPush)) return false;
  consumer.frame = view.frame;
  consumers_.push_back(std::move(consumer));
  return true;
}

HookResult Recorder::consumer_yield(vm::ThreadView& view) {
  V v = peek(1);
  Consumer::Kind kind = consumers_.back().kind;
  bool truth = false;
  if (kind == Consumer::kAll || kind == Consumer::kAny) {
    HookResult result;
    if (!decide(view, v, false, &truth, &result)) return result;  // given up: drain() goes on from here
    if (truth == (kind == Consumer::kAny)) return consumer_end(view, true, truth);
  }
  consumers_.back().items.push_back(v);
  consumers_.back().objects.push_back(Py_NewRef(concrete(v)));
  pop(view, 1);
  push(view, constant(Py_None));
  return next(view);
}

void Recorder::drop_consumer() {
  for (PyObject* object : consumers_.back().objects) Py_DECREF(object);
  consumers_.pop_back();
}

// The generator is exhausted, or all/any has its answer: its frame goes, the call's result is pushed.
HookResult Recorder::consumer_end(vm::ThreadView& view, bool early, bool truth) {
  Consumer& consumer = consumers_.back();
  PyObject* made = nullptr;
  auto n = static_cast<Py_ssize_t>(consumer.objects.size());
  switch (consumer.kind) {
    case Consumer::kTuple: made = PyTuple_New(n); break;
    case Consumer::kList: made = PyList_New(n); break;
    case Consumer::kAll: made = Py_NewRef(early ? (truth ? Py_True : Py_False) : Py_True); break;
    case Consumer::kAny: made = Py_NewRef(early ? (truth ? Py_True : Py_False) : Py_False); break;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    if (consumer.kind == Consumer::kTuple) PyTuple_SET_ITEM(made, i, Py_NewRef(consumer.objects[i]));
    if (consumer.kind == Consumer::kList) PyList_SET_ITEM(made, i, Py_NewRef(consumer.objects[i]));
  }
  vm::drop_frame(view);
  if (done_) {
    drop_consumer();
    *view.sp++ = made;
    view.ip = vm::next(view.ip);
    return HookResult::kReload;
  }
  frames_.pop_back();
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

// Recording has been given up inside a consumed generator: its frame is no generator's, so its yields are still seen to here.
HookResult Recorder::drain(vm::ThreadView& view) {
  if (!in_consumer(view)) return HookResult::kContinue;
  Consumer& consumer = consumers_.back();
  switch (vm::opcode(view.ip)) {
    case Op::kReturnGenerator:
      *view.sp++ = Py_NewRef(Py_None);
      view.ip = vm::next(view.ip);
      return HookResult::kReload;
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
      view.ip = vm::next(view.ip);
      return HookResult::kReload;
    }
    default: return HookResult::kContinue;
  }
}

}  // namespace dynvm::tracer
