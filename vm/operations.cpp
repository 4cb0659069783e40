// Names, imports, unpacking, formatting, asynchronous protocols; see operations.h.
//
// Purpose, inputs, outputs, invariants, tests: operations.h.
#include "vm/operations.h"

#include "vm/attr_cache.h"
#include "vm/operands.h"

namespace dynvm::vm {

namespace {
PyObject* power(PyObject* left, PyObject* right) { return PyNumber_Power(left, right, Py_None); }
PyObject* inplace_power(PyObject* left, PyObject* right) { return PyNumber_InPlacePower(left, right, Py_None); }
}  // namespace

const binaryfunc kBinaryOperators[26] = {
    PyNumber_Add, PyNumber_And, PyNumber_FloorDivide, PyNumber_Lshift, PyNumber_MatrixMultiply, PyNumber_Multiply,
    PyNumber_Remainder, PyNumber_Or, power, PyNumber_Rshift, PyNumber_Subtract, PyNumber_TrueDivide, PyNumber_Xor,
    PyNumber_InPlaceAdd, PyNumber_InPlaceAnd, PyNumber_InPlaceFloorDivide, PyNumber_InPlaceLshift,
    PyNumber_InPlaceMatrixMultiply, PyNumber_InPlaceMultiply, PyNumber_InPlaceRemainder, PyNumber_InPlaceOr, inplace_power,
    PyNumber_InPlaceRshift, PyNumber_InPlaceSubtract, PyNumber_InPlaceTrueDivide, PyNumber_InPlaceXor};

bool unpack_iterable(PyObject* sequence, int before, int after, PyObject** top) {
  PyObject* iterator = PyObject_GetIter(sequence);
  if (iterator == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) && Py_TYPE(sequence)->tp_iter == nullptr && !PySequence_Check(sequence)) {
      PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(sequence)->tp_name);
    }
    return false;
  }
  PyObject** at = top;
  const auto fail = [&] {
    while (at < top) Py_DECREF(*at++);
    Py_DECREF(iterator);
    return false;
  };
  for (int i = 0; i < before; ++i) {
    PyObject* item = PyIter_Next(iterator);
    if (item == nullptr) {
      if (!PyErr_Occurred()) {
        if (after < 0) {
          PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %d, got %d)", before, i);
        } else {
          PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected at least %d, got %d)", before + after, i);
        }
      }
      return fail();
    }
    *--at = item;
  }
  if (after < 0) {
    PyObject* extra = PyIter_Next(iterator);
    if (extra == nullptr) {
      if (PyErr_Occurred()) return fail();
      Py_DECREF(iterator);
      return true;
    }
    Py_DECREF(extra);
    PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", before);
    return fail();
  }
  PyObject* rest = PySequence_List(iterator);
  if (rest == nullptr) return fail();
  *--at = rest;
  const Py_ssize_t length = PyList_GET_SIZE(rest);
  if (length < after) {
    PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected at least %d, got %zd)", before + after,
                 before + length);
    return fail();
  }
  for (int i = after; i > 0; --i) *--at = PyList_GET_ITEM(rest, length - i);
  Py_SET_SIZE(rest, length - after);
  Py_DECREF(iterator);
  return true;
}

PyObject* dict_from_items(PyObject* const* keys, Py_ssize_t key_step, PyObject* const* values, Py_ssize_t value_step,
                          Py_ssize_t count) {
  PyObject* dict = count > 5 ? _PyDict_NewPresized(count) : PyDict_New();
  if (dict == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (PyDict_SetItem(dict, keys[i * key_step], values[i * value_step]) < 0) {
      Py_DECREF(dict);
      return nullptr;
    }
  }
  return dict;
}

namespace {

// For suggestions.
void name_the_error(PyObject* name) {
  PyObject* value = cpython::take_exception(PyThreadState_Get());
  if (PyErr_GivenExceptionMatches(value, PyExc_NameError)) {
    auto* error = reinterpret_cast<PyNameErrorObject*>(value);
    if (error->name == nullptr) error->name = Py_NewRef(name);
  }
  cpython::set_exception(value);
}

}  // namespace

void raise_name_error(PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return;
  PyErr_Format(PyExc_NameError, "name '%.200s' is not defined", text);
  name_the_error(name);
}

