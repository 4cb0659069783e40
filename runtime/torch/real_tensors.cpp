// Turning shadow values into the tensors that a script sees.
//
// Three cases, from WrapSpec:
//  - no graph: a tensor on the escaping storage. A view is made by the recorded view calls on the real base, so that `_base`, the version
//    counter and what in-place operations may do are those of eager. What detach() gives has no base: it needs no such calls.
//  - a graph that a backward() in the trace has freed: the same, with a node that raises torch's own error.
//  - a live graph: the calls in `forward` run once more, under autograd, on the real inputs. Effects are not repeated: inputs that the calls
//    write are replaced by copies from before the first write, and random calls draw from the generator state that the first run had.
//
// Where the trace has laid out memory in other strides than the script sees (ir::TensorMeta::shown), objects are made on one converted copy of it.
//
// What is made is kept for the iteration, so that several wraps share bases, version counters and one graph.
// Tests: tests/torch.
#include <algorithm>
#include <cstring>
#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/TensorOptions.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "runtime/torch/call_modes.h"
#include "runtime/torch/calls_again.h"
#include "runtime/torch/graph_nodes.h"
#include "runtime/torch/function_nodes.h"
#include "runtime/torch/python_tensor.h"
#include "runtime/torch/recorder.h"
#include "runtime/torch/session.h"

namespace dynvm::torch_bridge {
namespace {

using c10::IValue;
using Kind = bridge::StorageSpec::Kind;

// What is run again is what was recorded below autocast; and the recorder must not see it.
c10::DispatchKeySet keys_not_rerun() { return c10::autocast_dispatch_keyset | c10::DispatchKeySet(kRecordKey); }

at::Tensor copy_number(const at::Tensor& number) {
  const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  at::Tensor copy = number.clone();
  copy.unsafeGetTensorImpl()->set_wrapped_number(number.unsafeGetTensorImpl()->is_wrapped_number());
  return copy;
}

}  // namespace

at::Tensor SessionImpl::tensor_over(const c10::Storage& storage, const TensorPlan& plan, int64_t shift_bytes) {
  const c10::Device device(static_cast<c10::DeviceType>(plan.meta.device_type), plan.meta.device_index);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(c10::computeDispatchKey(plan.type, std::nullopt, device)),
                                                              caffe2::TypeMeta::fromScalarType(plan.type));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(plan.meta.sizes, plan.meta.strides, plan.meta.offset + shift_bytes / ir::dtype_size(plan.meta.dtype));
  return tensor;
}

const TensorPlan& SessionImpl::plan_now(int32_t number, TensorPlan* opened) const {
  const TensorPlan& plan = program_.tensors[static_cast<size_t>(number)];
  if (plan.meta.open == 0 && plan.meta.shown.empty()) return plan;
  if (!plan.meta.shown.empty()) {
    *opened = plan;
    opened->meta.strides = plan.meta.shown;
    return *opened;
  }
  const at::Tensor& shadow = shadows_[static_cast<size_t>(number)];
  *opened = plan;
  opened->meta.sizes = shadow.sizes().vec();
  opened->meta.strides = shadow.strides().vec();
  opened->meta.offset = shadow.storage_offset();
  return *opened;
}

// What nothing has written yet gets memory as it comes, which is what the script sees too; else something that should have brought it has not.
void SessionImpl::need_memory(size_t s) {
  if (storage_data_[s] != nullptr || bytes_now(s) == 0) return;
  TORCH_CHECK(program_.storages[s].spec.unwritten, "dynvm: a tensor escapes before it has a value");
  if (allocate(static_cast<int32_t>(s)) != 0) throw PythonRaised();
}

// An arena storage was not planned to escape: its contents are copied, and what follows in the trace goes on in the arena.
void SessionImpl::own_memory(size_t s) {
  StorageSlot& slot = storages_[s];
  if (slot.real) return;
  need_memory(s);
  if (slot.real) return;
  const StoragePlan& plan = program_.storages[s];
  const int64_t size = bytes_now(s);
  at::Tensor bytes = at::empty({size}, at::TensorOptions().dtype(at::kByte).device(plan.device));
  TensorPlan all;
  all.type = at::kByte;
  all.meta.dtype = ir::DType::kU8;
  all.meta.device_type = static_cast<int8_t>(plan.device.type());
  all.meta.device_index = plan.device.index();
  all.meta.sizes = {size};
  all.meta.strides = {1};
  if (size > 0) bytes.copy_(tensor_over(c10::Storage(slot.shadow), all, 0));
  slot.real = bytes.storage();
}

