// Running a program's calls on shadow tensors; see session.h.
#include "runtime/torch/session.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/COW.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstring>
#include <mutex>

#include "ir/arrange.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/switches.h"
#include "runtime/torch/block_pool.h"
#include "runtime/torch/call_modes.h"
#include "runtime/torch/convert.h"
#include "runtime/torch/python_tensor.h"
#include "runtime/torch/recorder.h"
#include "runtime/torch/small_work.h"
#include "runtime/torch/torch_state.h"

namespace dynvm::torch_bridge {
namespace {

using c10::IValue;
using Kind = bridge::StorageSpec::Kind;

// Below autograd, autocast and the recorder: what the recorded operations were.
c10::DispatchKeySet keys_above_calls() {
  return c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset | c10::DispatchKeySet(kRecordKey);
}

int run_plain(const auto& body) {
  try {
    body();
    return 0;
  } catch (...) {
    set_python_error(std::current_exception());
    return -1;
  }
}

}  // namespace

int SessionImpl::begin_run() {
  const int status = run_plain([&] {
    for (size_t k = 0; k < arenas_.size(); ++k) take(k);
  });
  if (status < 0) end_run();
  return status;
}

void SessionImpl::end_run() {
  while (taken_ > 0)
    if (const ArenaRef& block = arenas_[--taken_]) give_back(*block);
}

void SessionImpl::take(size_t k) {
  ArenaRef block;
  if (arena_bytes_[k] > 0 || program_.arranges) block = take_arena(program_.arenas[k].device, static_cast<size_t>(arena_bytes_[k]), arenas_[k]);
  taken_ = k + 1;
  if (block == arenas_[k]) return;
  arenas_[k] = block;
  if (block) point_into_arena(k);
}

void SessionImpl::point_into_arena(size_t k) {
  char* memory = static_cast<char*>(arenas_[k]->memory.get());
  for (size_t s = 0; s < program_.storages.size(); ++s)
    if (program_.storages[s].arena == static_cast<int32_t>(k) && !apart_[s]) point(s, memory + arena_offsets_[s]);
}

void SessionImpl::place(std::vector<ir::Piece> pieces) {
  ir::arrange(&pieces);
  std::fill(arena_bytes_.begin(), arena_bytes_.end(), 0);
  for (size_t s = 0; s < pieces.size(); ++s) {
    if (program_.storages[s].arena < 0 || apart_[s]) continue;
    arena_offsets_[s] = pieces[s].offset;
    int64_t& bytes = arena_bytes_[static_cast<size_t>(program_.storages[s].arena)];
    bytes = std::max(bytes, pieces[s].offset + pieces[s].bytes);
  }
}

int SessionImpl::rearrange(std::vector<ir::Piece> pieces) {
  const bool running = taken_ > 0;
  end_run();
  for (size_t s = 0; s < pieces.size(); ++s) {
    if (program_.storages[s].arena < 0) continue;
    apart_[s] = pieces[s].bytes == 0;
    point(s, nullptr);
  }
  place(std::move(pieces));
  arenas_.assign(arenas_.size(), nullptr);
  return running ? begin_run() : 0;
}

int SessionImpl::arrange() {
  if (arranged_) return 0;
  std::vector<ir::Piece> pieces(storages_.size());
  for (size_t s = 0; s < pieces.size(); ++s) {
    const StoragePlan& plan = program_.storages[s];
    if (plan.arena < 0) continue;
    pieces[s] = {plan.spec.first, plan.spec.last, bytes_now(s), 0};
    if (plan.spec.symbolic) storages_[s].shadow->set_nbytes(static_cast<size_t>(pieces[s].bytes));
  }
  place(std::move(pieces));
  return run_plain([&] {
    for (size_t k = 0; k < arenas_.size(); ++k) {
      if (static_cast<int64_t>(arenas_[k]->bytes) < arena_bytes_[k]) {
        give_back(*arenas_[k]);
        arenas_[k] = take_arena(program_.arenas[k].device, static_cast<size_t>(arena_bytes_[k]), nullptr);
      }
      point_into_arena(k);
    }
    arranged_ = true;
  });
}

SessionImpl::SessionImpl(ProgramImpl& program) : program_(program) {
  const c10::InferenceMode ordinary(false);  // shadows are ordinary tensors whatever mode is on now
  const size_t tensors = program.tensors.size(), storages = program.storages.size();
  storage_data_.resize(storages);
  storages_.resize(storages);
  apart_.assign(storages, false);
  arenas_.resize(program.arenas.size());
  for (const ProgramImpl::Arena& arena : program.arenas) arena_bytes_.push_back(arena.bytes);
  for (const StoragePlan& plan : program.storages) arena_offsets_.push_back(program.arranges ? 0 : plan.spec.arena_offset);
  arranged_ = !program.arranges;
  symbols_.assign(program.tensors_of_symbol.size(), 0);
  symbol_told_.assign(symbols_.size(), 0);
  laid_out_.assign(tensors, 0);
  size_t inputs = 0;
  for (size_t s = 0; s < storages; ++s) {
    const StoragePlan& plan = program.storages[s];
    storages_[s].shadow = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), static_cast<size_t>(plan.bytes),
                                                                 c10::DataPtr(nullptr, plan.device), nullptr, /*resizable=*/false);
    inputs += plan.spec.kind == Kind::kInput;
  }
  size_t capacity = 8;
  while (capacity < inputs * 4) capacity *= 2;
  claims_.resize(capacity);
  for (const TensorPlan& plan : program.tensors) {
    at::Tensor shadow = tensor_over(c10::Storage(storages_[static_cast<size_t>(plan.meta.storage)].shadow), plan, 0);
    if (plan.meta.wrapped_number) shadow.unsafeGetTensorImpl()->set_wrapped_number(true);
    shadows_.push_back(std::move(shadow));
  }
  for (const CallPlan& plan : program.calls) {
    CallState& state = calls_.emplace_back();
    state.arguments = plan.constants;
    // Lists and number tensors are shared by reference with the plan: each session needs its own.
    for (IValue& argument : state.arguments) {
      if (argument.isList()) argument = IValue(argument.toList().copy());
    }
    for (const TensorPlace& place : plan.tensors) {
      IValue& argument = state.arguments[static_cast<size_t>(place.argument)];
      if (place.element < 0) {
        argument = shadows_[static_cast<size_t>(place.tensor)];
      } else {
        argument.toList().set(static_cast<size_t>(place.element), IValue(shadows_[static_cast<size_t>(place.tensor)]));
      }
    }
    for (const ScalarPlace& place : plan.scalars) {
      IValue& argument = state.arguments[static_cast<size_t>(place.argument)];
      if (place.as == ScalarPlace::kNumberTensor) {
        at::Tensor copy = argument.toTensor().clone();
        copy.unsafeGetTensorImpl()->set_wrapped_number(argument.toTensor().unsafeGetTensorImpl()->is_wrapped_number());
        argument = copy;
      }
    }
    if (plan.how == CallHow::kDirect || plan.how == CallHow::kOut) {
      for (size_t i = 0; i < plan.results.size(); ++i) {
        const int32_t result = plan.results[i];
        if (result >= 0) {
          state.results.push_back(shadows_[static_cast<size_t>(result)]);
        } else {
          state.results.push_back(at::empty({0}, at::TensorOptions().device(device_of(plan)).dtype(plan.result_types[i])));
        }
      }
    }
  }
  inputs_.resize(tensors);
  real_.resize(tensors);
  graph_.resize(tensors);
  handed_out_.assign(tensors, -1);
  wrapped_.resize(program.wraps.size());
  cloned_.resize(storages);
  rerun_.assign(program.calls.size(), false);
  face.storage_data = storage_data_.data();
  face.symbols = symbols_.data();
  face.impl = this;
  face.has_arenas = !arenas_.empty();
}

