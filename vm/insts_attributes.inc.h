// Instruction bodies: attributes and subscripts. Included by eval.cpp inside evaluate_frame.
//
// Purpose, invariants: eval.cpp. Inputs, outputs: the evaluator's registers. Tests: tests/vm/scripts/attr_*.py, subscr_*.py.
//
// An access that ends in Python code enters that code's frame here: properties, __getattr__, __getattribute__, __setattr__, __getitem__,
// __setitem__. What the continuation needs stays on the stack, see continuations.def.

INST(LoadAttr)
  if (LOOKS()) {
    specialise_load_attr(ip, NAME_OF(ip), TOP, find_code(cpython::code_of(frame)));
    DISPATCH();
  }
generic_LoadAttr : {
  SYNC();
  PyObject* owner = TOP;
  PyTypeObject* type = Py_TYPE(owner);
  AttrEntry* entry = find_attr(type, NAME_OF(ip));
  PyObject* value = nullptr;
  if (unlikely(entry == nullptr || entry->access != AttrAccess::kGeneric)) {
    if (entry != nullptr && entry->access == AttrAccess::kGetattribute && CAN_INLINE()) {
      detour = entry->function;
      detour_arguments[0] = Py_NewRef(owner);
      detour_arguments[1] = Py_NewRef(NAME_OF(ip));
      detour_count = 2;
      continuation = Continuation::kAttribute;
      goto enter_detour;
    }
    if (PyType_Check(owner)) goto attribute_of_type;
    value = PyObject_GetAttr(owner, NAME_OF(ip));
    if (unlikely(value == nullptr)) goto error;
    TOP = value;
    DROP(owner);
    NEXT();
  }
  switch (entry->kind) {
    case AttrKind::kSlot:
      value = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(owner) + entry->offset);
      if (unlikely(value == nullptr)) goto attribute_missing;
      Py_INCREF(value);
      break;
    case AttrKind::kGetSet: {
      PyGetSetDef* getset = reinterpret_cast<PyGetSetDescrObject*>(entry->descriptor)->d_getset;
      value = getset->get(owner, getset->closure);
      if (unlikely(value == nullptr)) goto attribute_raised;
      break;
    }
    case AttrKind::kProperty:
      if (unlikely(!CAN_INLINE())) goto attribute_through_c;
      detour = entry->function;
      detour_count = 1;
      detour_arguments[0] = Py_NewRef(owner);
      continuation = entry->getattr != nullptr ? Continuation::kAttribute : Continuation::kReplace;
      goto enter_detour;
    case AttrKind::kData:
      goto attribute_through_c;
    default: {
      // Comparing strange keys of the instance's dict can run code that changes the class.
      const AttrKind kind = entry->kind;
      PyObject* descriptor = Py_XNewRef(entry->descriptor);
      value = Py_XNewRef(instance_value(owner, type, entry));
      if (value != nullptr) {
        Py_XDECREF(descriptor);
        break;
      }
      if (unlikely(cpython::exception_is_set(tstate))) {
        Py_XDECREF(descriptor);
        goto attribute_raised;
      }
      if (kind == AttrKind::kInstance) goto attribute_missing;
      value = descriptor;
      if (kind == AttrKind::kClassValue) break;
      value = bind_descriptor(descriptor, owner, type);
      Py_DECREF(descriptor);
      if (unlikely(value == nullptr)) goto attribute_raised;
      break;
    }
  }
  TOP = value;
  DROP(owner);
  NEXT_CHECKED();
}

// The object has no such attribute: __getattr__ or the error. TOP is the object, ip a LoadAttr or LoadMethod.
attribute_missing : {
  AttrEntry* entry = find_attr(Py_TYPE(TOP), NAME_OF(ip));
  if (entry != nullptr && entry->getattr != nullptr && CAN_INLINE()) {
    detour = entry->getattr;
    detour_arguments[0] = Py_NewRef(TOP);
    detour_arguments[1] = Py_NewRef(NAME_OF(ip));
    detour_count = 2;
    continuation = ip->op == static_cast<uint16_t>(Op::kLoadMethod) ? Continuation::kReplaceMethod : Continuation::kReplace;
    goto enter_detour;
  }
}
attribute_through_c : {
  PyObject* owner = TOP;
  PyObject* value = PyObject_GetAttr(owner, NAME_OF(ip));
  if (unlikely(value == nullptr)) goto error;
  if (ip->op == static_cast<uint16_t>(Op::kLoadMethod)) {
    SET_LONE_CALLABLE(value);
  } else {
    TOP = value;
  }
  DROP(owner);
  NEXT_CHECKED();
}
// The object is a class.
INST(LoadAttrOfType)
  if (unlikely(!PyType_Check(TOP))) MISS(LoadAttr);
