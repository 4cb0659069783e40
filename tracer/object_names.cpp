// See object_names.h.
#include "tracer/object_names.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_set>
#include <utility>

#include "runtime/base/cache_folder.h"
#include "runtime/base/heuristics.h"
#include "vm/objects.h"
#include "vm/vm.h"

namespace dynvm::tracer {
namespace {

using namespace parts;


}  // namespace

ObjectNames::~ObjectNames() {
  for (PyObject* object : objects_) Py_XDECREF(object);
  for (PyObject* object : kept_) Py_DECREF(object);
}

std::vector<DictUse> ObjectNames::uses(std::vector<PyObject*>* owned) const {
  std::vector<DictUse> uses;
  for (const DictFact& fact : dict_facts_) uses.push_back(use_of(at(fact.dict), at(fact.key), owned));
  return uses;
}

std::vector<PyObject*> ObjectNames::take_objects() { return std::exchange(objects_, {}); }

int64_t ObjectNames::number_of(const void* object) const {
  const auto found = numbers_.find(object);
  return found == numbers_.end() ? -1 : found->second;
}

void ObjectNames::note_file(const std::string& path) {
  if (!known_files_.insert(path).second) return;
  if (std::string stamp = base::file_stamp(path); !stamp.empty()) files_.push_back({path, std::move(stamp)});
}

// What can be said of an object without its identity. Of code it is the place in a file that has not been changed.
std::string ObjectNames::description(PyObject* o, int depth) {
  if (o == nullptr) return "null";
  if (depth > base::heuristics().cache_depth) {
    undescribed_ = "deep " + type_text(Py_TYPE(o));
    return "...";
  }
  auto of = [&](PyObject* part) { return "<" + description(part, depth + 1) + ">"; };
  if (is_singleton(o)) return str(o);
  const std::string type = type_text(Py_TYPE(o));
  if (PyLong_CheckExact(o)) {
    PyObject* digits = PyNumber_ToBase(o, 16);
    std::string text = digits == nullptr ? std::string() : utf8(digits);
    Py_XDECREF(digits);
    return text;
  }
  if (PyFloat_CheckExact(o)) return str(o);  // the shortest text that gives it back
  if (PyUnicode_CheckExact(o)) return "'" + utf8(o);
  if (PyBytes_CheckExact(o)) return "b" + std::string(PyBytes_AS_STRING(o), static_cast<size_t>(PyBytes_GET_SIZE(o)));
  if (is_alias(o)) return type + " " + str(o);
  if (PyMethod_Check(o)) return type + of(PyMethod_GET_FUNCTION(o)) + of(PyMethod_GET_SELF(o));
  if (PyComplex_CheckExact(o) || PyRange_Check(o) || is_torch_value(o)) return type + " " + str(o);
  if (PyTuple_Check(o)) {
    std::string text = type;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++) text += of(PyTuple_GET_ITEM(o, i));
    return text;
  }
  if (PyFrozenSet_CheckExact(o)) {
    std::vector<std::string> items;
    PyObject* iterator = PyObject_GetIter(o);
    while (PyObject* item = iterator == nullptr ? nullptr : PyIter_Next(iterator)) {
      if (!is_value(item)) undescribed_ = "frozenset of objects";
      items.push_back(of(item));
      Py_DECREF(item);
    }
    Py_XDECREF(iterator);
    PyErr_Clear();
    std::sort(items.begin(), items.end());
    std::string text = type;
    for (const std::string& item : items) text += item;
    return text;
  }
  if (PySlice_Check(o)) {
    auto* slice = reinterpret_cast<PySliceObject*>(o);
    return type + of(slice->start) + of(slice->stop) + of(slice->step);
  }
  if (PyCode_Check(o)) {
    auto* code = reinterpret_cast<PyCodeObject*>(o);
    const std::string file = utf8(code->co_filename);
    note_file(file);
    return "code " + file + ":" + std::to_string(code->co_firstlineno) + " " + utf8(code->co_qualname) + " " + std::to_string(code->co_flags);
  }
  if (PyFunction_Check(o)) {
    auto* function = reinterpret_cast<PyFunctionObject*>(o);
    return "function " + utf8(function->func_qualname) + of(function->func_code);
  }
  if (PyType_Check(o)) return "class " + type_text(reinterpret_cast<PyTypeObject*>(o));
  if (PyModule_Check(o)) {
    PyObject* name = PyDict_GetItemString(PyModule_GetDict(o), "__name__");
    return "module " + (name != nullptr && PyUnicode_Check(name) ? utf8(name) : std::string());
  }
  if (PyCFunction_Check(o)) return "builtin " + std::string(reinterpret_cast<PyCFunctionObject*>(o)->m_ml->ml_name);
  if (is_descriptor_of_c(o)) return type + " " + utf8(PyDescr_NAME(o)) + " of " + type_text(PyDescr_TYPE(o));
  if (Py_TYPE(o) == &PyProperty_Type || Py_TYPE(o) == &PyStaticMethod_Type || Py_TYPE(o) == &PyClassMethod_Type) {
    std::string text = type;
    for_each_part(o, false, [&](Step step, int64_t, std::string_view name, PyObject* part) {
      if (step == Step::kMember && name != "__doc__") text.append(" ").append(name).append(of(part));
    });
    return text;
  }
  if (PyObject* dict = vm::existing_dict(o)) {  // a member of an enumeration
    PyObject* name = strncmp(Py_TYPE(Py_TYPE(o))->tp_name, "Enum", 4) == 0 ? PyDict_GetItemString(dict, "_name_") : nullptr;
    if (name != nullptr && PyUnicode_CheckExact(name)) return type + "." + utf8(name);
  }
  return type;
}