// With the context of what backs it, by which torch finds pinned memory that a copy has been queued from.
void SessionImpl::point(size_t storage, void* data) {
  storage_data_[storage] = data;
  const c10::Storage& real = storages_[storage].real;
  void* const context = real && data != nullptr ? real.data_ptr().get_context() : nullptr;
  storages_[storage].shadow->set_data_ptr_noswap(c10::DataPtr(data, context, [](void*) {}, program_.storages[storage].device));
}

// Where the call works: numbers in the host's memory do not say so.
c10::Device SessionImpl::device_of(const CallPlan& plan) const {
  for (int32_t result : plan.results)
    if (result >= 0) return shadows_[static_cast<size_t>(result)].device();
  for (const TensorPlace& place : plan.tensors)
    if (const c10::Device device = shadows_[static_cast<size_t>(place.tensor)].device(); !device.is_cpu()) return device;
  return c10::Device(c10::kCPU);
}

void SessionImpl::use(size_t storage) {
  if (storages_[storage].in_use) return;
  storages_[storage].in_use = true;
  used_storages_.push_back(static_cast<int32_t>(storage));
}

// May these two storages of the program lie in one memory? Only where nobody writes either.
bool SessionImpl::may_share(int32_t one, int32_t other) const {
  return one == other || (!program_.storages[static_cast<size_t>(one)].spec.exclusive && !program_.storages[static_cast<size_t>(other)].spec.exclusive);
}

// Does an input bound before lie on this memory, with a storage of its own? Only foreign memory has more than one.
bool SessionImpl::overlaps_input(const c10::StorageImpl& real, bool foreign, int32_t storage) const {
  for (int32_t number : used_storages_) {
    const c10::Storage& other = storages_[static_cast<size_t>(number)].real;
    if (program_.storages[static_cast<size_t>(number)].spec.kind != Kind::kInput || !other || other.unsafeGetStorageImpl() == &real || may_share(storage, number)) continue;
    if ((foreign || is_foreign(other.data_ptr())) && overlap(real, *other.unsafeGetStorageImpl())) return true;
  }
  return false;
}

