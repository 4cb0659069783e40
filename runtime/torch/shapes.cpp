// What operations would give for tensors of other sizes: by rules (result_sizes.h), else they run on tensors without memory, on torch's meta device.
//
// Inputs: geometry of tensors, ATen calls. Outputs: geometry of the results, and whether they share memory as they did.
// Invariants: below autograd and the recorder's key; no memory of the script's is touched. Some of torch's meta functions are Python code.
// Tests: tests/torch/test_shapes.py, tests/traces/cases/sizes_*.py.
#include "runtime/torch/shapes.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>

#include "runtime/torch/convert.h"
#include "runtime/torch/program.h"
#include "runtime/torch/recorder.h"
#include "runtime/torch/result_sizes.h"

namespace dynvm::torch_bridge {
namespace {

const c10::Device kMetaDevice(c10::kMeta);
// What is asked of torch here is neither differentiated nor one of the script's operations, which are counted.
const c10::DispatchKeySet kKeysAbove = c10::autograd_dispatch_keyset | c10::DispatchKeySet(kRecordKey) | kModeKeys;

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0; expected *= sizes[d]) strides[d] = expected;
  return strides;
}

// Strides of dims of size 1 mean nothing, and some of torch's meta functions say others than the operation gives. Where what was recorded fills its memory in the
// order of its strides, and what is said does but for such dims, it is as recorded.
at::Tensor with_strides_of_ones(const at::Tensor& said, const ir::TensorMeta& recorded) {
  const size_t rank = recorded.sizes.size();
  if (static_cast<size_t>(said.dim()) != rank) return said;
  std::vector<size_t> order(rank);
  for (size_t d = 0; d < rank; ++d) order[d] = d;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return recorded.strides[a] > recorded.strides[b]; });
  std::vector<int64_t> strides(rank);
  int64_t expected = 1, here = 1;
  bool differs = false;
  for (size_t k = rank; k-- > 0;) {
    const size_t d = order[k];
    const int64_t size = said.size(static_cast<int64_t>(d)), stride = said.stride(static_cast<int64_t>(d));
    if (recorded.strides[d] != here || (stride != expected && (size != 1 || recorded.sizes[d] != 1))) return said;
    differs = differs || stride != expected;
    strides[d] = expected;
    expected *= size;
    here *= recorded.sizes[d];
  }
  return differs ? at::empty_strided(said.sizes(), strides, said.options()) : said;
}

class ShapesImpl final : public bridge::Shapes {
 public:
  void input(int32_t tensor, const ir::TensorMeta& meta) override {
    const auto options = at::TensorOptions().dtype(to_scalar_type(meta.dtype)).device(kMetaDevice);
    const c10::InferenceMode none(false);
    const c10::impl::ExcludeDispatchKeyGuard below(kKeysAbove);
    at::Tensor made = at::empty_strided(meta.sizes, meta.strides, options);
    auto known = storages_.find(meta.storage);
    if (known == storages_.end()) {
      at::Tensor whole = at::empty({byte_extent(meta).last / ir::dtype_size(meta.dtype)}, options);
      known = storages_.emplace(meta.storage, whole.storage()).first;
      pointers_.emplace(whole.storage().unsafeGetStorageImpl(), meta.storage);
    }
    made.unsafeGetTensorImpl()->set_storage_keep_dtype(known->second);
    made.unsafeGetTensorImpl()->set_storage_offset(meta.offset);
    if (meta.wrapped_number) made.unsafeGetTensorImpl()->set_wrapped_number(true);
    tensors_[tensor] = std::move(made);
  }

  std::string call(const ir::AtenCall& call, const std::vector<int32_t>& operands, const std::vector<int32_t>& results,
                   const std::vector<ir::TensorMeta>& recorded, std::vector<ir::TensorMeta>* metas) override {
    try {
      const c10::InferenceMode none(false);
      const c10::impl::ExcludeDispatchKeyGuard below(kKeysAbove);
      return run(call, operands, results, recorded, metas);
    } catch (const std::exception& error) {
      const std::string text = error.what();
      return call.name + ": " + text.substr(0, std::min(text.find('\n'), size_t{80}));
    }
  }

