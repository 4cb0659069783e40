// Recording of building and taking apart containers: tuples, lists and dicts stay virtual until something needs the object. See recorder.h.
#include "runtime/exec/helpers.h"
#include "runtime/base/heuristics.h"
#include "tracer/recorder.h"

// 3.13's public headers no longer have it.
extern "C" PyObject* _PyList_Extend(PyListObject* list, PyObject* iterable);

namespace dynvm::tracer {

using ir::kNoRef;
using ir::Ref;
using ir::Type;
using vm::HookResult;
using vm::Op;
using IrOp = ir::Op;

// The items of a sequence value, as Values, when they are known under guards.
bool Recorder::known_items(V v, std::vector<V>* items) {
  Value& value = at(v);
  if (value.items_known && (value.kind == Value::kTuple || value.kind == Value::kList || (value.kind == Value::kObject && is_plain_tuple(value.concrete)))) {
    *items = value.items;
    return true;
  }
  PyObject* o = value.concrete;
  if (o == nullptr) return false;
  if (is_plain_tuple(o) && (is_const(v) || promote(v))) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++) items->push_back(constant(PyTuple_GET_ITEM(o, i)));
    return true;
  }
  if (is_plain_tuple(o) && value.kind == Value::kObject && know_type(v)) {
    Ref tuple = as_object(v);
    Ref length = emit(IrOp::k_tuple_len, Type::kInt, {tuple});
    PyObject* size = PyLong_FromSsize_t(PyTuple_GET_SIZE(o));
    guard(IrOp::k_guard_true, {emit(IrOp::k_eq_int, Type::kBool, {length, as_int(constant(size))})});
    Py_DECREF(size);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
      items->push_back(object(emit(IrOp::k_tuple_item, Type::kObject, {tuple}, i), PyTuple_GET_ITEM(o, i), true));
    at(v).items = *items;
    at(v).items_known = true;
    return true;
  }
  if (PyList_CheckExact(o) && PyList_GET_SIZE(o) <= base::heuristics().max_known_list && !lessons_.changing_lists.count(o) && promote(v)) {
    list_guard(v);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); i++) items->push_back(constant(PyList_GET_ITEM(o, i)));
    return true;
  }
  if (PyList_CheckExact(o) && value.kind == Value::kObject && know_type(v)) {
    Ref list = as_object(v);
    PyObject* size = PyLong_FromSsize_t(PyList_GET_SIZE(o));
    guard(IrOp::k_guard_true, {emit(IrOp::k_eq_int, Type::kBool, {emit(IrOp::k_list_len, Type::kInt, {list}), as_int(constant(size))})});
    Py_DECREF(size);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); i++) {
      PyObject* index = PyLong_FromSsize_t(i);
      Ref position = as_int(constant(index));
      Py_DECREF(index);
      items->push_back(object(emit(IrOp::k_list_item, Type::kObject, {list, position}), PyList_GET_ITEM(o, i), true));
    }
    return true;
  }
  return false;
}

// list.extend(source) for a list that the trace has made and nobody else has; false: it is something else.
bool Recorder::extend_virtual(V list, V source) {
  PyObject* s = concrete(source);
  std::vector<V> items;
  if (at(list).kind != Value::kList || at(list).object != kNoRef || !(is_plain_tuple(s) || PyList_CheckExact(s)) || !known_items(source, &items) || done_) return false;
  for (V item : items) PyList_Append(concrete(list), concrete(item));
  at(list).items.insert(at(list).items.end(), items.begin(), items.end());
  changed(list);
  return true;
}

// A virtual list or dict becomes an ordinary object: something changes it in a way that is not followed.
void Recorder::devirtualise(V v) {
  if (at(v).kind != Value::kList && at(v).kind != Value::kDict) return;
  Ref ref = as_object(v);
  Value& value = at(v);
  value.kind = Value::kObject;
  value.ref = ref;
  value.items_known = false;
  value.is_result = value.type_known = true;
}

