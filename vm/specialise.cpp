// Choosing specialised forms; see specialise.h for purpose, inputs, outputs, invariants and tests.
#include "vm/specialise.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "vm/arrays.h"
#include "vm/attr_cache.h"
#include "vm/objects.h"
#include "vm/operations.h"

namespace dynvm::vm {

PyTypeObject *g_range_iterator, *g_list_iterator, *g_tuple_iterator;
PyObject *g_len, *g_isinstance, *g_list_append;
PyObject* g_empty_tuple;

namespace {

// The site was specialised for another version before: it sees several types.
bool saw_other_type(const Inst* inst, uint32_t version) {
  const auto before = static_cast<uint32_t>(inst->cache[0]);
  return before != 0 && before != version;
}

void choose(Inst* inst, Form form) {
  set_form(inst, form);
  inst->state = misses();
}

void give_up(Inst* inst) { inst->state = look_again(); }

bool both_short(PyObject* left, PyObject* right) {
  long value;
  return PyLong_CheckExact(left) && PyLong_CheckExact(right) && cpython::short_int(left, &value) && cpython::short_int(right, &value);
}

bool is_op(const Inst* inst, Op op) { return inst->op == static_cast<uint16_t>(op); }
bool is_form(const Inst* inst, Form form) { return inst->handler == g_labels[static_cast<int>(form)]; }

// A LoadFast before it that is not fused with something else does the work of both, with a copy of the cache.
void fuse_load(Inst* inst, Code* code, Form form) {
  Inst* before = inst - 1;
  if (inst == code->fast || !is_op(before, Op::kLoadFast) || (!is_form(before, Form::kLoadFast) && !is_form(before, form))) return;
  choose(before, form);
  std::memcpy(before->cache, inst->cache, sizeof inst->cache);
}

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

// The C function for a binary operator on these types, where one alone is to be asked; nullptr where Python code or both might be.
binaryfunc binary_slot(int op, PyTypeObject* left, PyTypeObject* right) {
  // By NB_ number: the offset of the operator in PyNumberMethods, 0 for the ternary one.
  static constexpr size_t offsets[] = {
#define NUMBER(name) offsetof(PyNumberMethods, nb_##name)
      NUMBER(add), NUMBER(and), NUMBER(floor_divide), NUMBER(lshift), NUMBER(matrix_multiply), NUMBER(multiply), NUMBER(remainder),
      NUMBER(or), 0, NUMBER(rshift), NUMBER(subtract), NUMBER(true_divide), NUMBER(xor),
      NUMBER(inplace_add), NUMBER(inplace_and), NUMBER(inplace_floor_divide), NUMBER(inplace_lshift), NUMBER(inplace_matrix_multiply),
      NUMBER(inplace_multiply), NUMBER(inplace_remainder), NUMBER(inplace_or), 0, NUMBER(inplace_rshift), NUMBER(inplace_subtract),
      NUMBER(inplace_true_divide), NUMBER(inplace_xor)};
#undef NUMBER
  static_assert(std::size(offsets) == 26);
  const auto slot = [](PyTypeObject* type, size_t offset) -> binaryfunc {
    return type->tp_as_number == nullptr || offset == 0 ? nullptr
           : *reinterpret_cast<binaryfunc*>(reinterpret_cast<char*>(type->tp_as_number) + offset);
  };
  const bool in_place = op >= NB_INPLACE_ADD;
  const int plain = in_place ? op - NB_INPLACE_ADD : op;
  if (offsets[plain] == 0) return nullptr;
  binaryfunc found = nullptr;
  if (in_place) found = slot(left, offsets[op]);
  if (found == nullptr && (left == right || slot(right, offsets[plain]) == nullptr)) found = slot(left, offsets[plain]);
  const bool numeric = slot(left, offsets[plain]) != nullptr || slot(right, offsets[plain]) != nullptr || (in_place && slot(left, offsets[op]) != nullptr);
  if (found == nullptr && !numeric && plain == NB_ADD && left->tp_as_sequence != nullptr) {
    if (in_place) found = left->tp_as_sequence->sq_inplace_concat;
    if (found == nullptr) found = left->tp_as_sequence->sq_concat;
    if (found != nullptr && (left->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) found = nullptr;  // may be a method in Python
  }
  return found == cpython::g_slots.binary[op] || found == cpython::g_slots.binary[plain] ? nullptr : found;
}

}  // namespace

void specialise_load_global(Inst* inst, PyObject* name, PyObject* globals, PyObject* builtins) {
  uint32_t version = 0, builtin_version = 0;
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

void specialise_load_attr(Inst* inst, PyObject* name, PyObject* owner, Code* code) {
  PyTypeObject* type = Py_TYPE(owner);
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
  if (PyType_Check(owner) && entry != nullptr && entry->access == AttrAccess::kOpaque) {
    const TypeAttr* found = find_type_attr(reinterpret_cast<PyTypeObject*>(owner), name);
    return found != nullptr && found->value != nullptr ? choose(inst, Form::kLoadAttrOfType) : give_up(inst);
  }
  if (entry == nullptr || entry->access != AttrAccess::kGeneric || entry->mutable_descriptor) return give_up(inst);
  const bool several = saw_other_type(inst, entry->version);
  const auto fuse = [&](Form form) { fuse_load(inst, code, form); };
  if (entry->kind == AttrKind::kSlot) {
    inst->cache[0] = pack(entry->version, static_cast<uint32_t>(entry->offset));
    fuse(Form::kLoadFastLoadAttrSlot);
    return choose(inst, Form::kLoadAttrSlot);
  }
  if (entry->kind == AttrKind::kGetSet) {
    inst->cache[0] = entry->version;
    inst->cache[1] = reinterpret_cast<uint64_t>(reinterpret_cast<PyGetSetDescrObject*>(entry->descriptor)->d_getset);
    return choose(inst, Form::kLoadAttrGetSet);
  }
  if (entry->kind == AttrKind::kProperty) {
    inst->cache[0] = pack(entry->version, entry->getattr != nullptr ? 1 : 0);
    inst->cache[1] = reinterpret_cast<uint64_t>(entry->function);
    return choose(inst, Form::kLoadAttrProperty);
  }
  if (entry->kind > AttrKind::kNonData) return give_up(inst);
  if (entry->kind != AttrKind::kInstance && entry->kind != AttrKind::kNonData) {
    // On the class: where the instance does not hide it.
    const uint32_t keys_version = keys_without(owner, type, entry);
    if (hides_nothing(owner, type, name, keys_version)) {
      inst->cache[0] = pack(entry->version, keys_version);
      inst->cache[1] = reinterpret_cast<uint64_t>(entry->descriptor);
      return choose(inst, entry->kind == AttrKind::kClassValue ? Form::kLoadAttrClassValue : Form::kLoadAttrBound);
    }
  }
  if (entry->inline_values && cpython::inline_values(owner) != nullptr) {
    if (instance_value(owner, type, entry) == nullptr) return give_up(inst);
    inst->cache[0] = pack(entry->version, static_cast<uint32_t>(entry->index));
    inst->cache[1] = reinterpret_cast<uint64_t>(name);
    fuse(several ? Form::kLoadFastLoadAttrValues : Form::kLoadFastLoadAttrValue);
    return choose(inst, several ? Form::kLoadAttrValues : Form::kLoadAttrValue);
  }
  PyObject* dict = cpython::instance_dict(owner, type);
  if (dict == nullptr || !PyDict_CheckExact(dict)) return give_up(inst);
  auto* instance = reinterpret_cast<PyDictObject*>(dict);
  if (instance->ma_keys->dk_kind == DICT_KEYS_GENERAL) return give_up(inst);
  const Py_ssize_t index = cpython::find_key(instance->ma_keys, name, entry->hash);
  if (index < 0) return give_up(inst);
  const Py_ssize_t offset = cpython::has_managed_dict(type) ? 0 : type->tp_dictoffset;
  constexpr Py_ssize_t kMost = UINT16_MAX;
  if (offset < 0 || offset > kMost || index > kMost || (offset == 0 && !cpython::has_managed_dict(type))) return give_up(inst);
  inst->cache[0] = pack(entry->version, static_cast<uint32_t>(index | offset << 16));
  inst->cache[1] = reinterpret_cast<uint64_t>(name);
  fuse(Form::kLoadFastLoadAttrHint);
  choose(inst, Form::kLoadAttrHint);
}

void specialise_load_method(Inst* inst, PyObject* name, PyObject* owner, Code* code) {
  PyTypeObject* type = Py_TYPE(owner);
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
  if (PyType_Check(owner) && entry != nullptr && entry->access == AttrAccess::kOpaque) {
    const TypeAttr* found = find_type_attr(reinterpret_cast<PyTypeObject*>(owner), name);
    return found != nullptr && found->value != nullptr ? choose(inst, Form::kLoadMethodOfType) : give_up(inst);
  }
  if (entry == nullptr || entry->access != AttrAccess::kGeneric || entry->mutable_descriptor) return give_up(inst);
  if (entry->kind <= AttrKind::kNonData && entry->inline_values && cpython::inline_values(owner) != nullptr &&
      instance_value(owner, type, entry) != nullptr) {
    inst->cache[0] = pack(entry->version, static_cast<uint32_t>(entry->index));
    return choose(inst, Form::kLoadMethodInstance);
  }
  if (entry->kind != AttrKind::kMethod) return give_up(inst);
  if (saw_other_type(inst, entry->version)) {
    inst->cache[1] = reinterpret_cast<uint64_t>(name);
    return choose(inst, Form::kLoadMethodTypes);
  }
  inst->cache[0] = entry->version;
  inst->cache[1] = reinterpret_cast<uint64_t>(entry->descriptor);
  if (entry->inline_values && cpython::inline_values(owner) != nullptr) {
    if (instance_value(owner, type, entry) != nullptr || entry->index >= 0 || entry->keys_version == 0) return give_up(inst);
    inst->cache[0] = pack(entry->version, entry->keys_version);
    fuse_load(inst, code, Form::kLoadFastLoadMethodValues);
    return choose(inst, Form::kLoadMethodValues);
  }
  if (type->tp_dictoffset == 0 && !cpython::has_managed_dict(type)) return choose(inst, Form::kLoadMethodNoDict);
  const uint32_t keys_version = keys_without(owner, type, entry);
  if (!hides_nothing(owner, type, name, keys_version)) return give_up(inst);
  inst->cache[0] = pack(entry->version, keys_version);
  choose(inst, Form::kLoadMethodProbe);
}

void specialise_store_attr(Inst* inst, PyObject* name, PyObject* owner) {
  PyTypeObject* type = Py_TYPE(owner);
  AttrEntry* entry = find_attr(type, name);
  if (entry == nullptr || !entry->generic_setattr || entry->mutable_descriptor) return give_up(inst);
  if (entry->kind == AttrKind::kSlot && !entry->readonly) {
    inst->cache[0] = pack(entry->version, static_cast<uint32_t>(entry->offset));
    return choose(inst, Form::kStoreAttrSlot);
  }
  if (entry->kind > AttrKind::kNonData || entry->set_only) return give_up(inst);
  if (!entry->inline_values || cpython::writable_values(owner) == nullptr) {
    const Py_ssize_t offset = cpython::has_managed_dict(type) ? 0 : type->tp_dictoffset;
    PyObject* dict = cpython::has_managed_dict(type) || offset > 0 ? cpython::dict_at(owner, offset) : nullptr;
    if (dict == nullptr || !PyDict_CheckExact(dict)) return give_up(inst);
    inst->cache[0] = pack(entry->version, static_cast<uint32_t>(offset));
    inst->cache[1] = reinterpret_cast<uint64_t>(name);
    return choose(inst, Form::kStoreAttrDict);
  }
  instance_value(owner, type, entry);
  if (entry->index < 0) return give_up(inst);
  const bool several = saw_other_type(inst, entry->version);
  inst->cache[0] = pack(entry->version, static_cast<uint32_t>(entry->index));
  inst->cache[1] = reinterpret_cast<uint64_t>(name);
  choose(inst, several ? Form::kStoreAttrValues : Form::kStoreAttrValue);
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
      case NB_OR: return choose(inst, Form::kOrInt);
      case NB_XOR: return choose(inst, Form::kXorInt);
      case NB_LSHIFT: return choose(inst, Form::kLshiftInt);
      case NB_RSHIFT: return choose(inst, Form::kRshiftInt);
      case NB_TRUE_DIVIDE: return choose(inst, Form::kBinaryNumber);
      case NB_REMAINDER: return choose(inst, Form::kModInt);
      case NB_FLOOR_DIVIDE: return choose(inst, Form::kFloorDivInt);
      default: return give_up(inst);
    }
  }
  const auto is_number = [](PyObject* object) { return PyFloat_CheckExact(object) || PyLong_CheckExact(object); };
  if (is_number(left) && is_number(right) && Py_TYPE(left) != Py_TYPE(right) &&
      (op == NB_ADD || op == NB_SUBTRACT || op == NB_MULTIPLY || op == NB_TRUE_DIVIDE)) {
    return choose(inst, Form::kBinaryNumber);
  }
  if (PyUnicode_CheckExact(left) && PyUnicode_CheckExact(right) && op == NB_ADD) {
    if (is_op(inst + 1, Op::kStoreFast) && locals[inst[1].arg] == left) return choose(inst, Form::kAppendStr);
    return choose(inst, Form::kAddStr);
  }
  const binaryfunc slot = binary_slot(inst->arg, Py_TYPE(left), Py_TYPE(right));
  const uint32_t left_version = type_version(Py_TYPE(left)), right_version = type_version(Py_TYPE(right));
  if (slot == nullptr || left_version == 0 || right_version == 0) return give_up(inst);
  inst->cache[0] = pack(left_version, right_version);
  inst->cache[1] = reinterpret_cast<uint64_t>(slot);
  choose(inst, Form::kBinarySlot);
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

void specialise_compare_locals(Inst* inst, PyObject* left, PyObject* right, bool constant) {
  if (both_short(left, right)) return choose(inst, constant ? Form::kCompareLCInt : Form::kCompareLLInt);
  if (PyFloat_CheckExact(left) && PyFloat_CheckExact(right)) return choose(inst, constant ? Form::kCompareLCFloat : Form::kCompareLLFloat);
  choose(inst, constant ? Form::kLoadFastLoadConst : Form::kLoadFastLoadFast);
}

void specialise_subscr_locals(Inst* inst, PyObject* container, PyObject* key, bool constant) {
  if ((PyList_CheckExact(container) || PyTuple_CheckExact(container)) && PyLong_CheckExact(key)) {
    return choose(inst, constant ? Form::kSubscrLCInt : Form::kSubscrLLInt);
  }
  choose(inst, constant ? Form::kLoadFastLoadConst : Form::kLoadFastLoadFast);
}

void specialise_subscr(Inst* inst, PyObject* container, PyObject* key) {
  if (PyDict_CheckExact(container)) return choose(inst, Form::kSubscrDict);
  if (PyLong_CheckExact(key)) {
    if (PyList_CheckExact(container)) return choose(inst, Form::kSubscrListInt);
    if (PyTuple_CheckExact(container)) return choose(inst, Form::kSubscrTupleInt);
    if (PyUnicode_CheckExact(container)) return choose(inst, Form::kSubscrStrInt);
    if (recognise_array(container)) {
      inst->cache[1] = static_cast<unsigned char>(array_description(container)->typecode);  // for native runs
      return choose(inst, Form::kSubscrArrayInt);
    }
  }
  PyTypeObject* type = Py_TYPE(container);
  inst->cache[0] = type_version(type);
  if (inst->cache[0] == 0 || type->tp_as_mapping == nullptr || type->tp_as_mapping->mp_subscript == nullptr) return give_up(inst);
  if (type->tp_as_mapping->mp_subscript == cpython::g_slots.subscript) {
    inst->cache[1] = reinterpret_cast<uint64_t>(python_method(type, g_names.n_getitem));
    return inst->cache[1] != 0 ? choose(inst, Form::kSubscrPython) : give_up(inst);
  }
  inst->cache[1] = reinterpret_cast<uint64_t>(type->tp_as_mapping->mp_subscript);
  choose(inst, Form::kSubscrSlot);
}

void specialise_store_subscr(Inst* inst, PyObject* container, PyObject* key) {
  if (PyDict_CheckExact(container)) return choose(inst, Form::kStoreSubscrDict);
  if (PyList_CheckExact(container) && PyLong_CheckExact(key)) return choose(inst, Form::kStoreSubscrListInt);
  if (PyLong_CheckExact(key) && recognise_array(container)) {
    inst->cache[1] = static_cast<unsigned char>(array_description(container)->typecode);
    return choose(inst, Form::kStoreSubscrArrayInt);
  }
  PyTypeObject* type = Py_TYPE(container);
  inst->cache[0] = type_version(type);
  if (inst->cache[0] == 0 || type->tp_as_mapping == nullptr || type->tp_as_mapping->mp_ass_subscript == nullptr ||
      type->tp_as_mapping->mp_ass_subscript == cpython::g_slots.ass_subscript) {
    return give_up(inst);
  }
  inst->cache[1] = reinterpret_cast<uint64_t>(type->tp_as_mapping->mp_ass_subscript);
  choose(inst, Form::kStoreSubscrSlot);
}

void specialise_contains(Inst* inst, PyObject* container) {
  PyTypeObject* type = Py_TYPE(container);
  inst->cache[0] = type_version(type);
  if (inst->cache[0] == 0 || type->tp_as_sequence == nullptr || type->tp_as_sequence->sq_contains == nullptr ||
      type->tp_as_sequence->sq_contains == cpython::g_slots.contains) {
    return give_up(inst);
  }
  const bool is_plain = type == &PyList_Type || type == &PyTuple_Type;
  inst->cache[1] = reinterpret_cast<uint64_t>(is_plain ? items_contain : type->tp_as_sequence->sq_contains);
  choose(inst, Form::kContainsSlot);
}

void specialise_unpack(Inst* inst, PyObject* sequence) {
  const bool is_list = PyList_CheckExact(sequence);
  if ((!is_list && !PyTuple_CheckExact(sequence)) || Py_SIZE(sequence) != inst->arg) return give_up(inst);
  if (is_list) inst->cache[0] = 1;
  choose(inst, inst->arg == 2 && inst->cache[0] == 0 ? Form::kUnpackTwoTuple : Form::kUnpackItems);
}

void specialise_for_iter(Inst* inst, PyObject* iterator) {
  PyTypeObject* type = Py_TYPE(iterator);
  if (type == g_range_iterator) {
    return choose(inst, is_op(inst + 1, Op::kStoreFast) ? Form::kForIterRangeStore : Form::kForIterRange);
  }
  if (type == g_list_iterator) return choose(inst, is_op(inst + 1, Op::kStoreFast) ? Form::kForIterListStore : Form::kForIterList);
  if (type == g_tuple_iterator) return choose(inst, Form::kForIterTuple);
  if (type == &PyGen_Type) return choose(inst, Form::kForIterGenerator);
  if (type->tp_iternext == cpython::g_slots.iternext) return give_up(inst);
  const uint32_t version = type_version(type);
  inst->cache[0] = pack(static_cast<uint32_t>(inst->cache[0]), version);  // behind the jump's distance
  inst->cache[1] = reinterpret_cast<uint64_t>(type->tp_iternext);
  version != 0 ? choose(inst, Form::kForIterSlot) : give_up(inst);
}

namespace {

Code* decoded_code(PyFunctionObject* function) {  // nullptr without an exception: no memory
  Code* code = code_for(reinterpret_cast<PyCodeObject*>(function->func_code));
  if (code == nullptr) PyErr_Clear();
  return code;
}

// The specialised form for a call that enters a Python function; `given` arguments, self included.
bool choose_python_call(Inst* inst, PyObject* callable, int given, bool bound) {
  if (Py_TYPE(callable) != &PyFunction_Type) return false;
  auto* function = reinterpret_cast<PyFunctionObject*>(callable);
  Code* code = decoded_code(function);
  if (code == nullptr) return false;
  const int missing = code->argcount - given;
  const Py_ssize_t defaults = function->func_defaults == nullptr ? 0 : PyTuple_GET_SIZE(function->func_defaults);
  if (!code->simple || missing < 0 || missing > defaults) return false;
  const bool several = inst->cache[0] != 0 && inst->cache[0] != reinterpret_cast<uint64_t>(code);
  inst->cache[0] = reinterpret_cast<uint64_t>(code);
  choose(inst, bound ? Form::kCallBoundMethod : several || missing != 0 ? Form::kCallPythonAny : Form::kCallPythonExact);
  return true;
}

bool choose_keyword_call(Inst* inst, PyObject* names, PyFunctionObject* function, int positional) {
  Code* code = decoded_code(function);
  if (code == nullptr) return false;
  PyCodeObject* object = code->code;
  const int parameters = object->co_argcount + object->co_kwonlyargcount;
  constexpr int kFunction = CO_OPTIMIZED | CO_NEWLOCALS;
  const Py_ssize_t keywords = PyTuple_GET_SIZE(names);
  if ((object->co_flags & (kFunction | CO_VARARGS | CO_VARKEYWORDS)) != kFunction || parameters > 64 || positional > object->co_argcount ||
      keywords > kMostMapped) {
    return false;
  }
  uint8_t map[kMostMapped + 1] = {};
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    int parameter = std::max(positional, object->co_posonlyargcount);
    while (parameter < parameters && PyTuple_GET_ITEM(object->co_localsplusnames, parameter) != PyTuple_GET_ITEM(names, i)) ++parameter;
    if (parameter == parameters) return false;
    map[i] = static_cast<uint8_t>(parameter);
  }
  map[kMostMapped] = static_cast<uint8_t>(positional);
  inst->cache[0] = reinterpret_cast<uint64_t>(code);
  std::memcpy(&inst->cache[1], map, sizeof map);
  choose(inst, Form::kCallPythonKeywords);
  return true;
}

// A class whose instances object.__new__ makes and a function initialises.
bool choose_class_call(Inst* inst, PyTypeObject* made) {
  if (Py_TYPE(made)->tp_call != PyType_Type.tp_call || made->tp_new != cpython::g_slots.object_new || made->tp_init != cpython::g_slots.init ||
      (made->tp_flags & Py_TPFLAGS_IS_ABSTRACT) != 0) {
    return false;
  }
  PyFunctionObject* init = python_method(made, g_names.n_init);
  Code* code = init != nullptr ? decoded_code(init) : nullptr;
  inst->cache[0] = cpython::type_version(made, g_names.n_init);
  if (code == nullptr || !code->simple || inst->cache[0] == 0 || code->argcount < inst->arg + 1) return false;
  inst->cache[1] = reinterpret_cast<uint64_t>(init);
  choose(inst, Form::kCallClassInit);
  return true;
}

// A class whose calls may go to Python code.
bool is_python_class(PyObject* callable) {
  if (!PyType_Check(callable)) return false;
  auto* type = reinterpret_cast<PyTypeObject*>(callable);
  return type->tp_init == cpython::g_slots.init || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
}

// Whatever has a vectorcall function that does not lead to Python code at once.
bool choose_vectorcall(Inst* inst, PyObject* callable) {
  PyTypeObject* type = Py_TYPE(callable);
  if ((type->tp_flags & Py_TPFLAGS_HAVE_VECTORCALL) == 0 || type == &PyFunction_Type || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) return false;
  if (*reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(callable) + type->tp_vectorcall_offset) == nullptr) return false;
  inst->cache[0] = reinterpret_cast<uint64_t>(type);
  inst->cache[1] = PyType_Check(callable) ? reinterpret_cast<uint64_t>(callable) : 0;
  choose(inst, Form::kCallVectorcall);
  return true;
}

}  // namespace