attribute_of_type : {
  PyObject* owner = TOP;
  const TypeAttr* entry = find_type_attr(reinterpret_cast<PyTypeObject*>(owner), NAME_OF(ip));
  if (unlikely(entry == nullptr || entry->value == nullptr)) {
    SYNC();
    goto attribute_through_c;
  }
  if (ip->op == static_cast<uint16_t>(Op::kLoadMethod)) {
    if (entry->class_method) {
      TOP = Py_NewRef(entry->value);
      PUSH(owner);
      NEXT();
    }
    SET_LONE_CALLABLE(Py_NewRef(entry->value));
  } else if (entry->class_method) {
    SYNC();
    PyObject* method = PyMethod_New(entry->value, owner);
    if (unlikely(method == nullptr)) goto error;
    TOP = method;
  } else {
    TOP = Py_NewRef(entry->value);
  }
  DROP(owner);
  NEXT();
}
INST(LoadMethodOfType)
  if (unlikely(!PyType_Check(TOP))) MISS(LoadMethod);
  goto attribute_of_type;
// A getter raised: __getattr__ is asked after an AttributeError.
attribute_raised:
  continuation = ip->op == static_cast<uint16_t>(Op::kLoadMethod) ? Continuation::kMethodAttribute : Continuation::kAttribute;
  goto callee_raised;

