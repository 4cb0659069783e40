// Lists of numbers that torch makes tensors of: rows[[3, 1, 4]], torch.tensor(targets).
//
// What such a tensor holds comes from no operation that could be recorded, so that a recording takes its numbers for constants. Where they change, torch.tensor is called each time, and what
// it gives is an input of the operations behind it. It has no effect: a guard behind it may do it again.
// Tests: tests/traces/cases/number_lists.py.
#include <algorithm>

#include "tracer/object_parts.h"
#include "tracer/recorder.h"

namespace dynvm::tracer {

using IrOp = ir::Op;

namespace {

bool is_number(PyObject* o, bool whole) { return PyLong_CheckExact(o) || (!whole && (PyFloat_CheckExact(o) || PyBool_Check(o))); }
bool is_sequence(PyObject* o, bool whole) { return PyList_CheckExact(o) || (!whole && PyTuple_CheckExact(o)); }

// A list, or where they need not be whole numbers a tuple, with at least one item, all of them numbers or such sequences.
bool holds_numbers(PyObject* o, bool whole) {
  if (!is_sequence(o, whole) || PySequence_Fast_GET_SIZE(o) == 0) return false;
  return std::all_of(PySequence_Fast_ITEMS(o), PySequence_Fast_ITEMS(o) + PySequence_Fast_GET_SIZE(o), [&](PyObject* item) { return is_number(item, whole) || holds_numbers(item, whole); });
}

}  // namespace

// A list of numbers, or a tuple, that need not be the same next time. whole: a list of whole numbers.
bool Recorder::changing_numbers(V v, bool whole) {
  if (is_const(v) || !holds_numbers(concrete(v), whole)) return false;
  if (at(v).kind == Value::kObject) return !at(v).stable;
  const bool known = at(v).kind == Value::kList || (at(v).kind == Value::kTuple && at(v).items_known);
  return known && std::any_of(at(v).items.begin(), at(v).items.end(), [&](V item) { return is_sequence(concrete(item), whole) ? changing_numbers(item, whole) : !is_const(item); });
}

// What indexes the tensor, with tensors in the place of changing lists, and numbers in the place of tensors that are ends of slices. in_tuple: it is one index of several.
// A list of lists that stands alone is a tuple of indices to torch.
V Recorder::with_index_tensors(V index, PyObject* tensor, bool in_tuple) {
  if (!in_tuple && at(index).kind == Value::kTuple && at(index).items_known) {
    std::vector<V> items = at(index).items;
    for (V& item : items) item = with_index_tensors(item, tensor, true);
    return items == at(index).items ? index : virtual_tuple(std::move(items));
  }
  if (at(index).kind == Value::kSlice) {
    static PyObject* const as_index = Py_XNewRef(parts::qualified("_operator", "index"));
    std::vector<V> ends = at(index).items;
    if (std::none_of(ends.begin(), ends.end(), [this](V v) { return is_tensor(concrete(v)); }) || !read_numbers(as_index, &ends)) return index;
    const V read = virtual_slice(std::move(ends));
    if (read == kNoValue) PyErr_Clear();
    return read == kNoValue ? index : read;
  }
  if (!changing_numbers(index, true) || !bridge_->describe(tensor).exact_type) return index;
  PyObject* const list = concrete(index);
  const auto is_list = [](PyObject* item) { return PyList_CheckExact(item); };
  if (!in_tuple && std::any_of(PySequence_Fast_ITEMS(list), PySequence_Fast_ITEMS(list) + PyList_GET_SIZE(list), is_list)) return index;
  static PyObject* const function = Py_XNewRef(parts::qualified("torch", "tensor"));
  static PyObject* const names = Py_BuildValue("(s)", "device");
  PyObject* device = PyObject_GetAttr(tensor, interned("device"));
  bool ok = function != nullptr && device != nullptr;
  const V made = ok ? run_residual(IrOp::k_call_apart, {constant(function), index, constant(device)}, object_index(names), &ok) : index;
  Py_XDECREF(device);
  PyErr_Clear();
  return ok ? made : index;
}

}  // namespace dynvm::tracer
