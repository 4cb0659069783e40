// Preparing programs; see program.h.
#include "runtime/torch/program.h"

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/TensorOptions.h>

#include <algorithm>
#include <stdexcept>
#include <set>

#include "runtime/base/heuristics.h"
#include "runtime/base/switches.h"
#include "runtime/torch/convert.h"
#include "runtime/torch/packed_convolution.h"
#include "runtime/torch/session.h"
#include "runtime/torch/small_work.h"

namespace dynvm::torch_bridge {
namespace {

using c10::IValue;
using ir::AtenArg;

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error(message); }

std::string full_name(const ir::AtenCall& call) { return call.overload.empty() ? call.name : call.name + "." + call.overload; }

const c10::Type* list_element(const c10::Argument& argument) {
  const c10::Type* type = argument.real_type().get();
  if (const auto* optional = type->castRaw<c10::OptionalType>()) type = optional->getElementType().get();
  const auto* list = type->castRaw<c10::ListType>();
  return list ? list->getElementType().get() : nullptr;
}

c10::TypeKind plain_kind(const c10::Argument& argument) {
  const c10::Type* type = argument.real_type().get();
  if (const auto* optional = type->castRaw<c10::OptionalType>()) type = optional->getElementType().get();
  return type->kind();
}

at::Tensor number_tensor(ir::DType dtype, double f, int64_t i) {
  const c10::ScalarType type = to_scalar_type(dtype);
  at::Tensor tensor = at::empty({}, at::TensorOptions().dtype(type).device(at::kCPU));
  if (c10::isFloatingType(type)) {
    tensor.fill_(f);
  } else {
    tensor.fill_(i);
  }
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

bool is_number_list(const c10::Argument& argument) {
  const c10::Type* element = list_element(argument);
  return element && element->kind() == c10::TypeKind::NumberType;
}

template <class T, class Values>
IValue make_list(const Values& values, bool of_numbers) {
  if (of_numbers) {
    c10::impl::GenericList list(c10::NumberType::get());
    for (const auto& value : values) list.push_back(IValue(static_cast<T>(value)));
    return list;
  }
  c10::List<T> list;
  for (const auto& value : values) list.push_back(static_cast<T>(value));
  return list;
}

ScalarPlace::As scalar_form(const AtenArg& arg, c10::TypeKind kind) {
  switch (kind) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return ScalarPlace::kInt;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType: return ScalarPlace::kFloat;
    case c10::TypeKind::BoolType: return ScalarPlace::kBool;
    default: break;
  }
  return arg.dtype == ir::DType::kF64 ? ScalarPlace::kFloat : arg.dtype == ir::DType::kBool ? ScalarPlace::kBool : ScalarPlace::kInt;
}

// The argument's constant value; tensors and run-time scalars leave a hole of the right shape and are noted in the plan.
IValue plan_argument(const AtenArg& arg, const c10::Argument& schema, int32_t position, const std::vector<int32_t>& operands, bool lifted, CallPlan& plan) {
  const auto operand = [&](size_t i) {
    const int32_t at = arg.operands.at(i);
    return at < 0 ? -1 : operands.at(static_cast<size_t>(at));
  };
  const auto required_grad = [&](size_t i) { return i >= arg.ints.size() || arg.ints[i] != 0; };
  switch (arg.kind) {
    case AtenArg::kNone:
      return schema.real_type()->kind() == c10::TypeKind::TensorType ? IValue(at::Tensor()) : IValue();
    case AtenArg::kTensor: {
      const int32_t tensor = operand(0);
      if (tensor >= 0) plan.tensors.push_back({position, -1, tensor, required_grad(0)});
      return IValue(at::Tensor());
    }
    case AtenArg::kTensorList: {
      for (size_t i = 0; i < arg.operands.size(); ++i) {
        if (operand(i) >= 0) plan.tensors.push_back({position, static_cast<int32_t>(i), operand(i), required_grad(i)});
      }
      if (arg.is_optional_list) {
        c10::List<std::optional<at::Tensor>> list;
        for (size_t i = 0; i < arg.operands.size(); ++i) list.push_back(std::nullopt);
        return list;
      }
      c10::List<at::Tensor> list;
      for (size_t i = 0; i < arg.operands.size(); ++i) list.push_back(at::Tensor());
      return list;
    }
    case AtenArg::kInt: return arg.i;
    case AtenArg::kFloat: return arg.f;
    case AtenArg::kBool: return arg.i != 0;
    case AtenArg::kString: return arg.s;
    case AtenArg::kIntList: return make_list<int64_t>(arg.ints, is_number_list(schema));
    case AtenArg::kFloatList: return make_list<double>(arg.floats, is_number_list(schema));
    case AtenArg::kBoolList: return make_list<bool>(arg.ints, is_number_list(schema));
    case AtenArg::kNumberTensor: return number_tensor(arg.dtype, arg.f, arg.i);
    case AtenArg::kOpaque: return opaque(arg.i);
    case AtenArg::kScalarTensor: {
      const ir::DType bits = is_floating(arg.dtype) ? ir::DType::kF64 : arg.dtype == ir::DType::kBool ? ir::DType::kBool : ir::DType::kI64;
      plan.scalars.push_back({ScalarPlace::kNumberTensor, position, -1, operand(0), bits});
      IValue value = number_tensor(arg.dtype, 0, 0);
      if (lifted) value.toTensor().unsafeGetTensorImpl()->set_wrapped_number(false);
      return value;
    }
    case AtenArg::kScalar: {
      if (const c10::Type* element = list_element(schema)) {
        const ScalarPlace::As as = scalar_form(arg, element->kind());
        for (size_t i = 0; i < arg.operands.size(); ++i) plan.scalars.push_back({as, position, static_cast<int32_t>(i), operand(i), arg.dtype});
        const bool numbers = is_number_list(schema);
        const std::vector<int64_t> zeros(arg.operands.size(), 0);
        if (as == ScalarPlace::kFloat) return make_list<double>(zeros, numbers);
        if (as == ScalarPlace::kBool) return make_list<bool>(zeros, numbers);
        return make_list<int64_t>(zeros, numbers);
      }
      plan.scalars.push_back({scalar_form(arg, plain_kind(schema)), position, -1, operand(0), arg.dtype});
      return IValue();
    }
  }
  fail("unknown argument kind");
}

bool only_aliases(const ir::AtenCall& call) {
  for (size_t i = 0; i < call.results.size(); ++i) {
    if (call.results[i] >= 0 && call.result_alias[i] < 0) return false;
  }
  return true;
}

bool has_results(const ir::AtenCall& call) {
  return std::any_of(call.results.begin(), call.results.end(), [](int32_t r) { return r >= 0; });
}

std::optional<c10::OperatorHandle> find_operator(const ir::AtenCall& call) {
  return c10::Dispatcher::singleton().findSchema(c10::OperatorName(call.name, call.overload));
}

}  // namespace

