// See policy.h.
#include "main/policy.h"

#include <Python.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "runtime/base/policy.h"
#ifdef DYNVM_HAS_TRACER
#include "runtime/exec/own_work.h"
#endif

namespace dynvm::main {

namespace {

using base::Decision;

// Owned.
class Object {
 public:
  explicit Object(PyObject* object) : object_(object) {}
  ~Object() { Py_XDECREF(object_); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_;
};

PyObject* value_of(const base::Fact& fact) {
  if (const bool* truth = std::get_if<bool>(&fact.value)) return PyBool_FromLong(*truth);
  if (const int64_t* number = std::get_if<int64_t>(&fact.value)) return PyLong_FromLongLong(*number);
  const auto& text = std::get<std::string>(fact.value);
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

// Never destroyed: decisions are made as long as Python runs.
class PythonPolicy : public base::Policy {
 public:
  // Takes the methods that there are; `facts_type`: types.SimpleNamespace.
  PythonPolicy(PyObject* policy, PyObject* facts_type) : facts_type_(Py_NewRef(facts_type)) {
    for (size_t i = 0; i < methods_.size(); i++) {
      methods_[i] = PyObject_GetAttrString(policy, std::string(base::decision_name(static_cast<Decision>(i))).c_str());
      if (methods_[i] == nullptr) PyErr_Clear();
    }
  }

  bool asks_anything() const {
    return std::any_of(methods_.begin(), methods_.end(), [](PyObject* method) { return method != nullptr; });
  }

  bool asks(Decision decision) const override { return methods_[static_cast<size_t>(decision)] != nullptr && !asking_ && PyGILState_Check() != 0 && !ends(); }

  std::optional<bool> answer(Decision decision, const base::Facts& facts) override {
#ifdef DYNVM_HAS_TRACER
    const runtime::OwnWork work;
#endif
    asking_ = true;
    const Object result(call(methods_[static_cast<size_t>(decision)], facts));
    std::optional<bool> answer;
    if (result.get() == Py_True || result.get() == Py_False) answer = result.get() == Py_True;
    else if (result && result.get() != Py_None) PyErr_Format(PyExc_TypeError, "expected True, False or None, got %.100s", Py_TYPE(result.get())->tp_name);
    if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) {
      PyErr_Clear();
      PyErr_SetInterrupt();  // the script's matter
    } else if (PyErr_Occurred() != nullptr) {
      const std::string name(base::decision_name(decision));
      fmt::print(stderr, "dynvm: --policy: {}() is asked no more:\n", name);
      PyErr_WriteUnraisable(methods_[static_cast<size_t>(decision)]);
      Py_CLEAR(methods_[static_cast<size_t>(decision)]);
    }
    asking_ = false;
    return answer;
  }

 private:
  // Python finalizes: the policy's module may be gone.
  static bool ends() {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() != 0;
#else
    return _Py_IsFinalizing() != 0;
#endif
  }

  PyObject* call(PyObject* method, const base::Facts& facts) {
    const Object names(PyDict_New());
    if (!names) return nullptr;
    for (const base::Fact& fact : facts) {
      const Object value(value_of(fact));
      if (!value || PyDict_SetItemString(names.get(), fact.name, value.get()) < 0) return nullptr;
    }
    const Object none(PyTuple_New(0));
    const Object argument(none ? PyObject_Call(facts_type_, none.get(), names.get()) : nullptr);
    return argument ? PyObject_CallOneArg(method, argument.get()) : nullptr;
  }

  std::array<PyObject*, static_cast<size_t>(Decision::kCount)> methods_{};
  PyObject* facts_type_;
  bool asking_ = false;
};

// Runs the file; its module, or null with an exception.
PyObject* run(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) {
    PyErr_Format(PyExc_FileNotFoundError, "cannot read %s", file.c_str());
    return nullptr;
  }
  Object module(PyModule_New("dynvm_policy"));
  const Object path(PyUnicode_DecodeFSDefault(file.c_str()));
  if (!module || !path || PyModule_AddObjectRef(module.get(), "__file__", path.get()) < 0) return nullptr;
  PyObject* globals = PyModule_GetDict(module.get());
  if (PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins()) < 0) return nullptr;
  const Object code(Py_CompileStringObject(text.str().c_str(), path.get(), Py_file_input, nullptr, -1));
  if (!code) return nullptr;
  const Object result(PyEval_EvalCode(code.get(), globals, globals));
  return result ? Py_NewRef(module.get()) : nullptr;
}

bool read_numbers(PyObject* policy, std::string* numbers) {
  const Object dict(PyObject_GetAttrString(policy, "heuristics"));
  if (!dict) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return false;
    PyErr_Clear();
    return true;
  }
  if (PyDict_Check(dict.get()) == 0) {
    PyErr_SetString(PyExc_TypeError, "Policy.heuristics: expected a dict of names and ints");
    return false;
  }
  Py_ssize_t at = 0;
  PyObject *key, *value;
  while (PyDict_Next(dict.get(), &at, &key, &value) != 0) {
    if (PyUnicode_Check(key) == 0 || PyLong_CheckExact(value) == 0) {
      PyErr_SetString(PyExc_TypeError, "Policy.heuristics: expected a dict of names and ints");
      return false;
    }
    const long long number = PyLong_AsLongLong(value);
    const char* name = PyUnicode_AsUTF8(key);
    if (name == nullptr || PyErr_Occurred() != nullptr) return false;
    *numbers += fmt::format("{}{}={}", numbers->empty() ? "" : ",", name, number);
  }
  return true;
}

}  // namespace

bool load_policy(const std::string& file, std::string* numbers) {
  const Object module(run(file));
  if (!module) return false;
  const Object type(PyObject_GetAttrString(module.get(), "Policy"));
  if (!type) return false;
  const Object policy(PyObject_CallNoArgs(type.get()));
  if (!policy || !read_numbers(policy.get(), numbers)) return false;
  const Object types(PyImport_ImportModule("types"));
  const Object facts_type(types ? PyObject_GetAttrString(types.get(), "SimpleNamespace") : nullptr);
  if (!facts_type) return false;
  auto* made = new PythonPolicy(policy.get(), facts_type.get());
  if (!made->asks_anything() && numbers->empty()) {
    delete made;
    std::string names;
    for (int i = 0; i < static_cast<int>(Decision::kCount); i++) names += fmt::format("{}{}", i == 0 ? "" : ", ", base::decision_name(static_cast<Decision>(i)));
    PyErr_Format(PyExc_TypeError, "Policy has neither `heuristics` nor one of the methods %s", names.c_str());
    return false;
  }
  base::set_policy(made);
  return true;
}

}  // namespace dynvm::main
