// The reference evaluator of kernels. See eval.h for what it promises. Tests: tests/kernel/eval_test.cpp.
//
// One kept point at a time; a full node has one value for each reduced point, a kept node one value. A scan goes over the reduced points in order. Stores are collected and applied
// after the last point, so that loads see memory as it was.
#include "ir/kernel/eval.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/kernel/half.h"
#include "ir/kernel/philox.h"

namespace dynvm::ir {

namespace {

// A floating value is in f (rounded to its dtype), any other in i (wrapped to its dtype).
struct Value {
  double f = 0;
  int64_t i = 0;
};

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32: return static_cast<float>(value);
    case DType::kF16: return half_to_float(float_to_half(static_cast<float>(value)));
    case DType::kBF16: return bfloat_to_float(float_to_bfloat(static_cast<float>(value)));
    default: return value;
  }
}

int64_t wrap_to(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kI32: return static_cast<int32_t>(value);
    case DType::kI16: return static_cast<int16_t>(value);
    case DType::kI8: return static_cast<int8_t>(value);
    case DType::kU8: return static_cast<uint8_t>(value);
    case DType::kBool: return value != 0;
    default: return value;
  }
}

Value read(DType dtype, const char* at) {
  auto get = [at](auto example) {
    std::memcpy(&example, at, sizeof example);
    return example;
  };
  Value v;
  switch (dtype) {
    case DType::kF32: v.f = get(float()); break;
    case DType::kF64: v.f = get(double()); break;
    case DType::kF16: v.f = half_to_float(get(uint16_t())); break;
    case DType::kBF16: v.f = bfloat_to_float(get(uint16_t())); break;
    case DType::kI64: v.i = get(int64_t()); break;
    case DType::kI32: v.i = get(int32_t()); break;
    case DType::kI16: v.i = get(int16_t()); break;
    case DType::kI8: v.i = get(int8_t()); break;
    case DType::kU8: v.i = get(uint8_t()); break;
    default: v.i = get(uint8_t()) != 0;
  }
  return v;
}

void write(DType dtype, char* at, Value v) {
  auto put = [at](auto value) { std::memcpy(at, &value, sizeof value); };
  switch (dtype) {
    case DType::kF32: put(static_cast<float>(v.f)); break;
    case DType::kF64: put(v.f); break;
    case DType::kF16: put(float_to_half(static_cast<float>(v.f))); break;
    case DType::kBF16: put(float_to_bfloat(static_cast<float>(v.f))); break;
    case DType::kI64: put(v.i); break;
    case DType::kI32: put(static_cast<int32_t>(v.i)); break;
    case DType::kI16: put(static_cast<int16_t>(v.i)); break;
    default: put(static_cast<uint8_t>(v.i));
  }
}

int64_t float_to_int(double value) {
  return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
}

