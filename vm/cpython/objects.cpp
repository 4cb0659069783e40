// vm/objects.h in terms of vm/cpython/.
//
// Purpose, inputs, outputs, invariants: objects.h. Tests: tests/exec, tests/traces.
#include "vm/cpython/cpython.h"

#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "vm/objects.h"
#include "vm/vm.h"

namespace dynvm::vm {

const bool kLoneCallableFirst = cpython::kLoneCallable == 0;

uint64_t dict_version(PyObject* dict) { return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag; }

PyObject* referent(PyObject* reference) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* object = nullptr;
  if (PyWeakref_GetRef(reference, &object) < 0) PyErr_Clear();
  Py_XDECREF(object);
  return object;
#else
  PyObject* object = PyWeakref_GET_OBJECT(reference);
  return object == Py_None ? nullptr : object;
#endif
}

uint32_t type_version(PyTypeObject* type) {
  static PyObject* name = PyUnicode_InternFromString("__class__");
  _PyType_Lookup(type, name);  // assigns a tag to the type and its bases
  return cpython::current_version(type);
}

PyObject* own_attribute(PyTypeObject* type, PyObject* name) {
  PyObject* dict = cpython::type_dict(type);
  if (dict == nullptr) return nullptr;
  PyObject* found = PyDict_GetItemWithError(dict, name);
  PyErr_Clear();
  Py_DECREF(dict);
  return found;
}

PyObject* own_attribute(PyTypeObject* type, const char* name) {
  PyObject* text = PyUnicode_InternFromString(name);
  PyObject* found = text != nullptr ? own_attribute(type, text) : nullptr;
  Py_XDECREF(text);
  return found;
}

PyObject* instance_dict(PyObject* object) {
  PyObject** slot = _PyObject_GetDictPtr(object);  // turns inline values into a dict
  if (slot == nullptr) return nullptr;
  if (*slot == nullptr) {
    PyObject* dict = PyObject_GenericGetDict(object, nullptr);
    Py_XDECREF(dict);
    PyErr_Clear();
    slot = _PyObject_GetDictPtr(object);
    if (slot == nullptr) return nullptr;
  }
  return *slot != nullptr && cpython::own_items(*slot) ? *slot : nullptr;
}

PyObject* existing_dict(PyObject* object) {
  PyObject* dict = cpython::instance_dict(object, Py_TYPE(object));
  return dict != nullptr && PyDict_Check(dict) ? dict : nullptr;
}

PyObject* type_dict(PyTypeObject* type) { return cpython::type_dict(type); }

bool may_have_dict(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return type->tp_dictoffset != 0 || (type->tp_flags & Py_TPFLAGS_MANAGED_DICT);
}

Py_ssize_t slot_offset(PyObject* descriptor) {
  if (Py_TYPE(descriptor) != &PyMemberDescr_Type) return -1;
  PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member;
  return member->type == T_OBJECT_EX ? member->offset : -1;
}

Py_ssize_t field_offset(PyObject* descriptor) {
  if (Py_TYPE(descriptor) == &PyMemberDescr_Type) {
    PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member;
    return (member->type == T_OBJECT || member->type == T_OBJECT_EX) && (member->flags & PY_AUDIT_READ) == 0 ? member->offset : -1;
  }
  if (Py_TYPE(descriptor) != &PyGetSetDescr_Type || reinterpret_cast<PyDescrObject*>(descriptor)->d_type != &PyFunction_Type) return -1;
  const char* name = reinterpret_cast<PyGetSetDescrObject*>(descriptor)->d_getset->name;
  if (strcmp(name, "__name__") == 0) return offsetof(PyFunctionObject, func_name);
  if (strcmp(name, "__qualname__") == 0) return offsetof(PyFunctionObject, func_qualname);
  return -1;
}

namespace {
struct SuperObject {  // layout of superobject in Objects/typeobject.c
  PyObject_HEAD
  PyTypeObject* type;
  PyObject* obj;
  PyTypeObject* obj_type;
};
}  // namespace

bool super_parts(PyObject* super, PyTypeObject** type, PyObject** self, PyTypeObject** self_type) {
  if (Py_TYPE(super) != &PySuper_Type) return false;
  auto* parts = reinterpret_cast<SuperObject*>(super);
  if (parts->obj_type == nullptr) return false;
  *type = parts->type;
  *self = parts->obj;
  *self_type = parts->obj_type;
  return true;
}

