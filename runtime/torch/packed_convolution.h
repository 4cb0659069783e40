// Convolutions by oneDNN with weights in its own layout.
//
// Eager's convolution brings the weights into that layout in each call, which takes most of the time where there are more weights than results. A trace keeps them so from one run
// to the next, as long as the tensor that it is given holds the same numbers. What oneDNN gives is channels-last and is copied into the planned memory, so where there are more
// results than weights the library's own way is the faster one.
//
// A version counter does not say that a tensor is as it was: a write through `.data`, through a NumPy array on its memory or by a fused optimizer leaves it. So the weight's bytes
// are hashed in each run (XXH3, 128 bits), which takes about a third of what the layout costs; the counter only saves the hash where it has moved.
//
// Inputs: an aten::convolution's arguments, the real tensor of its weight. Outputs: the result, or nothing where the library's call is to be made.
// Invariants: weights are packed in the second run that finds them unchanged, so training packs none; a weight that changes again and again is no longer hashed. Results are
// oneDNN's, as eager's are, up to rounding.
// Tests: tests/torch/test_packed_convolution.py.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/trace.h"

namespace dynvm::torch_bridge {

// Two-dimensional, of f32, not transposed. What sizes and memory say is asked in each run.
bool may_pack_weight(const ir::AtenCall& call);

class PackedConvolution {
 public:
  // weight: as bound in this run. An undefined tensor: not by this.
  at::Tensor run(const std::vector<c10::IValue>& arguments, const at::Tensor& weight, int64_t results);

 private:
  // Is the weight what it was in the run before? Remembers it as it is now.
  bool unchanged(const at::Tensor& weight);

  struct Digest {
    uint64_t low = 0, high = 0;
    bool operator==(const Digest&) const = default;
  };
  static Digest digest_of(const at::Tensor& weight);

  at::Tensor packed_;
  const void* data_ = nullptr;      // of the weight when it was last looked at
  uint32_t version_ = 0;
  std::optional<Digest> digest_;    // of its bytes then; nothing where they were not looked at
  int changes_ = 0;                 // how often they changed behind the version counter
};

}  // namespace dynvm::torch_bridge
