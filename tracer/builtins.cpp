// Calls of C functions whose result is known under guards, or that are one typed operation. See recorder.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "runtime/base/switches.h"
#include "tracer/object_parts.h"
#include "tracer/recorder.h"
#include "vm/objects.h"

namespace dynvm::tracer {

using ir::kNoRef;
using ir::Ref;
using ir::Type;
using IrOp = ir::Op;

bool is_cython(PyObject* o) { return strstr(Py_TYPE(o)->tp_name, "cython_function") != nullptr; }

namespace {

bool matches(const char* pattern, const std::string& name) {
  size_t n = strlen(pattern);
  if (n > 0 && pattern[n - 1] == '*') return name.compare(0, n - 1, pattern, n - 1) == 0;
  return name == pattern;
}

bool is_builtin_value(PyObject* o) {
  return o == nullptr || o == Py_None || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) || PyUnicode_CheckExact(o) ||
         PyBytes_CheckExact(o) || PyList_CheckExact(o) || PyTuple_CheckExact(o) || PyDict_CheckExact(o) || PyType_CheckExact(o) || o == Py_Ellipsis;
}

enum class Builtin {
  kNone, kIsinstance, kIssubclass, kLen, kHasattr, kGetattr, kCallable, kId, kAbs, kMin, kMax, kSqrt, kSet, kSetAdd, kListAppend, kDictGet, kDictKeys, kDictValues,
  kDictItems, kIter, kGlobals, kObjectGetattribute, kTypeOf, kInt, kFloat, kBool, kTuple, kList, kDict, kRange, kEnumerate, kZip, kReversed, kChain, kMap, kNext,
  kObjectInit, kStr, kSlice, kListExtend, kIslice, kIndex,
};

Builtin builtin_of(PyObject* callee, const std::string& name) {
  static const std::unordered_map<std::string, Builtin> by_name = {
      {"builtins.isinstance", Builtin::kIsinstance}, {"builtins.issubclass", Builtin::kIssubclass}, {"builtins.len", Builtin::kLen},
      {"builtins.hasattr", Builtin::kHasattr}, {"builtins.getattr", Builtin::kGetattr}, {"builtins.callable", Builtin::kCallable},
      {"builtins.id", Builtin::kId}, {"builtins.abs", Builtin::kAbs}, {"builtins.min", Builtin::kMin}, {"builtins.max", Builtin::kMax},
      {"collections.OrderedDict.keys", Builtin::kDictKeys}, {"collections.OrderedDict.values", Builtin::kDictValues},
      {"collections.OrderedDict.items", Builtin::kDictItems}, {"math.sqrt", Builtin::kSqrt},
      {"set.add", Builtin::kSetAdd}, {"list.append", Builtin::kListAppend}, {"list.extend", Builtin::kListExtend}, {"dict.get", Builtin::kDictGet}, {"dict.keys", Builtin::kDictKeys},
      {"dict.values", Builtin::kDictValues}, {"dict.items", Builtin::kDictItems}, {"builtins.iter", Builtin::kIter},
      {"builtins.globals", Builtin::kGlobals}, {"object.__getattribute__", Builtin::kObjectGetattribute},
      {"builtins.next", Builtin::kNext}, {"_operator.index", Builtin::kIndex}, {"object.__init__", Builtin::kObjectInit}};
  if (PyType_Check(callee)) {
    auto* type = reinterpret_cast<PyTypeObject*>(callee);
    if (type == &PyType_Type) return Builtin::kTypeOf;
    if (type == &PyLong_Type) return Builtin::kInt;
    if (type == &PyFloat_Type) return Builtin::kFloat;
    if (type == &PyBool_Type) return Builtin::kBool;
    if (type == &PyTuple_Type) return Builtin::kTuple;
    if (type == &PyList_Type) return Builtin::kList;
    if (type == &PyDict_Type) return Builtin::kDict;
    if (type == &PyUnicode_Type) return Builtin::kStr;
    if (type == &PySlice_Type) return Builtin::kSlice;
    if (type == &PySet_Type) return Builtin::kSet;
    if (type == &PyRange_Type) return Builtin::kRange;
    if (type == &PyEnum_Type) return Builtin::kEnumerate;
    if (type == &PyZip_Type) return Builtin::kZip;
    if (type == &PyMap_Type) return Builtin::kMap;
    if (type == &PyReversed_Type) return Builtin::kReversed;
    if (strcmp(type->tp_name, "itertools.chain") == 0) return Builtin::kChain;
    if (strcmp(type->tp_name, "itertools.islice") == 0) return Builtin::kIslice;
    return Builtin::kNone;
  }
  auto found = by_name.find(name);
  return found == by_name.end() ? Builtin::kNone : found->second;
}

constexpr const char* kModuleGetattr = "python:torch.nn.modules.module.Module.__getattr__";

}  // namespace

// Is it a Python function that is not followed?
bool Recorder::is_opaque(PyObject* callee) {
  std::string name = callable_name(callee);
#define O(listed) \
  if (name == "python:" listed) return true;
#include "tracer/opaque_functions.def"
#undef O
  return false;
}

