// See watched_functions.h.
//
// torch's compiler compares the thread's key sets as they are when a function is compiled with those of later
// calls, all in C++: so the keys are away as long as this thread has a
// callback for frames. set_eval_frame is the one way to give it one. It tells the callback that was there before;
// while the callback itself runs torch hides it, and
// what is set then nests: the depth is counted.
//
// A function is watched by putting another C function into its PyMethodDef, which all function objects made of it
// share, wherever they have been imported to.
#include "runtime/torch/watched_functions.h"

#include <Python.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/torch/operator_facts.h"
#include "runtime/torch/recorder.h"

namespace dynvm::torch_bridge {
namespace {

enum class Watch { kEvaluation, kKeys, kKernel, kKernels };

struct Row {
  const char* place;
  Watch watch;
};

constexpr Row kRows[] = {
#define X(place, how, why) {place, Watch::how},
#include "runtime/torch/watched_functions.def"
#undef X
};
constexpr size_t kCount = std::size(kRows);

PyCFunction originals[kCount];
thread_local int callbacks = 0;  // that this thread has for frames: one may call functions with another one
void (*kernels_listener)() = nullptr;

constexpr c10::DispatchKeySet kOwnKeys({kRecordKey, kRecordedMark});

// While it lives, this thread's key sets are as if nothing were recorded or counted.
class HiddenKeys {
 public:
  HiddenKeys() : before_(c10::impl::tls_local_dispatch_key_set()) {
    c10::impl::LocalDispatchKeySet hidden = before_;
    hidden.included_ = hidden.included_ - kOwnKeys;
    hidden.excluded_ = hidden.excluded_ - kOwnKeys;
    c10::impl::_force_tls_local_dispatch_key_set(hidden);
  }
  ~HiddenKeys() { c10::impl::_force_tls_local_dispatch_key_set(before_); }
  HiddenKeys(const HiddenKeys&) = delete;
  HiddenKeys& operator=(const HiddenKeys&) = delete;

 private:
  c10::impl::LocalDispatchKeySet before_;
};

void evaluation_set(PyObject* before, PyObject* now) {
  if ((before == Py_None) == (now == Py_None)) return;
  callbacks += now == Py_None ? -1 : 1;
  if (callbacks <= 1) settle_keys();
}

// Traces run no operations in the modes that these keys stand for.
bool is_of_modes(std::string_view key) {
  return key == "Meta" || key == "Python" || key == "Functionalize" || key.starts_with("FuncTorch");
}

// May a trace have run what this registration replaces?
bool concerns_traces(std::string_view name, std::string_view key) {
  if (is_of_modes(key)) return false;
  const size_t colons = name.find("::"), begin = colons == std::string_view::npos ? 0 : colons + 2;
  const size_t dot = name.find('.', begin);
  const std::string base(name.substr(begin, dot - begin));
  const std::string overload(dot == std::string_view::npos ? "" : name.substr(dot + 1));
  if (colons != std::string_view::npos && name.substr(0, colons) != "aten") return has_operator_facts(base);
  return has_operator_facts(base) || c10::Dispatcher::singleton().findOp({"aten::" + base, overload}).has_value();
}

std::string_view text(PyObject* object) {
  const char* characters = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : nullptr;
  if (characters == nullptr) PyErr_Clear();
  return characters != nullptr ? characters : "";
}

void kernel_registered(PyObject* const* arguments, Py_ssize_t count) {
  if (kernels_listener == nullptr) return;
  // The library, the operator's name, the key. Otherwise given, as by keywords: it is not known what it concerns.
  if (count < 3 || concerns_traces(text(arguments[1]), text(arguments[2]))) kernels_listener();
}

template <size_t row>
PyObject* call_o(PyObject* self, PyObject* argument) {
  PyObject* result = originals[row](self, argument);
  if (result != nullptr) evaluation_set(result, argument);
  return result;
}

template <size_t row>
PyObject* call_fast(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* kwnames) {
  const auto original = reinterpret_cast<_PyCFunctionFastWithKeywords>(reinterpret_cast<void (*)()>(originals[row]));
  if (kRows[row].watch == Watch::kKeys) {
    const HiddenKeys hidden;
    return original(self, arguments, count, kwnames);
  }
  PyObject* result = original(self, arguments, count, kwnames);
  if (result == nullptr) return nullptr;
  if (kRows[row].watch == Watch::kKernel) kernel_registered(arguments, count);
  else if (kernels_listener != nullptr) kernels_listener();
  return result;
}

template <size_t row>
PyObject* call_tuple(PyObject* self, PyObject* arguments, PyObject* keywords) {
  const auto original = reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void (*)()>(originals[row]));
  if (kRows[row].watch == Watch::kKeys) {
    const HiddenKeys hidden;
    return original(self, arguments, keywords);
  }
  PyObject* result = original(self, arguments, keywords);
  if (result == nullptr) return nullptr;
  if (kRows[row].watch == Watch::kKernel) kernel_registered(&PyTuple_GET_ITEM(arguments, 0), PyTuple_GET_SIZE(arguments));
  else if (kernels_listener != nullptr) kernels_listener();
  return result;
}

// New reference, or null where there is none.
PyObject* find(const char* place) {
  std::string_view rest = place;
  PyObject* found = nullptr;
  while (!rest.empty()) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string name(rest.substr(0, dot));
    rest.remove_prefix(std::min(dot + 1, rest.size()));
    PyObject* next = found == nullptr ? PyImport_ImportModule(name.c_str()) : PyObject_GetAttrString(found, name.c_str());
    Py_XDECREF(found);
    found = next;
    if (found == nullptr) break;
  }
  PyErr_Clear();
  return found;
}

