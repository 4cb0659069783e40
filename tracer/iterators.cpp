// Iterators of builtin containers whose items a trace knows. See recorder.h.
#include <algorithm>
#include <cstring>

#include "runtime/base/heuristics.h"
#include "runtime/exec/helpers.h"
#include "tracer/own_functions.h"
#include "tracer/recorder.h"

namespace dynvm::tracer {

using vm::HookResult;

namespace {

// What enumerate and zip iterate over: a new tuple with iterators in it, *count of them at its beginning; null of any other object, and where that cannot be told.
PyObject* iterators_below(PyObject* it, Py_ssize_t* count) {
  if (Py_TYPE(it) != &PyEnum_Type && Py_TYPE(it) != &PyZip_Type) return nullptr;
  PyObject* reduced = PyObject_CallMethod(it, "__reduce__", nullptr);
  PyObject* parts = reduced != nullptr && PyTuple_Check(reduced) && PyTuple_GET_SIZE(reduced) >= 2 ? Py_NewRef(PyTuple_GET_ITEM(reduced, 1)) : nullptr;
  PyErr_Clear();
  Py_XDECREF(reduced);
  if (parts != nullptr && !PyTuple_Check(parts)) Py_CLEAR(parts);
  if (parts != nullptr) *count = Py_TYPE(it) == &PyEnum_Type ? 1 : PyTuple_GET_SIZE(parts);
  return parts;
}

}  // namespace

bool iterates_natively(PyTypeObject* type) {
  static const getiterfunc deque = [] {
    PyObject* const found = parts::qualified("collections", "deque");
    return found != nullptr && PyType_Check(found) ? reinterpret_cast<PyTypeObject*>(found)->tp_iter : nullptr;
  }();
  for (PyTypeObject* container : {&PyList_Type, &PyTuple_Type, &PyDict_Type, &PyRange_Type, &PyUnicode_Type, &PyBytes_Type, &PySet_Type, &PyFrozenSet_Type, &PyODict_Type, &PyDictKeys_Type, &PyDictValues_Type, &PyDictItems_Type, &PyODictKeys_Type, &PyODictValues_Type, &PyODictItems_Type})
    if (type->tp_iter == container->tp_iter) return true;
  return type->tp_iter != nullptr && type->tp_iter == deque;
}

PyObject* python_iter(PyTypeObject* type) {
  PyObject* const method = _PyType_Lookup(type, interned("__iter__"));
  return method != nullptr && PyFunction_Check(method) ? method : nullptr;
}

bool is_of_modules(PyCodeObject* generator) {
  const char* file = PyUnicode_AsUTF8(generator->co_filename);
  return file != nullptr && strstr(file, "/torch/nn/modules/") != nullptr;
}

bool takes_all_items(const std::string& name, size_t arguments) {
  if (name == "str.join") return arguments <= 2;  // with the separator, or bound to it
  return arguments == 1 && (name == "builtins.max" || name == "builtins.min" || name == "builtins.sorted" || name == "math.fsum" || name == "math.prod");
}

bool plain_iterator(PyObject* it) {
  PyTypeObject* type = Py_TYPE(it);
  if (type == &PyListIter_Type || type == &PyTupleIter_Type || type == &PyRangeIter_Type || type == &PyDictIterKey_Type ||
      type == &PyDictIterValue_Type || type == &PyDictIterItem_Type || type == &PyListRevIter_Type || type == &PyUnicodeIter_Type ||
      type == &PyLongRangeIter_Type || type == &PyDictRevIterKey_Type || type == &PyDictRevIterItem_Type || type == &PyDictRevIterValue_Type ||
      type == &PySetIter_Type || type == &PyBytesIter_Type || strcmp(type->tp_name, "_collections._deque_iterator") == 0)
    return true;
  Py_ssize_t count = 0;
  PyObject* parts = iterators_below(it, &count);
  bool plain = parts != nullptr;
  for (Py_ssize_t i = 0; i < count; i++) plain = plain && plain_iterator(PyTuple_GET_ITEM(parts, i));
  Py_XDECREF(parts);
  return plain;
}

// Items that this iterator still gives, where it can tell without running Python code; else -1.
static int64_t items_left(PyObject* it) {
  if (it == nullptr || !plain_iterator(it)) return -1;
  Py_ssize_t count = 0;
  if (PyObject* parts = iterators_below(it, &count)) {
    int64_t left = count > 0 ? INT64_MAX : 0;
    for (Py_ssize_t i = 0; i < count; i++) left = std::min(left, items_left(PyTuple_GET_ITEM(parts, i)));
    Py_DECREF(parts);
    return left;
  }
  const Py_ssize_t left = PyObject_LengthHint(it, -1);
  if (left < 0) PyErr_Clear();
  return left;
}

// A virtual iterator that nobody but the call under way can go on with, over what cannot change meanwhile, or would tell of it: another iterator may be made of it.
bool Recorder::is_given_away(V iterator) {
  const Value& value = at(iterator);
  if (value.source != kNoValue && std::any_of(at(value.source).items.begin(), at(value.source).items.end(), [this](V v) { return at(v).kind == Value::kList; })) return false;
  ptrdiff_t held = 0;
  for (const ShadowFrame& frame : frames_) held += std::count(frame.slots.begin(), frame.slots.end(), iterator);
  return held <= 1 && std::none_of(values_.begin(), values_.end(), [iterator](const Value& each) { return std::count(each.items.begin(), each.items.end(), iterator) != 0; });
}

// What iterating a container gives, when its contents are known, or what is left of an iterator that is given away.
bool Recorder::iteration_items(V v, std::vector<V>* items) {
  PyObject* o = concrete(v);
  if (at(v).kind == Value::kIterator) {
    if (!is_given_away(v)) return false;
    items->assign(at(v).items.begin() + static_cast<ptrdiff_t>(at(v).position), at(v).items.end());
    return true;
  }
  if (at(v).kind == Value::kView) return dict_view_items(at(v).items[0], static_cast<int>(at(v).position), items);
  if (at(v).kind == Value::kSet) {
    std::vector<V> members = at(v).items;  // in the set's own order
    PyObject* iterator = PyObject_GetIter(o);
    while (PyObject* member = iterator ? PyIter_Next(iterator) : nullptr) {
      for (V item : members)
        if (concrete(item) == member) items->push_back(item);
      Py_DECREF(member);
    }
    Py_XDECREF(iterator);
    return true;
  }
  const Contents* const contents = iterates_natively(Py_TYPE(o)) ? known_contents(v) : nullptr;
  if (at(v).kind == Value::kDict || contents != nullptr) {
    for (PyObject* key : std::vector<PyObject*>(contents != nullptr ? contents->keys : at(v).keys)) items->push_back(constant(key));
    return true;
  }
  if (iterates_as_dict(o)) {
    if (!promote(v) || !guard_dict_unchanged(o)) return false;
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(o, &position, &key, &value)) items->push_back(constant(key));
    return true;
  }
  if (PyFrozenSet_CheckExact(o) && is_const(v)) {
    PyObject* members = PySequence_List(o);
    for (Py_ssize_t i = 0; members != nullptr && i < PyList_GET_SIZE(members); i++) items->push_back(constant(PyList_GET_ITEM(members, i)));
    Py_XDECREF(members);
    return members != nullptr;
  }
  if (PyRange_Check(o) && is_const(v)) {
    Py_ssize_t n = PyObject_Length(o);
    if (n < 0 || n > 4 * base::heuristics().max_unroll) {
      PyErr_Clear();
      return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject* item = PySequence_GetItem(o, i);
      items->push_back(constant(item));
      Py_XDECREF(item);
    }
    return true;
  }
  if (is_plain_tuple(o) || PyList_CheckExact(o)) {
    if (PyList_CheckExact(o) && at(v).kind == Value::kObject && !at(v).stable) return false;  // its length may differ next time
    return known_items(v, items);
  }
  return false;
}

