// What a torch call has given: do the operations that it ran say all of it, and the Value of its result. See recorder.h and torch_calls.cpp.
#include <algorithm>
#include <cstring>
#include <functional>

#include "tracer/recorder.h"

namespace dynvm::tracer {

using bridge::OpRecord;
using ir::kNoRef;
using ir::Ref;
using ir::Type;
using IrOp = ir::Op;

// How many numbers of tensors the call read before anything else, as torch's functions do where a tensor stands for a number (a bound of clamp(), an
// end of a slice): they are numbers that it was given. 0 where nothing else follows.
size_t Recorder::numbers_read_first(const std::vector<OpRecord>& records) {
  size_t count = 0;
  while (count < records.size() && records[count].number != OpRecord::kNoNumber) count++;
  return count < records.size() ? count : 0;
}

// The first operation of a call that writes memory which the call has not made itself; where none does, how many there are.
size_t Recorder::first_write_to_given(const std::vector<OpRecord>& records) {
  std::set<int32_t> own;
  for (size_t r = 0; r < records.size(); r++) {
    const OpRecord& record = records[r];
    const auto is_own = [&](int32_t argument) {
      const std::vector<int32_t>& operands = record.call.args[static_cast<size_t>(argument)].operands;
      return std::all_of(operands.begin(), operands.end(), [&](int32_t operand) { return operand >= 0 && own.count(record.tensors[static_cast<size_t>(operand)]) != 0; });
    };
    if (!std::all_of(record.call.mutates.begin(), record.call.mutates.end(), is_own)) return r;
    for (size_t i = 0; i < record.call.results.size(); i++)
      if (record.call.results[i] >= 0 && (record.call.result_alias[i] < 0 || is_own(record.call.result_alias[i]))) own.insert(record.call.results[i]);
  }
  return records.size();
}

// Does the call no more than to give a tensor that is an object another geometry (x.unsqueeze_(0))? The trace has a picture of its memory, which stays as it is; the tensor is what the object is from now on.
bool Recorder::moves_given(const std::vector<OpRecord>& records, const std::vector<V>& tensors) {
  static const std::set<std::string> moving = {"aten::squeeze_", "aten::unsqueeze_", "aten::t_", "aten::transpose_", "aten::swapdims_", "aten::swapaxes_"};
  if (records.size() != 1 || records[0].raised || tensors.size() != 1 || moving.count(records[0].call.name) == 0) return false;
  Value& value = at(tensors[0]);
  if (bridge_->describe(value.concrete).requires_grad) return false;
  if (value.kind != Value::kTensor) return true;
  if (value.object == kNoRef || trace_.insts[value.object].op != IrOp::k_wrap) return false;
  value.kind = Value::kObject;
  value.ref = value.object;
  value.type_known = value.is_result = true;
  changed(tensors[0]);
  return true;
}

// Why the recorded operations do not say all that the call did; empty when they do.
std::string Recorder::not_repeatable(const std::vector<OpRecord>& records, PyObject* result, const std::vector<V>& inputs, std::string_view name) {
  const bool gives_unwritten = name.substr(name.rfind('.') + 1).find("empty") != std::string_view::npos;
  std::set<int32_t> made, unwritten;
  const size_t first = numbers_read_first(records), first_write = first_write_to_given(records);
  const bool gives_no_number = is_tensor(result) || result == Py_None;
  bool effect = effect_done_;
  for (size_t r = 0; r < records.size(); r++) {
    const OpRecord& record = records[r];
    if (!record.unsupported.empty()) return record.call.name + ": " + record.unsupported;
    if (lessons_.failing.count(record.call.name) != 0) return record.call.name + ": it has failed in a trace, and not in the interpreter";
    if (record.call.defines_sizes && (effect || lessons_.residual_sizes)) return record.call.name + ": data-dependent shape";
    effect = effect || record.call.is_random || r >= first_write;
    // It may decide what comes next, or be an argument of it; the last one has decided that nothing does, where it is not what the call gives.
    if (record.number != OpRecord::kNoNumber && r >= first && (r + 1 < records.size() || gives_no_number)) return "a number read in the middle of a call";
    for (int32_t id : record.tensors) {
      if (id < 0 || made.count(id) != 0 || tensors_.count(id) != 0) continue;
      PyObject* constant = aten_->constant(id);
      if (constant == nullptr) return record.call.name + ": a tensor that nothing is known of";
      Py_DECREF(constant);
    }
    made.insert(record.call.results.begin(), record.call.results.end());
    if (record.unwritten && !gives_unwritten) unwritten.insert(record.call.results.begin(), record.call.results.end());
  }
  bool reads_number = !records.empty() && records.back().number != OpRecord::kNoNumber;
  std::function<bool(PyObject*)> explained = [&](PyObject* o) {
    if (is_tensor(o)) {
      // A new object of a class of its own, a Parameter: no operation makes that, where the call was not given the class.
      const auto is_class = [&](V v) { return concrete(v) == reinterpret_cast<PyObject*>(Py_TYPE(o)); };
      const bool instance = !bridge_->describe(o).exact_type && std::any_of(inputs.begin(), inputs.end(), is_class);
      if (strcmp(Py_TYPE(o)->tp_name, "Tensor") != 0 && leaf_objects_.count(o) == 0 && !instance) return false;
      int32_t id = aten_->tensor_id(o);
      return id >= 0 && unwritten.count(id) == 0 && (made.count(id) != 0 || tensors_.count(id) != 0);
    }
    if (PyTuple_Check(o) || PyList_CheckExact(o)) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
        if (!explained(PySequence_Fast_GET_ITEM(o, i))) return false;
      return true;
    }
    // Numbers that nothing has read are copies of data, as those of tolist() on a GPU: other ones each time.
    if (PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o)) return reads_number;
    return is_immutable(o) || reads_number;
  };
  return explained(result) ? "" : "its result is not made by recorded operations";
}