V Recorder::virtual_tuple(std::vector<V> items) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(items.size()));
  for (size_t i = 0; i < items.size(); i++) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(concrete(items[i])));
  const V v = virtual_object(Value::kTuple, std::move(items), tuple);
  Py_DECREF(tuple);
  return v;
}

// Of start, stop and step. kNoValue: an exception is set.
V Recorder::virtual_slice(std::vector<V> ends) {
  PyObject* slice = PySlice_New(concrete(ends[0]), concrete(ends[1]), concrete(ends[2]));
  if (slice == nullptr) return kNoValue;
  const V v = virtual_object(Value::kSlice, std::move(ends), slice);
  Py_DECREF(slice);
  return v;
}

// A tuple of these names that lives as long as the trace.
PyObject* Recorder::names_tuple(const std::vector<PyObject*>& names) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(names.size()));
  for (size_t i = 0; i < names.size(); i++) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(names[i]));
  owned_.push_back(tuple);
  return tuple;
}

// A virtual set of these; kNoValue: hashing one might run Python code.
V Recorder::virtual_set(const std::vector<V>& items) {
  for (V item : items)
    if (!hashes_natively(item) || done_) return kNoValue;
  PyObject* made = PySet_New(nullptr);
  const V set = made == nullptr ? kNoValue : virtual_object(Value::kSet, {}, made);
  Py_XDECREF(made);
  for (V item : items) add_to_set(set, item);
  return set;
}

bool Recorder::add_to_set(V set, V item) {
  if (at(set).kind != Value::kSet || !hashes_natively(item) || done_) return false;
  if (PySet_Contains(concrete(set), concrete(item)) == 0) {
    settle_iterators(concrete(set));
    PySet_Add(concrete(set), concrete(item));
    at(set).items.push_back(item);
    changed(set);
  }
  return true;
}

// format(value, spec) after a conversion (0: none). A constant's is a constant, and a string is its own.
HookResult Recorder::format(vm::ThreadView& view, V value, V spec, int conversion, int pops) {
  PyObject* o = concrete(value);
  const bool known = is_immutable(o) && !PyTuple_Check(o) && !PyType_Check(o) && (spec == null_ || PyUnicode_CheckExact(concrete(spec)));
  if (!known || !know_type(value)) return done_ ? HookResult::kContinue : residual(view, IrOp::k_format_value, {value, spec}, conversion, pops);
  if (spec == null_ && conversion == 0 && PyUnicode_CheckExact(o)) {
    pop(view, pops);
    push(view, value);
    return next(view);
  }
  if (!is_const(value) || !(spec == null_ || is_const(spec))) return residual(view, IrOp::k_format_known, {value, spec}, conversion, pops);
  PyObject* text = runtime::helpers::format_value(o, concrete(spec), conversion);
  if (text == nullptr) return raised(view);
  const V folded = constant(text);
  Py_DECREF(text);
  pop(view, pops);
  push(view, folded);
  return next(view);
}