// The claim of this iteration on a real storage, or one of an earlier iteration where it may be put.
SessionImpl::Claim& SessionImpl::claim_on(const c10::StorageImpl* real) {
  const size_t mask = claims_.size() - 1;
  for (size_t at = (reinterpret_cast<size_t>(real) >> 4) * 0x9E3779B97F4A7C15ull >> 40;; ++at) {
    Claim& claim = claims_[at & mask];
    if (claim.iteration != iteration_ || claim.real == real) return claim;
  }
}

// False when another storage of the program that it may not share with stands for the same real one already: what was recorded as separate now overlaps.
bool SessionImpl::claims_storage(const c10::StorageImpl* real, int32_t storage) {
  Claim& claim = claim_on(real);
  if (claim.iteration != iteration_) {
    claim = {real, iteration_, storage, 1};
    return true;
  }
  if (!may_share(claim.storage, storage)) return false;
  claim.holders++;
  return true;
}

// Why `object` is not what `plan` says, or null.
static const char* const kOtherSizes = "other sizes";
static const char* const kOtherStrides = "other strides";
static const char* const kOtherSharing = "inputs that shared memory no longer do in the same way";
static const char* const kNowShared = "inputs that did not share memory now do";

bool sizes_fit(const ir::TensorMeta& meta, c10::IntArrayRef sizes, bool defined) {
  if (meta.open == 0) return sizes == meta.sizes;
  if (sizes.size() != meta.sizes.size()) return false;
  for (size_t d = 0; d < sizes.size(); ++d)
    if ((meta.open >> d & 1) == 0 ? sizes[d] != meta.sizes[d] : defined && sizes[d] < 2) return false;
  return true;
}

static const char* differs(const TensorPlan& plan, PyObject* object) {
  const bool fits = plan.meta.is_subclass ? is_tensor_object(object) : plan.meta.is_parameter ? is_plain_parameter(object) : is_plain_tensor(object);
  if (!fits) return "another Python type";
  const at::Tensor& tensor = unpack(object);
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (impl->key_set() != plan.keys) return "another kind of tensor";
  if (impl->dtype() != caffe2::TypeMeta::fromScalarType(plan.type)) return "another dtype";
  const bool other_sizes = !sizes_fit(plan.meta, impl->sizes(), true);
  const bool other_strides = (plan.meta.open & ir::kOpenLayout) == 0 && impl->strides() != plan.meta.strides;
  if (impl->device().index() != plan.meta.device_index) return "another device";
  if (impl->requires_grad() != plan.meta.requires_grad) return "another requires_grad";
  if (plan.meta.requires_grad && tensor.is_leaf() != plan.meta.is_leaf) return "another is_leaf";
  if (has_hooks(tensor) != plan.meta.has_hooks || (plan.meta.has_hooks && !has_python_hooks_only(object))) return "tensor hooks";
  return other_sizes ? kOtherSizes : other_strides ? kOtherStrides : nullptr;
}

const char* SessionImpl::refusal_of_input(int32_t number, PyObject* object) {
  const TensorPlan& plan = program_.tensors[static_cast<size_t>(number)];
  if (const char* reason = differs(plan, object)) return reason;
  const at::Tensor& tensor = unpack(object);
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const size_t s = static_cast<size_t>(plan.meta.storage);
  const StoragePlan& storage_plan = program_.storages[s];
  if (storage_plan.spec.late && tensor.is_view()) return "a view";
  StorageSlot& slot = storages_[s];
  if (plan.meta.symbolic) {
    if (!learn_symbols(plan, impl->sizes())) return kOtherSizes;
    if (!lies_as_planned(plan, impl->strides())) return kOtherStrides;
  }
  const c10::Storage& storage = impl->unsafe_storage();
  c10::StorageImpl* real = storage.unsafeGetStorageImpl();
  if (storage_plan.spec.kind != Kind::kInput && !slot.in_use) return "not an input storage";
  const int64_t element = ir::dtype_size(plan.meta.dtype);
  const bool placed_by_run = slot.in_use && (plan.meta.open & ir::kOpenLayout) != 0 && !plan.meta.symbolic;  // what is known of its offset is an example
  const int64_t offset = placed_by_run ? impl->storage_offset() - slot.shift / element : plan.meta.offset;
  const int64_t shift = (impl->storage_offset() - offset) * element;
  if (slot.in_use) {
    if (slot.real.unsafeGetStorageImpl() != real || slot.shift != shift) return kOtherSharing;
  } else {
    const bool open = plan.meta.open != 0;  // nothing is known of what else looks at it than that torch has made it so
    const auto holds = [&](int64_t first, int64_t last) { return first + shift >= 0 && last + shift <= static_cast<int64_t>(real->nbytes()); };
    if (!open && !holds(storage_plan.first_byte, storage_plan.last_byte)) {  // is there room for this tensor, and not for those that it has been recorded with?
      const ByteExtent own = byte_extent(plan.meta);
      return holds(own.first, own.last) ? kOtherSharing : "a smaller storage";
    }
    if (c10::impl::cow::is_cow_data_ptr(real->data_ptr())) return "copy-on-write storage";
    char* data = static_cast<char*>(const_cast<void*>(real->data())) + shift;
    // Vector loads on the GPU rely on the recorded alignment.
    if (plan.meta.device_type != 0 && reinterpret_cast<size_t>(data) % 16 != 0) return "another alignment";
    if (!claims_storage(real, plan.meta.storage)) return kNowShared;
    const bool foreign = is_foreign(real->data_ptr());
    if ((foreign || foreign_in_use_) && overlaps_input(*real, foreign, plan.meta.storage)) return kNowShared;
    foreign_in_use_ |= foreign;
    use(s);
    slot.real = storage;
    slot.shift = shift;
    if (open) slot.shadow->set_nbytes(real->nbytes());
    point(s, data);
  }
  if (plan.meta.open != 0 && !plan.meta.symbolic) shadows_[static_cast<size_t>(number)].unsafeGetTensorImpl()->set_sizes_and_strides(impl->sizes(), impl->strides(), offset);
  at::Tensor& input = inputs_[static_cast<size_t>(number)];
  if (!input.defined()) bound_.push_back(number);
  input = tensor;
  return nullptr;
}

