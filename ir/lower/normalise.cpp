// Lowering of normalisations: of layers, batches and groups, and their gradients.
//
// Inputs, outputs, invariants: builder.h (Request). Statistics and what is normalised by them are one kernel; gradients of weights, which are sums over
// other dims, are a second one. Sources of the formulas: ATen's kernels of the same names, in whose order the terms stand.
// Tests: tests/ir/lower_run.cpp, tests/ir/test_against_torch.py.
#include <algorithm>

#include "ir/lower/reduction.h"
#include "ir/lower/structured.h"

namespace dynvm::ir {
namespace {

// The last dims, as many as argument `shape` has.
std::vector<int64_t> last_dims(const CallView& call, size_t shape, int64_t rank) {
  std::vector<int64_t> dims;
  auto count = static_cast<int64_t>(call.integers(shape).size());
  for (int64_t dim = rank - count; dim < rank; ++dim) dims.push_back(dim);
  return dims;
}

// All dims but the second, the channels.
std::vector<int64_t> not_channels(int64_t rank) {
  std::vector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != 1) dims.push_back(dim);
  return dims;
}

bool has_elements(const CallView& call, Ref tensor) {
  if (tensor == kNoRef) return false;
  for (int64_t size : call.meta(tensor).sizes)
    if (size == 0) return false;
  return true;
}

}  // namespace

// native_layer_norm(input, normalized_shape, weight, bias, eps) -> (output, mean, rstd)
bool lower_layer_norm(const Request& request) {
  const CallView& call = request.call;
  Ref input = call.tensor(0);
  if (!is_floating(input_type(request)) || !call.is_constant(4)) return request.refuse("dtype");
  Reduction r(request, input, last_dims(call, 1, rank_of(request, 0)));
  if (!r.possible()) return request.refuse("nothing to reduce");
  Builder& b = r.builder;
  b.set_type(input_type(request));
  Value x = r.input();
  Value mean = r.mean(x);
  Value difference = x - mean;
  Value rstd = rsqrt(r.mean(difference * difference) + b.constant(call.real(4)));
  Value out = difference * rstd;
  if (Ref weight = call.tensor(2); weight != kNoRef) out = out * b.load(weight);
  if (Ref bias = call.tensor(3); bias != kNoRef) out = out + b.load(bias);
  if (request.result(0) != kNoRef) b.store(request.result(0), out);
  r.store(request.result(1), mean);
  r.store(request.result(2), rstd);
  return r.finish("layer_norm");
}

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
bool lower_layer_norm_backward(const Request& request) {
  const CallView& call = request.call;
  Ref grad = call.tensor(0), input = call.tensor(1), mean = call.tensor(3), rstd = call.tensor(4), weight = call.tensor(5);
  if (grad == kNoRef || input == kNoRef || mean == kNoRef || rstd == kNoRef) return request.refuse("no tensor");
  if (!is_floating(call.meta(input).dtype)) return request.refuse("dtype");
  int64_t rank = rank_of(request, 1);
  std::vector<int64_t> inner = last_dims(call, 2, rank), outer;
  for (int64_t dim = 0; dim < rank - static_cast<int64_t>(inner.size()); ++dim) outer.push_back(dim);
  if (request.result(0) != kNoRef) {
    Reduction r(request, input, inner);
    if (!r.possible()) return request.refuse("nothing to reduce");
    Builder& b = r.builder;
    b.set_type(call.meta(input).dtype);
    Value x = r.input(), dy = b.load(grad), m = r.load_kept(mean), a = r.load_kept(rstd);
    Value scaled = weight == kNoRef ? dy : dy * b.load(weight);
    Value ds = sum(scaled * x), db = sum(scaled);
    Value scale = b.constant(1.0 / static_cast<double>(r.count()));
    Value slope = (db * m - ds) * a * a * a * scale;
    Value shift = -(slope * m) - db * a * scale;
    b.store(request.result(0), a * scaled + slope * x + shift);
    r.finish("layer_norm_backward");
  }
  if (request.result(1) == kNoRef && request.result(2) == kNoRef) return true;
  if (outer.empty()) return request.refuse("no rows");
  Reduction r(request, input, outer);
  if (!r.possible()) return request.refuse("nothing to reduce");
  Builder& b = r.builder;
  b.set_type(call.meta(input).dtype);
  auto of_rows = [&](Ref tensor) {  // mean and rstd vary along the rows, which this kernel reduces
    const TensorMeta& meta = call.meta(tensor);
    std::vector<int64_t> strides(b.sizes().size(), 0);
    for (size_t k = 0; k < outer.size(); ++k) strides[k] = meta.sizes[k] == 1 ? 0 : meta.strides[k];
    return b.cast(b.load_strided(tensor, strides), b.type());
  };
  Value dy = b.load(grad);
  if (request.result(1) != kNoRef) r.store(request.result(1), sum(dy * (r.input() - of_rows(mean)) * of_rows(rstd)));
  if (request.result(2) != kNoRef) r.store(request.result(2), sum(dy));
  return r.finish("layer_norm_backward_weight");
}

