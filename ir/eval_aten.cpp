// The reference semantics of ATen operations (eval_aten.h), one element at a time.
//
// Arithmetic is on `Number`: a double that each operation rounds to the type at hand, which for f32 gives f32's own result (a double holds
// the exact sum, product, quotient and root of two floats well enough that rounding twice is rounding once).
#include "ir/eval_aten.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ir/drawing.h"

namespace dynvm::ir {
namespace {

enum class Rounding { kFloat, kDouble, kInteger };
thread_local Rounding rounding = Rounding::kFloat;

double rounded(double value) { return rounding == Rounding::kFloat ? static_cast<float>(value) : value; }

struct Number {
  double v = 0;
  Number() = default;
  Number(double value) : v(rounded(value)) {}
};
Number operator+(Number a, Number b) { return a.v + b.v; }
Number operator-(Number a, Number b) { return a.v - b.v; }
Number operator*(Number a, Number b) { return a.v * b.v; }
Number operator/(Number a, Number b) { return a.v / b.v; }
Number operator-(Number a) { return -a.v; }
Number biggest(Number a, Number b) { return std::isnan(a.v) || std::isnan(b.v) ? NAN : std::max(a.v, b.v); }
Number smallest(Number a, Number b) { return std::isnan(a.v) || std::isnan(b.v) ? NAN : std::min(a.v, b.v); }
Number fn(double (*f)(double), Number a) { return f(a.v); }
Number sigmoid(Number x) { return 1 / (1 + std::exp(-x.v)); }
Number gelu_inner(Number x) { return Number(std::sqrt(2) * M_2_SQRTPI * 0.5) * (x + Number(0.044715) * (x * x * x)); }
double floor_mod(double a, double b) {
  double m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}

using Indexes = std::vector<int64_t>;

template <class Visit>
void for_each(const Indexes& sizes, Visit visit) {
  for (int64_t size : sizes)
    if (size == 0) return;
  Indexes at(sizes.size(), 0);
  for (;;) {
    visit(at);
    size_t k = sizes.size();
    while (k > 0 && ++at[k - 1] == sizes[k - 1]) at[--k] = 0;
    if (k == 0) return;
  }
}

// A tensor in memory, read and written by index; an index with more dims than the tensor is broadcast.
struct Array {
  const TensorMeta* meta = nullptr;
  Memory* memory = nullptr;
  uint8_t* at(const Indexes& index) const {
    int64_t element = meta->offset;
    size_t missing = index.size() - meta->sizes.size();
    for (size_t k = 0; k < meta->sizes.size(); ++k)
      if (meta->sizes[k] != 1) element += index[missing + k] * meta->strides[k];
    return (*memory)[meta->storage].data() + element * dtype_size(meta->dtype);
  }
  double get(const Indexes& index) const { return load_number(at(index), meta->dtype); }
  void set(const Indexes& index, double value) const { store_number(at(index), meta->dtype, value); }
  explicit operator bool() const { return meta != nullptr; }
};

struct Call {
  const Trace& trace;
  const Inst& inst;
  const AtenCall& call;
  const std::vector<double>& numbers;
  Memory* memory;
  size_t element = 0;  // of tensor lists