// Code that is run: `replace` can make others of the same name.
std::string ObjectNames::whole_description(PyObject* o) {
  std::string text = description(o);
  if (o == nullptr || !PyCode_Check(o)) return text;
  auto* code = reinterpret_cast<PyCodeObject*>(o);
  PyObject* bytes = PyCode_GetCode(code);
  text += " " + base::stable_hash(description(bytes) + description(code->co_consts) + description(code->co_names));
  Py_XDECREF(bytes);
  return text;
}

int32_t ObjectNames::add(PyObject* object, ObjectName name) {
  const auto number = static_cast<int32_t>(names_.size());
  name.description = whole_description(object);
  numbers_[object] = number;
  names_.push_back(std::move(name));
  objects_.push_back(Py_XNewRef(object));
  return number;
}

// Objects that need no way to them.
bool ObjectNames::name_by_itself(PyObject* o) {
  ObjectName name;
  if (PyCFunction_Check(o) && !bridge_->shortcut_name(o).empty()) {
    name.step = Step::kShortcut;
    name.text = bridge_->shortcut_name(o);
  } else if (is_singleton(o)) {
    name.step = Step::kSingleton;
    name.text = str(o);
  } else if (PyType_Check(o)) {
    auto* type = reinterpret_cast<PyTypeObject*>(o);
    std::tie(name.text, name.more) = type_name(type);
    name.step = Step::kQualified;
    if (qualified(name.text, name.more) != o) {
      const auto found = static_types().find(type->tp_name);
      if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || found == static_types().end() || found->second != type) return false;
      name.step = Step::kStaticType;
      name.text = type->tp_name;
      name.more.clear();
    }
  } else if (PyFunction_Check(o) || PyCFunction_Check(o)) {
    PyObject* module = PyFunction_Check(o) ? reinterpret_cast<PyFunctionObject*>(o)->func_module : reinterpret_cast<PyCFunctionObject*>(o)->m_module;
    if (module == nullptr || !PyUnicode_Check(module)) return false;
    name.step = Step::kQualified;
    name.text = utf8(module);
    if (PyFunction_Check(o)) {
      name.more = utf8(reinterpret_cast<PyFunctionObject*>(o)->func_qualname);
    } else {
      PyObject* known = PyObject_GetAttrString(o, "__qualname__");  // C code
      name.more = known != nullptr && PyUnicode_Check(known) ? utf8(known) : "";
      Py_XDECREF(known);
      PyErr_Clear();
    }
    if (qualified(name.text, name.more) != o) name.text += "._C";  // torch says of what is in torch._C that it is in torch
    if (qualified(name.text, name.more) != o) return false;
  } else if (is_descriptor_of_c(o)) {
    auto* owner = reinterpret_cast<PyObject*>(PyDescr_TYPE(o));
    if (numbers_.count(owner) == 0 && !name_by_itself(owner)) return false;
    name.step = Step::kTypeItem;
    name.parent = numbers_.at(owner);
    name.text = utf8(PyDescr_NAME(o));
    if (vm::own_attribute(PyDescr_TYPE(o), name.text.c_str()) != o) return false;
  } else if (is_torch_value(o)) {
    name.step = Step::kTorch;
    name.text = Py_TYPE(o)->tp_name;
    name.more = str(o);
  } else {
    PyObject* known = PyModule_Check(o) ? PyDict_GetItemString(PyModule_GetDict(o), "__name__") : nullptr;
    if (known == nullptr || !PyUnicode_Check(known) || module_of(utf8(known)) != o) return false;
    name.step = Step::kModule;
    name.text = utf8(known);
  }
  add(o, std::move(name));
  return true;
}