double float_floordiv(double a, double b) {
  if (b == 0) return a / b;
  double mod = std::fmod(a, b), quotient = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

double float_mod(double a, double b) {
  double mod = std::fmod(a, b);
  return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}

// Of zeros with different signs the second, as the instructions have it.
double float_min(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b; }
double float_max(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b; }

// Arithmetic in double, once rounded by the caller: exact for f32 +, -, *, / and sqrt.
double float_op(const KernelNode& node, double a, double b, double c) {
  switch (node.op) {
    case KOp::k_add: return a + b;
    case KOp::k_sub: return a - b;
    case KOp::k_mul: return a * b;
    case KOp::k_fma: return node.dtype == DType::kF64 ? std::fma(a, b, c) : std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
    case KOp::k_div: return a / b;
    case KOp::k_floordiv:
      if (node.dtype == DType::kF64) return float_floordiv(a, b);
      {
        // In f32, as ATen: each step rounds.
        float x = static_cast<float>(a), y = static_cast<float>(b);
        if (y == 0) return x / y;
        float mod = std::fmod(x, y), quotient = (x - mod) / y;
        if (mod != 0 && (y < 0) != (mod < 0)) quotient -= 1;
        if (quotient == 0) return std::copysign(0.0f, x / y);
        float whole = std::floor(quotient);
        return quotient - whole > 0.5f ? whole + 1 : whole;
      }
    case KOp::k_truncdiv: return std::trunc(round_to(node.dtype, a / b));
    case KOp::k_mod: return float_mod(a, b);
    case KOp::k_fmod: return std::fmod(a, b);
    case KOp::k_neg: return -a;
    case KOp::k_abs: return std::fabs(a);
    case KOp::k_sign: return a > 0 ? 1 : a < 0 ? -1 : 0;
    case KOp::k_min: return float_min(a, b);
    case KOp::k_max: return float_max(a, b);
    case KOp::k_pow: return std::pow(a, b);
    case KOp::k_sqrt: return std::sqrt(a);
    case KOp::k_rsqrt: return 1 / round_to(node.dtype == DType::kF64 ? DType::kF64 : DType::kF32, std::sqrt(a));
    case KOp::k_reciprocal: return 1 / a;
    case KOp::k_exp: return std::exp(a);
    case KOp::k_exp2: return std::exp2(a);
    case KOp::k_expm1: return std::expm1(a);
    case KOp::k_log: return std::log(a);
    case KOp::k_log1p: return std::log1p(a);
    case KOp::k_log2: return std::log2(a);
    case KOp::k_log10: return std::log10(a);
    case KOp::k_sin: return std::sin(a);
    case KOp::k_cos: return std::cos(a);
    case KOp::k_tan: return std::tan(a);
    case KOp::k_asin: return std::asin(a);
    case KOp::k_acos: return std::acos(a);
    case KOp::k_atan: return std::atan(a);
    case KOp::k_atan2: return std::atan2(a, b);
    case KOp::k_sinh: return std::sinh(a);
    case KOp::k_cosh: return std::cosh(a);
    case KOp::k_tanh: return std::tanh(a);
    case KOp::k_asinh: return std::asinh(a);
    case KOp::k_acosh: return std::acosh(a);
    case KOp::k_atanh: return std::atanh(a);
    case KOp::k_sigmoid: return 1 / (1 + std::exp(-a));
    case KOp::k_erf: return std::erf(a);
    case KOp::k_erfc: return std::erfc(a);
    case KOp::k_lgamma: {
      int sign;
      return lgamma_r(a, &sign);
    }
    case KOp::k_hypot: return std::hypot(a, b);
    case KOp::k_copysign: return std::copysign(a, b);
    case KOp::k_floor: return std::floor(a);
    case KOp::k_ceil: return std::ceil(a);
    case KOp::k_round: return std::nearbyint(a);
    case KOp::k_trunc: return std::trunc(a);
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}

uint64_t u(int64_t value) { return static_cast<uint64_t>(value); }

int64_t int_pow(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  uint64_t result = 1, factor = u(base);
  for (; exponent; exponent >>= 1, factor *= factor)
    if (exponent & 1) result *= factor;
  return static_cast<int64_t>(result);
}

int64_t int_op(const KernelNode& node, int64_t a, int64_t b) {
  int bits = dtype_size(node.dtype) * 8;
  bool is_unsigned = node.dtype == DType::kU8;
  switch (node.op) {
    case KOp::k_add: return static_cast<int64_t>(u(a) + u(b));
    case KOp::k_sub: return static_cast<int64_t>(u(a) - u(b));
    case KOp::k_mul: return static_cast<int64_t>(u(a) * u(b));
    case KOp::k_truncdiv: return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(-u(a)) : a / b;
    case KOp::k_floordiv: return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(-u(a)) : a / b - (a % b != 0 && (a < 0) != (b < 0));
    case KOp::k_fmod: return b == 0 || b == -1 ? 0 : a % b;
    case KOp::k_mod: {
      int64_t rest = b == 0 || b == -1 ? 0 : a % b;
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    case KOp::k_neg: return static_cast<int64_t>(-u(a));
    case KOp::k_abs: return a < 0 ? static_cast<int64_t>(-u(a)) : a;
    case KOp::k_sign: return a > 0 ? 1 : a < 0 ? -1 : 0;
    case KOp::k_min: return a < b ? a : b;
    case KOp::k_max: return a > b ? a : b;
    case KOp::k_pow: return int_pow(a, b);
    case KOp::k_and: return a & b;
    case KOp::k_or: return a | b;
    case KOp::k_xor: return a ^ b;
    case KOp::k_not: return is_bool(node.dtype) ? !a : ~a;
    case KOp::k_shl: return b < 0 || b >= bits ? 0 : static_cast<int64_t>(u(a) << b);
    case KOp::k_shr: return b < 0 || b >= bits ? (a < 0 && !is_unsigned ? -1 : 0) : a >> b;
    default: return 0;
  }
}

class Evaluator {
 public:
  Evaluator(const Kernel& kernel, void* const* pointers, const int64_t* scalars) : kernel_(kernel), pointers_(pointers), scalars_(scalars), dims_(node_dims(kernel)) {}

  bool run() {
    for (size_t k = 0; k < kernel_.sizes.size(); ++k) (kernel_.reduce_dims >> k & 1 ? reduced_ : kept_).push_back(static_cast<int>(k));
    for (int k : reduced_) num_reduced_ *= kernel_.sizes[k];
    int64_t num_kept = 1;
    for (int k : kept_) num_kept *= kernel_.sizes[k];
    values_.resize(kernel_.nodes.size());
    index_.assign(kernel_.sizes.size(), 0);
    for (int64_t point = 0; point < num_kept; ++point) {
      set_index(kept_, point);
      for (size_t n = 0; n < kernel_.nodes.size() && !failed_; ++n) evaluate(n);
      if (failed_) return false;
      for (const KernelStore& store : kernel_.stores) collect(store);
    }
    for (const Write& w : writes_) {
      if (!w.adds) {
        write(w.dtype, w.at, w.value);
        continue;
      }
      const Value before = read(w.dtype, w.at);
      write(w.dtype, w.at, {before.f + w.value.f, static_cast<int64_t>(u(before.i) + u(w.value.i))});
    }
    return true;
  }

 private:
  struct Write {
    DType dtype;
    char* at;
    Value value;
    bool adds;
  };

  bool full(size_t n) const { return dims_[n] & kernel_.reduce_dims; }

  void set_index(const std::vector<int>& dims, int64_t point) {
    for (size_t k = dims.size(); k-- > 0;) {
      int64_t size = std::max<int64_t>(kernel_.sizes[dims[k]], 1);
      index_[dims[k]] = point % size;
      point /= size;
    }
  }

  int64_t element_of(const KernelOperand& operand) const {
    int64_t element = 0;
    for (size_t k = 0; k < index_.size(); ++k) element += index_[k] * operand.strides[k];
    return element;
  }
  char* address(const KernelOperand& operand) const {
    return static_cast<char*>(pointers_[operand.pointer]) + (operand.offset + element_of(operand)) * dtype_size(operand.dtype);
  }

  const Value& value(int32_t n, int64_t point) const { return values_[n][full(n) ? point : 0]; }

  void evaluate(size_t n) {
    const KernelNode& node = kernel_.nodes[n];
    if (is_reduce(node.op)) {
      values_[n].assign(1, reduce(node));
      return;
    }
    values_[n].assign(full(n) ? num_reduced_ : 1, Value());
    if (is_scan(node.op)) return scan(n);
    for (size_t point = 0; point < values_[n].size(); ++point) {
      set_index(reduced_, static_cast<int64_t>(point));
      values_[n][point] = node.op == KOp::k_dot ? dot(node) : compute(node, [&](int32_t operand) { return value(operand, static_cast<int64_t>(point)); });
    }
  }

  Value convert(DType to, DType from, Value v) const {
    Value result;
    if (is_floating(to)) {
      result.f = is_floating(from) ? round_to(to, v.f) : round_int(to, v.i);
    } else if (is_bool(to)) {
      result.i = is_floating(from) ? v.f != 0 : v.i != 0;
    } else {
      result.i = wrap_to(to, is_floating(from) ? float_to_int(v.f) : v.i);
    }
    return result;
  }

  static double round_int(DType to, int64_t value) {
    if (to == DType::kF64) return static_cast<double>(value);
    return round_to(to, static_cast<float>(value));
  }

  // operand: gives the value of one.
  template <class Operand>
  Value compute(const KernelNode& node, Operand operand) {
    Value result;
    switch (node.op) {
      case KOp::k_load: return read(node.dtype, address(kernel_.operands[node.operand]));
      case KOp::k_const:
        if (is_floating(node.dtype)) result.f = round_to(node.dtype, node.f);
        else result.i = wrap_to(node.dtype, node.i);
        return result;
      case KOp::k_scalar: {
        Value v;
        bool floating = kernel_.scalar_types[node.i] == DType::kF64;
        if (floating) v.f = std::bit_cast<double>(scalars_[node.i]);
        else v.i = scalars_[node.i];
        return convert(node.dtype, floating ? DType::kF64 : DType::kI64, v);
      }
      case KOp::k_index: return result.i = index_[node.i], result;
      default: break;
    }
    Value none;
    const Value a = node.a >= 0 ? operand(node.a) : none;
    const Value b = node.b >= 0 ? operand(node.b) : none;
    const Value c = node.c >= 0 ? operand(node.c) : none;
    if (node.op == KOp::k_where) return a.i ? b : c;
    if (node.op == KOp::k_load_at) return b.i && !failed_ ? read(node.dtype, address(kernel_.operands[node.operand]) + a.i * dtype_size(node.dtype)) : none;
    if (node.op == KOp::k_within) return failed_ = failed_ || a.i < 0 || a.i >= b.i, a;
    if (node.op == KOp::k_draw) return result.f = drawn_number(a.i, b.i, element_of(kernel_.operands[node.operand]), DrawForm::of(node.i)), result;
    DType from = kernel_.nodes[node.a].dtype;
    if (node.op == KOp::k_cast) return convert(node.dtype, from, a);
    if (is_bool(node.dtype) && kop_info(node.op).typing != 'N' && kop_info(node.op).typing != 'V') {
      bool floating = is_floating(from);
      auto compare = [&](auto x, auto y) {
        switch (node.op) {
          case KOp::k_eq: return x == y;
          case KOp::k_ne: return x != y;
          case KOp::k_lt: return x < y;
          case KOp::k_le: return x <= y;
          case KOp::k_gt: return x > y;
          default: return x >= y;
        }
      };
      if (node.op == KOp::k_isnan) result.i = std::isnan(a.f);
      else if (node.op == KOp::k_isinf) result.i = std::isinf(a.f);
      else if (node.op == KOp::k_isfinite) result.i = std::isfinite(a.f);
      else result.i = floating ? compare(a.f, b.f) : compare(a.i, b.i);
    } else if (is_floating(node.dtype)) {
      result.f = round_to(node.dtype, float_op(node, a.f, b.f, c.f));
    } else {
      result.i = wrap_to(node.dtype, int_op(node, a.i, b.i));
    }
    return result;
  }

  // Of a node that depends on no sum, where the index is now.
  Value anew(int32_t n) {
    return compute(kernel_.nodes[n], [&](int32_t operand) { return anew(operand); });
  }

  Value dot(const KernelNode& node) {
    const std::vector<int64_t> here = index_;
    Value sum;
    for (int64_t& at = index_.back() = 0; at < kernel_.sizes.back(); ++at) sum.f += anew(node.a).f * anew(node.b).f;
    index_ = here;
    sum.f = round_to(node.dtype, sum.f);
    return sum;
  }

  Value attend(const KernelNode& node) const {
    double top = -std::numeric_limits<double>::infinity(), weights = 0, sum = 0;
    for (int64_t point = 0; point < num_reduced_; ++point) top = std::max(top, value(node.a, point).f);
    for (int64_t point = 0; point < num_reduced_ && top != -std::numeric_limits<double>::infinity(); ++point) {
      const double weight = std::exp(value(node.a, point).f - top);
      weights += weight;
      sum += weight * value(node.b, point).f;
    }
    Value mean;
    mean.f = weights == 0 ? 0 : round_to(node.dtype, sum / weights);
    return mean;
  }

  void scan(size_t n) {
    const KernelNode& node = kernel_.nodes[n];
    Value acc;
    acc.f = node.op == KOp::k_scan_logaddexp ? -std::numeric_limits<double>::infinity() : node.op == KOp::k_scan_prod;
    acc.i = node.op == KOp::k_scan_prod;
    for (size_t point = 0; point < values_[n].size(); ++point) {
      const Value& v = value(node.a, static_cast<int64_t>(point));
      switch (node.op) {
        case KOp::k_scan_sum: acc.f += v.f, acc.i = static_cast<int64_t>(u(acc.i) + u(v.i)); break;
        case KOp::k_scan_prod: acc.f *= v.f, acc.i = static_cast<int64_t>(u(acc.i) * u(v.i)); break;
        default: acc.f = log_add_exp(acc.f, v.f);
      }
      values_[n][point].f = round_to(node.dtype, acc.f);
      values_[n][point].i = wrap_to(node.dtype, acc.i);
    }
  }
  static double log_add_exp(double a, double b) {
    const double low = float_min(a, b), high = float_max(a, b);
    return low == high && std::isinf(low) ? low : high + std::log1p(std::exp(low - high));
  }

  Value reduce(const KernelNode& node) const {
    if (node.op == KOp::k_reduce_attend) return attend(node);
    DType type = kernel_.nodes[node.a].dtype;
    bool floating = is_floating(type);
    bool arg = is_arg_reduce(node.op);
    bool largest = node.op == KOp::k_reduce_max || node.op == KOp::k_reduce_argmax;
    double infinity = std::numeric_limits<double>::infinity();
    Value acc;
    switch (node.op) {
      case KOp::k_reduce_prod: acc.f = 1, acc.i = 1; break;
      case KOp::k_reduce_all: acc.i = 1; break;
      case KOp::k_reduce_max:
        acc.f = -infinity;
        acc.i = type == DType::kU8 ? 0 : -(int64_t{1} << (dtype_size(type) * 8 - 2)) * 2;
        break;
      case KOp::k_reduce_min:
        acc.f = infinity;
        acc.i = type == DType::kU8 ? 255 : (int64_t{1} << (dtype_size(type) * 8 - 2)) - 1 + (int64_t{1} << (dtype_size(type) * 8 - 2));
        break;
      default: break;
    }
    int64_t best = 0;
    for (int64_t point = 0; point < num_reduced_; ++point) {
      const Value& v = value(node.a, point);
      switch (node.op) {
        case KOp::k_reduce_sum: acc.f += v.f, acc.i = static_cast<int64_t>(u(acc.i) + u(v.i)); break;
        case KOp::k_reduce_prod: acc.f *= v.f, acc.i = static_cast<int64_t>(u(acc.i) * u(v.i)); break;
        case KOp::k_reduce_any: acc.i |= v.i; break;
        case KOp::k_reduce_all: acc.i &= v.i; break;
        default: {
          bool better = floating ? (std::isnan(v.f) ? !std::isnan(acc.f) : largest ? v.f > acc.f : v.f < acc.f) : largest ? v.i > acc.i : v.i < acc.i;
          if (point == 0 && arg) better = true;
          if (better) acc = v, best = point;
        }
      }
    }
    if (arg) return acc = Value(), acc.i = best, acc;
    acc.f = round_to(type, acc.f);
    acc.i = wrap_to(type, acc.i);
    return acc;
  }

  void collect(const KernelStore& store) {
    const KernelOperand& operand = kernel_.operands[store.operand];
    for (int64_t point = 0; point < (is_full_store(kernel_, dims_, store) ? num_reduced_ : 1); ++point) {
      set_index(reduced_, point);
      if (store.has_place() && !value(store.holds, point).i) continue;
      const int64_t at = store.has_place() ? value(store.at, point).i : 0;
      writes_.push_back({operand.dtype, address(operand) + at * dtype_size(operand.dtype), value(store.node, point), store.adds});
    }
  }

  const Kernel& kernel_;
  void* const* pointers_;
  const int64_t* scalars_;
  std::vector<uint32_t> dims_;
  std::vector<int> kept_, reduced_;
  int64_t num_reduced_ = 1;
  std::vector<int64_t> index_;
  std::vector<std::vector<Value>> values_;
  std::vector<Write> writes_;
  bool failed_ = false;
};

}  // namespace

bool eval_kernel(const Kernel& kernel, void* const* pointers, const int64_t* scalars) { return Evaluator(kernel, pointers, scalars).run(); }

}  // namespace dynvm::ir
