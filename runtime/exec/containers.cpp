// Building, changing and taking apart containers (helpers.h).
#include "runtime/exec/helpers.h"

// 3.13's public headers no longer have it.
extern "C" PyObject* _PyUnicode_JoinArray(PyObject* separator, PyObject* const* items, Py_ssize_t count);

namespace dynvm::runtime::helpers {

PyObject* build_tuple(PyObject** items, int64_t count) {
  PyObject* tuple = PyTuple_New(count);
  if (tuple == nullptr) return nullptr;
  for (int64_t k = 0; k < count; ++k) PyTuple_SET_ITEM(tuple, k, Py_NewRef(items[k]));
  return tuple;
}

PyObject* build_list(PyObject** items, int64_t count) {
  PyObject* list = PyList_New(count);
  if (list == nullptr) return nullptr;
  for (int64_t k = 0; k < count; ++k) PyList_SET_ITEM(list, k, Py_NewRef(items[k]));
  return list;
}

PyObject* build_map(PyObject** pairs, int64_t count) {
  PyObject* dict = _PyDict_NewPresized(count / 2);
  for (int64_t k = 0; dict != nullptr && k < count; k += 2) {
    if (PyDict_SetItem(dict, pairs[k], pairs[k + 1]) < 0) Py_CLEAR(dict);
  }
  return dict;
}

// From name, value pairs. The instance, which is taken over, or null with an exception.
static PyObject* with_attributes(PyObject* instance, PyObject* const* pairs, int64_t count) {
  for (int64_t k = 0; instance != nullptr && k + 1 < count; k += 2)
    if (PyObject_GenericSetAttr(instance, pairs[k], pairs[k + 1]) < 0) Py_CLEAR(instance);
  return instance;
}

PyObject* tensor_instance(PyObject** parts, int64_t count) {
  static PyObject* const name = PyUnicode_InternFromString("__class__");
  if (Py_TYPE(parts[0]) != reinterpret_cast<PyTypeObject*>(parts[1]) && PyObject_GenericSetAttr(parts[0], name, parts[1]) < 0) return nullptr;
  return with_attributes(Py_NewRef(parts[0]), parts + 2, count - 2);
}

PyObject* build_instance(PyObject** parts, int64_t count) {
  static PyObject* const none = PyTuple_New(0);
  return with_attributes(PyBaseObject_Type.tp_new(reinterpret_cast<PyTypeObject*>(parts[0]), none, nullptr), parts + 1, count - 1);
}

PyObject* build_set(PyObject** items, int64_t count) {
  PyObject* set = PySet_New(nullptr);
  for (int64_t k = 0; set != nullptr && k < count; ++k) {
    if (PySet_Add(set, items[k]) < 0) Py_CLEAR(set);
  }
  return set;
}

PyObject* build_string(PyObject** items, int64_t count) {
  PyObject* empty = PyUnicode_New(0, 0);
  if (empty == nullptr) return nullptr;
  PyObject* joined = _PyUnicode_JoinArray(empty, items, count);
  Py_DECREF(empty);
  return joined;
}

PyObject* build_slice(PyObject* start, PyObject* stop, PyObject* step) { return PySlice_New(start, stop, step); }
PyObject* build_cell(PyObject* content) { return PyCell_New(content); }
PyObject* bind_method(PyObject* function, PyObject* self) { return PyMethod_New(function, self); }

PyObject* make_function(PyObject** parts, int64_t count) {
  auto* function = reinterpret_cast<PyFunctionObject*>(PyFunction_New(parts[0], parts[1]));
  if (function == nullptr) return nullptr;
  auto part = [&](int64_t k) { return k < count ? Py_XNewRef(parts[k]) : nullptr; };
  function->func_defaults = part(2);
  function->func_kwdefaults = part(3);
  Py_XSETREF(function->func_annotations, part(4));
  function->func_closure = part(5);
  return reinterpret_cast<PyObject*>(function);
}

SuspendedGenerator suspended_generator = nullptr;

PyObject* generator_at(PyObject** parts, int64_t count) {
  if (suspended_generator == nullptr) {
    PyErr_SetString(PyExc_SystemError, "dynvm: no evaluator makes generators");
    return nullptr;
  }
  return suspended_generator(reinterpret_cast<PyFunctionObject*>(parts[0]), static_cast<int>(PyLong_AsLong(parts[1])), parts + 2,
                             static_cast<int>(count - 2));
}

// Methods are called by interned names: each other string with the same text takes an entry of CPython's method cache, and
// lives as long as that.

PyObject* dict_view(PyObject* dict, int64_t which) {
  static PyObject* const names[] = {PyUnicode_InternFromString("keys"), PyUnicode_InternFromString("values"), PyUnicode_InternFromString("items")};
  if (PyDict_CheckExact(dict)) return PyObject_CallMethodNoArgs(dict, names[which]);
  PyObject* method = PyObject_GetAttr(reinterpret_cast<PyObject*>(&PyODict_Type), names[which]);  // a subclass may have another
  PyObject* view = method != nullptr ? PyObject_CallOneArg(method, dict) : nullptr;
  Py_XDECREF(method);
  return view;
}

PyObject* iter_at(PyObject** parts, int64_t count) {
  PyObject* iterator = PyObject_Vectorcall(parts[0], parts + 2, static_cast<size_t>(count - 2), nullptr);
  for (long left = PyLong_AsLong(parts[1]); iterator != nullptr && left > 0; left--) {
    PyObject* item = Py_TYPE(iterator)->tp_iternext(iterator);
    if (item == nullptr && PyErr_Occurred()) Py_CLEAR(iterator);
    if (item == nullptr) break;
    Py_DECREF(item);
  }
  return iterator;
}

int dict_has_keys(PyObject* dict, PyObject* keys) {
  if (PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return 0;
  Py_ssize_t position = 0, k = 0;
  PyObject* key = nullptr;
  while (PyDict_Next(dict, &position, &key, nullptr)) {
    PyObject* wanted = PyTuple_GET_ITEM(keys, k++);
    if (key != wanted && (!PyUnicode_CheckExact(key) || PyUnicode_Compare(key, wanted) != 0)) return 0;
  }
  return 1;
}

PyObject* dict_get(PyObject* dict, PyObject* key) {
  PyObject* value = PyDict_GetItemWithError(dict, key);  // a str key raises nothing
  return Py_XNewRef(value);
}

int dict_set(PyObject* dict, PyObject* key, PyObject* value) { return PyDict_SetItem(dict, key, value); }
int dict_merge(PyObject* dict, PyObject* other) { return PyDict_Update(dict, other); }
int list_append(PyObject* list, PyObject* item) { return PyList_Append(list, item); }

int list_extend_list(PyObject* list, PyObject* items) {
  return PyList_SetSlice(list, PY_SSIZE_T_MAX, PY_SSIZE_T_MAX, items);
}

PyObject* unpack(PyObject* iterable, int64_t count) {
  if (PyTuple_CheckExact(iterable) && PyTuple_GET_SIZE(iterable) == count) return Py_NewRef(iterable);
  if (PyList_CheckExact(iterable) && PyList_GET_SIZE(iterable) == count) return PyList_AsTuple(iterable);
  PyObject* iterator = PyObject_GetIter(iterable);
  if (iterator == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) && Py_TYPE(iterable)->tp_iter == nullptr && !PySequence_Check(iterable))
      PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(iterable)->tp_name);
    return nullptr;
  }
  PyObject* tuple = PyTuple_New(count);
  for (int64_t k = 0; tuple != nullptr && k < count; ++k) {
    PyObject* item = PyIter_Next(iterator);
    if (item == nullptr) {
      if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %d, got %d)", static_cast<int>(count), static_cast<int>(k));
      Py_CLEAR(tuple);
    } else {
      PyTuple_SET_ITEM(tuple, k, item);
    }
  }
  if (tuple != nullptr) {
    PyObject* item = PyIter_Next(iterator);
    if (item != nullptr) {
      Py_DECREF(item);
      PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", static_cast<int>(count));
      Py_CLEAR(tuple);
    } else if (PyErr_Occurred()) {
      Py_CLEAR(tuple);
    }
  }
  Py_DECREF(iterator);
  return tuple;
}

// Types without a managed dict: the pointer stands inside the object.
PyObject* dict_of(PyObject* object) {
  PyObject** pointer = _PyObject_GetDictPtr(object);
  return pointer == nullptr ? nullptr : *pointer;
}

}  // namespace dynvm::runtime::helpers
