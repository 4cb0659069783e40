// See device_users.h.
#include "runtime/exec/device_users.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace dynvm::runtime {
namespace {

// Functions of builtins and other modules that look at no more than the objects they are given: not at their items.
constexpr std::string_view kFunctions[] = {"getattr", "hasattr", "setattr", "isinstance", "issubclass", "len", "id", "callable", "iter", "next", "hash", "abs", "round", "chr", "ord",
                                          "perf_counter", "time", "monotonic", "perf_counter_ns", "time_ns", "sqrt", "exp", "log", "cos", "sin", "pow", "floor", "ceil", "isnan", "isinf",
                                          "isfinite", "vars"};
// Those that look at the items of what they are given.
constexpr std::string_view kOverItems[] = {"all", "any", "sum", "min", "max", "sorted"};
constexpr std::string_view kModules[] = {"builtins", "math", "time"};
// Methods of Python's containers that compare items.
constexpr std::string_view kComparing[] = {"index", "remove", "count", "sort", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"};
// Of torch._C and its submodules.
constexpr std::string_view kModes[] = {"_set_grad_enabled", "is_grad_enabled", "_is_tracing", "_get_tracing_state", "set_eval_frame", "is_inference_mode_enabled", "_set_autocast",
                                      "set_autocast_enabled", "set_autocast_dtype", "set_autocast_cache_enabled", "autocast_increment_nesting", "autocast_decrement_nesting",
                                      "is_autocast_enabled", "get_autocast_dtype", "is_autocast_cache_enabled", "_is_torch_function_enabled", "_len_torch_function_stack",
                                      "_len_torch_dispatch_stack", "_cuda_getDevice", "_cuda_isInBadFork", "_has_torch_function", "_has_torch_function_unary",
                                      "_has_torch_function_variadic", "_dispatch_tls_set_dispatch_key_included", "_unset_dispatch_mode", "_log_api_usage_once", "_get_cudnn_enabled",
                                      "_record_function_enter_new", "_record_function_exit", "_is_autocast_available", "is_autocast_available", "_get_torch_function_mode"};

template <size_t N>
bool among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// A type of Python's own: their names have no module.
bool is_core(PyTypeObject* type) {
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) return false;
  return std::strchr(type->tp_name, '.') == nullptr || std::strncmp(type->tp_name, "collections.", 12) == 0 || std::strncmp(type->tp_name, "itertools.", 10) == 0 ||
         std::strncmp(type->tp_name, "functools.", 10) == 0 || std::strncmp(type->tp_name, "types.", 6) == 0;
}

// All that its instances do in C is what Python's own types do.
bool is_plain(PyTypeObject* type) {
  PyObject* const order = type->tp_mro;
  if (order == nullptr) return is_core(type);
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(order); ++k) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, k));
    if ((base->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 ? !is_core(base) : base->tp_name != nullptr && std::strncmp(base->tp_name, "torch._C", 8) == 0) return false;
  }
  return true;
}

bool is_plain(PyObject* object) { return object == nullptr || PyModule_Check(object) || PyFunction_Check(object) || PyType_Check(object) || is_plain(Py_TYPE(object)); }

// A container or text of Python's own, or a class made from one. Functions of C++ extensions are bound to objects of other types.
bool has_builtin_base(PyTypeObject* type) {
  for (PyTypeObject* base : {&PyDict_Type, &PyList_Type, &PyTuple_Type, &PySet_Type, &PyFrozenSet_Type, &PyUnicode_Type, &PyBytes_Type, &PyLong_Type, &PyFloat_Type, &PyODict_Type})
    if (PyType_IsSubtype(type, base)) return true;
  return false;
}

// The same, and so are the items of a list or tuple.
bool is_plain_throughout(PyObject* object) {
  if (!is_plain(object)) return false;
  if (object == nullptr || (!PyList_Check(object) && !PyTuple_Check(object))) return true;
  if (PySequence_Fast_GET_SIZE(object) > 32) return false;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(object); ++k)
    if (!is_plain(PySequence_Fast_GET_ITEM(object, k))) return false;
  return true;
}

bool is_number_or_text(PyObject* object) {
  return object == nullptr || object == Py_None || PyLong_CheckExact(object) || PyBool_Check(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) || PyBytes_CheckExact(object);
}

