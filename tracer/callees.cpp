// What callables are called in tables and messages; of Python functions that a trace enters, what it has to know, and the frame. See recorder.h.
#include <cstddef>
#include <utility>

#include "runtime/base/heuristics.h"
#include "tracer/recorder.h"

namespace dynvm::tracer {

using ir::Ref;
using ir::Type;
using IrOp = ir::Op;

// Guards that a constant function still has its code.
void Recorder::guard_code_unchanged(PyObject* function) {
  if (known('f', function)) return;
  Ref ref = emit(IrOp::k_load_field, Type::kObject, {const_ref(function)}, offsetof(PyFunctionObject, func_code));
  guard(IrOp::k_guard_is, {ref, const_ref(reinterpret_cast<PyFunctionObject*>(function)->func_code)}, -1);
}

// A function that is another one each time, made from the same code: what it holds is looked at at each call. False: too many codes take turns at this
// place, or it has defaults for keywords.
bool Recorder::know_by_code(V function, std::pair<PyCodeObject*, int> place) {
  PyObject* o = concrete(function);
  if (at(function).kind != Value::kObject || !Py_IS_TYPE(o, &PyFunction_Type) || lessons_.changing_codes.count(place) != 0) return false;
  auto* f = reinterpret_cast<PyFunctionObject*>(o);
  if (f->func_kwdefaults != nullptr || !know_type(function)) return false;
  const auto load = [&](size_t field) { return emit(IrOp::k_load_field, Type::kObject, {at(function).ref}, static_cast<int64_t>(field)); };
  const auto require = [&](size_t field, PyObject* part, int64_t site) { guard(IrOp::k_guard_is, {load(field), const_ref(part)}, site); };
  sites_.push_back({Site::kCode, reinterpret_cast<PyObject*>(place.first), nullptr, place.second});
  require(offsetof(PyFunctionObject, func_code), f->func_code, static_cast<int64_t>(sites_.size()) - 1);
  require(offsetof(PyFunctionObject, func_globals), f->func_globals, -1);
  require(offsetof(PyFunctionObject, func_builtins), f->func_builtins, -1);
  require(offsetof(PyFunctionObject, func_kwdefaults), nullptr, -1);
  FunctionParts parts;
  parts.by_code = true;
  if (f->func_defaults == nullptr) require(offsetof(PyFunctionObject, func_defaults), nullptr, -1);
  else parts.defaults = object(load(offsetof(PyFunctionObject, func_defaults)), f->func_defaults, false);
  std::vector<V> cells;
  if (f->func_closure != nullptr && !known_items(object(load(offsetof(PyFunctionObject, func_closure)), f->func_closure, false), &cells)) return false;
  at(function).items = std::move(cells);
  functions_[function] = parts;
  return !done_;
}

// A function made in this trace, a constant one that still has its code, or one that is known by its code; false: none of these.
bool Recorder::know_function(V function) {
  if (const auto found = functions_.find(function); found != functions_.end() && !found->second.by_code) return true;
  if (!promote(function)) return know_by_code(function, {top().code, current_unit_});
  guard_code_unchanged(concrete(function));
  return true;
}

// Pops `pops` values and pushes the function's frame with its shadow. False: the exception is set, entered_error_ says so.
bool Recorder::push_callee(vm::ThreadView& view, V function, std::vector<V> locals, int pops, vm::Continuation k) {
  PyObject* o = concrete(function);
  auto* f = reinterpret_cast<PyFunctionObject*>(o);
  ShadowFrame frame;
  frame.code = reinterpret_cast<PyCodeObject*>(f->func_code);
  frame.function = o;
  frame.function_value = function;
  frame.continuation = k;
  frame.call_unit = current_unit_;
  frame.nlocals = static_cast<int>(locals.size());
  pop(view, pops);
  frame.frame = vm::push_frame(view, f, k);
  if (frame.frame == nullptr) {
    give_up(Abort::k_exception, "RecursionError");
    entered_error_ = true;
    return false;
  }
  PyObject** base = vm::FrameView::locals(frame.frame);
  for (size_t i = 0; i < locals.size(); i++) base[i] = Py_XNewRef(concrete(locals[i]));
  frame.slots = std::move(locals);
  follow(std::move(frame));
  return true;
}

// Pops `pops` values and enters the function. False: not followed (a generator, an unknown function, wrong arguments).
bool Recorder::enter_function(vm::ThreadView& view, V function, std::vector<V> args, PyObject* kwnames, int pops, vm::Continuation k) {
  PyObject* o = concrete(function);
  if (!PyFunction_Check(o)) return false;
  auto* f = reinterpret_cast<PyFunctionObject*>(o);
  auto* code = reinterpret_cast<PyCodeObject*>(f->func_code);
  if (code->co_flags & kGeneratorFlags) return false;
  if (!consumers_.empty() && consumers_.back().kind == Consumer::kScript && PyUnicode_CompareWithASCIIString(code->co_name, "is_scripting") == 0)
    give_up(Abort::k_script_function, "is_scripting");
  if (done_) return false;
  if ((code->co_flags & (CO_OPTIMIZED | CO_NEWLOCALS)) != (CO_OPTIMIZED | CO_NEWLOCALS)) return false;
  if (!know_function(function)) return false;
  if (static_cast<int>(frames_.size()) > base::heuristics().max_depth) {
    give_up(Abort::k_call_depth);
    return false;
  }
  std::vector<V> locals;
  if (!bind_arguments(function, args, kwnames, &locals) || done_) return false;

  return push_callee(view, function, std::move(locals), pops, k);
}

// What a side trace finds: in inlined frames the same functions, or ones of the same code, and in these, as on each stack, objects and nulls in the same places. The
// slots of inlined frames are needed whole, because the frames are made anew when the trace is left.
void Recorder::guard_frames() {
  for (size_t i = 0; i < frames_.size(); i++) {
    if (i > 0) {
      const V function = frames_[i].function_value;
      if (!at(function).stable && !know_by_code(function, {frames_[i].code, kOwnFunction})) at(function).stable = true;
      if (promote(function)) guard_code_unchanged(frames_[i].function);
    }
    for (size_t k = i > 0 ? 0 : static_cast<size_t>(frames_[0].nlocals); k < frames_[i].slots.size(); k++) {
      V v = frames_[i].slots[k];
      if (concrete(v) != nullptr) {
        guard(IrOp::k_guard_bound, {at(v).ref});
      } else {
        guard(IrOp::k_guard_is, {at(v).ref, const_ref(nullptr)}, -1);
        frames_[i].slots[k] = null_;
      }
    }
  }
}

// The class that a bound method in C is from: the type of its object, or one that this inherits from.
static PyTypeObject* class_of_method(PyCFunctionObject* method) {
  PyTypeObject* const type = Py_TYPE(method->m_self);
  PyObject* const found = _PyType_Lookup(type, interned(method->m_ml->ml_name));
  const bool is_it = found != nullptr && Py_TYPE(found) == &PyMethodDescr_Type && reinterpret_cast<PyMethodDescrObject*>(found)->d_method == method->m_ml;
  return is_it ? reinterpret_cast<PyDescrObject*>(found)->d_type : type;
}

// "module.function" or "Type.method", as in known_calls.def and torch_folds.def; "python:module.qualname" for functions in Python.
std::string Recorder::callable_name(PyObject* o) {
  auto text = [](PyObject* s) -> std::string {
    const char* t = s && PyUnicode_Check(s) ? PyUnicode_AsUTF8(s) : nullptr;
    PyErr_Clear();
    return t ? t : "?";
  };
  if (PyCFunction_Check(o)) {
    auto* f = reinterpret_cast<PyCFunctionObject*>(o);
    std::string name = f->m_ml->ml_name;
    if (f->m_module != nullptr && PyUnicode_Check(f->m_module)) return text(f->m_module) + "." + name;
    if (f->m_self != nullptr && PyModule_Check(f->m_self)) {
      const char* module = PyModule_GetName(f->m_self);
      PyErr_Clear();
      return std::string(module ? module : "?") + "." + name;
    }
    if (f->m_self != nullptr && PyType_Check(f->m_self)) {
      std::string type = reinterpret_cast<PyTypeObject*>(f->m_self)->tp_name;
      if (type.find("_VariableFunctions") != std::string::npos) return "torch." + name;
      return type + "." + name;
    }
    if (f->m_self != nullptr) return std::string(class_of_method(f)->tp_name) + "." + name;
    return name;
  }
  if (Py_TYPE(o) == &PyMethodDescr_Type || Py_TYPE(o) == &PyWrapperDescr_Type || Py_TYPE(o) == &PyClassMethodDescr_Type || Py_TYPE(o) == &PyGetSetDescr_Type) {
    auto* d = reinterpret_cast<PyDescrObject*>(o);
    std::string type = d->d_type->tp_name;
    if (type == "torch._C.TensorBase" || type == "torch._C._TensorBase") type = "Tensor";
    return type + "." + text(d->d_name);
  }
  if (PyFunction_Check(o)) {
    auto* f = reinterpret_cast<PyFunctionObject*>(o);
    return "python:" + text(f->func_module) + "." + text(f->func_qualname);
  }
  if (PyType_Check(o) && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(o), Py_TPFLAGS_HEAPTYPE)) {
    PyObject* module = vm::own_attribute(reinterpret_cast<PyTypeObject*>(o), "__module__");
    if (module != nullptr) return "python:" + text(module) + "." + text(reinterpret_cast<PyHeapTypeObject*>(o)->ht_qualname);
  }
  if (PyType_Check(o)) return reinterpret_cast<PyTypeObject*>(o)->tp_name;
  if (is_cython(o)) {
    PyObject *module = PyObject_GetAttrString(o, "__module__"), *name = PyObject_GetAttrString(o, "__qualname__");
    const std::string full = text(module) + "." + text(name);
    Py_XDECREF(module);
    Py_XDECREF(name);
    return full;
  }
  return Py_TYPE(o)->tp_name;
}

}  // namespace dynvm::tracer