std::vector<IValue> make_arguments(const ir::AtenCall& call, const c10::OperatorHandle& handle, const std::function<at::Tensor(int32_t)>& tensor) {
  const auto& schema = handle.schema();
  if (call.args.size() != schema.arguments().size()) fail("wrong number of arguments for " + full_name(call));
  std::vector<int32_t> positions;  // each operand stands for itself
  for (const AtenArg& arg : call.args)
    for (int32_t operand : arg.operands)
      for (int32_t next = static_cast<int32_t>(positions.size()); next <= operand; ++next) positions.push_back(next);
  CallPlan plan(handle);
  std::vector<IValue> stack;
  const bool lifted = operator_facts(handle).lift_fresh;
  for (size_t i = 0; i < call.args.size(); ++i) stack.push_back(plan_argument(call.args[i], schema.arguments()[i], static_cast<int32_t>(i), positions, lifted, plan));
  for (const ScalarPlace& place : plan.scalars)
    if (place.element < 0 && place.as != ScalarPlace::kNumberTensor)
      stack[static_cast<size_t>(place.argument)] = place.as == ScalarPlace::kFloat ? IValue(0.0) : place.as == ScalarPlace::kBool ? IValue(false) : IValue(int64_t{0});
  for (const TensorPlace& place : plan.tensors) {
    IValue& value = stack[static_cast<size_t>(place.argument)];
    if (place.element < 0) {
      value = tensor(place.tensor);
    } else if (value.isTensorList()) {
      value.toTensorList().set(static_cast<size_t>(place.element), tensor(place.tensor));
    } else {
      value.toList().set(static_cast<size_t>(place.element), tensor(place.tensor));
    }
  }
  return stack;
}