at::Tensor SessionImpl::as_shown(int32_t number) {
  const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  const at::Tensor& shadow = shadows_[static_cast<size_t>(number)];
  const ir::TensorMeta& meta = program_.tensors[static_cast<size_t>(number)].meta;
  if (meta.shown.empty()) return shadow.clone();
  need_memory(static_cast<size_t>(meta.storage));
  return at::empty_strided(meta.sizes, meta.shown, shadow.options()).copy_(shadow);
}

// Do they have one version counter? torch compares none: it is one pointer.
static bool count_together(const at::Tensor& a, const at::Tensor& b) {
  static_assert(sizeof(c10::VariableVersion) == sizeof(void*));
  return std::memcmp(&a.unsafeGetTensorImpl()->version_counter(), &b.unsafeGetTensorImpl()->version_counter(), sizeof(void*)) == 0;
}

// What the call gives that has made this view, of that base.
std::vector<at::Tensor> SessionImpl::view_again(const TensorPlan& plan, const at::Tensor& base) {
  const CallPlan& view = program_.calls[static_cast<size_t>(plan.view_call)];
  std::vector<IValue> stack = copy_arguments(calls_[static_cast<size_t>(plan.view_call)].arguments);
  for (const TensorPlace& place : view.tensors)
    replace_tensor(stack, place, place.argument == view.call.result_alias[static_cast<size_t>(plan.view_result)] ? base : shadows_[static_cast<size_t>(place.tensor)]);
  const ModesOfCall modes(view.call, device_of(view).type());
  view.op.callBoxed(&stack);
  std::vector<at::Tensor> results = flat_results(stack);
  // Nobody but this result looks at what _unsafe_view is given: it counts what is written there.
  if (results.size() == 1 && !base.is_inference() && !count_together(results[0], base)) results[0].unsafeGetTensorImpl()->set_version_counter(base.unsafeGetTensorImpl()->version_counter());
  return results;
}

at::Tensor SessionImpl::real_tensor(int32_t number, bool detach_base) {
  at::Tensor& made = real_[static_cast<size_t>(number)];
  if (made.defined()) return made;
  has_real_ = true;
  TensorPlan opened;
  const TensorPlan& plan = plan_now(number, &opened);
  const size_t s = static_cast<size_t>(plan.meta.storage);
  if (inputs_[static_cast<size_t>(number)].defined()) {
    const at::Tensor& input = inputs_[static_cast<size_t>(number)];
    return detach_base && input.requires_grad() ? input.detach() : input;
  }
  if (plan.view_call >= 0 && !plan.stands_alone) {
    const CallPlan& view = program_.calls[static_cast<size_t>(plan.view_call)];
    if (view.call.name == kFunctionOutput || view.call.name == kHooked) return made = real_tensor(plan.view_base, detach_base);  // the tensor itself
    // A view that needs no grad of a base that does was taken without grad mode, or of a detached look-alike of the base.
    const at::Tensor& rebuilt = graph_[static_cast<size_t>(plan.view_base)];
    at::Tensor base = rebuilt.defined() && !view.call.grad_mode ? rebuilt : real_tensor(plan.view_base, detach_base && view.call.grad_mode);
    const std::vector<at::Tensor> results = view_again(plan, base);
    for (size_t i = 0; i < results.size(); ++i) {
      const int32_t sibling = i < view.results.size() ? view.results[i] : -1;
      if (sibling < 0 || program_.tensors[static_cast<size_t>(sibling)].view_call != plan.view_call) continue;
      if (!real_[static_cast<size_t>(sibling)].defined()) real_[static_cast<size_t>(sibling)] = results[i];
    }
    if (made.defined()) return made;
  }
  use(s);  // memory that serves again is handed out with it, though nothing may have been written to it in this iteration
  StorageSlot& slot = storages_[s];
  if (!plan.meta.shown.empty() && !slot.shown) slot.shown = as_shown(number).storage();
  if (plan.meta.shown.empty() && !slot.real) own_memory(s);
  if (program_.storages[s].spec.kind == Kind::kInput) {
    // Something that looks at a bound storage, but whose making was not recorded: a view of the bound tensor.
    for (int32_t bound : bound_) {
      if (program_.tensors[static_cast<size_t>(bound)].meta.storage != plan.meta.storage) continue;
      const at::Tensor base = inputs_[static_cast<size_t>(bound)].detach();
      made = base.as_strided(plan.meta.sizes, plan.meta.strides, plan.meta.offset + slot.shift / ir::dtype_size(plan.meta.dtype));
      return made;
    }
  }
  const c10::InferenceMode kind(plan.meta.inference);
  made = plan.meta.shown.empty() ? tensor_over(slot.real, plan, slot.shift) : tensor_over(slot.shown, plan, 0);
  if (!made.is_inference()) {
    if (!slot.has_counter) {
      slot.counter = c10::VariableVersion(slot.pending_version);
      slot.has_counter = true;
    }
    made.unsafeGetTensorImpl()->set_version_counter(slot.counter);
    share_memory(s);
  }
  if (plan.stands_alone) made.unsafeGetTensorImpl()->set_allow_tensor_metadata_change(false);
  return made;
}