INST(LoadAttrValue) {
  PyObject* owner = TOP;
  if (unlikely(Py_TYPE(owner)->tp_version_tag != LOW(ip->cache[0]))) MISS(LoadAttr);
  PyDictValues* values = cpython::inline_values(owner);
  if (unlikely(values == nullptr)) MISS(LoadAttr);
  PyObject* value = values->values[HIGH(ip->cache[0])];
  if (unlikely(value == nullptr)) MISS(LoadAttr);
  Py_INCREF(value);
  TOP = value;
  DROP(owner);
  NEXT();
}
// The fused forms have a copy of their LoadAttr's cache.
INST(LoadFastLoadAttrValue) {
  PyObject* owner = LOCAL(ip->arg);
  if (unlikely(owner == nullptr || Py_TYPE(owner)->tp_version_tag != LOW(ip->cache[0]))) MISS_FUSED(LoadFast);
  PyDictValues* values = cpython::inline_values(owner);
  if (unlikely(values == nullptr)) MISS_FUSED(LoadFast);
  PyObject* value = values->values[HIGH(ip->cache[0])];
  if (unlikely(value == nullptr)) MISS_FUSED(LoadFast);
  Py_INCREF(value);
  PUSH(value);
  NEXT_AFTER(2);
}
INST(LoadAttrValues) {
  PyObject* owner = TOP;
  PyObject* value = value_of_types(owner, CACHED_NAME);
  if (unlikely(value == nullptr)) MISS(LoadAttr);
  Py_INCREF(value);
  TOP = value;
  DROP(owner);
  NEXT();
}
INST(LoadFastLoadAttrValues) {
  PyObject* owner = LOCAL(ip->arg);
  if (unlikely(owner == nullptr)) goto generic_LoadFast;
  PyObject* value = value_of_types(owner, CACHED_NAME);
  if (unlikely(value == nullptr)) MISS_FUSED(LoadFast);
  Py_INCREF(value);
  PUSH(value);
  NEXT_AFTER(2);
}
INST(LoadAttrSlot) {
  PyObject* owner = TOP;
  if (unlikely(Py_TYPE(owner)->tp_version_tag != LOW(ip->cache[0]))) MISS(LoadAttr);
  PyObject* value = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(owner) + HIGH(ip->cache[0]));
  if (unlikely(value == nullptr)) MISS(LoadAttr);
  Py_INCREF(value);
  TOP = value;
  DROP(owner);
  NEXT();
}
INST(LoadFastLoadAttrSlot) {
  PyObject* owner = LOCAL(ip->arg);
  if (unlikely(owner == nullptr || Py_TYPE(owner)->tp_version_tag != LOW(ip->cache[0]))) MISS_FUSED(LoadFast);
  PyObject* value = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(owner) + HIGH(ip->cache[0]));
  if (unlikely(value == nullptr)) MISS_FUSED(LoadFast);
  Py_INCREF(value);
  PUSH(value);
  NEXT_AFTER(2);
}
INST(LoadAttrHint) {
  PyObject* owner = TOP;
  PyTypeObject* type = Py_TYPE(owner);
  if (unlikely(type->tp_version_tag != LOW(ip->cache[0]))) MISS(LoadAttr);
  PyObject* value = hinted_value(owner, CACHED_NAME, HIGH(ip->cache[0]));
  if (unlikely(value == nullptr)) MISS(LoadAttr);
  Py_INCREF(value);
  TOP = value;
  DROP(owner);
  NEXT();
}
INST(LoadFastLoadAttrHint) {
  PyObject* owner = LOCAL(ip->arg);
  if (unlikely(owner == nullptr || Py_TYPE(owner)->tp_version_tag != LOW(ip->cache[0]))) MISS_FUSED(LoadFast);
  PyObject* value = hinted_value(owner, CACHED_NAME, HIGH(ip->cache[0]));
  if (unlikely(value == nullptr)) MISS_FUSED(LoadFast);
  Py_INCREF(value);
  PUSH(value);
  NEXT_AFTER(2);
}
INST(LoadAttrProperty) {
  PyObject* owner = TOP;
  if (unlikely(Py_TYPE(owner)->tp_version_tag != LOW(ip->cache[0]) || interp->eval_frame != evaluate_frame)) MISS(LoadAttr);
  SYNC();
  detour = reinterpret_cast<PyFunctionObject*>(ip->cache[1]);
  detour_count = 1;
  detour_arguments[0] = Py_NewRef(owner);
  continuation = HIGH(ip->cache[0]) != 0 ? Continuation::kAttribute : Continuation::kReplace;
  goto enter_detour;
}
INST(LoadAttrClassValue) {
  PyObject* owner = TOP;
  PyTypeObject* type = Py_TYPE(owner);
  if (unlikely(type->tp_version_tag != LOW(ip->cache[0]) || !hides_nothing(owner, type, NAME_OF(ip), HIGH(ip->cache[0])))) MISS(LoadAttr);
  TOP = Py_NewRef(reinterpret_cast<PyObject*>(ip->cache[1]));
  DROP(owner);
  NEXT();
}
INST(LoadAttrBound) {
  PyObject* owner = TOP;
  PyTypeObject* type = Py_TYPE(owner);
  if (unlikely(type->tp_version_tag != LOW(ip->cache[0]) || !hides_nothing(owner, type, NAME_OF(ip), HIGH(ip->cache[0])))) MISS(LoadAttr);
  SYNC();
  PyObject* value = bind_descriptor(reinterpret_cast<PyObject*>(ip->cache[1]), owner, type);
  if (unlikely(value == nullptr)) goto attribute_raised;
  TOP = value;
  DROP(owner);
  NEXT();
}
INST(LoadAttrModule) {
  PyObject* owner = TOP;
  PyObject* value = value_of_module(owner, LOW(ip->cache[0]), ip->cache[1]);
  if (unlikely(value == nullptr)) MISS(LoadAttr);
  Py_INCREF(value);
  TOP = value;
  DROP(owner);
  NEXT();
}
INST(LoadAttrGetSet) {
  PyObject* owner = TOP;
  if (unlikely(Py_TYPE(owner)->tp_version_tag != LOW(ip->cache[0]))) MISS(LoadAttr);
  SYNC();
  auto* getset = reinterpret_cast<PyGetSetDef*>(ip->cache[1]);
  PyObject* value = getset->get(owner, getset->closure);
  if (unlikely(value == nullptr)) goto attribute_raised;
  TOP = value;
  DROP(owner);
  NEXT_CHECKED();
}