CallHow classify(const ir::AtenCall& call, const OperatorFacts& facts, bool on_cpu, std::optional<OutOverload>* out, Direct* direct) {
  if (call.mutates.empty() && only_aliases(call)) {
    if (call.is_random) return CallHow::kFunctional;     // nothing to see of it, but the generator moves on
    if (call.results.empty()) return CallHow::kInPlace;  // it is there to raise, as _linalg_check_errors is
    return has_results(call) && ir::has_run_time_numbers(call) ? CallHow::kMovedView : CallHow::kNothing;
  }
  const bool plain = base::left_out(base::SwitchKind::kOp, call.name);
  if (!plain && !base::left_out(base::Part::kDirect)) *direct = find_direct(call.name, call.overload);
  if (facts.lift_fresh) *direct = find_direct(call.name, call.overload);
  if (direct->function && (on_cpu || direct->anywhere || facts.lift_fresh)) return CallHow::kDirect;
  if (only_aliases(call)) return CallHow::kInPlace;
  if (call.mutates.empty() && !plain && !base::left_out(base::Part::kOut)) {
    *out = find_out_overload(facts.handle);
    if (*out) return CallHow::kOut;
  }
  return CallHow::kFunctional;
}

ProgramImpl::ProgramImpl() = default;
ProgramImpl::~ProgramImpl() = default;

std::unique_ptr<ProgramImpl> ProgramImpl::build(const bridge::ProgramSpec& spec, std::string* error) {
  try {
    const c10::impl::ExcludeDispatchKeyGuard below(kModeKeys);
    std::unique_ptr<ProgramImpl> program(new ProgramImpl);
    program->states = spec.states;
    program->arranges = spec.arranges;
    program->keeps_small = spec.keeps_small;
    program->plan_storages(spec);
    program->plan_tensors(spec);
    for (const bridge::CallSpec& call : spec.calls) program->plan_call(call);
    for (const bridge::WrapSpec& wrap : spec.wraps) {
      program->storages[static_cast<size_t>(program->tensors.at(static_cast<size_t>(wrap.tensor)).meta.storage)].wraps.push_back(static_cast<int32_t>(program->wraps.size()));
      program->plan_wrap(wrap);
    }
    return program;
  } catch (const std::exception& e) {
    *error = e.what();
    return nullptr;
  }
}

void ProgramImpl::plan_storages(const bridge::ProgramSpec& spec) {
  for (const bridge::StorageSpec& storage : spec.storages) storages.push_back({storage, c10::Device(c10::kCPU), 0, 0, 0, -1});
  for (const ir::TensorMeta& meta : spec.tensors) {
    StoragePlan& plan = storages.at(static_cast<size_t>(meta.storage));
    const ByteExtent extent = meta.symbolic ? ByteExtent{} : byte_extent(meta);
    plan.device = c10::Device(static_cast<c10::DeviceType>(meta.device_type), meta.device_index);
    if (extent.last > extent.first) {
      plan.first_byte = plan.last_byte == 0 ? extent.first : std::min(plan.first_byte, extent.first);
      plan.last_byte = std::max(plan.last_byte, extent.last);
    }
  }
  for (StoragePlan& plan : storages) {
    plan.bytes = plan.spec.symbolic ? plan.last_byte : std::max(plan.spec.bytes, plan.last_byte);
    if (plan.spec.kind != bridge::StorageSpec::kArena) continue;
    if (plan.spec.bytes == 0 && (plan.bytes > 0 || plan.spec.symbolic)) continue;  // nothing touches it: its values stay inside a fused kernel
    if (plan.spec.arena_offset < 0 || plan.spec.arena_offset + plan.bytes > spec.arena_bytes) fail("a storage lies outside the arena");
    auto arena = std::find_if(arenas.begin(), arenas.end(), [&](const Arena& a) { return a.device == plan.device; });
    if (arena == arenas.end()) arena = arenas.insert(arena, Arena{plan.device, 0});
    if (!arranges) arena->bytes = std::max(arena->bytes, plan.spec.arena_offset + plan.bytes);
    plan.arena = static_cast<int32_t>(arena - arenas.begin());
  }
}