// Breadth first, from the frame and from what has names by itself, until all that is wanted has been met.
class ObjectNames::Search {
 public:
  explicit Search(ObjectNames& names) : names_(names) {}

  void run(std::unordered_set<PyObject*> wanted) {
    wanted_ = asked_ = std::move(wanted);
    to_find_ = std::count_if(wanted_.begin(), wanted_.end(), [&](PyObject* o) { return !is_leaf(o); });
    _PyInterpreterFrame* frame = names_.frame_;
    for (int i = 0; i < vm::FrameView::local_count(frame); i++) meet({vm::FrameView::locals(frame)[i], -1, Step::kLocal, i, {}, nullptr});
    meet({vm::FrameView::globals(frame), -1, Step::kGlobals, 0, {}, nullptr});
    meet({vm::FrameView::builtins(frame), -1, Step::kBuiltins, 0, {}, nullptr});
    meet({reinterpret_cast<PyObject*>(vm::FrameView::code(frame)), -1, Step::kLoopCode, 0, {}, nullptr});
    for (size_t number = 0; number < names_.objects_.size(); number++)
      if (names_.objects_[number] != nullptr) meet({names_.objects_[number], -1, Step::kNull, static_cast<int64_t>(number), {}, nullptr});
    size_t i = 0;
    for (; i < nodes_.size() && to_find_ > 0 && nodes_.size() < static_cast<size_t>(base::heuristics().cache_visited); i++) expand(static_cast<int64_t>(i));
    for (; i < nodes_.size(); i++)  // what it holds may have been compared with, and needs no way to be found
      if (PyCell_Check(nodes_[i].object) && asked_.count(nodes_[i].object) != 0) expand(static_cast<int64_t>(i));
  }

  // The name of something that was met.
  int32_t name(PyObject* object) {
    const auto known = names_.numbers_.find(object);
    if (known != names_.numbers_.end()) return known->second;
    const Node node = nodes_[static_cast<size_t>(met_.at(object))];
    ObjectName name;
    name.step = node.step;
    name.number = node.number;
    name.text = node.text;
    if (node.from >= 0) name.parent = this->name(nodes_[static_cast<size_t>(node.from)].object);
    if (node.key != nullptr) {
      const auto key = names_.numbers_.find(node.key);
      name.key = key != names_.numbers_.end() ? key->second : is_leaf(node.key) ? names_.add(node.key, value_name(node.key)) : this->name(node.key);
    }
    return names_.add(object, std::move(name));
  }

  bool met(PyObject* object) const { return met_.count(object) != 0; }

  // Of an int, a float, a string, bytes.
  static ObjectName value_name(PyObject* o) {
    ObjectName name;
    if (PyUnicode_CheckExact(o)) {
      name.step = Step::kText;
      name.text = utf8(o);
    } else if (PyBytes_CheckExact(o)) {
      name.step = Step::kBytes;
      name.text.assign(PyBytes_AS_STRING(o), static_cast<size_t>(PyBytes_GET_SIZE(o)));
    } else if (PyFloat_CheckExact(o)) {
      name.step = Step::kFloat;
      const double value = PyFloat_AS_DOUBLE(o);
      std::memcpy(&name.number, &value, sizeof value);
    } else if (is_singleton(o)) {
      name.step = Step::kSingleton;
      name.text = str(o);
    } else {
      name.step = Step::kInt;
      name.text = str(o);
    }
    return name;
  }

 private:
  struct Node {
    PyObject* object;
    int64_t from;
    Step step;
    int64_t number;
    std::string_view text;
    PyObject* key;
  };

  // Needs no way: known by its value. While the search goes on no class changes.
  bool is_leaf(PyObject* o) {
    if (is_singleton(o)) return true;
    const auto [known, fresh] = leaves_.try_emplace(Py_TYPE(o));
    if (fresh) known->second = are_values(Py_TYPE(o)) && !PyMethod_Check(o);
    return known->second;
  }