// The script has this value of a rebuilt graph, or one that shares its memory.
void SessionImpl::note_rebuilt(int32_t number, const at::Tensor& value) {
  const size_t s = static_cast<size_t>(program_.tensors[static_cast<size_t>(number)].meta.storage);
  if (inputs_[static_cast<size_t>(number)].defined() || kind(s) == Kind::kInput) return;
  use(s);
  if (!storages_[s].shared) storages_[s].rebuilt = value.storage();
  share_memory(s);
}

// All tensors that the script has of one storage lie on one memory and count versions together. Those of a rebuilt graph were computed anew: where there are
// others, they go to the memory of these.
void SessionImpl::share_memory(size_t s) {
  StorageSlot& slot = storages_[s];
  if (!slot.shared && slot.rebuilt && slot.has_counter) slot.shared = move_rebuilt(s, true);
}

// Unseen by version counters.
static void copy_bytes(const c10::Storage& from, const c10::Storage& to) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const int64_t bytes = static_cast<int64_t>(std::min(from.nbytes(), to.nbytes()));
  const auto all = [bytes](const c10::Storage& storage) { return at::empty({0}, at::TensorOptions().dtype(at::kByte).device(storage.device())).set_(storage, 0, {bytes}, {1}); };
  all(to).copy_(all(from));
}

// to_shared: to that memory; else back to what they were computed into, for an operation of the graph that writes. False: they lie otherwise there.
bool SessionImpl::move_rebuilt(size_t s, bool to_shared) {
  StorageSlot& slot = storages_[s];
  const c10::Storage& shared = slot.shown ? slot.shown : slot.real;
  const c10::Storage &from = to_shared ? slot.rebuilt : shared, &to = to_shared ? shared : slot.rebuilt;
  std::vector<at::Tensor> moving, staying;
  for (int32_t number : program_.storages[s].tensors) {
    TensorPlan opened;
    const ir::TensorMeta& meta = plan_now(number, &opened).meta;
    for (const at::Tensor& tensor : {graph_[static_cast<size_t>(number)], real_[static_cast<size_t>(number)]}) {
      if (!tensor.defined()) continue;
      const bool moves = tensor.storage().is_alias_of(from);
      if (moves && (tensor.sizes() != meta.sizes || tensor.strides() != meta.strides || tensor.storage_offset() != meta.offset)) return false;
      (moves ? moving : staying).push_back(tensor);
    }
  }
  if (moving.empty()) return false;
  // The graph may compare what it has computed (which of equal elements a maximum was), and kernels round otherwise: all that it goes through is what it has computed.
  if (to_shared && !program_.storages[s].spec.changed) copy_bytes(from, to);
  for (const at::Tensor& tensor : moving) tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(to);
  if (!to_shared) return true;
  // What an operation gave as tensors that count versions each for itself (unsafe_chunk) keeps doing so.
  if (std::any_of(moving.begin(), moving.end(), [&](const at::Tensor& each) { return !count_together(each, moving.front()); })) return true;
  // What the graph saves of a tensor knows the counter that the tensor had.
  const c10::VariableVersion& counter = moving.front().unsafeGetTensorImpl()->version_counter();
  while (counter.current_version() < slot.counter.current_version()) moving.front().unsafeGetTensorImpl()->bump_version();
  slot.counter = counter;
  for (const at::Tensor& tensor : staying)
    if (tensor.storage().is_alias_of(to) && !tensor.is_inference()) tensor.unsafeGetTensorImpl()->set_version_counter(counter);
  return true;
}