// native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps) -> (output, save_mean, save_invstd), cudnn_batch_norm with a fourth
// result, memory of its own for the backward pass
bool lower_batch_norm(const Request& request) {
  const CallView& call = request.call;
  if (!call.call().overload.empty()) return request.refuse("overload");
  Ref input = call.tensor(0), weight = call.tensor(1), bias = call.tensor(2), running_mean = call.tensor(3), running_var = call.tensor(4);
  int64_t rank = rank_of(request, 0);
  if (input == kNoRef || rank < 2 || !is_floating(input_type(request))) return request.refuse("dtype");
  if (!call.is_constant(6) || !call.is_constant(7)) return request.refuse("momentum changes");
  bool training = call.flag(5);
  if (!training && (running_mean == kNoRef || running_var == kNoRef)) return request.refuse("no statistics");
  if (has_elements(call, request.result(3))) return request.refuse("cuDNN's own memory");
  Reduction r(request, input, not_channels(rank));
  if (!r.possible()) return request.refuse("nothing to reduce");
  Builder& b = r.builder;
  b.set_type(input_type(request));
  if (!training) b.reduce(0);
  Value eps = b.constant(call.real(7)), x = r.input();
  Value mean, invstd;
  if (training) {
    mean = r.mean(x);
    Value difference = x - mean;
    Value squares = sum(difference * difference);
    auto count = static_cast<double>(r.count());
    invstd = rsqrt(squares / b.constant(count) + eps);
    Value momentum = b.constant(call.real(6)), rest = b.constant(1 - call.real(6));
    if (running_mean != kNoRef) r.store(running_mean, momentum * mean + rest * r.load_kept(running_mean));
    if (running_var != kNoRef) r.store(running_var, momentum * (squares / b.constant(count - 1)) + rest * r.load_kept(running_var));
  } else {
    mean = r.load_kept(running_mean);
    invstd = rsqrt(r.load_kept(running_var) + eps);
  }
  Value out = (x - mean) * invstd;
  if (weight != kNoRef) out = out * r.load_kept(weight);
  if (bias != kNoRef) out = out + r.load_kept(bias);
  if (request.result(0) != kNoRef) b.store(request.result(0), out);
  for (size_t k : {1, 2})
    if (has_elements(call, request.result(k))) {
      if (!training) return request.refuse("saves statistics without training");
      r.store(request.result(k), k == 1 ? mean : invstd);
    }
  return r.finish("batch_norm");
}

