// See packed_convolution.h.
#include "runtime/torch/packed_convolution.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace dynvm::torch_bridge {
namespace {

using c10::IValue;

enum Argument { kInput, kWeight, kBias, kStride, kPadding, kDilation, kTransposed, kOutputPadding, kGroups };

// oneDNN's operations; nothing where this torch has none.
struct Operations {
  std::optional<c10::OperatorHandle> pack, convolve;
  Operations() {
    const auto find = [](const char* name) { return c10::Dispatcher::singleton().findSchema({name, ""}); };
    pack = find("mkldnn::_reorder_convolution_weight");
    convolve = find("mkldnn::_convolution_pointwise");
  }
  bool present() const { return pack && convolve && at::globalContext().hasMKLDNN() && at::globalContext().userEnabledMkldnn(); }
};

const Operations& operations() {
  static const Operations found;
  return found;
}

at::Tensor call(const c10::OperatorHandle& operation, torch::jit::Stack stack) {
  operation.callBoxed(&stack);
  return stack.at(0).toTensor();
}

bool is_plain(const at::Tensor& tensor) { return tensor.dim() == 4 && tensor.scalar_type() == at::kFloat && tensor.device().is_cpu(); }

}  // namespace

bool may_pack_weight(const ir::AtenCall& call) {
  return call.name == "aten::convolution" && call.overload.empty() && call.args.size() == 9 && call.args[kTransposed].kind == ir::AtenArg::kBool && call.args[kTransposed].i == 0;
}

at::Tensor PackedConvolution::run(const std::vector<IValue>& arguments, const at::Tensor& weight, int64_t results) {
  if (!weight.defined() || weight.is_inference() || weight.numel() <= results || !operations().present()) return {};
  const at::Tensor& input = arguments[kInput].toTensor();
  if (!is_plain(input) || !is_plain(weight) || input.numel() == 0 || results == 0) return {};
  const void* data = weight.const_data_ptr();
  const auto version = static_cast<uint32_t>(weight._version());
  if (data != data_ || version != version_) {
    packed_.reset();
    data_ = data;
    version_ = version;
    return {};
  }
  if (!packed_.defined()) {
    packed_ = call(*operations().pack, {weight.detach(), arguments[kPadding], arguments[kStride], arguments[kDilation], arguments[kGroups], input.sizes().vec()});
  }
  const c10::List<std::optional<at::Scalar>> none;
  return call(*operations().convolve, {input, packed_, arguments[kBias], arguments[kPadding], arguments[kStride], arguments[kDilation], arguments[kGroups], "none", none, ""});
}

}  // namespace dynvm::torch_bridge