// Data of a tensor in the host's memory that this call was given and that none of its operations reads: C++ code that runs above the recorder may have read them
// there. Integers, as those of ctc_loss or of an LSTM on packed sequences, decide what the operations are; any number may be among the data of a new tensor
// (torch.tensor([x])), which is made with the recorder's key off. Where the call asks for a tensor's geometry alone, as that of the first one of new_tensor,
// nobody has.
std::string Recorder::read_unseen(const std::vector<OpRecord>& records, const std::vector<V>& tensors, PyObject* result, std::string_view name) {
  name = name.substr(name.rfind('.') + 1);
  const bool lifts = std::any_of(records.begin(), records.end(), [](const OpRecord& record) { return record.call.name == "aten::lift_fresh"; });
  const bool of_class = name.starts_with("new_");
  if (records.empty() || name.ends_with("_as") || name.ends_with("_like") || (of_class && !lifts) || name == "to" || name == "result_type") return {};
  std::set<int32_t> seen;
  for (const OpRecord& record : records) seen.insert(record.tensors.begin(), record.tensors.end());
  const auto storage = [this](PyObject* o) { return aten_->meta(aten_->tensor_id(o)).storage; };
  std::set<int32_t> given_back;
  const auto gives = [&](PyObject* o) {
    if (is_tensor(o) && aten_->tensor_id(o) >= 0) given_back.insert(storage(o));
  };
  gives(result);
  for (Py_ssize_t i = 0; PyTuple_Check(result) && i < PyTuple_GET_SIZE(result); i++) gives(PyTuple_GET_ITEM(result, i));
  for (V v : tensors) {
    const int32_t id = aten_->tensor_id(concrete(v));
    if (id < 0 || seen.count(id) != 0 || (of_class && v == tensors.front())) continue;
    const ir::TensorMeta& meta = aten_->meta(id);
    if (meta.device_type == 0 && (lifts || !ir::is_floating(meta.dtype)) && ir::elements(meta) != 0 && given_back.count(meta.storage) == 0) return "data of a tensor is read by no operation";
  }
  return {};
}