int SessionImpl::bind_input(int32_t number, PyObject* object) {
  const char* reason = refusal_of_input(number, object);
  if (!reason) return 0;
  Refusal& refusal = last_refusal();
  refusal.reason = reason;
  refusal.by_sharing = reason == kOtherSharing || reason == kNowShared;
  refusal.by_geometry = reason == kOtherSizes || reason == kOtherStrides;
  if (refusal.by_geometry) {
    const at::Tensor& tensor = unpack(object);
    refusal.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
    refusal.strides.assign(tensor.strides().begin(), tensor.strides().end());
  }
  return 1;
}

SessionImpl::Refusal& SessionImpl::last_refusal() {
  static thread_local Refusal refusal;
  return refusal;
}

int SessionImpl::check_state(int32_t state) {
  face.watched = at::hasCallbacks() ? 1 : 0;
  for (c10::Device device : program_.draws_on)
    if (!can_draw(device)) return 1;
  const ir::TorchState& expected = program_.states[static_cast<size_t>(state)];
  ir::TorchState now = read_torch_state();
  if (expected.cuda_device >= 0) now.cuda_device = current_gpu();
  return now == expected ? 0 : 1;
}

// What runs while *shown lives has that name to who listens.
static void show(std::optional<at::RecordFunction>* shown, const char* name) {
  shown->emplace(at::RecordScope::FUNCTION);
  if ((*shown)->isActive()) (*shown)->before(name);
}

void SessionImpl::show_begin(const char* name) { show(&shown_, name); }

// Does nobody else have the storage?
static bool is_sole(const c10::Storage& storage) { return storage && storage.use_count() == 1 && storage.getWeakStorageImpl().weak_use_count() == 2; }

int SessionImpl::allocate(int32_t number) {
  const size_t s = static_cast<size_t>(number);
  StorageSlot& slot = storages_[s];
  const StoragePlan& plan = program_.storages[s];
  const size_t bytes = static_cast<size_t>(bytes_now(s));
  const bool reusable = is_sole(slot.real) && slot.real.nbytes() == bytes;
  if (!reusable) {
    const int failed = guarded_call([&] {
      const c10::OptionalDeviceGuard device(plan.device.is_cpu() ? std::nullopt : std::optional(plan.device));
      c10::Allocator* allocator = c10::GetAllocator(plan.device.type());
      c10::DataPtr memory = plan.device.is_cpu() && !base::left_out(base::Part::kPool) && bytes >= static_cast<size_t>(base::heuristics().pooled_from) << 10 ? allocate_pooled(bytes) : allocator->allocate(bytes);
      slot.real = c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, std::move(memory), allocator, /*resizable=*/true));
      return 0;
    });
    if (failed) return -1;
    point(s, slot.real.mutable_data());
    if (plan.spec.symbolic) slot.shadow->set_nbytes(bytes);
  }
  use(s);
  return 0;
}

bool SessionImpl::hand_over(size_t from, size_t to) {
  StorageSlot &old = storages_[from], &slot = storages_[to];
  if (slot.real || (kind(from) != Kind::kLent && kind(from) != Kind::kResult) || program_.storages[to].spec.symbolic) return false;
  if (!is_sole(old.real) || static_cast<int64_t>(old.real.nbytes()) != bytes_now(to) || program_.storages[from].device != program_.storages[to].device) return false;
  slot.real = old.real;  // which keeps it until that is dropped: the work may be done call by call, and those that bring `to` put memory of their own there
  point(to, slot.real.mutable_data());
  use(to);
  return true;
}