bool Recorder::looks_at_frames(PyObject* callee, const std::vector<V>& args) {
  static const std::unordered_set<std::string> names = {"sys._getframe", "builtins.locals", "builtins.eval", "builtins.exec", "builtins.vars",
                                                        "builtins.breakpoint", "_warnings.warn", "builtins.dir", "builtins.__build_class__",
                                                        "sys.settrace", "sys.setprofile", "sys.exc_info", "sys.exception"};
  std::string name = callable_name(callee);
  if ((name == "builtins.vars" || name == "builtins.dir") && !args.empty()) return false;
  return names.count(name) != 0;
}

// Do the C functions of this name give the same for the same builtin values, and nothing else?
bool Recorder::is_pure(const std::string& name) {
  for (const char* prefix : {"str.", "bytes.", "int.", "float.", "math."})
    if (name.compare(0, strlen(prefix), prefix) == 0) return true;
  return false;
}

// Is it a method of a builtin container that is changed in place?
bool Recorder::is_of_container(const std::string& name) {
  static constexpr const char* kTypes[] = {"list.", "dict.", "set.", "collections.OrderedDict.", "collections.deque."};
  return std::any_of(std::begin(kTypes), std::end(kTypes), [&](const char* type) { return name.starts_with(type); });
}

static bool is_deque(PyObject* o) { return strcmp(Py_TYPE(o)->tp_name, "collections.deque") == 0; }

// Is it what functools.lru_cache makes of a function?
bool Recorder::is_caching(PyObject* o) { return strcmp(Py_TYPE(o)->tp_name, "functools._lru_cache_wrapper") == 0; }

// Does it have results already? (What an iteration asks for, with constants and texts, is among them then.)
static bool has_cached(PyObject* wrapper) {
  PyObject* info = PyObject_CallMethod(wrapper, "cache_info", nullptr);
  PyObject* size = info != nullptr ? PyObject_GetAttrString(info, "currsize") : nullptr;
  const bool has = size != nullptr && PyLong_AsLong(size) > 0;
  PyErr_Clear();
  Py_XDECREF(size);
  Py_XDECREF(info);
  return has;
}

// Called without arguments it gives the same object each time, until code that the trace does not follow clears the cache.
std::optional<vm::HookResult> Recorder::call_cached(vm::ThreadView& view, V callee, int pops) {
  if (!has_cached(concrete(callee)) || !promote(callee)) return std::nullopt;
  const auto found = cached_.find(concrete(callee));
  if (found != cached_.end()) return finish_call(view, found->second, pops);
  bool ok = true;
  const V made = run_residual(IrOp::k_call_known, {callee}, -1, &ok);
  if (!ok) return raised(view);
  cached_[concrete(callee)] = made;
  return finish_call(view, made, pops);
}

// Does isinstance or issubclass ask an abstract class of Python's own library, which runs none of the script's code?
bool Recorder::asks_abstract_class(bool of_object, const std::vector<V>& args) {
  static PyObject* const meta = Py_XNewRef(parts::qualified("abc", "ABCMeta"));
  const auto of_python = [](PyObject* asked) {
    if (Py_TYPE(asked) == &PyType_Type) return true;
    if (reinterpret_cast<PyObject*>(Py_TYPE(asked)) != meta) return false;
    const std::string module = parts::type_name(reinterpret_cast<PyTypeObject*>(asked)).first;
    return module == "collections.abc" || module == "numbers";
  };
  if (args.size() != 2 || !is_const(args[1])) return false;
  PyObject* asked = concrete(args[1]);
  const bool fine = PyTuple_CheckExact(asked) ? std::all_of(PySequence_Fast_ITEMS(asked), PySequence_Fast_ITEMS(asked) + PyTuple_GET_SIZE(asked), of_python) : of_python(asked);
  if (!fine) return false;
  if (of_object) {
    static PyObject* own = vm::own_attribute(&PyBaseObject_Type, "__class__");
    if (_PyType_Lookup(Py_TYPE(concrete(args[0])), interned("__class__")) != own) return false;
    know_type(args[0]);
    guard_type_unchanged(Py_TYPE(concrete(args[0])));
  }
  return !done_;
}

// Does NumPy run no code of the script's for this argument, nor write it? Numbers, texts, classes, tuples of these, and generators of random numbers.
bool Recorder::is_for_numpy(V v) {
  PyObject* o = concrete(v);
  if (at(v).kind == Value::kTuple) return std::all_of(at(v).items.begin(), at(v).items.end(), [this](V item) { return is_for_numpy(item); });
  if (PyTuple_CheckExact(o)) return is_const(v) && std::all_of(PySequence_Fast_ITEMS(o), PySequence_Fast_ITEMS(o) + PyTuple_GET_SIZE(o), [](PyObject* item) { return PyLong_CheckExact(item); });
  const bool plain = o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyUnicode_CheckExact(o);
  return (plain || PyType_CheckExact(o) || strncmp(Py_TYPE(o)->tp_name, "numpy.random.", 13) == 0) && (at(v).kind != Value::kObject || know_type(v));
}

