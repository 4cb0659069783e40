// Lists of numbers that torch makes tensors of: rows[[3, 1, 4]], torch.tensor(targets).
//
// What such a tensor holds comes from no operation that could be recorded, so that a recording takes its numbers for constants. Where they change, torch.tensor is called each time, and what
// it gives is an input of the operations behind it. It has no effect: a guard behind it may do it again.
// Tests: tests/traces/cases/number_lists.py.
#include "tracer/recorder.h"

namespace dynvm::tracer {

using ir::Ref;
using IrOp = ir::Op;

namespace {

PyObject* torch_tensor() {
  static PyObject* const function = [] {
    PyObject* torch = PyImport_ImportModule("torch");
    PyObject* found = torch != nullptr ? PyObject_GetAttrString(torch, "tensor") : nullptr;
    Py_XDECREF(torch);
    PyErr_Clear();
    return found;
  }();
  return function;
}

bool is_number(PyObject* o, bool whole) { return PyLong_CheckExact(o) || (!whole && PyFloat_CheckExact(o)); }

// A list with at least one item, all of them numbers or such lists.
bool holds_numbers(PyObject* o, bool whole) {
  if (!PyList_CheckExact(o) || PyList_GET_SIZE(o) == 0) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i)
    if (!is_number(PyList_GET_ITEM(o, i), whole) && !holds_numbers(PyList_GET_ITEM(o, i), whole)) return false;
  return true;
}

}  // namespace

// A list of numbers that need not be the same next time. whole: of whole numbers.
bool Recorder::changing_numbers(V v, bool whole) {
  if (is_const(v) || !holds_numbers(concrete(v), whole)) return false;
  if (at(v).kind == Value::kObject) return !at(v).stable;
  return at(v).kind == Value::kList &&
         std::any_of(at(v).items.begin(), at(v).items.end(), [&](V item) { return PyList_CheckExact(concrete(item)) ? changing_numbers(item, whole) : !is_const(item); });
}

// The same index with tensors in the place of changing lists. device: where they are made, a torch.device. in_tuple: it is one index of several. A list of lists that stands alone is a
// tuple of indices to torch.
V Recorder::with_index_tensors(V index, PyObject* device, bool in_tuple) {
  if (!in_tuple && at(index).kind == Value::kTuple && at(index).items_known) {
    std::vector<V> items = at(index).items;
    for (V& item : items) item = with_index_tensors(item, device, true);
    return items == at(index).items ? index : virtual_tuple(std::move(items));
  }
  if (!changing_numbers(index, true) || torch_tensor() == nullptr) return index;
  if (!in_tuple && std::any_of(PySequence_Fast_ITEMS(concrete(index)), PySequence_Fast_ITEMS(concrete(index)) + PyList_GET_SIZE(concrete(index)), [](PyObject* item) { return !PyLong_CheckExact(item); })) return index;
  bool ok = true;
  static PyObject* const names = Py_BuildValue("(s)", "device");
  const V made = run_residual(IrOp::k_call_apart, {constant(torch_tensor()), index, constant(device)}, object_index(names), &ok);
  PyErr_Clear();
  return ok ? made : index;
}

// Of a tensor, what it is indexed by.
V Recorder::with_index_tensors(V index, PyObject* tensor) {
  if (!bridge_->describe(tensor).exact_type) return index;
  PyObject* device = PyObject_GetAttr(tensor, interned("device"));
  if (device == nullptr) PyErr_Clear();
  const V made = device != nullptr ? with_index_tensors(index, device, false) : index;
  Py_XDECREF(device);
  return made;
}

}  // namespace dynvm::tracer
