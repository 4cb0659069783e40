// The attribute cache; see attr_cache.h for purpose, inputs, outputs, invariants and tests.
#include "vm/attr_cache.h"

#include <structmember.h>

#include <string>

namespace dynvm::vm {

AttrEntry g_attr_table[kAttrTableSize];
TypeAttr g_type_attr_table[kTypeAttrTableSize];
ValuePlace g_value_places[kPlaces];
MethodPlace g_method_places[kPlaces];
Names g_names;

bool prepare_names() {
  if (g_names.n_call != nullptr) return true;
#define NAME(id)                                                   \
  g_names.n_##id = PyUnicode_InternFromString("__" #id "__");      \
  if (g_names.n_##id == nullptr) return false;
#include "vm/names.def"
#undef NAME
  return true;
}

namespace {

AttrAccess access_of(PyTypeObject* type, AttrEntry* entry) {
  const auto& slots = cpython::g_slots;
  if (type->tp_getattro == slots.generic_getattr) return AttrAccess::kGeneric;
  if (type->tp_getattro != slots.getattr_hook && type->tp_getattro != slots.getattro) return AttrAccess::kOpaque;
  PyObject* getattr = type->tp_getattro == slots.getattr_hook ? _PyType_Lookup(type, g_names.n_getattr) : nullptr;
  PyObject* getattribute = _PyType_Lookup(type, g_names.n_getattribute);
  if (getattr != nullptr) {
    if (!PyFunction_Check(getattr)) return AttrAccess::kOpaque;
    entry->getattr = reinterpret_cast<PyFunctionObject*>(getattr);
  }
  if (getattribute == nullptr || getattribute == _PyType_Lookup(&PyBaseObject_Type, g_names.n_getattribute)) {
    return AttrAccess::kGeneric;
  }
  if (!PyFunction_Check(getattribute)) return AttrAccess::kOpaque;
  entry->function = reinterpret_cast<PyFunctionObject*>(getattribute);
  return AttrAccess::kGetattribute;
}

AttrKind kind_of(PyTypeObject* type, PyObject* descriptor, AttrEntry* entry) {
  PyTypeObject* descriptor_type = Py_TYPE(descriptor);
  if (descriptor_type->tp_descr_set != nullptr) {
    if (descriptor_type == &PyMemberDescr_Type) {
      auto* member = reinterpret_cast<PyMemberDescrObject*>(descriptor);
      if (member->d_member->type == T_OBJECT_EX && (member->d_member->flags & ~READONLY) == 0 &&
          PyType_IsSubtype(type, member->d_common.d_type)) {
        entry->offset = member->d_member->offset;
        entry->readonly = (member->d_member->flags & READONLY) != 0;
        return AttrKind::kSlot;
      }
      return AttrKind::kData;
    }
    if (descriptor_type == &PyGetSetDescr_Type) {
      auto* getset = reinterpret_cast<PyGetSetDescrObject*>(descriptor);
      if (getset->d_getset->get != nullptr && PyType_IsSubtype(type, getset->d_common.d_type)) return AttrKind::kGetSet;
      return AttrKind::kData;
    }
    if (descriptor_type == &PyProperty_Type) {
      PyObject* getter = reinterpret_cast<PropertyObject*>(descriptor)->get;
      if (getter != nullptr && PyFunction_Check(getter) && entry->access == AttrAccess::kGeneric) {
        entry->function = reinterpret_cast<PyFunctionObject*>(getter);
        return AttrKind::kProperty;
      }
    }
    if (descriptor_type->tp_descr_get != nullptr) return AttrKind::kData;
    entry->set_only = true;
    return AttrKind::kClassValue;
  }
  if (descriptor_type->tp_descr_get == nullptr) return AttrKind::kClassValue;
  return _PyType_HasFeature(descriptor_type, Py_TPFLAGS_METHOD_DESCRIPTOR) ? AttrKind::kMethod : AttrKind::kNonData;
}

AttrEntry* fill(AttrEntry* entry, PyTypeObject* type, PyObject* name) {
  PyObject* descriptor = _PyType_Lookup(type, name);
  const uint32_t version = cpython::current_version(type);
  if (version == 0) {
    PyErr_Clear();
    return nullptr;
  }
  // The version may just have been given, so the place is looked for again.
  entry = &g_attr_table[place_of(version, name, kAttrTableSize)];
  Py_INCREF(name);
  Py_XDECREF(entry->name);  // keeps the address from being another name's
  *entry = AttrEntry{};
  entry->name = name;
  entry->hash = cpython::str_hash(name);
  entry->access = access_of(type, entry);
  entry->inline_values = cpython::has_managed_dict(type);
  entry->descriptor = descriptor;
  entry->kind = descriptor == nullptr ? AttrKind::kInstance : kind_of(type, descriptor, entry);
  if (descriptor != nullptr && !_PyType_HasFeature(Py_TYPE(descriptor), Py_TPFLAGS_IMMUTABLETYPE)) {
    entry->mutable_descriptor = true;
    entry->descriptor_version = cpython::type_version(Py_TYPE(descriptor), name);
    if (entry->descriptor_version == 0) return nullptr;  // version is still 0: never found again
  }
  entry->generic_setattr = type->tp_setattro == cpython::g_slots.generic_setattr;
  if (type->tp_setattro == cpython::g_slots.setattr) entry->setattr = python_method(type, g_names.n_setattr);
  entry->version = version;
  return entry;
}

// Mirror of CPython's classmethod and staticmethod objects (funcobject.c).
struct MethodHolder {
  PyObject_HEAD
  PyObject *callable, *dict;
};

// Asked without an instance, these give themselves.
bool is_own_value_on_class(PyTypeObject* descriptor) {
  return descriptor == &PyFunction_Type || descriptor == &PyMethodDescr_Type || descriptor == &PyWrapperDescr_Type ||
         descriptor == &PyMemberDescr_Type || descriptor == &PyGetSetDescr_Type || descriptor == &PyProperty_Type;
}

TypeAttr* fill_of_type(TypeAttr* entry, PyTypeObject* type, PyObject* name) {
  PyTypeObject* meta = Py_TYPE(type);
  if (meta->tp_getattro != cpython::g_slots.type_getattr) return nullptr;
  PyObject* own = _PyType_Lookup(meta, name);
  // What the metaclass has goes first where it is, or may become, a data descriptor.
  const bool data = own != nullptr && (Py_TYPE(own)->tp_descr_set != nullptr || !_PyType_HasFeature(Py_TYPE(own), Py_TPFLAGS_IMMUTABLETYPE));
  PyObject* found = _PyType_Lookup(type, name);
  const uint32_t version = cpython::current_version(type), meta_version = cpython::current_version(meta);
  if (version == 0 || meta_version == 0) return nullptr;
  entry = &g_type_attr_table[place_of(version, name, kTypeAttrTableSize)];
  Py_INCREF(name);
  Py_XDECREF(entry->name);  // keeps the address from being another name's
  *entry = TypeAttr{name, 0, meta_version, 0, false, nullptr};
  if (found != nullptr && !data) {
    PyTypeObject* found_type = Py_TYPE(found);
    if (is_own_value_on_class(found_type) || found_type->tp_descr_get == nullptr) {
      entry->value = found;
      if (!_PyType_HasFeature(found_type, Py_TPFLAGS_IMMUTABLETYPE)) {
        entry->value_version = cpython::type_version(found_type, name);
        if (entry->value_version == 0) return nullptr;
      }
    } else if (found_type == &PyStaticMethod_Type) {
      entry->value = reinterpret_cast<MethodHolder*>(found)->callable;
    } else if (found_type == &PyClassMethod_Type) {
      PyObject* callable = reinterpret_cast<MethodHolder*>(found)->callable;
      entry->class_method = callable != nullptr && PyFunction_Check(callable);
      if (entry->class_method) entry->value = callable;
    }
  }
  entry->version = version;
  return entry;
}

}  // namespace

TypeAttr* fill_type_attr(TypeAttr* entry, PyTypeObject* type, PyObject* name) {
  if (!PyUnicode_CheckExact(name)) return nullptr;
  PyObject *error, *value, *traceback;
  PyErr_Fetch(&error, &value, &traceback);
  entry = fill_of_type(entry, type, name);
  PyErr_Restore(error, value, traceback);
  return entry;
}

AttrEntry* fill_attr(AttrEntry* entry, PyTypeObject* type, PyObject* name) {
  if (!PyUnicode_CheckExact(name)) return nullptr;
  // An exception may be on its way; a look-up in a dictionary would take it for its own failure and clear it.
  PyObject *error, *value, *traceback;
  PyErr_Fetch(&error, &value, &traceback);
  entry = fill(entry, type, name);
  PyErr_Restore(error, value, traceback);
  return entry;
}

ValuePlace* fill_value_place(ValuePlace* place, PyObject* object, PyObject* name) {
  PyTypeObject* type = Py_TYPE(object);
  AttrEntry* entry = find_attr(type, name);
  if (entry == nullptr || entry->access != AttrAccess::kGeneric || entry->kind > AttrKind::kNonData || entry->mutable_descriptor ||
      !entry->inline_values || cpython::inline_values(object) == nullptr) {
    return nullptr;
  }
  instance_value(object, type, entry);  // updates the index
  if (entry->index < 0) return nullptr;
  place = &g_value_places[place_of(entry->version, name, kPlaces)];
  Py_INCREF(name);
  Py_XDECREF(place->name);
  *place = {name, entry->version, static_cast<uint32_t>(entry->index)};
  return place;
}

MethodPlace* fill_method_place(MethodPlace* place, PyObject* object, PyObject* name) {
  PyTypeObject* type = Py_TYPE(object);
  AttrEntry* entry = find_attr(type, name);
  if (entry == nullptr || entry->access != AttrAccess::kGeneric || entry->kind != AttrKind::kMethod || entry->mutable_descriptor) return nullptr;
  const uint32_t keys_version = keys_without(object, type, entry);
  place = &g_method_places[place_of(entry->version, name, kPlaces)];
  Py_INCREF(name);
  Py_XDECREF(place->name);
  *place = {name, entry->version, keys_version, entry->descriptor};
  return place;
}

uint32_t keys_without(PyObject* object, PyTypeObject* type, AttrEntry* entry) {
  if (!entry->inline_values || cpython::inline_values(object) == nullptr) return 0;
  return instance_value(object, type, entry) == nullptr && entry->index < 0 ? entry->keys_version : 0;
}

}  // namespace dynvm::vm