template <class F>
PyCFunction as_method(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

template <size_t row>
void watch() {
  PyObject* found = find(kRows[row].place);
  PyObject* function = found != nullptr && PyInstanceMethod_Check(found) ? PyInstanceMethod_GET_FUNCTION(found) : found;
  if (function != nullptr && PyCFunction_Check(function)) {
    PyMethodDef* method = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
    PyCFunction replacement = nullptr;
    const bool evaluation = kRows[row].watch == Watch::kEvaluation;
    switch (method->ml_flags & ~(METH_STATIC | METH_CLASS | METH_COEXIST)) {
      case METH_O: replacement = evaluation ? as_method(call_o<row>) : nullptr; break;
      case METH_FASTCALL | METH_KEYWORDS: replacement = evaluation ? nullptr : as_method(call_fast<row>); break;
      case METH_VARARGS | METH_KEYWORDS: replacement = evaluation ? nullptr : as_method(call_tuple<row>); break;
      default: break;
    }
    if (replacement != nullptr) {
      originals[row] = method->ml_meth;
      method->ml_meth = replacement;
    }
  }
  Py_XDECREF(found);
}

template <size_t... rows>
void watch_all(std::index_sequence<rows...>) {
  (watch<rows>(), ...);
}

}  // namespace

void watch_functions() { watch_all(std::make_index_sequence<kCount>()); }

bool keys_hidden() { return callbacks > 0; }

void tell_of_kernels(void (*listener)()) { kernels_listener = listener; }

std::string replaced_kernels() {
  static std::string known;
  static Py_ssize_t size = 0;
  PyObject* registered = find("torch.library._impls");
  if (registered != nullptr && PySet_Check(registered) && PySet_GET_SIZE(registered) != size) {
    size = PySet_GET_SIZE(registered);
    std::set<std::string> sorted;
    PyObject* entries = PyObject_GetIter(registered);
    for (PyObject* key; entries != nullptr && (key = PyIter_Next(entries)) != nullptr; Py_DECREF(key)) {
      const std::string_view entry = text(key);
      if (entry.starts_with("aten/") && !is_of_modes(entry.substr(entry.rfind('/') + 1))) sorted.emplace(entry);
    }
    Py_XDECREF(entries);
    PyErr_Clear();
    known.clear();
    for (const std::string& entry : sorted) known += entry + ' ';
  }
  Py_XDECREF(registered);
  return known;
}

}  // namespace dynvm::torch_bridge