  void meet(Node node) {
    PyObject* o = node.object;
    if (o == nullptr || is_singleton(o)) return;
    const bool was_wanted = wanted_.count(o) != 0;
    // What leads nowhere else is remembered only if somebody asked for it.
    const bool leaf = is_leaf(o) && (!PyTuple_Check(o) || was_wanted);
    if (leaf && (!was_wanted || !is_kept_there(o, node))) return;
    if (was_wanted) {
      wanted_.erase(o);
      to_find_ -= !is_leaf(o);
    }
    if (!met_.try_emplace(o, static_cast<int64_t>(nodes_.size())).second) return;
    nodes_.push_back(std::move(node));
    if (const auto found = waiting_.find(o); found != waiting_.end()) {
      const std::vector<Node> items = std::move(found->second);
      waiting_.erase(found);
      for (const Node& item : items) meet(item);
    }
  }

  // An item of a dict: by a key that is known by its value, or once its key has been met, so that no way leads through itself.
  void meet_item(int64_t dict, PyObject* key, PyObject* value) {
    const Node item{value, dict, Step::kKey, 0, {}, key};
    if (PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || PyBool_Check(key) || key == Py_None || met(key) || names_.numbers_.count(key) != 0) meet(item);
    else if (!is_leaf(key) && !PyMethod_Check(key)) waiting_[key].push_back(item);
  }

  // A value is known by itself; where it is compared by identity, it must be the one that an object holds. What a variable holds may be equal by chance.
  bool is_kept_there(PyObject* o, const Node& node) const {
    if ((PyUnicode_CheckExact(o) && PyUnicode_CHECK_INTERNED(o)) || node.from < 0 || is_torch_value(o)) return false;  // interned ones are those of their value
    if (nodes_[static_cast<size_t>(node.from)].step == Step::kGlobals) return false;
    int overflow = 0;
    const long value = PyLong_Check(o) ? PyLong_AsLongAndOverflow(o, &overflow) : 1000;
    return overflow != 0 || value < -5 || value > 256;
  }

  void expand(int64_t at) {
    PyObject* o = nodes_[static_cast<size_t>(at)].object;
    if (auto* type = reinterpret_cast<PyObject*>(Py_TYPE(o)); wanted_.count(type) != 0) meet({type, at, Step::kType, 0, {}, nullptr});
    if (PyDict_Check(o)) {
      if (PyDict_Size(o) > parts::kMaxItems) return;
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t position = 0; PyDict_Next(o, &position, &key, &value);) meet_item(at, key, value);
      if (PyDict_CheckExact(o)) return;
    }
    const bool all = names_.numbers_.count(o) != 0 || asked_.count(o) != 0;
    for_each_part(o, all, [&](Step step, int64_t number, std::string_view text, PyObject* part) { meet({part, at, step, number, text, nullptr}); });
  }

  ObjectNames& names_;
  std::unordered_set<PyObject*> wanted_, asked_;  // still; at first
  ptrdiff_t to_find_ = 0;               // of those, the ones that have no other name
  std::vector<Node> nodes_;
  std::unordered_map<PyObject*, int64_t> met_;
  std::unordered_map<PyTypeObject*, bool> leaves_;
  std::unordered_map<PyObject*, std::vector<Node>> waiting_;  // items of dicts by keys that have not been met
};

