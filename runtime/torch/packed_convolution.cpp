// See packed_convolution.h.
#include "runtime/torch/packed_convolution.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dynvm::torch_bridge {
namespace {

using c10::IValue;

constexpr int64_t kHashed = 1 << 18;  // bytes that one thread hashes at a time
constexpr int kMaxChanges = 8;        // of a weight behind its version counter, before it counts as one that is trained

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

PackedConvolution::Digest PackedConvolution::digest_of(const at::Tensor& weight) {
  const auto* bytes = static_cast<const char*>(weight.const_data_ptr());
  const auto size = static_cast<int64_t>(weight.nbytes());
  std::vector<XXH128_hash_t> parts(static_cast<size_t>((size + kHashed - 1) / kHashed));
  at::parallel_for(0, static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) parts[k] = XXH3_128bits(bytes + k * kHashed, static_cast<size_t>(std::min(kHashed, size - k * kHashed)));
  });
  const XXH128_hash_t whole = XXH3_128bits(parts.data(), parts.size() * sizeof parts[0]);
  return {whole.low64, whole.high64};
}

bool PackedConvolution::unchanged(const at::Tensor& weight) {
  const void* data = weight.const_data_ptr();
  const uint32_t version = weight.is_inference() ? 0 : static_cast<uint32_t>(weight._version());
  if (data != data_ || version != version_) {
    data_ = data;
    version_ = version;
    digest_.reset();
    return false;
  }
  const Digest digest = digest_of(weight);
  if (digest == digest_) return true;
  if (digest_) ++changes_;
  digest_ = digest;
  return false;
}

at::Tensor PackedConvolution::run(const std::vector<IValue>& arguments, const at::Tensor& weight, int64_t results) {
  if (!weight.defined() || weight.numel() <= results || changes_ > kMaxChanges || !operations().present()) return {};
  const at::Tensor& input = arguments[kInput].toTensor();
  if (!is_plain(input) || !is_plain(weight) || !weight.is_non_overlapping_and_dense() || input.numel() == 0 || results == 0) return {};
  if (!unchanged(weight)) {
    packed_.reset();
    return {};
  }
  if (!packed_.defined()) {
    packed_ = call(*operations().pack, {weight.detach(), arguments[kPadding], arguments[kStride], arguments[kDilation], arguments[kGroups], input.sizes().vec()});
  }
  const c10::List<std::optional<at::Scalar>> none;
  return call(*operations().convolve, {input, packed_, arguments[kBias], arguments[kPadding], arguments[kStride], arguments[kDilation], arguments[kGroups], "none", none, ""});
}

}  // namespace dynvm::torch_bridge
