// __torch_function__ of tensors' subclasses. See recorder.h.
//
// A call that a subclass overrides is recorded as the call of its __torch_function__, which is followed like any function: torch is asked what it would give
// to it (bridge::Bridge::ask_override), and nothing else of the call is done. In the end that function calls torch with overrides off, and makes the result
// an instance of the subclass (as_subclass). Such an instance is a tensor value with a class: its attributes are known until its object is made
// (ir::Op::k_tensor_instance), and an exit makes that with its attributes.
#include <algorithm>

#include "tracer/recorder.h"

namespace dynvm::tracer {

using vm::HookResult;

bool Recorder::is_overriding(V v) { return bridge_ != nullptr && concrete(v) != nullptr && bridge_->overrides(concrete(v)); }

// Is one of these, or of what they hold, a tensor whose class overrides torch's functions now?
bool Recorder::overridden(const std::vector<V>& args) {
  if (bridge_ == nullptr || !torch_state_.overrides) return false;
  return std::any_of(args.begin(), args.end(), [this](V v) {
    PyObject* o = concrete(v);
    if (o == nullptr || (!PyTuple_CheckExact(o) && !PyList_CheckExact(o))) return is_overriding(v);
    return std::any_of(PySequence_Fast_ITEMS(o), PySequence_Fast_ITEMS(o) + PySequence_Fast_GET_SIZE(o), [this](PyObject* item) { return bridge_->overrides(item); });
  });
}

// Can an object of torch.Tensor become one of this subclass? Not with slots of its own, for example.
bool Recorder::can_be_instance(PyTypeObject* type) {
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
  if (classes.empty() || std::any_of(positional.begin(), positional.end(), unknown) || std::any_of(named.begin(), named.end(), unknown)) {
    give_up(Abort::k_tensor_subclass, "its __torch_function__ is given something else");
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
  std::vector<V> all{classes[0], constant(function), virtual_object(Value::kTuple, classes, types), virtual_object(Value::kTuple, positional, args)};
  if (keywords != nullptr) {
    all.push_back(virtual_object(Value::kDict, named, keywords));
    at(all.back()).keys = std::move(keys);
  }
  if (done_) return HookResult::kContinue;
  if (enter_function(view, override_value, all, nullptr, pops, k)) return HookResult::kReload;
  if (entered_error_) return HookResult::kError;
  if (!done_) give_up(Abort::k_tensor_subclass, std::string(type->tp_name) + ": its __torch_function__ cannot be entered");
  return HookResult::kContinue;
}

}  // namespace dynvm::tracer