void ProgramImpl::plan_tensors(const bridge::ProgramSpec& spec) {
  tensors_of_symbol.resize(spec.symbols.size());
  for (const ir::SymbolSum& sum : spec.sums) {
    SumPlan& plan = sums.emplace_back(SumPlan{static_cast<size_t>(sum.symbol), {}});
    for (int64_t term : sum.terms)
      if (!ir::Product::of(term, spec.symbols, &plan.terms.emplace_back())) fail("a product of too many symbols");
  }
  for (const ir::TensorMeta& meta : spec.tensors) {
    TensorPlan plan;
    plan.meta = meta;
    has_graphs |= meta.requires_grad && !meta.is_leaf;
    if (!spec.copy_of.empty()) plan.copy_of = spec.copy_of.at(tensors.size());
    plan.type = to_scalar_type(meta.dtype);
    if (plan.type == c10::ScalarType::Undefined) fail("tensor of unknown dtype");
    const c10::Device device(static_cast<c10::DeviceType>(meta.device_type), meta.device_index);
    const c10::DispatchKeySet backend(c10::computeDispatchKey(plan.type, std::nullopt, device));
    const c10::InferenceMode mode(meta.inference);
    plan.keys = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, device)), backend,
                                                         caffe2::TypeMeta::fromScalarType(plan.type)).key_set();
    if (meta.symbolic) {
      const auto number = static_cast<int32_t>(tensors.size());
      const auto factor = [&](int64_t n) {
        ir::Product product;
        if (!ir::Product::of(n, spec.symbols, &product)) fail("a product of too many symbols");
        for (uint8_t k = 0; k < product.count; ++k) {
          std::vector<int32_t>& dependent = tensors_of_symbol[product.symbols[k]];
          if (dependent.empty() || dependent.back() != number) dependent.push_back(number);
        }
        return product;
      };
      for (int64_t size : meta.sizes) plan.sizes.push_back(factor(size));
      for (int64_t stride : meta.strides) plan.strides.push_back(factor(stride));
      plan.offset = factor(meta.offset);
    }
    storages[static_cast<size_t>(meta.storage)].tensors.push_back(static_cast<int32_t>(tensors.size()));
    tensors.push_back(std::move(plan));
  }
}

// A view of run-time numbers: memory of its own, which moves, or a place in its operand's.
void ProgramImpl::plan_view(CallPlan* plan) const {
  if (plan->results.size() != 1) fail("view of several results with run-time scalars: " + full_name(plan->call));
  if (plan->results[0] < 0) return;
  const auto storage_of = [this](int32_t tensor) { return tensors.at(static_cast<size_t>(tensor)).meta.storage; };
  const int32_t storage = storage_of(plan->results[0]);
  const bool in_place = std::any_of(plan->tensors.begin(), plan->tensors.end(), [&](const TensorPlace& place) { return storage_of(place.tensor) == storage; });
  if (in_place) plan->how = CallHow::kOpen;
  else if (storages.at(static_cast<size_t>(storage)).spec.kind != bridge::StorageSpec::kResult)
    fail("a view that a number of the run moves, of memory that does not move with it: " + full_name(plan->call));
}

