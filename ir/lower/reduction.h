// A kernel over a tensor's elements that reduces some of its dims.
//
// Inputs: a request (builder.h), the tensor, its reduced dims. Output: one kernel. Values of the kept dims are loaded from and stored to tensors of
// either rank: the input's, with size 1 in the place of reduced dims, or that of the kept dims alone.
// Tests: tests/ir/lower_run.cpp, tests/ir/test_against_torch.py.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/lower/builder.h"
#include "runtime/base/defects.h"

namespace dynvm::ir {

inline uint32_t mask_of(const std::vector<int64_t>& dims) {
  uint32_t mask = 0;
  for (int64_t dim : dims) mask |= 1u << dim;
  return mask;
}

// A kernel over `input`'s elements that reduces `dims`.
class Reduction {
 public:
  Reduction(const Request& request, Ref input, std::vector<int64_t> dims)
      : request_(request), input_(input), builder(request.call, space(request.call.meta(input).sizes)) {
    const std::vector<int64_t>& sizes = builder.sizes();
    mask_ = request.call.meta(input).sizes.empty() ? 1 : mask_of(dims);
    count_ = 1;
    for (size_t k = 0; k < sizes.size(); ++k)
      if (mask_ >> k & 1) count_ *= sizes[k];
    builder.reduce(mask_);
  }

  bool possible() const { return mask_ != 0 && builder_points() > 0; }
  int64_t count() const { return count_; }
  uint32_t mask() const { return mask_; }
  Value input() { return builder.load(input_); }
  Value reduce(KOp op, Value value) { return builder.op(op, value); }
  Value mean(Value value) { return sum(value) / builder.constant(static_cast<double>(count_) + (base::seeded(base::Defect::kMeanDivides) ? 1 : 0)); }

  // The result has the kept dims, with size-1 dims in the place of the reduced ones if its rank is the input's.
  void store(Ref result, Value value) {
    if (result == kNoRef) return;
    const TensorMeta& meta = request_.call.meta(result);
    if (meta.sizes.size() == builder.sizes().size()) return builder.store(result, value);
    builder.store_strided(result, kept_strides(meta), value);
  }
  // A tensor of the kept dims, such as a saved mean, of either rank.
  Value load_kept(Ref tensor) {
    const TensorMeta& meta = request_.call.meta(tensor);
    if (meta.sizes.size() == builder.sizes().size()) return builder.load(tensor);
    return builder.cast(builder.load_strided(tensor, kept_strides(meta)), builder.type());
  }
  bool finish(std::string_view name) {
    request_.out->push_back(builder.finish(name));
    return true;
  }

 private:
  // A 0-dim tensor is reduced as one element.
  static std::vector<int64_t> space(const std::vector<int64_t>& sizes) { return sizes.empty() ? std::vector<int64_t>{1} : sizes; }

  // Of a tensor of the kept dims alone, over the space.
  std::vector<int64_t> kept_strides(const TensorMeta& meta) const {
    std::vector<int64_t> strides(builder.sizes().size(), 0);
    size_t at = 0;
    for (size_t k = 0; k < strides.size(); ++k)
      if (!(mask_ >> k & 1)) strides[k] = meta.strides[at++];
    return strides;
  }

  int64_t builder_points() const {
    int64_t points = 1;
    for (int64_t size : request_.call.meta(input_).sizes) points *= size;
    return points;
  }
  const Request& request_;
  Ref input_;
  uint32_t mask_ = 0;
  int64_t count_ = 1;

 public:
  Builder builder;
};

inline int64_t rank_of(const Request& request, size_t argument) {
  Ref tensor = request.call.tensor(argument);
  return tensor == kNoRef ? 0 : static_cast<int64_t>(request.call.meta(tensor).sizes.size());
}

inline DType input_type(const Request& request) { return request.call.meta(request.call.tensor(0)).dtype; }

}  // namespace dynvm::ir