 private:
  std::string run(const ir::AtenCall& call, const std::vector<int32_t>& operands, const std::vector<int32_t>& results,
                  const std::vector<ir::TensorMeta>& recorded, std::vector<ir::TensorMeta>* metas) {
    const auto operand = [&](int32_t position) {
      const auto found = tensors_.find(operands.at(static_cast<size_t>(position)));
      return found == tensors_.end() ? at::Tensor() : found->second;
    };
    std::vector<at::Tensor> made;
    std::vector<ir::TensorMeta> geometry(operands.size());
    for (size_t i = 0; i < operands.size(); ++i)
      if (const at::Tensor tensor = operand(static_cast<int32_t>(i)); tensor.defined()) geometry[i] = to_meta(tensor);
    std::vector<bool> known(operands.size(), false);
    for (size_t i = 0; i < operands.size(); ++i) known[i] = tensors_.count(operands[i]) != 0;
    for (const ir::AtenArg& arg : call.args)
      if (arg.kind == ir::AtenArg::kScalar || arg.kind == ir::AtenArg::kScalarTensor)
        for (int32_t position : arg.operands) known[static_cast<size_t>(position)] = true;  // numbers, without dimensions
    const bool all_known = std::find(known.begin(), known.end(), false) == known.end();
    const std::optional<std::vector<Sizes>> sizes = all_known ? result_sizes(call, geometry, recorded) : std::nullopt;
    if (sizes) {
      for (size_t i = 0; i < sizes->size(); ++i) {
        const auto options = at::TensorOptions().dtype(to_scalar_type(results[i] < 0 ? ir::DType::kF32 : recorded[i].dtype)).device(kMetaDevice);
        made.push_back(at::empty_strided((*sizes)[i], contiguous_strides((*sizes)[i]), options));
      }
    } else if (std::optional<size_t> same = written_alone(call); same) {
      made.push_back(operand(call.args[*same].operands.at(0)));
    } else {
      std::string why = ask_torch(call, operand, geometry, &made);
      if (!why.empty()) return why;
    }
    if (made.size() != results.size()) return call.name + ": another number of results";
    metas->assign(results.size(), {});
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] < 0) continue;
      at::Tensor tensor = made[i];
      if (!tensor.defined()) return call.name + ": an undefined result";
      if (!tensor.is_meta()) tensor = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(kMetaDevice));
      if (call.result_alias[i] < 0) tensor = with_strides_of_ones(tensor, recorded[i]);
      (*metas)[i] = to_meta(tensor);
      if ((*metas)[i].dtype != recorded[i].dtype) return call.name + ": a result of another type";
      const c10::StorageImpl* storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
      const auto known = pointers_.find(storage);
      const int32_t wanted = recorded[i].storage;
      if (known == pointers_.end() && storages_.count(wanted) == 0) {
        storages_.emplace(wanted, tensor.storage());
        pointers_.emplace(storage, wanted);
      } else if (known == pointers_.end() || known->second != wanted) {
        return call.name + ": a result shares other memory";
      }
      tensors_[results[i]] = std::move(tensor);
    }
    return "";
  }

  // The argument that an in-place operation gives back, where it does nothing else: its geometry stays.
  static std::optional<size_t> written_alone(const ir::AtenCall& call) {
    if (call.mutates.size() != 1 || call.results.size() != 1 || call.result_alias[0] != call.mutates[0]) return std::nullopt;
    const size_t argument = static_cast<size_t>(call.mutates[0]);
    return call.args[argument].kind == ir::AtenArg::kTensor ? std::optional(argument) : std::nullopt;
  }

  // Equal calls, as those of a model's equal layers, are asked once.
  std::string ask_torch(const ir::AtenCall& call, const std::function<at::Tensor(int32_t)>& operand, const std::vector<ir::TensorMeta>& geometry,
                        std::vector<at::Tensor>* made) {
    const bool views = std::any_of(call.result_alias.begin(), call.result_alias.end(), [](int32_t alias) { return alias >= 0; });
    std::string key;
    if (!views && call.mutates.empty()) {
      key = describe(call, geometry);
      const auto known = answers_.find(key);
      if (known != answers_.end()) {
        for (const at::Tensor& tensor : known->second)
          made->push_back(tensor.defined() ? at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(kMetaDevice)) : at::Tensor());
        return "";
      }
    }
    const auto handle = c10::Dispatcher::singleton().findSchema(c10::OperatorName(call.name, call.overload));
    if (!handle) return "unknown operator " + call.name;
    std::vector<c10::IValue> stack = make_arguments(call, *handle, operand);
    for (c10::IValue& value : stack)
      if (value.isDevice()) value = kMetaDevice;
    handle->callBoxed(stack);
    for (const c10::IValue& value : stack) {
      if (value.isTensor()) {
        made->push_back(value.toTensor());
      } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) made->push_back(tensor);
      } else {
        made->emplace_back();
      }
    }
    if (!key.empty()) answers_.emplace(std::move(key), *made);
    return "";
  }

  static std::string describe(const ir::AtenCall& call, const std::vector<ir::TensorMeta>& geometry) {
    std::string text = call.name + "." + call.overload;
    const auto add = [&](const auto& values) {
      text += '|';
      for (const auto& value : values) text += std::to_string(value) + ",";
    };
    for (const ir::AtenArg& arg : call.args) {
      text += ';' + std::to_string(arg.kind) + ',' + std::to_string(arg.i) + ',' + std::to_string(arg.f) + ',' + arg.s;
      add(arg.operands);
      add(arg.ints);
      add(arg.floats);
    }
    for (const ir::TensorMeta& meta : geometry) {
      text += '#' + std::to_string(static_cast<int>(meta.dtype));
      add(meta.sizes);
      add(meta.strides);
    }
    return text;
  }

  std::unordered_map<std::string, std::vector<at::Tensor>> answers_;
  std::unordered_map<int32_t, at::Tensor> tensors_;
  std::unordered_map<int32_t, c10::Storage> storages_;              // by the trace's number; kept, so that no address comes twice
  std::unordered_map<const c10::StorageImpl*, int32_t> pointers_;
};

}  // namespace

std::unique_ptr<bridge::Shapes> make_shapes() { return std::make_unique<ShapesImpl>(); }

}  // namespace dynvm::torch_bridge
