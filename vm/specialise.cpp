// Choosing specialised forms; see specialise.h for purpose, inputs, outputs, invariants and tests.
#include "vm/specialise.h"

#include "vm/attr_cache.h"

namespace dynvm::vm {

PyTypeObject *g_range_iterator, *g_list_iterator, *g_tuple_iterator;
PyObject *g_len, *g_isinstance, *g_list_append;

namespace {

void choose(Inst* inst, Form form) {
  set_form(inst, form);
  inst->state = kMisses;
}

void give_up(Inst* inst) { inst->state = kLookAgain; }

bool both_short(PyObject* left, PyObject* right) {
  long value;
  return PyLong_CheckExact(left) && PyLong_CheckExact(right) && cpython::short_int(left, &value) && cpython::short_int(right, &value);
}

bool is_op(const Inst* inst, Op op) { return inst->op == static_cast<uint16_t>(op); }
bool is_form(const Inst* inst, Form form) { return inst->handler == g_labels[static_cast<int>(form)]; }

PyObject* name_of(const Inst* inst) { return reinterpret_cast<PyObject*>(inst->cache[2]); }

uint64_t pack(uint32_t low, uint32_t high) { return low | static_cast<uint64_t>(high) << 32; }

// Position of a key in a combined dict of str keys, with the keys' version; -1 when there is none. A copy of a dict has its
// version too, with the same positions: so positions are kept, never addresses.
Py_ssize_t dict_position(PyObject* object, PyObject* name, uint32_t* version) {
  if (object == nullptr || !PyDict_CheckExact(object)) return -1;
  auto* dict = reinterpret_cast<PyDictObject*>(object);
  PyDictKeysObject* keys = dict->ma_keys;
  if (keys->dk_kind != DICT_KEYS_UNICODE || dict->ma_values != nullptr) return -1;
  const Py_ssize_t index = cpython::find_key(keys, name, cpython::str_hash(name));
  *version = cpython::stamp_keys(keys);
  return *version != 0 ? index : -1;
}

}  // namespace

void specialise_load_global(Inst* inst, PyObject* globals, PyObject* builtins) {
  uint32_t version = 0, builtin_version = 0;
  PyObject* name = name_of(inst);
  Py_ssize_t position = dict_position(globals, name, &version);
  if (position >= 0) {
    inst->cache[0] = version;
    inst->cache[1] = static_cast<uint64_t>(position);
    return choose(inst, Form::kLoadGlobalModule);
  }
  position = dict_position(builtins, name, &builtin_version);
  if (position >= 0 && version != 0) {
    inst->cache[0] = pack(version, builtin_version);
    inst->cache[1] = static_cast<uint64_t>(position);
    return choose(inst, Form::kLoadGlobalBuiltin);
  }
  give_up(inst);
}

void specialise_load_attr(Inst* inst, PyObject* owner, Code* code) {
  PyTypeObject* type = Py_TYPE(owner);
  PyObject* name = name_of(inst);
  if (PyModule_CheckExact(owner)) {
    uint32_t version = 0;
    const Py_ssize_t position = dict_position(reinterpret_cast<PyModuleObject*>(owner)->md_dict, name, &version);
    if (position >= 0) {
      inst->cache[0] = version;
      inst->cache[1] = static_cast<uint64_t>(position);
      return choose(inst, Form::kLoadAttrModule);
    }
    return give_up(inst);
  }
  AttrEntry* entry = find_attr(type, name);
  if (entry == nullptr || entry->access != AttrAccess::kGeneric || entry->mutable_descriptor) return give_up(inst);
  // A LoadFast before it, not already fused with something, gets the owner without counting references.
  Inst* before = inst > code->fast && is_op(inst - 1, Op::kLoadFast) && is_form(inst - 1, Form::kLoadFast) ? inst - 1 : nullptr;
  if (entry->kind == AttrKind::kSlot) {
    inst->cache[0] = pack(entry->version, static_cast<uint32_t>(entry->offset));
    if (before != nullptr) set_form(before, Form::kLoadFastLoadAttrSlot), before->state = kMisses;
    return choose(inst, Form::kLoadAttrSlot);
  }
  if (entry->kind == AttrKind::kGetSet) {
    inst->cache[0] = entry->version;
    inst->cache[1] = reinterpret_cast<uint64_t>(reinterpret_cast<PyGetSetDescrObject*>(entry->descriptor)->d_getset);
    return choose(inst, Form::kLoadAttrGetSet);
  }
  if (entry->kind > AttrKind::kNonData) return give_up(inst);
  if (entry->inline_values && cpython::inline_values(owner) != nullptr) {
    if (instance_value(owner, type, entry) == nullptr) return give_up(inst);
    inst->cache[0] = pack(entry->version, static_cast<uint32_t>(entry->index));
    if (before != nullptr) set_form(before, Form::kLoadFastLoadAttrValue), before->state = kMisses;
    return choose(inst, Form::kLoadAttrValue);
  }
  PyObject* dict = cpython::instance_dict(owner, type);
  if (dict == nullptr || !PyDict_CheckExact(dict)) return give_up(inst);
  auto* instance = reinterpret_cast<PyDictObject*>(dict);
  if (instance->ma_keys->dk_kind == DICT_KEYS_GENERAL) return give_up(inst);
  const Py_ssize_t index = cpython::find_key(instance->ma_keys, name, entry->hash);
  if (index < 0) return give_up(inst);
  const Py_ssize_t offset = cpython::has_managed_dict(type) ? 0 : type->tp_dictoffset;
  if (offset < 0 || (offset == 0 && !cpython::has_managed_dict(type))) return give_up(inst);
  inst->cache[0] = pack(entry->version, static_cast<uint32_t>(index));
  inst->cache[1] = static_cast<uint64_t>(static_cast<int64_t>(offset));
  choose(inst, Form::kLoadAttrHint);
}

void specialise_load_method(Inst* inst, PyObject* owner) {
  PyTypeObject* type = Py_TYPE(owner);
  PyObject* name = name_of(inst);
  if (PyModule_CheckExact(owner)) {
    uint32_t version = 0;
    const Py_ssize_t position = dict_position(reinterpret_cast<PyModuleObject*>(owner)->md_dict, name, &version);
    if (position >= 0) {
      inst->cache[0] = version;
      inst->cache[1] = static_cast<uint64_t>(position);
      return choose(inst, Form::kLoadMethodModule);
    }
    return give_up(inst);
  }
  AttrEntry* entry = find_attr(type, name);
  if (entry == nullptr || entry->access != AttrAccess::kGeneric || entry->kind != AttrKind::kMethod || entry->mutable_descriptor) {
    return give_up(inst);
  }
  inst->cache[0] = entry->version;
  inst->cache[1] = reinterpret_cast<uint64_t>(entry->descriptor);
  if (entry->inline_values && cpython::inline_values(owner) != nullptr) {
    if (instance_value(owner, type, entry) != nullptr || entry->index >= 0 || entry->keys_version == 0) return give_up(inst);
    inst->cache[0] = pack(entry->version, entry->keys_version);
    return choose(inst, Form::kLoadMethodValues);
  }
  if (type->tp_dictoffset == 0 && !cpython::has_managed_dict(type)) return choose(inst, Form::kLoadMethodNoDict);
  PyObject* dict = cpython::instance_dict(owner, type);
  if (!cpython::has_managed_dict(type) || dict == nullptr || !PyDict_CheckExact(dict)) return give_up(inst);
  PyDictKeysObject* keys = reinterpret_cast<PyDictObject*>(dict)->ma_keys;
  const uint32_t version = cpython::stamp_keys(keys);
  if (version == 0 || cpython::find_key(keys, name, entry->hash) >= 0) return give_up(inst);
  inst->cache[0] = pack(entry->version, version);
  choose(inst, Form::kLoadMethodDict);
}

void specialise_store_attr(Inst* inst, PyObject* owner) {
  PyTypeObject* type = Py_TYPE(owner);
  AttrEntry* entry = find_attr(type, name_of(inst));
  if (entry == nullptr || !entry->generic_setattr || entry->mutable_descriptor) return give_up(inst);
  if (entry->kind == AttrKind::kSlot && !entry->readonly) {
    inst->cache[0] = pack(entry->version, static_cast<uint32_t>(entry->offset));
    return choose(inst, Form::kStoreAttrSlot);
  }
  if (entry->kind > AttrKind::kNonData || !entry->inline_values || cpython::writable_values(owner) == nullptr) return give_up(inst);
  instance_value(owner, type, entry);
  if (entry->index < 0) return give_up(inst);
  inst->cache[0] = pack(entry->version, static_cast<uint32_t>(entry->index));
  choose(inst, Form::kStoreAttrValue);
}

void specialise_binary_op(Inst* inst, PyObject* left, PyObject* right, PyObject** locals) {
  const int op = inst->arg < NB_INPLACE_ADD ? inst->arg : inst->arg - NB_INPLACE_ADD;
  if (PyFloat_CheckExact(left) && PyFloat_CheckExact(right)) {
    switch (op) {
      case NB_ADD: return choose(inst, Form::kAddFloat);
      case NB_SUBTRACT: return choose(inst, Form::kSubFloat);
      case NB_MULTIPLY: return choose(inst, Form::kMulFloat);
      case NB_TRUE_DIVIDE: return choose(inst, Form::kDivFloat);
      default: return give_up(inst);
    }
  }
  if (both_short(left, right)) {
    switch (op) {
      case NB_ADD: return choose(inst, Form::kAddInt);
      case NB_SUBTRACT: return choose(inst, Form::kSubInt);
      case NB_MULTIPLY: return choose(inst, Form::kMulInt);
      case NB_AND: return choose(inst, Form::kAndInt);
      case NB_REMAINDER: return choose(inst, Form::kModInt);
      case NB_FLOOR_DIVIDE: return choose(inst, Form::kFloorDivInt);
      default: return give_up(inst);
    }
  }
  if (PyUnicode_CheckExact(left) && PyUnicode_CheckExact(right) && op == NB_ADD) {
    if (is_op(inst + 1, Op::kStoreFast) && locals[inst[1].arg] == left) return choose(inst, Form::kAppendStr);
    return choose(inst, Form::kAddStr);
  }
  give_up(inst);
}

void specialise_binary_locals(Inst* inst, PyObject* left, PyObject* right, int op, bool constant) {
  op = op < NB_INPLACE_ADD ? op : op - NB_INPLACE_ADD;
  const bool floats = PyFloat_CheckExact(left) && PyFloat_CheckExact(right), ints = both_short(left, right);
  Form form = constant ? Form::kLoadFastLoadConst : Form::kLoadFastLoadFast;
  if (floats || ints) {
    switch (op) {
      case NB_ADD:
        form = floats ? (constant ? Form::kAddLCFloat : Form::kAddLLFloat) : (constant ? Form::kAddLCInt : Form::kAddLLInt);
        break;
      case NB_SUBTRACT:
        form = floats ? (constant ? Form::kSubLCFloat : Form::kSubLLFloat) : (constant ? Form::kSubLCInt : Form::kSubLLInt);
        break;
      case NB_MULTIPLY:
        form = floats ? (constant ? Form::kMulLCFloat : Form::kMulLLFloat) : (constant ? Form::kMulLCInt : Form::kMulLLInt);
        break;
      default:
        break;
    }
  }
  choose(inst, form);
}

void specialise_compare(Inst* inst, PyObject* left, PyObject* right, bool jump) {
  if (both_short(left, right)) return choose(inst, jump ? Form::kCompareJumpInt : Form::kCompareInt);
  if (PyFloat_CheckExact(left) && PyFloat_CheckExact(right)) {
    return choose(inst, jump ? Form::kCompareJumpFloat : Form::kCompareFloat);
  }
  if (PyUnicode_CheckExact(left) && PyUnicode_CheckExact(right) && (inst->arg == Py_EQ || inst->arg == Py_NE)) {
    return choose(inst, jump ? Form::kCompareJumpStr : Form::kCompareStr);
  }
  give_up(inst);
}

void specialise_subscr(Inst* inst, PyObject* container, PyObject* key) {
  if (PyDict_CheckExact(container)) return choose(inst, Form::kSubscrDict);
  if (PyLong_CheckExact(key)) {
    if (PyList_CheckExact(container)) return choose(inst, Form::kSubscrListInt);
    if (PyTuple_CheckExact(container)) return choose(inst, Form::kSubscrTupleInt);
  }
  give_up(inst);
}

void specialise_store_subscr(Inst* inst, PyObject* container, PyObject* key) {
  if (PyDict_CheckExact(container)) return choose(inst, Form::kStoreSubscrDict);
  if (PyList_CheckExact(container) && PyLong_CheckExact(key)) return choose(inst, Form::kStoreSubscrListInt);
  give_up(inst);
}

void specialise_unpack(Inst* inst, PyObject* sequence) {
  if (PyTuple_CheckExact(sequence) && PyTuple_GET_SIZE(sequence) == inst->arg) {
    return choose(inst, inst->arg == 2 ? Form::kUnpackTwoTuple : Form::kUnpackTuple);
  }
  if (PyList_CheckExact(sequence) && PyList_GET_SIZE(sequence) == inst->arg) return choose(inst, Form::kUnpackList);
  give_up(inst);
}

void specialise_for_iter(Inst* inst, PyObject* iterator) {
  PyTypeObject* type = Py_TYPE(iterator);
  if (type == g_range_iterator) {
    return choose(inst, is_op(inst + 1, Op::kStoreFast) ? Form::kForIterRangeStore : Form::kForIterRange);
  }
  if (type == g_list_iterator) return choose(inst, Form::kForIterList);
  if (type == g_tuple_iterator) return choose(inst, Form::kForIterTuple);
  if (type == &PyGen_Type) return choose(inst, Form::kForIterGenerator);
  give_up(inst);
}

void specialise_call(Inst* inst, PyObject** base) {
  if (inst->cache[2] != 0) return give_up(inst);  // keyword names
  const cpython::Callee callee(base);
  PyObject* callable = *callee.slot;
  const int total = inst->arg + (callee.has_self ? 1 : 0);
  PyTypeObject* type = Py_TYPE(callable);
  if (type == &PyFunction_Type) {
    Code* code = code_for(reinterpret_cast<PyCodeObject*>(reinterpret_cast<PyFunctionObject*>(callable)->func_code));
    if (code == nullptr) {
      PyErr_Clear();
      return give_up(inst);
    }
    if (!code->simple || code->argcount != total) return give_up(inst);
    inst->cache[0] = reinterpret_cast<uint64_t>(code);
    return choose(inst, Form::kCallPythonExact);
  }
  if (type == &PyCFunction_Type) {
    if (callable == g_len && total == 1 && !callee.has_self) return choose(inst, Form::kCallLen);
    if (callable == g_isinstance && total == 2 && !callee.has_self) return choose(inst, Form::kCallIsInstance);
    const int flags = PyCFunction_GET_FLAGS(callable);
    if (flags == METH_O && total == 1) return choose(inst, Form::kCallBuiltinO);
    if (flags == METH_FASTCALL) return choose(inst, Form::kCallBuiltinFast);
  } else if (type == &PyMethodDescr_Type && callee.has_self) {
    PyMethodDef* method = reinterpret_cast<PyMethodDescrObject*>(callable)->d_method;
    if (callable == g_list_append && total == 2 && PyList_Check(base[1]) && is_op(inst + 1, Op::kPopTop)) {
      return choose(inst, Form::kCallListAppend);
    }
    inst->cache[0] = reinterpret_cast<uint64_t>(callable);
    if (method->ml_flags == METH_O && total == 2) return choose(inst, Form::kCallMethodO);
    if (method->ml_flags == METH_NOARGS && total == 1) return choose(inst, Form::kCallMethodNoArgs);
    if (method->ml_flags == METH_FASTCALL) return choose(inst, Form::kCallMethodFast);
  } else if (callable == reinterpret_cast<PyObject*>(&PyType_Type) && total == 1 && !callee.has_self) {
    return choose(inst, Form::kCallType1);
  }
  give_up(inst);
}

bool prepare_specialisation() {
  if (g_len != nullptr) return true;
  PyObject* builtins = PyEval_GetBuiltins();
  PyObject* objects[] = {PyLong_FromLong(0), PyList_New(0), PyTuple_New(0)};
  PyObject* range = objects[0] != nullptr ? PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyRange_Type), objects[0]) : nullptr;
  PyObject* iterables[] = {range, objects[1], objects[2]};
  PyTypeObject** types[] = {&g_range_iterator, &g_list_iterator, &g_tuple_iterator};
  for (int i = 0; i < 3; ++i) {
    PyObject* iterator = iterables[i] != nullptr ? PyObject_GetIter(iterables[i]) : nullptr;
    if (iterator == nullptr) return false;
    *types[i] = Py_TYPE(iterator);
    Py_DECREF(iterator);
  }
  for (PyObject* object : objects) Py_DECREF(object);
  Py_DECREF(range);
  g_isinstance = PyDict_GetItemString(builtins, "isinstance");
  PyObject* append = PyUnicode_InternFromString("append");
  g_list_append = append != nullptr ? _PyType_Lookup(&PyList_Type, append) : nullptr;
  Py_XDECREF(append);
  g_len = PyDict_GetItemString(builtins, "len");
  if (g_len == nullptr || g_isinstance == nullptr || g_list_append == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "dynvm: builtins len, isinstance and list.append are needed at start");
    return false;
  }
  Py_INCREF(g_len);
  Py_INCREF(g_isinstance);
  return true;
}

}  // namespace dynvm::vm
