// The functions behind direct.def; see direct.h.
#include "runtime/torch/direct.h"

#include <ATen/ops/_log_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_log_softmax_cpu_dispatch.h>
#include <ATen/ops/_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_softmax_cpu_dispatch.h>
#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/addcdiv_cpu_dispatch.h>
#include <ATen/ops/addcmul_cpu_dispatch.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/baddbmm_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/clamp_min_cpu_dispatch.h>
#include <ATen/ops/div_cpu_dispatch.h>
#include <ATen/ops/gelu_backward_cpu_dispatch.h>
#include <ATen/ops/gelu_cpu_dispatch.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/index_select_cpu_dispatch.h>
#include <ATen/ops/lerp_cpu_dispatch.h>
#include <ATen/ops/mean_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/nll_loss_backward_cpu_dispatch.h>
#include <ATen/ops/nll_loss_forward_cpu_dispatch.h>
#include <ATen/ops/sqrt_cpu_dispatch.h>
#include <ATen/ops/sub_cpu_dispatch.h>
#include <ATen/ops/sum_cpu_dispatch.h>
#include <ATen/ops/threshold_backward_cpu_dispatch.h>

#include <cstring>
#include <unordered_map>

#include "runtime/base/heuristics.h"
#include "runtime/torch/gemm.h"