std::string ObjectNames::find(const std::vector<PyObject*>& objects, const std::vector<DictUse>& uses, const std::vector<PyTypeObject*>& types, const std::vector<MadeObject>& made) {
  std::unordered_set<PyObject*> wanted;
  std::vector<PyObject*> order;
  auto want = [&](PyObject* o) {
    if (o != nullptr && wanted.insert(o).second) order.push_back(o);
  };
  for (PyObject* o : objects) want(o);
  std::set<PyTypeObject*> classes;
  for (PyTypeObject* type : types)
    for (Py_ssize_t i = 0; type->tp_mro != nullptr && i < PyTuple_GET_SIZE(type->tp_mro); i++)
      if (auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i)); PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) && classes.insert(base).second)
        want(reinterpret_cast<PyObject*>(base));
  for (const DictUse& use : uses) {
    want(use.dict);
    if (use.key != nullptr) {
      want(use.key);
      want(PyDict_GetItemWithError(use.dict, use.key));
      PyErr_Clear();
      continue;
    }
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; PyDict_Next(use.dict, &position, &key, &value);) {
      want(key);
      want(value);
    }
  }
  std::map<PyObject*, const MadeObject*> made_here;
  for (const MadeObject& each : made) {
    made_here[each.object] = &each;
    want(each.from);
  }
  // Objects that only their identity tells from others may have been compared with; parts of what cannot change are as good as it.
  for (PyTypeObject* type : classes)
    for_each_part(reinterpret_cast<PyObject*>(type), true, [&](Step, int64_t, std::string_view, PyObject* part) {
      const bool bare = !is_value(part) && !is_container(part) && !cannot_change(part) && description(part) == type_text(Py_TYPE(part)) &&
                        PyType_HasFeature(Py_TYPE(part), Py_TPFLAGS_HEAPTYPE);
      if (bare) want(part);
    });
  for (size_t i = 0; i < order.size(); i++)
    if (cannot_change(order[i]) && !PyFunction_Check(order[i]) && !PyCode_Check(order[i]))
      for_each_part(order[i], false, [&](Step, int64_t, std::string_view name, PyObject* part) {
        if (!is_value(part) && name != "__doc__") want(part);
      });
  add(nullptr, ObjectName{});
  name_by_itself(module_of("sys"));  // a way to sys.modules and what else the interpreter keeps there
  std::unordered_set<PyObject*> searched;
  for (PyObject* o : order)
    if (numbers_.count(o) == 0 && made_here.count(o) == 0 && !name_by_itself(o)) searched.insert(o);
  Search search(*this);
  search.run(searched);
  // By value where no way leads to it: tuples after their items.
  std::function<std::string(PyObject*)> name;
  auto name_part = [&](PyObject* part) { return numbers_.count(part) != 0 || name_by_itself(part) ? std::string() : name(part); };
  name = [&](PyObject* o) -> std::string {
    if (numbers_.count(o) != 0) return {};
    if (search.met(o)) {
      search.name(o);
      return {};
    }
    if (PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o)) {
      add(o, Search::value_name(o));
      return {};
    }
    PyObject* self = PyCFunction_Check(o) ? PyCFunction_GET_SELF(o) : nullptr;
    if (self != nullptr && !PyModule_Check(self)) {
      if (std::string missing = name_part(self); !missing.empty()) return missing;
      ObjectName made;
      made.step = Step::kBound;
      made.parent = numbers_.at(self);
      made.text = reinterpret_cast<PyCFunctionObject*>(o)->m_ml->ml_name;
      PyObject* again = bound_method(self, made.text);
      const bool same = again != nullptr && PyCFunction_Check(again) && reinterpret_cast<PyCFunctionObject*>(again)->m_ml == reinterpret_cast<PyCFunctionObject*>(o)->m_ml;
      Py_XDECREF(again);
      PyErr_Clear();
      if (!same) return "no way to " + description(o);
      add(o, std::move(made));
      return {};
    }
    // Made anew from its parts.
    auto from_parts = [&](Step step, const std::vector<PyObject*>& items) -> std::string {
      ObjectName made;
      made.step = step;
      made.text = Py_TYPE(o)->tp_name;
      for (PyObject* item : items) {
        if (std::string missing = name_part(item); !missing.empty()) return missing;
        made.items.push_back(numbers_.at(item));
      }
      add(o, std::move(made));
      return {};
    };
    auto items_of = [](PyObject* tuple) {
      return std::vector<PyObject*>(&PyTuple_GET_ITEM(tuple, 0), &PyTuple_GET_ITEM(tuple, 0) + PyTuple_GET_SIZE(tuple));
    };
    if (const auto each = made_here.find(o); each != made_here.end()) return from_parts(each->second->parameters ? Step::kParameters : Step::kSignature, {each->second->from});
    if (PyMethod_Check(o)) return from_parts(Step::kMethod, {PyMethod_GET_FUNCTION(o), PyMethod_GET_SELF(o)});
    if (PyTuple_CheckExact(o)) return from_parts(Step::kTuple, items_of(o));
    if (has_type(o, "torch.Size")) return from_parts(Step::kSize, items_of(o));
    if (PySlice_Check(o)) {
      auto* slice = reinterpret_cast<PySliceObject*>(o);
      return from_parts(Step::kSlice, {slice->start, slice->stop, slice->step});
    }
    if (PyRange_Check(o)) {
      std::vector<PyObject*> numbers;
      for (const char* part : {"start", "stop", "step"}) {
        numbers.push_back(PyObject_GetAttrString(o, part));
        kept_.push_back(numbers.back());
      }
      return from_parts(Step::kRange, numbers);
    }
    if (PyObject* made = is_alias(o) ? parts_of_alias(o) : nullptr; made != nullptr) {
      kept_.push_back(made);
      return from_parts(Step::kAlias, items_of(made));
    }
    return "no way to " + description(o) + first_keys(o);
  };
  for (PyObject* o : order)
    if (std::string missing = name(o); !missing.empty()) return missing;
  for (PyTypeObject* type : classes) names_[static_cast<size_t>(numbers_.at(type))].description = class_description(type);
  for (const DictUse& use : uses) {
    DictFact fact;
    fact.dict = numbers_.at(use.dict);
    if (use.key != nullptr) {
      fact.key = numbers_.at(use.key);
      PyObject* value = PyDict_GetItemWithError(use.dict, use.key);
      PyErr_Clear();
      if (value != nullptr) fact.value = numbers_.at(value);
    } else {
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t position = 0; PyDict_Next(use.dict, &position, &key, &value);) {
        fact.all.push_back(numbers_.at(key));
        fact.all.push_back(numbers_.at(value));
      }
    }
    dict_facts_.push_back(std::move(fact));
  }
  for (size_t i = 0; i < objects_.size(); i++) {
    PyObject* o = objects_[i];
    if (o == nullptr || !(cannot_change(o) || PyType_Check(o))) continue;
    if (PyType_Check(o) && classes.count(reinterpret_cast<PyTypeObject*>(o)) == 0) continue;
    for_each_part(o, true, [&](Step step, int64_t number, std::string_view text, PyObject* part) {
      // A function's code and defaults may change: the trace looks at them.
      if (PyFunction_Check(o) && step != Step::kGlobalsOf && step != Step::kClosure) return;
      if (const auto found = numbers_.find(part); found != numbers_.end()) parts_.push_back({static_cast<int32_t>(i), step, number, std::string(text), found->second});
    });
  }
  if (!undescribed_.empty()) return "no description of " + undescribed_;
  return {};
}

