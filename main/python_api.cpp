// What the package `dynvm` calls: looking at traces, events, zones, reset.
//
// Purpose: C functions for ctypes (python/dynvm), and the module `_dynvm` with the functions that compiled code calls: those must be C functions that
//   traces know (tracer/known_calls.def).
// Invariants: the GIL is held. Texts live until the next call of the same function. A function that returns -1 or null has set a Python exception.
//   Python code for events runs in the main thread, where no trace runs and nothing is recorded in it; nothing that it does is traced.
// Tests: tests/inspect/.
#include <Python.h>

#include <atomic>
#include <string>

#include "runtime/base/events.h"
#include "runtime/base/report.h"
#include "runtime/base/zones.h"
#ifdef DYNVM_HAS_TRACER
#include "tracer/compile.h"
#include "tracer/inspect.h"
#include "tracer/manager.h"
#include "runtime/exec/own_work.h"
#endif

#define DYNVM_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

namespace base = dynvm::base;

PyObject* listener = nullptr;         // called with the JSON text of events
std::atomic<bool> scheduled = false;  // a pending call that delivers

// Calls the listener with all events that there are. Exceptions are its own matter: it handles those of callbacks.
void deliver_now() {
  if (listener == nullptr || !base::has_events()) return;
  {
#ifdef DYNVM_HAS_TRACER
    const dynvm::runtime::OwnWork work;
#endif
    const std::string text = base::take_events();
    PyObject* argument = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
    PyObject* called = Py_NewRef(listener);  // a callback may ask for other events
    PyObject* result = argument != nullptr ? PyObject_CallOneArg(called, argument) : nullptr;
    if (result == nullptr) PyErr_WriteUnraisable(called);
    Py_XDECREF(result);
    Py_DECREF(called);
    Py_XDECREF(argument);
  }
#ifdef DYNVM_HAS_TRACER
  dynvm::tracer::settle();  // what came meanwhile
#endif
}

int deliver_pending(void*) {
  scheduled = false;
#ifdef DYNVM_HAS_TRACER
  if (!dynvm::tracer::is_quiet()) return 0;  // it asks again when that is over
#endif
  deliver_now();
  return 0;
}

void wake() {
  if (!scheduled.exchange(true) && Py_AddPendingCall(deliver_pending, nullptr) != 0) scheduled = false;
}

PyObject* zone_number(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  return text == nullptr ? nullptr : PyLong_FromLong(base::zone_number(text));
}

PyObject* zone_enter(PyObject*, PyObject* number) {
  const long value = PyLong_AsLong(number);
  if (value == -1 && PyErr_Occurred() != nullptr) return nullptr;
  base::enter_zone(static_cast<int>(value));
  Py_RETURN_NONE;
}

PyObject* zone_leave(PyObject*, PyObject* number) {
  const long value = PyLong_AsLong(number);
  if (value == -1 && PyErr_Occurred() != nullptr) return nullptr;
  base::leave_zone(static_cast<int>(value));
  Py_RETURN_NONE;
}

// An exception that a callback has raised goes to sys.unraisablehook.
PyObject* unraisable(PyObject*, PyObject* arguments) {
  PyObject *error = nullptr, *callback = nullptr;
  if (!PyArg_ParseTuple(arguments, "OO:unraisable", &error, &callback)) return nullptr;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  PyErr_WriteUnraisable(callback);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"zone_number", zone_number, METH_O, "zone_number(name): the number of the zone of this name."},
                           {"zone_enter", zone_enter, METH_O, "zone_enter(number): this thread is in it from now on."},
                           {"zone_leave", zone_leave, METH_O, "zone_leave(number): no longer."},
                           {"unraisable", unraisable, METH_VARARGS, "unraisable(error, callback): tells of what the callback has raised."},
                           {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_dynvm", "What compiled code calls of dynvm.", -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

// The module `_dynvm`, new or the one that there is: a new reference.
DYNVM_EXPORT PyObject* dynvm_module() {
  static PyObject* module = nullptr;
  if (module == nullptr) module = PyModule_Create(&definition);
  Py_XINCREF(module);
  return module;
}

// All traces as JSON (tracer/inspect.h).
DYNVM_EXPORT const char* dynvm_traces() {
  static std::string text;
#ifdef DYNVM_HAS_TRACER
  text = dynvm::tracer::traces_json();
#else
  text = "[]";
#endif
  return text.c_str();
}

// Something of one trace; null, without an exception, where there is no such trace.
DYNVM_EXPORT const char* dynvm_trace(int id, const char* what) {
  static std::string text;
#ifdef DYNVM_HAS_TRACER
  if (dynvm::tracer::trace_text(id, what, &text)) return text.c_str();
#endif
  return nullptr;
}

// Traces that are compiled from now on keep what was recorded.
DYNVM_EXPORT void dynvm_keep_recorded(int keep) {
#ifdef DYNVM_HAS_TRACER
  dynvm::tracer::keep_recorded(keep != 0);
#endif
}

// Operations and residual calls are counted from now on, as with --report.
DYNVM_EXPORT void dynvm_count(int count) { base::want_counts(count != 0); }

DYNVM_EXPORT void dynvm_reset() {
#ifdef DYNVM_HAS_TRACER
  dynvm::tracer::reset();
#endif
}

// Events of these categories, separated by commas, are given to `callable` as JSON texts from now on. Returns 0, or -1: a category that is not.
DYNVM_EXPORT int dynvm_observe(const char* names, PyObject* callable) {
  if (base::Status status = base::observe(names); !status) {
    PyErr_SetString(PyExc_ValueError, status.message().c_str());
    return -1;
  }
  Py_INCREF(callable);
  Py_XSETREF(listener, callable);
  base::on_publish(wake);
  return 0;
}

// Delivers what there is, if that may be now.
DYNVM_EXPORT void dynvm_deliver() {
#ifdef DYNVM_HAS_TRACER
  if (!dynvm::tracer::is_quiet()) return;
#endif
  deliver_now();
}