namespace dynvm::torch_bridge {
namespace {

using c10::IValue;

// In-place operations write the tensor that their first argument holds.
at::Tensor& target(const IValue* in) { return const_cast<at::Tensor&>(in[0].toTensor()); }

std::optional<at::Tensor> optional_tensor(const IValue& value) {
  return value.isTensor() && value.toTensor().defined() ? std::optional(value.toTensor()) : std::nullopt;
}
std::optional<at::ScalarType> optional_type(const IValue& value) {
  return value.isNone() ? std::nullopt : std::optional(value.toScalarType());
}

bool is_one(const IValue& scalar) { return scalar.isInt() ? scalar.toInt() == 1 : scalar.isDouble() && scalar.toDouble() == 1; }

void mm(const IValue* in, at::Tensor* out) {
  if (multiply(in[0].toTensor(), in[1].toTensor(), nullptr, out[0])) return;
  at::cpu::mm_out(out[0], in[0].toTensor(), in[1].toTensor());
}
void addmm(const IValue* in, at::Tensor* out) {
  if (is_one(in[3]) && is_one(in[4]) && multiply(in[1].toTensor(), in[2].toTensor(), &in[0].toTensor(), out[0])) return;
  at::cpu::addmm_out(out[0], in[0].toTensor(), in[1].toTensor(), in[2].toTensor(), in[3].toScalar(), in[4].toScalar());
}
void bmm(const IValue* in, at::Tensor* out) {
  if (multiply(in[0].toTensor(), in[1].toTensor(), nullptr, out[0])) return;
  at::cpu::bmm_out(out[0], in[0].toTensor(), in[1].toTensor());
}
void baddbmm(const IValue* in, at::Tensor* out) {
  if (is_one(in[3]) && is_one(in[4]) && multiply(in[1].toTensor(), in[2].toTensor(), &in[0].toTensor(), out[0])) return;
  at::cpu::baddbmm_out(out[0], in[0].toTensor(), in[1].toTensor(), in[2].toTensor(), in[3].toScalar(), in[4].toScalar());
}
void log_softmax(const IValue* in, at::Tensor* out) { at::cpu::_log_softmax_out(out[0], in[0].toTensor(), in[1].toInt(), in[2].toBool()); }
void log_softmax_backward(const IValue* in, at::Tensor* out) {
  at::cpu::_log_softmax_backward_data_out(out[0], in[0].toTensor(), in[1].toTensor(), in[2].toInt(), in[3].toScalarType());
}
void softmax(const IValue* in, at::Tensor* out) { at::cpu::_softmax_out(out[0], in[0].toTensor(), in[1].toInt(), in[2].toBool()); }
void softmax_backward(const IValue* in, at::Tensor* out) {
  at::cpu::_softmax_backward_data_out(out[0], in[0].toTensor(), in[1].toTensor(), in[2].toInt(), in[3].toScalarType());
}
void nll_loss_forward(const IValue* in, at::Tensor* out) {
  at::cpu::nll_loss_forward_out(out[0], out[1], in[0].toTensor(), in[1].toTensor(), optional_tensor(in[2]), in[3].toInt(), in[4].toInt());
}
void nll_loss_backward(const IValue* in, at::Tensor* out) {
  at::cpu::nll_loss_backward_out(out[0], in[0].toTensor(), in[1].toTensor(), in[2].toTensor(), optional_tensor(in[3]), in[4].toInt(),
                                 in[5].toInt(), in[6].toTensor());
}
void threshold_backward(const IValue* in, at::Tensor* out) {
  at::cpu::threshold_backward_out(out[0], in[0].toTensor(), in[1].toTensor(), in[2].toScalar());
}
void gelu(const IValue* in, at::Tensor* out) { at::cpu::gelu_out(out[0], in[0].toTensor(), in[1].toStringRef()); }
void gelu_backward(const IValue* in, at::Tensor* out) {
  at::cpu::gelu_backward_out(out[0], in[0].toTensor(), in[1].toTensor(), in[2].toStringRef());
}
void relu(const IValue* in, at::Tensor* out) { at::cpu::clamp_min_out(out[0], in[0].toTensor(), 0); }
void add(const IValue* in, at::Tensor* out) { at::cpu::add_out(out[0], in[0].toTensor(), in[1].toTensor(), in[2].toScalar()); }
void sub(const IValue* in, at::Tensor* out) { at::cpu::sub_out(out[0], in[0].toTensor(), in[1].toTensor(), in[2].toScalar()); }
void mul(const IValue* in, at::Tensor* out) { at::cpu::mul_out(out[0], in[0].toTensor(), in[1].toTensor()); }
void div(const IValue* in, at::Tensor* out) { at::cpu::div_out(out[0], in[0].toTensor(), in[1].toTensor()); }
void sqrt(const IValue* in, at::Tensor* out) { at::cpu::sqrt_out(out[0], in[0].toTensor()); }
void add_in_place(const IValue* in, at::Tensor*) { at::cpu::add_(target(in), in[1].toTensor(), in[2].toScalar()); }
void sub_in_place(const IValue* in, at::Tensor*) { at::cpu::sub_(target(in), in[1].toTensor(), in[2].toScalar()); }
void mul_in_place(const IValue* in, at::Tensor*) { at::cpu::mul_(target(in), in[1].toTensor()); }
void div_in_place(const IValue* in, at::Tensor*) { at::cpu::div_(target(in), in[1].toTensor()); }
void addcmul_in_place(const IValue* in, at::Tensor*) {
  at::cpu::addcmul_(target(in), in[1].toTensor(), in[2].toTensor(), in[3].toScalar());
}
void addcdiv_in_place(const IValue* in, at::Tensor*) {
  at::cpu::addcdiv_(target(in), in[1].toTensor(), in[2].toTensor(), in[3].toScalar());
}
void lerp_in_place(const IValue* in, at::Tensor*) { at::cpu::lerp_(target(in), in[1].toTensor(), in[2].toScalar()); }
void sum_dims(const IValue* in, at::Tensor* out) {
  const auto dims = in[1].isNone() ? c10::DimVector() : in[1].toDimVector();
  at::cpu::sum_out(out[0], in[0].toTensor(), in[1].isNone() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(dims), in[2].toBool(), optional_type(in[3]));
}
void mean_dims(const IValue* in, at::Tensor* out) {
  const auto dims = in[1].isNone() ? c10::DimVector() : in[1].toDimVector();
  at::cpu::mean_out(out[0], in[0].toTensor(), in[1].isNone() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(dims), in[2].toBool(), optional_type(in[3]));
}

void embedding(const IValue* in, at::Tensor* out) {
  const at::Tensor& weight = in[0].toTensor();
  const at::Tensor& indices = in[1].toTensor();
  const auto select = [&](at::Tensor rows, const at::Tensor& at) { weight.is_cpu() ? at::cpu::index_select_out(rows, weight, 0, at) : at::index_select_out(rows, weight, 0, at); };
  if (indices.dim() == 1) {
    select(out[0], indices);
  } else {
    select(out[0].view({indices.numel(), weight.size(1)}), indices.reshape(-1));
  }
}

void nothing(const IValue*, at::Tensor*) {}
void zero(at::Tensor& out) {
  if (out.is_contiguous()) {
    std::memset(out.mutable_data_ptr(), 0, out.nbytes());
  } else {
    out.zero_();
  }
}
void zeros(const IValue*, at::Tensor* out) { zero(out[0]); }
void zero_in_place(const IValue* in, at::Tensor*) { zero(target(in)); }
void ones(const IValue*, at::Tensor* out) { out[0].fill_(1); }
void fill_from_first(const IValue* in, at::Tensor* out) { out[0].fill_(in[0].toScalar()); }
void fill_from_second(const IValue* in, at::Tensor* out) { out[0].fill_(in[1].toScalar()); }
void fill_from_third(const IValue* in, at::Tensor* out) { out[0].fill_(in[2].toScalar()); }

void copy(at::Tensor& to, const at::Tensor& from) {
  // Above it torch's copy uses several threads.
  if (to.is_cpu() && from.is_cpu() && to.dtype() == from.dtype() && to.sizes() == from.sizes() && to.strides() == from.strides() && to.is_non_overlapping_and_dense() &&
      to.nbytes() <= static_cast<size_t>(base::heuristics().serial_copy) << 10) {
    std::memmove(to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes());
  } else {
    to.copy_(from);
  }
}
void copy_first(const IValue* in, at::Tensor* out) { copy(out[0], in[0].toTensor()); }
void copy_in_place(const IValue* in, at::Tensor*) { copy(target(in), in[1].toTensor()); }
void lift(const IValue* in, at::Tensor* out) { copy(out[0], in[0].toTensor()); }

}  // namespace

Direct find_direct(std::string_view name, std::string_view overload) {
  static const auto* table = new std::unordered_map<std::string, Direct>{
#define DIRECT(name, overload, function, sentence) {name "." overload, {function, false, false}},
#define PRODUCT(name, overload, function, sentence) {name "." overload, {function, true, false}},
#define ANYWHERE(name, overload, function, sentence) {name "." overload, {function, false, true}},
#include "runtime/torch/direct.def"
#undef DIRECT
#undef PRODUCT
#undef ANYWHERE
  };
  std::string key(name);
  key += '.';
  key += overload;
  const auto found = table->find(key);
  return found == table->end() ? Direct() : found->second;
}

}  // namespace dynvm::torch_bridge