// With a graph that a backward() has freed: an object that the script has of it already, or may get.
at::Tensor SessionImpl::freed_value(int32_t number, const std::string& grad_fn, int32_t output_nr) {
  at::Tensor value = real_tensor(number, true);
  if (value.requires_grad()) return value;
  if (handed_out_[static_cast<size_t>(number)] >= 0) value = value.detach();
  attach_freed_graph(value, grad_fn, output_nr);
  return value;
}

void SessionImpl::snapshot(size_t s) {
  if (cloned_[s].defined() || !storages_[s].real) return;
  has_real_ = true;
  const c10::Storage& real = storages_[s].real;
  const StoragePlan& plan = program_.storages[s];
  TensorPlan all;
  all.type = at::kByte;
  all.meta.dtype = ir::DType::kU8;
  all.meta.device_type = static_cast<int8_t>(plan.device.type());
  all.meta.device_index = plan.device.index();
  all.meta.sizes = {static_cast<int64_t>(real.nbytes())};
  all.meta.strides = {1};
  cloned_[s] = tensor_over(real, all, 0).clone();
}

// Of a copy that the trace made for itself: what it copied.
const at::Tensor& SessionImpl::graph_value(int32_t number) const {
  const at::Tensor& value = graph_[static_cast<size_t>(number)];
  const int32_t from = program_.tensors[static_cast<size_t>(number)].copy_of;
  return value.defined() || from < 0 ? value : graph_value(from);
}

bool SessionImpl::looks_at_input(int32_t number) const {
  while (!inputs_[static_cast<size_t>(number)].defined() && program_.tensors[static_cast<size_t>(number)].view_call >= 0) number = program_.tensors[static_cast<size_t>(number)].view_base;
  return inputs_[static_cast<size_t>(number)].defined();
}

at::Tensor SessionImpl::graph_operand(int32_t number, bool required_grad, const WrapPlan& plan) {
  at::Tensor& value = graph_[static_cast<size_t>(number)];
  if (value.defined()) return value;
  if (const TensorPlan& copy = program_.tensors[static_cast<size_t>(number)]; copy.copy_of >= 0 && (graph_value(number).defined() || !copy.meta.shown.empty()))
    return value = graph_operand(copy.copy_of, required_grad, plan);
  // A backward() has freed what is behind this one: it is no more than the value, with a node that raises torch's own error.
  for (const ir::FreedNode& freed : plan.spec.wrap.freed_behind) {
    if (freed.value == static_cast<ir::Ref>(number)) return value = freed_value(number, freed.grad_fn, freed.output_nr);
  }
  // A leaf that the trace has made, of memory of its own or of an input's: the tensor that the script has of it, or may get.
  for (size_t w = 0; w < program_.wraps.size() && !inputs_[static_cast<size_t>(number)].defined(); ++w) {
    const bridge::WrapSpec& leaf = program_.wraps[w].spec;
    if (leaf.tensor != number || !leaf.wrap.requires_grad || !leaf.wrap.is_leaf) continue;
    if (!wrapped_[w].defined()) wrapped_[w] = wrap_value(static_cast<int32_t>(w), program_.wraps[w]);
    return value = wrapped_[w];
  }
  TensorPlan opened;
  const TensorPlan& tensor = plan_now(number, &opened);
  const size_t s = static_cast<size_t>(tensor.meta.storage);
  if (program_.storages[s].spec.kind == Kind::kInput) {
    if (plan.writes_storage[s]) {
      const at::Tensor& input = inputs_[static_cast<size_t>(number)];
      TORCH_CHECK(!input.defined() || !input.requires_grad(), "dynvm: the graph cannot be rebuilt, for it writes an input that requires grad");
      snapshot(s);
      return value = tensor_over(cloned_[s].storage(), tensor, storages_[s].shift);
    }
    // What an operation in place made of a bound tensor is that tensor.
    auto same = [&](int32_t bound) {
      const ir::TensorMeta &a = program_.tensors[static_cast<size_t>(bound)].meta, &b = tensor.meta;
      return a.storage == b.storage && a.dtype == b.dtype && a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides;
    };
    auto bound = bound_.end();
    // Where several look alike, as a parameter and what detach() once made of it, the graph goes to the one that requires grad.
    if (required_grad) bound = std::find_if(bound_.begin(), bound_.end(), [&](int32_t each) { return same(each) && inputs_[static_cast<size_t>(each)].requires_grad(); });
    if (bound == bound_.end()) bound = std::find_if(bound_.begin(), bound_.end(), same);
    return value = real_tensor(bound == bound_.end() ? number : *bound, false);
  }
  // A tensor that Python has made of memory of the trace's.
  if (const at::Tensor& bound = inputs_[static_cast<size_t>(number)]; bound.defined()) return value = bound;
  // What looks at a bound tensor, where a number of the run says, is that view of it.
  if (!required_grad && looks_at_input(number)) return value = real_tensor(number, false);
  // Computed by a call that is not run again: a constant of the graph. It is copied, as the trace may write its memory later.
  value = as_shown(number);
  if (required_grad && value.is_floating_point()) value.set_requires_grad(true);  // a leaf that only the graph knows
  return value;
}