// A Python tensor made by recorded operations.
V Recorder::tensor_value(PyObject* o, int32_t id) {
  bridge::TensorObject object_info = bridge_->describe(o);
  Value value;
  value.kind = Value::kTensor;
  value.ref = tensors_[id];
  value.tensor_id = id;
  value.concrete = Py_NewRef(o);
  value.type_known = true;
  value.wrap.requires_grad = object_info.requires_grad;
  value.wrap.is_leaf = object_info.is_leaf;
  value.wrap.grad_fn = object_info.grad_fn;
  value.wrap.output_nr = object_info.output_nr;
  if (object_info.requires_grad && !object_info.is_leaf) requires_graph_[value.ref] = {value.ref, object_info.grad_fn, object_info.output_nr};
  if (!object_info.exact_type && !note_instance(&value)) give_up(Abort::k_tensor_subclass, Py_TYPE(o)->tp_name);
  V v = add_value(std::move(value));
  leaf_objects_.emplace(o, v);
  const ir::TensorMeta& meta = aten_->meta(id);
  made_bytes_ += static_cast<size_t>(ir::elements(meta) * ir::dtype_size(meta.dtype));
  return v;
}

V Recorder::tensor_result(PyObject* result, const std::vector<V>& inputs, const std::vector<OpRecord>& records, bool* ok) {
  if (is_tensor(result)) {
    std::vector<V> tensors, numbers;
    for (V v : inputs) collect(v, &tensors, &numbers);
    for (V v : tensors) {
      if (concrete(v) != result) continue;
      refresh(v);
      return v;
    }
    auto known_object = leaf_objects_.find(result);
    if (known_object != leaf_objects_.end() && concrete(known_object->second) == result) {
      refresh(known_object->second);
      return known_object->second;
    }
    int32_t id = aten_->tensor_id(result);
    if (id < 0 || !tensors_.count(id)) {
      *ok = false;
      return kNoValue;
    }
    return tensor_value(result, id);
  }
  for (auto it = records.rbegin(); it != records.rend(); ++it) {
    if (it->number == OpRecord::kNoNumber) continue;
    Type type = it->number == OpRecord::kIntNumber ? Type::kInt : it->number == OpRecord::kFloatNumber ? Type::kFloat : Type::kBool;
    bool matches = type == Type::kInt ? PyLong_CheckExact(result) : type == Type::kFloat ? PyFloat_CheckExact(result) : PyBool_Check(result);
    if (type == Type::kFloat && matches && PyFloat_AS_DOUBLE(result) != it->float_value && it->float_value == it->float_value) matches = false;  // computed from it
    if (matches && last_number_ != kNoRef) return scalar(type, last_number_, result);
    if (PyBool_Check(result) && last_number_ != kNoRef && type != Type::kBool) {
      // bool() of a number tensor
      V number = type == Type::kInt ? scalar(Type::kInt, last_number_, result) : scalar(Type::kFloat, last_number_, result);
      static PyObject* zero_int = PyLong_FromLong(0);
      static PyObject* zero_float = PyFloat_FromDouble(0.0);
      Ref ref = type == Type::kInt ? emit(IrOp::k_ne_int, Type::kBool, {at(number).ref, as_int(constant(zero_int))})
                                   : emit(IrOp::k_ne_float, Type::kBool, {at(number).ref, as_float(constant(zero_float))});
      return scalar(Type::kBool, ref, result);
    }
    if (PyFloat_CheckExact(result) && type == Type::kInt && last_number_ != kNoRef)
      return scalar(Type::kFloat, emit(IrOp::k_int_to_float, Type::kFloat, {last_number_}, 0, true), result);
    *ok = false;  // int(float tensor): truncation is not modelled
    return kNoValue;
  }
  if (PyTuple_Check(result) || PyList_CheckExact(result)) {
    std::vector<V> items;
    PyObject* fast = PySequence_Fast(result, "");
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast) && *ok; i++)
      items.push_back(tensor_result(PySequence_Fast_GET_ITEM(fast, i), inputs, records, ok));
    Py_DECREF(fast);
    if (!*ok) return kNoValue;
    if (PyList_CheckExact(result)) return virtual_object(Value::kList, std::move(items), result);
    if (PyTuple_CheckExact(result)) return virtual_object(Value::kTuple, std::move(items), result);
    // torch.return_types.*: a structseq made from a tuple
    PyObject* plain = PySequence_Tuple(result);
    V tuple = virtual_object(Value::kTuple, items, plain);
    Py_DECREF(plain);
    Ref ref = emit(IrOp::k_call_pure, Type::kObject, {const_ref(reinterpret_cast<PyObject*>(Py_TYPE(result))), as_object(tuple)}, -1, false);
    trace_.insts[ref].snapshot = current_snapshot_;
    V v = object(ref, result, true);
    at(v).items = std::move(items);
    at(v).items_known = true;
    at(v).type_known = true;
    return v;
  }
  if (!is_immutable(result)) {  // an array, a storage: the call itself would have to be repeated
    *ok = false;
    return kNoValue;
  }
  if (sizes_are_numbers_ && result != Py_None && !PyUnicode_Check(result)) {
    std::vector<V> tensors, numbers;
    for (V v : inputs) collect(v, &tensors, &numbers);
    folded_by_geometry(tensors);
  }
  return constant(result);  // None, a shape, a dtype: decided by metadata
}

