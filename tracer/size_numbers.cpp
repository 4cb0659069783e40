// Sizes of tensors as numbers of the trace. See sizes.h for what they are for.
//
// A recording with `sizes_are_numbers_` takes the sizes of all tensors but constant ones for numbers that change from run to run: `x.shape` is a
// virtual tuple of them, arithmetic and comparisons on them are operations and guards. What is folded by a tensor's geometry in any other
// way is noted (SizeFacts::folds), to be looked at again when the trace is specialised.
#include <set>

#include "ir/numbers.h"
#include "tracer/recorder.h"
#include "tracer/sizes.h"

namespace dynvm::tracer {

using ir::kNoRef;
using ir::Ref;
using ir::Type;
using IrOp = ir::Op;

// May this tensor come in other sizes? May abort.
bool Recorder::sizes_change(V tensor) {
  if (!sizes_are_numbers_ || is_const(tensor)) return false;
  const Ref ref = as_tensor(tensor);
  if (ref == kNoRef || done_) return false;
  return !is_constant_input(trace_, ref);
}

// Size `dim` of a tensor whose sizes change; -1: the number of its elements.
V Recorder::size_number(V tensor, int64_t dim) {
  PyObject* o = concrete(tensor);
  const Ref ref = as_tensor(tensor);
  auto found = size_numbers_.find({ref, dim});
  if (found != size_numbers_.end()) return found->second;
  const std::vector<int64_t> sizes = aten_->meta(aten_->tensor_id(o)).sizes;
  int64_t number = 1;
  for (int64_t size : sizes) number *= size;
  if (dim >= 0) number = sizes[static_cast<size_t>(dim)];
  PyObject* object = PyLong_FromLongLong(number);
  V v = scalar(Type::kInt, emit(IrOp::k_tensor_size, Type::kInt, {ref}, dim), object);
  Py_DECREF(object);
  at(v).of_sizes = true;
  size_numbers_[{ref, dim}] = v;
  return v;
}

// The tensor's shape, a virtual torch.Size of numbers; kNoValue where Python raised.
V Recorder::size_object(V tensor) {
  PyObject* shape = PyObject_GetAttrString(concrete(tensor), "shape");
  if (shape == nullptr) return kNoValue;
  std::vector<V> items;
  for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(shape); d++) items.push_back(size_number(tensor, d));
  V v = virtual_object(Value::kTuple, std::move(items), shape);
  Py_DECREF(shape);
  return v;
}

// A row of torch_folds.def's kind "meta" in such a recording. True: *result is set, or recording was given up; false: fold as ever.
bool Recorder::fold_size(const std::string& name, const std::vector<V>& args, PyObject* kwnames, V* result) {
  static const std::set<std::string> by_type = {"Tensor.dim", "Tensor.ndimension", "Tensor.element_size", "Tensor.is_floating_point", "Tensor.is_complex",
      "Tensor.is_signed", "Tensor.get_device", "Tensor.is_conj", "Tensor.is_neg", "torch.is_floating_point", "torch.is_complex", "torch._C._is_view"};
  if (by_type.count(name) != 0) return false;
  std::vector<V> tensors;
  for (V v : args)
    if (is_tensor(concrete(v)) && sizes_change(v)) tensors.push_back(v);
  if (done_) return true;
  if (tensors.empty()) return false;
  const bool plain = kwnames == nullptr && tensors[0] == args[0];
  if (plain && args.size() == 1) {
    if (name == "Tensor.size") *result = size_object(args[0]);
    else if (name == "Tensor.numel" || name == "Tensor.nelement" || name == "torch.numel") *result = size_number(args[0], -1);
    else if (name == "Tensor.__len__" && PyObject_Length(concrete(args[0])) >= 0) *result = size_number(args[0], 0);
    if (PyErr_Occurred()) PyErr_Clear();
    if (*result != kNoValue) return true;
  }
  if (plain && args.size() == 2 && name == "Tensor.size" && PyLong_CheckExact(concrete(args[1])) && promote(args[1])) {
    const int64_t rank = static_cast<int64_t>(aten_->meta(aten_->tensor_id(concrete(args[0]))).sizes.size());
    int64_t dim = PyLong_AsLongLong(concrete(args[1]));
    if (dim < 0) dim += rank;
    if (dim >= 0 && dim < rank) {
      *result = size_number(args[0], dim);
      return true;
    }
    PyErr_Clear();
  }
  folded_by_geometry(tensors, plain && args.size() == 1 && name == "Tensor.is_contiguous" ? SizeFacts::Fold::kContiguous : SizeFacts::Fold::kGeometry);
  return false;
}

void Recorder::folded_by_geometry(const std::vector<V>& tensors, SizeFacts::Fold::Kind kind) {
  for (V v : tensors)
    if (sizes_change(v)) sizes_.folds.push_back({kind, as_tensor(v)});
}

// The result of an operation on these two: is it computed from sizes alone?
V Recorder::number_of_sizes(V result, V left, V right) {
  if (result == kNoValue || at(result).kind != Value::kScalar) return result;
  auto of_sizes = [&](V v) { return at(v).kind == Value::kScalar && at(v).of_sizes; };
  at(result).of_sizes = (of_sizes(left) || of_sizes(right)) && (of_sizes(left) || is_const(left)) && (of_sizes(right) || is_const(right));
  return result;
}

// A number that is a product of others of them, of sizes and constants, changes with these. So would sums, but ends of slices and positions are sums too.
void Recorder::drop_computed_sizes() {
  std::set<Ref> free;
  for (const SizeFacts::Free& each : sizes_.free) free.insert(each.ref);
  const auto computed = [&](const auto& self, Ref ref) -> bool {
    const ir::Inst& inst = trace_.insts[ref];
    if (inst.op != IrOp::k_mul_int) return false;
    for (uint32_t k = 0; k < inst.count; k++) {
      const Ref part = trace_.arg(inst, k);
      if (free.count(part) == 0 && !ir::constant_number(trace_.insts[part]) && trace_.insts[part].op != IrOp::k_tensor_size && !self(self, part)) return false;
    }
    return true;
  };
  std::erase_if(sizes_.free, [&](const SizeFacts::Free& each) { return each.ref < trace_.insts.size() && computed(computed, each.ref); });
}

}  // namespace dynvm::tracer
