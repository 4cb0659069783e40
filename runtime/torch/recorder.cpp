// The recording and counting fallback; see recorder.h.
#include "runtime/base/defects.h"
#include "runtime/torch/recorder.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "runtime/torch/block_pool.h"
#include "runtime/torch/convert.h"
#include "runtime/torch/operator_facts.h"
#include "runtime/torch/philox.h"
#include "runtime/torch/python_tensor.h"
#include "runtime/torch/torch_state.h"
#include "runtime/torch/watched_functions.h"
#include "runtime/base/switches.h"

namespace dynvm::torch_bridge {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using Stack = torch::jit::Stack;

class RecorderImpl;
std::atomic<RecorderImpl*> active_recorder{nullptr};
std::atomic<uint64_t> counted{0}, counted_in_backward{0}, counted_differentiated{0};
std::atomic<bool> counting{false};  // somebody asks
thread_local bool recorded_here = false;

// Identity of a tensor's value: two TensorImpls with the same key look at the same memory the same way.
struct Look {
  const c10::StorageImpl* storage;
  int64_t offset;
  c10::ScalarType type;
  bool inference;
  std::vector<int64_t> geometry;  // sizes, then strides
  friend bool operator==(const Look&, const Look&) = default;
};
struct LookHash {
  size_t operator()(const Look& look) const {
    size_t h = reinterpret_cast<size_t>(look.storage) >> 4;
    const auto mix = [&h](size_t v) { h = (h ^ v) * 0x9E3779B97F4A7C15ull; };
    mix(static_cast<size_t>(look.offset));
    mix(static_cast<size_t>(look.type));
    for (int64_t v : look.geometry) mix(static_cast<size_t>(v));
    return h;
  }
};

// The first reason counts.
void refuse(bridge::OpRecord& record, const std::string& reason) {
  if (record.unsupported.empty()) record.unsupported = reason;
}

void make_numbers_concrete(Stack& stack, size_t base) {
  for (size_t i = base; i < stack.size(); ++i) {
    IValue& value = stack[i];
    if (value.isSymInt()) {
      value = IValue(value.toSymInt().guard_int(__FILE__, __LINE__));
    } else if (value.isSymFloat()) {
      value = IValue(value.toSymFloat().guard_float(__FILE__, __LINE__));
    } else if (value.isSymBool()) {
      value = IValue(value.toSymBool().guard_bool(__FILE__, __LINE__));
    } else if (value.isSymIntList()) {
      c10::List<int64_t> concrete;
      for (const c10::SymInt& number : value.toSymIntVector()) concrete.push_back(number.guard_int(__FILE__, __LINE__));
      value = IValue(std::move(concrete));
    }
  }
}

// Does a tensor that C++ holds too keep a reference to its Python object, as it does in newer versions of torch?
bool tensors_hold_objects() {
  static const bool hold = [] {
    at::Tensor tensor = at::empty({0});
    PyObject* object = to_python(tensor);
    const Py_ssize_t references = Py_REFCNT(object);
    tensor.reset();
    const bool more = references > Py_REFCNT(object);
    Py_DECREF(object);
    return more;
  }();
  return hold;
}

class RecorderImpl final : public bridge::Recorder {
 public:
  ~RecorderImpl() override { disable(); }

  void enable() override {
    active_recorder.store(this, std::memory_order_release);
    mark(true);
  }

  void disable() override {
    RecorderImpl* expected = this;
    if (active_recorder.compare_exchange_strong(expected, nullptr)) mark(false);
  }

  void pause() override {
    paused_ = recorded_here;
    mark(false);
  }

  void resume() override { mark(paused_); }

  std::vector<bridge::OpRecord> take() override {
    std::lock_guard lock(mutex_);
    settle_versions();
    for (bridge::OpRecord& record : records_) record.unwritten = !record.call.results.empty() && unwritten_.count(storage_of(record.call.results[0])) != 0 && made_unwritten_.count(&record) != 0;
    made_unwritten_.clear();
    std::vector<bridge::OpRecord> out(std::make_move_iterator(records_.begin()), std::make_move_iterator(records_.end()));
    records_.clear();
    return out;
  }

  int32_t tensor_id(PyObject* object) override {
    std::lock_guard lock(mutex_);
    const at::Tensor& tensor = unpack(object);
    if (refusal_of(tensor)) return -1;
    const int32_t id = id_of(tensor);
    ir::TensorMeta& meta = metas_[static_cast<size_t>(id)];
    meta.requires_grad = tensor.requires_grad();
    meta.is_leaf = tensor.is_leaf();
    meta.is_parameter = is_plain_parameter(object);
    return id;
  }

  int32_t separate(PyObject* object) override {
    std::lock_guard lock(mutex_);
    const at::Tensor& tensor = unpack(object);
    separate_.insert(tensor.storage().unsafeGetStorageImpl());
    return own_id(tensor);
  }