  bool has(size_t i) const { return i < call.args.size() && call.args[i].kind != AtenArg::kNone; }
  Array array(size_t i) const {
    if (!has(i)) return {};
    const AtenArg& arg = call.args[i];
    size_t k = arg.kind == AtenArg::kTensorList ? element : 0;
    if ((arg.kind != AtenArg::kTensor && arg.kind != AtenArg::kTensorList) || arg.operands[k] < 0) return {};
    return {&trace.metas[trace.insts[trace.arg(inst, arg.operands[k])].meta], memory};
  }
  Array result(size_t i) const {
    if (i >= call.results.size() || call.results[i] < 0) return {};
    return {&trace.metas[call.results[i]], memory};
  }
  double number(size_t i, double otherwise = 1) const {
    if (!has(i)) return otherwise;
    const AtenArg& arg = call.args[i];
    switch (arg.kind) {
      case AtenArg::kFloat: return arg.f;
      case AtenArg::kFloatList: return arg.floats[element];
      case AtenArg::kIntList: return static_cast<double>(arg.ints[element]);
      case AtenArg::kNumberTensor: return is_floating(arg.dtype) ? arg.f : static_cast<double>(arg.i);
      case AtenArg::kScalar:
      case AtenArg::kScalarTensor: return numbers[trace.arg(inst, arg.operands[arg.operands.size() > 1 ? element : 0])];
      default: return static_cast<double>(arg.i);
    }
  }
  bool is_real_number(size_t i) const {
    const AtenArg& arg = call.args[i];
    if (arg.kind == AtenArg::kScalar) return trace.insts[trace.arg(inst, arg.operands[0])].type == Type::kFloat;
    if (arg.kind == AtenArg::kScalarTensor || arg.kind == AtenArg::kNumberTensor) return is_floating(arg.dtype);
    return arg.kind == AtenArg::kFloat || arg.kind == AtenArg::kFloatList;
  }
  std::string text(size_t i) const { return has(i) ? call.args[i].s : ""; }
  std::vector<bool> reduced(size_t i, size_t rank) const {
    std::vector<bool> out(rank, true);
    if (!has(i)) return out;
    Indexes dims = call.args[i].kind == AtenArg::kIntList ? call.args[i].ints : Indexes{call.args[i].i};
    if (dims.empty()) return out;
    out.assign(rank, false);
    for (int64_t dim : dims) out[dim < 0 ? dim + rank : dim] = true;
    return out;
  }
};

int rank_of_type(DType dtype) { return is_bool(dtype) ? 0 : is_floating(dtype) ? 2 : 1; }
DType wider(DType a, DType b) {
  if (rank_of_type(a) != rank_of_type(b)) return rank_of_type(a) > rank_of_type(b) ? a : b;
  if (is_reduced_floating(a) && is_reduced_floating(b) && a != b) return DType::kF32;
  if (dtype_size(a) == dtype_size(b) && a != b) return DType::kI16;  // u8 with i8
  return dtype_size(a) > dtype_size(b) ? a : b;
}

// The dtype in which operands combine: by tensors with dims, then 0-dim ones, then numbers.
DType common_type(const Call& c, const std::string& positions) {
  DType best[3] = {DType::kOther, DType::kOther, DType::kOther};
  auto add = [&](int level, DType dtype) { best[level] = best[level] == DType::kOther ? dtype : wider(best[level], dtype); };
  for (char digit : positions) {
    size_t i = digit - '0';
    if (Array a = c.array(i)) {
      add(a.meta->sizes.empty() ? 1 : 0, a.meta->dtype);
    } else if (c.has(i)) {
      add(2, c.is_real_number(i) ? DType::kF32 : c.call.args[i].kind == AtenArg::kBool ? DType::kBool : DType::kI64);
    }
  }
  DType out = DType::kOther;
  for (DType dtype : best) {
    if (dtype == DType::kOther) continue;
    if (out == DType::kOther || rank_of_type(dtype) > rank_of_type(out)) out = dtype;
  }
  return out;
}

using Formula = std::function<Number(const Call&, const Number*)>;
struct Rule {
  std::string positions;
  enum Kind { kPromote, kFloat, kCompare, kFirst, kResult } kind;
  Formula formula;
};

const std::unordered_map<std::string, Rule>& rules() {
  using N = Number;
  auto unary = [](double (*f)(double)) { return Rule{"0", Rule::kFloat, [f](const Call&, const N* x) { return fn(f, x[0]); }}; };
  auto compare = [](bool (*f)(double, double)) {
    return Rule{"01", Rule::kCompare, [f](const Call&, const N* x) { return N(f(x[0].v, x[1].v)); }};
  };
  static const std::unordered_map<std::string, Rule> table = {
      {"add", {"01", Rule::kPromote, [](const Call& c, const N* x) { return c.number(2) == 1 ? x[0] + x[1] : x[0] + N(c.number(2)) * x[1]; }}},
      {"sub", {"01", Rule::kPromote, [](const Call& c, const N* x) { return c.number(2) == 1 ? x[0] - x[1] : x[0] - N(c.number(2)) * x[1]; }}},
      {"rsub", {"01", Rule::kPromote, [](const Call& c, const N* x) { return x[1] - N(c.number(2)) * x[0]; }}},
      {"mul", {"01", Rule::kPromote, [](const Call&, const N* x) { return x[0] * x[1]; }}},
      {"div", {"01", Rule::kFloat, [](const Call&, const N* x) { return x[0] / x[1]; }}},
      {"remainder", {"01", Rule::kPromote, [](const Call&, const N* x) { return N(floor_mod(x[0].v, x[1].v)); }}},
      {"maximum", {"01", Rule::kPromote, [](const Call&, const N* x) { return biggest(x[0], x[1]); }}},
      {"minimum", {"01", Rule::kPromote, [](const Call&, const N* x) { return smallest(x[0], x[1]); }}},
      {"neg", {"0", Rule::kFirst, [](const Call&, const N* x) { return -x[0]; }}},
      {"abs", {"0", Rule::kFirst, [](const Call&, const N* x) { return N(std::fabs(x[0].v)); }}},
      {"exp", unary(std::exp)},
      {"log", unary(std::log)},
      {"log1p", unary(std::log1p)},
      {"sqrt", unary(std::sqrt)},
      {"tanh", unary(std::tanh)},
      {"sin", unary(std::sin)},
      {"cos", unary(std::cos)},
      {"erf", unary(std::erf)},
      {"reciprocal", {"0", Rule::kFloat, [](const Call&, const N* x) { return N(1) / x[0]; }}},
      {"rsqrt", {"0", Rule::kFloat, [](const Call&, const N* x) { return N(1) / fn(std::sqrt, x[0]); }}},
      {"sigmoid", {"0", Rule::kFloat, [](const Call&, const N* x) { return sigmoid(x[0]); }}},
      {"pow", {"01", Rule::kPromote, [](const Call& c, const N* x) { return c.number(1) == 2 ? x[0] * x[0] : N(std::pow(x[0].v, x[1].v)); }}},
      {"eq", compare([](double a, double b) { return a == b; })},
      {"ne", compare([](double a, double b) { return a != b; })},
      {"lt", compare([](double a, double b) { return a < b; })},
      {"le", compare([](double a, double b) { return a <= b; })},
      {"gt", compare([](double a, double b) { return a > b; })},
      {"ge", compare([](double a, double b) { return a >= b; })},
      {"where", {"12", Rule::kPromote, [](const Call&, const N* x) { return x[2].v != 0 ? x[0] : x[1]; }}},
      {"masked_fill", {"02", Rule::kFirst, [](const Call&, const N* x) { return x[2].v != 0 ? x[1] : x[0]; }}},
      {"clamp", {"012", Rule::kPromote, [](const Call& c, const N* x) {
         N y = x[0];
         if (c.has(1)) y = biggest(y, x[1]);
         if (c.has(2)) y = smallest(y, x[2]);
         return y;
       }}},
      {"lerp", {"012", Rule::kPromote, [](const Call&, const N* x) {
         return std::fabs(x[2].v) < 0.5 ? x[0] + x[2] * (x[1] - x[0]) : x[1] - (x[1] - x[0]) * (N(1) - x[2]);
       }}},
      {"addcmul", {"012", Rule::kPromote, [](const Call& c, const N* x) { return x[0] + N(c.number(3)) * x[1] * x[2]; }}},
      {"addcdiv", {"012", Rule::kPromote, [](const Call& c, const N* x) { return x[0] + N(c.number(3)) * x[1] / x[2]; }}},
      {"relu", {"0", Rule::kFirst, [](const Call&, const N* x) { return biggest(x[0], 0); }}},
      {"gelu", {"0", Rule::kFirst, [](const Call& c, const N* x) {
         if (c.text(1) == "tanh") return N(0.5) * x[0] * (N(1) + fn(std::tanh, gelu_inner(x[0])));
         return x[0] * N(0.5) * (N(1) + fn(std::erf, x[0] * N(M_SQRT1_2)));
       }}},
      {"silu", {"0", Rule::kFirst, [](const Call&, const N* x) { return x[0] / (N(1) + fn(std::exp, -x[0])); }}},
      {"leaky_relu", {"0", Rule::kFirst, [](const Call& c, const N* x) { return x[0].v > 0 ? x[0] : x[0] * N(c.number(1)); }}},
      {"threshold_backward", {"01", Rule::kPromote, [](const Call& c, const N* x) { return x[1].v <= c.number(2) ? N(0) : x[0]; }}},
      {"sigmoid_backward", {"01", Rule::kPromote, [](const Call&, const N* x) { return x[0] * (N(1) - x[1]) * x[1]; }}},
      {"tanh_backward", {"01", Rule::kPromote, [](const Call&, const N* x) { return x[0] * (N(1) - x[1] * x[1]); }}},
      {"gelu_backward", {"01", Rule::kPromote, [](const Call&, const N* x) {
         N cdf = N(0.5) * (N(1) + fn(std::erf, x[1] * N(M_SQRT1_2)));
         N pdf = N(M_2_SQRTPI * M_SQRT1_2 * 0.5) * fn(std::exp, x[1] * x[1] * N(-0.5));
         return x[0] * (cdf + x[1] * pdf);
       }}},
      {"_to_copy", {"0", Rule::kResult, [](const Call&, const N* x) { return x[0]; }}},
      {"clone", {"0", Rule::kResult, [](const Call&, const N* x) { return x[0]; }}},
      {"copy", {"1", Rule::kResult, [](const Call&, const N* x) { return x[0]; }}},
      {"fill", {"1", Rule::kResult, [](const Call&, const N* x) { return x[0]; }}},
      {"zero", {"", Rule::kResult, [](const Call&, const N*) { return N(0); }}},
      {"zeros_like", {"", Rule::kResult, [](const Call&, const N*) { return N(0); }}},
      {"ones_like", {"", Rule::kResult, [](const Call&, const N*) { return N(1); }}},
      {"full", {"1", Rule::kResult, [](const Call&, const N* x) { return x[0]; }}},
  };
  return table;
}

void set_rounding(DType dtype) {
  rounding = dtype == DType::kF64 ? Rounding::kDouble : is_floating(dtype) ? Rounding::kFloat : Rounding::kInteger;
}

void elementwise(const Call& c, const Rule& rule, const Array& out) {
  DType type = out.meta->dtype;
  if (rule.kind == Rule::kFirst) type = c.array(0).meta->dtype;
  if (rule.kind == Rule::kPromote || rule.kind == Rule::kFloat || rule.kind == Rule::kCompare) type = common_type(c, rule.positions);
  if (rule.kind == Rule::kFloat && !is_floating(type)) type = DType::kF32;
  // Results are made before any is written: an operand may be the output seen otherwise, as a broadcast never is in torch.
  std::vector<double> results;
  for_each(out.meta->sizes, [&](const Indexes& index) {
    Number x[3];
    rounding = Rounding::kDouble;
    for (size_t k = 0; k < rule.positions.size(); ++k) {
      size_t i = rule.positions[k] - '0';
      double value = c.array(i) ? c.array(i).get(index) : c.number(i, 0);
      set_rounding(type);
      if (rounding == Rounding::kInteger) value = is_bool(type) ? value != 0 : std::trunc(value);
      x[k] = value;
    }
    set_rounding(type);
    if (c.call.name.find("where") != std::string::npos) x[2] = c.array(0).get(index);
    if (c.call.name.find("masked_fill") != std::string::npos) x[2] = c.array(1).get(index);
    double value = rule.formula(c, x).v;
    if (is_reduced_floating(type) && rule.kind != Rule::kCompare) {  // the operation's own result is rounded, then converted
      uint8_t bytes[8];
      store_number(bytes, type, value);
      value = load_number(bytes, type);
    }
    results.push_back(value);
  });
  size_t k = 0;
  for_each(out.meta->sizes, [&](const Indexes& index) { out.set(index, results[k++]); });
}

// --- reductions, normalisations, products: double arithmetic, rounded at the end

Indexes kept_index(const Indexes& index, const std::vector<bool>& reduced, size_t result_rank) {
  Indexes out;
  for (size_t k = 0; k < index.size(); ++k) {
    if (!reduced[k]) {
      out.push_back(index[k]);
    } else if (result_rank == index.size()) {
      out.push_back(0);
    }
  }
  return out;
}

// Calls visit(key, value) for all elements, where key is the index with reduced dims at 0.
template <class Visit>
void grouped(const Array& input, const std::vector<bool>& reduced, Visit visit) {
  for_each(input.meta->sizes, [&](const Indexes& index) {
    Indexes key = index;
    for (size_t k = 0; k < key.size(); ++k)
      if (reduced[k]) key[k] = 0;
    visit(key, index, input.get(index));
  });
}

using Sums = std::map<Indexes, double>;

void write_reduced(const Array& out, const Sums& sums, const std::vector<bool>& reduced) {
  if (!out) return;
  for (const auto& [key, value] : sums) out.set(kept_index(key, reduced, out.meta->sizes.size()), value);
}

bool reduction(const Call& c, const std::string& name) {
  Array in = c.array(0), out = c.result(0);
  bool dims = !c.call.overload.empty() || name == "amax" || name == "amin";
  std::vector<bool> reduced = dims ? c.reduced(1, in.meta->sizes.size()) : std::vector<bool>(in.meta->sizes.size(), true);
  double count = 1;
  for (size_t k = 0; k < reduced.size(); ++k)
    if (reduced[k]) count *= static_cast<double>(in.meta->sizes[k]);
  Sums sums, squares;
  if (name == "amax" || name == "amin" || name == "max" || name == "min") {
    bool largest = name == "amax" || name == "max";
    grouped(in, reduced, [&](const Indexes& key, const Indexes&, double v) {
      auto [entry, fresh] = sums.try_emplace(key, v);
      if (fresh || std::isnan(entry->second)) return;
      if (std::isnan(v) || (largest ? v > entry->second : v < entry->second)) entry->second = v;
    });
  } else {
    grouped(in, reduced, [&](const Indexes& key, const Indexes&, double v) { sums[key] += v; });
    if (name == "mean" || name == "var")
      for (auto& [key, value] : sums) value /= count;
    if (name == "var") {
      grouped(in, reduced, [&](const Indexes& key, const Indexes&, double v) { squares[key] += (v - sums[key]) * (v - sums[key]); });
      for (auto& [key, value] : squares) value /= std::max(0.0, count - c.number(2, 1));
      sums = squares;
    }
  }
  write_reduced(out, sums, reduced);
  return true;
}

bool softmax(const Call& c, bool logarithm) {
  Array in = c.array(0), out = c.result(0);
  std::vector<bool> reduced = c.reduced(1, in.meta->sizes.size());
  Sums most, sums;
  grouped(in, reduced, [&](const Indexes& key, const Indexes&, double v) { most[key] = most.count(key) ? std::max(most[key], v) : v; });
  grouped(in, reduced, [&](const Indexes& key, const Indexes&, double v) { sums[key] += std::exp(v - most[key]); });
  grouped(in, reduced, [&](const Indexes& key, const Indexes& index, double v) {
    out.set(index, logarithm ? v - most[key] - std::log(sums[key]) : std::exp(v - most[key]) / sums[key]);
  });
  return true;
}

bool softmax_backward(const Call& c, bool logarithm) {
  Array grad = c.array(0), output = c.array(1), out = c.result(0);
  std::vector<bool> reduced = c.reduced(2, grad.meta->sizes.size());
  Sums sums;
  grouped(grad, reduced, [&](const Indexes& key, const Indexes& index, double v) { sums[key] += logarithm ? v : v * output.get(index); });
  grouped(grad, reduced, [&](const Indexes& key, const Indexes& index, double v) {
    double y = output.get(index);
    out.set(index, logarithm ? v - std::exp(y) * sums[key] : y * (v - sums[key]));
  });
  return true;
}

bool layer_norm(const Call& c) {
  Array in = c.array(0), weight = c.array(2), bias = c.array(3), out = c.result(0), mean = c.result(1), rstd = c.result(2);
  size_t rank = in.meta->sizes.size(), inner = c.call.args[1].ints.size();
  std::vector<bool> reduced(rank, false);
  double count = 1;
  for (size_t k = rank - inner; k < rank; ++k) {
    reduced[k] = true;
    count *= static_cast<double>(in.meta->sizes[k]);
  }
  Sums means, scales;
  grouped(in, reduced, [&](const Indexes& key, const Indexes&, double v) { means[key] += v / count; });
  grouped(in, reduced, [&](const Indexes& key, const Indexes&, double v) { scales[key] += (v - means[key]) * (v - means[key]) / count; });
  for (auto& [key, value] : scales) value = 1 / std::sqrt(value + c.number(4));
  grouped(in, reduced, [&](const Indexes& key, const Indexes& index, double v) {
    double y = (v - means[key]) * scales[key];
    if (weight) y *= weight.get(index);
    if (bias) y += bias.get(index);
    out.set(index, y);
  });
  write_reduced(mean, means, reduced);
  write_reduced(rstd, scales, reduced);
  return true;
}

// mm(a, b), bmm(a, b), addmm(c, a, b, beta, alpha)
bool product(const Call& c, bool added) {
  Array a = c.array(added ? 1 : 0), b = c.array(added ? 2 : 1), out = c.result(0);
  double beta = added ? c.number(3) : 0, alpha = added ? c.number(4) : 1;
  int64_t inner = a.meta->sizes.back();
  for_each(out.meta->sizes, [&](const Indexes& index) {
    double sum = 0;
    Indexes ia = index, ib = index;
    for (int64_t k = 0; k < inner; ++k) {
      ia[ia.size() - 1] = k;
      ib[ib.size() - 2] = k;
      sum += a.get(ia) * b.get(ib);
    }
    out.set(index, added && beta != 0 ? beta * c.array(0).get(index) + alpha * sum : alpha * sum);
  });
  return true;
}

bool concatenate(const Call& c) {
  Array out = c.result(0);
  auto rank = static_cast<int64_t>(out.meta->sizes.size());
  auto dim = static_cast<int64_t>(c.number(1, 0));
  if (dim < 0) dim += rank;
  int64_t at = 0;
  Call part = c;
  for (part.element = 0; part.element < c.call.args[0].operands.size(); ++part.element) {
    Array in = part.array(0);
    if (static_cast<int64_t>(in.meta->sizes.size()) != rank) continue;
    for_each(in.meta->sizes, [&](const Indexes& index) {
      Indexes moved = index;
      moved[dim] += at;
      out.set(moved, in.get(index));
    });
    at += in.meta->sizes[dim];
  }
  return true;
}

// native_dropout(input, p, train), where it is known how it draws.
base::Status draw(const Call& c, const std::string& name, Generator* generator) {
  const Array in = c.array(0), out = c.result(0), mask = c.result(1);
  const std::optional<Drawing> drawing = drawing_of(c.call.stream, *in.meta);
  if (name != "native_dropout" || !drawing) return base::Status::failure("draws in a way that the evaluator does not know");
  set_rounding(in.meta->dtype);
  const Number keep = 1 - c.number(1);
  for_each(in.meta->sizes, [&](const Indexes& index) {
    const int64_t element = std::inner_product(index.begin(), index.end(), drawing->strides.begin(), int64_t{0});
    const bool kept = drawn_number(generator->seed, generator->offset, element, drawing->form) < keep.v;
    const double value = in.get(index);
    if (out) out.set(index, (Number(value) * Number(kept) * Number(1 / keep.v)).v);
    if (mask) mask.set(index, kept);
  });
  generator->offset += drawing->increment;
  return base::Status();
}

// Where tensors of indexes say: of the table, the first argument, the index for each index of the space.
class Lookup {
 public:
  Lookup(const Call& c, const std::string& stem) : c_(c), sizes_(c.array(0).meta->sizes) {
    from_the_end_ = stem == "index" || stem == "index_put" || stem == "index_fill";
    if (stem == "index" || stem == "index_put") {
      how_ = kIndexes;
      Call each = c;
      size_t count = 0;
      bool neighbours = true;
      Indexes rest;
      for (size_t d = 0; d < sizes_.size(); ++d) {
        each.element = d;
        list_.push_back(d < c.call.args[1].operands.size() ? each.array(1) : Array{});
        if (!list_.back()) {
          rest.push_back(sizes_[d]);
          continue;
        }
        if (count > 0 && !list_[d - 1]) neighbours = false;
        if (count++ == 0) first_ = d;
        const Indexes& of = list_.back().meta->sizes;
        while (together_.size() < of.size()) together_.insert(together_.begin(), 1);
        for (size_t k = 0; k < of.size(); ++k)
          if (int64_t& size = together_[together_.size() - of.size() + k]; size == 1) size = of[k];
      }
      if (!neighbours) first_ = 0;
      space = rest;
      space.insert(space.begin() + static_cast<ptrdiff_t>(first_), together_.begin(), together_.end());
    } else if (stem == "embedding") {
      how_ = kRows;
      space = c.array(1).meta->sizes;
      space.push_back(sizes_[1]);
    } else {
      how_ = stem == "gather" || stem == "scatter" || stem == "scatter_add" ? kElements : kList;
      dim_ = static_cast<size_t>(c.number(1) < 0 ? c.number(1) + static_cast<double>(std::max<size_t>(sizes_.size(), 1)) : c.number(1));
      const Indexes& of = c.array(2).meta->sizes;
      space = how_ == kElements ? of : sizes_;
      if (how_ == kList && !space.empty()) space[dim_] = of.empty() ? 1 : of[0];
    }
  }

