// See object_parts.h.
#include "tracer/object_parts.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>
#include <unordered_map>

#include "vm/objects.h"

namespace dynvm::tracer::parts {

// Of its own bytes; null where it has none in UTF-8.
static std::string_view text_in(PyObject* text) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text, &size);
  PyErr_Clear();
  return bytes == nullptr ? std::string_view() : std::string_view(bytes, static_cast<size_t>(size));
}

std::string utf8(PyObject* text) {
  if (const std::string_view own = text_in(text); own.data() != nullptr) return std::string(own);
  PyObject* encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
  std::string bytes = encoded == nullptr ? std::string() : std::string(PyBytes_AS_STRING(encoded), static_cast<size_t>(PyBytes_GET_SIZE(encoded)));
  Py_XDECREF(encoded);
  PyErr_Clear();
  return bytes;
}

PyObject* text_of(const std::string& bytes) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogatepass");
  if (text != nullptr) PyUnicode_InternInPlace(&text);
  return text;
}

std::string str(PyObject* object) {
  PyObject* text = PyObject_Str(object);
  std::string bytes = text == nullptr ? std::string() : utf8(text);
  Py_XDECREF(text);
  PyErr_Clear();
  return bytes;
}

// A class's module and qualified name.
std::pair<std::string, std::string> type_name(PyTypeObject* type) {
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return {"", type->tp_name};
  PyObject* module = vm::own_attribute(type, "__module__");
  PyObject* name = reinterpret_cast<PyHeapTypeObject*>(type)->ht_qualname;
  return {module != nullptr && PyUnicode_Check(module) ? utf8(module) : std::string(), name == nullptr ? std::string() : utf8(name)};
}

std::string type_text(PyTypeObject* type) {
  const auto [module, name] = type_name(type);
  return module.empty() ? name : module + ":" + name;
}

static bool has_name(PyTypeObject* type, const char* name) { return strcmp(type->tp_name, name) == 0; }

bool has_type(PyObject* o, const char* name) { return has_name(Py_TYPE(o), name); }

static bool are_torch_values(PyTypeObject* type) {
  return has_name(type, "torch.dtype") || has_name(type, "torch.device") || has_name(type, "torch.layout") || has_name(type, "torch.memory_format");
}

bool is_torch_value(PyObject* o) { return are_torch_values(Py_TYPE(o)); }

// What annotations are made of: list[int], Optional[int], int | None, and names of what is not there yet.
static bool are_aliases(PyTypeObject* type) {
  if (has_name(type, "types.GenericAlias") || has_name(type, "types.UnionType")) return true;
  const auto [module, name] = type_name(type);
  return module == "typing" && (name == "ForwardRef" || (name.find("GenericAlias") != std::string::npos && name.find("Special") == std::string::npos));
}

bool is_alias(PyObject* o) { return are_aliases(Py_TYPE(o)); }

// (origin, arguments); of a union (None, arguments), of a name (its class, the name). A new reference, or null.
PyObject* parts_of_alias(PyObject* o) {
  PyObject *first = nullptr, *second = nullptr, *reduced = nullptr;
  if (has_type(o, "types.UnionType")) {
    first = Py_NewRef(Py_None);
    second = PyObject_GetAttrString(o, "__args__");
  } else if (has_type(o, "ForwardRef")) {
    first = Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(o)));
    second = PyObject_GetAttrString(o, "__forward_arg__");
  } else {
    // What it gives for copying is how it is made: (types.GenericAlias or operator.getitem, (origin, arguments)).
    reduced = PyObject_CallMethod(o, "__reduce__", nullptr);
    PyObject* parts = reduced != nullptr && PyTuple_Check(reduced) && PyTuple_GET_SIZE(reduced) >= 2 ? PyTuple_GET_ITEM(reduced, 1) : nullptr;
    if (parts != nullptr && PyTuple_Check(parts) && PyTuple_GET_SIZE(parts) == 2) {
      first = Py_NewRef(PyTuple_GET_ITEM(parts, 0));
      second = Py_NewRef(PyTuple_GET_ITEM(parts, 1));
    }
  }
  PyObject* both = first != nullptr && second != nullptr ? PyTuple_Pack(2, first, second) : nullptr;
  Py_XDECREF(first);
  Py_XDECREF(second);
  Py_XDECREF(reduced);
  PyErr_Clear();
  return both;
}

