// What a store tells and makes untrue: of attributes of instances, of items of dicts and lists. See recorder.h.
//
// The recorder knows attributes (fields_), items of constant dicts (items_), and what it has guarded as a whole since the last barrier (known_:
// a dict's version, a list's items). A store through one Value changes what is known of each other Value that may be the same object when the trace
// runs, whether it was when the trace was recorded or not (may_be_one). And a run may store another object than the recorded one: so a store of what
// is no constant leaves nothing folded behind it, not even where the recorded object was there before.
#include <algorithm>

#include "tracer/learn.h"
#include "tracer/recorder.h"
#include "vm/objects.h"

namespace dynvm::tracer {

using ir::Ref;
using ir::Type;
using IrOp = ir::Op;

// Methods of C that a class's own call by super(), and that hand the instance to nobody.
PyObject* Recorder::object_setattr() {
  static PyObject* const method = vm::own_attribute(&PyBaseObject_Type, "__setattr__");
  return method;
}
static PyObject* ordered_set_item() {
  static PyObject* const method = vm::own_attribute(&PyODict_Type, "__setitem__");
  return method;
}
static PyObject* dict_set_item() {
  static PyObject* const method = vm::own_attribute(&PyDict_Type, "__setitem__");
  return method;
}
bool Recorder::keeps_instance(PyObject* callee) { return callee == object_setattr() || callee == ordered_set_item() || callee == dict_set_item(); }

// Made by this trace and in nobody else's hands: it is none of the objects that come from elsewhere.
bool Recorder::is_own(V v) { return at(v).fresh && !at(v).escaped; }

// Can two Values be one object when the trace runs?
bool Recorder::may_be_one(V a, V b) {
  if (a == b || concrete(a) == concrete(b)) return true;
  const auto told_apart = [this](V v) { return is_const(v) || at(v).fresh; };  // a constant was there before what this trace has made, and each of these is another one
  if ((told_apart(a) && told_apart(b)) || is_own(a) || is_own(b)) return false;
  const auto known = [this](V v) { return is_const(v) || at(v).type_known; };
  return !known(a) || !known(b) || Py_TYPE(concrete(a)) == Py_TYPE(concrete(b));
}

// The trace writes this dict, so its version cannot be guarded: learn that, and start again if it has been.
void Recorder::dict_written(PyObject* dict, PyTypeObject* of) {
  settle_iterators(dict);
  bool was_guarded = guarded_dicts_.count(dict) != 0;
  bool fresh = lessons_.changing_dicts.insert(dict).second;
  if (fresh && was_guarded) {
    if (of != nullptr) lessons_.changing_instances[of]++;
    // Where a second one is met in the same place or variable, as one that each iteration makes, none is taken for the same each time any more.
    for (const Value& value : values_) {
      const Site* site = value.concrete == dict && value.site >= 0 ? &sites_[static_cast<size_t>(value.site)] : nullptr;
      if (site != nullptr && (site->kind == Site::kValue || site->kind == Site::kSlot) && ++lessons_.written_dicts[{reinterpret_cast<PyCodeObject*>(site->a), site->index}] > 1) note_changing(lessons_, *site);
    }
    note_holder(dict);
    doom(Abort::k_dict_changes);
  }
}

// A dict is written that was known as an item of another one. Where that is another object than when the same was found before, as one that each iteration makes, it is not taken for the same
// each time any more.
void Recorder::note_holder(PyObject* dict) {
  for (PyObject* holder : guarded_dicts_) {
    Py_ssize_t position = 0;
    PyObject *key, *item;
    bool holds = false;
    while (!holds && PyDict_Next(holder, &position, &key, &item)) holds = item == dict;
    if (!holds) continue;
    PyObject*& known = lessons_.written_in[{top().code, current_unit_}];
    const bool is_another = known != nullptr && known != holder;
    known = holder;
    if (!is_another) continue;
    for (const Value& value : values_)
      if (value.concrete == holder && value.site >= 0) note_changing(lessons_, sites_[static_cast<size_t>(value.site)]);
  }
}

// Is this object that item of the dict? Storing what is there already changes no version.
bool Recorder::holds(PyObject* dict, PyObject* key, PyObject* value) {
  PyObject* item = PyDict_GetItemWithError(dict, key);
  PyErr_Clear();
  return item != nullptr && item == value;
}

// A constant dict has this item now. Whoever looks at its other items from here on has to ask for its version again.
void Recorder::item_stored(PyObject* dict, PyObject* key, V value) {
  items_[{dict, key}] = value;
  if (!is_const(value)) known_.erase({'d', dict, 0});
}

// Stores that were put off, and modes that are off for the trace alone, are due before anything that could look.
void Recorder::flush_pending() {
  if (pending_.empty() && modes_.off.empty()) return;
  snapshot();
  for (; !modes_.off.empty(); modes_.off.pop_back()) {
    emit(IrOp::k_call_known, Type::kObject, {const_ref(pop_function())}, -1, true);
    effect();
  }
  if (!pending_.empty()) stored_at_ = where();
  auto due = std::move(pending_);
  pending_.clear();
  for (auto& [place, v] : due) {
    std::vector<Ref> args{const_ref(place.first), const_ref(place.second), as_object(v)};
    escape(v);
    emit(IrOp::k_dict_set, Type::kVoid, args, 0, true);
    effect();
  }
}

// These items are not known any more. A store of one that was put off (pending_) is due first: who asks for it now looks into the dict.
void Recorder::forget_items(const std::function<bool(PyObject* dict, PyObject* key)>& test) {
  if (std::any_of(pending_.begin(), pending_.end(), [&](const auto& store) { return test(store.first.first, store.first.second); })) flush_pending();
  std::erase_if(items_, [&](const auto& item) { return test(item.first.first, item.first.second); });
}

// A container that may be a constant one is written: an item of that key, or any (null).
void Recorder::other_container_written(V container, PyObject* key) {
  if (is_const(container) || is_own(container)) return;
  if (!PyList_Check(concrete(container))) forget_items([key](PyObject*, PyObject* other) { return key == nullptr || !PyUnicode_Check(other) || PyUnicode_Compare(other, key) == 0; });
  const uint64_t kind = PyList_Check(concrete(container)) ? 'l' : 'd';
  std::erase_if(known_, [kind](const auto& each) { return std::get<0>(each) == kind; });
}

void Recorder::set_field(V object, PyObject* name, V value) {
  std::erase_if(fields_, [&](const auto& field) {
    if (PyUnicode_Compare(field.first.second, name) != 0 || !may_be_one(field.first.first, object)) return false;
    if (field.first.first != object) at(field.first.first).escaped_at = -1;  // what is not known of it is not absent any more
    return true;
  });
  fields_[{object, name}] = value;
}

// object.__setattr__ with these arguments: does it put the value into the instance and do nothing else, as no descriptor of the class stands for the name?
bool Recorder::only_stores(const std::vector<V>& args) {
  if (args.size() != 3 || !PyUnicode_CheckExact(concrete(args[1])) || !promote(args[1]) || !know_type(args[0])) return false;
  PyTypeObject* type = Py_TYPE(concrete(args[0]));
  guard_type_unchanged(type);
  PyObject* d = _PyType_Lookup(type, concrete(args[1]));
  return !done_ && (d == nullptr || !is_data_descriptor(d) || vm::slot_offset(d) >= 0);
}

// A value is about to be stored in an instance: is it one of the items of a dict that the trace knows?
void Recorder::before_store(V object, PyObject* name, V value) {
  PyTypeObject* type = Py_TYPE(concrete(object));
  PyObject* d = _PyType_Lookup(type, name);
  if (d != nullptr && vm::slot_offset(d) >= 0) return;
  if (is_const(object)) {
    PyObject* dict = vm::instance_dict(concrete(object));
    if (dict != nullptr && !holds(dict, name, concrete(value))) dict_written(dict, type);
  } else if (!is_own(object)) {
    for (const auto& [dict, of] : owned_dicts_) {
      if (of != type) continue;
      forget_items([of_dict = dict, name](PyObject* other, PyObject* key) { return other == of_dict && PyUnicode_Check(key) && PyUnicode_Compare(key, name) == 0; });
      known_.erase({'d', dict, 0});
    }
  }
}

void Recorder::after_store(V object, PyObject* name, V value) {
  set_field(object, name, value);
  PyObject* dict = is_const(object) ? vm::instance_dict(concrete(object)) : nullptr;
  if (dict != nullptr) item_stored(dict, name, value);
}

// Objects with known contents that others hold may be this container under another name, which is written.
void Recorder::other_contents_written(V container) {
  for (const auto& [v, contents] : contents_)
    if (v != container && at(v).escaped && may_be_one(v, container)) at(v).escaped_at = -1;
}

// What methods of containers write is not as it was read before.
void Recorder::before_known_call(PyObject* callee, const std::vector<V>& args) {
  if (callee == object_setattr()) return before_store(args[0], concrete(args[1]), args[2]);
  PyObject* o = concrete(args[0]);
  const std::string name = callable_name(callee);
  static constexpr const char* kReading[] = {".get", ".keys", ".values", ".items", ".copy", ".__contains__", ".__getitem__", ".__len__", ".__iter__", ".index", ".count"};
  if (!is_of_container(name) || std::any_of(std::begin(kReading), std::end(kReading), [&](const char* method) { return name.ends_with(method); })) return;
  devirtualise(args[0]);
  other_contents_written(args[0]);
  other_container_written(args[0], nullptr);
  if (PyList_Check(o) && is_const(args[0])) lessons_.changing_lists.insert(o);
  if (!PyDict_Check(o)) return;
  if (is_const(args[0])) dict_written(o);
  forget_items([o](PyObject* dict, PyObject*) { return dict == o; });
}

// After such a call: the attributes and items of an instance that this trace has made are known.
void Recorder::after_known_call(PyObject* callee, const std::vector<V>& args) {
  if (!keeps_instance(callee)) return;
  const V self = args[0];
  PyObject* name = args.size() == 3 && is_const(args[1]) && PyUnicode_CheckExact(concrete(args[1])) ? concrete(args[1]) : nullptr;
  if (!is_own(self) && (callee == object_setattr() || known_contents(self) == nullptr)) {
    if (callee == object_setattr()) after_store(self, name, args[2]);
    return;
  }
  if (name == nullptr || (callee == dict_set_item() && PyODict_Check(concrete(self)))) {
    escape(self);
    at(self).escaped_at = -1;
    return;
  }
  constant(name);  // keeps it
  if (callee == object_setattr()) return set_field(self, name, args[2]);
  Contents& contents = contents_[self];
  if (const size_t i = find_key(contents.keys, name); i < contents.keys.size()) {
    contents.items[i] = args[2];
  } else {
    contents.keys.push_back(name);
    contents.items.push_back(args[2]);
  }
}

}  // namespace dynvm::tracer
