// __torch_function__ of tensors' subclasses and of torch function modes. See recorder.h.
//
// A call that a subclass overrides is recorded as the call of its __torch_function__, which is followed like any function: torch is asked what it would give
// to it (bridge::Bridge::ask_override), and nothing else of the call is done. In the end that function calls torch with overrides off, and makes the result
// an instance of the subclass (as_subclass). Such an instance is a tensor value with a class: its attributes are known until its object is made
// (ir::Op::k_tensor_instance), and an exit makes that with its attributes.
//
// While a function mode has been entered (torch.set_default_device enters one for good), torch asks it first, for plain tensors and for functions without any,
// and takes it off its stack for that long. The trace follows what torch does there in C++ as if it were Python (ask_mode), so exits and exceptions meet its frame
// as they meet others; tracebacks do not show it. A torch state says how many modes there are; the class of one is guarded where it is asked.
#include <algorithm>
#include <array>
#include <string_view>

#include "tracer/object_parts.h"
#include "tracer/own_functions.h"
#include "tracer/recorder.h"

namespace dynvm::tracer {

using vm::HookResult;
using IrOp = ir::Op;

namespace {

// What torch does in C++, in Python (own_functions.h).
constexpr char kAskMode[] = R"(
from torch._C import _push_on_torch_function_stack

def ask_mode(mode, function, types, args):
    try:
        return mode.__torch_function__(function, types, args)
    finally:
        _push_on_torch_function_stack(mode)

def ask_mode_with_keywords(mode, function, types, args, keywords):
    try:
        return mode.__torch_function__(function, types, args, keywords)
    finally:
        _push_on_torch_function_stack(mode)
)";

// Is it one of torch's functions that ask no mode? Those that read and set torch's own state, but for a few.
bool asks_no_mode(std::string_view name) {
  constexpr std::string_view kOwn = "torch._C.";
  if (name.starts_with("torch.device.") || name.starts_with("torch.Generator.")) return true;
  if (!name.starts_with(kOwn) || name.find("autocast") != std::string_view::npos || name.ends_with("set_grad_enabled")) return false;
  constexpr std::array<std::string_view, 7> kOperations{"_nn.", "_fft.", "_linalg.", "_special.", "_sparse.", "_nested.", "_VariableFunctions."};
  return std::none_of(kOperations.begin(), kOperations.end(), [&](std::string_view space) { return name.substr(kOwn.size()).starts_with(space); });
}

// Does the class of this tensor override torch's functions, or of one that this list or tuple holds?
bool any_overrides(bridge::Bridge& bridge, PyObject* o) {
  if (o == nullptr || (!PyTuple_CheckExact(o) && !PyList_CheckExact(o))) return o != nullptr && bridge.overrides(o);
  return std::any_of(PySequence_Fast_ITEMS(o), PySequence_Fast_ITEMS(o) + PySequence_Fast_GET_SIZE(o), [&](PyObject* item) { return bridge.overrides(item); });
}

}  // namespace

// A getter, setter or deleter of a tensor's attribute in C, as __torch_function__ is given them: a function in Python that does the same; null for others.
PyObject* Recorder::accessor(PyObject* callee) {
  if (strcmp(Py_TYPE(callee)->tp_name, "method-wrapper") != 0) return nullptr;
  PyObject *descriptor = PyObject_GetAttrString(callee, "__self__"), *kind = PyObject_GetAttrString(callee, "__name__");
  PyObject* made = nullptr;
  if (descriptor != nullptr && kind != nullptr && Py_TYPE(descriptor) == &PyGetSetDescr_Type && callable_name(descriptor).starts_with("Tensor.")) {
    const std::string name = PyUnicode_AsUTF8(reinterpret_cast<PyDescrObject*>(descriptor)->d_name), which = PyUnicode_AsUTF8(kind);
    const std::string body = which == "__get__" ? "(tensor, *owner): return tensor." + name : which == "__set__" ? "(tensor, value): tensor." + name + " = value" : "(tensor): del tensor." + name;
    made = own_function(which + name, "def " + which + name + body + "\n");
  }
  Py_XDECREF(descriptor);
  Py_XDECREF(kind);
  PyErr_Clear();
  return made;
}