  void note_data(PyObject* object) override {
    std::lock_guard lock(mutex_);
    const at::Tensor& data = unpack(object);
    if (!data.is_inference()) data.unsafeGetTensorImpl()->set_version_counter(c10::VariableVersion(0));  // also where detach() has made it
    data_tensors_.emplace_back(data.getIntrusivePtr());
  }

  int32_t note_counter(PyObject* object) override {
    std::lock_guard lock(mutex_);
    const at::Tensor& tensor = unpack(object);
    own_counters_.emplace_back((tensor.is_view() ? tensor._base() : tensor).getIntrusivePtr());
    return static_cast<int32_t>(own_counters_.size()) - 1;
  }

  std::vector<PyObject*> free_data(const std::vector<std::pair<PyObject*, Py_ssize_t>>& tensors) override {
    std::lock_guard lock(mutex_);
    std::unordered_map<c10::TensorImpl*, uint32_t> references;  // by objects that the caller alone holds, and by views of theirs, which hold their base
    for (const auto& [object, times] : tensors) {
      const at::Tensor& tensor = unpack(object);
      const bool shared = tensor.use_count() > 1;
      if (Py_REFCNT(object) != times + (shared && tensors_hold_objects())) continue;
      references[tensor.unsafeGetTensorImpl()]++;
      if (!shared && tensor.is_view()) references[tensor._base().unsafeGetTensorImpl()]++;
    }
    std::unordered_map<c10::StorageImpl*, uint32_t> lookers;
    for (const auto& [tensor, count] : references)
      if (c10::raw::intrusive_ptr::use_count(tensor) == count) lookers[tensor->unsafe_storage().unsafeGetStorageImpl()]++;
    std::unordered_set<c10::StorageImpl*> freed;
    for (const auto& [storage, count] : lookers) {
      if (c10::raw::intrusive_ptr::use_count(storage) != count) continue;
      storage->set_data_ptr_noswap(c10::DataPtr(nullptr, storage->device()));
      freed.insert(storage);
    }
    std::vector<PyObject*> without;
    for (const auto& [object, times] : tensors)
      if (const at::Tensor& tensor = unpack(object); tensor.has_storage() && freed.count(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()) != 0) without.push_back(object);
    return without;
  }

  const ir::TensorMeta& meta(int32_t id) override { return metas_.at(static_cast<size_t>(id)); }

  template <class Redispatch>
  void record(const c10::OperatorHandle& op, Stack* stack, Redispatch&& redispatch) {
    const OperatorFacts& facts = operator_facts(op);
    const size_t arguments = facts.handle.hasSchema() ? op.schema().arguments().size() : 0;
    const size_t base = stack->size() - arguments;
    make_numbers_concrete(*stack, base);
    std::string note;
    const ir::RandomStream stream = stream_of_call(facts, *stack, base, &note);  // may run operations, and needs the GIL
    bridge::OpRecord* record;
    std::vector<std::pair<const c10::TensorImpl*, int32_t>> written;
    {
      std::lock_guard lock(mutex_);
      settle_versions();
      record = &records_.emplace_back();  // a deque: stays where it is while other records come
      describe_call(facts, *stack, base, *record, written);
      note_versions(*stack, base, *record);
      if (record->call.is_random) record->call.stream = stream;
      record->note = std::move(note);
    }
    try {
      redispatch();
    } catch (...) {
      std::lock_guard lock(mutex_);
      record->raised = true;
      throw;
    }
    std::lock_guard lock(mutex_);
    describe_results(facts, *stack, base, *record, written);
  }

 private:
  static void mark(bool on) {
    recorded_here = on;
    settle_keys();
  }

  // Of this very tensor, whatever else looks the same. It is held weakly, so that its address stays its own.
  int32_t own_id(const at::Tensor& tensor) {
    const int32_t id = static_cast<int32_t>(metas_.size());
    ir::TensorMeta& meta = metas_.emplace_back(to_meta(tensor));
    meta.storage = storage_number(tensor.storage());
    meta.requires_grad = tensor.requires_grad();
    meta.is_leaf = tensor.is_leaf();
    own_ids_.insert_or_assign(tensor.unsafeGetTensorImpl(), std::pair(id, c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr())));
    return id;
  }