// As what a residual call of it is recorded.
IrOp Recorder::residual_op(PyObject* callee, const std::vector<V>& args) {
  if (is_caching(callee) && !args.empty() && std::all_of(args.begin(), args.end(), [this](V v) { return is_const(v) || PyUnicode_CheckExact(concrete(v)); }) && has_cached(callee)) return IrOp::k_call_known;
  std::string name = callable_name(callee);
  if ((name == "builtins.isinstance" || name == "builtins.issubclass") && asks_abstract_class(name == "builtins.isinstance", args)) return IrOp::k_call_known;
  IrOp op = IrOp::k_call;
#define K(pattern) \
  if (op == IrOp::k_call && matches(pattern, name)) op = IrOp::k_call_known;
#define A(pattern) \
  if (op == IrOp::k_call && matches(pattern, name)) op = IrOp::k_call_apart;
#include "tracer/known_calls.def"
#undef K
#undef A
  if (op == IrOp::k_call) return op;
  if (name == "object.__setattr__" && !only_stores(args)) return IrOp::k_call;
  if (name.starts_with("numpy.")) return std::all_of(args.begin(), args.end(), [this](V v) { return is_for_numpy(v); }) && !done_ ? op : IrOp::k_call;
  const bool ordered = name.starts_with("collections.OrderedDict.");  // __setitem__, of a subclass too
  const bool container = !ordered && is_of_container(name);
  for (size_t i = 0; i < args.size(); i++) {
    PyObject* o = concrete(args[i]);
    if (i == 0 && name.starts_with("python:random.") && strcmp(Py_TYPE(o)->tp_name, "Random") == 0) {  // none with methods of its own
      if (at(args[i]).kind == Value::kObject) know_type(args[i]);
      continue;
    }
    if (ordered && (i != 1 || PyUnicode_CheckExact(o))) continue;
    if (i == 0 && name.ends_with(".__iter__")) continue;
    if (name == "collections.deque" && (PyList_CheckExact(o) || PyTuple_CheckExact(o))) continue;
    const bool inherits = i == 0 && name == "dict.get" && PyDict_Check(o);  // it is dict's own nevertheless
    if (container && (i > 0 || PyList_CheckExact(o) || PyDict_CheckExact(o) || PySet_CheckExact(o) || inherits || is_deque(o))) {
      if (name == "list.append" || name.starts_with("collections.deque.append") || i == 0 || (name.starts_with("set.") ? PyUnicode_CheckExact(o) : is_builtin_value(o))) continue;
      return IrOp::k_call;
    }
    static constexpr const char* kAnything[] = {"object.", "BaseException.", "builtins.id", "builtins.callable", "_contextvars.", "torch", "Tensor.", "python:transformers.", "python:torch.fx.", "python:torch.distributions."};  // whatever they are given
    if (std::any_of(std::begin(kAnything), std::end(kAnything), [&](const char* prefix) { return name.starts_with(prefix); })) continue;
    if (!is_builtin_value(o)) return IrOp::k_call;
    if ((at(args[i]).kind == Value::kObject)) know_type(args[i]);
  }
  return done_ ? IrOp::k_call : op;
}

// What torch.nn.Module.__getattr__ finds: a parameter, buffer or submodule; null_: none of that name; kNoValue: not known.
V Recorder::part_of_module(V module, PyObject* name) {
  for (const char* kind : {"_parameters", "_buffers", "_modules"}) {
    const Attribute parts = look_up(module, interned(kind));
    if (done_ || parts.kind != Attribute::kValue || !PyDict_CheckExact(concrete(parts.value))) return kNoValue;
    V part = null_;
    if (at(parts.value).kind == Value::kDict) {
      if (const size_t i = find_key(at(parts.value).keys, name); i < at(parts.value).keys.size()) part = at(parts.value).items[i];
    } else {
      if (!promote(parts.value)) return kNoValue;
      part = dict_item(concrete(parts.value), name);
    }
    if (done_ || part != null_) return part;
  }
  return null_;
}

// Result known under guards, or one typed operation. True with *result == kNoValue: a Python exception was raised.
// Is an attribute of that name, whatever it is, read by a __getattribute__ in Python that is known to change nothing?
bool Recorder::asks_known_getter(V object, V name) {
  PyTypeObject* type = Py_TYPE(concrete(object));
  PyObject* getter = _PyType_Lookup(type, interned("__getattribute__"));
  if (getter == nullptr || !PyFunction_Check(getter) || !PyUnicode_CheckExact(concrete(name)) || residual_op(getter, {object, name}) != IrOp::k_call_known) return false;
  if (!know_type(object) || !know_type(name)) return false;
  guard_type_unchanged(type);
  return !done_;
}