void SessionImpl::put_scalars(const CallPlan& plan, CallState& state, const int64_t* scalars) {
  for (const ScalarPlace& place : plan.scalars) {
    const int64_t bits = scalars[place.scalar];
    double as_double;
    int64_t as_int;
    if (place.bits == ir::DType::kF64) {
      std::memcpy(&as_double, &bits, sizeof as_double);
      as_int = place.as == ScalarPlace::kFloat || place.as == ScalarPlace::kNumberTensor ? 0 : static_cast<int64_t>(as_double);
    } else {
      as_int = bits;
      as_double = static_cast<double>(bits);
    }
    IValue& argument = state.arguments[static_cast<size_t>(place.argument)];
    IValue value;
    switch (place.as) {
      case ScalarPlace::kInt: value = as_int; break;
      case ScalarPlace::kFloat: value = as_double; break;
      case ScalarPlace::kBool: value = as_int != 0; break;
      case ScalarPlace::kNumberTensor: {
        const at::Tensor& tensor = argument.toTensor();
        void* data = tensor.mutable_data_ptr();
        switch (tensor.scalar_type()) {
          case c10::ScalarType::Double: *static_cast<double*>(data) = as_double; break;
          case c10::ScalarType::Float: *static_cast<float*>(data) = place.bits == ir::DType::kF64 ? static_cast<float>(as_double) : static_cast<float>(bits); break;
          case c10::ScalarType::Long: *static_cast<int64_t*>(data) = as_int; break;
          case c10::ScalarType::Int: *static_cast<int32_t*>(data) = static_cast<int32_t>(as_int); break;
          case c10::ScalarType::Bool: *static_cast<bool*>(data) = as_int != 0; break;
          default: tensor.fill_(as_double);
        }
        continue;
      }
    }
    if (place.element < 0) {
      argument = std::move(value);
    } else {
      argument.toList().set(static_cast<size_t>(place.element), std::move(value));
    }
  }
}

int SessionImpl::call(int32_t number, const int64_t* scalars) {
  const CallPlan& plan = program_.calls[static_cast<size_t>(number)];
  if (plan.how == CallHow::kNothing) return 0;
  CallState& state = calls_[static_cast<size_t>(number)];
  const c10::impl::ExcludeDispatchKeyGuard below(keys_above_calls());
  const AutocastInside autocast(plan.call, plan.call.autocast < 0 ? c10::kCPU : device_of(plan).type());
  if (!plan.scalars.empty() || plan.keeps_generator || !plan.snapshots.empty()) {
    const int failed = run_plain([&] {
      for (int32_t storage : plan.snapshots) snapshot(static_cast<size_t>(storage));
      put_scalars(plan, state, scalars);
      if (plan.keeps_generator) {
        at::Generator generator = at::globalContext().defaultGenerator(device_of(plan));
        const std::lock_guard lock(generator.mutex());
        state.generator = generator.clone();
      }
    });
    if (failed) return -1;
  }
  for (int32_t storage : plan.allocates) {
    if (!storages_[static_cast<size_t>(storage)].in_use && allocate(storage) < 0) return -1;
  }
  if (plan.scratch) {
    for (size_t i = 0; i < plan.results.size(); ++i)
      if (plan.results[i] < 0) state.results[i].unsafeGetTensorImpl()->set_sizes_contiguous(int64_t{0});  // torch warns where it resizes what is not empty
  }
  const SmallWork small(plan.small);
  std::optional<at::RecordFunction> shown;  // the dispatcher shows what it calls
  if (face.watched != 0 && (plan.how == CallHow::kDirect || plan.packs_weight)) show(&shown, plan.call.name.c_str());
  if (plan.how == CallHow::kDirect) return run_plain([&] { plan.direct.function(state.arguments.data(), state.results.data()); });
  if (plan.packs_weight) {
    bool done = false;
    if (const int status = run_packed(plan, state, &done); done || status != 0) return status;
  }
  return run_boxed(plan, state);
}

int SessionImpl::run_packed(const CallPlan& plan, CallState& state, bool* done) {
  return guarded_call([&] {
    const int32_t number = plan.results[0];
    const at::Tensor result = state.convolution.run(state.arguments, inputs_[static_cast<size_t>(plan.tensors[1].tensor)], shadows_[static_cast<size_t>(number)].numel());
    if (!result.defined()) return 0;
    *done = true;
    if (plan.how == CallHow::kOut) return state.results[0].copy_(result), 0;
    return take_result(number, result, plan, false) ? 0 : 1;
  });
}

int SessionImpl::set_numbers(int32_t number, const int64_t* scalars) {
  return run_plain([&] { put_scalars(program_.calls[static_cast<size_t>(number)], calls_[static_cast<size_t>(number)], scalars); });
}

