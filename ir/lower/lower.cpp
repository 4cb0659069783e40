// Lowering of elementwise operations, and the entry that finds each operation's family (lower.h).
#include "ir/lower/lower.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "ir/effects.h"
#include "ir/kernel/symbols.h"
#include "ir/lower/builder.h"
#include "ir/lower/structured.h"
#include "runtime/base/defects.h"

namespace dynvm::ir {
namespace {

enum class Mode : uint8_t { kPromote, kExact, kFloat, kDivide, kCompare, kLogical, kFirst, kResult };

// c10's categories: a dtype of a higher category wins over one of a lower, whatever the operands' ranks.
int category(DType dtype) { return dtype == DType::kOther ? -1 : is_bool(dtype) ? 0 : is_floating(dtype) ? 2 : 1; }

// c10::result_type over tensors with dims, 0-dim tensors and Python numbers.
class Promotion {
 public:
  void tensor(const TensorMeta& meta, DType default_dtype) {
    if (meta.wrapped_number) return number(meta.dtype, default_dtype);
    DType& slot = meta.sizes.empty() ? zero_ : dims_;
    slot = promote(slot, meta.dtype);
  }
  void number(DType dtype, DType default_dtype) { number_ = promote(number_, is_floating(dtype) ? default_dtype : dtype); }
  DType result() const { return combine(dims_, combine(zero_, number_)); }

 private:
  static DType combine(DType higher, DType lower) {
    if (higher == DType::kOther) return lower;
    if (lower == DType::kOther) return higher;
    return category(lower) > category(higher) ? (is_bool(higher) || is_floating(lower) ? promote(higher, lower) : higher) : higher;
  }
  DType dims_ = DType::kOther, zero_ = DType::kOther, number_ = DType::kOther;
};

// Evaluates the formulas of pointwise.def for one operation.
class Pointwise {
 public:
  // rounded: the 16-bit type that ATen rounds numbers to, on a CPU; kOther: none.
  Pointwise(Builder& builder, DType type, DType rounded) : builder_(builder), call_(builder.call()), rounded_(rounded), type(type) {}

  bool refused() const { return reason_ != nullptr; }
  const char* reason() const { return reason_; }

 private:
  Builder& builder_;
  const CallView& call_;
  const DType rounded_;
  const char* reason_ = nullptr;

 public:
  const DType type;  // the compute dtype

  Value round(Value value) { return rounded_ == DType::kOther || !value ? value : builder_.cast(builder_.cast(value, rounded_), type); }

  Value refuse(const char* why) {
    if (!reason_) reason_ = why;
    return builder_.constant(0);
  }
  Value op(KOp op, Value a, Value b = {}, Value c = {}) { return builder_.op(op, a, b, c); }
  Value constant(double value) { return builder_.constant(value); }
  bool has(size_t i) const { return call_.has(i); }
  std::string_view text(size_t i) const { return call_.text(i); }
  Value number(size_t i) {
    if (!call_.is_number(i)) return has(i) ? refuse("a tensor stands for a number") : constant(1);  // value, alpha: 1 by default
    return builder_.number(i);
  }
  Value condition(size_t i) {
    Ref tensor = call_.tensor(i);
    if (tensor == kNoRef) return builder_.cast(refuse("no condition"), DType::kBool);
    return builder_.cast(builder_.load_raw(tensor), DType::kBool);
  }
  Value is_nan(Value a) {
    if (is_floating(type)) return op(KOp::k_isnan, a);
    return builder_.truth(false);
  }
  // The divisor cannot be an integer zero, which raises.
  bool nonzero(size_t i) const { return is_floating(type) || (call_.is_constant(i) && call_.integer(i) != 0); }