bool Recorder::dict_view_items(V v, int which, std::vector<V>* items) {
  PyObject* o = concrete(v);
  auto pair = [&](V key, V value) {
    if (which == 0) items->push_back(key);
    if (which == 1) items->push_back(value);
    if (which == 2) items->push_back(virtual_tuple({key, value}));
  };
  const bool made_here = at(v).kind == Value::kDict || known_contents(v) != nullptr;
  if (!made_here && !iterates_as_dict(o)) return false;
  if (made_here || !promote(v) || !guard_dict_unchanged(o)) {
    std::vector<PyObject*> keys;
    std::vector<V> values;
    if (done_ || !known_dict(v, &keys, &values)) return false;
    for (size_t i = 0; i < keys.size(); i++) pair(constant(keys[i]), values[i]);
    return true;
  }
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(o, &position, &key, &value)) pair(constant(key), constant(value));
  return true;
}

// A virtual iterator over `items`: what a builtin function makes of builtin containers. kNoValue when making it raises.
// An exit makes it in the same way, so that it is of the same type and sees what is done to the containers afterwards.
// The iterator of a tuple, which nothing is done to, is made of what is left.
V Recorder::take_iterator(PyObject* function, const std::vector<V>& args, std::vector<V> items) {
  std::vector<PyObject*> objects;
  for (V v : args) objects.push_back(concrete(v));
  PyObject* made = PyObject_Vectorcall(function, objects.data(), objects.size(), nullptr);
  if (made == nullptr) return kNoValue;
  V iterator = virtual_object(Value::kIterator, std::move(items), made);
  if (Py_TYPE(made) != &PyTupleIter_Type) {
    std::vector<V> source{constant(function)};
    source.insert(source.end(), args.begin(), args.end());
    const V tuple = virtual_tuple(std::move(source));
    at(iterator).source = tuple;
    if (std::any_of(args.begin(), args.end(), [this](V v) { return watches(v, nullptr); })) open_iterators_.push_back(iterator);
  }
  Py_DECREF(made);
  return iterator;
}