// An in-place operation returned its operand: its Value now stands for the new contents.
// Autograd has recorded what is written here: each tensor object on that memory has another graph now, a view's base and its other views too.
void Recorder::refresh_written(const std::vector<OpRecord>& records) {
  std::set<int32_t> storages;
  for (const OpRecord& record : records) {
    if (record.raised || record.call.mutates.empty() || !is_differentiated(record.call)) continue;
    for (int32_t argument : record.call.mutates)
      for (int32_t operand : record.call.args[static_cast<size_t>(argument)].operands)
        if (operand >= 0 && record.tensors[static_cast<size_t>(operand)] >= 0) storages.insert(trace_.metas[meta_of(record.tensors[static_cast<size_t>(operand)])].storage);
  }
  if (storages.empty()) return;
  for (const V v : std::vector<V>(holders_)) {
    if (at(v).kind != Value::kTensor || at(v).ref == kNoRef || storages.count(trace_.metas[trace_.insts[at(v).ref].meta].storage) == 0) continue;
    refresh(v);
    if (at(v).object != kNoRef && trace_.insts[at(v).object].op == IrOp::k_wrap && at(v).has_graph()) note_written_object(v);
  }
}

void Recorder::refresh(V v) {
  int32_t id = aten_->tensor_id(concrete(v));
  auto found = tensors_.find(id);
  if (found == tensors_.end() || at(v).kind != Value::kTensor) return;
  bridge::TensorObject object = bridge_->describe(concrete(v));
  if (object.requires_grad && object.is_leaf && !at(v).wrap.requires_grad) {
    // An exit that rebuilds graphs knows memory, and could not tell what uses the leaf from what uses the other.
    const int32_t storage = trace_.metas[trace_.insts[found->second].meta].storage;
    const auto is_other = [&](const ir::Inst& inst) {
      return inst.op == IrOp::k_unbox_tensor && trace_.metas[inst.meta].storage == storage && trace_.metas[inst.meta].requires_grad;
    };
    const bool shares = std::any_of(holders_.begin(), holders_.end(), [&](V other) { return other != v && at(other).has_graph() && at(other).tensor_id == id; }) ||
                        (input_storages_.count(storage) != 0 && std::any_of(trace_.insts.begin(), trace_.insts.end(), is_other));
    if (shares) return give_up(Abort::k_unsupported_operation, "a leaf on memory that another tensor with a graph has");
  }
  Value& value = at(v);
  value.ref = found->second;
  value.tensor_id = id;
  changed(v);
  value.wrap.requires_grad = object.requires_grad;
  value.wrap.is_leaf = object.is_leaf;
  value.wrap.grad_fn = object.grad_fn;
  value.wrap.output_nr = object.output_nr;
  if (object.requires_grad && !object.is_leaf) requires_graph_[value.ref] = {value.ref, object.grad_fn, object.output_nr};
  if (twins_.count(v) != 0) hand_out_graph(v);  // exits from here on give the object the graph that it has now
}

}  // namespace dynvm::tracer