void ProgramImpl::plan_call(const bridge::CallSpec& spec) {
  const auto handle = find_operator(spec.call);
  if (!handle) fail("unknown operator " + full_name(spec.call));
  const OperatorFacts& facts = operator_facts(*handle);
  const auto& schema = handle->schema();
  if (spec.call.args.size() != schema.arguments().size()) fail("wrong number of arguments for " + full_name(spec.call));
  CallPlan plan(*handle);
  plan.call = spec.call;
  if (plan.call.moves) plan.moving = c10::Dispatcher::singleton().findSchema({plan.call.name + "_", plan.call.name == "aten::transpose" ? "" : plan.call.overload});
  plan.results = spec.results;
  for (ir::DType type : spec.result_types) plan.result_types.push_back(to_scalar_type(type));
  if (plan.call.results.size() != plan.results.size() || plan.call.result_alias.size() != plan.results.size() || plan.result_types.size() != plan.results.size()) {
    fail("results of " + full_name(spec.call) + " do not match");
  }
  for (size_t i = 0; i < spec.call.args.size(); ++i) {
    plan.constants.push_back(plan_argument(spec.call.args[i], schema.arguments()[i], static_cast<int32_t>(i), spec.operands, facts.lift_fresh, plan));
  }

  bool on_cpu = true, small = true, open = false;
  const auto look = [&](int32_t tensor) {
    if (tensor < 0) return;
    const ir::TensorMeta& meta = tensors.at(static_cast<size_t>(tensor)).meta;
    on_cpu &= meta.device_type == 0;
    small &= meta.open == 0 && elements(meta) <= base::heuristics().serial_elements;
  };
  for (const TensorPlace& place : plan.tensors) look(place.tensor);
  bool checked = false;  // what comes is compared with what symbols say
  for (int32_t result : plan.results) {
    look(result);
    if (result < 0 || plan.call.follows) continue;
    open |= tensors[static_cast<size_t>(result)].meta.open != 0;
    checked |= tensors[static_cast<size_t>(result)].meta.symbolic;
  }
  // A result that only the recorded call had still decides how the call is run: the unused one gets scratch memory.
  plan.how = classify(plan.call, facts, on_cpu, &plan.out, &plan.direct);
  plan.leaves = plan.call.defines_sizes || (open && plan.call.mutates.empty() && (checked || only_aliases(plan.call)));
  if (plan.how == CallHow::kMovedView) {
    plan_view(&plan);
  } else if (open && plan.call.mutates.empty()) {  // what is written in place keeps its geometry
    plan.how = CallHow::kOpen;
  } else if (plan.call.defines_sizes) {
    plan.how = CallHow::kFunctional;  // what comes may have other sizes than the planned memory
  } else if (plan.call.follows && plan.call.mutates.empty() && only_aliases(plan.call)) {
    plan.how = CallHow::kNothing;     // symbols say where the view looks
  }
  plan.packs_weight = on_cpu && !base::left_out(base::Part::kPacked) && !base::left_out(base::SwitchKind::kOp, plan.call.name) && may_pack_weight(plan.call) && plan.results.size() == 1 && plan.results[0] >= 0 && plan.tensors.size() >= 2 && plan.tensors[1].argument == 1;
  plan.small = on_cpu && small && !plan.direct.product;

  if (plan.how == CallHow::kDirect) convert_numbers(plan);
  if (plan.how == CallHow::kDirect || plan.how == CallHow::kOut) {
    plan.scratch = plan.call.follows && std::count_if(plan.results.begin(), plan.results.end(), [](int32_t result) { return result < 0; }) != 0;
    for (int32_t result : plan.results) {
      if (result < 0) continue;
      const int32_t storage = tensors[static_cast<size_t>(result)].meta.storage;
      if (storages[static_cast<size_t>(storage)].spec.kind == bridge::StorageSpec::kResult) plan.allocates.push_back(storage);
    }
  }

  if (plan.call.stream.threads != 0 && !plan.tensors.empty()) {
    const c10::Device device = storages[static_cast<size_t>(tensors[static_cast<size_t>(plan.tensors[0].tensor)].meta.storage)].device;
    if (std::find(draws_on.begin(), draws_on.end(), device) == draws_on.end()) draws_on.push_back(device);
  }

  if (facts.own_size >= 0 && plan.how == CallHow::kFunctional && plan.results.at(static_cast<size_t>(facts.own_size)) >= 0)
    tensors[static_cast<size_t>(plan.results[static_cast<size_t>(facts.own_size)])].own_size = true;

  // Views define how a real tensor on an escaping storage is made: by the same call on its base.
  if (plan.call.mutates.empty() && !plan.call.moves) {
    const int32_t number = static_cast<int32_t>(calls.size());
    for (size_t i = 0; i < plan.results.size(); ++i) {
      const int32_t result = plan.results[i], alias = plan.call.result_alias[i];
      if (result < 0 || alias < 0) continue;
      TensorPlan& tensor = tensors.at(static_cast<size_t>(result));
      for (const TensorPlace& place : plan.tensors) {
        if (place.argument != alias || place.tensor == result || tensor.view_call >= 0) continue;
        // No circles: a view back to something that an earlier call made is that thing.
        bool circular = false;
        for (int32_t base = place.tensor; base >= 0; base = tensors[static_cast<size_t>(base)].view_base) circular |= base == result;
        if (circular) continue;
        tensor.view_call = number;
        tensor.view_result = static_cast<int32_t>(i);
        tensor.view_base = place.tensor;
        tensor.stands_alone = plan.call.name == "aten::detach" && storages[static_cast<size_t>(tensor.meta.storage)].spec.kind != bridge::StorageSpec::kInput;
      }
    }
  }
  // A tensor that a call computes is made by that call, whatever later looks the same.
  for (size_t i = 0; i < plan.results.size(); ++i) {
    if (plan.results[i] < 0 || plan.call.result_alias[i] >= 0) continue;
    TensorPlan& computed = tensors.at(static_cast<size_t>(plan.results[i]));
    computed.view_call = -1;
    computed.stands_alone = false;
  }
  calls.push_back(std::move(plan));
}