  Value either(Value a, Value b, size_t alpha, int sign) {
    if (is_bool(type)) return sign > 0 ? op(KOp::k_or, a, b) : refuse("bool");
    bool one = !has(alpha) || (call_.is_constant(alpha) && call_.real(alpha) == 1);
    if (!one) b = round(number(alpha)) * b;
    if (base::seeded(base::Defect::kLowerSubSwapped)) std::swap(a, b);
    return sign > 0 ? a + b : a - b;
  }
  Value divide(Value a, Value b) {
    if (!has(2)) return a / b;
    if (!nonzero(1)) return refuse("integer division may raise");
    if (text(2) == "floor") return op(KOp::k_floordiv, a, b);
    if (text(2) != "trunc") return refuse("rounding mode");
    return is_floating(type) ? op(KOp::k_trunc, a / b) : op(KOp::k_truncdiv, a, b);
  }
  // ATen's shortcuts for constant exponents give other roundings than pow: they are part of the meaning.
  Value power(Value a, Value b) {
    if (is_bool(type)) return refuse("bool");
    if (call_.is_number(0)) {
      if (!is_floating(type)) return refuse("integer base and tensor exponent");
      return call_.is_constant(0) && call_.real(0) == 1 ? constant(1) : op(KOp::k_pow, a, b);
    }
    if (!call_.is_constant(1)) return is_floating(type) ? op(KOp::k_pow, a, b) : refuse("integer power may raise");
    double exponent = call_.real(1);
    if (exponent == 0) return constant(1);
    if (exponent == 1) return a;
    if (exponent == 2) return a * a;
    const auto square = [&] { return rounded_ == DType::kBF16 ? round(a * a) : a * a; };  // in ATen's vectors of bf16 each product is rounded
    if (exponent == 3) return square() * a;
    if (!is_floating(type)) return exponent > 0 && exponent == std::floor(exponent) ? op(KOp::k_pow, a, b) : refuse("integer power may raise");
    if (exponent == 0.5) return sqrt(a);
    if (exponent == -0.5) return op(KOp::k_rsqrt, a);
    if (exponent == -1) return op(KOp::k_reciprocal, a);
    if (exponent == -2) return constant(1) / square();
    return op(KOp::k_pow, a, b);
  }
  Value lerp(Value a, Value b, Value weight) {
    if (!is_floating(type)) return refuse("integer");
    if (call_.is_constant(2)) {
      if (std::fabs(call_.real(2)) < 0.5) return a + weight * (b - a);
      return b - (b - a) * (constant(1) - weight);
    }
    return select(op(KOp::k_abs, weight) < constant(0.5), a + weight * (b - a), b - (b - a) * (constant(1) - weight));
  }