// What Tensor.__iter__ goes over: the tensor's unbind(). kNoValue: it raises (*error), or is not known.
V Recorder::rows_of(V tensor, bool* error) {
  V rows = kNoValue;
  PyObject* object = concrete(tensor);
  const bool fine = with_torch([object] { return PyObject_CallMethod(object, "unbind", nullptr); }, {tensor}, "iterating a tensor", &rows, error);
  return fine && !*error && !done_ ? rows : kNoValue;
}

// In arguments of enumerate, zip, list and tuple: the rows of plain tensors in their place. False: it has raised, or recording was given up.
bool Recorder::iterate_tensors(PyTypeObject* type, std::vector<V>* args) {
  if (type != &PyEnum_Type && type != &PyZip_Type && type != &PyList_Type && type != &PyTuple_Type) return true;
  static PyObject* const own = Py_XNewRef(parts::qualified("torch", "Tensor.__iter__"));
  for (V& v : *args) {
    PyObject* o = concrete(v);
    if (!is_tensor(o) || own == nullptr || _PyType_Lookup(Py_TYPE(o), interned("__iter__")) != own) continue;
    const int32_t id = aten_ != nullptr ? aten_->tensor_id(o) : -1;
    if (id < 0) continue;
    const std::vector<int64_t>& sizes = aten_->meta(id).sizes;
    if (sizes.empty() || sizes[0] > base::heuristics().max_unroll) continue;
    bool error = false;
    const V rows = rows_of(v, &error);
    if (error || done_) return false;
    if (rows != kNoValue) v = rows;
  }
  return true;
}

// Does the iterator of this, or this iterator, remember the size of that dict or set, or of any (null)? A change of it is an error.
bool Recorder::watches(V container, PyObject* watched) {
  if (at(container).kind == Value::kIterator && at(container).source != kNoValue) {
    const std::vector<V>& parts = at(at(container).source).items;
    return std::any_of(parts.begin(), parts.end(), [&](V part) { return watches(part, watched); });
  }
  PyObject* object = concrete(at(container).kind == Value::kView ? at(container).items[0] : container);
  return (PyDict_Check(object) || PyAnySet_Check(object)) && (watched == nullptr || watched == object);
}

// In front of a change of a dict's or set's size, or where others may change it: its iterators become objects, which see it.
void Recorder::settle_iterators(PyObject* container) {
  for (V iterator : std::vector<V>(open_iterators_)) {
    if (watches(iterator, container)) as_object(iterator);
  }
}

// An empty container with an iterator of the same type; of others an empty tuple.
V Recorder::empty_like(V container) {
  PyObject* object = concrete(container);
  const auto made = [this](Value::Kind kind, PyObject* empty) {
    const V v = virtual_object(kind, {}, empty);
    Py_DECREF(empty);
    return v;
  };
  if (PyList_CheckExact(object)) return made(Value::kList, PyList_New(0));
  if (PyDict_CheckExact(object)) return made(Value::kDict, PyDict_New());
  if (PySet_CheckExact(object)) return made(Value::kSet, PySet_New(nullptr));
  if (at(container).kind == Value::kView && PyDict_CheckExact(concrete(at(container).items[0]))) {
    const size_t which = at(container).position;
    const V dict = made(Value::kDict, PyDict_New());
    const V view = made(Value::kView, runtime::helpers::dict_view(concrete(dict), static_cast<int64_t>(which)));
    at(view).items = {dict};
    at(view).position = which;
    return view;
  }
  PyObject* empty = PyRange_Check(object) ? PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyRange_Type), "i", 0) : PyTuple_New(0);
  const V v = constant(empty);
  Py_DECREF(empty);
  return v;
}