int SessionImpl::run_boxed(const CallPlan& plan, CallState& state) {
  return guarded_call([&] {
    if (plan.how == CallHow::kOut && state.out_form != CallState::kRefused && run_out(plan, state)) return 0;
    torch::jit::Stack stack;
    stack = state.arguments;
    if (plan.how == CallHow::kMovedView) {
      return move_view(plan, state) ? 0 : 1;
    }
    plan.op.callBoxed(&stack);
    if (plan.how == CallHow::kInPlace) return 0;
    size_t at = 0;
    bool as_planned = true;
    const auto take = [&](const at::Tensor& result) {
      if (at >= plan.results.size()) {
        TORCH_CHECK(plan.how == CallHow::kOpen, plan.call.name, " returned more results than recorded");
        as_planned = false;
        return;
      }
      const int32_t number = plan.results[at];
      const bool view = plan.call.result_alias[at] >= 0;
      ++at;
      if (number < 0 || !as_planned) return;
      as_planned = take_result(number, result, plan, view);
    };
    for (const IValue& value : stack) {
      if (value.isTensorList()) {
        for (const IValue& element : value.toListRef()) take(element.toTensor());
      } else {
        take(value.isTensor() ? value.toTensor() : at::Tensor());
      }
    }
    if (as_planned && at == plan.results.size()) return 0;
    TORCH_CHECK(plan.leaves, plan.call.name, " returned a tensor of another shape than recorded");
    return 1;
  });
}

static bool looks_as_planned(const ir::TensorMeta& meta, const at::Tensor& view) {
  return view.sizes() == meta.sizes && view.strides() == meta.strides && view.storage_offset() == meta.offset;
}

// What a call has given. False: it is not as planned.
bool SessionImpl::take_result(int32_t number, const at::Tensor& result, const CallPlan& plan, bool view) {
  const TensorPlan& tensor = program_.tensors[static_cast<size_t>(number)];
  if (tensor.meta.symbolic) return adopt_symbolic(number, result, plan, view);
  if (tensor.meta.open != 0 || tensor.own_size) return adopt_open(number, result, plan, view);
  return view ? plan.scalars.empty() || looks_as_planned(tensor.meta, result) : adopt(number, result, plan);
}

// False: it has other sizes than recorded.
bool SessionImpl::adopt(int32_t number, const at::Tensor& result, const CallPlan& plan) {
  const TensorPlan& tensor = program_.tensors[static_cast<size_t>(number)];
  const size_t s = static_cast<size_t>(tensor.meta.storage);
  TORCH_CHECK(result.defined() && result.scalar_type() == tensor.type, plan.call.name, " returned a tensor of another type than recorded");
  TORCH_CHECK(result.device() == program_.storages[s].device, plan.call.name, " returned a tensor on another device than recorded");
  if (result.sizes() != tensor.meta.sizes) return false;
  if (program_.storages[s].spec.kind == Kind::kResult && lies_as_planned(tensor, result.strides())) {
    const c10::Storage& storage = result.storage();
    const int64_t shift = (result.storage_offset() - tensor.meta.offset) * ir::dtype_size(tensor.meta.dtype);
    if (program_.storages[s].first_byte + shift >= 0 && program_.storages[s].last_byte + shift <= static_cast<int64_t>(storage.nbytes())) {
      use(s);
      storages_[s].real = storage;
      storages_[s].shift = shift;
      point(s, static_cast<char*>(const_cast<void*>(storage.data())) + shift);
      return true;
    }
  }
  if (program_.storages[s].spec.kind == Kind::kResult && allocate(tensor.meta.storage) < 0) TORCH_CHECK(false, "out of memory");
  shadows_[static_cast<size_t>(number)].copy_(result);
  return true;
}

// Is it an argument's memory? One that was not given back when it was recorded.
bool SessionImpl::is_of_argument(const c10::Storage& storage, const CallPlan& plan) const {
  return std::any_of(plan.tensors.begin(), plan.tensors.end(), [&](const TensorPlace& place) {
    return shadows_[static_cast<size_t>(place.tensor)].storage().unsafeGetStorageImpl() == storage.unsafeGetStorageImpl();
  });
}

// The shadow becomes what a call has given, whose sizes only this run knows. False: it is not even of the planned kind.
bool SessionImpl::adopt_open(int32_t number, const at::Tensor& result, const CallPlan& plan, bool view) {
  const TensorPlan& tensor = program_.tensors[static_cast<size_t>(number)];
  const size_t s = static_cast<size_t>(tensor.meta.storage);
  TORCH_CHECK(result.defined() && result.scalar_type() == tensor.type, plan.call.name, " returned a tensor of another type than recorded");
  if (!tensor.own_size && !sizes_fit(tensor.meta, result.sizes(), plan.call.defines_sizes)) return false;
  const c10::Storage& storage = result.storage();
  c10::StorageImpl* shadow = storages_[s].shadow.get();
  if (view) {
    if (storage.unsafeGetStorageImpl() != shadow) return false;
  } else {
    if (is_of_argument(storage, plan)) return false;
    TORCH_CHECK(program_.storages[s].spec.kind == Kind::kResult, "open sizes need a result storage");
    use(s);
    storages_[s].real = storage;
    storages_[s].shift = 0;
    shadow->set_nbytes(storage.nbytes());
    point(s, const_cast<void*>(storage.data()));
  }
  shadows_[static_cast<size_t>(number)].unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes(), result.strides(), result.storage_offset());
  return true;
}

