// What operations would give for tensors of other sizes: they run on tensors without memory, on torch's meta device.
//
// Inputs: geometry of tensors, ATen calls. Outputs: geometry of the results, and whether they share memory as they did.
// Invariants: below autograd and the recorder's key; no memory of the script's is touched. Some of torch's meta functions are Python code.
// Tests: tests/torch/test_shapes.py.
#include "runtime/torch/shapes.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <unordered_map>

#include "runtime/torch/convert.h"
#include "runtime/torch/program.h"

namespace dynvm::torch_bridge {
namespace {

const c10::Device kMetaDevice(c10::kMeta);

int64_t reach(const ir::TensorMeta& meta) {
  int64_t last = meta.offset;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    if (meta.sizes[d] == 0) return meta.offset;
    last += (meta.sizes[d] - 1) * meta.strides[d];
  }
  return last + 1;
}

class ShapesImpl final : public bridge::Shapes {
 public:
  void input(int32_t tensor, const ir::TensorMeta& meta) override {
    const auto options = at::TensorOptions().dtype(to_scalar_type(meta.dtype)).device(kMetaDevice);
    const c10::InferenceMode none(false);
    const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset);
    at::Tensor made = at::empty_strided(meta.sizes, meta.strides, options);
    auto known = storages_.find(meta.storage);
    if (known == storages_.end()) {
      at::Tensor whole = at::empty({reach(meta)}, options);
      known = storages_.emplace(meta.storage, whole.storage()).first;
      pointers_.emplace(whole.storage().unsafeGetStorageImpl(), meta.storage);
    }
    made.unsafeGetTensorImpl()->set_storage_keep_dtype(known->second);
    made.unsafeGetTensorImpl()->set_storage_offset(meta.offset);
    if (meta.wrapped_number) made.unsafeGetTensorImpl()->set_wrapped_number(true);
    tensors_[tensor] = std::move(made);
  }

  std::string call(const ir::AtenCall& call, const std::vector<int32_t>& operands, const std::vector<int32_t>& results,
                   const std::vector<int32_t>& storages, std::vector<ir::TensorMeta>* metas) override {
    try {
      const c10::InferenceMode none(false);
      const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset);
      return run(call, operands, results, storages, metas);
    } catch (const std::exception& error) {
      const std::string text = error.what();
      return call.name + ": " + text.substr(0, text.find('\n'));
    }
  }

 private:
  std::string run(const ir::AtenCall& call, const std::vector<int32_t>& operands, const std::vector<int32_t>& results,
                  const std::vector<int32_t>& storages, std::vector<ir::TensorMeta>* metas) {
    const auto handle = c10::Dispatcher::singleton().findSchema(c10::OperatorName(call.name, call.overload));
    if (!handle) return "unknown operator " + call.name;
    std::vector<c10::IValue> stack = make_arguments(call, *handle, [&](int32_t operand) {
      auto found = tensors_.find(operands.at(static_cast<size_t>(operand)));
      return found == tensors_.end() ? at::Tensor() : found->second;
    });
    for (c10::IValue& value : stack)
      if (value.isDevice()) value = kMetaDevice;
    handle->callBoxed(stack);
    std::vector<at::Tensor> made;
    for (const c10::IValue& value : stack) {
      if (value.isTensor()) {
        made.push_back(value.toTensor());
      } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) made.push_back(tensor);
      } else {
        made.emplace_back();
      }
    }
    if (made.size() != results.size()) return call.name + ": another number of results";
    metas->assign(results.size(), {});
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] < 0) continue;
      at::Tensor tensor = made[i];
      if (!tensor.defined()) return call.name + ": an undefined result";
      if (!tensor.is_meta()) tensor = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(kMetaDevice));
      (*metas)[i] = to_meta(tensor);
      const c10::StorageImpl* storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
      const auto known = pointers_.find(storage);
      const auto wanted = storages_.find(storages[i]);
      if (known == pointers_.end() && wanted == storages_.end()) {
        storages_.emplace(storages[i], tensor.storage());
        pointers_.emplace(storage, storages[i]);
      } else if (known == pointers_.end() || known->second != storages[i]) {
        return call.name + ": a result shares other memory";
      }
      tensors_[results[i]] = std::move(tensor);
    }
    return "";
  }

  std::unordered_map<int32_t, at::Tensor> tensors_;
  std::unordered_map<int32_t, c10::Storage> storages_;              // by the trace's number; kept, so that no address comes twice
  std::unordered_map<const c10::StorageImpl*, int32_t> pointers_;
};

}  // namespace

std::unique_ptr<bridge::Shapes> make_shapes() { return std::make_unique<ShapesImpl>(); }

}  // namespace dynvm::torch_bridge