// The graph may keep a number's tensor: it needs one of its own, for the next iteration writes into this one.
static std::vector<IValue> arguments_now(const CallPlan& call, const CallState& state) {
  std::vector<IValue> stack = copy_arguments(state.arguments);
  for (const ScalarPlace& place : call.scalars) {
    if (place.as == ScalarPlace::kNumberTensor) stack[static_cast<size_t>(place.argument)] = copy_number(state.arguments[static_cast<size_t>(place.argument)].toTensor());
  }
  return stack;
}

// A call of the rebuilt graph, once an iteration.
void SessionImpl::run_once(int32_t number, const WrapPlan& plan) {
  if (rerun_[static_cast<size_t>(number)]) return;
  run_again(number, plan);
  rerun_[static_cast<size_t>(number)] = true;
}

void SessionImpl::run_again(int32_t number, const WrapPlan& plan) {
  const CallPlan& call = program_.calls[static_cast<size_t>(number)];
  CallState& state = calls_[static_cast<size_t>(number)];
  // detach() gives a tensor that looks the same, so what is used behind it may be either: uses of the detached one carry the mark that they required no grad.
  if (call.call.name == "aten::detach" && call.results.size() == 1 && !call.tensors.empty()) {
    const at::Tensor value = graph_operand(call.tensors[0].tensor, call.tensors[0].required_grad, plan);
    if (call.results[0] >= 0) graph_[static_cast<size_t>(call.results[0])] = value;
    return;
  }
  if (call.call.name == kFunctionOutput) {
    apply_function(call, number, plan);
    return;
  }
  if (call.call.name == kHooked) {
    const auto recipe = recipes_.find(number);
    TORCH_CHECK(recipe != recipes_.end(), "dynvm: the graph cannot be rebuilt, for a hook is not known");
    const at::Tensor value = graph_operand(call.tensors.at(0).tensor, true, plan);
    hook_again(recipe->second, value);
    graph_[static_cast<size_t>(call.results.at(0))] = value;
    return;
  }
  // What nodes stand for and the script has is there; and what writes it would write the script's tensor, which is the same one before and after that.
  // Of what nodes stand for and the script has not, the trace need not have kept the value: that is computed again, and leads to the node.
  const auto stands = [this](int32_t result) { return result < 0 || (script_has(result) && leads_to_node(result)); };
  if (std::any_of(call.results.begin(), call.results.end(), [](int32_t result) { return result >= 0; }) && std::all_of(call.results.begin(), call.results.end(), stands)) return;
  for (const TensorPlace& place : call.tensors) {
    const size_t s = static_cast<size_t>(program_.tensors[static_cast<size_t>(place.tensor)].meta.storage);
    if (storages_[s].shared && std::count(call.call.mutates.begin(), call.call.mutates.end(), place.argument) != 0) storages_[s].shared = !move_rebuilt(s, false);
  }
  std::vector<IValue> stack = arguments_now(call, state);
  for (const TensorPlace& place : call.tensors) {
    at::Tensor value = graph_operand(place.tensor, place.required_grad, plan);
    if (!place.required_grad && value.requires_grad()) value = value.detach();
    replace_tensor(stack, place, std::move(value));
  }
  const ModesOfCall modes(call.call, device_of(call).type());
  // Python's factories, as torch.zeros, keep from version counters how they fill what they make.
  std::optional<at::AutoDispatchBelowADInplaceOrView> uncounted;
  if (call.tensors.empty()) uncounted.emplace();
  if (call.call.is_random) {
    TORCH_CHECK(state.generator.defined() || state.drawn, "dynvm: the graph cannot be rebuilt, for ", call.call.name, " has not drawn in this iteration");
    std::optional<GeneratorAt> drawn;
    std::optional<GeneratorState> earlier;
    if (state.drawn) drawn.emplace(*state.drawn);
    else earlier.emplace(state.generator);
    call.op.callBoxed(&stack);
  } else {
    call.moving.value_or(call.op).callBoxed(&stack);
  }
  const std::vector<at::Tensor> results = flat_results(stack);
  for (size_t i = 0; i < results.size() && i < call.results.size(); ++i) {
    const int32_t result = call.results[i];
    if (result < 0 || (script_has(result) && leads_to_node(result))) continue;
    at::Tensor& value = graph_[static_cast<size_t>(result)];
    value = results[i];
    if (!nodes_.has(result)) continue;
    value = value.detach();
    nodes_.lead_to(result, value);
  }
}