INST(LoadMethod)
  if (LOOKS()) {
    specialise_load_method(ip, NAME_OF(ip), TOP, find_code(cpython::code_of(frame)));
    DISPATCH();
  }
generic_LoadMethod : {
  SYNC();
  PyObject* owner = TOP;
  PyTypeObject* type = Py_TYPE(owner);
  AttrEntry* entry = find_attr(type, NAME_OF(ip));
  PyObject* value = nullptr;
  if (unlikely(entry == nullptr || entry->access != AttrAccess::kGeneric)) {
    if (entry != nullptr && entry->access == AttrAccess::kGetattribute && CAN_INLINE()) {
      detour = entry->function;
      detour_arguments[0] = Py_NewRef(owner);
      detour_arguments[1] = Py_NewRef(NAME_OF(ip));
      detour_count = 2;
      continuation = Continuation::kMethodAttribute;
      goto enter_detour;
    }
    if (PyType_Check(owner)) goto attribute_of_type;
    goto attribute_through_c;
  }
  switch (entry->kind) {
    case AttrKind::kSlot:
      value = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(owner) + entry->offset);
      if (unlikely(value == nullptr)) goto attribute_missing;
      Py_INCREF(value);
      break;
    case AttrKind::kProperty:
      if (unlikely(!CAN_INLINE())) goto attribute_through_c;
      detour = entry->function;
      detour_count = 1;
      detour_arguments[0] = Py_NewRef(owner);
      continuation = entry->getattr != nullptr ? Continuation::kMethodAttribute : Continuation::kReplaceMethod;
      goto enter_detour;
    case AttrKind::kGetSet:
    case AttrKind::kData:
      goto attribute_through_c;
    default: {
      const AttrKind kind = entry->kind;
      PyObject* descriptor = Py_XNewRef(entry->descriptor);
      value = Py_XNewRef(instance_value(owner, type, entry));
      if (value != nullptr) {
        Py_XDECREF(descriptor);
        break;
      }
      if (unlikely(cpython::exception_is_set(tstate))) {
        Py_XDECREF(descriptor);
        goto attribute_raised;
      }
      if (kind == AttrKind::kInstance) goto attribute_missing;
      value = descriptor;
      if (kind == AttrKind::kMethod) {
        TOP = value;
        PUSH(owner);
        NEXT();
      }
      if (kind == AttrKind::kNonData) {
        value = bind_descriptor(descriptor, owner, type);
        Py_DECREF(descriptor);
        if (unlikely(value == nullptr)) goto attribute_raised;
      }
      break;
    }
  }
  SET_LONE_CALLABLE(value);
  DROP(owner);
  NEXT_CHECKED();
}
INST(LoadMethodNoDict) {
  PyObject* owner = TOP;
  if (unlikely(Py_TYPE(owner)->tp_version_tag != LOW(ip->cache[0]))) MISS(LoadMethod);
  TOP = Py_NewRef(reinterpret_cast<PyObject*>(ip->cache[1]));
  PUSH(owner);
  NEXT();
}
INST(LoadMethodValues) {
  PyObject* owner = TOP;
  PyTypeObject* type = Py_TYPE(owner);
  if (unlikely(type->tp_version_tag != LOW(ip->cache[0]) || cpython::inline_values(owner) == nullptr ||
               cpython::shared_keys(type)->dk_version != HIGH(ip->cache[0]))) {
    MISS(LoadMethod);
  }
  TOP = Py_NewRef(reinterpret_cast<PyObject*>(ip->cache[1]));
  PUSH(owner);
  NEXT();
}
INST(LoadFastLoadMethodValues) {
  PyObject* owner = LOCAL(ip->arg);
  if (unlikely(owner == nullptr)) goto generic_LoadFast;
  PyTypeObject* type = Py_TYPE(owner);
  if (unlikely(type->tp_version_tag != LOW(ip->cache[0]) || cpython::inline_values(owner) == nullptr ||
               cpython::shared_keys(type)->dk_version != HIGH(ip->cache[0]))) {
    MISS_FUSED(LoadFast);
  }
  sp[0] = Py_NewRef(reinterpret_cast<PyObject*>(ip->cache[1]));
  sp[1] = Py_NewRef(owner);
  sp += 2;
  NEXT_AFTER(2);
}
INST(LoadMethodTypes) {
  PyObject* owner = TOP;
  PyObject* method = method_of_types(owner, CACHED_NAME);
  if (unlikely(method == nullptr)) MISS(LoadMethod);
  TOP = Py_NewRef(method);
  PUSH(owner);
  NEXT();
}
INST(LoadMethodProbe) {
  PyObject* owner = TOP;
  PyTypeObject* type = Py_TYPE(owner);
  if (unlikely(type->tp_version_tag != LOW(ip->cache[0]) || !hides_nothing(owner, type, NAME_OF(ip), HIGH(ip->cache[0])))) MISS(LoadMethod);
  TOP = Py_NewRef(reinterpret_cast<PyObject*>(ip->cache[1]));
  PUSH(owner);
  NEXT();
}
INST(LoadMethodInstance) {
  PyObject* owner = TOP;
  if (unlikely(Py_TYPE(owner)->tp_version_tag != LOW(ip->cache[0]))) MISS(LoadMethod);
  PyDictValues* values = cpython::inline_values(owner);
  if (unlikely(values == nullptr)) MISS(LoadMethod);
  PyObject* value = values->values[HIGH(ip->cache[0])];
  if (unlikely(value == nullptr)) MISS(LoadMethod);
  SET_LONE_CALLABLE(Py_NewRef(value));
  DROP(owner);
  NEXT();
}
INST(LoadMethodModule) {
  PyObject* owner = TOP;
  PyObject* value = value_of_module(owner, LOW(ip->cache[0]), ip->cache[1]);
  if (unlikely(value == nullptr)) MISS(LoadMethod);
  SET_LONE_CALLABLE(Py_NewRef(value));
  DROP(owner);
  NEXT();
}