// Is a call of torch's function of that name given to a mode, or to the class of one of these tensors or of those that they hold?
bool Recorder::overridden(std::string_view name, const std::vector<V>& args) {
  if (bridge_ == nullptr) return false;
  if (torch_state_.function_modes != 0) return !asks_no_mode(name);
  if (!torch_state_.overrides) return false;
  return std::any_of(args.begin(), args.end(), [this](V v) { return any_overrides(*bridge_, concrete(v)); });
}

// Can an object of torch.Tensor become one of this subclass? Not with slots of its own, for example.
static bool can_be_instance(PyTypeObject* type) {
  static PyObject* const probe = [] {
    PyObject* torch = PyImport_ImportModule("torch");
    PyObject* made = torch != nullptr ? PyObject_CallMethod(torch, "empty", "i", 0) : nullptr;
    Py_XDECREF(torch);
    return made;
  }();
  static PyObject* const name = interned("__class__");
  PyObject* const plain = probe != nullptr ? reinterpret_cast<PyObject*>(Py_TYPE(probe)) : nullptr;
  const bool fits = probe != nullptr && PyObject_GenericSetAttr(probe, name, reinterpret_cast<PyObject*>(type)) == 0;
  if (fits) PyObject_GenericSetAttr(probe, name, plain);
  PyErr_Clear();
  return fits;
}

// The value is an instance that the trace has made, of a class of its own. False: it cannot be.
bool Recorder::note_instance(Value* value) {
  PyObject* o = value->concrete;
  PyTypeObject* type = Py_TYPE(o);
  PyObject* dict = vm::instance_dict(o);
  if (value->wrap.is_leaf && value->wrap.requires_grad) return false;  // a Parameter, or the like
  if ((dict != nullptr && PyDict_GET_SIZE(dict) != 0) || !can_be_instance(type)) return false;
  constant(reinterpret_cast<PyObject*>(type));
  value->cls = type;
  value->fresh = true;
  return true;
}

namespace {

PyObject* of_torch(const char* name) {
  PyObject* const found = Py_XNewRef(parts::qualified("torch._C", name));
  if (found == nullptr) Py_FatalError("dynvm: torch has no such function of its stack of modes");
  return found;
}

}  // namespace

PyObject* pop_function() {
  static PyObject* const function = of_torch("_pop_torch_function_stack");
  return function;
}

// The one that is asked first.
V Recorder::innermost_mode() {
  static PyObject* const function = of_torch("_get_function_stack_at");
  const int place = torch_state_.function_modes - 1;
  const auto found = modes_.at_place.find(place);
  if (found != modes_.at_place.end()) return found->second;
  PyObject* number = PyLong_FromLong(place);
  bool ok = true;
  const V mode = run_residual(IrOp::k_call_pure, {constant(function), constant(number)}, -1, &ok);
  Py_DECREF(number);
  know_type(mode);
  return modes_.at_place[place] = mode;
}

void Recorder::take_mode_off(V mode) {
  Py_XDECREF(PyObject_CallNoArgs(pop_function()));
  modes_.off.push_back(mode);
  torch_state_.function_modes--;
}

// The call takes the innermost mode off torch's stack, or puts back what the trace has taken off last. False: it is another call.
bool Recorder::moves_mode(PyObject* callee, const std::vector<V>& args, V* result) {
  static PyObject* const push = of_torch("_push_on_torch_function_stack");
  if (callee == pop_function() && args.empty() && torch_state_.function_modes != 0) {
    *result = innermost_mode();
    if (!done_) take_mode_off(*result);
    return !done_;
  }
  if (callee != push || args.size() != 1 || modes_.off.empty() || modes_.off.back() != args[0]) return false;
  Py_XDECREF(PyObject_CallOneArg(push, concrete(args[0])));
  modes_.off.pop_back();
  torch_state_.function_modes++;
  *result = constant(Py_None);
  return true;
}