void raise_unbound(PyCodeObject* code, int local) {
  PyObject* name = PyTuple_GET_ITEM(code->co_localsplusnames, local);
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return;
  if (local < code->co_nlocalsplus - code->co_nfreevars) {
    PyErr_Format(PyExc_UnboundLocalError, "cannot access local variable '%s' where it is not associated with a value", text);
    return;
  }
  PyErr_Format(PyExc_NameError,
               "cannot access free variable '%s' where it is not associated with a value in enclosing scope", text);
  name_the_error(name);
}

PyObject* load_from_mapping(PyObject* mapping, PyObject* name) {
  if (PyDict_CheckExact(mapping)) return Py_XNewRef(PyDict_GetItemWithError(mapping, name));
  PyObject* value = PyObject_GetItem(mapping, name);
  if (value == nullptr && PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Clear();
  return value;
}

PyObject* load_global(cpython::Frame* frame, PyObject* name) {
  PyObject* value = load_from_mapping(frame->f_globals, name);
  if (value == nullptr && !PyErr_Occurred()) value = load_from_mapping(frame->f_builtins, name);
  if (value == nullptr && !PyErr_Occurred()) raise_name_error(name);
  return value;
}

PyObject* load_name(cpython::Frame* frame, PyObject* name) {
  if (frame->f_locals == nullptr) {
    PyErr_Format(PyExc_SystemError, "no locals when loading %R", name);
    return nullptr;
  }
  PyObject* value = load_from_mapping(frame->f_locals, name);
  if (value != nullptr || PyErr_Occurred()) return value;
  value = Py_XNewRef(PyDict_GetItemWithError(frame->f_globals, name));
  if (value != nullptr || PyErr_Occurred()) return value;
  value = load_from_mapping(frame->f_builtins, name);
  if (value == nullptr && !PyErr_Occurred()) raise_name_error(name);
  return value;
}

PyObject* load_classderef(cpython::Frame* frame, int local) {
  PyObject* name = PyTuple_GET_ITEM(cpython::code_of(frame)->co_localsplusnames, local);
  PyObject* value = load_from_mapping(frame->f_locals, name);
  if (value != nullptr || PyErr_Occurred()) return value;
  value = PyCell_GET(frame->localsplus[local]);
  if (value == nullptr) {
    raise_unbound(cpython::code_of(frame), local);
    return nullptr;
  }
  return Py_NewRef(value);
}

PyObject* load_build_class(cpython::Frame* frame) {
  PyObject* value = load_from_mapping(frame->f_builtins, g_names.n_build_class);
  if (value == nullptr && !PyErr_Occurred()) PyErr_SetString(PyExc_NameError, "__build_class__ not found");
  return value;
}

bool setup_annotations(cpython::Frame* frame) {
  PyObject* locals = frame->f_locals;
  if (locals == nullptr) {
    PyErr_SetString(PyExc_SystemError, "no locals found when setting up annotations");
    return false;
  }
  PyObject* found = load_from_mapping(locals, g_names.n_annotations);
  if (found != nullptr) {
    Py_DECREF(found);
    return true;
  }
  if (PyErr_Occurred()) return false;
  PyObject* dict = PyDict_New();
  if (dict == nullptr) return false;
  const int status = PyDict_CheckExact(locals) ? PyDict_SetItem(locals, g_names.n_annotations, dict)
                                               : PyObject_SetItem(locals, g_names.n_annotations, dict);
  Py_DECREF(dict);
  return status == 0;
}

static void (*import_hook)(PyObject*) = nullptr;

void set_import_hook(void (*hook)(PyObject* name)) { import_hook = hook; }

void hide_frames_of(PyObject* filename) { cpython::hide_frames_of(filename); }

PyObject* import_name(PyThreadState* tstate, cpython::Frame* frame, PyObject* name, PyObject* fromlist, PyObject* level) {
  PyObject* import = cpython::imports_from_any_builtins() ? load_from_mapping(frame->f_builtins, g_names.n_import)
                                                     : Py_XNewRef(PyDict_GetItemWithError(frame->f_builtins, g_names.n_import));
  if (import == nullptr) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "__import__ not found");
    return nullptr;
  }
  PyObject* locals = frame->f_locals != nullptr ? frame->f_locals : Py_None;
  if (import == cpython::import_function(tstate)) {
    Py_DECREF(import);
    const int number = cpython::int_argument(level);
    if (number == -1 && PyErr_Occurred()) return nullptr;
    PyObject* module = PyImport_ImportModuleLevelObject(name, frame->f_globals, locals, fromlist, number);
    if (module != nullptr && import_hook != nullptr) import_hook(name);
    return module;
  }
  PyObject* arguments[] = {name, frame->f_globals, locals, fromlist, level};
  PyObject* result = PyObject_Vectorcall(import, arguments, 5, nullptr);
  Py_DECREF(import);
  if (result != nullptr && import_hook != nullptr) import_hook(name);
  return result;
}

