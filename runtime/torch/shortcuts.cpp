// See shortcuts.h.
//
// torch.profiler.record_function, which each optimizer step enters, makes an at::RecordFunction even where nobody listens: one that has no
// callbacks when it is made does nothing for good. While there are no callbacks, one such object serves all.
//
// inspect.signature, which transformers asks of the same functions in each forward pass: a Signature cannot be changed, so it is kept with what it
// was made from.
#include "runtime/torch/shortcuts.h"

#include <ATen/record_function.h>

#include <array>
#include <unordered_map>
#include <utility>

#include "runtime/torch/outside_graphs.h"

namespace dynvm::torch_bridge {
namespace {

PyObject* enter_original = nullptr;
PyObject* exit_original = nullptr;
PyObject* enter_shortcut = nullptr;
PyObject* exit_shortcut = nullptr;
PyObject* idle_record = nullptr;  // made while nobody listened
constexpr const char* kEnterName = "_record_function_enter_new";
constexpr const char* kExitName = "_record_function_exit";

PyObject* enter(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (at::hasCallbacks() || count != 2 || !PyUnicode_CheckExact(args[0]) || args[1] != Py_None)
    return PyObject_Vectorcall(enter_original, args, count, nullptr);
  if (idle_record == nullptr && (idle_record = PyObject_Vectorcall(enter_original, args, count, nullptr)) == nullptr) return nullptr;
  return Py_NewRef(idle_record);
}

PyObject* exit(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 1 || args[0] != idle_record) return PyObject_Vectorcall(exit_original, args, count, nullptr);
  Py_RETURN_NONE;
}

PyObject* signature_original = nullptr;
PyObject* signature_shortcut = nullptr;
PyObject* apart = nullptr;  // no shortcut, but a function that only traces call
constexpr const char* kSignatureName = "signature";

// What the signature of a plain function is made of, and it itself. All references are owned.
struct KnownSignature {
  PyObject *defaults = nullptr, *annotations = nullptr, *signature = nullptr;  // annotations: a copy
};

bool same_items(PyObject* a, PyObject* b) {
  Py_ssize_t at = 0;
  PyObject *key, *value;
  if (PyDict_GET_SIZE(a) != PyDict_GET_SIZE(b)) return false;
  while (PyDict_Next(a, &at, &key, &value))
    if (PyDict_GetItemWithError(b, key) != value) return false;
  return true;
}

PyObject* signature(PyObject*, PyObject* const* args, Py_ssize_t count) {
  constexpr size_t kMost = 1024;
  static auto* methods = new std::unordered_map<PyObject*, KnownSignature>;  // by code object
  static auto* functions = new std::unordered_map<PyObject*, KnownSignature>;
  const bool is_method = count == 1 && PyMethod_Check(args[0]);
  PyObject* function = count != 1 ? nullptr : is_method ? PyMethod_GET_FUNCTION(args[0]) : args[0];
  const bool is_function = function != nullptr && PyFunction_Check(function);
  PyObject** attributes = is_function ? _PyObject_GetDictPtr(function) : nullptr;  // __wrapped__, __signature__
  PyObject* annotations = is_function ? PyFunction_GetAnnotations(function) : nullptr;
  const bool plain = is_function && (attributes == nullptr || *attributes == nullptr || PyDict_GET_SIZE(*attributes) == 0) &&
                     PyFunction_GetKwDefaults(function) == nullptr && (annotations == nullptr || PyDict_CheckExact(annotations));
  PyErr_Clear();
  if (!plain) return PyObject_Vectorcall(signature_original, args, count, nullptr);
  auto& known = is_method ? *methods : *functions;
  PyObject* code = PyFunction_GetCode(function);
  const auto found = known.find(code);
  if (found != known.end() && found->second.defaults == PyFunction_GetDefaults(function) &&
      (annotations == nullptr ? PyDict_GET_SIZE(found->second.annotations) == 0 : same_items(found->second.annotations, annotations)))
    return Py_NewRef(found->second.signature);
  PyObject* made = PyObject_Vectorcall(signature_original, args, count, nullptr);
  PyObject* copy = made == nullptr ? nullptr : annotations == nullptr ? PyDict_New() : PyDict_Copy(annotations);
  if (copy == nullptr || known.size() >= kMost) {
    if (made != nullptr) PyErr_Clear();
    Py_XDECREF(copy);
    return made;
  }
  const auto [entry, added] = known.try_emplace(code, KnownSignature{});  // Python code has run: what was found may have moved
  if (added) Py_INCREF(code);
  const KnownSignature old = std::exchange(entry->second, {Py_XNewRef(PyFunction_GetDefaults(function)), copy, Py_NewRef(made)});
  for (PyObject* part : {old.defaults, old.annotations, old.signature}) Py_XDECREF(part);
  return made;
}

// inspect.signature, or null.
PyObject* find_signature() {
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "inspect");
  return module == nullptr ? nullptr : Py_XNewRef(PyDict_GetItemString(PyModule_GetDict(module), kSignatureName));
}

// torch.ops.profiler.A[.B]._op, or null.
PyObject* find_operator(const char* packet, const char* overload) {
  PyObject* object = PyImport_ImportModule("torch");
  for (const char* name : {"ops", "profiler", packet, overload, "_op"}) {
    if (object == nullptr || name == nullptr) continue;
    PyObject* next = PyObject_GetAttrString(object, name);
    Py_DECREF(object);
    object = next;
  }
  PyErr_Clear();
  return object;
}

template <typename Function>
PyObject* function_of(PyMethodDef* definition, const char* name, Function* function) {
  *definition = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)), METH_FASTCALL, nullptr};
  return PyCFunction_New(definition, nullptr);
}

void make_shortcuts() {
  static PyMethodDef enter_definition, exit_definition, signature_definition, apart_definition;
  if (enter_shortcut != nullptr) return;
  enter_original = find_operator(kEnterName, nullptr);
  exit_original = find_operator(kExitName, "_RecordFunction");
  enter_shortcut = function_of(&enter_definition, kEnterName, &enter);
  exit_shortcut = function_of(&exit_definition, kExitName, &exit);
  signature_original = find_signature();
  signature_shortcut = function_of(&signature_definition, kSignatureName, &signature);
  apart = function_of(&apart_definition, kApartName, &graphs_are_apart);
  PyErr_Clear();
}

}  // namespace

PyObject* shortcut_of(PyObject* callee) {
  make_shortcuts();
  if (callee == enter_original && enter_original != nullptr) return enter_shortcut;
  if (callee == exit_original && exit_original != nullptr) return exit_shortcut;
  if (callee == signature_original && signature_original != nullptr) return signature_shortcut;
  return nullptr;
}

static std::array<std::pair<PyObject*, const char*>, 4> named_functions() {
  return {{{enter_shortcut, kEnterName}, {exit_shortcut, kExitName}, {signature_shortcut, kSignatureName}, {apart, kApartName}}};
}

std::string shortcut_name(PyObject* shortcut) {
  for (const auto& [function, name] : named_functions())
    if (shortcut != nullptr && shortcut == function) return name;
  return "";
}

PyObject* shortcut_named(const std::string& name) {
  make_shortcuts();
  for (const auto& [function, its_name] : named_functions())
    if (name == its_name) return function;
  return nullptr;
}

}  // namespace dynvm::torch_bridge