bool Recorder::fold_builtin(PyObject* callee, const std::vector<V>& args, PyObject* kwnames, V* result) {
  std::string name = callable_name(callee);
  size_t n = args.size();
  bool keywords = kwnames != nullptr && PyTuple_GET_SIZE(kwnames) > 0;
  auto truth = [&](bool t) {
    *result = constant(t ? Py_True : Py_False);
    return true;
  };
  auto take = [&](PyObject* made) {  // a new reference that becomes a constant
    if (made == nullptr) {
      PyErr_Clear();
      return false;
    }
    *result = constant(made);
    Py_DECREF(made);
    return true;
  };
  auto type_of = [&](V v) -> PyTypeObject* {
    if (at(v).kind == Value::kObject || is_const(v)) know_type(v);
    return Py_TYPE(concrete(v));
  };
  if (name == "torch._C._has_torch_function" || name.compare(0, 27, "torch._C._has_torch_functio") == 0) {
    for (V v : args) {
      std::vector<V> parts;
      if (PyTuple_Check(concrete(v))) known_items(v, &parts); else parts = {v};
      for (V part : parts) type_of(part);
    }
    PyObject** argv = nullptr;
    std::vector<PyObject*> objects;
    for (V v : args) objects.push_back(concrete(v));
    argv = objects.data();
    return !done_ && take(PyObject_Vectorcall(callee, argv, n, nullptr));
  }
  const auto is_known = [this](V v) { return is_immutable(concrete(v)) && (is_const(v) || (at(v).kind == Value::kObject && at(v).stable)); };
  if (is_pure(name) && !keywords && std::all_of(args.begin(), args.end(), is_known) && std::all_of(args.begin(), args.end(), [this](V v) { return promote(v); })) {
    std::vector<PyObject*> objects;
    for (V v : args) objects.push_back(concrete(v));
    PyObject* made = PyObject_Vectorcall(callee, objects.data(), n, nullptr);
    if (made == nullptr) PyErr_Clear();
    if (made != nullptr && is_immutable(made)) return take(made);
    Py_XDECREF(made);
  }
#define F(pattern, kind, sentence) \
  if (strcmp(pattern, name.c_str()) == 0) return !base::left_out(base::Part::kFolds) && fold_torch(callee, args, kwnames, #kind, result);
#include "tracer/torch_folds.def"
#undef F
  Builtin which = builtin_of(callee, name);
  if (which == Builtin::kZip && keywords && n > 1 && PyTuple_GET_SIZE(kwnames) == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "strict") == 0 &&
      PyBool_Check(concrete(args.back())) && promote(args.back())) {
    const std::vector<V> sources(args.begin(), args.end() - 1);
    std::set<size_t> lengths;
    for (V v : sources) {
      std::vector<V> items;
      if (iterators_.count(v) || !iteration_items(v, &items)) return false;
      lengths.insert(items.size());
    }
    return (lengths.size() == 1 || concrete(args.back()) == Py_False) && !done_ && fold_builtin(callee, sources, nullptr, result);
  }
  if (which == Builtin::kNone || keywords) return false;
  switch (which) {
    case Builtin::kIsinstance:
    case Builtin::kIssubclass: {
      if (n != 2 || !promote_deeply(args[1])) return false;
      PyObject* cls = concrete(args[1]);
      auto plain = [](PyObject* c) {
        if (!PyType_Check(c)) return false;
        static PyObject* check = vm::own_attribute(&PyType_Type, "__instancecheck__");
        PyObject* own = _PyType_Lookup(Py_TYPE(c), interned_instancecheck());
        return own == check || strncmp(Py_TYPE(c)->tp_name, "_TensorMeta", 11) == 0 || strncmp(Py_TYPE(c)->tp_name, "_ParameterMeta", 14) == 0 ||
               strncmp(Py_TYPE(c)->tp_name, "_BufferMeta", 11) == 0;
      };
      bool fine = plain(cls);
      if (PyTuple_Check(cls)) {
        fine = true;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cls); i++) fine = fine && plain(PyTuple_GET_ITEM(cls, i));
      }
      if (!fine) return false;
      if (which == Builtin::kIsinstance) {
        type_of(args[0]);
        if (done_) return false;
        int is = PyObject_IsInstance(concrete(args[0]), cls);
        return is >= 0 && truth(is);
      }
      if (!promote(args[0])) return false;
      int is = PyObject_IsSubclass(concrete(args[0]), cls);
      if (is < 0) PyErr_Clear();
      return is >= 0 && truth(is);
    }
    case Builtin::kTypeOf: {
      if (n != 1) return false;
      PyTypeObject* type = type_of(args[0]);
      if (done_) return false;
      *result = constant(reinterpret_cast<PyObject*>(type));
      return true;
    }
    case Builtin::kLen: {
      if (n != 1) return false;
      *result = length_of(args[0]);
      return *result != kNoValue && !done_;
    }
    case Builtin::kCallable: return n == 1 && type_of(args[0]) != nullptr && !done_ && truth(PyCallable_Check(concrete(args[0])));
    case Builtin::kId:
      if (n != 1 || !promote(args[0])) return false;
      return take(PyLong_FromVoidPtr(concrete(args[0])));
    case Builtin::kHasattr:
    case Builtin::kGetattr: {
      Attribute a;
      if (n == 3 && asks_known_getter(args[0], args[1])) a.kind = Attribute::kKnown;
      else if (done_ || n < 2 || !promote_name(args[1])) return false;
      else a = look_up(args[0], concrete(args[1]));
      if (done_) return false;
      if (a.kind == Attribute::kPython && (n == 3 || which == Builtin::kHasattr) && callable_name(a.function) == kModuleGetattr) {
        const V part = part_of_module(args[0], concrete(args[1]));
        if (done_) return false;
        if (part != kNoValue) {
          a.kind = part == null_ ? Attribute::kMissing : Attribute::kValue;
          a.value = part;
        }
      }
      if (which == Builtin::kHasattr) {
        if (a.kind == Attribute::kValue || a.kind == Attribute::kMethod) return truth(true);
        if (a.kind == Attribute::kMissing) return truth(false);
        return false;
      }
      if (a.kind == Attribute::kValue) {
        *result = a.value;
        return true;
      }
      if (a.kind == Attribute::kKnown && n <= 3 && !is_tensor(concrete(args[0]))) {  // with a default, as the descriptor may raise AttributeError
        bool ok = true;
        *result = n == 2 ? run_residual(IrOp::k_get_attr_known, {args[0], args[1]}, 0, &ok)
                         : run_residual(IrOp::k_call_known, {constant(callee), args[0], args[1], args[2]}, -1, &ok);
        if (!ok) *result = kNoValue;
        return true;
      }
      if (a.kind == Attribute::kMissing && n == 3) {
        *result = args[2];
        return true;
      }
      if (a.kind == Attribute::kMethod) {
        V self = a.args.empty() ? args[0] : a.args[0];
        PyObject* function = concrete(a.value);
        if (!PyFunction_Check(function)) {
          bool ok = true;
          *result = bound_method_of_c(args[0], concrete(args[1]), a.value, self, &ok);
          return true;
        }
        PyObject* method = PyMethod_New(function, concrete(self));
        *result = virtual_object(Value::kMethod, {a.value, self}, method);
        Py_DECREF(method);
        return true;
      }
      return false;
    }
    case Builtin::kNext: {
      if (n != 1 || at(args[0]).kind != Value::kIterator || at(args[0]).position >= at(args[0]).items.size()) return false;
      PyObject* it = concrete(args[0]);
      PyObject* object = Py_TYPE(it)->tp_iternext(it);
      if (object == nullptr) return false;
      V item = at(args[0]).items[at(args[0]).position];
      if (!same_item(item, object)) give_up(Abort::k_shadow_mismatch, "next");
      *result = renew(item, object);
      at(args[0]).position++;
      changed(args[0]);
      Py_DECREF(object);
      return true;
    }
    case Builtin::kGlobals: *result = constant(vm::FrameView::globals(top().frame)); return true;
    case Builtin::kObjectInit:
      if (n != 1) return false;
      *result = constant(Py_None);
      return true;
    case Builtin::kObjectGetattribute: {
      if (n != 2 || !promote_name(args[1])) return false;
      PyObject* o = concrete(args[0]);
      type_of(args[0]);
      guard_type_unchanged(Py_TYPE(o));
      PyObject* d = _PyType_Lookup(Py_TYPE(o), concrete(args[1]));
      if (const V dict = own_dict(args[0], concrete(args[1]), d); dict != kNoValue) {
        *result = dict;
        return !done_;
      }
      if (d != nullptr && Py_TYPE(d)->tp_descr_set != nullptr) return false;
      bool hidden = false;
      V own = instance_item(args[0], concrete(args[1]), &hidden);
      if (hidden || done_) return false;
      if (own != kNoValue) {
        *result = own;
        return true;
      }
      if (d == nullptr || Py_TYPE(d)->tp_descr_get != nullptr) return false;
      *result = constant(d);
      return true;
    }
    case Builtin::kAbs: {
      if (n != 1 || !PyFloat_CheckExact(concrete(args[0])) || is_const(args[0])) return false;
      Ref ref = as_float(args[0]);
      if (ref == kNoRef) return false;
      PyObject* value = PyNumber_Absolute(concrete(args[0]));
      *result = scalar(Type::kFloat, emit(IrOp::k_abs_float, Type::kFloat, {ref}), value);
      Py_DECREF(value);
      return true;
    }
    case Builtin::kMin:
    case Builtin::kMax: {
      if (n != 2) return false;
      V less = number_compare(which == Builtin::kMin ? Py_LT : Py_GT, args[1], args[0]);
      if (less == kNoValue) return false;
      bool second = concrete(less) == Py_True;
      if (!is_const(less)) guard(second ? IrOp::k_guard_true : IrOp::k_guard_false, {as_bool(less)});
      *result = second ? args[1] : args[0];
      return !done_;
    }
    case Builtin::kSqrt: {
      if (n != 1 || is_const(args[0])) return false;
      PyObject* o = concrete(args[0]);
      if (!PyFloat_CheckExact(o) && !PyLong_CheckExact(o)) return false;
      double x = PyFloat_AsDouble(o);
      if (!(x >= 0)) return false;
      Ref ref = as_float(args[0]);
      if (ref == kNoRef) return false;
      PyObject* value = PyFloat_FromDouble(std::sqrt(x));
      *result = number_of_sizes(scalar(Type::kFloat, emit(IrOp::k_sqrt_float, Type::kFloat, {ref}, 0, true), value), args[0], args[0]);
      Py_DECREF(value);
      return true;
    }
    case Builtin::kInt: {
      if (n != 1) return false;
      PyObject* o = concrete(args[0]);
      if (is_const(args[0])) {
        *result = PyLong_CheckExact(o) || PyBool_Check(o) || PyFloat_CheckExact(o) ? taken(PyNumber_Long(o)) : kNoValue;
        return *result != kNoValue;
      }
      if (PyLong_CheckExact(o) && as_int(args[0]) != kNoRef) {
        *result = args[0];
        return true;
      }
      return false;
    }
    case Builtin::kFloat: {
      if (n != 1) return false;
      PyObject* o = concrete(args[0]);
      if (!PyFloat_CheckExact(o) && !PyLong_CheckExact(o)) return false;
      if (is_const(args[0])) {
        *result = taken(PyNumber_Float(o));
        return *result != kNoValue;
      }
      Ref ref = as_float(args[0]);
      if (ref == kNoRef) return false;
      if (PyFloat_CheckExact(o)) {
        *result = args[0];
        return true;
      }
      PyObject* value = PyNumber_Float(o);
      *result = number_of_sizes(scalar(Type::kFloat, ref, value), args[0], args[0]);
      Py_XDECREF(value);
      return true;
    }
    case Builtin::kBool: {
      if (n != 1 || is_tensor(concrete(args[0]))) return false;
      V t = fold_truth(args[0]);
      if (t == kNoValue || done_) return false;
      *result = t;
      return true;
    }
    case Builtin::kTuple:
    case Builtin::kList: {
      std::vector<V> items;
      if (n == 1 && at(args[0]).kind == Value::kIterator && !iterators_.count(args[0])) {  // what is left of it, which is used up
        use_up(args[0], &items);
      } else if (n > 1 || (n == 1 && !(is_plain_tuple(concrete(args[0])) || PyList_CheckExact(concrete(args[0])) || at(args[0]).kind == Value::kView))) return false;
      else if (n == 1 && !(at(args[0]).kind == Value::kView ? iteration_items(args[0], &items) : known_items(args[0], &items))) return false;
      if (done_) return false;
      PyObject* made = which == Builtin::kTuple ? PyTuple_New(static_cast<Py_ssize_t>(items.size())) : PyList_New(static_cast<Py_ssize_t>(items.size()));
      for (size_t i = 0; i < items.size(); i++) {
        PyObject* item = Py_NewRef(concrete(items[i]));
        if (which == Builtin::kTuple) PyTuple_SET_ITEM(made, i, item);
        else PyList_SET_ITEM(made, i, item);
      }
      *result = virtual_object(which == Builtin::kTuple ? Value::kTuple : Value::kList, std::move(items), made);
      Py_DECREF(made);
      return true;
    }
    case Builtin::kDict: {
      const bool of_items = n == 1 && at(args[0]).kind == Value::kView && at(args[0]).position == 2;
      std::vector<PyObject*> keys;
      std::vector<V> items;
      if (n != 0 && !(of_items && known_contents(at(args[0]).items[0]) != nullptr && known_dict(at(args[0]).items[0], &keys, &items))) return false;
      PyObject* made = PyDict_New();
      for (size_t i = 0; i < keys.size(); i++) PyDict_SetItem(made, keys[i], concrete(items[i]));
      *result = virtual_object(Value::kDict, std::move(items), made);
      at(*result).keys = std::move(keys);
      Py_DECREF(made);
      return true;
    }
    case Builtin::kListExtend:
      if (n != 2 || !extend_virtual(args[0], args[1])) return false;
      *result = constant(Py_None);
      return true;
    case Builtin::kSlice:
      if (n == 0 || n > 3 || !std::all_of(args.begin(), args.end(), [this](V v) { return is_const(v) && is_builtin_value(concrete(v)); })) return false;
      return take(n == 1 ? PySlice_New(nullptr, concrete(args[0]), nullptr) : PySlice_New(concrete(args[0]), concrete(args[1]), n == 3 ? concrete(args[2]) : nullptr));
    case Builtin::kStr: {  // of a number, or of a class, whose name is as constant as what else it has
      PyObject* o = n == 1 ? concrete(args[0]) : nullptr;
      if (o != nullptr && is_const(args[0]) && (PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) || PyUnicode_CheckExact(o))) return take(PyObject_Str(o));
      if (o == nullptr || !PyType_Check(o) || Py_TYPE(o)->tp_str != PyType_Type.tp_str || Py_TYPE(o)->tp_repr != PyType_Type.tp_repr || !promote(args[0])) return false;
      guard_type_unchanged(reinterpret_cast<PyTypeObject*>(o));
      return !done_ && take(PyObject_Str(o));
    }
    case Builtin::kRange: {
      bool all_const = true;
      for (V v : args) all_const = all_const && PyLong_CheckExact(concrete(v)) && promote(v);
      if (!all_const || n == 0 || n > 3 || done_) return false;
      std::vector<PyObject*> objects;
      for (V v : args) objects.push_back(concrete(v));
      return take(PyObject_Vectorcall(callee, objects.data(), n, nullptr));
    }
    case Builtin::kMap: {  // of type, which does nothing that shows: the others are called as the iterator is advanced
      std::vector<V> items;
      if (n != 2 || concrete(args[0]) != reinterpret_cast<PyObject*>(&PyType_Type) || iterators_.count(args[1]) || !iteration_items(args[1], &items)) return false;
      for (V& item : items) item = constant(reinterpret_cast<PyObject*>(type_of(item)));
      if (done_) return false;
      *result = take_iterator(callee, args, std::move(items));
      return *result != kNoValue;
    }
    case Builtin::kEnumerate:
    case Builtin::kZip:
    case Builtin::kChain:
    case Builtin::kReversed: {
      std::vector<std::vector<V>> sources;
      for (V v : args) {
        std::vector<V> items;
        if ((which == Builtin::kEnumerate || which == Builtin::kReversed) && sources.size() == 1) return false;
        if (iterators_.count(v) || !iteration_items(v, &items)) return false;
        sources.push_back(std::move(items));
      }
      if (done_ || sources.empty()) return false;
      std::vector<V> items;
      if (which == Builtin::kChain) {
        for (auto& source : sources) items.insert(items.end(), source.begin(), source.end());
      } else if (which == Builtin::kReversed) {
        if (!PyList_CheckExact(concrete(args[0])) && !is_plain_tuple(concrete(args[0]))) return false;
        items.assign(sources[0].rbegin(), sources[0].rend());
      } else {
        size_t length = sources[0].size();
        for (auto& source : sources) length = std::min(length, source.size());
        for (size_t i = 0; i < length; i++) {
          std::vector<V> parts;
          if (which == Builtin::kEnumerate) {
            PyObject* index = PyLong_FromSize_t(i);
            parts.push_back(constant(index));
            Py_DECREF(index);
          }
          for (auto& source : sources) parts.push_back(source[i]);
          items.push_back(virtual_tuple(std::move(parts)));
        }
      }
      *result = take_iterator(callee, args, std::move(items));
      return true;  // kNoValue: raised
    }
    case Builtin::kIslice: {
      std::vector<V> source, items;
      if (n < 2 || n > 4 || !std::all_of(args.begin() + 1, args.end(), [this](V v) { return (concrete(v) == Py_None || PyLong_CheckExact(concrete(v))) && promote(v); })) return false;
      if (iterators_.count(args[0]) || !iteration_items(args[0], &source) || done_) return false;
      Py_ssize_t bounds[3] = {0, PY_SSIZE_T_MAX, 1};  // as islice reads them
      for (size_t i = 1; i < n; i++) {
        if (concrete(args[i]) == Py_None) continue;
        const Py_ssize_t given = PyLong_AsSsize_t(concrete(args[i]));
        PyErr_Clear();
        if (given < (i == 3 ? 1 : 0)) return false;
        bounds[n == 2 ? 1 : i - 1] = given;
      }
      const auto end = std::min(static_cast<size_t>(bounds[1]), source.size());
      for (auto i = static_cast<size_t>(bounds[0]); i < end; i += static_cast<size_t>(bounds[2])) items.push_back(source[i]);
      *result = take_iterator(callee, args, std::move(items));
      return true;  // kNoValue: raised
    }
    case Builtin::kIndex:
      if (n != 1 || !PyLong_CheckExact(concrete(args[0])) || (at(args[0]).kind == Value::kObject && !know_type(args[0]))) return false;
      *result = args[0];
      return true;
    case Builtin::kDictKeys:
    case Builtin::kDictValues:
    case Builtin::kDictItems: {
      if (n != 1) return false;
      std::vector<V> items;
      int view = which == Builtin::kDictKeys ? 0 : which == Builtin::kDictValues ? 1 : 2;
      if (!dict_view_items(args[0], view, &items)) return false;
      PyObject* made = PyObject_CallOneArg(callee, concrete(args[0]));
      *result = made == nullptr ? kNoValue : virtual_object(Value::kView, {args[0]}, made);
      if (made == nullptr) return true;
      at(*result).position = static_cast<size_t>(view);
      at(*result).items_known = false;  // those of the dict, when they are asked for
      Py_DECREF(made);
      return true;
    }
    case Builtin::kDictGet: {
      if (n < 2 || n > 3) return false;
      if (PyUnicode_CheckExact(concrete(args[1])) && dict_of_.count(args[0]) != 0 && promote(args[1])) {
        const V own = known_attribute(args[0], concrete(args[1]));
        if (own == kNoValue) return false;
        *result = own != null_ ? own : n == 3 ? args[2] : constant(Py_None);
        return true;
      }
      V present = contains(args[0], args[1]);
      if (present == kNoValue || !is_const(present) || done_) return false;
      if (concrete(present) == Py_False) {
        *result = n == 3 ? args[2] : constant(Py_None);
        return true;
      }
      V item = item_of(args[0], args[1]);
      if (item == kNoValue || done_) return false;
      *result = item;
      return true;
    }
    case Builtin::kSet: {
      std::vector<V> items;
      if (n > 1 || (n == 1 && (at(args[0]).kind == Value::kObject || !iteration_items(args[0], &items)))) return false;
      *result = virtual_set(items);
      return *result != kNoValue;
    }
    case Builtin::kSetAdd: {
      if (n != 2 || !add_to_set(args[0], args[1])) return false;
      *result = constant(Py_None);
      return true;
    }
    case Builtin::kListAppend: {
      if (n != 2 || !PyList_CheckExact(concrete(args[0]))) return false;
      V list = args[0];
      if (at(list).kind == Value::kList && at(list).object == kNoRef) {
        PyList_Append(concrete(list), concrete(args[1]));
        at(list).items.push_back(args[1]);
        changed(list);
        *result = constant(Py_None);
        return true;
      }
      if (at(list).kind == Value::kObject) know_type(list);
      if (is_const(list)) lessons_.changing_lists.insert(concrete(list));
      if (done_) return false;
      other_container_written(list, nullptr);
      bool ok = true;
      run_residual(IrOp::k_list_append, {list, args[1]}, 0, &ok);
      if (at(list).kind == Value::kList) at(list).items.push_back(args[1]);
      *result = ok ? constant(Py_None) : kNoValue;
      return true;
    }
    case Builtin::kIter: {
      if (n != 1) return false;
      PyObject* o = concrete(args[0]);
      if (Py_TYPE(o)->tp_iter == PyObject_SelfIter) {
        type_of(args[0]);
        *result = args[0];
        return !done_;
      }
      std::vector<V> items;
      if (!(PyList_CheckExact(o) || is_plain_tuple(o) || iterates_as_dict(o) || at(args[0]).kind == Value::kView) || !iteration_items(args[0], &items)) return false;
      *result = take_iterator(callee, args, std::move(items));
      return true;
    }
    default: return false;
  }
}