PyObject* import_from(PyObject* module, PyObject* name) {
  PyObject* value = nullptr;
  if (cpython::optional_attribute(module, name, &value) != 0) return value;
  // A circular import may have left the submodule in sys.modules only.
  PyObject* package = PyObject_GetAttr(module, g_names.n_name);
  if (package != nullptr && !PyUnicode_Check(package)) Py_CLEAR(package);
  if (package != nullptr) {
    PyObject* full = PyUnicode_FromFormat("%U.%U", package, name);
    if (full == nullptr) {
      Py_DECREF(package);
      return nullptr;
    }
    value = PyImport_GetModule(full);
    Py_DECREF(full);
    if (value != nullptr || PyErr_Occurred()) {
      Py_DECREF(package);
      return value;
    }
  }
  Py_XDECREF(package);
  PyErr_Clear();
  cpython::raise_import_from(module, name);
  return nullptr;
}

namespace {

// The names that `from module import *` takes; `*public_only` when they come from its dict.
PyObject* star_names(PyObject* module, bool* public_only) {
  PyObject* names = nullptr;
  if (cpython::optional_attribute(module, g_names.n_all, &names) < 0) return nullptr;
  *public_only = names == nullptr;
  if (names != nullptr) return names;
  PyObject* dict = nullptr;
  if (cpython::optional_attribute(module, g_names.n_dict, &dict) < 0) return nullptr;
  if (dict == nullptr) {
    PyErr_SetString(PyExc_ImportError, "from-import-* object has no __dict__ and no __all__");
    return nullptr;
  }
  names = PyMapping_Keys(dict);
  Py_DECREF(dict);
  return names;
}

bool star_item(PyObject* module, PyObject* locals, PyObject* name, bool public_only) {
  if (!PyUnicode_Check(name)) {
    PyObject* module_name = PyObject_GetAttr(module, g_names.n_name);
    if (module_name == nullptr) return false;
    if (!PyUnicode_Check(module_name)) {
      PyErr_Format(PyExc_TypeError, "module __name__ must be a string, not %.100s", Py_TYPE(module_name)->tp_name);
    } else {
      PyErr_Format(PyExc_TypeError, "%s in %U.%s must be str, not %.100s", public_only ? "Key" : "Item", module_name,
                   public_only ? "__dict__" : "__all__", Py_TYPE(name)->tp_name);
    }
    Py_DECREF(module_name);
    return false;
  }
  if (public_only) {
    if (PyUnicode_GET_LENGTH(name) > 0 && PyUnicode_READ_CHAR(name, 0) == '_') return true;
  }
  PyObject* value = PyObject_GetAttr(module, name);
  if (value == nullptr) return false;
  const int status = PyDict_CheckExact(locals) ? PyDict_SetItem(locals, name, value) : PyObject_SetItem(locals, name, value);
  Py_DECREF(value);
  return status == 0;
}

}  // namespace

bool import_star(cpython::Frame* frame, PyObject* module) {
  // The compiler allows this in modules and exec'd code only: there are no fast locals to bring up to date.
  PyObject* locals = frame->f_locals;
  if (locals == nullptr) {
    PyErr_SetString(PyExc_SystemError, "no locals found during 'import *'");
    return false;
  }
  bool public_only = false;
  PyObject* names = star_names(module, &public_only);
  if (names == nullptr) return false;
  bool good = true;
  for (Py_ssize_t i = 0; good; ++i) {
    PyObject* name = PySequence_GetItem(names, i);
    if (name == nullptr) {
      if (PyErr_ExceptionMatches(PyExc_IndexError)) {
        PyErr_Clear();
      } else {
        good = false;
      }
      break;
    }
    good = star_item(module, locals, name, public_only);
    Py_DECREF(name);
  }
  Py_DECREF(names);
  return good;
}