int64_t SessionImpl::tensor_size(int32_t number, int32_t dim) const {
  const at::Tensor& tensor = shadows_[static_cast<size_t>(number)];
  return dim < 0 ? tensor.numel() : tensor.size(dim);
}

int SessionImpl::scalar_of(int32_t number, const void* element, int64_t* value) const {
  double d = 0;
  bool is_double = true;
  const c10::ScalarType type = program_.tensors[static_cast<size_t>(number)].type;
  switch (type) {
    case c10::ScalarType::Float: d = *static_cast<const float*>(element); break;
    case c10::ScalarType::Double: d = *static_cast<const double*>(element); break;
    case c10::ScalarType::Half: d = static_cast<float>(*static_cast<const c10::Half*>(element)); break;
    case c10::ScalarType::BFloat16: d = static_cast<float>(*static_cast<const c10::BFloat16*>(element)); break;
    default: is_double = false;
  }
  if (is_double) {
    std::memcpy(value, &d, sizeof d);
    return 0;
  }
  switch (type) {
    case c10::ScalarType::Long: *value = *static_cast<const int64_t*>(element); return 0;
    case c10::ScalarType::Int: *value = *static_cast<const int32_t*>(element); return 0;
    case c10::ScalarType::Short: *value = *static_cast<const int16_t*>(element); return 0;
    case c10::ScalarType::Char: *value = *static_cast<const int8_t*>(element); return 0;
    case c10::ScalarType::Byte: *value = *static_cast<const uint8_t*>(element); return 0;
    case c10::ScalarType::Bool: *value = *static_cast<const uint8_t*>(element) != 0; return 0;
    default: return 1;
  }
}

int SessionImpl::read_scalar(int32_t number, int64_t* value) {
  const at::Tensor& tensor = shadows_[static_cast<size_t>(number)];
  const ir::TensorMeta& meta = program_.tensors[static_cast<size_t>(number)].meta;
  if (tensor.numel() == 1 && meta.device_type == 0) {
    const char* base = static_cast<const char*>(storage_data_[static_cast<size_t>(meta.storage)]);
    if (scalar_of(number, base + tensor.storage_offset() * ir::dtype_size(meta.dtype), value) == 0) return 0;
  }
  return guarded_call([&] {
    const c10::impl::ExcludeDispatchKeyGuard below(keys_above_calls());
    TORCH_CHECK(tensor.numel() == 1, "a Tensor with ", tensor.numel(), " elements cannot be converted to Scalar");
    const at::Tensor host = tensor.cpu();
    TORCH_CHECK(scalar_of(number, host.const_data_ptr(), value) == 0, "a ", tensor.scalar_type(), " tensor cannot be read as a real number");
    return 0;
  });
}

int SessionImpl::bump_version(int32_t number, int32_t by) {
  // A view has its base's counter.
  while (!inputs_[static_cast<size_t>(number)].defined() && program_.tensors[static_cast<size_t>(number)].view_base >= 0) {
    number = program_.tensors[static_cast<size_t>(number)].view_base;
  }
  const int32_t storage = program_.tensors[static_cast<size_t>(number)].meta.storage;
  StorageSlot& slot = storages_[static_cast<size_t>(storage)];
  const at::Tensor* input = &inputs_[static_cast<size_t>(number)];
  if (!input->defined()) {
    // Something on a bound storage whose making was not recorded: all tensors there share one counter.
    for (int32_t bound : bound_) {
      if (program_.tensors[static_cast<size_t>(bound)].meta.storage == storage) input = &inputs_[static_cast<size_t>(bound)];
    }
  }
  if (input->defined()) {
    if (input->is_inference()) return 0;
    for (int32_t i = 0; i < by; ++i) input->unsafeGetTensorImpl()->bump_version();
  } else if (slot.has_counter) {
    for (int32_t i = 0; i < by; ++i) slot.counter.bump();
  } else {
    use(static_cast<size_t>(storage));
    slot.pending_version += static_cast<uint32_t>(by);
  }
  return 0;
}

void SessionImpl::end_iteration() {
  if (has_real_) {
    for (at::Tensor& t : real_) t.reset();
    for (at::Tensor& t : graph_) t.reset();
    for (at::Tensor& t : wrapped_) t.reset();
    for (at::Tensor& t : cloned_) t.reset();
    handed_out_.assign(handed_out_.size(), -1);
    rerun_.assign(rerun_.size(), false);
    nodes_.clear();
    for (auto& [call, recipe] : recipes_) Py_DECREF(recipe);
    recipes_.clear();
    has_real_ = false;
  }
  for (int32_t t : bound_) inputs_[static_cast<size_t>(t)].reset();
  bound_.clear();
  for (int32_t number : used_storages_) {
    const size_t s = static_cast<size_t>(number);
    StorageSlot& slot = storages_[s];
    slot.in_use = false;
    slot.shown = slot.rebuilt = c10::Storage();
    slot.shared = false;
    slot.shift = 0;
    slot.pending_version = 0;
    if (slot.has_counter) {
      slot.has_counter = false;
      slot.counter = c10::VariableVersion(0);
    }
    const Kind kind = this->kind(s);
    if (kind == Kind::kFresh && serves_again(s)) continue;
    slot.real = c10::Storage();
    if (kind != Kind::kArena) point(s, nullptr);
  }
  used_storages_.clear();
  foreign_in_use_ = false;
  for (int32_t number : program_.generator_calls) {
    calls_[static_cast<size_t>(number)].generator = at::Generator();
    calls_[static_cast<size_t>(number)].drawn.reset();
  }
  ++iteration_;
  if (face.has_arenas) age_arenas();
}

