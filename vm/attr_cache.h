// What an attribute name means for a type: a global cache for LOAD_ATTR, LOAD_METHOD and STORE_ATTR.
//
// Purpose: answers once per (type version, name) which of the ways of the descriptor protocol an access takes, so that sites which
//   see many types (nn.Module's plumbing) are as cheap as monomorphic ones, and so that accesses that end in Python code can be
//   inlined. Inputs: a type and an interned name. Outputs: AttrEntry.
// Invariants: an entry is valid while its version is the type's; borrowed pointers in it live as long. CPython changes a type's
//   version whenever the type or a base of it changes.
// Tests: tests/vm/scripts/attr_*.py.
#pragma once

#include "vm/cpython/cpython.h"

namespace dynvm::vm {

enum class AttrAccess : uint8_t {
  kOpaque,        // a getter of its own in C: ask CPython
  kGeneric,       // object.__getattribute__, then `getattr` when there is one
  kGetattribute,  // `getattribute` in Python, then `getattr` when there is one
};

enum class AttrKind : uint8_t {
  kInstance,    // nothing on the class: instance dict only
  kClassValue,  // class attribute without __get__; the instance dict goes first
  kMethod,      // method descriptor; the instance dict goes first
  kNonData,     // other descriptor without __set__; the instance dict goes first
  kSlot,        // object member at `offset`
  kGetSet,      // getter in C
  kProperty,    // property with a Python function as getter
  kData,        // other data descriptor
};

struct AttrEntry {
  PyObject* name;
  uint32_t version;
  AttrAccess access;
  AttrKind kind;
  bool inline_values;               // instances of the type may have inline values
  bool readonly;                    // kSlot that cannot be stored to
  bool set_only;                    // kClassValue that has __set__: loads do not care
  bool mutable_descriptor;          // the descriptor's type can gain __get__ or __set__: descriptor_version is checked too
  uint32_t descriptor_version;
  PyObject* descriptor;             // borrowed; what the class has
  PyFunctionObject* function;       // borrowed; kProperty: getter. kGetattribute access: __getattribute__
  PyFunctionObject* getattr;        // borrowed; __getattr__ or nullptr
  PyFunctionObject* setattr;        // borrowed; __setattr__ in Python or nullptr
  bool generic_setattr;
  Py_ssize_t offset;                // kSlot
  Py_hash_t hash;                   // of name
  uint32_t keys_version;            // of the shared keys that index is for, or 0
  int32_t index;                    // position of name in the shared keys, or -1
};

// Mirror of CPython's property object (descrobject.c), equal since 3.10.
struct PropertyObject {
  PyObject_HEAD
  PyObject *get, *set, *del, *doc, *name;
  int getter_doc;
};

// Where (version, name) belongs in a table whose size is a power of two.
inline size_t place_of(uint32_t version, PyObject* name, size_t size) {
  return (version * 31 ^ (reinterpret_cast<uintptr_t>(name) >> 4)) & (size - 1);
}

inline constexpr size_t kAttrTableSize = 2048;
extern AttrEntry g_attr_table[kAttrTableSize];

// Computes and stores an entry; nullptr when the type cannot have a version (then ask CPython).
AttrEntry* fill_attr(AttrEntry* entry, PyTypeObject* type, PyObject* name);

inline AttrEntry* find_attr(PyTypeObject* type, PyObject* name) {
  const uint32_t version = type->tp_version_tag;
  AttrEntry* entry = &g_attr_table[place_of(version, name, kAttrTableSize)];
  if (entry->version == version && entry->name == name && version != 0) [[likely]] {
    if (!entry->mutable_descriptor) [[likely]] return entry;
    if (Py_TYPE(entry->descriptor)->tp_version_tag == entry->descriptor_version) return entry;
  }
  return fill_attr(entry, type, name);
}

// Value in the instance (borrowed), or nullptr: absent, or with an exception (only for dicts with strange keys).
inline PyObject* instance_value(PyObject* object, PyTypeObject* type, AttrEntry* entry) {
  if (entry->inline_values) {
    if (PyDictValues* values = cpython::inline_values(object)) {
      PyDictKeysObject* keys = cpython::shared_keys(type);
      if (entry->keys_version != keys->dk_version || entry->keys_version == 0) [[unlikely]] {
        entry->index = static_cast<int32_t>(cpython::find_key(keys, entry->name, entry->hash));
        entry->keys_version = cpython::stamp_keys(keys);
      }
      return entry->index >= 0 ? values->values[entry->index] : nullptr;
    }
    PyObject* dict = cpython::managed_dict(object);
    return dict != nullptr ? cpython::dict_get(dict, entry->name, entry->hash) : nullptr;
  }
  PyObject* dict = cpython::instance_dict(object, type);
  return dict != nullptr ? cpython::dict_get(dict, entry->name, entry->hash) : nullptr;
}

// Value (borrowed) at a position of the instance's dict, where `name` is still there; else nullptr. `hint`: the position, and in the upper half
// the offset for dict_at.
inline PyObject* hinted_value(PyObject* object, PyObject* name, uint32_t hint) {
  const uint32_t index = hint & UINT16_MAX;
  auto* dict = reinterpret_cast<PyDictObject*>(cpython::dict_at(object, hint >> 16));
  if (dict == nullptr) [[unlikely]] return nullptr;
  PyDictKeysObject* keys = dict->ma_keys;
  if (static_cast<Py_ssize_t>(index) >= keys->dk_nentries || !DK_IS_UNICODE(keys)) [[unlikely]] return nullptr;
  PyDictUnicodeEntry* item = DK_UNICODE_ENTRIES(keys) + index;
  if (item->me_key != name) [[unlikely]] return nullptr;
  return dict->ma_values != nullptr ? dict->ma_values->values[index] : item->me_value;
}

// The instance has no attribute `name` of its own. `keys_version`: shared keys of its type that are known to lack it, or 0. False also
// where the answer would take a call.
inline bool hides_nothing(PyObject* object, PyTypeObject* type, PyObject* name, uint32_t keys_version) {
  PyObject* dict;
  if (cpython::has_managed_dict(type)) {
    if (cpython::inline_values(object) != nullptr) return keys_version != 0 && cpython::shared_keys(type)->dk_version == keys_version;
    dict = cpython::managed_dict(object);
  } else {
    if (type->tp_dictoffset <= 0) return type->tp_dictoffset == 0;
    dict = cpython::dict_at(object, type->tp_dictoffset);
  }
  if (dict == nullptr) return true;
  if (reinterpret_cast<PyDictObject*>(dict)->ma_keys->dk_kind == DICT_KEYS_GENERAL) return false;
  return cpython::dict_get(dict, name, cpython::str_hash(name)) == nullptr;
}

// Version of the shared keys of the instance's type, where those lack the entry's name; else 0.
uint32_t keys_without(PyObject* object, PyTypeObject* type, AttrEntry* entry);

// For sites that see several types, the two most frequent answers in the least room. Both are parts of what find_attr says.
struct ValuePlace {  // the name is at `index` of the inline values, and nothing on the class goes first
  PyObject* name;
  uint32_t version, index;
};
struct MethodPlace {  // the class has a method of that name
  PyObject* name;
  uint32_t version, keys_version;  // as in hides_nothing
  PyObject* method;                // borrowed
};
inline constexpr size_t kPlaces = 1024;
extern ValuePlace g_value_places[kPlaces];
extern MethodPlace g_method_places[kPlaces];
// Fill the place; nullptr when that is not the answer for this object.
ValuePlace* fill_value_place(ValuePlace* place, PyObject* object, PyObject* name);
MethodPlace* fill_method_place(MethodPlace* place, PyObject* object, PyObject* name);

inline ValuePlace* find_value_place(PyObject* object, PyObject* name) {
  const uint32_t version = Py_TYPE(object)->tp_version_tag;
  ValuePlace* place = &g_value_places[place_of(version, name, kPlaces)];
  if (place->version == version && place->name == name && version != 0) [[likely]] return place;
  return fill_value_place(place, object, name);
}
inline MethodPlace* find_method_place(PyObject* object, PyObject* name) {
  const uint32_t version = Py_TYPE(object)->tp_version_tag;
  MethodPlace* place = &g_method_places[place_of(version, name, kPlaces)];
  if (place->version == version && place->name == name && version != 0) [[likely]] return place;
  return fill_method_place(place, object, name);
}

// For forms of several types, borrowed or nullptr: the name's inline value, and the method that the object does not hide.
inline PyObject* value_of_types(PyObject* object, PyObject* name) {
  const ValuePlace* place = find_value_place(object, name);
  PyDictValues* values = place != nullptr ? cpython::inline_values(object) : nullptr;
  return values != nullptr ? values->values[place->index] : nullptr;
}
inline PyObject* method_of_types(PyObject* object, PyObject* name) {
  const MethodPlace* place = find_method_place(object, name);
  return place != nullptr && hides_nothing(object, Py_TYPE(object), name, place->keys_version) ? place->method : nullptr;
}
// The inline values that a store to the name changes, and where in them; nullptr: it is another kind of store.
inline PyDictValues* stored_values(PyObject* object, PyObject* name, uint32_t* index) {
  PyTypeObject* type = Py_TYPE(object);
  AttrEntry* entry = find_attr(type, name);
  if (entry == nullptr || !entry->generic_setattr || entry->kind > AttrKind::kNonData || entry->set_only || entry->mutable_descriptor ||
      !entry->inline_values) [[unlikely]] {
    return nullptr;
  }
  PyDictValues* values = cpython::writable_values(object);
  if (values == nullptr || entry->index < 0 || entry->keys_version == 0 || cpython::shared_keys(type)->dk_version != entry->keys_version)
      [[unlikely]] {
    return nullptr;
  }
  *index = static_cast<uint32_t>(entry->index);
  return values;
}
// Entry (borrowed) of a module's dict whose keys have that version, or nullptr.
inline PyObject* value_of_module(PyObject* object, uint32_t version, uint64_t index) {
  if (!PyModule_CheckExact(object)) [[unlikely]] return nullptr;
  auto* dict = reinterpret_cast<PyDictObject*>(reinterpret_cast<PyModuleObject*>(object)->md_dict);
  if (dict == nullptr || dict->ma_keys->dk_version != version) [[unlikely]] return nullptr;
  return DK_UNICODE_ENTRIES(dict->ma_keys)[index].me_value;
}

// What type.__getattribute__ finds for a name on a class, where that is simple: a value that has no __get__ or whose __get__ gives itself
// when asked without an instance (functions, slots, properties), what a static or class method holds.
struct TypeAttr {
  PyObject* name;
  uint32_t version, meta_version;  // of the class and of its class
  uint32_t value_version;          // of the value's class where that can gain __get__, or 0
  bool class_method;               // value is a function, to be bound to the class
  PyObject* value;                 // borrowed; nullptr: not simple
};
inline constexpr size_t kTypeAttrTableSize = 1024;
extern TypeAttr g_type_attr_table[kTypeAttrTableSize];
TypeAttr* fill_type_attr(TypeAttr* entry, PyTypeObject* type, PyObject* name);

// nullptr or an entry without value: ask CPython.
inline TypeAttr* find_type_attr(PyTypeObject* type, PyObject* name) {
  const uint32_t version = type->tp_version_tag;
  TypeAttr* entry = &g_type_attr_table[place_of(version, name, kTypeAttrTableSize)];
  if (entry->version == version && entry->name == name && version != 0 && Py_TYPE(type)->tp_version_tag == entry->meta_version) [[likely]] {
    if (entry->value_version == 0 || Py_TYPE(entry->value)->tp_version_tag == entry->value_version) [[likely]] return entry;
  }
  return fill_type_attr(entry, type, name);
}

// A Python function that is `name` (interned) on the type, or nullptr. Borrowed.
inline PyFunctionObject* python_method(PyTypeObject* type, PyObject* name) {
  PyObject* found = _PyType_Lookup(type, name);
  return found != nullptr && PyFunction_Check(found) ? reinterpret_cast<PyFunctionObject*>(found) : nullptr;
}

// Interned names the evaluator asks for.
struct Names {
#define NAME(id) PyObject* n_##id;
#include "vm/names.def"
#undef NAME
};
extern Names g_names;
[[nodiscard]] bool prepare_names();

}  // namespace dynvm::vm