// native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask),
// cudnn_batch_norm_backward(input, grad_out, weight, running_mean, running_var, save_mean, save_invstd, eps, reserve), which is training's and needs no memory of cuDNN's
bool lower_batch_norm_backward(const Request& request) {
  const CallView& call = request.call;
  const bool cudnn = call.call().name == "aten::cudnn_batch_norm_backward";
  const size_t eps_at = cudnn ? 7 : 8;
  Ref grad = call.tensor(cudnn ? 1 : 0), input = call.tensor(cudnn ? 0 : 1), weight = call.tensor(2);
  int64_t rank = rank_of(request, cudnn ? 0 : 1);
  if (grad == kNoRef || input == kNoRef || rank < 2 || !is_floating(call.meta(input).dtype)) return request.refuse("dtype");
  if (!call.is_constant(eps_at)) return request.refuse("eps changes");
  bool training = cudnn || call.flag(7);
  Ref mean_ref = call.tensor(training ? 5 : 3), deviation_ref = call.tensor(training ? 6 : 4);
  if (mean_ref == kNoRef || deviation_ref == kNoRef) return request.refuse("no statistics");
  Reduction r(request, input, not_channels(rank));
  if (!r.possible()) return request.refuse("nothing to reduce");
  Builder& b = r.builder;
  b.set_type(call.meta(input).dtype);
  Value x = r.input(), dy = b.load(grad), mean = r.load_kept(mean_ref), invstd = r.load_kept(deviation_ref);
  if (!training) invstd = rsqrt(invstd + b.constant(call.real(eps_at)));
  Value centred = x - mean;
  Value dot = sum(dy * centred), total = sum(dy);
  if (request.result(0) != kNoRef) {
    Value scale = weight == kNoRef ? invstd : invstd * r.load_kept(weight);
    Value count = b.constant(static_cast<double>(r.count()));
    Value dx = training ? (dy - total / count - centred * (dot * invstd * invstd / count)) * scale : dy * scale;
    b.store(request.result(0), dx);
  }
  if (request.result(1) != kNoRef) r.store(request.result(1), dot * invstd);
  if (request.result(2) != kNoRef) r.store(request.result(2), total);
  return r.finish("batch_norm_backward");
}

namespace {

// Images [N, C, ...] as [N, groups, channels of one, ...].
class Groups {
 public:
  Groups(const Request& request, Ref input, size_t argument) : call_(request.call) {
    sizes = call_.meta(input).sizes;
    if (sizes.size() < 2 || sizes.size() >= static_cast<size_t>(kMaxKernelDims) || !call_.is_constant(argument)) return;
    const int64_t groups = call_.integer(argument);
    if (groups <= 0 || sizes[1] % groups != 0) return;
    each_ = sizes[1] / groups;
    sizes[1] = groups;
    sizes.insert(sizes.begin() + 2, each_);
  }
  bool possible() const { return each_ > 0 && std::find(sizes.begin(), sizes.end(), 0) == sizes.end(); }

  // The dims of what one group has, and those of what one channel has.
  uint32_t of_group() const { return (1u << sizes.size()) - 4; }
  uint32_t of_channel() const { return ((1u << sizes.size()) - 1) & ~6u; }
  double count(uint32_t dims) const {
    double points = 1;
    for (size_t k = 0; k < sizes.size(); ++k)
      if (dims >> k & 1) points *= static_cast<double>(sizes[k]);
    return points;
  }

  // Strides of an image, of a tensor [N, groups], and of one with a value for each channel.
  std::vector<int64_t> image(Ref tensor) const {
    std::vector<int64_t> strides = call_.meta(tensor).strides;
    strides.insert(strides.begin() + 1, strides[1] * each_);
    return strides;
  }
  std::vector<int64_t> statistic(Ref tensor) const {
    std::vector<int64_t> strides(sizes.size(), 0);
    std::copy_n(call_.meta(tensor).strides.begin(), 2, strides.begin());
    return strides;
  }
  std::vector<int64_t> channels(Ref tensor) const {
    std::vector<int64_t> strides(sizes.size(), 0);
    strides[2] = call_.meta(tensor).strides[0];
    strides[1] = strides[2] * each_;
    return strides;
  }

  std::vector<int64_t> sizes;

 private:
  const CallView& call_;
  int64_t each_ = 0;
};

}  // namespace