void specialise_call(Inst* inst, PyCodeObject* code, PyObject** base) {
  const cpython::Callee callee(base);
  PyObject* callable = *callee.slot;
  const int total = inst->arg + (callee.has_self ? 1 : 0);
  PyTypeObject* type = Py_TYPE(callable);
  if (PyObject* names = keyword_names(code, inst)) {
    const auto keywords = static_cast<int>(PyTuple_GET_SIZE(names));
    const bool chosen = type == &PyFunction_Type ? choose_keyword_call(inst, names, reinterpret_cast<PyFunctionObject*>(callable), total - keywords)
                                                 : type != &PyMethod_Type && !is_python_class(callable) && choose_vectorcall(inst, callable);
    return chosen ? void() : give_up(inst);
  }
  if (type == &PyFunction_Type) {
    return choose_python_call(inst, callable, total, false) ? void() : give_up(inst);
  }
  if (type == &PyMethod_Type) {
    PyObject* function = reinterpret_cast<PyMethodObject*>(callable)->im_func;
    if (!callee.has_self && choose_python_call(inst, function, total + 1, true)) return;
    return give_up(inst);
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
    if (method->ml_flags == METH_O && total == 2) return choose(inst, Form::kCallMethodO);
    if (method->ml_flags == METH_NOARGS && total == 1) return choose(inst, Form::kCallMethodNoArgs);
    if (method->ml_flags == METH_FASTCALL) return choose(inst, Form::kCallMethodFast);
  } else if (PyType_Check(callable)) {
    if (callable == reinterpret_cast<PyObject*>(&PyType_Type) && total == 1 && !callee.has_self) return choose(inst, Form::kCallType1);
    const bool is_str = callable == reinterpret_cast<PyObject*>(&PyUnicode_Type);
    if ((is_str || callable == reinterpret_cast<PyObject*>(&PyLong_Type)) && total == 1 && !callee.has_self) {
      inst->cache[0] = reinterpret_cast<uint64_t>(callable);
      inst->cache[1] = reinterpret_cast<uint64_t>(is_str ? PyObject_Str : PyNumber_Long);
      return choose(inst, Form::kCallConvert);
    }
    if (!callee.has_self && choose_class_call(inst, reinterpret_cast<PyTypeObject*>(callable))) return;
    if (is_python_class(callable)) return give_up(inst);
  }
  if (!choose_vectorcall(inst, callable)) give_up(inst);
}

bool prepare_specialisation() {
  if (g_len != nullptr) return true;
  g_empty_tuple = PyTuple_New(0);
  if (g_empty_tuple == nullptr) return false;
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