PyObject* convert_value(PyObject* value, int conversion) {
  PyObject* converted = conversion == 1 ? PyObject_Str(value) : conversion == 2 ? PyObject_Repr(value) : PyObject_ASCII(value);
  Py_DECREF(value);
  return converted;
}

Py_ssize_t as_length(PyObject* given) {
  PyObject* length = PyNumber_Index(given);
  if (length == nullptr) return -1;
  const bool negative = cpython::int_is_negative(length);
  if (negative) PyErr_SetString(PyExc_ValueError, "__len__() should return >= 0");
  const Py_ssize_t number = negative ? -1 : PyNumber_AsSsize_t(length, PyExc_OverflowError);
  Py_DECREF(length);
  return number;
}

PyObject* format_value(PyObject* value, int conversion, PyObject* spec) {
  if (conversion != 0) {
    value = convert_value(value, conversion);
    if (value == nullptr) {
      Py_XDECREF(spec);
      return nullptr;
    }
  }
  if (PyUnicode_CheckExact(value) && spec == nullptr) return value;
  PyObject* result = PyObject_Format(value, spec);
  Py_DECREF(value);
  Py_XDECREF(spec);
  return result;
}

bool print_expression(PyThreadState*, PyObject* value) {
  PyObject* hook = PySys_GetObject("displayhook");
  if (hook == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "lost sys.displayhook");
    return false;
  }
  Py_INCREF(hook);
  PyObject* result = PyObject_CallOneArg(hook, value);
  Py_DECREF(hook);
  Py_XDECREF(result);
  return result != nullptr;
}

PyObject* str_item(PyObject* str, Py_ssize_t index) {
  const Py_ssize_t length = PyUnicode_GET_LENGTH(str);
  if (index < 0) index += length;
  if (static_cast<size_t>(index) >= static_cast<size_t>(length)) return nullptr;
  PyObject* item = PyUnicode_FromOrdinal(static_cast<int>(PyUnicode_READ_CHAR(str, index)));
  if (item == nullptr) PyErr_Clear();
  return item;
}

namespace {

// The same for an exact list or tuple. Strings and numbers are compared here; None, and for a string a number, are not equal to it.
int search_quietly(PyObject* sequence, PyObject* item) {
  PyObject* const* items = PySequence_Fast_ITEMS(sequence);
  const bool is_str = PyUnicode_CheckExact(item);
  long value = 0, other;
  if (is_str ? !PyUnicode_IS_READY(item) : !PyLong_CheckExact(item) || !cpython::short_int(item, &value)) return -1;
  for (Py_ssize_t i = 0; i < Py_SIZE(sequence); ++i) {
    PyObject* each = items[i];
    if (each == item) return 1;
    if (is_str && PyUnicode_CheckExact(each) && PyUnicode_IS_READY(each)) {
      if (equal_strings(each, item)) return 1;
    } else if (PyLong_CheckExact(each)) {
      if (!is_str && cpython::short_int(each, &other) && other == value) return 1;
    } else if (each != Py_None && !(is_str && PyFloat_CheckExact(each))) {
      return -1;
    }
  }
  return 0;
}

}  // namespace

int is_instance_quietly(PyObject* object, PyObject* cls) {
  PyTypeObject* type = Py_TYPE(object);
  if (reinterpret_cast<PyObject*>(type) == cls) return 1;
  if (PyTuple_CheckExact(cls)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cls); ++i) {
      PyObject* each = PyTuple_GET_ITEM(cls, i);
      const int found = PyTuple_Check(each) ? -1 : is_instance_quietly(object, each);
      if (found != 0) return found;
    }
    return 0;
  }
  if (!PyType_CheckExact(cls)) return -1;
  if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(cls)) != 0) return 1;
  // The object may say that its class is another one.
  static PyObject* const said = _PyType_Lookup(&PyBaseObject_Type, g_names.n_class);
  const AttrEntry* entry = find_attr(type, g_names.n_class);
  return entry != nullptr && entry->access == AttrAccess::kGeneric && entry->descriptor == said ? 0 : -1;
}