// Nobody else holds it, and it is not much of a GPU's.
bool SessionImpl::serves_again(size_t s) const {
  const c10::Storage& real = storages_[s].real;
  if (real.use_count() != 1) return false;
  return !program_.storages[s].device.is_cuda() || (program_.keeps_small && real.nbytes() < static_cast<size_t>(base::heuristics().cuda_kept) << 10);
}

void SessionImpl::drop_storage(int32_t number) {
  const size_t s = static_cast<size_t>(number);
  const Kind kind = this->kind(s);
  if (!storages_[s].real || (kind != Kind::kResult && kind != Kind::kLent && kind != Kind::kInput && kind != Kind::kFresh)) return;
  if (!program_.has_graphs && (kind == Kind::kFresh || kind == Kind::kResult)) {
    for (int32_t tensor : program_.storages[s].tensors) real_[static_cast<size_t>(tensor)].reset();
    for (int32_t wrap : program_.storages[s].wraps) wrapped_[static_cast<size_t>(wrap)].reset();
  }
  if (kind == Kind::kFresh && serves_again(s)) return;
  if (kind == Kind::kInput) {
    for (int32_t tensor : bound_)
      if (program_.tensors[static_cast<size_t>(tensor)].meta.storage == number) inputs_[static_cast<size_t>(tensor)].reset();
    Claim& claim = claim_on(storages_[s].real.unsafeGetStorageImpl());
    if (--claim.holders == 0) claim.real = nullptr;  // another storage may come to lie where this one was
  }
  storages_[s].real = c10::Storage();
  point(s, nullptr);
}

void SessionImpl::drop_caches() {
  for (size_t s = 0; s < storages_.size(); ++s) {
    if (kind(s) == Kind::kArena || !storages_[s].real) continue;
    storages_[s].real = c10::Storage();
    point(s, nullptr);
  }
}

const bridge::SessionFunctions& session_functions() {
  static const auto of = [](bridge::Session* session) { return static_cast<SessionImpl*>(session->impl); };
  static const bridge::SessionFunctions functions{
      [](bridge::Session* s, int32_t tensor, PyObject* object) { return of(s)->bind_input(tensor, object); },
      [](bridge::Session* s, int32_t state) { return of(s)->check_state(state); },
      [](bridge::Session* s, int32_t storage) { return of(s)->allocate(storage); },
      [](bridge::Session* s, int32_t call, const int64_t* scalars) { return of(s)->call(call, scalars); },
      [](bridge::Session* s, int32_t tensor, int64_t* value) { return of(s)->read_scalar(tensor, value); },
      [](bridge::Session* s, int32_t tensor, int32_t by) { return of(s)->bump_version(tensor, by); },
      [](bridge::Session* s, int32_t call, const int64_t* scalars) { return of(s)->set_numbers(call, scalars); },
      [](bridge::Session* s, const int32_t* calls, const int32_t* wraps, int32_t count) { return of(s)->rebuild(calls, wraps, count); },
      [](bridge::Session* s, int32_t wrap) { return of(s)->wrap(wrap); },
      [](bridge::Session* s) { of(s)->end_iteration(); },
      [](bridge::Session* s, int32_t tensor, int32_t dim) { return of(s)->tensor_size(tensor, dim); },
      [](bridge::Session* s) { return of(s)->begin_run(); },
      [](bridge::Session* s) { of(s)->end_run(); },
      [](bridge::Session* s) { return of(s)->arrange(); },
      [](bridge::Session* s, int32_t wrap, int32_t index, PyObject* recipe) { of(s)->set_recipe(wrap, index, recipe); },
      [](bridge::Session* s, int32_t storage) { of(s)->drop_storage(storage); },
      [](bridge::Session* s, const char* name) { of(s)->show_begin(name); },
      [](bridge::Session* s) { of(s)->show_end(); },
      [](bridge::Session* s, int32_t tensor, const void* element, int64_t* value) { return of(s)->scalar_of(tensor, element, value); },
      [](bridge::Session* s, int32_t call) { return of(s)->seed(call); },
      [](bridge::Session* s, int32_t call, int64_t increment, int64_t* offset) { return of(s)->draw(call, increment, offset); },
  };
  return functions;
}

}  // namespace dynvm::torch_bridge