bool is_c_descriptor(PyObject* descriptor) {
  PyTypeObject* type = Py_TYPE(descriptor);
  return type == &PyGetSetDescr_Type || type == &PyMemberDescr_Type || type == &PyMethodDescr_Type ||
         type == &PyWrapperDescr_Type || type == &PyClassMethodDescr_Type;
}

void raise_stop_iteration(PyObject* value) {
  // A tuple or an exception would be taken apart by PyErr_SetObject.
  PyObject* const error = value == Py_None ? nullptr : PyObject_CallOneArg(PyExc_StopIteration, value);
  Py_DECREF(value);
  if (error != nullptr) PyErr_SetObject(PyExc_StopIteration, error);
  else if (!PyErr_Occurred()) PyErr_SetNone(PyExc_StopIteration);
  Py_XDECREF(error);
}

bool has_handlers(PyCodeObject* code) {
  if (PyBytes_GET_SIZE(code->co_exceptiontable) == 0) return false;
  constexpr int kStopIterationError = 3;  // CALL_INTRINSIC_1's argument
  cpython::HandlerEntry entry;
  for (int unit = 0; unit < Py_SIZE(code); ++unit) {
    if (!cpython::find_handler(code, unit, &entry)) continue;
    const cpython::Decoded first = cpython::decode_unit(code, entry.handler, 0);
    // What 3.12 adds to each generator and each `yield from` passes on what a generator's death raises.
    if (first.info.op != Op::kCleanupThrow && (first.info.op != Op::kCallIntrinsic1 || first.arg != kStopIterationError)) return true;
  }
  return false;
}

bool find_handler(PyCodeObject* code, int unit, Handler* handler) {
  cpython::HandlerEntry entry;
  if (!cpython::find_handler(code, unit, &entry)) return false;
  *handler = Handler{entry.level, entry.handler, entry.push_lasti};
  return true;
}

PyObject* suspended_generator(PyFunctionObject* function, int unit, PyObject* const* slots, int count) {
  if (unit < 0) {
    PyObject* generator = suspended_generator(function, 0, nullptr, 0);
    PyObject* closed = generator != nullptr ? PyObject_CallMethod(generator, "close", nullptr) : nullptr;
    if (closed == nullptr) Py_CLEAR(generator);
    Py_XDECREF(closed);
    return generator;
  }
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  std::vector<PyObject*> memory(static_cast<size_t>(cpython::kFrameWords + code->co_nlocalsplus + code->co_stacksize + 1));
  auto* frame = reinterpret_cast<cpython::Frame*>(memory.data());
  Py_INCREF(function);
  Py_INCREF(code);
  cpython::init_frame(frame, function, code);
  frame->previous = nullptr;
  frame->stacktop = std::max(count, code->co_nlocalsplus);
  cpython::stands_before(frame, cpython::code_units(code) + unit);
  for (int i = 0; i < count; ++i) frame->localsplus[i] = Py_XNewRef(slots[i]);
  PyObject* generator = cpython::make_generator(PyThreadState_Get(), frame);
  if (generator == nullptr) {
    for (int i = 0; i < count; ++i) Py_XDECREF(slots[i]);
    Py_DECREF(function);
    Py_DECREF(code);
    return nullptr;
  }
  cpython::mark_position(reinterpret_cast<PyGenObject*>(generator));
  return generator;
}

void set_generator_locals(PyObject* generator, PyObject* const* slots) {
  cpython::Frame* frame = cpython::frame_of(reinterpret_cast<PyGenObject*>(generator));
  for (int i = 0; i < cpython::code_of(frame)->co_nlocalsplus; ++i) Py_XSETREF(frame->localsplus[i], Py_XNewRef(slots[i]));
}

const volatile int* eval_breaker(PyThreadState* tstate) { return cpython::eval_breaker_word(tstate); }

int handle_pending(PyThreadState* tstate) { return cpython::handle_pending(tstate) ? 0 : -1; }

bool is_collecting() { return PyThreadState_Get()->interp->gc.collecting != 0; }

Py_ssize_t full_collections() { return PyThreadState_Get()->interp->gc.generation_stats[NUM_GENERATIONS - 1].collections; }

}  // namespace dynvm::vm