// Is there memory that the script sees for it? Else its value may be gone, or may never have been in memory.
bool SessionImpl::script_has(int32_t tensor) const {
  const int32_t storage = program_.tensors[static_cast<size_t>(tensor)].meta.storage;
  return storages_[static_cast<size_t>(storage)].real || program_.storages[static_cast<size_t>(storage)].spec.kind == Kind::kInput;
}

// Has this value a node of its own? Then that is what the graphs behind it lead to: hooks and gradients of the script's tensor are those of the node.
bool SessionImpl::leads_to_node(int32_t tensor) { return nodes_.has(tensor) && output_of_nodes(tensor).defined(); }

// The script's tensor that is an output of a node, or a view of one by the calls that eager made it by; undefined: neither.
const at::Tensor& SessionImpl::output_of_nodes(int32_t tensor) {
  at::Tensor& value = graph_[static_cast<size_t>(tensor)];
  if (value.defined()) return value;
  const TensorPlan& plan = program_.tensors[static_cast<size_t>(tensor)];
  if (const at::Tensor base = plan.view_call < 0 || plan.stands_alone ? at::Tensor() : output_of_nodes(plan.view_base); base.defined()) {
    const std::vector<int32_t>& siblings = program_.calls[static_cast<size_t>(plan.view_call)].results;
    const std::vector<at::Tensor> results = view_again(plan, base);
    for (size_t i = 0; i < results.size() && i < siblings.size(); ++i) {
      const int32_t sibling = siblings[i];
      if (sibling == tensor || (sibling >= 0 && !nodes_.has(sibling) && !graph_[static_cast<size_t>(sibling)].defined())) graph_[static_cast<size_t>(sibling)] = results[i];
    }
  }
  if (!nodes_.has(tensor)) return value;
  if (!value.defined()) value = saved_value(tensor);
  nodes_.lead_to(tensor, value);
  return value;
}

// Of the k-th call that this wrap runs again and that is no operation of torch's.
void SessionImpl::set_recipe(int32_t wrap, int32_t index, PyObject* recipe) {
  for (int32_t number : program_.wraps[static_cast<size_t>(wrap)].spec.forward) {
    const std::string& name = program_.calls[static_cast<size_t>(number)].call.name;
    if ((name != kFunctionOutput && name != kHooked) || index-- > 0) continue;
    has_real_ = true;
    PyObject*& known = recipes_[number];
    Py_INCREF(recipe);
    Py_XSETREF(known, recipe);
    return;
  }
}