// native_group_norm(input, weight, bias, N, C, HxW, group, eps) -> (output, mean, rstd)
bool lower_group_norm(const Request& request) {
  const CallView& call = request.call;
  const Ref input = call.tensor(0), weight = call.tensor(1), bias = call.tensor(2);
  if (input == kNoRef || !is_floating(input_type(request)) || !call.is_constant(7)) return request.refuse("dtype");
  const Groups groups(request, input, 6);
  if (!groups.possible()) return request.refuse("nothing to reduce");
  Builder b(call, groups.sizes);
  b.set_type(input_type(request));
  b.reduce(groups.of_group());
  const Value count = b.constant(groups.count(groups.of_group()));
  const auto load = [&](Ref tensor, std::vector<int64_t> strides) { return b.cast(b.load_strided(tensor, std::move(strides)), b.type()); };
  const Value x = load(input, groups.image(input));
  const Value mean = sum(x) / count;
  const Value difference = x - mean;
  const Value rstd = rsqrt(sum(difference * difference) / count + b.constant(call.real(7)));
  Value out = difference * rstd;
  if (weight != kNoRef || bias != kNoRef) {
    const Value scale = weight == kNoRef ? rstd : rstd * load(weight, groups.channels(weight));
    const Value shift = bias == kNoRef ? -(scale * mean) : load(bias, groups.channels(bias)) - scale * mean;
    out = scale * x + shift;
  }
  if (const Ref result = request.result(0); result != kNoRef) b.store_strided(result, groups.image(result), out);
  if (const Ref result = request.result(1); result != kNoRef) b.store_strided(result, groups.statistic(result), mean);
  if (const Ref result = request.result(2); result != kNoRef) b.store_strided(result, groups.statistic(result), rstd);
  request.out->push_back(b.finish("group_norm"));
  return true;
}

// native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)
bool lower_group_norm_backward(const Request& request) {
  const CallView& call = request.call;
  const Ref grad = call.tensor(0), input = call.tensor(1), mean = call.tensor(2), rstd = call.tensor(3), weight = call.tensor(4);
  if (grad == kNoRef || input == kNoRef || mean == kNoRef || rstd == kNoRef) return request.refuse("no tensor");
  if (!is_floating(call.meta(input).dtype)) return request.refuse("dtype");
  // Eager's kernel goes over images once, for both gradients; this is slower where a channel's elements are far from each other.
  const bool channels_last = call.meta(input).sizes.size() > 2 && call.meta(input).strides[1] == 1;
  if (channels_last && call.meta(input).device_type == 0) return request.refuse("channels last, on the CPU");
  const Groups groups(request, input, 8);
  if (!groups.possible()) return request.refuse("nothing to reduce");
  const auto load = [&](Builder& b, Ref tensor, std::vector<int64_t> strides) { return b.cast(b.load_strided(tensor, std::move(strides)), b.type()); };
  if (const Ref result = request.result(0); result != kNoRef) {
    Builder b(call, groups.sizes);
    b.set_type(call.meta(input).dtype);
    b.reduce(groups.of_group());
    const Value x = load(b, input, groups.image(input)), dy = load(b, grad, groups.image(grad));
    const Value m = load(b, mean, groups.statistic(mean)), a = load(b, rstd, groups.statistic(rstd));
    const Value scaled = weight == kNoRef ? dy : dy * load(b, weight, groups.channels(weight));
    const Value ds = sum(scaled * x), db = sum(scaled);
    const Value scale = b.constant(1 / groups.count(groups.of_group()));
    const Value slope = (db * m - ds) * a * a * a * scale;
    const Value shift = -(slope * m) - db * a * scale;
    b.store_strided(result, groups.image(result), a * scaled + slope * x + shift);
    request.out->push_back(b.finish("group_norm_backward"));
  }
  if (request.result(1) == kNoRef && request.result(2) == kNoRef) return true;
  Builder b(call, groups.sizes);
  b.set_type(call.meta(input).dtype);
  b.reduce(groups.of_channel());
  const Value dy = load(b, grad, groups.image(grad));
  if (const Ref result = request.result(1); result != kNoRef) {
    const Value centred = load(b, input, groups.image(input)) - load(b, mean, groups.statistic(mean));
    b.store_strided(result, groups.channels(result), sum(dy * centred * load(b, rstd, groups.statistic(rstd))));
  }
  if (const Ref result = request.result(2); result != kNoRef) b.store_strided(result, groups.channels(result), sum(dy));
  request.out->push_back(b.finish("group_norm_backward_weight"));
  return true;
}

}  // namespace dynvm::ir