void ProgramImpl::plan_wrap(const bridge::WrapSpec& spec) {
  WrapPlan plan{spec, nullptr, std::vector<bool>(storages.size())};
  if (spec.tensor < 0 || static_cast<size_t>(spec.tensor) >= tensors.size()) fail("wrap of an unknown tensor");
  const bool needs_graph = spec.wrap.requires_grad && !spec.wrap.is_leaf && !spec.wrap.freed;
  if (needs_graph && spec.forward.empty()) fail("wrap of a tensor with a live graph (" + spec.wrap.grad_fn + ") needs the calls that rebuild it");
  for (int32_t number : spec.forward) {
    CallPlan& call = calls.at(static_cast<size_t>(number));
    if (call.call.is_random && !call.keeps_generator) {
      call.keeps_generator = true;
      generator_calls.push_back(number);
    }
    for (int32_t argument : call.call.mutates) {
      for (const TensorPlace& place : call.tensors) {
        if (place.argument != argument) continue;
        const int32_t storage = tensors[static_cast<size_t>(place.tensor)].meta.storage;
        plan.writes_storage[static_cast<size_t>(storage)] = true;
        const bool is_input = storages[static_cast<size_t>(storage)].spec.kind == bridge::StorageSpec::kInput;
        if (is_input && !std::count(call.snapshots.begin(), call.snapshots.end(), storage)) call.snapshots.push_back(storage);
      }
    }
  }
  if (!spec.wrap.nodes.empty()) plan.repeated = plan_repeated(spec);
  wraps.push_back(std::move(plan));
}

std::shared_ptr<const RepeatedCalls> ProgramImpl::plan_repeated(const bridge::WrapSpec& spec) const {
  auto repeated = std::make_shared<RepeatedCalls>();
  std::set<int32_t> made, read;
  std::map<int32_t, int32_t> node_of;
  for (const ir::GraphNode& node : spec.wrap.nodes) {
    for (ir::Ref call : node.calls) node_of[static_cast<int32_t>(call)] = node.number;
    repeated->inputs[node.number].assign(node.inputs.begin(), node.inputs.end());
  }
  for (int32_t number : spec.forward) {
    repeated->nodes.push_back(node_of.count(number) != 0 ? node_of[number] : -1);
    const CallPlan& call = calls.at(static_cast<size_t>(number));
    repeated->calls.push_back(call);
    repeated->numbers.push_back(number);
    const auto device = [this](int32_t tensor) { return static_cast<c10::DeviceType>(tensors.at(static_cast<size_t>(tensor)).meta.device_type); };
    c10::DeviceType where = c10::kCPU;
    for (const TensorPlace& place : call.tensors) {
      if (made.count(place.tensor) == 0) read.insert(place.tensor);
      if (made.count(place.tensor) == 0 && std::count(call.call.mutates.begin(), call.call.mutates.end(), place.argument) != 0) repeated->written.insert(place.tensor);
      if (device(place.tensor) != c10::kCPU) where = device(place.tensor);
    }
    for (int32_t result : call.results)
      if (result >= 0) made.insert(result), where = device(result);
    repeated->devices.push_back(where);
  }
  repeated->leaves.assign(read.begin(), read.end());
  return repeated;
}

// Eager converts the number of `x * 2.0` to x's type in each call, at three times the cost of the rest; here it has that type from the start.
// Only for types that the kernels compute in themselves: for the others the number keeps more digits than the tensor.
void ProgramImpl::convert_numbers(CallPlan& plan) {
  const std::string& name = plan.call.name;
  if (plan.call.overload != "Tensor" || (name != "aten::add" && name != "aten::sub" && name != "aten::mul" && name != "aten::div" && name != "aten::add_" &&
                                         name != "aten::sub_" && name != "aten::mul_" && name != "aten::div_")) {
    return;
  }
  if (plan.tensors.size() != 1 || plan.tensors[0].argument != 0 || !plan.constants[1].isTensor()) return;
  const c10::ScalarType type = tensors[static_cast<size_t>(plan.tensors[0].tensor)].type;
  if (type != c10::ScalarType::Float && type != c10::ScalarType::Double) return;
  at::Tensor converted = plan.constants[1].toTensor().to(type);
  converted.unsafeGetTensorImpl()->set_wrapped_number(true);
  plan.constants[1] = converted;
}

bridge::Session* ProgramImpl::acquire() {
  if (!pool_.empty()) {
    std::unique_ptr<SessionImpl> session = std::move(pool_.back());
    pool_.pop_back();
    return &session.release()->face;
  }
  return &(new SessionImpl(*this))->face;
}

void ProgramImpl::release(bridge::Session* session) {
  std::unique_ptr<SessionImpl> mine(static_cast<SessionImpl*>(session->impl));
  mine->end_iteration();
  mine->end_run();
  mine->drop_caches();
  pool_.push_back(std::move(mine));
}

}  // namespace dynvm::torch_bridge