HookResult Recorder::record_containers(vm::ThreadView& view, Op op, int arg) {
  auto top_values = [&](int n) {
    auto& slots = top().slots;
    return std::vector<V>(slots.end() - n, slots.end());
  };
  auto put = [&](int pops, V v) {
    pop(view, pops);
    push(view, v);
    return next(view);
  };
  switch (op) {
    case Op::kBuildTuple:
    case Op::kBuildList: {
      std::vector<V> items = top_values(arg);
      PyObject* made = op == Op::kBuildTuple ? PyTuple_New(arg) : PyList_New(arg);
      if (made == nullptr) return raised(view);
      for (int i = 0; i < arg; i++) {
        PyObject* item = Py_NewRef(concrete(items[i]));
        if (op == Op::kBuildTuple) PyTuple_SET_ITEM(made, i, item);
        else PyList_SET_ITEM(made, i, item);
      }
      V v = virtual_object(op == Op::kBuildTuple ? Value::kTuple : Value::kList, std::move(items), made);
      Py_DECREF(made);
      return put(arg, v);
    }
    case Op::kBuildSlice: {
      std::vector<V> items = top_values(arg);
      if (arg == 2) items.push_back(constant(Py_None));
      const V v = virtual_slice(std::move(items));
      return v == kNoValue ? raised(view) : put(arg, v);
    }
    case Op::kBuildMap:
    case Op::kBuildConstKeyMap: {
      std::vector<V> keys, items;
      int pops = op == Op::kBuildMap ? 2 * arg : arg + 1;
      std::vector<V> stack = top_values(pops);
      if (op == Op::kBuildMap) {
        for (int i = 0; i < arg; i++) {
          keys.push_back(stack[2 * i]);
          items.push_back(stack[2 * i + 1]);
        }
      } else {
        PyObject* names = concrete(stack.back());
        for (int i = 0; i < arg; i++) {
          keys.push_back(constant(PyTuple_GET_ITEM(names, i)));
          items.push_back(stack[i]);
        }
      }
      bool plain = true;
      for (V key : keys) plain = plain && is_const(key) && PyUnicode_CheckExact(concrete(key));
      if (!plain) {
        std::vector<V> pairs;
        for (size_t i = 0; i < keys.size(); i++) {
          pairs.push_back(keys[i]);
          pairs.push_back(items[i]);
        }
        return residual(view, IrOp::k_build_map_any, pairs, 0, pops);
      }
      PyObject* made = PyDict_New();
      if (made == nullptr) return raised(view);
      std::vector<PyObject*> names;
      std::vector<V> values;
      for (size_t i = 0; i < keys.size(); i++) {
        PyDict_SetItem(made, concrete(keys[i]), concrete(items[i]));
        size_t k = 0;
        while (k < names.size() && PyUnicode_Compare(names[k], concrete(keys[i])) != 0) k++;
        if (k == names.size()) {
          names.push_back(concrete(keys[i]));
          values.push_back(items[i]);
        } else {
          values[k] = items[i];
        }
      }
      V v = virtual_object(Value::kDict, std::move(values), made);
      at(v).keys = std::move(names);
      Py_DECREF(made);
      return put(pops, v);
    }
    case Op::kBuildSet: {
      const V set = virtual_set(top_values(arg));
      if (done_) return HookResult::kContinue;
      if (set == kNoValue) return residual(view, IrOp::k_build_set, top_values(arg), 0, arg);
      pop(view, arg);
      push(view, set);
      return next(view);
    }
    case Op::kSetAdd:
    case Op::kSetUpdate: {
      const V set = peek(arg + 1);
      std::vector<V> items{peek(1)};
      bool added = true;
      if (op == Op::kSetUpdate) {
        items.clear();
        added = at(set).kind == Value::kSet && iteration_items(peek(1), &items);
      }
      for (size_t i = 0; added && i < items.size(); i++) added = add_to_set(set, items[i]);
      if (!added) {
        if (done_) return HookResult::kContinue;
        PyObject* method = vm::own_attribute(&PySet_Type, op == Op::kSetAdd ? "add" : "update");
        bool ok = true;
        run_residual(IrOp::k_call, {constant(method), set, peek(1)}, -1, &ok);
        if (!ok) return raised(view);
      }
      pop(view, 1);
      return next(view);
    }
    case Op::kBuildString: {
      std::vector<V> items = top_values(arg);
      return residual(view, IrOp::k_build_string, items, 0, arg);
    }
    case Op::kFormatValue: {
      bool with_spec = (arg & 4) != 0;
      return format(view, peek(with_spec ? 2 : 1), with_spec ? peek(1) : null_, arg & 3, with_spec ? 2 : 1);
    }
    case Op::kConvertValue: return format(view, peek(1), null_, arg, 1);
    case Op::kListAppend: {
      V list = peek(arg + 1), item = peek(1);
      if (at(list).kind == Value::kList && at(list).object == kNoRef) {
        if (PyList_Append(concrete(list), concrete(item)) < 0) return raised(view);
        at(list).items.push_back(item);
        changed(list);
      } else {
        bool ok = true;
        run_residual(IrOp::k_list_append, {list, item}, 0, &ok);
        if (!ok) return raised(view);
        if (at(list).kind == Value::kList) at(list).items.push_back(item);
      }
      pop(view, 1);
      return next(view);
    }
    case Op::kListExtend: {
      V list = peek(arg + 1), source = peek(1);
      PyObject* s = concrete(source);
      if (extend_virtual(list, source)) {
        pop(view, 1);
        return next(view);
      }
      if (done_) return HookResult::kContinue;
      devirtualise(list);
      bool ok = true;
      if ((PyTuple_CheckExact(s) || PyList_CheckExact(s)) && know_type(source)) {
        run_residual(IrOp::k_list_extend_list, {list, source}, 0, &ok);
      } else {
        static PyObject* extend = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyList_Type), "extend");
        run_residual(IrOp::k_call, {constant(extend), list, source}, -1, &ok);
      }
      if (!ok) return raised(view);
      pop(view, 1);
      return next(view);
    }
    case Op::kListToTuple: {
      V list = peek(1);
      std::vector<V> items;
      if (!known_items(list, &items)) return residual(view, IrOp::k_call_new, {constant(reinterpret_cast<PyObject*>(&PyTuple_Type)), list}, -1, 1);
      PyObject* made = PyList_AsTuple(concrete(list));
      if (made == nullptr) return raised(view);
      V v = virtual_object(Value::kTuple, std::move(items), made);
      Py_DECREF(made);
      return put(1, v);
    }
    case Op::kMapAdd: {
      V dict = peek(arg + 2), key = peek(2), value = peek(1);
      if (put_item(dict, key, value)) {
        pop(view, 2);
        return next(view);
      }
      if (done_) return HookResult::kContinue;
      devirtualise(dict);
      bool ok = true;
      const bool by_text = PyUnicode_CheckExact(concrete(key)) && know_type(key);  // the dict is the comprehension's own
      run_residual(by_text ? IrOp::k_dict_set : IrOp::k_set_item, {dict, key, value}, 0, &ok);
      if (!ok) return raised(view);
      pop(view, 2);
      return next(view);
    }
    case Op::kDictUpdate:
    case Op::kDictMerge: {
      V dict = peek(arg + 1), source = peek(1);
      if (at(dict).kind == Value::kDict && at(dict).object == kNoRef) {
        std::vector<PyObject*> keys;
        std::vector<V> items;
        if (known_dict(source, &keys, &items)) {
          PyObject* duplicate = nullptr;
          for (PyObject* key : keys)
            if (op == Op::kDictMerge && PyDict_Contains(concrete(dict), key) == 1) duplicate = key;
          if (duplicate != nullptr) {
            give_up(Abort::k_exception, "duplicate keyword argument");
            return HookResult::kContinue;
          }
          for (size_t i = 0; i < keys.size(); i++) put_item(dict, constant(keys[i]), items[i]);
          pop(view, 1);
          return next(view);
        }
        if (done_) return HookResult::kContinue;
      }
      const bool empty = at(dict).kind == Value::kDict && at(dict).keys.empty();
      devirtualise(dict);
      // A residual merge of keyword arguments would not notice duplicates: there are none where the first mapping is merged.
      if (op == Op::kDictMerge && empty && PyObject_HasAttrString(concrete(source), "keys")) {
        static PyObject* update = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyDict_Type), "update");
        bool ok = true;
        run_residual(IrOp::k_call, {constant(update), dict, source}, -1, &ok);
        if (!ok) return raised(view);
        pop(view, 1);
        return next(view);
      }
      if (op == Op::kDictMerge || !PyDict_CheckExact(concrete(source)) || !know_type(source)) {
        give_up(Abort::k_opcode, "DictMerge from another mapping");
        return HookResult::kContinue;
      }
      bool ok = true;
      run_residual(IrOp::k_dict_merge, {dict, source}, 0, &ok);
      if (!ok) return raised(view);
      pop(view, 1);
      return next(view);
    }
    case Op::kGetLen: {
      V length = length_of(peek(1));
      if (length == kNoValue) {
        give_up(Abort::k_opcode, "GetLen");
        return HookResult::kContinue;
      }
      push(view, length);
      return next(view);
    }
    case Op::kUnpackSequence: {
      V sequence = peek(1);
      PyObject* s = concrete(sequence);
      std::vector<V> items;
      if (is_tensor(s)) {
        bool error = false;
        const V rows = rows_of(sequence, &error);
        if (error) return raised(view);
        if (done_) return HookResult::kContinue;
        if (rows == kNoValue || at(rows).items.size() != static_cast<size_t>(arg)) {
          give_up(Abort::k_unsupported_operation, "unpacking a tensor");
          return HookResult::kContinue;
        }
        sequence = rows;
        s = concrete(rows);
      }
      if (std::optional<HookResult> entered = consume_operand(view, sequence, 1, static_cast<size_t>(arg) + 1)) return *entered;  // one too many is an error, whatever follows
      bool exact = is_plain_tuple(s) ? PyTuple_GET_SIZE(s) == arg : PyList_CheckExact(s) && PyList_GET_SIZE(s) == arg;
      if (at(sequence).kind == Value::kIterator && at(sequence).items.size() == at(sequence).position + static_cast<size_t>(arg)) {
        use_up(sequence, &items);
      } else if (!exact || !known_items(sequence, &items)) {
        if (done_) return HookResult::kContinue;
        bool ok = true;
        V tuple = run_residual(IrOp::k_unpack, {sequence}, arg, &ok);  // what has been unpacked is gone from an iterator, even where it gives up
        if (!ok) return raised(view);
        Ref ref = as_object(tuple);
        PyObject* o = concrete(tuple);
        for (int i = 0; i < arg; i++) items.push_back(object(emit(IrOp::k_tuple_item, Type::kObject, {ref}, i), PyTuple_GET_ITEM(o, i), true));
      } else if (done_) {
        return HookResult::kContinue;
      }
      pop(view, 1);
      for (int i = arg; i-- > 0;) push(view, items[i]);
      return next(view);
    }
    case Op::kUnpackEx: {
      size_t before = static_cast<size_t>(arg & 0xff), after = static_cast<size_t>(arg >> 8);
      std::vector<V> items;
      if (std::optional<HookResult> entered = consume_operand(view, peek(1), 1)) return *entered;
      if (is_tensor(concrete(peek(1))) || !known_items(peek(1), &items) || items.size() < before + after) {
        if (!done_) give_up(Abort::k_opcode, "UnpackEx");
        return HookResult::kContinue;
      }
      std::vector<V> middle(items.begin() + static_cast<ptrdiff_t>(before), items.end() - static_cast<ptrdiff_t>(after));
      PyObject* list = PyList_New(static_cast<Py_ssize_t>(middle.size()));
      if (list == nullptr) return raised(view);
      for (size_t i = 0; i < middle.size(); i++) PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), Py_NewRef(concrete(middle[i])));
      V rest = virtual_object(Value::kList, std::move(middle), list);
      Py_DECREF(list);
      pop(view, 1);
      for (size_t i = items.size(); i-- > items.size() - after;) push(view, items[i]);
      push(view, rest);
      for (size_t i = before; i-- > 0;) push(view, items[i]);
      return next(view);
    }
    default: break;
  }
  give_up(Abort::k_opcode, std::string(vm::op_name(op)));
  return HookResult::kContinue;
}