// A class with all that its own dict holds.
std::string ObjectNames::class_description(PyTypeObject* type) {
  std::string text = description(reinterpret_cast<PyObject*>(type));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++) text += " " + type_text(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i)));
  for_each_part(reinterpret_cast<PyObject*>(type), true, [&](Step, int64_t, std::string_view name, PyObject* part) {
    if (name != "__doc__") text.append("\n").append(name).append(" ").append(description(part));
  });
  return text;
}

// ---------------------------------------------------------------------------------------------------------------------
// In another process

// Borrowed, or null. A key that is no value is the one itself: looking it up could run Python code.
static PyObject* item_of(PyObject* dict, PyObject* key) {
  if (is_value(key)) return PyDict_GetItemWithError(dict, key);
  PyObject *each = nullptr, *value = nullptr;
  for (Py_ssize_t position = 0; PyDict_Next(dict, &position, &each, &value);)
    if (each == key) return value;
  return nullptr;
}

PyObject* ObjectNames::follow(PyObject* from, Step step, int64_t number, const std::string& text, PyObject* key) {
  PyObject* found = nullptr;
  switch (step) {
    case Step::kKey: found = PyDict_Check(from) && key != nullptr ? item_of(from, key) : nullptr; break;
    case Step::kIndex:
      if (number < 0 || !(PyTuple_Check(from) || PyList_Check(from)) || number >= Py_SIZE(from)) return nullptr;
      found = PyTuple_Check(from) ? PyTuple_GET_ITEM(from, number) : PyList_GET_ITEM(from, number);
      break;
    case Step::kDict:
      found = PyModule_Check(from) ? PyModule_GetDict(from) : PyType_Check(from) || PyDict_CheckExact(from) ? nullptr : vm::instance_dict(from);
      break;
    case Step::kType: found = reinterpret_cast<PyObject*>(Py_TYPE(from)); break;
    case Step::kBase: {
      PyObject* mro = PyType_Check(from) ? reinterpret_cast<PyTypeObject*>(from)->tp_mro : nullptr;
      found = mro != nullptr && number >= 0 && number < PyTuple_GET_SIZE(mro) ? PyTuple_GET_ITEM(mro, number) : nullptr;
      break;
    }
    case Step::kBound: return bound_method(from, text);
    case Step::kTypeItem: found = PyType_Check(from) ? vm::own_attribute(reinterpret_cast<PyTypeObject*>(from), text.c_str()) : nullptr; break;
    case Step::kMember: found = member(from, text); break;
    case Step::kCell: found = PyCell_Check(from) ? PyCell_GET(from) : nullptr; break;
    case Step::kFunction: found = PyMethod_Check(from) ? PyMethod_GET_FUNCTION(from) : nullptr; break;
    case Step::kSelf: found = PyMethod_Check(from) ? PyMethod_GET_SELF(from) : PyCFunction_Check(from) ? PyCFunction_GET_SELF(from) : nullptr; break;
    default:
      if (!PyFunction_Check(from)) return nullptr;
      if (step == Step::kAnnotations) {  // made when they are asked for
        found = PyObject_GetAttrString(from, "__annotations__");
        PyErr_Clear();
        return found;
      }
      found = step == Step::kCode ? PyFunction_GET_CODE(from) : step == Step::kDefaults ? PyFunction_GET_DEFAULTS(from)
              : step == Step::kKwDefaults ? PyFunction_GET_KW_DEFAULTS(from) : step == Step::kGlobalsOf ? PyFunction_GET_GLOBALS(from)
              : step == Step::kClosure ? PyFunction_GET_CLOSURE(from) : nullptr;
  }
  PyErr_Clear();
  return Py_XNewRef(found);
}