INST(LoadSuperAttr) {
  SYNC();
  PyObject *self = TOP, *type = SECOND, *super = sp[-3];
  bool is_method = false;
  PyObject* value = load_super(super, type, self, NAME_AT(ip->arg >> 2), (ip->arg & 2) != 0, (ip->arg & 1) != 0 ? &is_method : nullptr);
  if (unlikely(value == nullptr)) goto error;
  sp -= 2;
  TOP = value;
  if (is_method) {
    PUSH(self);
  } else {
    if (ip->arg & 1) SET_LONE_CALLABLE(value);
    Py_DECREF(self);
  }
  DROP(type);
  DROP(super);
  NEXT_CHECKED();
}

INST(StoreAttr)
  if (LOOKS()) {
    specialise_store_attr(ip, NAME_OF(ip), TOP);
    DISPATCH();
  }
generic_StoreAttr : {
  SYNC();
  PyObject *owner = TOP, *value = SECOND;
  AttrEntry* entry = find_attr(Py_TYPE(owner), NAME_OF(ip));
  if (entry != nullptr && entry->setattr != nullptr && CAN_INLINE()) {
    detour = entry->setattr;
    detour_arguments[0] = owner;
    detour_arguments[1] = Py_NewRef(NAME_OF(ip));
    detour_arguments[2] = value;
    detour_count = 3;
    sp -= 2;
    continuation = Continuation::kDiscard;
    goto enter_detour;
  }
  sp -= 2;
  const int status = PyObject_SetAttr(owner, NAME_OF(ip), value);
  Py_DECREF(value);
  Py_DECREF(owner);
  if (unlikely(status != 0)) goto error;
  NEXT_CHECKED();
}
#define STORE_INLINE(owner, values_, index)               \
  do {                                                    \
    PyObject* old = (values_)->values[index];             \
    (values_)->values[index] = SECOND;                    \
    sp -= 2;                                              \
    if (old == nullptr) {                                 \
      _PyDictValues_AddToInsertionOrder(values_, index);  \
    } else {                                              \
      DROP(old);                                          \
    }                                                     \
    DROP(owner);                                          \
    NEXT();                                               \
  } while (0)