// As promote, also for a virtual tuple of such.
bool Recorder::promote_deeply(V v) {
  if (at(v).kind != Value::kTuple) return promote(v);
  for (V item : std::vector<V>(at(v).items))
    if (!promote_deeply(item)) return false;
  return true;
}

// What a C function made of its arguments' tensors, as virtual containers around the tensors' own Values.
V Recorder::regrouped(PyObject* object, const std::unordered_map<PyObject*, V>& tensors) {
  auto tensor = tensors.find(object);
  if (tensor != tensors.end()) return tensor->second;
  std::vector<V> items;
  if (PyDict_CheckExact(object)) {
    std::vector<PyObject*> keys;
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(object, &position, &key, &value)) {
      keys.push_back(key);
      items.push_back(regrouped(value, tensors));
    }
    V v = virtual_object(Value::kDict, std::move(items), object);
    at(v).keys = std::move(keys);
    return v;
  }
  if (!PyTuple_CheckExact(object) && !PyList_CheckExact(object)) return constant(object);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); i++) items.push_back(regrouped(PySequence_Fast_GET_ITEM(object, i), tensors));
  return virtual_object(PyTuple_CheckExact(object) ? Value::kTuple : Value::kList, std::move(items), object);
}

bool Recorder::fold_torch(PyObject* callee, const std::vector<V>& args, PyObject* kwnames, const char* kind, V* result) {
  if (sizes_are_numbers_ && strcmp(kind, "meta") == 0 && fold_size(callable_name(callee), args, kwnames, result)) return true;
  std::vector<PyObject*> objects;
  std::unordered_map<PyObject*, V> grouped;
  const bool group = strcmp(kind, "group") == 0;
  std::vector<V> tensors, numbers;
  if (group)
    for (V v : args) collect(v, &tensors, &numbers);
  for (V v : tensors) {
    if (done_) return false;
    if (at(v).kind != Value::kTensor) as_tensor(v);
    grouped[concrete(v)] = v;
  }
  for (V v : args) {
    PyObject* o = concrete(v);
    if (is_tensor(o)) {
      if (at(v).kind != Value::kTensor) as_tensor(v);
    } else if (!(group && PyList_CheckExact(o)) && !promote_deeply(v)) {
      return false;
    }
    objects.push_back(o);
  }
  if (done_) return false;
  if (strcmp(kind, "state") == 0 && !known('g', this)) {
    guard_torch_state();
  }
  size_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  PyObject* value = PyObject_Vectorcall(callee, objects.data(), objects.size() - nkw, kwnames);
  if (value == nullptr) {
    PyErr_Clear();
    return false;
  }
  *result = grouped.empty() ? constant(value) : regrouped(value, grouped);
  Py_DECREF(value);
  return true;
}

PyObject* Recorder::interned_instancecheck() {
  static PyObject* name = PyUnicode_InternFromString("__instancecheck__");
  return name;
}

}  // namespace dynvm::tracer