  // False where an index is out of bounds.
  bool operator()(const Indexes& index, Indexes* to) const {
    bool bounds = true;
    const auto inside = [&](double at, int64_t size) {
      if (from_the_end_ && at < 0) at += static_cast<double>(size);
      bounds = bounds && at >= 0 && at < static_cast<double>(size);
      return bounds ? static_cast<int64_t>(at) : 0;
    };
    *to = index;
    if (how_ == kRows) {
      *to = {inside(c_.array(1).get({index.begin(), index.end() - 1}), sizes_[0]), index.back()};
    } else if (how_ == kIndexes) {
      const auto begin = index.begin() + static_cast<ptrdiff_t>(first_), end = begin + static_cast<ptrdiff_t>(together_.size());
      Indexes rest(index.begin(), begin);
      rest.insert(rest.end(), end, index.end());
      to->clear();
      for (auto next = rest.begin(); const Array& each : list_) to->push_back(each ? inside(each.get({begin, end}), sizes_[to->size()]) : *next++);
    } else {
      const Array list = c_.array(2);
      const int64_t at = inside(list.get(how_ == kElements ? index : index.empty() || list.meta->sizes.empty() ? Indexes(list.meta->sizes.size(), 0) : Indexes{index[dim_]}), sizes_.empty() ? 1 : sizes_[dim_]);
      if (!sizes_.empty()) (*to)[dim_] = at;
    }
    return bounds;
  }

