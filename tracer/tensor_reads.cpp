// What Python code reads of a tensor: its attributes, and its number where a C function asks for it. See recorder.h.
#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_set>

#include "tracer/recorder.h"

namespace dynvm::tracer {

using vm::HookResult;
using IrOp = ir::Op;

// A C function that asks tensors for their numbers is a read of each, and a call with what was read. False: given up.
bool Recorder::read_numbers(PyObject* callee, std::vector<V>* args) {
#define N(listed) listed,
  static const std::unordered_set<std::string> asks_for_float = {
#include "tracer/number_functions.def"
  };
#undef N
  const bool to_int = callee == reinterpret_cast<PyObject*>(&PyLong_Type) && args->size() == 1;
  if (bridge_ == nullptr || std::none_of(args->begin(), args->end(), [this](V v) { return is_tensor(concrete(v)); })) return true;
  const bool to_index = callable_name(callee) == "_operator.index";
  if (!to_int && !to_index && asks_for_float.count(callable_name(callee)) == 0) return true;
  static PyObject* const item = interned("item");
  for (V& v : *args) {
    PyObject* o = concrete(v);
    if (!is_tensor(o)) continue;
    V number = kNoValue;
    bool error = false;
    // int() of a number is that of what item() gives; the others ask for a float, or for an index.
    const bool fine = with_torch([&] { return to_int ? PyObject_CallMethodNoArgs(o, item) : to_index ? PyNumber_Index(o) : PyNumber_Float(o); }, {v}, "a tensor's number", &number, &error);
    Py_CLEAR(raw_result_);
    if (error) PyErr_Clear();  // the call itself raises it again
    if (!fine || number == kNoValue) {
      if (!done_) give_up(Abort::k_tensor_result, callable_name(callee));
      return false;
    }
    v = number;
  }
  return true;
}

Recorder::Attribute Recorder::look_up_tensor(V v, PyObject* name) {
  Attribute result;
  PyObject* o = concrete(v);
  if (overridden("Tensor.__get__", {v})) return result;
  const char* text = PyUnicode_AsUTF8(name);
  static const std::set<std::string> meta = {"shape", "dtype", "device", "layout", "ndim", "is_cuda", "is_cpu", "is_sparse", "is_quantized", "is_nested",
      "is_mkldnn", "is_mps", "is_meta", "is_complex", "requires_grad", "is_leaf", "itemsize", "nbytes", "names", "is_sparse_csr", "is_xla", "is_xpu",
      "is_ipu", "is_vulkan", "is_maia", "is_mtia", "retains_grad"};
  if (meta.count(text)) {
    if (at(v).kind != Value::kTensor) as_tensor(v);
    if (done_) {
      result.kind = Attribute::kAborted;
      return result;
    }
    PyObject* value = PyObject_GetAttr(o, name);
    if (value == nullptr) {
      PyErr_Clear();
      return result;
    }
    result.kind = Attribute::kValue;
    if (strcmp(text, "nbytes") == 0) folded_by_geometry({v});
    result.value = strcmp(text, "shape") == 0 && sizes_change(v) ? size_object(v) : constant(value);
    if (done_) result.kind = Attribute::kAborted;
    Py_DECREF(value);
    return result;
  }
  if (strcmp(text, "grad") == 0 && !bridge_->describe(o).is_leaf) {
    give_up(Abort::k_unsupported_operation, "gradient of a tensor that is no leaf");
    result.kind = Attribute::kAborted;
    return result;
  }
  if (strcmp(text, "grad") == 0) {
    if (at(v).kind != Value::kTensor) as_tensor(v);
    if (done_) {
      result.kind = Attribute::kAborted;
      return result;
    }
    result.kind = Attribute::kValue;
    result.value = grad_of(v);
    return result;
  }
  if (strcmp(text, "grad_fn") == 0 || strcmp(text, "_version") == 0 || strcmp(text, "_base") == 0) {
    if (at(v).kind != Value::kTensor) as_tensor(v);
    result.kind = done_ ? Attribute::kAborted : Attribute::kGetter;
    if (!done_ && strcmp(text, "grad_fn") == 0 && at(v).has_graph() && !contexts_.empty()) {
      PyObject* node = PyObject_GetAttr(o, name);
      PyErr_Clear();
      const auto context = contexts_.find(node);
      Py_XDECREF(node);
      if (context != contexts_.end()) {
        result.kind = Attribute::kValue;
        result.value = context->second;
        return result;
      }
    }
    const bridge::TensorObject object = bridge_->describe(o);
    const bool none = strcmp(text, "grad_fn") == 0 ? object.grad_fn.empty() : strcmp(text, "_base") == 0 && at(v).kind == Value::kTensor && !object.is_view;
    if (!done_ && none) {
      result.kind = Attribute::kValue;
      result.value = constant(Py_None);
    }
    return result;
  }
  if (strcmp(text, "data") == 0) {
    as_tensor(v);
    result.kind = done_ ? Attribute::kAborted : Attribute::kGetter;
    return result;
  }
  if (strcmp(text, "_grad_fn") == 0 || strcmp(text, "_backward_hooks") == 0) {
    give_up(Abort::k_unsupported_operation, std::string("tensor attribute ") + text);
    result.kind = Attribute::kAborted;
    return result;
  }
  return result;  // T, mT, real ...: run as operations
}

// Has a graph that is alive this tensor, or another one of its memory, among the operands of its operations?
bool Recorder::graph_keeps(ir::Ref tensor) {
  const int32_t storage = trace_.metas[trace_.insts[tensor].meta].storage;
  std::set<ir::Ref> graphs;
  for (V v : live_graphs()) graphs.insert(at(v).ref);
  for (ir::Ref ref : graph_of(std::move(graphs))) {
    if (trace_.insts[ref].op != IrOp::k_result) continue;
    const ir::Inst& call = trace_.insts[trace_.arg(ref, 0)];
    for (uint32_t k = 0; k < call.count; k++)
      if (const int32_t meta = trace_.insts[trace_.arg(call, k)].meta; meta >= 0 && trace_.metas[meta].storage == storage) return true;
  }
  return false;
}

// May `tensor.data = data` be part of the trace? The tensor, which was there before, has the memory of the other one then. As an operand of what autograd
// records it would still be that leaf, whose newest data the graph's backward sees, which an exit could not tell: it has been none of a graph that is alive, and the trace ends where it would
// become one (convert_record).
bool Recorder::takes_data(V tensor, V data) {
  if (at(tensor).kind != Value::kObject && !is_const(tensor)) return false;
  if (!is_tensor(concrete(data)) || concrete(data) == concrete(tensor)) return false;
  as_tensor(tensor);
  if (!done_) as_tensor(data);
  if (done_) return false;
  for (V v : {tensor, data})
    if (const bridge::TensorObject object = bridge_->describe(concrete(v)); !object.is_leaf || object.is_view) return false;
  const ir::TensorMeta mine = aten_->meta(aten_->tensor_id(concrete(tensor))), other = aten_->meta(aten_->tensor_id(concrete(data)));
  return mine.dtype == other.dtype && mine.device_type == other.device_type && mine.device_index == other.device_index && mine.sizes == other.sizes && mine.open == 0 && other.open == 0 && !graph_keeps(as_tensor(tensor));
}

}  // namespace dynvm::tracer
