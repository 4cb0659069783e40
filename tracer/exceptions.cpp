// Recording of exceptions that are raised and caught inside of the trace. See recorder.h.
//
// From the raise until the exception has been let go of, by the end of its handler or of a `finally`, the recording is one step: guards go back
// to before the raise, so that the interpreter raises again with traceback, context and sys.exc_info() as they are. The trace itself makes no
// exception: it knows which it is, and what is decided by its class. So nothing in there may look at the object (Value::caught), and no guard may
// follow an effect; where that happens the trace ends before the raise.
#include "tracer/recorder.h"

namespace dynvm::tracer {

using ir::kNoRef;
using vm::HookResult;
using vm::Op;
using IrOp = ir::Op;

namespace {

// Does calling the class run no Python code? (What the arguments are is not asked: they are kept.)
bool constructs_natively(PyObject* o) {
  auto* type = reinterpret_cast<PyTypeObject*>(o);
  const auto in_c = [type](const char* name) {
    PyObject* found = _PyType_Lookup(type, interned(name));
    return found != nullptr && !PyFunction_Check(found);
  };
  return Py_TYPE(type) == &PyType_Type && in_c("__new__") && in_c("__init__");
}

// Does the evaluator pass an exception on that leaves a frame with this continuation, whatever it is?
bool passes_on(vm::Continuation continuation) {
  switch (continuation) {
    case vm::Continuation::kAttribute:
    case vm::Continuation::kMethodAttribute:
    case vm::Continuation::kNext:
    case vm::Continuation::kForGenerator:
    case vm::Continuation::kSendGenerator: return false;
    default: return true;
  }
}

}  // namespace

// Is it a function in Python that only raises?
bool Recorder::never_returns(PyObject* function) {
  return PyFunction_Check(function) && !vm::may_return(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function)));
}

// What torch's CUDA build raises on a machine without a driver when it is asked whether a capture is under way, each time; null where it raises nothing.
static PyObject* raised_without_driver() {
  static PyObject* const raised = [] {
    PyObject* module = PyImport_ImportModule("torch._C");
    PyObject* answer = module != nullptr ? PyObject_CallMethod(module, "_cuda_isCurrentStreamCapturing", nullptr) : nullptr;
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    Py_XDECREF(answer);
    Py_XDECREF(module);
    return type;
  }();
  return raised;
}

// The class of what a C function is known to raise, under guards; null where it is not known to.
PyObject* Recorder::known_to_raise(const std::string& name, const std::vector<V>& args) {
  if (name == "builtins.getattr" && args.size() == 2 && promote_name(args[1]))
    return look_up(args[0], concrete(args[1])).kind == Attribute::kMissing ? PyExc_AttributeError : nullptr;
  if (name == "torch._C._cuda_isCurrentStreamCapturing" && args.empty()) return raised_without_driver();
  if (name == "builtins.next" && args.size() == 1 && at(args[0]).kind == Value::kIterator && at(args[0]).position >= at(args[0]).items.size()) {
    end_iterator(args[0]);
    return PyExc_StopIteration;
  }
  return nullptr;
}

// The current instruction is going to raise `exc`: an instance, or a class that the evaluator makes one of; or, in the place of a call, the return of the frames that the call entered is (left:
// how many). It carries that out itself; step() meets the recording again at the handler.
HookResult Recorder::raise(vm::ThreadView& view, V exc, size_t left) {
  size_t at_frame = frames_.size() - left;
  int unit = left > 0 ? frames_[at_frame].call_unit : current_unit_;
  vm::Handler handler;
  for (;;) {
    const ShadowFrame& frame = frames_[--at_frame];
    if (vm::find_handler(frame.code, unit, &handler)) break;
    const bool consumed = !consumers_.empty() && consumers_.back().frame == frame.frame;
    if (at_frame == 0 || frame.generator != kNoValue || consumed || !passes_on(frame.continuation)) {
      give_up(Abort::k_exception, "nothing in the trace catches it");
      return HookResult::kContinue;
    }
    unit = frame.call_unit;
  }
  if (!handling_.open) {
    const int32_t before = snapshot();
    if (done_) return HookResult::kContinue;
    handling_ = Handling{};
    handling_.open = true;
    handling_.snapshot = before;
    handling_.frames = frames_;
    handling_.begin = step_begin_;
    handling_.handled_before = view.tstate->exc_info->exc_value;
  }
  handling_.raised = exc;
  handling_.frame = at_frame;
  handling_.handler = handler;
  return HookResult::kContinue;
}