  static constexpr double kSqrtHalf = 0.70710678118654752440;   // M_SQRT1_2
  static constexpr double kSqrt2 = 1.41421356237309504880;      // M_SQRT2
  static constexpr double kTwoOverSqrtPi = 1.12837916709551257390;
  static constexpr double kKappa = 0.044715;
  Value gelu_erf(Value x) { return x * constant(0.5) * (constant(1) + op(KOp::k_erf, x * constant(kSqrtHalf))); }
  Value gelu_inner(Value x) { return constant(kSqrt2 * kTwoOverSqrtPi * 0.5) * (x + constant(kKappa) * (x * x * x)); }
  Value gelu_tanh(Value x) { return constant(0.5) * x * (constant(1) + tanh(gelu_inner(x))); }
  Value gelu_erf_backward(Value grad, Value x) {
    Value cdf = constant(0.5) * (constant(1) + op(KOp::k_erf, x * constant(kSqrtHalf)));
    Value pdf = constant(kTwoOverSqrtPi * kSqrtHalf * 0.5) * exp(x * x * constant(-0.5));
    return grad * (cdf + x * pdf);
  }
  Value gelu_tanh_backward(Value grad, Value x) {
    Value inner = tanh(gelu_inner(x));
    Value left = constant(0.5) * x, right = constant(1) + inner;
    Value left_derivative = constant(0.5) * right;
    Value tanh_derivative = constant(1) - inner * inner;
    Value inner_derivative = constant(kSqrt2 * kTwoOverSqrtPi * 0.5) * (constant(1) + constant(3 * kKappa) * (x * x));
    return grad * (left_derivative + left * tanh_derivative * inner_derivative);
  }
  Value silu_backward(Value grad, Value x) {
    Value sigmoid = constant(1) / (constant(1) + exp(-x));
    return grad * sigmoid * (constant(1) + x * (constant(1) - sigmoid));
  }
  Value mish_backward(Value grad, Value x) {
    Value sigmoid = constant(1) / (constant(1) + exp(-x));
    Value inner = tanh(op(KOp::k_log1p, exp(x)));
    return grad * (inner + x * sigmoid * (constant(1) - inner * inner));
  }
  Value softplus_backward(Value grad, Value x) {
    Value z = exp(x * number(2));
    return select(x * number(2) > number(3), grad, grad * z / (z + constant(1)));
  }
  // With z = exp(-|x|): x < 0 ? grad * (1 - z / (1 + z)) : grad * (z / (1 + z)).
  Value log_sigmoid_backward(Value grad, Value x) {
    Value z = exp(-op(KOp::k_abs, x));
    Value part = z / (constant(1) + z);
    return grad * select(x < constant(0), constant(1) - part, part);
  }
  Value elu_backward(Value grad, Value x) {
    Value negative = number(1) * number(2), positive = number(2), input = number(3);
    Value below = call_.flag(4) ? grad * input * (x + negative) : grad * input * negative * exp(x * input);
    return select(x <= constant(0), below, grad * positive);
  }

#define X(name, arguments, mode, formula, sentence) \
  Value formula_##name([[maybe_unused]] Value a, [[maybe_unused]] Value b, [[maybe_unused]] Value c) { return formula; }
#include "ir/lower/pointwise.def"
#undef X
};

struct Row {
  std::string_view arguments;
  Mode mode;
  Value (Pointwise::*formula)(Value, Value, Value);
};

const std::unordered_map<std::string_view, Row>& rows() {
  static const std::unordered_map<std::string_view, Row> table = {
#define X(name, arguments, mode, formula, sentence) {#name, {arguments, Mode::k##mode, &Pointwise::formula_##name}},
#include "ir/lower/pointwise.def"
#undef X
  };
  return table;
}

DType compute_dtype(const CallView& call, const Row& row, DType result) {
  switch (row.mode) {
    case Mode::kResult: return result;
    case Mode::kLogical: return DType::kBool;
    case Mode::kFirst: return call.meta(call.tensor(row.arguments[0] - '0')).dtype;
    default: break;
  }
  Promotion promotion;
  for (char digit : row.arguments) {
    size_t i = digit - '0';
    if (Ref tensor = call.tensor(i); tensor != kNoRef) {
      promotion.tensor(call.meta(tensor), call.default_dtype());
    } else if (call.is_number(i)) {
      promotion.number(call.number_kind(i), call.default_dtype());
    }
  }
  DType common = promotion.result();
  bool wants_float = row.mode == Mode::kFloat || (row.mode == Mode::kDivide && !call.has(2));
  return wants_float && !is_floating(common) ? call.default_dtype() : common;
}

// One tensor of an elementwise operation. `target`: where the result goes.
bool lower_pointwise(const Request& request, const Row& row, Ref target, std::string_view name) {
  const CallView& call = request.call;
  const TensorMeta& meta = call.meta(target);
  for (char digit : row.arguments) {
    size_t i = digit - '0';
    Ref tensor = call.tensor(i);
    if (call.has(i) && tensor == kNoRef && !call.is_number(i)) return request.refuse("an argument of an unexpected kind");
    if (tensor == kNoRef) continue;
    if (!is_computable(call.meta(tensor).dtype)) return request.refuse("dtype");
    if (call.meta(tensor).sizes.size() > meta.sizes.size()) return request.refuse("rank");
  }
  if (row.mode == Mode::kFirst && call.tensor(row.arguments[0] - '0') == kNoRef) return request.refuse("no tensor");
  DType common = compute_dtype(call, row, meta.dtype);
  if (!is_computable(common)) return request.refuse("dtype");
  Builder builder(call, meta.sizes);
  builder.set_type(common);
  const bool rounds = is_reduced_floating(common) && meta.device_type == 0 && (row.mode == Mode::kPromote || row.mode == Mode::kCompare);
  Pointwise pointwise(builder, builder.type(), rounds ? common : DType::kOther);
  Value values[3];
  for (size_t k = 0; k < row.arguments.size(); ++k) {
    size_t i = row.arguments[k] - '0';
    if (Ref tensor = call.tensor(i); tensor != kNoRef) {
      values[k] = builder.load(tensor);
    } else if (call.is_number(i)) {
      values[k] = pointwise.round(builder.number(i));
    }
  }
  // clamp with only an upper bound: `b` stands for the bound that there is.
  if (row.arguments.size() == 3 && !values[1]) values[1] = values[2];
  for (size_t k = 0; k < row.arguments.size(); ++k)
    if (!values[k] && !(k == 2 && values[1])) return request.refuse("an argument is absent");
  Value result = (pointwise.*row.formula)(values[0], values[1], values[2]);
  if (pointwise.refused()) return request.refuse(pointwise.reason());
  // Rounded to the promoted dtype first, as the operation's own result is before it is converted.
  if (is_reduced_floating(common) && !is_bool(builder.kernel().nodes[result.node].dtype)) result = builder.cast(result, common);
  builder.store(target, result);
  request.out->push_back(builder.finish(name));
  return true;
}

bool is_uninitialised(std::string_view name) {
  return name == "empty" || name == "empty_like" || name == "empty_strided" || name == "new_empty" || name == "new_empty_strided";
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == DType::kOther || a == b) return b;
  if (b == DType::kOther) return a;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (is_floating(a)) {
    if (a == DType::kF64 || b == DType::kF64) return DType::kF64;
    return DType::kF32;  // f32 with a smaller one, or f16 with bf16
  }
  // Integers: the wider one; u8 with i8 needs i16.
  if ((a == DType::kU8 && b == DType::kI8) || (a == DType::kI8 && b == DType::kU8)) return DType::kI16;
  return dtype_size(a) > dtype_size(b) ? a : b;
}

namespace {

// Is each symbol in the sizes of its results one of its operands' sizes? Else other things than these decide what it gives.
bool sizes_come_from_operands(const Trace& trace, const Inst& inst, const AtenCall& call) {
  const auto comes_from_operand = [&](int64_t code) {
    for (uint32_t k = 0; k < inst.count; ++k)
      if (const Inst& operand = trace.insts[trace.arg(inst, k)]; operand.type == Type::kTensor && has_symbol(trace.metas[operand.meta].sizes, code)) return true;
    return false;
  };
  for (int32_t result : call.results)
    for (int64_t code : trace.symbols)
      if (result >= 0 && has_symbol(trace.metas[result].sizes, code) && !comes_from_operand(code)) return false;
  return true;
}

bool lower_with_codes(const Trace& trace, Ref aten, const std::vector<Ref>& results, std::vector<Lowered>* out, std::string* why, const Provided& provided, bool* symbolic) {
  const Inst& inst = trace.insts[aten];
  const AtenCall& call = trace.calls[inst.imm];
  size_t before = out->size();
  auto give_up = [&](const char* reason) {
    if (reason) *why = reason;
    out->resize(before);
    return false;
  };
  std::string_view name = call.name;
  if (name.substr(0, 6) != "aten::") return give_up("not an ATen operation");
  name.remove_prefix(6);
  const bool draws = call.stream.threads != 0;
  if (call.is_random && !draws) return give_up("random");
  const auto known = [&](const TensorMeta& meta) {
    *symbolic = *symbolic || meta.open != 0;
    return meta.open == 0 || meta.symbolic;
  };
  if (call.overload.find("out") != std::string::npos) return give_up("out form");
  for (int32_t result : call.results) {
    if (result < 0) continue;
    if (!known(trace.metas[result])) return give_up("sizes that a run decides");
    if (!is_computable(trace.metas[result].dtype)) return give_up("dtype");
    if (trace.metas[result].sizes.size() > static_cast<size_t>(kMaxKernelDims)) return give_up("rank");
  }
  for (uint32_t k = 0; k < inst.count; ++k) {
    const Inst& operand = trace.insts[trace.arg(inst, k)];
    if (operand.type != Type::kTensor) continue;
    if (!known(trace.metas[operand.meta])) return give_up("sizes that a run decides");
    if (trace.metas[operand.meta].sizes.size() > static_cast<size_t>(kMaxKernelDims)) return give_up("rank");
  }
  if (*symbolic && (provided.temporary != kNoRef || draws || (!call.follows && !sizes_come_from_operands(trace, inst, call)))) return give_up("sizes that a run decides");
  if (is_uninitialised(name)) return true;

  bool in_place = is_in_place(call);
  bool foreach_op = name.substr(0, 9) == "_foreach_";
  if (LowerFunction function = find_structured(name)) {
    CallView view(trace, aten, 0);
    Request request{view, results, out, why, provided};
    if (!function(request)) return give_up(nullptr);
    if (view.misread()) return give_up("a number of the run decides");
  } else {
    std::string_view stem = name;
    if (foreach_op) stem.remove_prefix(9);
    if (in_place) stem.remove_suffix(1);
    auto row = rows().find(stem);
    if (row == rows().end() || draws) return give_up("no rule");
    size_t elements = 1;
    if (foreach_op) {
      if (call.args.empty() || call.args[0].kind != AtenArg::kTensorList) return give_up("no tensor list");
      elements = call.args[0].operands.size();
    }
    if (writes_others(call)) return give_up("writes other arguments");
    for (size_t k = 0; k < elements; ++k) {
      CallView view(trace, aten, k);
      Request request{view, results, out, why, provided};
      Ref target = in_place ? view.tensor(0) : request.result(k);
      if (target == kNoRef) {
        if (in_place) return give_up("undefined tensor");
        continue;  // nobody reads it
      }
      if (!lower_pointwise(request, row->second, target, stem)) return give_up(nullptr);
      if (view.misread()) return give_up("a number of the run decides");
    }
  }
  for (size_t k = before; k < out->size(); ++k) {
    base::Status status = verify_kernel((*out)[k].kernel);
    if (!status.ok()) {
      *why = status.message();
      return give_up(nullptr);
    }
  }
  // Empty spaces compute nothing, except reductions, which give their neutral value.
  for (size_t k = before; k < out->size();) {
    const Kernel& kernel = (*out)[k].kernel;
    if (kernel.num_points() == 0 && kernel.reduce_dims == 0) {
      out->erase(out->begin() + k);
    } else {
      ++k;
    }
  }
  return true;
}

}  // namespace

bool lower_call(const Trace& trace, Ref aten, const std::vector<Ref>& results, std::vector<Lowered>* out, std::string* why, const Provided& provided, const Trace* recoded) {
  const size_t before = out->size();
  bool symbolic = false;
  if (!lower_with_codes(trace, aten, results, out, why, provided, &symbolic)) return false;
  if (!symbolic) return true;
  std::vector<Lowered> again;
  bool same = recoded != nullptr && lower_with_codes(*recoded, aten, results, &again, why, provided, &symbolic) && again.size() == out->size() - before;
  for (size_t k = 0; same && k < again.size(); ++k) {
    const Lowered& first = (*out)[before + k];
    same = first.tensors == again[k].tensors && first.scalars == again[k].scalars && same_but_codes(first.kernel, again[k].kernel);
  }
  if (same) return true;
  *why = "it computes with sizes";
  out->resize(before);
  return false;
}

bool is_elementwise(const AtenCall& call) {
  std::string_view name = call.name;
  if (name.substr(0, 6) != "aten::") return false;
  name.remove_prefix(6);
  if (constexpr std::string_view kList = "_foreach_"; name.substr(0, kList.size()) == kList) name.remove_prefix(kList.size());
  if (!name.empty() && name.back() == '_') name.remove_suffix(1);
  return rows().count(name) != 0;
}

bool sizes_follow(const Trace& trace, const Inst& aten) {
  static const std::unordered_map<std::string_view, int> table = {
#define X(name, dim, sentence) {#name, dim},
#include "ir/lower/follows.def"
#undef X
  };
  const AtenCall& call = trace.calls[static_cast<size_t>(aten.imm)];
  std::string_view name = call.name;
  if (name.substr(0, 6) != "aten::" || call.defines_sizes) return false;
  name.remove_prefix(6);
  const auto row = table.find(name);
  if (row == table.end()) return rows().count(name) != 0;
  if (row->second < 0) return true;
  const size_t argument = static_cast<size_t>(row->second);
  if (argument >= call.args.size() || call.args[argument].kind != AtenArg::kInt || call.args[0].kind != AtenArg::kTensor) return false;
  const TensorMeta& operand = trace.metas[trace.insts[trace.arg(aten, static_cast<uint32_t>(call.args[0].operands[0]))].meta];
  const auto rank = static_cast<int64_t>(operand.sizes.size());
  const int64_t dim = call.args[argument].i + (call.args[argument].i < 0 ? rank : 0);
  return dim >= 0 && dim < rank && (operand.open >> dim & 1) == 0;
}

bool names_sizes(const AtenCall& call) {
  static const std::unordered_set<std::string_view> table = {
#define X(name, sentence) "aten::" #name,
#include "ir/lower/named.def"
#undef X
  };
  return table.count(call.name) != 0 && call.results.size() == 1;
}

bool adds_sizes(const Trace& trace, const Inst& aten, size_t* dim, std::vector<int64_t>* terms) {
  const AtenCall& call = trace.calls[static_cast<size_t>(aten.imm)];
  if (call.name != "aten::cat" || call.results.size() != 1 || call.results[0] < 0 || call.args.size() < 2 || call.args[0].kind != AtenArg::kTensorList || call.args[1].kind != AtenArg::kInt)
    return false;
  const TensorMeta* first = nullptr;
  terms->clear();
  for (int32_t operand : call.args[0].operands) {
    if (operand < 0) return false;
    const TensorMeta& part = trace.metas[trace.insts[trace.arg(aten, static_cast<uint32_t>(operand))].meta];
    const size_t rank = part.sizes.size();
    if (first == nullptr) {
      first = &part;
      *dim = static_cast<size_t>(call.args[1].i + (call.args[1].i < 0 ? static_cast<int64_t>(rank) : 0));
    }
    if (*dim >= rank || rank != first->sizes.size() || part.sizes[*dim] <= 0) return false;
    for (size_t d = 0; d < rank; ++d)
      if (d != *dim && part.sizes[d] != first->sizes[d]) return false;
    terms->push_back(part.sizes[*dim]);
  }
  return first != nullptr;
}

Trace recoded_for_lowering(const Trace& trace) {
  Trace recoded;
  recoded.insts = trace.insts;
  recoded.operands = trace.operands;
  recoded.metas = trace.metas;
  recoded.calls = trace.calls;
  recoded.torch_states = trace.torch_states;
  recoded.num_storages = trace.num_storages;
  SymbolCodes codes(trace.symbols.empty() ? 0 : *std::max_element(trace.symbols.begin(), trace.symbols.end()));
  for (const TensorMeta& meta : trace.metas) {
    for (const auto& numbers : {meta.sizes, meta.strides, {meta.offset}})
      for (int64_t number : numbers) codes.avoid(number);
  }
  for (size_t k = 0; k < trace.symbols.size(); ++k) recoded.symbols.push_back(codes.next());
  for (TensorMeta& meta : recoded.metas) {
    if (!meta.symbolic) continue;
    const auto recode = [&](int64_t& number) { number = evaluate(number, trace.symbols, recoded.symbols); };
    std::for_each(meta.sizes.begin(), meta.sizes.end(), recode);
    std::for_each(meta.strides.begin(), meta.strides.end(), recode);
    recode(meta.offset);
  }
  return recoded;
}

std::optional<TensorMeta> temporary_of(const Trace& trace, Ref aten) {
  if (trace.calls[trace.insts[aten].imm].name != "aten::nll_loss_forward") return std::nullopt;
  return nll_loss_temporary(CallView(trace, aten, 0));
}

bool reshape_kernel(Kernel* kernel, const std::vector<int64_t>& sizes) {
  if (kernel->reduce_dims != 0 || kernel->num_points() == 0) return false;
  int64_t points = 1;
  for (int64_t size : sizes) points *= size;
  if (points != kernel->num_points()) return false;
  for (const KernelNode& node : kernel->nodes)
    if (node.op == KOp::k_index) return false;
  std::vector<std::vector<int64_t>> all;
  for (const KernelOperand& operand : kernel->operands) {
    // As at::detail::computeStride: walk runs of old dims in which the memory is evenly spaced, and cut them into new dims.
    std::vector<int64_t> strides(sizes.size(), 0);
    auto next = static_cast<int64_t>(sizes.size()) - 1;
    size_t old_count = kernel->sizes.size();
    int64_t base = old_count ? operand.strides.back() : 0, run = 1, made = 1;
    for (size_t d = old_count; d-- > 0;) {
      run *= kernel->sizes[d];
      if (d > 0 && (kernel->sizes[d - 1] == 1 || operand.strides[d - 1] == run * base)) continue;
      while (next >= 0 && (made < run || sizes[next] == 1)) {
        strides[next] = sizes[next] == 1 ? 0 : made * base;
        made *= sizes[next];
        --next;
      }
      if (made != run) return false;
      if (d > 0) {
        base = operand.strides[d - 1];
        run = made = 1;
      }
    }
    for (; next >= 0; --next)
      if (sizes[next] != 1) return false;
    all.push_back(std::move(strides));
  }
  for (size_t k = 0; k < all.size(); ++k) kernel->operands[k].strides = std::move(all[k]);
  kernel->sizes = sizes;
  return true;
}

}  // namespace dynvm::ir