PyObject* make_alias(PyObject* first, PyObject* second, const std::string& type) {
  if (type == "types.GenericAlias") return Py_GenericAlias(first, second);
  if (type == "ForwardRef") return PyObject_CallOneArg(first, second);
  if (type != "types.UnionType") return PyObject_GetItem(first, second);
  PyObject* made = nullptr;
  for (Py_ssize_t i = 0; PyTuple_Check(second) && i < PyTuple_GET_SIZE(second); i++) {
    PyObject* next = made == nullptr ? Py_NewRef(PyTuple_GET_ITEM(second, i)) : PyNumber_Or(made, PyTuple_GET_ITEM(second, i));
    Py_XDECREF(made);
    made = next;
    if (made == nullptr) break;
  }
  return made;
}

bool is_singleton(PyObject* o) {
  return o == Py_None || o == Py_True || o == Py_False || o == Py_Ellipsis || o == Py_NotImplemented;
}

// What is what it is by its value, not by its identity.
bool are_values(PyTypeObject* type) {
  const auto inherits = [type](unsigned long feature) { return PyType_HasFeature(type, feature); };
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyComplex_Type || type == &PyUnicode_Type || type == &PyBytes_Type || inherits(Py_TPFLAGS_TUPLE_SUBCLASS) ||
         type == &PyFrozenSet_Type || type == &PyMethod_Type || type == &PySlice_Type || type == &PyRange_Type || are_torch_values(type) || are_aliases(type);
}

bool is_value(PyObject* o) { return o == nullptr || is_singleton(o) || are_values(Py_TYPE(o)); }

bool is_container(PyObject* o) {
  return PyDict_Check(o) || PyList_Check(o) || PyAnySet_Check(o) || PyCell_Check(o);
}

PyObject* module_of(const std::string& name) { return PyDict_GetItemString(PyImport_GetModuleDict(), name.c_str()); }

// Where a member of C or a slot has its object; -1: there is no such member.
static Py_ssize_t member_offset(PyTypeObject* type, PyObject* name) {
  PyObject* descriptor = _PyType_Lookup(type, name);
  return descriptor != nullptr && Py_TYPE(descriptor) == &PyMemberDescr_Type ? vm::field_offset(descriptor) : -1;
}

static PyObject* object_at(PyObject* o, Py_ssize_t offset) { return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + offset); }

PyObject* member(PyObject* o, const std::string& name) {
  PyObject* key = PyUnicode_InternFromString(name.c_str());
  const Py_ssize_t offset = member_offset(Py_TYPE(o), key);
  Py_XDECREF(key);
  return offset < 0 ? nullptr : object_at(o, offset);
}

// The folder that a module's file ends in this way in; where it is not known, what no file's name begins with.
static std::string folder_of(const char* module, const char* end) {
  PyObject* const file = qualified(module, "__file__");
  const std::string path = file != nullptr && PyUnicode_Check(file) ? utf8(file) : "";
  const size_t at = path.rfind(end);
  return at == std::string::npos ? std::string("\n") : path.substr(0, at + 1);
}

bool is_installed(PyCodeObject* code) {
  static const std::string folder = folder_of("torch", "/torch/__init__.py");
  const std::string file = utf8(code->co_filename);
  return file.starts_with(folder) || file.find("/site-packages/") != std::string::npos || file.find("/dist-packages/") != std::string::npos;
}

bool is_standard(PyCodeObject* code) {
  static const std::string folder = folder_of("os", "/os.py");
  return !is_installed(code) && utf8(code->co_filename).starts_with(folder);
}

