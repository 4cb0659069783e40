// Building lowered kernels (builder.h).
#include "ir/lower/builder.h"

#include <utility>

namespace dynvm::ir {

std::vector<int64_t> Builder::broadcast(const TensorMeta& meta) const {
  std::vector<int64_t> strides(sizes_.size(), 0);
  size_t missing = sizes_.size() - meta.sizes.size();
  for (size_t k = 0; k < meta.sizes.size(); ++k)
    strides[missing + k] = meta.sizes[k] == 1 ? 0 : meta.strides[k];
  return strides;
}

int32_t Builder::operand(Ref tensor, std::vector<int64_t> strides, int64_t extra_offset) {
  const TensorMeta& meta = call_.meta(tensor);
  for (size_t k = 0; k < strides.size(); ++k)
    if (sizes_[k] == 1) strides[k] = 0;
  KernelOperand operand;
  operand.dtype = meta.dtype;
  operand.strides = std::move(strides);
  operand.offset = meta.offset + extra_offset;
  operand.pointer = meta.storage;
  int32_t index = kernel_.add_operand(std::move(operand));
  if (static_cast<size_t>(index) == tensors_.size()) tensors_.push_back(tensor);
  return index;
}

Value Builder::load_raw(Ref tensor) { return load_strided(tensor, broadcast(call_.meta(tensor))); }

Value Builder::load_strided(Ref tensor, std::vector<int64_t> strides, int64_t extra_offset) {
  return make(kernel_.add_load(operand(tensor, std::move(strides), extra_offset)));
}

Value Builder::load_at(Ref tensor, std::vector<int64_t> strides, Value at, Value holds, int64_t extra_offset) {
  return make(kernel_.add_load_at(operand(tensor, std::move(strides), extra_offset), at.node, holds.node));
}

void Builder::store(Ref tensor, Value value) { store_strided(tensor, broadcast(call_.meta(tensor)), value); }

void Builder::store_strided(Ref tensor, std::vector<int64_t> strides, Value value, int64_t extra_offset) {
  int32_t node = kernel_.add_cast(call_.meta(tensor).dtype, value.node);
  kernel_.add_store(operand(tensor, std::move(strides), extra_offset), node);
}

void Builder::store_at(Ref tensor, std::vector<int64_t> strides, Value value, Value at, Value holds, bool adds) {
  const int32_t node = kernel_.add_cast(call_.meta(tensor).dtype, value.node);
  kernel_.add_store_at(operand(tensor, std::move(strides), 0), node, at.node, holds.node, adds);
}

Value Builder::number(size_t argument) {
  Ref scalar = call_.runtime_scalar(argument);
  if (scalar == kNoRef) {
    if (is_floating(type_) || is_bool(type_)) return make(kernel_.add_const(type_, call_.real(argument)));
    return make(kernel_.add_const_int(type_, call_.integer(argument)));
  }
  return make(kernel_.add_scalar(type_, this->scalar(scalar, call_.trace().insts[scalar].type == Type::kFloat ? DType::kF64 : DType::kI64)));
}

int32_t Builder::scalar(Ref value, DType bits) {
  size_t k = 0;
  while (k < scalars_.size() && (scalars_[k] != value || value == kNoRef)) ++k;
  if (k == scalars_.size()) {
    scalars_.push_back(value);
    kernel_.scalar_types.push_back(bits);
  }
  return static_cast<int32_t>(k);
}

Value Builder::draw(const Provided& provided, Ref tensor, std::vector<int64_t> strides, DrawForm form) {
  const int32_t seed = kernel_.add_scalar(DType::kI64, scalar(provided.seed, DType::kI64)), offset = kernel_.add_scalar(DType::kI64, scalar(provided.offset, DType::kI64));
  return make(kernel_.add_draw(seed, offset, operand(tensor, std::move(strides), -call_.meta(tensor).offset), form.packed()));
}

bool Builder::is_product(Value a) const { return kernel_.nodes[a.node].op == KOp::k_mul && is_floating(kernel_.nodes[a.node].dtype); }

Value Builder::negative(int32_t node) {
  const KernelNode& n = kernel_.nodes[node];
  if (n.op == KOp::k_const) return make(kernel_.add_const(n.dtype, -n.f));
  return make(kernel_.add(KOp::k_neg, node));
}

// Of two products the first one is contracted.
Value Builder::plus(Value a, Value b) {
  if (!is_product(a)) std::swap(a, b);
  if (!is_product(a)) return op(KOp::k_add, b, a);
  KernelNode product = kernel_.nodes[a.node];
  return op(KOp::k_fma, make(product.a), make(product.b), b);
}

Value Builder::minus(Value a, Value b) {
  if (is_product(a)) {
    KernelNode product = kernel_.nodes[a.node];
    return op(KOp::k_fma, make(product.a), make(product.b), negative(b.node));
  }
  if (!is_product(b)) return op(KOp::k_sub, a, b);
  KernelNode product = kernel_.nodes[b.node];
  return op(KOp::k_fma, negative(product.a), make(product.b), a);
}

Lowered Builder::finish(std::string_view name) {
  kernel_.drop_unused_nodes();  // products that went into a contraction
  std::vector<size_t> kept;
  for (size_t k = 0; k < sizes_.size(); ++k)
    if (sizes_[k] != 1 || (kernel_.reduce_dims >> k & 1)) kept.push_back(k);
  if (kept.size() != sizes_.size()) {
    std::vector<int64_t> sizes;
    uint32_t reduced = 0;
    std::vector<int32_t> position(sizes_.size(), -1);
    for (size_t k : kept) {
      if (kernel_.reduce_dims >> k & 1) reduced |= 1u << sizes.size();
      position[k] = static_cast<int32_t>(sizes.size());
      sizes.push_back(sizes_[k]);
    }
    for (KernelOperand& operand : kernel_.operands) {
      std::vector<int64_t> strides;
      for (size_t k : kept) strides.push_back(operand.strides[k]);
      operand.strides = std::move(strides);
    }
    for (KernelNode& node : kernel_.nodes) {
      if (node.op != KOp::k_index) continue;
      if (position[node.i] >= 0) {
        node.i = position[node.i];
      } else {
        node.op = KOp::k_const;  // the index along a dim of size 1
        node.i = 0;
      }
    }
    kernel_.sizes = std::move(sizes);
    kernel_.reduce_dims = reduced;
  }
  kernel_.name = name;
  return {std::move(kernel_), std::move(tensors_), std::move(scalars_)};
}

void fill(const Request& request, Ref result, double value) {
  Builder b(request.call, request.call.meta(result).sizes);
  b.set_type(request.call.meta(result).dtype);
  b.store(result, b.constant(value));
  request.out->push_back(b.finish("fill"));
}

}  // namespace dynvm::ir