int items_contain(PyObject* sequence, PyObject* item) {
  const int found = search_quietly(sequence, item);
  return found >= 0 ? found : Py_TYPE(sequence)->tp_as_sequence->sq_contains(sequence, item);
}

int contains_quietly(PyObject* container, PyObject* item) {
  if (PyList_CheckExact(container) || PyTuple_CheckExact(container)) return search_quietly(container, item);
  if (!PyUnicode_CheckExact(item)) return -1;
  if (PyUnicode_CheckExact(container)) {
    const int found = PyUnicode_Contains(container, item);
    if (found < 0) PyErr_Clear();
    return found;
  }
  const Py_hash_t hash = cpython::str_hash(item);
  if (PyAnySet_CheckExact(container)) return cpython::set_has_str(container, item, hash);
  return is_quiet_lookup(container, item) ? cpython::dict_get(container, item, hash) != nullptr : -1;
}

void fix_extend_error(PyObject* iterable) {
  if (PyErr_ExceptionMatches(PyExc_TypeError) && Py_TYPE(iterable)->tp_iter == nullptr && !PySequence_Check(iterable)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s", Py_TYPE(iterable)->tp_name);
  }
}

void fix_update_error(PyObject* update) {
  if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not a mapping", Py_TYPE(update)->tp_name);
  }
}

void fix_merge_error(PyObject* function, PyObject* kwargs) {
  if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Clear();
    PyObject* text = _PyObject_FunctionStr(function);
    if (text != nullptr) {
      PyErr_Format(PyExc_TypeError, "%U argument after ** must be a mapping, not %.200s", text, Py_TYPE(kwargs)->tp_name);
      Py_DECREF(text);
    }
  } else if (PyErr_ExceptionMatches(PyExc_KeyError)) {
    PyObject* key = cpython::take_duplicate_key();
    PyObject* text = key != nullptr ? _PyObject_FunctionStr(function) : nullptr;
    if (text != nullptr) PyErr_Format(PyExc_TypeError, "%U got multiple values for keyword argument '%S'", text, key);
    Py_XDECREF(text);
    Py_XDECREF(key);
  }
}

bool check_star_arguments(PyObject* function, PyObject* arguments) {
  if (Py_TYPE(arguments)->tp_iter != nullptr || PySequence_Check(arguments)) return true;
  PyErr_Clear();
  PyObject* text = _PyObject_FunctionStr(function);
  if (text != nullptr) {
    PyErr_Format(PyExc_TypeError, "%U argument after * must be an iterable, not %.200s", text, Py_TYPE(arguments)->tp_name);
    Py_DECREF(text);
  }
  return false;
}

namespace {

// The type whose order of classes super(type, self) follows (borrowed), nullptr where super itself must find out.
PyTypeObject* super_start(PyTypeObject* type, PyObject* self) {
  if (PyType_Check(self) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(self), type)) return reinterpret_cast<PyTypeObject*>(self);
  return PyType_IsSubtype(Py_TYPE(self), type) ? Py_TYPE(self) : nullptr;
}

// What the classes behind `type` have; new reference, or nullptr, also with an exception.
PyObject* find_behind(PyTypeObject* start, PyTypeObject* type, PyObject* name) {
  PyObject* order = start->tp_mro;
  if (order == nullptr) return nullptr;
  Py_INCREF(order);
  const Py_ssize_t count = PyTuple_GET_SIZE(order);
  Py_ssize_t i = 0;
  while (i < count && PyTuple_GET_ITEM(order, i) != reinterpret_cast<PyObject*>(type)) ++i;
  PyObject* found = nullptr;
  for (++i; i < count && found == nullptr && !PyErr_Occurred(); ++i) {
    PyObject* dict = cpython::type_dict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i)));
    if (dict == nullptr) continue;
    found = Py_XNewRef(PyDict_GetItemWithError(dict, name));
    Py_DECREF(dict);
  }
  Py_DECREF(order);
  return found;
}

}  // namespace