// A new reference, or null.
PyObject* ObjectNames::resolve(const ObjectName& name) {
  auto known = [&](int32_t number) { return number >= 0 && number < static_cast<int32_t>(objects_.size()) ? objects_[static_cast<size_t>(number)] : nullptr; };
  auto item = [&](size_t k) { return known(k < name.items.size() ? name.items[k] : -1); };
  switch (name.step) {
    case Step::kNull: return nullptr;
    case Step::kSingleton:
      for (PyObject* o : {Py_None, Py_True, Py_False, Py_Ellipsis, Py_NotImplemented})
        if (str(o) == name.text) return Py_NewRef(o);
      return nullptr;
    case Step::kInt: return PyLong_FromString(name.text.c_str(), nullptr, 10);
    case Step::kFloat: {
      double value = 0;
      std::memcpy(&value, &name.number, sizeof value);
      return PyFloat_FromDouble(value);
    }
    case Step::kText: return text_of(name.text);
    case Step::kBytes: return PyBytes_FromStringAndSize(name.text.data(), static_cast<Py_ssize_t>(name.text.size()));
    case Step::kSlice: return name.items.size() == 3 ? PySlice_New(known(name.items[0]), known(name.items[1]), known(name.items[2])) : nullptr;
    case Step::kRange:
      if (name.items.size() != 3) return nullptr;
      return PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PyRange_Type), known(name.items[0]), known(name.items[1]), known(name.items[2]), nullptr);
    case Step::kTuple:
    case Step::kSize: {
      PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(name.items.size()));
      for (size_t i = 0; tuple != nullptr && i < name.items.size(); i++) {
        PyObject* part = item(i);
        PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(part == nullptr ? Py_None : part));
      }
      if (name.step == Step::kTuple || tuple == nullptr) return tuple;
      PyObject* type = qualified("torch", "Size");
      PyObject* size = type == nullptr ? nullptr : PyObject_CallOneArg(type, tuple);
      Py_DECREF(tuple);
      return size;
    }
    case Step::kTorch: {
      if (name.text == "torch.device") {
        PyObject* type = qualified("torch", "device");
        return type == nullptr ? nullptr : PyObject_CallFunction(type, "s", name.more.c_str());
      }
      return name.more.rfind("torch.", 0) == 0 ? Py_XNewRef(qualified("torch", name.more.substr(6))) : nullptr;
    }
    case Step::kAlias: {
      PyObject *origin = item(0), *arguments = item(1);
      if (origin == nullptr || arguments == nullptr) return nullptr;
      return make_alias(origin, arguments, name.text);
    }
    case Step::kMethod: {
      PyObject *function = item(0), *self = item(1);
      return function == nullptr || self == nullptr ? nullptr : PyMethod_New(function, self);
    }
    case Step::kSignature: {
      PyObject *function = item(0), *module = module_of("inspect");
      return function == nullptr || module == nullptr ? nullptr : PyObject_CallMethod(module, "signature", "O", function);
    }
    case Step::kParameters: {
      PyObject* signature = item(0);
      return signature == nullptr ? nullptr : PyObject_GetAttrString(signature, "parameters");
    }
    case Step::kShortcut: return Py_XNewRef(bridge_->shortcut_named(name.text));
    case Step::kModule: return Py_XNewRef(module_of(name.text));
    case Step::kQualified: return Py_XNewRef(qualified(name.text, name.more));
    case Step::kStaticType: {
      const auto found = static_types().find(name.text);
      return found == static_types().end() ? nullptr : Py_XNewRef(reinterpret_cast<PyObject*>(found->second));
    }
    case Step::kLocal:
      return name.number >= 0 && name.number < vm::FrameView::local_count(frame_) ? Py_XNewRef(vm::FrameView::locals(frame_)[name.number]) : nullptr;
    case Step::kGlobals: return Py_XNewRef(vm::FrameView::globals(frame_));
    case Step::kLoopCode: return Py_NewRef(reinterpret_cast<PyObject*>(vm::FrameView::code(frame_)));
    case Step::kBuiltins: return Py_XNewRef(vm::FrameView::builtins(frame_));
    default: {
      PyObject* parent = known(name.parent);
      return parent == nullptr ? nullptr : follow(parent, name.step, name.number, name.text, known(name.key));
    }
  }
}