// module.a.b.c, through the dicts of modules and classes alone; borrowed, or null.
PyObject* qualified(const std::string& module, const std::string& name) {
  PyObject* object = module_of(module);
  for (size_t begin = 0; object != nullptr && begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    if (PyType_Check(object)) {
      object = vm::own_attribute(reinterpret_cast<PyTypeObject*>(object), part.c_str());
    } else {
      PyObject* dict = PyModule_Check(object) ? PyModule_GetDict(object) : vm::existing_dict(object);
      object = dict == nullptr ? nullptr : PyDict_GetItemString(dict, part.c_str());
    }
    if (object != nullptr && Py_TYPE(object) == &PyStaticMethod_Type) object = member(object, "__func__");
    begin = end + 1;
  }
  return object;
}

// All classes of C by their names; those whose name is not unique are null.
const std::map<std::string, PyTypeObject*>& static_types() {
  static auto* const found = [] {
    auto* types = new std::map<std::string, PyTypeObject*>;
    std::deque<PyObject*> queue{reinterpret_cast<PyObject*>(&PyBaseObject_Type)};
    std::set<PyObject*> seen;
    while (!queue.empty()) {
      PyObject* type = queue.front();
      queue.pop_front();
      if (!seen.insert(type).second) continue;
      auto* as_type = reinterpret_cast<PyTypeObject*>(type);
      if (!PyType_HasFeature(as_type, Py_TPFLAGS_HEAPTYPE)) {
        auto [place, fresh] = types->emplace(as_type->tp_name, as_type);
        if (!fresh) place->second = nullptr;
      }
      PyObject* method = vm::own_attribute(&PyType_Type, "__subclasses__");
      PyObject* subclasses = method == nullptr ? nullptr : PyObject_CallOneArg(method, type);
      for (Py_ssize_t i = 0; subclasses != nullptr && i < PyList_GET_SIZE(subclasses); i++) queue.push_back(PyList_GET_ITEM(subclasses, i));
      Py_XDECREF(subclasses);
      PyErr_Clear();
    }
    return types;
  }();
  return *found;
}

// The members (of C, and slots) that hold objects.
struct Member {
  std::string_view name;  // of the key in a class's dict: what is known of a class without a version is made anew each time
  Py_ssize_t offset;
};
static const std::vector<Member>& members_of(PyTypeObject* type) {
  static auto* const known = new std::unordered_map<PyTypeObject*, std::pair<uint32_t, std::vector<Member>>>;
  const uint32_t version = vm::type_version(type);
  auto [place, fresh] = known->try_emplace(type);
  if (!fresh && place->second.first == version && version != 0) return place->second.second;
  place->second = {version, {}};
  PyObject* mro = type->tp_mro;
  for (Py_ssize_t i = 0; mro != nullptr && i < PyTuple_GET_SIZE(mro); i++) {
    PyObject* dict = vm::type_dict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i)));
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; dict != nullptr && PyDict_Next(dict, &position, &name, &value);)
      if (Py_TYPE(value) == &PyMemberDescr_Type && PyUnicode_Check(name))
        if (const Py_ssize_t offset = member_offset(type, name); offset >= 0) place->second.second.push_back({text_in(name), offset});
    Py_XDECREF(dict);
  }
  return place->second.second;
}

// For messages: what a dict is known by.
std::string first_keys(PyObject* o) {
  std::string text;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t position = 0, i = 0; PyDict_Check(o) && i < 3 && PyDict_Next(o, &position, &key, &value); i++)
    text += (i == 0 ? " of " : ", ") + (PyUnicode_Check(key) ? utf8(key) : type_text(Py_TYPE(key)));
  return text;
}

bool is_descriptor_of_c(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  return PyObject_TypeCheck(o, &PyMethodDescr_Type) || type == &PyMemberDescr_Type || type == &PyGetSetDescr_Type || type == &PyWrapperDescr_Type || type == &PyClassMethodDescr_Type;
}