  Indexes space;

 private:
  const Call& c_;
  const Indexes& sizes_;
  enum { kRows, kList, kElements, kIndexes } how_ = kRows;
  bool from_the_end_ = false;
  size_t dim_ = 0, first_ = 0;
  std::vector<Array> list_;  // by dim
  Indexes together_;
};

// Reads and writes by indexes. stem: the name without the mark of what is in place.
base::Status indexed(const Call& c, const std::string& stem, bool in_place) {
  const Lookup lookup(c, stem);
  const bool reads = stem == "embedding" || stem == "index_select" || stem == "gather" || stem == "index", adds = stem == "scatter_add" || stem == "index_add";
  const Array table = c.array(0), out = in_place ? table : c.result(0), values = reads ? Array{} : c.array(stem == "index_put" ? 2 : 3);
  const double factor = stem == "index_add" ? c.number(4) : 1;
  if (!reads && !in_place) for_each(table.meta->sizes, [&](const Indexes& index) { out.set(index, table.get(index)); });
  bool bounds = true;
  for_each(lookup.space, [&](const Indexes& index) {
    Indexes place;
    bounds = bounds && lookup(index, &place);
    if (!bounds) return;
    if (reads) out.set(index, table.get(place));
    else if (adds) out.set(place, out.get(place) + values.get(index) * factor);
    else out.set(place, values ? values.get(index) : c.number(3));
  });
  return bounds ? base::Status() : base::Status::failure("an index is out of bounds");
}

// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups), of two dims, not transposed.
bool convolution(const Call& c) {
  const Array input = c.array(0), weight = c.array(1), bias = c.array(2), out = c.result(0);
  if (!out) return true;
  const Indexes &stride = c.call.args[3].ints, &padding = c.call.args[4].ints, &dilation = c.call.args[5].ints, &filter = weight.meta->sizes, &image = input.meta->sizes;
  const int64_t of_group = out.meta->sizes[1] / c.call.args[8].i;
  rounding = Rounding::kDouble;
  for_each(out.meta->sizes, [&](const Indexes& at) {
    double total = bias ? bias.get({at[1]}) : 0;
    for_each({filter[1], filter[2], filter[3]}, [&](const Indexes& tap) {
      const int64_t y = at[2] * stride[0] - padding[0] + tap[1] * dilation[0], x = at[3] * stride[1] - padding[1] + tap[2] * dilation[1];
      if (y < 0 || x < 0 || y >= image[2] || x >= image[3]) return;
      total += input.get({at[0], at[1] / of_group * filter[1] + tap[0], y, x}) * weight.get({at[1], tap[0], tap[1], tap[2]});
    });
    out.set(at, total);
  });
  return true;
}

bool structured(const Call& c, const std::string& name, bool* known) {
  *known = true;
  if (name == "sum" || name == "mean" || name == "amax" || name == "amin" || name == "var") return reduction(c, name);
  if ((name == "max" || name == "min") && c.call.overload.empty()) return reduction(c, name);
  if (name == "_softmax" || name == "_log_softmax") return softmax(c, name == "_log_softmax");
  if (name == "_softmax_backward_data" || name == "_log_softmax_backward_data") return softmax_backward(c, name[1] == 'l');
  if (name == "native_layer_norm") return layer_norm(c);
  if (name == "mm" || name == "bmm") return product(c, false);
  if (name == "addmm" || name == "baddbmm") return product(c, true);
  if (name == "cat") return concatenate(c);
  if (name == "convolution") return convolution(c);
  if (name.rfind("empty", 0) == 0 || name.rfind("new_empty", 0) == 0) return true;
  *known = false;
  return false;
}

}  // namespace

base::Status evaluate_aten(const Trace& trace, const Inst& inst, const std::vector<double>& numbers, Memory* memory, Generator* generator) {
  const AtenCall& call = trace.calls[inst.imm];
  std::string name = call.name.substr(call.name.find(':') + 2);
  Call c{trace, inst, call, numbers, memory};
  bool known = false;
  if (call.is_random) return draw(c, name, generator);
  if (structured(c, name, &known) || known) return base::Status();
  bool lists = name.rfind("_foreach_", 0) == 0, in_place = name.back() == '_';
  if (lists) name = name.substr(9);
  if (in_place) name.pop_back();
  static const std::unordered_set<std::string> by_indexes = {"embedding", "index_select", "gather", "index", "scatter", "scatter_add", "index_add", "index_copy", "index_fill", "index_put"};
  if (by_indexes.count(name)) return indexed(c, name, in_place);
  auto rule = rules().find(name);
  if (rule == rules().end()) return base::Status::failure("is not known to the evaluator");
  size_t count = lists ? call.args[0].operands.size() : 1;
  for (c.element = 0; c.element < count; ++c.element) {
    Array out = in_place ? c.array(0) : c.result(c.element);
    if (out) elementwise(c, rule->second, out);
  }
  return base::Status();
}

}  // namespace dynvm::ir