// Keys (str) and Values of a dict whose contents are known under guards.
bool Recorder::known_dict(V v, std::vector<PyObject*>* keys, std::vector<V>* items) {
  if (at(v).kind == Value::kDict) {
    *keys = at(v).keys;
    *items = at(v).items;
    return true;
  }
  if (const Contents* contents = known_contents(v)) {
    *keys = contents->keys;
    *items = contents->items;
    return true;
  }
  PyObject* dict = concrete(v);
  if (!PyDict_CheckExact(dict)) return false;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(dict, &position, &key, &value)) {
    if (!PyUnicode_CheckExact(key)) return false;
    keys->push_back(key);
  }
  const bool same_dict = promote(v);
  if (done_) return false;
  if (!same_dict && !know_type(v)) return false;
  const bool same_items = same_dict && guard_dict_unchanged(dict);
  if (!same_items) {  // its keys decide what is done, its values are loaded
    guard(IrOp::k_guard_true, {emit(IrOp::k_dict_has_keys, Type::kBool, {as_object(v), const_ref(names_tuple(*keys))})});
  }
  for (PyObject* name : *keys) {
    constant(name);
    value = PyDict_GetItemWithError(dict, name);
    if (same_dict) {
      items->push_back(dict_item(dict, name));
    } else {
      items->push_back(object(emit(IrOp::k_dict_get, Type::kObject, {as_object(v), const_ref(name)}), value, false));
    }
  }
  return !done_;
}