  int32_t id_of(const at::Tensor& tensor) {
    if (!own_ids_.empty()) {
      if (const auto own = own_ids_.find(tensor.unsafeGetTensorImpl()); own != own_ids_.end()) return own->second.first;
    }
    Look look{tensor.storage().unsafeGetStorageImpl(), tensor.storage_offset(), tensor.scalar_type(), tensor.is_inference(), {}};
    const c10::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
    look.geometry.reserve(sizes.size() * 2);
    look.geometry.insert(look.geometry.end(), sizes.begin(), sizes.end());
    look.geometry.insert(look.geometry.end(), strides.begin(), strides.end());
    const auto [entry, is_new] = ids_.emplace(std::move(look), static_cast<int32_t>(metas_.size()));
    if (is_new) {
      ir::TensorMeta& meta = metas_.emplace_back(to_meta(tensor));
      meta.storage = storage_number(tensor.storage());
      meta.requires_grad = tensor.requires_grad();
      meta.is_leaf = tensor.is_leaf();
      firsts_.insert_or_assign(entry->second, c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()));
    }
    return entry->second;
  }

  int32_t storage_number(const c10::Storage& storage) {
    const auto [entry, is_new] = storages_.emplace(storage.unsafeGetStorageImpl(), static_cast<int32_t>(storage_refs_.size()));
    // The weak reference keeps the StorageImpl's address from being used again, so that an address identifies a storage for good.
    if (is_new) {
      look_for_overlaps(storage);
      storage_refs_.push_back(storage.getWeakStorageImpl());
    }
    return entry->second;
  }

  // As refuse_tensor; also where another storage lies on the same memory, as tensors made from one NumPy array have: a trace would take what is
  // written through the one for unchanged in the other.
  const char* refusal_of(const at::Tensor& tensor) {
    if (const char* reason = refuse_tensor(tensor)) return reason;
    const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    if (storages_.count(storage) == 0) storage_number(tensor.storage());
    return written_over_.count(storage) != 0 ? kWrittenOver : nullptr;
  }

  void look_for_overlaps(const c10::Storage& storage) {
    const bool foreign = is_foreign(storage.data_ptr());
    if (!foreign && foreign_ == 0) return;
    const c10::StorageImpl& added = *storage.unsafeGetStorageImpl();
    foreign_ += foreign;
    for (const auto& weak : storage_refs_) {
      const auto other = weak.lock();
      if (!other || other.get() == &added || !other->device().is_cpu() || !overlap(added, *other)) continue;
      overlapping_.insert(&added);
      overlapping_.insert(other.get());
      if (written_storages_.count(&added) == 0 && written_storages_.count(other.get()) == 0) continue;
      written_over_.insert(&added);
      written_over_.insert(other.get());
    }
  }

  // Storages of which several lie on one memory, as views of a NumPy array do, are known apart as long as nobody writes any of them.
  void note_written(const at::Tensor& tensor, bridge::OpRecord& record) {
    if (!tensor.defined() || refuse_tensor(tensor)) return;
    const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    written_storages_.insert(storage);
    if (overlapping_.count(storage) != 0) refuse(record, kWrittenOver);
  }

  // Which version counters an operation advances is not in its schema: autograd's kernels do it, some operations have none (the fused optimizers), and an
  // operation below them advances nothing (what AccumulateGrad copies). So they are looked at before it, and again before the next one or at the end.
  // The trace knows tensors that look the same as one, whose counter is asked for. Those that have a number (note_counter), and their views, are told apart.
  void note_versions(const Stack& stack, size_t base, bridge::OpRecord& record) {
    writing_ = &record;
    const auto note = [&](int32_t argument, const at::Tensor& tensor, bool alone) {
      if (!tensor.defined() || tensor.is_inference() || refusal_of(tensor)) return;
      c10::intrusive_ptr<c10::TensorImpl> counted;
      if (const auto first = firsts_.find(id_of(tensor)); first != firsts_.end()) counted = first->second.lock();
      if (!counted) counted = tensor.getIntrusivePtr();
      const auto root = [](const at::Tensor& of) { return (of.is_view() ? of._base() : of).unsafeGetTensorImpl(); };
      const auto taken = std::find_if(own_counters_.rbegin(), own_counters_.rend(), [&](const auto& each) { return each._unsafe_get_target() == root(tensor); });
      const bool numbered = taken != own_counters_.rend() && (alone || counted.get() != root(tensor));
      if (numbered) counters_.push_back({-static_cast<int32_t>(own_counters_.rend() - taken), tensor.unsafeGetTensorImpl()->version_counter().current_version(), *taken});
      if (numbered && alone) record.unversioned.push_back(argument);
      else counters_.push_back({argument, counted->version_counter().current_version(), c10::weak_intrusive_ptr<c10::TensorImpl>(counted)});
    };
    for (int32_t argument : record.call.mutates) {
      const IValue& value = stack[base + static_cast<size_t>(argument)];
      if (value.isTensor()) note(argument, value.toTensor(), true);
      if (value.isTensorList())
        for (const at::Tensor& tensor : value.toTensorVector()) note(argument, tensor, false);
    }
  }

  void settle_versions() {
    std::set<int32_t> kept, advanced;
    for (const Counter& counter : counters_) {
      const auto tensor = counter.tensor.lock();
      if (counter.argument < 0) {
        if (tensor && tensor->version_counter().current_version() != counter.before) writing_->own_counters.push_back(-1 - counter.argument);
        continue;
      }
      (tensor && tensor->version_counter().current_version() == counter.before ? kept : advanced).insert(counter.argument);
    }
    counters_.clear();
    for (int32_t argument : kept)
      if (advanced.count(argument) == 0) writing_->unversioned.push_back(argument);
  }

  bool is_data(const at::Tensor& tensor) const {
    if (data_tensors_.empty()) return false;
    const c10::TensorImpl* impl = (tensor.is_view() ? tensor._base() : tensor).unsafeGetTensorImpl();
    return std::any_of(data_tensors_.begin(), data_tensors_.end(), [impl](const auto& weak) { return weak._unsafe_get_target() == impl; });
  }

  // Position of `tensor` in record.tensors; an undefined or refused one stands as id -1.
  int32_t add_tensor(const at::Tensor& tensor, bridge::OpRecord& record) {
    int32_t id = -1;
    if (tensor.defined()) {
      if (const char* reason = refusal_of(tensor)) {
        refuse(record, reason);
      } else {
        id = id_of(tensor);
      }
    }
    record.tensors.push_back(id);
    return static_cast<int32_t>(record.tensors.size()) - 1;
  }

  // A wrapped number's value, or false when it is not a real number on the CPU.
  static bool number_value(const at::Tensor& tensor, ir::AtenArg& arg) {
    if (!tensor.device().is_cpu() || tensor.numel() != 1) return false;
    const void* data = tensor.const_data_ptr();
    arg.dtype = to_dtype(tensor.scalar_type());
    switch (tensor.scalar_type()) {
      case c10::ScalarType::Double: std::memcpy(&arg.f, data, sizeof arg.f); return true;
      case c10::ScalarType::Long: std::memcpy(&arg.i, data, sizeof arg.i); return true;
      case c10::ScalarType::Bool: arg.i = *static_cast<const bool*>(data); return true;
      case c10::ScalarType::Float: arg.f = *static_cast<const float*>(data); return true;
      case c10::ScalarType::Int: arg.i = *static_cast<const int32_t*>(data); return true;
      default: return false;
    }
  }

  void describe_tensor_argument(const at::Tensor& tensor, ir::AtenArg& arg, bridge::OpRecord& record) {
    if (!tensor.defined()) return;
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      arg.kind = ir::AtenArg::kNumberTensor;
      if (!number_value(tensor, arg)) refuse(record, "complex number");
      return;
    }
    arg.kind = ir::AtenArg::kTensor;
    arg.operands = {add_tensor(tensor, record)};
    arg.ints = {tensor.requires_grad()};
  }

  void describe_value(const IValue& value, ir::AtenArg& arg, bridge::OpRecord& record) {
    using Arg = ir::AtenArg;
    if (value.isNone()) {
      arg.kind = Arg::kNone;
    } else if (value.isTensor()) {
      describe_tensor_argument(value.toTensor(), arg, record);
    } else if (value.isTensorList() || value.isOptionalTensorList()) {
      arg.kind = Arg::kTensorList;
      arg.is_optional_list = value.isOptionalTensorList();
      for (const IValue& element : value.toListRef()) {
        const at::Tensor tensor = element.isTensor() ? element.toTensor() : at::Tensor();
        arg.ints.push_back(tensor.defined() && tensor.requires_grad());
        arg.operands.push_back(add_tensor(tensor, record));
      }
    } else if (value.isInt()) {
      arg.kind = Arg::kInt;
      arg.i = value.toInt();
    } else if (value.isDouble()) {
      arg.kind = Arg::kFloat;
      arg.f = value.toDouble();
    } else if (value.isBool()) {
      arg.kind = Arg::kBool;
      arg.i = value.toBool();
    } else if (value.isString()) {
      arg.kind = Arg::kString;
      arg.s = value.toStringRef();
    } else if (value.isIntList()) {
      arg.kind = Arg::kIntList;
      arg.ints = value.toIntVector();
    } else if (value.isDoubleList()) {
      arg.kind = Arg::kFloatList;
      arg.floats = value.toDoubleVector();
    } else if (value.isBoolList()) {
      arg.kind = Arg::kBoolList;
      for (bool b : value.toBoolList()) arg.ints.push_back(b);
    } else if (value.isList()) {
      describe_scalar_list(value, arg, record);
    } else if (value.isDevice()) {
      arg.kind = Arg::kOpaque;
      const c10::Device device = value.toDevice();
      const bool current = device.is_cuda() && !device.has_index();  // the trace says which, wherever passes move the operation
      arg.i = intern_opaque(current ? c10::Device(c10::kCUDA, current_gpu()) : device);
    } else if (value.isGenerator()) {
      const at::Generator& generator = value.toGenerator();
      // The default generator is what no generator means; another one may be another object in each iteration.
      if (generator.defined() && generator != at::globalContext().defaultGenerator(generator.device())) {
        refuse(record, "explicit random generator");
      }
    } else {
      refuse(record, "argument of kind " + value.tagKind());
    }
  }

  // Scalar[] arguments arrive as generic lists.
  void describe_scalar_list(const IValue& value, ir::AtenArg& arg, bridge::OpRecord& record) {
    const auto elements = value.toListRef();
    bool all_ints = true, all_floats = true, all_bools = true;
    for (const IValue& element : elements) {
      all_ints &= element.isInt();
      all_floats &= element.isDouble();
      all_bools &= element.isBool();
    }
    if (all_ints) {
      arg.kind = ir::AtenArg::kIntList;
      for (const IValue& element : elements) arg.ints.push_back(element.toInt());
    } else if (all_floats) {
      arg.kind = ir::AtenArg::kFloatList;
      for (const IValue& element : elements) arg.floats.push_back(element.toDouble());
    } else if (all_bools) {
      arg.kind = ir::AtenArg::kBoolList;
      for (const IValue& element : elements) arg.ints.push_back(element.toBool());
    } else {
      refuse(record, "list of mixed values");
    }
  }

  void describe_call(const OperatorFacts& facts, const Stack& stack, size_t base, bridge::OpRecord& record,
                     std::vector<std::pair<const c10::TensorImpl*, int32_t>>& written) {
    ir::AtenCall& call = record.call;
    call.name = facts.name;
    call.overload = facts.overload;
    call.grad_mode = c10::GradMode::is_enabled() && !c10::InferenceMode::is_enabled();
    call.inference_mode = c10::InferenceMode::is_enabled();
    call.in_backward = autograd_engine_is_running();
    refuse(record, facts.unsupported);
    if (base::left_out(base::SwitchKind::kRecord, facts.name)) refuse(record, "left out by --disable");
    call.args.resize(stack.size() - base);
    for (size_t i = base; i < stack.size(); ++i) describe_value(stack[i], call.args[i - base], record);
    note_autocast(record);
    call.mutates.assign(facts.writes.begin(), facts.writes.end());
    for (const auto& write : facts.conditional_writes) {
      const IValue& when = stack[base + static_cast<size_t>(write.when)];
      const IValue& target = stack[base + static_cast<size_t>(write.argument)];
      if (!when.isBool() || !when.toBool() || !target.isTensor() || !target.toTensor().defined()) continue;
      call.mutates.push_back(write.argument);
    }
    for (int32_t argument : call.mutates) {
      const IValue& value = stack[base + static_cast<size_t>(argument)];
      const ir::AtenArg& arg = call.args[static_cast<size_t>(argument)];
      if (arg.kind == ir::AtenArg::kTensor) {
        written.emplace_back(value.toTensor().unsafeGetTensorImpl(), record.tensors[static_cast<size_t>(arg.operands[0])]);
        note_written(value.toTensor(), record);
        if (is_data(value.toTensor())) record.unversioned.push_back(argument);
      } else if (value.isTensorList()) {
        for (const IValue& item : value.toListRef()) note_written(item.toTensor(), record);
      }
    }
    if (!unwritten_.empty()) look_for_unwritten(facts, stack, base, record);
    call.is_random = facts.random && draws(facts, stack, base) && !base::seeded(base::Defect::kRandomKept);
    call.defines_sizes = facts.defines_sizes || (facts.checks_index && is_mask_index(stack, base));
    if (facts.lift_fresh) describe_lifted(stack[base].toTensor(), record);
  }

  // Where autocast has not handled the operation itself, it sees what the operation's kernel calls.
  void note_autocast(bridge::OpRecord& record) const {
    const auto tensor = std::find_if(record.tensors.begin(), record.tensors.end(), [](int32_t id) { return id >= 0; });
    if (tensor == record.tensors.end()) return;
    const auto device = static_cast<c10::DeviceType>(metas_[static_cast<size_t>(*tensor)].device_type);
    if (at::autocast::is_autocast_enabled(device)) record.call.autocast = static_cast<int8_t>(at::autocast::get_autocast_dtype(device));
  }

  // Memory that no operation has written holds what code outside of the dispatcher has put there, as at::tensor does with numbers: what such an operand
  // reads is kept as a constant where the call that is under way has made it, and known to nobody elsewhere.
  void look_for_unwritten(const OperatorFacts& facts, const Stack& stack, size_t base, bridge::OpRecord& record) {
    for (int32_t argument : record.call.mutates)
      for (int32_t operand : record.call.args[static_cast<size_t>(argument)].operands)
        if (operand >= 0) unwritten_.erase(storage_of(record.tensors[static_cast<size_t>(operand)]));
    const bool view = !facts.return_alias.empty() && facts.writes.empty() && std::all_of(facts.return_alias.begin(), facts.return_alias.end(), [](int alias) { return alias >= 0; });
    if (view || !facts.reads_data) return;
    const auto look = [&](const at::Tensor& tensor, int32_t id) {
      if (id < 0 || unwritten_.count(storage_of(id)) == 0 || tensor.numel() == 0) return;
      const auto made = std::find_if(records_.begin(), records_.end(), [&](const bridge::OpRecord& earlier) { return made_unwritten_.count(&earlier) != 0 && earlier.call.results[0] == id; });
      if (made == records_.end() || !tensor.device().is_cpu()) return refuse(record, "memory that no operation has written");
      c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView | DispatchKeySet(kRecordKey));
      ir::AtenArg constant;
      constant.kind = ir::AtenArg::kOpaque;
      constant.i = intern_opaque(tensor.clone());
      made->call.name = "aten::lift_fresh";
      made->call.overload.clear();
      made->call.args.assign(1, constant);
      made->tensors.clear();
      unwritten_.erase(storage_of(id));
    };
    for (size_t i = 0; i < record.call.args.size(); ++i) {
      const ir::AtenArg& arg = record.call.args[i];
      if (arg.kind == ir::AtenArg::kTensor) {
        look(stack[base + i].toTensor(), record.tensors[static_cast<size_t>(arg.operands[0])]);
      } else if (arg.kind == ir::AtenArg::kTensorList) {
        const auto elements = stack[base + i].toListRef();
        for (size_t k = 0; k < arg.operands.size(); ++k)
          if (elements[k].isTensor()) look(elements[k].toTensor(), record.tensors[static_cast<size_t>(arg.operands[k])]);
      }
    }
  }

  int32_t storage_of(int32_t id) const { return id < 0 ? -1 : metas_[static_cast<size_t>(id)].storage; }

  static bool draws(const OperatorFacts& facts, const Stack& stack, size_t base) {
    for (int argument : facts.probability_arguments) {
      const IValue& value = stack[base + static_cast<size_t>(argument)];
      if (value.isDouble() && value.toDouble() == 0.0) return false;
    }
    for (int argument : facts.training_arguments) {
      const IValue& value = stack[base + static_cast<size_t>(argument)];
      if (value.isBool() && !value.toBool()) return false;
    }
    return true;
  }

  static bool is_mask_index(const Stack& stack, size_t base) {
    const auto indices = stack[base + 1].toListRef();
    return std::any_of(indices.begin(), indices.end(), [](const IValue& index) {
      if (!index.isTensor() || !index.toTensor().defined()) return false;
      const c10::ScalarType type = index.toTensor().scalar_type();
      return type == c10::ScalarType::Bool || type == c10::ScalarType::Byte;
    });
  }

  // A tensor made from Python values: nothing that torch dispatches has written its data, so the record carries a copy of it. A single number
  // is recorded as a new tensor filled with it, for the caller to see where it comes from.
  void describe_lifted(const at::Tensor& tensor, bridge::OpRecord& record) {
    if (!record.unsupported.empty()) return;
    if (!tensor.defined() || !tensor.device().is_cpu()) {
      refuse(record, "lifted tensor on another device");
      return;
    }
    if (!tensor.storage().allocator()) {
      refuse(record, "memory shared with another library");
      return;
    }
    ir::AtenArg arg;
    record.tensors.clear();
    if (tensor.dim() == 0 && number_value(tensor, arg)) {
      const c10::ScalarType type = tensor.scalar_type();
      arg.kind = c10::isFloatingType(type) ? ir::AtenArg::kFloat : type == c10::ScalarType::Bool ? ir::AtenArg::kBool : ir::AtenArg::kInt;
      ir::AtenArg no_sizes, dtype, none;
      no_sizes.kind = ir::AtenArg::kIntList;
      dtype.kind = ir::AtenArg::kInt;
      dtype.i = static_cast<int64_t>(type);
      none.kind = ir::AtenArg::kNone;
      record.call.name = "aten::full";
      record.call.overload.clear();
      record.call.args = {no_sizes, arg, dtype, none, none, none};
      return;
    } else {
      c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView | DispatchKeySet(kRecordKey));
      arg.kind = ir::AtenArg::kOpaque;
      arg.i = intern_opaque(tensor.clone());
    }
    record.call.args.assign(1, arg);
  }

  // squeeze_ and the like: to a tensor that the same call has made, and that nobody has seen yet, it is the view of its name.
  void describe_moved(int32_t old_id, bridge::OpRecord& record) {
    static const std::set<std::string> views = {"aten::squeeze_", "aten::unsqueeze_", "aten::t_", "aten::transpose_", "aten::swapdims_", "aten::swapaxes_",
                                             "aten::as_strided_"};
    bool made_here = false;
    for (const bridge::OpRecord& earlier : records_) {
      const auto& results = earlier.call.results;
      made_here = made_here || (&earlier != &record && std::find(results.begin(), results.end(), old_id) != results.end());
    }
    if (!made_here || !views.count(record.call.name)) {
      refuse(record, "changes a tensor's geometry in place");
      return;
    }
    record.call.name.pop_back();
    if (record.call.name == "aten::transpose") record.call.overload = "int";
    record.call.mutates.clear();
    record.call.moves = true;
  }

  void add_result(const at::Tensor& tensor, int schema_alias, const std::vector<int32_t>& argument_storages, bridge::OpRecord& record,
                  const std::vector<std::pair<const c10::TensorImpl*, int32_t>>& written) {
    ir::AtenCall& call = record.call;
    int32_t id = -1, alias = -1;
    if (tensor.defined()) {
      if (const char* reason = refusal_of(tensor)) {
        refuse(record, reason);
      } else {
        const bool is_separate = separate_.count(tensor.storage().unsafeGetStorageImpl()) != 0 && record.call.mutates.empty() && own_ids_.count(tensor.unsafeGetTensorImpl()) == 0;
        id = is_separate ? own_id(tensor) : id_of(tensor);
        // What is so counts, not what the schema says: an operation may return its argument where the schema promises a new tensor.
        const int32_t storage = metas_[static_cast<size_t>(id)].storage;
        const auto shares = [&](size_t argument) {
          for (int32_t operand : call.args[argument].operands) {
            if (argument_storages[static_cast<size_t>(operand)] == storage) return true;
          }
          return false;
        };
        if (schema_alias >= 0 && shares(static_cast<size_t>(schema_alias))) alias = schema_alias;
        for (size_t i = 0; alias < 0 && i < call.args.size(); ++i) {
          const auto kind = call.args[i].kind;
          if ((kind == ir::AtenArg::kTensor || kind == ir::AtenArg::kTensorList) && shares(i)) alias = static_cast<int32_t>(i);
        }
        if (alias < 0 && schema_alias >= 0) {
          const auto kind = call.args[static_cast<size_t>(schema_alias)].kind;
          if (kind == ir::AtenArg::kTensor || kind == ir::AtenArg::kTensorList) refuse(record, "result should share its argument's storage but does not");
        }
        for (const auto& [impl, old_id] : written)
          if (impl == tensor.unsafeGetTensorImpl() && old_id != id) describe_moved(old_id, record);
      }
    }
    call.results.push_back(id);
    call.result_alias.push_back(alias);
  }

  void describe_results(const OperatorFacts& facts, const Stack& stack, size_t base, bridge::OpRecord& record,
                        const std::vector<std::pair<const c10::TensorImpl*, int32_t>>& written) {
    std::vector<int32_t> argument_storages;
    argument_storages.reserve(record.tensors.size());
    for (int32_t id : record.tensors) argument_storages.push_back(id < 0 ? -2 : metas_[static_cast<size_t>(id)].storage);
    for (size_t i = base; i < stack.size(); ++i) {
      const IValue& value = stack[i];
      const int alias = i - base < facts.return_alias.size() ? facts.return_alias[i - base] : -1;
      if (value.isTensor()) {
        add_result(value.toTensor(), alias, argument_storages, record, written);
      } else if (value.isTensorList()) {
        for (const IValue& element : value.toListRef()) add_result(element.toTensor(), alias, argument_storages, record, written);
      } else {
        record.call.results.push_back(-1);
        record.call.result_alias.push_back(-1);
        if (value.isInt()) {
          record.number = bridge::OpRecord::kIntNumber;
          record.int_value = value.toInt();
        } else if (value.isDouble()) {
          record.number = bridge::OpRecord::kFloatNumber;
          record.float_value = value.toDouble();
        } else if (value.isBool()) {
          record.number = bridge::OpRecord::kBoolNumber;
          record.int_value = value.toBool();
        }
      }
    }
    if (record.tensors.empty() && record.call.results.size() == 1 && record.call.results[0] >= 0 && !stack[base].toTensor().is_inference())
      record.counted = static_cast<uint32_t>(stack[base].toTensor()._version());
    if (facts.unwritten && !record.call.results.empty() && stack[base].isTensor() && stack[base].toTensor().numel() != 0 && record.call.results[0] >= 0) {
      made_unwritten_.insert(&record);
      unwritten_.insert(storage_of(record.call.results[0]));
    }
    // A number beside tensors follows from their geometry (the lengths that attention kernels give); one that comes alone has been read from data.
    for (int32_t result : record.call.results)
      if (result >= 0) record.number = bridge::OpRecord::kNoNumber;
  }

  std::mutex mutex_;  // autograd's threads record too
  bool paused_ = false;  // ... of a thread that is recorded
  std::deque<bridge::OpRecord> records_;
  std::deque<ir::TensorMeta> metas_;
  std::unordered_map<Look, int32_t, LookHash> ids_;
  std::unordered_map<int32_t, c10::weak_intrusive_ptr<c10::TensorImpl>> firsts_;  // the first tensor of each of these
  std::unordered_map<const c10::StorageImpl*, int32_t> storages_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storage_refs_;
  static constexpr const char* kWrittenOver = "memory that another tensor's storage lies on too, one of which is written";
  std::unordered_set<const c10::StorageImpl*> overlapping_, written_storages_, written_over_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> data_tensors_, own_counters_;
  std::unordered_set<int32_t> unwritten_;                // storages that hold nothing, or what no operation has put there
  std::unordered_set<const bridge::OpRecord*> made_unwritten_;  // of records_: what made them
  struct Counter {
    int32_t argument;
    uint32_t before;
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;  // weak: AccumulateGrad looks at how many hold a gradient
  };
  bridge::OpRecord* writing_ = nullptr;  // whose operands counters_ are of
  std::vector<Counter> counters_;
  std::unordered_set<const c10::StorageImpl*> separate_;  // memory that tensors with graphs of their own look at
  std::unordered_map<const c10::TensorImpl*, std::pair<int32_t, c10::weak_intrusive_ptr<c10::TensorImpl>>> own_ids_;
  int foreign_ = 0;                       // storages on memory that is not torch's
};

