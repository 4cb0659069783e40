// See collector.h.
#include "tracer/collector.h"

#include <Python.h>

#include <utility>

#include "codegen/cuda/graph.h"
#include "codegen/cuda/kernel.h"
#include "tracer/learn.h"
#include "tracer/manager.h"
#include "vm/objects.h"

namespace dynvm::tracer {
namespace {

constexpr long kFull = 2;  // the oldest generation

PyCFunction collect = nullptr;
Py_ssize_t noticed = 0;

bool is_full(PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  if (count + (names != nullptr ? PyTuple_GET_SIZE(names) : 0) == 0) return true;
  int overflow = 0;
  return PyLong_CheckExact(arguments[0]) && PyLong_AsLongAndOverflow(arguments[0], &overflow) == kFull;  // anything else is cheap, or an error
}

PyObject* forget_and_collect(PyObject* module, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  const auto original = reinterpret_cast<_PyCFunctionFastWithKeywords>(reinterpret_cast<void (*)()>(collect));
  if (!is_full(arguments, count, names) || !is_quiet()) return original(module, arguments, count, names);
  forget_the_dead();
  settle();
  PyObject* const result = original(module, arguments, count, names);
  noticed = vm::full_collections();
  return result;
}

// Is work on the current GPU's stream being captured, so that nothing may go that a device knows of?
bool is_capturing(bridge::Bridge& bridge) {
  if (!codegen::cuda::missing().empty()) return false;
  const int device = bridge.cuda_device();
  return device >= 0 && codegen::cuda::is_capturing(device, codegen::cuda::current_stream_of(device));
}

}  // namespace

void watch_collector() {
  PyObject* const name = PyUnicode_FromString("gc");
  PyObject* const gc = name != nullptr ? PyImport_GetModule(name) : nullptr;  // torch has imported it
  PyObject* const function = gc != nullptr ? PyObject_GetAttrString(gc, "collect") : nullptr;
  if (function != nullptr && PyCFunction_CheckExact(function)) {
    PyMethodDef* const method = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
    if (method->ml_flags == (METH_FASTCALL | METH_KEYWORDS)) {
      collect = method->ml_meth;
      method->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(forget_and_collect));
    }
  }
  Py_XDECREF(function);
  Py_XDECREF(gc);
  Py_XDECREF(name);
  PyErr_Clear();
  noticed = vm::full_collections();
}

void notice_collection() {
  const Py_ssize_t now = vm::full_collections();
  if (now == noticed || !is_quiet()) return;
  noticed = now;
  forget_the_dead();
}

void free_dropped(bridge::Bridge* bridge) {
  if (!TraceGroup::dropped().empty() && is_quiet() && !is_capturing(*bridge)) (void)std::exchange(TraceGroup::dropped(), {});
}

}  // namespace dynvm::tracer