PyObject* load_super(PyObject* super, PyObject* type, PyObject* self, PyObject* name, bool with_arguments, bool* method) {
  if (super == reinterpret_cast<PyObject*>(&PySuper_Type) && PyType_Check(type) && name != g_names.n_class) {
    PyTypeObject* start = super_start(reinterpret_cast<PyTypeObject*>(type), self);
    PyObject* found = start != nullptr ? find_behind(start, reinterpret_cast<PyTypeObject*>(type), name) : nullptr;
    if (found != nullptr) {
      if (method != nullptr && Py_TYPE(self)->tp_getattro == PyObject_GenericGetAttr &&
          PyType_HasFeature(Py_TYPE(found), Py_TPFLAGS_METHOD_DESCRIPTOR)) {
        *method = true;
        return found;
      }
      const descrgetfunc get = Py_TYPE(found)->tp_descr_get;
      if (get == nullptr) return found;
      PyObject* bound = get(found, self == reinterpret_cast<PyObject*>(start) ? nullptr : self, reinterpret_cast<PyObject*>(start));
      Py_DECREF(found);
      return bound;
    }
    if (PyErr_Occurred()) return nullptr;
  }
  PyObject* arguments[] = {type, self};
  PyObject* object = PyObject_Vectorcall(super, arguments, with_arguments ? 2 : 0, nullptr);
  if (object == nullptr) return nullptr;
  PyObject* value = PyObject_GetAttr(object, name);
  Py_DECREF(object);
  return value;
}

PyObject* get_aiter(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_as_async == nullptr || type->tp_as_async->am_aiter == nullptr) {
    PyErr_Format(PyExc_TypeError, "'async for' requires an object with __aiter__ method, got %.100s", type->tp_name);
    return nullptr;
  }
  PyObject* iterator = type->tp_as_async->am_aiter(object);
  if (iterator == nullptr) return nullptr;
  if (Py_TYPE(iterator)->tp_as_async == nullptr || Py_TYPE(iterator)->tp_as_async->am_anext == nullptr) {
    PyErr_Format(PyExc_TypeError, "'async for' received an object from __aiter__ that does not implement __anext__: %.100s",
                 Py_TYPE(iterator)->tp_name);
    Py_DECREF(iterator);
    return nullptr;
  }
  return iterator;
}

PyObject* get_anext(PyObject* iterator) {
  PyTypeObject* type = Py_TYPE(iterator);
  if (PyAsyncGen_CheckExact(iterator)) return type->tp_as_async->am_anext(iterator);
  if (type->tp_as_async == nullptr || type->tp_as_async->am_anext == nullptr) {
    PyErr_Format(PyExc_TypeError, "'async for' requires an iterator with __anext__ method, got %.100s", type->tp_name);
    return nullptr;
  }
  PyObject* item = type->tp_as_async->am_anext(iterator);
  if (item == nullptr) return nullptr;
  PyObject* awaitable = cpython::awaitable_iter(item);
  if (awaitable == nullptr) {
    _PyErr_FormatFromCause(PyExc_TypeError, "'async for' received an invalid object from __anext__: %.100s",
                           Py_TYPE(item)->tp_name);
  }
  Py_DECREF(item);
  return awaitable;
}

PyObject* get_awaitable(PyObject* object, int where) {
  PyObject* iterator = cpython::awaitable_iter(object);
  if (iterator == nullptr) {
    PyTypeObject* type = Py_TYPE(object);
    // 1: from __aenter__, 2: from __aexit__
    if (where != 0 && (type->tp_as_async == nullptr || type->tp_as_async->am_await == nullptr)) {
      PyErr_Format(PyExc_TypeError,
                   where == 1 ? "'async with' received an object from __aenter__ that does not implement __await__: %.100s"
                              : "'async with' received an object from __aexit__ that does not implement __await__: %.100s",
                   type->tp_name);
    }
    return nullptr;
  }
  if (PyCoro_CheckExact(iterator)) {
    if (cpython::delegates(reinterpret_cast<PyGenObject*>(iterator))) {
      Py_CLEAR(iterator);
      PyErr_SetString(PyExc_RuntimeError, "coroutine is being awaited already");
    }
  }
  return iterator;
}

}  // namespace dynvm::vm