bool any_requires_grad(const Stack& stack, size_t arguments) {
  const auto wants = [](const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); };
  return std::any_of(stack.end() - static_cast<std::ptrdiff_t>(arguments), stack.end(), [&](const c10::IValue& value) {
    if (value.isTensor()) return wants(value.toTensor());
    if (!value.isTensorList()) return false;
    const c10::ArrayRef<c10::IValue> list = value.toListRef();
    return std::any_of(list.begin(), list.end(), [&](const c10::IValue& item) { return wants(item.toTensor()); });
  });
}

// No trace has lazily conjugated tensors (convert.h). Those that autograd's C++ code makes, as the gradients of complex products do, no script gets to see.
bool conjugates_in_gradient(const c10::OperatorHandle& op, const Stack& stack) {
  if (!autograd_engine_is_running() || op.operator_name().name != "aten::_conj" || PyGILState_Check() != 0) return false;
  return stack.back().toTensor().is_complex() && !stack.back().toTensor().is_conj();
}

void fallback(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const DispatchKeySet below = keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, kRecordKey);
  // Under inference mode composites arrive whole: let them decompose with the key still on. Their parts come here again. A composite for
  // which the backend has a kernel of its own (silu_backward) does not decompose.
  if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) && !op.hasKernelForDispatchKey(below.highestPriorityTypeId())) {
    op.redispatchBoxed(below, stack);
    return;
  }
  const auto redispatch = [&] {
    c10::impl::ExcludeDispatchKeyGuard guard(kRecordKey);
    op.redispatchBoxed(below, stack);
  };
  if (op.operator_name().name.compare(0, 10, "profiler::") == 0) {
    redispatch();
    return;
  }
  counted.fetch_add(1, std::memory_order_relaxed);
  if (autograd_engine_is_running()) counted_in_backward.fetch_add(1, std::memory_order_relaxed);
  else if (at::GradMode::is_enabled() && any_requires_grad(*stack, op.schema().arguments().size())) counted_differentiated.fetch_add(1, std::memory_order_relaxed);
  const bool recorded = c10::impl::tls_is_dispatch_key_included(kRecordedMark);
  RecorderImpl* recorder = recorded ? active_recorder.load(std::memory_order_acquire) : nullptr;
  if (recorder != nullptr) {
    if (conjugates_in_gradient(op, *stack)) {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      stack->back() = at::conj_physical(stack->back().toTensor());  // comes here again
      return;
    }
    recorder->record(op, stack, redispatch);
    return;
  }
  if (!counting.load(std::memory_order_relaxed)) c10::impl::tls_set_dispatch_key_included(kRecordKey, false);  // another thread has stopped it
  redispatch();
}

}  // namespace

void register_recording_fallback() {
  static torch::Library library(torch::Library::IMPL, "_", kRecordKey, __FILE__, __LINE__);
  static const bool once = (library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()), true);
  (void)once;
}

std::unique_ptr<bridge::Recorder> make_recorder() { return std::make_unique<RecorderImpl>(); }

void set_counting(bool on) {
  counting = on;
  if (!c10::impl::tls_is_dispatch_key_included(kRecordedMark)) c10::impl::tls_set_dispatch_key_included(kRecordKey, on && !keys_hidden());
}

void settle_keys() {
  const bool shown = !keys_hidden(), recorded = shown && recorded_here;
  c10::impl::tls_set_dispatch_key_included(kRecordKey, recorded || (shown && counting));
  c10::impl::tls_set_dispatch_key_included(kRecordedMark, recorded);
  c10::impl::tls_set_dispatch_key_excluded(kRecordedMark, recorded);
}

uint64_t ops_counted() { return counted.load(std::memory_order_relaxed); }
uint64_t differentiated_ops_counted() { return counted_differentiated.load(std::memory_order_relaxed); }
uint64_t backward_ops_counted() { return counted_in_backward.load(std::memory_order_relaxed); }

}  // namespace dynvm::torch_bridge