INST(StoreAttrValue) {
  PyObject* owner = TOP;
  if (unlikely(Py_TYPE(owner)->tp_version_tag != LOW(ip->cache[0]))) MISS(StoreAttr);
  PyDictValues* values = cpython::writable_values(owner);
  if (unlikely(values == nullptr)) MISS(StoreAttr);
  const uint32_t index = HIGH(ip->cache[0]);
  STORE_INLINE(owner, values, index);
}
INST(StoreAttrValues) {
  PyObject* owner = TOP;
  uint32_t index;
  PyDictValues* values = stored_values(owner, CACHED_NAME, &index);
  if (unlikely(values == nullptr)) MISS(StoreAttr);
  STORE_INLINE(owner, values, index);
}
INST(StoreAttrSlot) {
  PyObject* owner = TOP;
  if (unlikely(Py_TYPE(owner)->tp_version_tag != LOW(ip->cache[0]))) MISS(StoreAttr);
  PyObject** slot = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(owner) + HIGH(ip->cache[0]));
  PyObject* old = *slot;
  *slot = SECOND;
  sp -= 2;
  XDROP(old);
  DROP(owner);
  NEXT();
}
INST(StoreAttrDict) {
  PyObject *owner = TOP, *value = SECOND;
  if (unlikely(Py_TYPE(owner)->tp_version_tag != LOW(ip->cache[0]))) MISS(StoreAttr);
  PyObject* dict = cpython::dict_at(owner, HIGH(ip->cache[0]));
  if (unlikely(dict == nullptr || !PyDict_CheckExact(dict))) MISS(StoreAttr);
  SYNC();
  Py_INCREF(dict);
  const int status = _PyDict_SetItem_KnownHash(dict, CACHED_NAME, value, cpython::str_hash(CACHED_NAME));
  Py_DECREF(dict);
  if (unlikely(status != 0)) goto error;
  sp -= 2;
  DROP(value);
  DROP(owner);
  NEXT_CHECKED();
}
INST(DeleteAttr) {
  SYNC();
  PyObject* owner = POP();
  const int status = PyObject_SetAttr(owner, NAME_OF(ip), nullptr);
  Py_DECREF(owner);
  if (unlikely(status != 0)) goto error;
  NEXT();
}

INST(BinarySubscr)
  if (LOOKS()) {
    specialise_subscr(ip, SECOND, TOP);
    DISPATCH();
  }
generic_BinarySubscr : {
  SYNC();
  PyObject *container = SECOND, *key = TOP;
  PyTypeObject* type = Py_TYPE(container);
  if (type->tp_as_mapping != nullptr && type->tp_as_mapping->mp_subscript == cpython::g_slots.subscript && CAN_INLINE()) {
    detour = python_method(type, g_names.n_getitem);
    if (detour != nullptr) {
      detour_arguments[0] = container;
      detour_arguments[1] = key;
      detour_count = 2;
      sp -= 2;
      continuation = Continuation::kPush;
      goto enter_detour;
    }
  }
  PyObject* value = PyObject_GetItem(container, key);
  if (unlikely(value == nullptr)) goto error;
  --sp;
  TOP = value;
  DROP(container);
  DROP(key);
  NEXT_CHECKED();
}
#define SUBSCR_INT(Name, is_exact, items)                                                                                 \
  INST(Name) {                                                                                                            \
    PyObject *container = SECOND, *key = TOP;                                                                             \
    if (unlikely(!is_exact(container) || !PyLong_CheckExact(key) || !cpython::is_compact_int(key))) MISS(BinarySubscr);   \
    Py_ssize_t index = cpython::compact_int(key);                                                                         \
    if (unlikely(!index_within(container, &index))) goto generic_BinarySubscr;                                            \
    PyObject* value = items(container, index);                                                                            \
    Py_INCREF(value);                                                                                                     \
    --sp;                                                                                                                 \
    TOP = value;                                                                                                          \
    DROP(key);                                                                                                            \
    DROP(container);                                                                                                      \
    NEXT();                                                                                                               \
  }
