// Builds one lowered kernel: a space, loads and stores of tensors seen through it, expressions with operators.
//
// Inputs: a CallView and the space's sizes. Output: Lowered. Invariant: finish() leaves out dims of size 1 that are not reduced, so that
// equal spaces have equal sizes. Expressions are computed in `type`, the compute dtype (f32 for f16 and bf16).
// Tests: tests/ir/lower_run.cpp.
#pragma once

#include <string>
#include <vector>

#include "ir/kernel/philox.h"
#include "ir/lower/call_view.h"
#include "ir/lower/lower.h"

namespace dynvm::ir {

class Builder;

// A node of the kernel under construction; none where an argument is absent.
struct Value {
  Builder* builder = nullptr;
  int32_t node = -1;
  explicit operator bool() const { return node >= 0; }
};

class Builder {
 public:
  Builder(const CallView& call, std::vector<int64_t> sizes) : call_(call), sizes_(std::move(sizes)) {
    kernel_.sizes = sizes_;
    kernel_.symbols = call.trace().symbols;
    kernel_.num_pointers = call.trace().num_storages;
  }

  const CallView& call() const { return call_; }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  Kernel& kernel() { return kernel_; }
  void set_type(DType dtype) { type_ = is_reduced_floating(dtype) ? DType::kF32 : dtype; }
  DType type() const { return type_; }
  void reduce(uint32_t dims) { kernel_.reduce_dims = dims; }

  // A tensor broadcast to the space (aligned at the last dims), in the compute dtype, or as it is.
  Value load(Ref tensor) { return cast(load_raw(tensor), type_); }
  Value load_raw(Ref tensor);
  // With explicit strides, one per dim of the space, and an offset beside the tensor's own.
  Value load_strided(Ref tensor, std::vector<int64_t> strides, int64_t extra_offset = 0);
  // As it is, `at` elements behind that place, where `holds`; else 0, and memory is not touched. On GPUs only.
  Value load_at(Ref tensor, std::vector<int64_t> strides, Value at, Value holds, int64_t extra_offset = 0);
  // Converts to the tensor's dtype and stores.
  void store(Ref tensor, Value value);
  void store_strided(Ref tensor, std::vector<int64_t> strides, Value value, int64_t extra_offset = 0);
  // The same `at` elements behind that place, where `holds`; or adds it to what is there. On GPUs only.
  void store_at(Ref tensor, std::vector<int64_t> strides, Value value, Value at, Value holds, bool adds);

  Value cast(Value a, DType dtype) { return make(kernel_.add_cast(dtype, a.node)); }
  // Rounds to the dtype as a store and a load between two operations would.
  Value rounded(Value a, DType dtype) { return cast(cast(a, dtype), type_); }
  Value op(KOp op, Value a, Value b = {}, Value c = {}) { return make(kernel_.add(op, a.node, b.node, c.node)); }
  // a + b, a - b. A floating product that is added is not rounded before: ATen's kernels are compiled with contraction, which does the same
  // to the products of one operation, and only to those.
  Value plus(Value a, Value b);
  Value minus(Value a, Value b);
  Value constant(double value) { return make(kernel_.add_const(type_, value)); }
  Value integer(int64_t value, DType dtype = DType::kI64) { return make(kernel_.add_const_int(dtype, value)); }
  Value truth(bool value) { return integer(value, DType::kBool); }
  Value number(size_t argument);  // in the compute dtype
  // A random number for each point, in f32: that of the element with this number of the operation's stream. tensor: any one of the same device.
  Value draw(const Provided& provided, Ref tensor, std::vector<int64_t> strides, DrawForm form);
  Value index(int dim) { return make(kernel_.add_index(dim)); }
  Value make(int32_t node) { return {this, node}; }

  // Strides of a tensor with `meta` broadcast to the space.
  std::vector<int64_t> broadcast(const TensorMeta& meta) const;

  Lowered finish(std::string_view name);

 private:
  int32_t scalar(Ref value, DType bits);  // the kernel's, made on first use
  int32_t operand(Ref tensor, std::vector<int64_t> strides, int64_t extra_offset);
  bool is_product(Value a) const;
  Value negative(int32_t node);
  const CallView& call_;
  std::vector<int64_t> sizes_;
  DType type_ = DType::kF32;
  Kernel kernel_;
  std::vector<Ref> tensors_, scalars_;
};

inline Value operator+(Value a, Value b) { return a.builder->plus(a, b); }
inline Value operator-(Value a, Value b) { return a.builder->minus(a, b); }
inline Value operator*(Value a, Value b) { return a.builder->op(KOp::k_mul, a, b); }
inline Value operator/(Value a, Value b) { return a.builder->op(KOp::k_div, a, b); }
inline Value operator-(Value a) { return a.builder->op(KOp::k_neg, a); }
inline Value operator>(Value a, Value b) { return a.builder->op(KOp::k_gt, a, b); }
inline Value operator>=(Value a, Value b) { return a.builder->op(KOp::k_ge, a, b); }
inline Value operator<(Value a, Value b) { return a.builder->op(KOp::k_lt, a, b); }
inline Value operator<=(Value a, Value b) { return a.builder->op(KOp::k_le, a, b); }
inline Value max(Value a, Value b) { return a.builder->op(KOp::k_max, a, b); }
inline Value min(Value a, Value b) { return a.builder->op(KOp::k_min, a, b); }
inline Value exp(Value a) { return a.builder->op(KOp::k_exp, a); }
inline Value log(Value a) { return a.builder->op(KOp::k_log, a); }
inline Value tanh(Value a) { return a.builder->op(KOp::k_tanh, a); }
inline Value sqrt(Value a) { return a.builder->op(KOp::k_sqrt, a); }
inline Value rsqrt(Value a) { return a.builder->op(KOp::k_rsqrt, a); }
inline Value select(Value condition, Value a, Value b) { return a.builder->op(KOp::k_where, condition, a, b); }
inline Value sum(Value a) { return a.builder->op(KOp::k_reduce_sum, a); }

// What a family of operations lowers: false with *why set, or kernels appended. `results` as in lower_call.
struct Request {
  const CallView& call;
  const std::vector<Ref>& results;
  std::vector<Lowered>* out;
  std::string* why;
  const Provided& provided;
  // The value that reads result i, kNoRef where nothing does.
  Ref result(size_t i) const { return i < results.size() ? results[i] : kNoRef; }
  bool refuse(const char* reason) const {
    *why = reason;
    return false;
  }
};

// Writes a number everywhere in a result: a kernel of its own.
void fill(const Request& request, Ref result, double value);

// By family; each returns null where the name is not its own. Names are without "aten::".
using LowerFunction = bool (*)(const Request&);
LowerFunction find_structured(std::string_view name);

}  // namespace dynvm::ir
