// Convolutions by oneDNN with weights in its own layout.
//
// Eager's convolution brings the weights into that layout in each call, which takes most of the time where there are more weights than results. A trace keeps them so from one run
// to the next, as long as the tensor that it is given is the same and nobody has written it. What oneDNN gives is channels-last and is copied into the planned memory, so where
// there are more results than weights the library's own way is the faster one.
//
// Inputs: an aten::convolution's arguments, the real tensor of its weight. Outputs: the result, or nothing where the library's call is to be made.
// Invariants: weights are packed in the second run that finds them unchanged, so training packs none. Results are oneDNN's, as eager's are, up to rounding.
// Tests: tests/torch/test_packed_convolution.py.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
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
  at::Tensor packed_;
  const void* data_ = nullptr;      // of the weight when it was last looked at
  uint32_t version_ = 0;
};

}  // namespace dynvm::torch_bridge