std::string ObjectNames::read(ir::ArchiveReader& archive) {
  archive(names_, dict_facts_, parts_, files_);
  if (!archive.ok) return "damaged";
  for (const File& file : files_) {
    if (base::file_stamp(file.path) != file.stamp) return file.path + " has changed";
    known_files_.insert(file.path);
  }
  for (const ObjectName& name : names_) {
    PyObject* object = resolve(name);
    PyErr_Clear();
    objects_.push_back(object);
    if (object == nullptr && name.step != Step::kNull) return "there is no " + name.description.substr(0, 100);
    const bool whole_class = object != nullptr && PyType_Check(object) && name.description.find('\n') != std::string::npos;
    const std::string now = whole_class ? class_description(reinterpret_cast<PyTypeObject*>(object)) : whole_description(object);
    if (now != name.description) return now.substr(0, 100) + " instead of " + name.description.substr(0, 100);
    if (object != nullptr && !is_value(object) && !numbers_.emplace(object, static_cast<int32_t>(objects_.size()) - 1).second)
      return "the same object twice: " + name.description.substr(0, 100);
  }
  return check();
}

// Do the facts hold here?
std::string ObjectNames::check() {
  std::function<bool(PyObject*, PyObject*)> equal = [&](PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (a == nullptr || b == nullptr || Py_TYPE(a) != Py_TYPE(b) || !is_value(a)) return false;
    if (PyMethod_Check(a)) return PyMethod_GET_FUNCTION(a) == PyMethod_GET_FUNCTION(b) && PyMethod_GET_SELF(a) == PyMethod_GET_SELF(b);
    if (!PyTuple_Check(a)) return description(a) == description(b);
    bool items = PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b);
    for (Py_ssize_t i = 0; items && i < PyTuple_GET_SIZE(a); i++) items = equal(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
    return items;
  };
  auto same = [&](PyObject* now, int32_t number) { return equal(now, at(number)); };
  for (const DictFact& fact : dict_facts_) {
    PyObject* dict = at(fact.dict);
    if (dict == nullptr || !PyDict_Check(dict)) return "no dict";
    if (fact.key >= 0) {
      PyObject* value = PyDict_GetItemWithError(dict, at(fact.key));
      PyErr_Clear();
      if (fact.value < 0 ? value != nullptr : !same(value, fact.value)) return "another " + description(at(fact.key));
      continue;
    }
    if (PyDict_Size(dict) * 2 != static_cast<Py_ssize_t>(fact.all.size())) return "a dict of another size";
    PyObject *key = nullptr, *value = nullptr;
    size_t i = 0;
    for (Py_ssize_t position = 0; PyDict_Next(dict, &position, &key, &value); i += 2)
      if (i + 1 >= fact.all.size() || !same(key, fact.all[i]) || !same(value, fact.all[i + 1])) return "another item";
  }
  for (const Part& part : parts_) {
    PyObject* whole = at(part.whole);
    PyObject* now = whole == nullptr ? nullptr : follow(whole, part.step, part.number, part.text, nullptr);
    const bool holds = now != nullptr && same(now, part.part);
    Py_XDECREF(now);
    if (!holds) return "another part of " + names_[static_cast<size_t>(part.whole)].description.substr(0, 100);
  }
  return {};
}

}  // namespace dynvm::tracer