// A virtual iterator has told that it is at its end. From now on it has no items, whatever its containers get.
void Recorder::end_iterator(V iterator) {
  at(iterator).position = 0;
  at(iterator).items.clear();
  if (at(iterator).source != kNoValue) {
    std::vector<V> source = at(at(iterator).source).items;
    for (V& part : source)
      if (!is_const(part) || !PyCallable_Check(concrete(part))) part = empty_like(part);
    const V tuple = virtual_tuple(std::move(source));
    at(iterator).source = tuple;
  }
  std::erase(open_iterators_, iterator);
  changed(iterator);
}

// What is left of a virtual iterator, which has nothing left then.
void Recorder::use_up(V iterator, std::vector<V>* items) {
  Value& value = at(iterator);
  items->assign(value.items.begin() + static_cast<ptrdiff_t>(value.position), value.items.end());
  PyObject* rest = PySequence_Tuple(value.concrete);
  if (rest == nullptr) PyErr_Clear();
  Py_XDECREF(rest);
  end_iterator(iterator);
}

// Items that this iterator still gives, or -1.
int64_t Recorder::left_of(V iterator) {
  if (at(iterator).kind == Value::kIterator) return static_cast<int64_t>(at(iterator).items.size() - at(iterator).position);
  if (const auto known = iterators_.find(iterator); known != iterators_.end()) return static_cast<int64_t>(known->second.items.size() - known->second.position);
  return items_left(concrete(iterator));
}

// Does somebody take this call's result to iterate over it, and not to look at?
static bool is_iterated(const vm::Inst* call) {
  const vm::Op op = vm::opcode(vm::next(call));
  return op == vm::Op::kGetIter || op == vm::Op::kCall || op == vm::Op::kListExtend || op == vm::Op::kUnpackSequence;
}

// A builtin that calls Python code back, or iterates over what such code gives: that is followed, as a function in Python that does the same, where the trace would call it otherwise.
std::optional<HookResult> Recorder::call_in_python(vm::ThreadView& view, PyObject* callee, const std::vector<V>& args, int pops) {
  const std::string name = callable_name(callee);
  const bool iterates = name == "enumerate" || name == "zip" || name == "itertools.chain" || name == "itertools.islice";
  const auto entered = [&](PyObject* function) -> std::optional<HookResult> {
    if (function == nullptr) PyErr_Clear();
    else if (!done_ && enter_function(view, constant(function), args, nullptr, pops, vm::Continuation::kPush)) return HookResult::kReload;
    if (entered_error_) return HookResult::kError;
    if (done_) return HookResult::kContinue;
    return std::nullopt;
  };
  const auto iterates_in_python = [this](V v) { return python_iter(Py_TYPE(concrete(v))) != nullptr && !is_tensor(concrete(v)); };
  if (done_) return HookResult::kContinue;
  if (iterates) {
    for (size_t i = args.size(); i-- > 0;) {
      const int depth = static_cast<int>(args.size() - i);
      if (at(args[i]).kind != Value::kGenerator || peek(depth) != args[i] || !is_of_modules(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(concrete(at(args[i]).items[0]))))) continue;
      if (std::optional<HookResult> taken = consume_operand(view, args[i], depth)) return taken;
    }
    const auto asks = [&](V v) { return iterates_in_python(v) && !PyIter_Check(concrete(v)); };
    if (name == "zip" && args.size() < 9 && std::any_of(args.begin(), args.end(), asks)) return entered(with_iterators(name, args.size()));
    return std::nullopt;
  }
  if (name == "builtins.iter" && args.size() == 1 && iterates_in_python(args[0])) {
    know_type(args[0]);
    guard_type_unchanged(Py_TYPE(concrete(args[0])));
    return entered(python_iter(Py_TYPE(concrete(args[0]))));
  }
  if (name == "map" || name == "filter") {
    PyObject* const function = args.size() == 2 && concrete(args[0]) != Py_None && is_iterated(view.ip) ? in_python(name, args.size()) : nullptr;
    const V generator = function != nullptr ? make_generator(constant(function), args, nullptr) : kNoValue;
    if (done_) return HookResult::kContinue;
    return generator == kNoValue ? std::nullopt : std::optional(finish_call(view, generator, pops));
  }
  if (name == "builtins.max" || name == "builtins.min") {
    std::vector<V> items = args;
    if (args.size() == 1 && (!(PyTuple_CheckExact(concrete(args[0])) || PyList_CheckExact(concrete(args[0]))) || !iteration_items(args[0], &items))) return std::nullopt;
    if (done_ || items.empty() || std::none_of(items.begin(), items.end(), [this](V v) { return is_tensor(concrete(v)); })) return std::nullopt;
  } else if (name != "_functools.reduce") {
    return std::nullopt;
  }
  return entered(in_python(name, args.size()));
}

}  // namespace dynvm::tracer