// Follows the call of a __torch_function__ in place of one that has these inputs, which stand on the stack. asked: see ask_override; it is taken over.
HookResult Recorder::call_override(vm::ThreadView& view, PyObject* asked, const std::vector<V>& inputs, int pops, vm::Continuation k) {
  constant(asked);  // keeps it
  Py_DECREF(asked);
  const auto given = [&](PyObject* o, size_t place) {
    if (place < inputs.size() && concrete(inputs[place]) == o) return inputs[place];
    const auto found = std::find_if(inputs.begin(), inputs.end(), [&](V v) { return concrete(v) == o; });
    return found == inputs.end() ? kNoValue : *found;
  };
  PyObject *function = PyTuple_GET_ITEM(asked, 0), *types = PyTuple_GET_ITEM(asked, 1), *args = PyTuple_GET_ITEM(asked, 2);
  PyObject* keywords = PyTuple_GET_SIZE(asked) > 3 ? PyTuple_GET_ITEM(asked, 3) : nullptr;
  std::vector<V> classes, positional, named;
  std::vector<PyObject*> keys;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); i++) classes.push_back(constant(PyTuple_GET_ITEM(types, i)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) positional.push_back(given(PyTuple_GET_ITEM(args, i), static_cast<size_t>(i)));
  Py_ssize_t position = 0;
  for (PyObject *key, *value; keywords != nullptr && PyDict_Next(keywords, &position, &key, &value);) {
    keys.push_back(key);
    named.push_back(given(value, inputs.size()));
  }
  const auto unknown = [](V v) { return v == kNoValue; };
  const bool by_mode = torch_state_.function_modes != 0;
  const bool by_class = std::any_of(inputs.begin(), inputs.end(), [this](V v) { return any_overrides(*bridge_, concrete(v)); });
  if (by_class == by_mode || std::any_of(positional.begin(), positional.end(), unknown) || std::any_of(named.begin(), named.end(), unknown)) {
    give_up(Abort::k_tensor_subclass, "its __torch_function__ is given something else");
    return HookResult::kContinue;
  }
  std::vector<V> all{constant(function), virtual_object(Value::kTuple, classes, types), virtual_object(Value::kTuple, positional, args)};
  if (keywords != nullptr) {
    all.push_back(virtual_object(Value::kDict, named, keywords));
    at(all.back()).keys = std::move(keys);
  }
  if (by_mode) {
    PyObject* const ask = own_function(keywords == nullptr ? "ask_mode" : "ask_mode_with_keywords", kAskMode);
    if (ask == nullptr) return raised(view);
    const V mode = innermost_mode();
    all.insert(all.begin(), mode);
    if (!done_ && enter_function(view, constant(ask), all, nullptr, pops, k)) {
      take_mode_off(mode);
      return HookResult::kReload;
    }
    if (entered_error_) return HookResult::kError;
    if (!done_) give_up(Abort::k_tensor_subclass, "a function mode cannot be followed");
    return HookResult::kContinue;
  }
  auto* type = reinterpret_cast<PyTypeObject*>(concrete(classes[0]));
  guard_type_unchanged(type);
  PyObject* found = _PyType_Lookup(type, interned("__torch_function__"));
  PyObject* method = found != nullptr && Py_TYPE(found) == &PyClassMethod_Type ? PyObject_GetAttrString(found, "__func__") : nullptr;
  const V override_value = method != nullptr ? constant(method) : kNoValue;
  Py_XDECREF(method);
  if (method == nullptr || !PyFunction_Check(method)) {
    give_up(Abort::k_tensor_subclass, std::string(type->tp_name) + ": __torch_function__ is no class method in Python");
    return HookResult::kContinue;
  }
  all.insert(all.begin(), classes[0]);
  if (done_) return HookResult::kContinue;
  if (enter_function(view, override_value, all, nullptr, pops, k)) return HookResult::kReload;
  if (entered_error_) return HookResult::kError;
  if (!done_) give_up(Abort::k_tensor_subclass, std::string(type->tp_name) + ": its __torch_function__ cannot be entered");
  return HookResult::kContinue;
}

}  // namespace dynvm::tracer