// The evaluator stands at the handler.
bool Recorder::enter_handler(vm::ThreadView& view) {
  if (handling_.raised == kNoValue || handling_.frame >= frames_.size() || frames_[handling_.frame].frame != view.frame) return false;
  frames_.resize(handling_.frame + 1);
  auto& slots = top().slots;
  slots.resize(static_cast<size_t>(top().nlocals + handling_.handler.level));
  if (handling_.handler.push_lasti) slots.push_back(constant(view.sp[-2]));
  V exc = std::exchange(handling_.raised, kNoValue);
  if (PyExceptionClass_Check(concrete(exc)) || concrete(exc) != view.sp[-1]) {
    exc = object(kNoRef, view.sp[-1], false);
    at(exc).type_known = true;
  }
  at(exc).caught = true;
  slots.push_back(exc);
  return true;
}

// Has the trace let go of all exceptions that it caught?
bool Recorder::all_handled() {
  if (handling_.raised != kNoValue || handling_.depth > 0) return false;
  for (const ShadowFrame& frame : frames_)
    for (V v : frame.slots)
      if (at(v).caught) return false;
  for (const auto& [place, v] : pending_)
    if (at(v).caught) return false;
  return true;
}

// An instance of an exception class, made by C code alone.
V Recorder::make_exception(PyObject* type, const std::vector<V>& args) {
  if (!PyExceptionClass_Check(type) || !constructs_natively(type)) return kNoValue;
  guard_type_unchanged(reinterpret_cast<PyTypeObject*>(type));
  std::vector<V> all{constant(type)};
  all.insert(all.end(), args.begin(), args.end());
  bool ok = true;
  V made = done_ ? kNoValue : run_residual(IrOp::k_call_new, all, -1, &ok);
  if (made == kNoValue || !ok) return kNoValue;
  at(made).type_known = true;
  at(made).fresh = true;
  at(made).escaped = false;
  return made;
}

HookResult Recorder::record_exceptions(vm::ThreadView& view, Op op, int arg) {
  switch (op) {
    case Op::kRaiseVarargs: {
      if (arg == 0) break;
      V exc = peek(arg);
      PyObject* o = concrete(exc);
      const bool from_none = arg == 1 || (is_const(peek(1)) && concrete(peek(1)) == Py_None);
      const bool of_class = PyExceptionClass_Check(o) && constructs_natively(o) && promote(exc);
      const bool made_here = PyExceptionInstance_Check(o) && at(exc).kind == Value::kObject && at(exc).fresh && !at(exc).escaped;
      if (done_) return HookResult::kContinue;
      if (!from_none || !(of_class || made_here || at(exc).caught)) break;
      if (of_class) guard_type_unchanged(reinterpret_cast<PyTypeObject*>(o));
      return done_ ? HookResult::kContinue : raise(view, exc);
    }
    case Op::kReraise: {
      V exc = peek(1);
      if (!at(exc).caught) break;
      return raise(view, exc);
    }
    case Op::kPushExcInfo: {
      V exc = peek(1);
      if (!at(exc).caught) break;
      PyObject* handled = view.tstate->exc_info->exc_value;
      V before = constant(Py_None);
      if (handled != nullptr && handled != Py_None) {
        before = kNoValue;
        for (const ShadowFrame& frame : frames_)
          for (V v : frame.slots)
            if (at(v).caught && concrete(v) == handled) before = v;
        if (before == kNoValue) break;
      }
      handling_.depth++;
      shadow_pop(1);
      shadow_push(before);
      shadow_push(exc);
      return HookResult::kContinue;
    }
    case Op::kCheckExcMatch: {
      V exc = peek(2), type = peek(1);
      if (!at(exc).caught || !promote_deeply(type)) break;
      const bool matches = PyErr_GivenExceptionMatches(concrete(exc), concrete(type)) != 0;
      shadow_pop(1);
      shadow_push(constant(matches ? Py_True : Py_False));
      return HookResult::kContinue;
    }
    case Op::kPopExcept:
      if (handling_.depth == 0) break;
      handling_.depth--;
      shadow_pop(1);
      return HookResult::kContinue;
    default: break;
  }
  if (!done_) give_up(Abort::k_opcode, std::string(vm::op_name(op)));
  return HookResult::kContinue;
}

}  // namespace dynvm::tracer