SUBSCR_INT(SubscrListInt, PyList_CheckExact, PyList_GET_ITEM)
SUBSCR_INT(SubscrTupleInt, PyTuple_CheckExact, PyTuple_GET_ITEM)
INST(SubscrStrInt) {
  PyObject *str = SECOND, *key = TOP;
  if (unlikely(!PyUnicode_CheckExact(str) || !PyLong_CheckExact(key) || !cpython::is_compact_int(key))) MISS(BinarySubscr);
  PyObject* value = str_item(str, cpython::compact_int(key));
  if (unlikely(value == nullptr)) goto generic_BinarySubscr;
  --sp;
  TOP = value;
  DROP(key);
  DROP(str);
  NEXT();
}
// Container and key loaded here: no reference is taken.
#define SUBSCR_LOCAL(Name, second)                                                                                    \
  INST(Name) {                                                                                                        \
    PyObject *container = LOCAL(ip->arg), *key = second;                                                              \
    if (unlikely(container == nullptr || key == nullptr)) goto generic_LoadFast;                                      \
    const bool is_list = PyList_CheckExact(container);                                                                \
    if (unlikely((!is_list && !PyTuple_CheckExact(container)) || !PyLong_CheckExact(key) || !cpython::is_compact_int(key))) { \
      MISS_FUSED(LoadFast);                                                                                           \
    }                                                                                                                 \
    Py_ssize_t index = cpython::compact_int(key);                                                                     \
    if (unlikely(!index_within(container, &index))) goto generic_LoadFast;                                            \
    PyObject* value = is_list ? PyList_GET_ITEM(container, index) : PyTuple_GET_ITEM(container, index);               \
    Py_INCREF(value);                                                                                                 \
    PUSH(value);                                                                                                      \
    NEXT_AFTER(3);                                                                                                    \
  }
CHOOSE_LOCALS(SubscrLL, RIGHT_LOCAL, specialise_subscr_locals(ip, left, right, false))
CHOOSE_LOCALS(SubscrLC, RIGHT_CONST, specialise_subscr_locals(ip, left, right, true))
SUBSCR_LOCAL(SubscrLLInt, RIGHT_LOCAL)
SUBSCR_LOCAL(SubscrLCInt, RIGHT_CONST)
INST(SubscrArrayInt) {
  PyObject *array = SECOND, *key = TOP;
  if (unlikely(!is_array(array) || !PyLong_CheckExact(key) || !cpython::is_compact_int(key))) MISS(BinarySubscr);
  Py_ssize_t index = cpython::compact_int(key);
  if (unlikely(!index_within(array, &index))) goto generic_BinarySubscr;
  SYNC();
  PyObject* value = array_item(array, index);
  if (unlikely(value == nullptr)) goto error;
  --sp;
  TOP = value;
  DROP(key);
  DROP(array);
  NEXT();
}
INST(SubscrSlot) {
  PyObject *container = SECOND, *key = TOP;
  if (unlikely(Py_TYPE(container)->tp_version_tag != ip->cache[0])) MISS(BinarySubscr);
  SYNC();
  PyObject* value = reinterpret_cast<binaryfunc>(ip->cache[1])(container, key);
  if (unlikely(value == nullptr)) goto error;
  --sp;
  TOP = value;
  DROP(container);
  DROP(key);
  NEXT_CHECKED();
}
INST(SubscrPython) {
  PyObject* container = SECOND;
  if (unlikely(Py_TYPE(container)->tp_version_tag != ip->cache[0] || interp->eval_frame != evaluate_frame)) MISS(BinarySubscr);
  SYNC();
  detour = reinterpret_cast<PyFunctionObject*>(ip->cache[1]);
  detour_arguments[0] = container;
  detour_arguments[1] = TOP;
  detour_count = 2;
  sp -= 2;
  continuation = Continuation::kPush;
  goto enter_detour;
}
INST(SubscrDict) {
  PyObject *dict = SECOND, *key = TOP;
  if (unlikely(!PyDict_CheckExact(dict))) MISS(BinarySubscr);
  SYNC();
  PyObject* value = PyUnicode_CheckExact(key) ? cpython::dict_get(dict, key, cpython::str_hash(key))
                                              : PyDict_GetItemWithError(dict, key);
  if (unlikely(value == nullptr)) {
    if (!cpython::exception_is_set(tstate)) _PyErr_SetKeyError(key);
    goto error;
  }
  Py_INCREF(value);
  --sp;
  TOP = value;
  DROP(key);
  DROP(dict);
  NEXT();
}
INST(StoreSubscr)
  if (LOOKS()) {
    specialise_store_subscr(ip, SECOND, TOP);
    DISPATCH();
  }