// All outputs of the Function's call get their graph.
void SessionImpl::apply_function(const CallPlan& call, int32_t number, const WrapPlan& plan) {
  const auto recipe = recipes_.find(number);
  TORCH_CHECK(recipe != recipes_.end(), "dynvm: the graph cannot be rebuilt, for a Function's context is not known");
  std::vector<int32_t> outputs;
  std::vector<at::Tensor> inputs;
  for (const TensorPlace& place : call.tensors) {
    if (place.argument == 1) outputs.push_back(place.tensor);
    if (place.argument != 2) continue;
    at::Tensor value = graph_operand(place.tensor, place.required_grad, plan);
    inputs.push_back(!place.required_grad && value.requires_grad() ? value.detach() : value);
  }
  const std::vector<int64_t>& layout = call.call.args[3].ints;
  const ModesOfCall modes(call.call, device_of(call).type());
  const std::vector<at::Tensor> made = apply_again(recipe->second, [&](size_t k) { return graph_operand(outputs[k], false, plan); }, inputs, layout);
  for (size_t other = 0; other < program_.calls.size(); ++other) {
    const CallPlan& each = program_.calls[other];
    if (each.call.name != kFunctionOutput || each.call.args[3].ints[0] != layout[0]) continue;
    if (each.results[0] >= 0) graph_[static_cast<size_t>(each.results[0])] = made[static_cast<size_t>(each.call.args[3].ints[1])];
    rerun_[other] = true;
  }
}

// As a node saves it, or what a graph is made of again: the script's tensor, or one beside it on the same memory.
at::Tensor SessionImpl::saved_value(int32_t tensor) {
  const at::Tensor& input = inputs_[static_cast<size_t>(tensor)];
  return input.defined() ? input : real_tensor(tensor, true).detach();
}

// As it is now, where the script's tensor is about to be written.
at::Tensor SessionImpl::value_to_keep(int32_t tensor) {
  const at::Tensor value = saved_value(tensor);
  return program_.storages[static_cast<size_t>(program_.tensors[static_cast<size_t>(tensor)].meta.storage)].spec.late ? copy_with_graph(value) : value;
}

void SessionImpl::make_node(const ir::GraphNode& node, const WrapPlan& plan, std::shared_ptr<ForwardAgain>* forward) {
  if (*forward == nullptr) {
    *forward = std::make_shared<ForwardAgain>(plan.repeated);
    for (int32_t leaf : plan.repeated->leaves) (*forward)->leaf(leaf, value_to_keep(leaf));
    for (size_t k = 0; k < plan.repeated->calls.size(); ++k) {
      const CallState& state = calls_[static_cast<size_t>(plan.repeated->numbers[k])];
      if (plan.repeated->calls[k].call.is_random) (*forward)->random(k, {state.generator, state.drawn});
      if (!plan.repeated->calls[k].scalars.empty()) (*forward)->arguments(k, arguments_now(plan.repeated->calls[k], state));
    }
  }
  NodeParts parts{&node, {}, {}, {}, {}, {}, *forward};
  for (ir::Ref output : node.outputs) parts.outputs.push_back(shadows_[output]);
  for (ir::Ref input : node.inputs) parts.inputs.push_back(nodes_.has(static_cast<int32_t>(input)) ? at::Tensor() : inputs_[input]);
  for (const ir::CallNumber& number : node.numbers) {
    const size_t argument = static_cast<size_t>(number.argument);
    const IValue& value = calls_[number.call].arguments[argument];
    const at::Scalar as_run = value.isTensor() ? value.toTensor().item() : value.toScalar();  // of the tensor's type (convert_numbers)
    const bool whole = ir::is_integer(program_.calls[number.call].call.args[argument].dtype);
    parts.numbers.push_back(whole ? at::Scalar(as_run.toLong()) : at::Scalar(as_run.toDouble()));
  }
  for (ir::Ref saved : node.saved) {
    parts.saved.push_back(value_to_keep(static_cast<int32_t>(saved)));
    const auto storage = static_cast<size_t>(program_.tensors[saved].meta.storage);
    if (!plan.writes_storage[storage]) (*forward)->saved(static_cast<int32_t>(saved), parts.saved.back());  // else it is what the last write has left
  }
  for (ir::Ref sized : node.sized) parts.sized.push_back(shadows_[sized].sizes().vec());
  nodes_.make(std::move(parts));
}