bool call_looks(PyObject* callee) {
  if (callee == nullptr || PyFunction_Check(callee)) return false;
  if (PyMethod_Check(callee)) return call_looks(PyMethod_GET_FUNCTION(callee));
  if (PyCFunction_Check(callee)) {
    auto* function = reinterpret_cast<PyCFunctionObject*>(callee);
    PyObject* const self = function->m_self;
    const std::string_view name = function->m_ml->ml_name;
    if (self != nullptr && !PyModule_Check(self) && has_builtin_base(PyType_Check(self) ? reinterpret_cast<PyTypeObject*>(self) : Py_TYPE(self)))
      return !is_plain(PyType_Check(self) ? reinterpret_cast<PyTypeObject*>(self) : Py_TYPE(self)) || among(kComparing, name);
    const char* module = function->m_module != nullptr && PyUnicode_Check(function->m_module) ? PyUnicode_AsUTF8(function->m_module) : "";
    if (module == nullptr) PyErr_Clear();
    return !(module != nullptr && among(kModules, module) && (among(kFunctions, name) || among(kOverItems, name))) && !among(kModes, name);
  }
  if (Py_IS_TYPE(callee, &PyMethodDescr_Type) || Py_IS_TYPE(callee, &PyWrapperDescr_Type) || Py_IS_TYPE(callee, &PyClassMethodDescr_Type)) {
    auto* descriptor = reinterpret_cast<PyDescrObject*>(callee);
    const char* name = PyUnicode_AsUTF8(descriptor->d_name);
    if (name == nullptr) PyErr_Clear();
    return !is_plain(descriptor->d_type) || name == nullptr || among(kComparing, name);
  }
  if (PyType_Check(callee)) {
    auto* type = reinterpret_cast<PyTypeObject*>(callee);
    return !is_plain(type) && std::strstr(type->tp_name, "DisableTorchFunction") == nullptr;
  }
  return true;
}

bool runs_python(PyObject* callee) {
  if (callee != nullptr && PyMethod_Check(callee)) callee = PyMethod_GET_FUNCTION(callee);
  return callee != nullptr && PyFunction_Check(callee);
}

}  // namespace

bool looks_at_devices(ir::Op op, const std::vector<PyObject*>& operands) {
  using ir::Op;
  const auto all = [&](bool (*holds)(PyObject*)) { return std::all_of(operands.begin(), operands.end(), holds); };
  switch (op) {
    case Op::k_call:
    case Op::k_call_known:
    case Op::k_call_apart:
    case Op::k_call_pure:
    case Op::k_call_new:
    case Op::k_call_ex:
      if (operands.empty() || call_looks(operands[0])) return true;
      if (runs_python(operands[0])) return false;
      if (op == Op::k_call_ex) return true;  // what is in the tuple is not known here
      if (PyCFunction_Check(operands[0]) && among(kOverItems, reinterpret_cast<PyCFunctionObject*>(operands[0])->m_ml->ml_name))
        return !std::all_of(operands.begin() + 1, operands.end(), [](PyObject* each) { return each == nullptr || PyGen_Check(each) || ((PyList_Check(each) || PyTuple_Check(each)) && is_plain_throughout(each)); });
      return !std::all_of(operands.begin() + 1, operands.end(), [](PyObject* each) { return is_plain(each); });
    case Op::k_contains: {
      PyObject* const where = operands[0];
      return !(where != nullptr && (PyDict_Check(where) || PyAnySet_Check(where) || PyUnicode_Check(where) || PyList_Check(where) || PyTuple_Check(where)) && all(is_plain_throughout));
    }
    case Op::k_binary:
    case Op::k_unary:
    case Op::k_compare: return !all(is_number_or_text);
    case Op::k_set_attr: return !is_plain(operands[0]);  // what is stored is not looked at
    case Op::k_set_item: return !is_plain(operands[0]) || !is_plain(operands[1]);
    case Op::k_build_set:
    case Op::k_build_map_any: return false;              // hashes of tensors are their identity
    case Op::k_import_name:
    case Op::k_import_from: return false;
    default: return (ir::op_info(op).effects & ir::kBarrier) != 0 && !all(is_plain);
  }
}

}  // namespace dynvm::runtime