generic_StoreSubscr : {
  SYNC();
  PyObject *key = TOP, *container = SECOND, *value = sp[-3];
  PyTypeObject* type = Py_TYPE(container);
  if (type->tp_as_mapping != nullptr && type->tp_as_mapping->mp_ass_subscript == cpython::g_slots.ass_subscript && CAN_INLINE()) {
    detour = python_method(type, g_names.n_setitem);
    if (detour != nullptr) {
      detour_arguments[0] = container;
      detour_arguments[1] = key;
      detour_arguments[2] = value;
      detour_count = 3;
      sp -= 3;
      continuation = Continuation::kDiscard;
      goto enter_detour;
    }
  }
  sp -= 3;
  const int status = PyObject_SetItem(container, key, value);
  Py_DECREF(value);
  Py_DECREF(container);
  Py_DECREF(key);
  if (unlikely(status != 0)) goto error;
  NEXT_CHECKED();
}
INST(StoreSubscrListInt) {
  PyObject *key = TOP, *list = SECOND;
  if (unlikely(!PyList_CheckExact(list) || !PyLong_CheckExact(key) || !cpython::is_compact_int(key))) MISS(StoreSubscr);
  const Py_ssize_t index = cpython::compact_int(key);
  if (unlikely(static_cast<size_t>(index) >= static_cast<size_t>(PyList_GET_SIZE(list)))) goto generic_StoreSubscr;
  PyObject* old = PyList_GET_ITEM(list, index);
  PyList_SET_ITEM(list, index, sp[-3]);
  sp -= 3;
  DROP(old);
  DROP(key);
  DROP(list);
  NEXT();
}
INST(StoreSubscrDict) {
  PyObject *key = TOP, *dict = SECOND, *value = sp[-3];
  if (unlikely(!PyDict_CheckExact(dict))) MISS(StoreSubscr);
  SYNC();
  sp -= 3;
  const int status = PyDict_SetItem(dict, key, value);
  DROP(value);
  DROP(key);
  DROP(dict);
  if (unlikely(status != 0)) goto error;
  NEXT();
}
INST(StoreSubscrArrayInt) {
  PyObject *key = TOP, *array = SECOND, *value = sp[-3];
  if (unlikely(!is_array(array) || !PyLong_CheckExact(key) || !cpython::is_compact_int(key))) MISS(StoreSubscr);
  Py_ssize_t index = cpython::compact_int(key);
  if (unlikely(!index_within(array, &index))) goto generic_StoreSubscr;
  SYNC();
  sp -= 3;
  const int status = set_array_item(array, index, value);
  DROP(value);
  DROP(array);
  DROP(key);
  if (unlikely(status != 0)) goto error;
  NEXT_CHECKED();
}
INST(StoreSubscrSlot) {
  PyObject *key = TOP, *container = SECOND, *value = sp[-3];
  if (unlikely(Py_TYPE(container)->tp_version_tag != ip->cache[0])) MISS(StoreSubscr);
  SYNC();
  sp -= 3;
  const int status = reinterpret_cast<objobjargproc>(ip->cache[1])(container, key, value);
  DROP(value);
  DROP(container);
  DROP(key);
  if (unlikely(status != 0)) goto error;
  NEXT_CHECKED();
}
INST(DeleteSubscr) {
  SYNC();
  PyObject *key = TOP, *container = SECOND;
  sp -= 2;
  const int status = PyObject_DelItem(container, key);
  Py_DECREF(container);
  Py_DECREF(key);
  if (unlikely(status != 0)) goto error;
  NEXT();
}
