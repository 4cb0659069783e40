// Calls that change how Python's frames, or torch's operators, are run from then on: what a recording cannot go
// through. See recorder.h.
//
// torch's own compiler (torch.compile, torch.cond outside of it, torch.export) gives the interpreter a frame
// evaluation function (PEP 523) while a compiled function is called. That
// one is asked about each Python frame: it may run other code instead. So a function that puts one there is called,
// not followed; where another one than dynvm's
// is there, nothing is recorded and no trace is entered (manager.cpp). Which functions these are is learned: the
// first recording that follows one comes to the call that gives
// torch a callback.
#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "tracer/recorder.h"

namespace dynvm::tracer {
namespace {

struct Switch {
  const char* name;     // as callable_name gives it
  Abort reason;
  bool unless_none;     // its argument None changes nothing: no callback is there while a trace runs
};

constexpr Switch kSwitches[] = {
    {"torch._C._dynamo.eval_frame.set_eval_frame", Abort::k_evaluation_function, true},
    {"torch._C.impl", Abort::k_kernel_registered, false},  // of a torch.library.Library
    {"torch._C.impl_with_aoti_compile", Abort::k_kernel_registered, false},
    {"torch._C.fallback", Abort::k_kernel_registered, false},
    {"torch._C.reset", Abort::k_kernel_registered, false},
};

// Code that has called such a function. Kept for good: there are few.
auto& switching_codes = *new std::unordered_set<PyObject*>;

}  // namespace

// Does this Python function give the interpreter another frame evaluation function while it runs?
bool Recorder::switches_evaluation(PyObject* function) {
  return switching_codes.count(reinterpret_cast<PyFunctionObject*>(function)->func_code) != 0;
}

// The C function `name` is about to be called. False: given up, since what comes behind it cannot be recorded.
bool Recorder::may_follow(const std::string& name, const std::vector<V>& args) {
  if (!name.starts_with("torch._C.")) return true;
  const auto is_named = [&](const Switch& each) { return name == each.name; };
  const auto found = std::find_if(std::begin(kSwitches), std::end(kSwitches), is_named);
  if (found == std::end(kSwitches)) return true;
  if (found->unless_none && args.size() == 1 && concrete(args[0]) == Py_None) {
    if (!promote(args[0])) guard(ir::Op::k_guard_is, {as_object(args[0]), const_ref(Py_None)}, -1);
    return !done_;
  }
  const auto code = reinterpret_cast<PyObject*>(top().code);
  if (found->reason == Abort::k_evaluation_function && (frames_.size() == 1 || !switching_codes.insert(code).second)) {
    give_up(Abort::k_foreign_evaluation, "a callback for frames");
    return false;
  }
  if (found->reason == Abort::k_evaluation_function) Py_INCREF(code);
  give_up(found->reason, name);
  return false;
}

}  // namespace dynvm::tracer
