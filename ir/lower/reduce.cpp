// Lowering of reductions, scans, losses and softmax: kernels with reduced dims.
//
// Inputs, outputs, invariants: builder.h (Request). Each operation is one kernel wherever its reductions run over the same dims; values
// that a later pass over the reduced dims needs are computed again by the compiled kernel. Sources of the formulas: ATen's CPU kernels of
// the same names (SoftMaxKernel, WelfordOps), in whose order the terms stand.
// Tests: tests/ir/lower_run.cpp, tests/ir/test_against_torch.py.
#include <cmath>
#include <limits>

#include "ir/kernel/symbols.h"
#include "ir/lower/reduction.h"
#include "ir/lower/structured.h"

namespace dynvm::ir {
namespace {

// One reduction of one tensor with one result. `dims`: the argument with the dims, -1: all.
template <class Combine>
bool simple(const Request& request, int dims_argument, DType type, std::string_view name, Combine combine) {
  Ref input = request.call.tensor(0), result = request.result(0);
  if (input == kNoRef) return request.refuse("no tensor");
  if (result == kNoRef) return true;
  std::vector<int64_t> dims =
      dims_argument < 0 ? request.call.dims(request.call.call().args.size(), rank_of(request, 0)) : request.call.dims(dims_argument, rank_of(request, 0));
  Reduction reduction(request, input, dims);
  if (!reduction.possible()) return request.refuse("nothing to reduce");
  reduction.builder.set_type(type);
  reduction.store(result, combine(reduction));
  return reduction.finish(name);
}

// sum(self, *, dtype) and sum.dim_IntList(self, dim, keepdim, *, dtype): the dims stand at 1 in every overload that has dims.
int dims_argument(const Request& request) { return request.call.call().overload.empty() ? -1 : 1; }

DType result_type(const Request& request) {
  return request.result(0) == kNoRef ? DType::kF32 : request.call.meta(request.result(0)).dtype;
}

bool extreme(const Request& request, int dims, KOp op, KOp bool_op, std::string_view name) {
  DType type = input_type(request);
  return simple(request, dims, type, name, [&](Reduction& r) { return r.reduce(is_bool(type) ? bool_op : op, r.input()); });
}

// max.dim and min.dim: values and indices.
bool extreme_with_index(const Request& request, KOp op, KOp index_op, std::string_view name) {
  Ref input = request.call.tensor(0);
  DType type = input_type(request);
  if (is_bool(type)) return request.refuse("bool");
  Reduction reduction(request, input, request.call.dims(1, rank_of(request, 0)));
  if (!reduction.possible()) return request.refuse("nothing to reduce");
  reduction.builder.set_type(type);
  if (request.result(0) != kNoRef) reduction.store(request.result(0), reduction.reduce(op, reduction.input()));
  if (request.result(1) != kNoRef) reduction.store(request.result(1), reduction.reduce(index_op, reduction.input()));
  return reduction.finish(name);
}

bool arg_extreme(const Request& request, KOp op, std::string_view name) {
  DType type = input_type(request);
  if (is_bool(type)) return request.refuse("bool");
  return simple(request, request.call.has(1) ? 1 : -1, type, name, [&](Reduction& r) { return r.reduce(op, r.input()); });
}

bool truth(const Request& request, KOp op, std::string_view name) {
  return simple(request, dims_argument(request), DType::kBool, name, [&](Reduction& r) { return r.reduce(op, r.input()); });
}

// var.correction(self, dim, *, correction, keepdim). `results`: 0 the variance or deviation, 1 the mean.
bool variance(const Request& request, bool root, bool with_mean, std::string_view name) {
  const CallView& call = request.call;
  if (call.call().overload != "correction") return request.refuse("overload");
  if (call.has(2) && !call.is_constant(2)) return request.refuse("correction changes");
  Ref input = call.tensor(0);
  if (!is_floating(input_type(request))) return request.refuse("dtype");
  Reduction reduction(request, input, call.dims(1, rank_of(request, 0)));
  if (!reduction.possible()) return request.refuse("nothing to reduce");
  Builder& b = reduction.builder;
  b.set_type(input_type(request));
  Value mean = reduction.mean(reduction.input());
  Value difference = reduction.input() - mean;
  double divisor = std::max(0.0, static_cast<double>(reduction.count()) - (call.has(2) ? call.real(2) : 1));
  Value result = sum(difference * difference) / b.constant(divisor);
  reduction.store(request.result(0), root ? sqrt(result) : result);
  if (with_mean) reduction.store(request.result(1), mean);
  return reduction.finish(name);
}

Value norm(Reduction& r, double order) {
  Builder& b = r.builder;
  Value x = r.input();
  if (order == 2) return sqrt(sum(x * x));
  Value magnitude = b.op(KOp::k_abs, x);
  if (order == 1) return sum(magnitude);
  if (order == std::numeric_limits<double>::infinity()) return r.reduce(KOp::k_reduce_max, magnitude);
  return b.op(KOp::k_pow, sum(b.op(KOp::k_pow, magnitude, b.constant(order))), b.constant(1 / order));
}

bool norm_is_known(const CallView& call, size_t argument) {
  if (!call.has(argument)) return true;
  return call.is_constant(argument) && (call.real(argument) > 0);
}

enum LossReduction { kNone = 0, kMean = 1, kSum = 2 };

// Losses of two tensors of one shape, with ATen's `reduction` argument.
template <class Formula>
bool loss(const Request& request, std::string_view name, Formula formula) {
  const CallView& call = request.call;
  Ref a = call.tensor(0), target = call.tensor(1), result = request.result(0);
  if (a == kNoRef || target == kNoRef) return request.refuse("no tensor");
  if (result == kNoRef) return true;
  if (call.meta(a).sizes != call.meta(target).sizes) return request.refuse("broadcast");
  DType type = promote(call.meta(a).dtype, call.meta(target).dtype);
  if (!is_floating(type)) return request.refuse("dtype");
  auto reduction_kind = static_cast<LossReduction>(call.integer(2));
  if (reduction_kind == kNone) {
    Builder b(call, call.meta(a).sizes);
    b.set_type(type);
    b.store(result, formula(b, b.load(a), b.load(target)));
    request.out->push_back(b.finish(name));
    return true;
  }
  Reduction reduction(request, a, call.dims(call.call().args.size(), rank_of(request, 0)));
  if (!reduction.possible()) return request.refuse("nothing to reduce");
  Builder& b = reduction.builder;
  b.set_type(type);
  Value values = formula(b, b.load(a), b.load(target));
  reduction.store(result, reduction_kind == kMean ? reduction.mean(values) : sum(values));
  return reduction.finish(name);
}

struct SoftmaxParts {
  Value shifted, sum_exp;
};
SoftmaxParts softmax_parts(Reduction& r) {
  Value x = r.input();
  Value shifted = x - r.reduce(KOp::k_reduce_max, x);
  return {shifted, sum(exp(shifted))};
}

// A row that is alone and longer than this is spread over the device by eager's kernel, where one block goes along it here.
constexpr int64_t kLongestRow = 1 << 15;

// (self, dim, *, dtype), on GPUs, where eager's order of additions is not that of elements either; also in place.
bool scan(const Request& request, KOp op, std::string_view name) {
  const CallView& call = request.call;
  const bool in_place = is_in_place(call.call());
  const Ref input = call.tensor(0), result = in_place ? input : request.result(0);
  if (input == kNoRef) return request.refuse("no tensor");
  if (writes_others(call.call())) return request.refuse("writes other arguments");
  if (in_place && is_bool(input_type(request))) return request.refuse("dtype");
  if (call.meta(input).device_type == 0) return request.refuse("on the CPU");
  if (result == kNoRef) return true;
  Reduction reduction(request, input, call.dims(1, rank_of(request, 0)));
  if (!reduction.possible()) return request.refuse("nothing there");
  const int64_t length = reduction.count();
  if (length > kLongestRow && length == elements(call.meta(input)) && !is_symbolic(length, call.trace().symbols)) return request.refuse("one long row");
  Builder& b = reduction.builder;
  const DType type = call.meta(result).dtype;
  b.set_type(type);
  b.store(result, b.op(op, b.rounded(reduction.input(), type)));  // converted first
  return reduction.finish(name);
}

template <class Formula>
bool along_dim(const Request& request, size_t dim_argument, std::string_view name, Formula formula) {
  Ref input = request.call.tensor(0);
  if (input == kNoRef || request.result(0) == kNoRef) return input == kNoRef ? request.refuse("no tensor") : true;
  if (!is_floating(input_type(request))) return request.refuse("dtype");
  Reduction reduction(request, input, request.call.dims(dim_argument, rank_of(request, 0)));
  if (!reduction.possible()) return request.refuse("nothing to reduce");
  reduction.builder.set_type(promote(input_type(request), result_type(request)));
  reduction.builder.store(request.result(0), formula(reduction));
  return reduction.finish(name);
}

}  // namespace

bool lower_sum(const Request& request) {
  return simple(request, dims_argument(request), result_type(request), "sum", [](Reduction& r) { return sum(r.input()); });
}
bool lower_prod(const Request& request) {
  return simple(request, dims_argument(request), result_type(request), "prod",
                [](Reduction& r) { return r.reduce(KOp::k_reduce_prod, r.input()); });
}
bool lower_mean(const Request& request) {
  if (!is_floating(result_type(request))) return request.refuse("dtype");
  return simple(request, dims_argument(request), result_type(request), "mean", [](Reduction& r) { return r.mean(r.input()); });
}
bool lower_amax(const Request& request) { return extreme(request, 1, KOp::k_reduce_max, KOp::k_reduce_any, "amax"); }
bool lower_amin(const Request& request) { return extreme(request, 1, KOp::k_reduce_min, KOp::k_reduce_all, "amin"); }
bool lower_max(const Request& request) {
  if (request.call.call().overload == "dim") return extreme_with_index(request, KOp::k_reduce_max, KOp::k_reduce_argmax, "max");
  if (!request.call.call().overload.empty()) return request.refuse("overload");
  return extreme(request, -1, KOp::k_reduce_max, KOp::k_reduce_any, "max");
}
bool lower_min(const Request& request) {
  if (request.call.call().overload == "dim") return extreme_with_index(request, KOp::k_reduce_min, KOp::k_reduce_argmin, "min");
  if (!request.call.call().overload.empty()) return request.refuse("overload");
  return extreme(request, -1, KOp::k_reduce_min, KOp::k_reduce_all, "min");
}
bool lower_argmax(const Request& request) { return arg_extreme(request, KOp::k_reduce_argmax, "argmax"); }
bool lower_argmin(const Request& request) { return arg_extreme(request, KOp::k_reduce_argmin, "argmin"); }
bool lower_any(const Request& request) { return truth(request, KOp::k_reduce_any, "any"); }
bool lower_all(const Request& request) { return truth(request, KOp::k_reduce_all, "all"); }

// isin(elements, test_elements, *, assume_unique, invert): for so few tests that eager compares them one by one, too.
bool lower_isin(const Request& request) {
  const CallView& call = request.call;
  const Ref of = call.tensor(0), tests = call.tensor(1), result = request.result(0);
  if (call.call().overload != "Tensor_Tensor" || of == kNoRef || tests == kNoRef) return request.refuse("overload");
  const std::vector<int64_t>& among = call.meta(tests).sizes;
  if (call.meta(of).dtype != call.meta(tests).dtype || is_bool(call.meta(of).dtype) || among.size() > 1) return request.refuse("dtype, or tests of several dims");
  if (!call.is_constant(3)) return request.refuse("invert changes");
  const int64_t count = among.empty() ? 1 : among[0], points = elements(call.meta(of));
  if (count == 0 || points == 0 || static_cast<double>(count) >= 10 * std::pow(static_cast<double>(points), 0.145)) return request.refuse("many tests");
  if (result == kNoRef) return true;
  std::vector<int64_t> sizes = call.meta(of).sizes, strides = call.meta(of).strides, out = call.meta(result).strides, along(sizes.size() + 1, 0);
  sizes.push_back(count);
  strides.push_back(0);
  out.push_back(0);
  if (!among.empty()) along.back() = call.meta(tests).strides[0];
  Builder b(call, sizes);
  b.reduce(1u << (sizes.size() - 1));
  const Value found = b.op(KOp::k_reduce_any, b.op(KOp::k_eq, b.load_strided(of, strides), b.load_strided(tests, along)));
  b.store_strided(result, out, call.integer(3) != 0 ? b.op(KOp::k_not, found) : found);
  request.out->push_back(b.finish("isin"));
  return true;
}

bool lower_cumsum(const Request& request) { return scan(request, KOp::k_scan_sum, "cumsum"); }
bool lower_cumprod(const Request& request) { return scan(request, KOp::k_scan_prod, "cumprod"); }
bool lower_logcumsumexp(const Request& request) { return scan(request, KOp::k_scan_logaddexp, "logcumsumexp"); }

bool lower_var(const Request& request) { return variance(request, false, false, "var"); }
bool lower_std(const Request& request) { return variance(request, true, false, "std"); }
bool lower_var_mean(const Request& request) { return variance(request, false, true, "var_mean"); }

bool lower_logsumexp(const Request& request) {
  if (!is_floating(input_type(request))) return request.refuse("dtype");
  return simple(request, 1, input_type(request), "logsumexp", [](Reduction& r) {
    Builder& b = r.builder;
    Value x = r.input();
    Value largest = r.reduce(KOp::k_reduce_max, x);
    largest = select(b.op(KOp::k_isinf, largest), b.constant(0), largest);
    return log(sum(exp(x - largest))) + largest;
  });
}

// linalg_vector_norm(self, ord, dim, keepdim, *, dtype)
bool lower_vector_norm(const Request& request) {
  if (!norm_is_known(request.call, 1)) return request.refuse("order");
  if (!is_floating(input_type(request))) return request.refuse("dtype");
  double order = request.call.has(1) ? request.call.real(1) : 2;
  return simple(request, request.call.has(2) ? 2 : -1, result_type(request), "norm", [&](Reduction& r) { return norm(r, order); });
}

// _foreach_norm(self[], ord, dtype)
bool lower_foreach_norm(const Request& request) {
  if (!norm_is_known(request.call, 1)) return request.refuse("order");
  const AtenArg& list = request.call.arg(0);
  double order = request.call.has(1) ? request.call.real(1) : 2;
  for (size_t k = 0; k < list.operands.size(); ++k) {
    Ref result = request.result(k), input = request.call.trace().arg(request.call.inst(), list.operands[k]);
    if (result == kNoRef) continue;
    const TensorMeta& meta = request.call.meta(input);
    if (!is_floating(meta.dtype)) return request.refuse("dtype");
    Reduction reduction(request, input, request.call.dims(~size_t{0}, static_cast<int64_t>(meta.sizes.size())));
    if (!reduction.possible()) return request.refuse("nothing to reduce");
    reduction.builder.set_type(request.call.meta(result).dtype);
    reduction.store(result, norm(reduction, order));
    reduction.finish("norm");
  }
  return true;
}

bool lower_mse_loss(const Request& request) {
  return loss(request, "mse_loss", [](Builder&, Value a, Value b) {
    Value difference = a - b;
    return difference * difference;
  });
}

// mse_loss_backward(grad_output, self, target, reduction): norm * (a - b) * grad, norm = 2 or 2 / numel
bool lower_mse_loss_backward(const Request& request) {
  const CallView& call = request.call;
  Ref grad = call.tensor(0), a = call.tensor(1), target = call.tensor(2), result = request.result(0);
  if (grad == kNoRef || a == kNoRef || target == kNoRef) return request.refuse("no tensor");
  if (result == kNoRef) return true;
  if (call.meta(a).sizes != call.meta(target).sizes || call.meta(a).dtype != call.meta(target).dtype) return request.refuse("broadcast");
  if (!is_floating(call.meta(a).dtype) || call.meta(grad).sizes.size() > call.meta(result).sizes.size()) return request.refuse("dtype");
  double numel = 1;
  for (int64_t size : call.meta(a).sizes) numel *= static_cast<double>(size);
  Builder b(call, call.meta(result).sizes);
  b.set_type(call.meta(a).dtype);
  double factor = call.integer(3) == kMean ? 2 / numel : 2;
  b.store(result, b.constant(factor) * (b.load(a) - b.load(target)) * b.load(grad));
  request.out->push_back(b.finish("mse_loss_backward"));
  return true;
}

namespace {

Value class_of_row(Builder& b, Ref target, std::vector<int64_t> strides) { return b.cast(b.load_strided(target, std::move(strides)), DType::kI64); }
Value counts(Builder& b, Value row, int64_t ignored) { return b.op(KOp::k_ne, row, b.integer(ignored)); }

}  // namespace

std::optional<TensorMeta> nll_loss_temporary(const CallView& call) {
  const Ref self = call.tensor(0), target = call.tensor(1);
  if (self == kNoRef || target == kNoRef || call.has(2) || !call.is_constant(3) || !call.is_constant(4)) return std::nullopt;
  const TensorMeta& meta = call.meta(self);
  if (meta.device_type == 0 || meta.sizes.size() != 2 || meta.open != 0 || call.meta(target).sizes.size() != 1 || call.meta(target).open != 0) return std::nullopt;
  if (meta.sizes[0] == 0 || meta.sizes[1] == 0 || (call.integer(3) != kMean && call.integer(3) != kSum)) return std::nullopt;
  TensorMeta rows;
  rows.dtype = meta.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  rows.device_type = meta.device_type;
  rows.device_index = meta.device_index;
  rows.sizes = {meta.sizes[0]};
  rows.strides = {1};
  return rows;
}

// nll_loss_forward(self, target, weight, reduction, ignore_index) -> (output, total_weight). The loss of each row is one kernel with whatever computes and
// reads its elements, so the number of rows that count, which gradients want, is another one before it, and the sum of losses one behind it. A class that
// does not exist, for which eager's kernel stops the device, gives NaN.
bool lower_nll_loss(const Request& request) {
  const CallView& call = request.call;
  const Ref self = call.tensor(0), target = call.tensor(1), losses = request.provided.temporary;
  if (losses == kNoRef) return request.refuse("on the CPU, weights, one sample or no reduction");
  const std::vector<int64_t>& sizes = call.meta(self).sizes;
  const DType type = call.meta(losses).dtype;
  const int64_t stride = call.meta(target).strides[0], ignored = call.integer(4);
  const auto count = [&](Builder& b) { return sum(b.cast(counts(b, class_of_row(b, target, {stride}), ignored), type)); };
  if (request.result(1) != kNoRef) {
    Builder b(call, {sizes[0]});
    b.set_type(type);
    b.reduce(1);
    b.store_strided(request.result(1), {0}, count(b));
    request.out->push_back(b.finish("nll_loss_total"));
  }
  if (request.result(0) == kNoRef) return true;
  Builder rows(call, sizes);
  rows.set_type(type);
  rows.reduce(2);
  const Value row = class_of_row(rows, target, {stride, 0});
  const Value counted = counts(rows, row, ignored);
  const Value picked = sum(select(rows.op(KOp::k_eq, rows.index(1), row), -rows.load(self), rows.constant(0)));
  const Value exists = rows.op(KOp::k_and, row >= rows.integer(0), row < rows.integer(sizes[1]));
  const Value loss = select(exists, picked, rows.constant(std::numeric_limits<double>::quiet_NaN()));
  rows.store_strided(losses, {1, 0}, select(counted, loss, rows.constant(0)));
  request.out->push_back(rows.finish("nll_loss_rows"));
  Builder b(call, {sizes[0]});
  b.set_type(type);
  b.reduce(1);
  const Value all = sum(b.load(losses));
  b.store_strided(request.result(0), {0}, call.integer(3) == kMean ? all / count(b) : all);
  request.out->push_back(b.finish("nll_loss"));
  return true;
}

// (grad_output, self, target, weight, reduction, ignore_index, total_weight). As every element's expression, so that what reads the gradient joins in.
bool lower_nll_loss_backward(const Request& request) {
  const CallView& call = request.call;
  const Ref grad = call.tensor(0), self = call.tensor(1), target = call.tensor(2), total = call.tensor(6), result = request.result(0);
  if (grad == kNoRef || self == kNoRef || target == kNoRef || total == kNoRef) return request.refuse("no tensor");
  if (result == kNoRef) return true;
  const TensorMeta& meta = call.meta(result);
  if (call.has(3) || meta.sizes.size() != 2 || call.meta(target).sizes.size() != 1 || !call.is_constant(4) || !call.is_constant(5)) return request.refuse("weights, or one sample");
  Builder b(call, meta.sizes);
  b.set_type(meta.dtype);
  const Value wanted = class_of_row(b, target, {call.meta(target).strides[0], 0});
  const int64_t reduction = call.integer(4);
  const auto of_rows = [&](Ref tensor) { return b.load_strided(tensor, {call.meta(tensor).sizes.empty() ? 0 : call.meta(tensor).strides[0], 0}); };
  Value each = b.cast(of_rows(grad), b.type());
  if (reduction == kMean) each = b.op(KOp::k_div, each, b.cast(of_rows(total), b.type()));
  const Value here = b.op(KOp::k_eq, b.index(1), wanted);
  b.store(result, select(b.op(KOp::k_and, here, counts(b, wanted, call.integer(5))), -each, b.constant(0)));
  request.out->push_back(b.finish("nll_loss_backward"));
  return true;
}

bool lower_smooth_l1_loss(const Request& request) {
  if (!request.call.is_constant(3) || request.call.real(3) == 0) return request.refuse("beta");
  double beta = request.call.real(3);
  return loss(request, "smooth_l1_loss", [&](Builder& b, Value x, Value y) {
    Value z = b.op(KOp::k_abs, x - y);
    return select(z < b.constant(beta), b.constant(0.5) * z * z / b.constant(beta), z - b.constant(0.5 * beta));
  });
}

bool lower_huber_loss(const Request& request) {
  if (!request.call.is_constant(3)) return request.refuse("delta");
  double delta = request.call.real(3);
  return loss(request, "huber_loss", [&](Builder& b, Value x, Value y) {
    Value z = b.op(KOp::k_abs, x - y);
    return select(z <= b.constant(delta), b.constant(0.5) * z * z, b.constant(delta) * (z - b.constant(0.5 * delta)));
  });
}

namespace {

// (grad_output, self, target, reduction, parameter): grad * norm * formula(self - target), norm = 1 / numel for the mean.
template <class Formula>
bool loss_backward(const Request& request, std::string_view name, Formula formula) {
  const CallView& call = request.call;
  Ref grad = call.tensor(0), a = call.tensor(1), target = call.tensor(2), result = request.result(0);
  if (grad == kNoRef || a == kNoRef || target == kNoRef) return request.refuse("no tensor");
  if (result == kNoRef) return true;
  if (!call.is_constant(4)) return request.refuse("parameter changes");
  if (call.meta(a).sizes != call.meta(target).sizes || call.meta(a).dtype != call.meta(target).dtype) return request.refuse("broadcast");
  if (!is_floating(call.meta(a).dtype) || call.meta(grad).sizes.size() > call.meta(result).sizes.size()) return request.refuse("dtype");
  double numel = 1;
  for (int64_t size : call.meta(a).sizes) numel *= static_cast<double>(size);
  Builder b(call, call.meta(result).sizes);
  b.set_type(call.meta(a).dtype);
  Value norm = b.constant(call.integer(3) == kMean ? 1 / numel : 1);
  b.store(result, formula(b, b.load(a) - b.load(target), b.load(grad), norm));
  request.out->push_back(b.finish(name));
  return true;
}

}  // namespace

bool lower_smooth_l1_loss_backward(const Request& request) {
  return loss_backward(request, "smooth_l1_loss_backward", [&](Builder& b, Value x, Value grad, Value norm) {
    Value beta = b.constant(request.call.real(4));
    Value outside = select(x >= beta, norm * grad, norm * x * grad / beta);
    return select(x <= -beta, -norm * grad, outside);
  });
}

bool lower_huber_loss_backward(const Request& request) {
  return loss_backward(request, "huber_loss_backward", [&](Builder& b, Value x, Value grad, Value norm) {
    Value delta = b.constant(request.call.real(4));
    Value outside = select(x >= delta, norm * grad * delta, norm * x * grad);
    return select(x <= -delta, -norm * grad * delta, outside);
  });
}

// binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction)
bool lower_bce_with_logits(const Request& request) {
  const CallView& call = request.call;
  Ref a = call.tensor(0), target = call.tensor(1), result = request.result(0);
  if (a == kNoRef || target == kNoRef) return request.refuse("no tensor");
  if (call.has(2) || call.has(3)) return request.refuse("weights");
  if (result == kNoRef) return true;
  if (call.meta(a).sizes != call.meta(target).sizes || call.meta(a).dtype != call.meta(target).dtype) return request.refuse("broadcast");
  if (!is_floating(call.meta(a).dtype) || is_reduced_floating(call.meta(a).dtype)) return request.refuse("dtype");
  // (1 - y) * x - log_sigmoid(x), log_sigmoid(x) = min(x, 0) - log1p(exp(-|x|))
  auto formula = [](Builder& b, Value x, Value y) {
    Value log_sigmoid = min(x, b.constant(0)) - b.op(KOp::k_log1p, exp(-b.op(KOp::k_abs, x)));
    return (b.constant(1) - y) * x - log_sigmoid;
  };
  auto kind = static_cast<LossReduction>(call.integer(4));
  if (kind == kNone) {
    Builder b(call, call.meta(a).sizes);
    b.set_type(call.meta(a).dtype);
    b.store(result, formula(b, b.load(a), b.load(target)));
    request.out->push_back(b.finish("bce_with_logits"));
    return true;
  }
  Reduction reduction(request, a, call.dims(call.call().args.size(), rank_of(request, 0)));
  if (!reduction.possible()) return request.refuse("nothing to reduce");
  Builder& b = reduction.builder;
  b.set_type(call.meta(a).dtype);
  Value values = formula(b, b.load(a), b.load(target));
  reduction.store(result, kind == kMean ? reduction.mean(values) : sum(values));
  return reduction.finish("bce_with_logits");
}

// log_sigmoid_forward(self) -> (output, buffer); the buffer, exp(-|x|), is only read by a backward that computes it anew here.
bool lower_log_sigmoid(const Request& request) {
  const CallView& call = request.call;
  Ref input = call.tensor(0);
  if (input == kNoRef || !is_floating(input_type(request))) return request.refuse("dtype");
  Builder b(call, call.meta(input).sizes);
  b.set_type(input_type(request));
  Value x = b.load(input), z = exp(-b.op(KOp::k_abs, x));
  if (request.result(0) != kNoRef) b.store(request.result(0), min(x, b.constant(0)) - b.op(KOp::k_log1p, z));
  if (request.result(1) != kNoRef) b.store(request.result(1), z);
  request.out->push_back(b.finish("log_sigmoid"));
  return true;
}

bool lower_softmax(const Request& request) {
  return along_dim(request, 1, "softmax", [](Reduction& r) {
    SoftmaxParts parts = softmax_parts(r);
    return exp(parts.shifted) / parts.sum_exp;
  });
}
bool lower_log_softmax(const Request& request) {
  return along_dim(request, 1, "log_softmax", [](Reduction& r) {
    SoftmaxParts parts = softmax_parts(r);
    return parts.shifted - log(parts.sum_exp);
  });
}
// (grad_output, output, dim, input_dtype)
bool lower_softmax_backward(const Request& request) {
  Ref output = request.call.tensor(1);
  if (output == kNoRef) return request.refuse("no tensor");
  return along_dim(request, 2, "softmax_backward", [&](Reduction& r) {
    Value grad = r.input(), out = r.builder.load(output);
    return out * (grad - sum(grad * out));
  });
}
bool lower_log_softmax_backward(const Request& request) {
  Ref output = request.call.tensor(1);
  if (output == kNoRef) return request.refuse("no tensor");
  return along_dim(request, 2, "log_softmax_backward", [&](Reduction& r) {
    Value grad = r.input();
    return grad - exp(r.builder.load(output)) * sum(grad);
  });
}

}  // namespace dynvm::ir