// len(v) for builtin containers; kNoValue otherwise.
V Recorder::length_of(V v) {
  PyObject* o = concrete(v);
  auto number = [&](Py_ssize_t n) {
    PyObject* length = PyLong_FromSsize_t(n);
    V result = constant(length);
    Py_DECREF(length);
    return result;
  };
  if (at(v).kind == Value::kTuple || at(v).kind == Value::kList || at(v).kind == Value::kDict) return number(PyObject_Length(o));
  if (is_tensor(o) && overridden("Tensor.__len__", {v})) return kNoValue;
  if (is_tensor(o)) {
    as_tensor(v);  // its sizes are guarded where it enters the trace
    if (done_ || PyObject_Length(o) < 0) {
      PyErr_Clear();
      return kNoValue;
    }
    return sizes_change(v) ? size_number(v, 0) : number(PyObject_Length(o));
  }
  if (is_plain_tuple(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o)) {
    if (promote(v)) return number(PyObject_Length(o));
  }
  if (signatures_.count(v) != 0) return number(PyObject_Length(o));
  if (PyDict_CheckExact(o) || Py_TYPE(o) == &PyODict_Type) {
    if (at(v).kind != Value::kNull && promote(v) && guard_dict_unchanged(o)) return number(PyDict_GET_SIZE(o));
  }
  IrOp op = PyList_CheckExact(o) ? IrOp::k_list_len : is_plain_tuple(o) ? IrOp::k_tuple_len : PyDict_CheckExact(o) ? IrOp::k_dict_len : IrOp::kCount;
  if (op == IrOp::kCount || !know_type(v)) return kNoValue;
  PyObject* length = PyLong_FromSsize_t(PyObject_Length(o));
  V result = scalar(Type::kInt, emit(op, Type::kInt, {as_object(v)}), length);
  Py_DECREF(length);
  return result;
}

