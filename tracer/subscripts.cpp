// Which changing numbers of an index (`x[i]`, `x[:, a:b]`, `x[i, a:b] = y`) are which arguments of the operations that it became.
//
// torch takes an index apart from left to right: an int becomes aten::select, a slice aten::slice, each of the dimension that has been come to. A slice of all of a
// dimension becomes nothing. So the operations say which item is which one, where their numbers alone would not: the 4 of `x[2:4, 4:8]` stands for two.
// Tests: tests/traces/cases/numbers_of_an_index.py.
#include <limits>

#include "tracer/recorder.h"

namespace dynvm::tracer {

using bridge::OpRecord;

namespace {

// What an operation is given where an item's number is None.
constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
constexpr int64_t kUnsaid[] = {0, kToTheEnd, 1};  // start, stop, step

bool is_number_of(const OpRecord& record, size_t argument, int64_t value) {
  return argument < record.call.args.size() && record.call.args[argument].kind == ir::AtenArg::kInt && record.call.args[argument].i == value;
}

}  // namespace

// False: an index with tensors or bools, or one that is not understood.
bool Recorder::find_index_numbers(V tensor, V index, const std::vector<OpRecord>& records, std::vector<BoundNumber>* found) {
  PyObject* o = concrete(index);
  if (PyTuple_CheckExact(o) && !at(index).items_known) return false;
  const std::vector<V> items = PyTuple_CheckExact(o) ? at(index).items : std::vector<V>{index};
  const auto is_int = [this](V v) { return PyLong_CheckExact(concrete(v)); };
  int64_t dim = 0, said = 0;
  for (V item : items) said += is_int(item) || PySlice_Check(concrete(item));
  size_t next = 0;
  const auto to_index = [&] {
    while (next < records.size() && !is_index(records[next].call)) ++next;
    return next < records.size();
  };
  for (V item : items) {
    PyObject* of = concrete(item);
    if (is_int(item)) {
      if (!to_index() || records[next].call.name != "aten::select" || !is_number_of(records[next], 1, dim) || !is_number_of(records[next], 2, PyLong_AsLongLong(of))) return false;
      found->push_back({item, next++, 2});
    } else if (PySlice_Check(of)) {
      const auto* slice = reinterpret_cast<PySliceObject*>(of);
      PyObject* parts[] = {slice->start, slice->stop, slice->step};
      const bool known = at(item).items_known && at(item).items.size() == 3;
      bool same = to_index() && records[next].call.name == "aten::slice" && is_number_of(records[next], 1, dim);
      for (size_t k = 0; k < 3 && same; k++) {
        if (parts[k] != Py_None && !PyLong_CheckExact(parts[k])) return false;
        same = is_number_of(records[next], 2 + k, parts[k] == Py_None ? kUnsaid[k] : PyLong_AsLongLong(parts[k]));
      }
      if (PyErr_Occurred()) PyErr_Clear();
      for (size_t k = 0; k < 3 && same && known; k++)
        if (parts[k] != Py_None) found->push_back({at(item).items[k], next, 2 + k});
      next += same;
      ++dim;
    } else if (of == Py_None) {
      ++dim;
    } else if (of == Py_Ellipsis) {
      dim += static_cast<int64_t>(aten_->meta(aten_->tensor_id(concrete(tensor))).sizes.size()) - said;
    } else {
      return false;
    }
  }
  return !to_index();
}

}  // namespace dynvm::tracer