// The C method of an object, as an attribute gives it; a new reference, or null.
PyObject* bound_method(PyObject* self, const std::string& name) {
  PyObject* key = PyUnicode_InternFromString(name.c_str());
  PyObject* descriptor = _PyType_Lookup(Py_TYPE(self), key);
  Py_XDECREF(key);
  if (descriptor == nullptr || Py_TYPE(descriptor) != &PyMethodDescr_Type) return nullptr;
  return Py_TYPE(descriptor)->tp_descr_get(descriptor, self, reinterpret_cast<PyObject*>(Py_TYPE(self)));
}

// Parts of these can be taken for constant, as they cannot be changed.
bool cannot_change(PyObject* o) {
  return PyTuple_Check(o) || PyMethod_Check(o) || PyCFunction_Check(o) || Py_TYPE(o) == &PyProperty_Type || Py_TYPE(o) == &PyStaticMethod_Type ||
         Py_TYPE(o) == &PyClassMethod_Type || PySlice_Check(o) || has_type(o, "functools.partial") || PyFunction_Check(o) || PyCode_Check(o);
}

// visit(step, number, text, part): what an object holds. `all`: also what is not worth following from objects that happen to be met.
void for_each_part(PyObject* o, bool all, const Visit& visit) {
  auto part = [&](Step step, PyObject* child, int64_t number = 0, std::string_view text = {}) {
    if (child != nullptr) visit(step, number, text, child);
  };
  if (PyModule_Check(o)) {
    if (all) part(Step::kDict, PyModule_GetDict(o));
    return;
  }
  if (PyType_Check(o)) {
    if (!all) return;
    PyObject* dict = vm::type_dict(reinterpret_cast<PyTypeObject*>(o));
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; dict != nullptr && PyDict_Next(dict, &position, &name, &value);)
      if (PyUnicode_CheckExact(name)) part(Step::kTypeItem, value, 0, text_in(name));
    Py_XDECREF(dict);
    PyObject* mro = reinterpret_cast<PyTypeObject*>(o)->tp_mro;
    for (Py_ssize_t i = 1; mro != nullptr && i < PyTuple_GET_SIZE(mro); i++) part(Step::kBase, PyTuple_GET_ITEM(mro, i), i);
    return;
  }
  if (PyTuple_Check(o) || PyList_Check(o)) {
    const Py_ssize_t size = Py_SIZE(o);
    for (Py_ssize_t i = 0; i < size && i < kMaxItems; i++) part(Step::kIndex, PyTuple_Check(o) ? PyTuple_GET_ITEM(o, i) : PyList_GET_ITEM(o, i), i);
  } else if (PyCell_Check(o)) {
    part(Step::kCell, PyCell_GET(o));
  } else if (PyMethod_Check(o)) {
    part(Step::kFunction, PyMethod_GET_FUNCTION(o));
    part(Step::kSelf, PyMethod_GET_SELF(o));
  } else if (PyCFunction_Check(o)) {
    part(Step::kSelf, PyCFunction_GET_SELF(o));
  } else if (PyFunction_Check(o)) {
    part(Step::kCode, PyFunction_GET_CODE(o));
    part(Step::kClosure, PyFunction_GET_CLOSURE(o));
    part(Step::kDefaults, PyFunction_GET_DEFAULTS(o));
    part(Step::kKwDefaults, PyFunction_GET_KW_DEFAULTS(o));
    PyObject* annotations = reinterpret_cast<PyFunctionObject*>(o)->func_annotations;
    if (annotations != nullptr && PyDict_Check(annotations)) part(Step::kAnnotations, annotations);  // else nobody has asked for them
    if (all) part(Step::kGlobalsOf, PyFunction_GET_GLOBALS(o));
    part(Step::kDict, vm::existing_dict(o));
    return;
  } else if (!PyDict_CheckExact(o) && !PyCode_Check(o)) {
    part(Step::kDict, vm::existing_dict(o));
  }
  if (!PyDict_CheckExact(o))
    for (const Member& each : members_of(Py_TYPE(o))) part(Step::kMember, object_at(o, each.offset), 0, each.name);
}

}  // namespace dynvm::tracer::parts