// A tuple of few integers that 64 bits hold.
static bool are_ints(PyObject* c) {
  constexpr Py_ssize_t kMost = 16;
  if (!PyTuple_CheckExact(c) || PyTuple_GET_SIZE(c) > kMost) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c); i++) {
    int overflow = 0;
    if (!PyLong_CheckExact(PyTuple_GET_ITEM(c, i)) || (PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(c, i), &overflow), overflow != 0)) return false;
  }
  return true;
}

// `value in container`; kNoValue: not known.
V Recorder::contains(V container, V value) {
  PyObject *c = concrete(container), *o = concrete(value);
  auto fold = [&]() -> V {
    int truth = PySequence_Contains(c, o);
    if (truth < 0) {
      PyErr_Clear();
      return kNoValue;
    }
    return constant(truth ? Py_True : Py_False);
  };
  if (at(container).kind == Value::kDict) {
    if (PyUnicode_CheckExact(o) && promote(value)) return fold();  // contents are known
    return kNoValue;
  }
  if (at(container).kind == Value::kView && at(container).position == 0 && known_contents(at(container).items[0]) != nullptr)
    return PyUnicode_CheckExact(o) && promote(value) ? fold() : kNoValue;
  if (PyUnicode_CheckExact(c) && PyUnicode_CheckExact(o)) return promote(container) && promote(value) ? fold() : kNoValue;
  if (at(container).kind == Value::kSet) return hashes_natively(value) && !done_ ? fold() : kNoValue;
  bool dict = PyDict_CheckExact(c) || Py_TYPE(c) == &PyODict_Type;
  if (dict && PyUnicode_CheckExact(o)) {
    if (!promote(value)) return kNoValue;
    if (promote(container)) {
      auto cached = items_.find({c, o});
      if (cached != items_.end()) return constant(cached->second == null_ ? Py_False : Py_True);
      if (guard_dict_unchanged(c, o)) return fold();
    }
    if (done_ || !PyDict_CheckExact(c) || !know_type(container)) return kNoValue;
    Ref found = emit(IrOp::k_dict_get, Type::kObject, {as_object(container), const_ref(o)});
    Ref missing = emit(IrOp::k_is_same, Type::kBool, {found, const_ref(nullptr)});
    int truth = PyDict_Contains(c, o);
    return scalar(Type::kBool, emit(IrOp::k_not_bool, Type::kBool, {missing}), truth == 1 ? Py_True : Py_False);
  }
  if (dict && (is_tensor(o) || PyType_Check(o)) && promote(container) && promote(value) && guard_dict_unchanged(c)) {
    return fold();  // keys hash by identity
  }
  if (PyList_CheckExact(c) && is_immutable(o)) {
    std::vector<V> items;
    bool plain = true;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(c); i++) plain = plain && is_immutable(PyList_GET_ITEM(c, i));
    if (plain && (at(container).kind == Value::kList || is_const(container) || at(container).stable) && known_items(container, &items)) {
      bool all = promote(value);
      for (V item : items) all = all && promote(item);
      if (all) return fold();
    }
    if (done_) return kNoValue;
  }
  if (at(value).kind == Value::kScalar && at(value).scalar == Type::kInt && is_const(container) && are_ints(c)) {  // a branch, as `step == 10 or step == 100` is
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c); i++) {
      const int64_t item = PyLong_AsLongLong(PyTuple_GET_ITEM(c, i));
      const bool equal = PyLong_AsLongLong(o) == item;
      guard(equal ? IrOp::k_guard_true : IrOp::k_guard_false, {emit(IrOp::k_eq_int, Type::kBool, {as_int(value), emit(IrOp::k_const_int, Type::kInt, {}, item)})}, ir::kTruth);
      if (done_ || equal) return done_ ? kNoValue : constant(Py_True);
    }
    return constant(Py_False);
  }
  if ((PyTuple_CheckExact(c) || PyFrozenSet_CheckExact(c)) && promote(container) && (PyFrozenSet_CheckExact(c) || is_immutable(c))) {
    if (is_immutable(o) && promote(value)) return fold();
  }
  if (PyTuple_CheckExact(c) && at(container).items_known && is_immutable(c) && is_immutable(o)) {
    bool all = promote(value);
    for (V item : std::vector<V>(at(container).items)) all = all && promote(item);
    if (all) return fold();
  }
  if (PyTuple_CheckExact(c) && at(container).items_known && compares_natively(value)) {
    bool all = true;
    for (V item : std::vector<V>(at(container).items)) all = all && compares_natively(item);
    if (all) return fold();
  }
  return kNoValue;
}

}  // namespace dynvm::tracer