at::Tensor SessionImpl::wrap_with_nodes(int32_t number, const WrapPlan& plan) {
  // Hooks are to be given what eager saves; and what a rebuilt graph goes through is a part of that.
  const bool rebuilt = std::find(rerun_.begin(), rerun_.end(), true) != rerun_.end();
  if (saved_tensor_hooks_active() || rebuilt) return wrap_live(plan);
  const int32_t tensor = plan.spec.tensor;
  std::shared_ptr<ForwardAgain> forward;
  for (const ir::GraphNode& node : plan.spec.wrap.nodes)
    if (!nodes_.has(static_cast<int32_t>(node.outputs.at(0)))) make_node(node, plan, &forward);
  handed_out_[static_cast<size_t>(tensor)] = number;
  const at::Tensor& value = output_of_nodes(tensor);
  TORCH_CHECK(value.defined(), "dynvm: no node of the graph gives ", plan.spec.wrap.grad_fn);
  return value;
}

at::Tensor SessionImpl::wrap_live(const WrapPlan& plan) {
  has_real_ = true;
  for (int32_t number : plan.spec.forward) run_once(number, plan);
  const at::Tensor& value = graph_value(plan.spec.tensor);
  TORCH_CHECK(value.defined(), "dynvm: the graph of ", plan.spec.wrap.grad_fn, " cannot be rebuilt, for no call gives its value");
  const std::string name = grad_fn_name(value);
  TORCH_CHECK(name == plan.spec.wrap.grad_fn, "dynvm: the rebuilt graph ends in ", name.empty() ? "nothing" : name, ", not in ", plan.spec.wrap.grad_fn);
  note_rebuilt(plan.spec.tensor, value);
  return value;
}

at::Tensor SessionImpl::wrap_value(int32_t number, const WrapPlan& plan) {
  const int32_t tensor = plan.spec.tensor;
  const ir::Wrap& wrap = plan.spec.wrap;
  if (wrap.requires_grad && !wrap.is_leaf && !wrap.freed) return wrap.nodes.empty() ? wrap_live(plan) : wrap_with_nodes(number, plan);
  const size_t t = static_cast<size_t>(tensor);
  at::Tensor value;
  const bool freed = wrap.requires_grad && wrap.freed;
  if (const at::Tensor& graph = graph_value(tensor); graph.defined() && !graph.is_same(real_[t])) {
    // Its value is in Python already, as part of a graph: share that memory. A freed one may be a result of a call of which another result lives.
    value = freed && handed_out_[t] < 0 ? graph : graph.detach();
    note_rebuilt(tensor, graph);
    if (!real_[t].defined()) real_[t] = value;
    handed_out_[t] = number;
  } else {
    value = freed && handed_out_[t] < 0 ? freed_value(tensor, wrap.grad_fn, wrap.output_nr) : real_tensor(tensor, true);
    // A wrap is a new object: of an input, or of a value that another wrap gave away, it is another tensor on the same memory.
    if (!real_[t].defined() || handed_out_[t] >= 0 || value.requires_grad() != freed) {
      value = value.detach();
    } else {
      handed_out_[t] = number;
    }
  }
  if (freed && !value.requires_grad()) attach_freed_graph(value, wrap.grad_fn, wrap.output_nr);
  if (wrap.requires_grad && wrap.is_leaf) {
    const c10::InferenceMode kind(program_.tensors[t].meta.inference);
    value.set_requires_grad(true);
  }
  return value;
}

int SessionImpl::rebuild(const int32_t* calls, const int32_t* wraps, int32_t count) {
  return guarded_call([&] {
    const c10::InferenceMode as_recorded(false);
    const c10::impl::ExcludeDispatchKeyGuard guard(keys_not_rerun());
    has_real_ = true;
    try {
      for (int32_t k = 0; k < count; ++k) run_once(calls[k], program_.wraps[static_cast<size_t>(wraps[k])]);
    } catch (const PythonRaised&) {
      return -1;
    }
    return 0;
  });
}

PyObject* SessionImpl::wrap(int32_t number) {
  PyObject* object = nullptr;
  guarded_call([&] {
    at::Tensor& wrapped = wrapped_[static_cast<size_t>(number)];
    if (!wrapped.defined()) {
      const c10::InferenceMode as_recorded(false);  // an exit may be in another mode than what is wrapped was made in
      const c10::impl::ExcludeDispatchKeyGuard guard(keys_not_rerun());
      has_real_ = true;
      try {
        wrapped = wrap_value(number, program_.wraps[static_cast<size_t>(number)]);
      } catch (const PythonRaised&) {
        return -1;
      }
    }
    object = to_python(wrapped);
    return object ? 0 : -1;
  });
  return object;
}

}  // namespace dynvm::torch_bridge
