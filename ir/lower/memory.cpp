// Lowering of operations that place elements: concatenation, padding, gradients of slices, triangles, sequences.
//
// Inputs, outputs, invariants: builder.h (Request). Where an operation writes its result in several steps (zeros, then a slice), the
// kernels come in that order.
// Tests: tests/ir/lower_run.cpp, tests/ir/test_against_torch.py.
#include <algorithm>
#include <unordered_map>

#include "ir/lower/structured.h"

namespace dynvm::ir {
namespace {

// Copies a tensor into a part of a result: its element at `offset`, with these strides.
void copy_into(const Request& request, Ref source, Ref result, std::vector<int64_t> strides, int64_t offset) {
  Builder b(request.call, request.call.meta(source).sizes);
  DType type = request.call.meta(result).dtype;
  b.set_type(type);
  b.store_strided(result, std::move(strides), b.load(source), offset);
  request.out->push_back(b.finish("copy"));
}

bool is_empty(const TensorMeta& meta) {
  for (int64_t size : meta.sizes)
    if (size == 0) return true;
  return false;
}

bool triangle(const Request& request, bool lower, std::string_view name) {
  const CallView& call = request.call;
  Ref input = call.tensor(0), result = request.result(0);
  if (input == kNoRef) return request.refuse("no tensor");
  if (result == kNoRef) return true;
  if (call.has(1) && !call.is_constant(1)) return request.refuse("diagonal changes");
  const std::vector<int64_t>& sizes = call.meta(result).sizes;
  if (sizes.size() < 2) return request.refuse("rank");
  Builder b(call, sizes);
  b.set_type(call.meta(input).dtype);
  int row = static_cast<int>(sizes.size()) - 2;
  Value diagonal = b.integer(call.has(1) ? call.integer(1) : 0);
  Value limit = b.index(row) + diagonal, column = b.index(row + 1);
  b.store(result, select(lower ? column <= limit : column >= limit, b.load(input), b.constant(0)));
  request.out->push_back(b.finish(name));
  return true;
}

}  // namespace

// cat(tensors, dim)
bool lower_cat(const Request& request) {
  const CallView& call = request.call;
  Ref result = request.result(0);
  if (result == kNoRef) return true;
  const TensorMeta& whole = call.meta(result);
  auto rank = static_cast<int64_t>(whole.sizes.size());
  if (call.arg(0).kind != AtenArg::kTensorList || rank == 0) return request.refuse("no tensor list");
  int64_t dim = call.has(1) ? call.integer(1) : 0;
  if (dim < 0) dim += rank;
  int64_t at = 0;
  for (int32_t position : call.arg(0).operands) {
    if (position < 0) return request.refuse("undefined tensor");
    Ref part = call.trace().arg(call.inst(), position);
    const TensorMeta& meta = call.meta(part);
    if (!is_computable(meta.dtype)) return request.refuse("dtype");
    if (is_empty(meta)) {
      if (static_cast<int64_t>(meta.sizes.size()) == rank) at += meta.sizes[dim];
      continue;
    }
    copy_into(request, part, result, whole.strides, at * whole.strides[dim]);
    at += meta.sizes[dim];
  }
  return true;
}

// stack(tensors, dim)
bool lower_stack(const Request& request) {
  const CallView& call = request.call;
  Ref result = request.result(0);
  if (result == kNoRef) return true;
  const TensorMeta& whole = call.meta(result);
  if (call.arg(0).kind != AtenArg::kTensorList) return request.refuse("no tensor list");
  int64_t dim = call.has(1) ? call.integer(1) : 0, at = 0;
  if (dim < 0) dim += static_cast<int64_t>(whole.sizes.size());
  std::vector<int64_t> strides = whole.strides;
  strides.erase(strides.begin() + dim);
  for (int32_t position : call.arg(0).operands) {
    if (position < 0) return request.refuse("undefined tensor");
    Ref part = call.trace().arg(call.inst(), position);
    if (!is_computable(call.meta(part).dtype)) return request.refuse("dtype");
    if (!is_empty(call.meta(part))) copy_into(request, part, result, strides, at * whole.strides[dim]);
    ++at;
  }
  return true;
}

// select_backward(grad, input_sizes, dim, index)
bool lower_select_backward(const Request& request) {
  const CallView& call = request.call;
  Ref grad = call.tensor(0), result = request.result(0);
  if (grad == kNoRef) return request.refuse("no tensor");
  if (result == kNoRef) return true;
  const TensorMeta& whole = call.meta(result);
  auto rank = static_cast<int64_t>(whole.sizes.size());
  int64_t dim = call.integer(2), index = call.integer(3);
  if (dim < 0) dim += rank;
  if (index < 0) index += whole.sizes[dim];
  fill(request, result, 0);
  std::vector<int64_t> strides = whole.strides;
  strides.erase(strides.begin() + dim);
  copy_into(request, grad, result, strides, index * whole.strides[dim]);
  return true;
}

// slice_backward(grad, input_sizes, dim, start, end, step)
bool lower_slice_backward(const Request& request) {
  const CallView& call = request.call;
  Ref grad = call.tensor(0), result = request.result(0);
  if (grad == kNoRef) return request.refuse("no tensor");
  if (result == kNoRef) return true;
  const TensorMeta& whole = call.meta(result);
  auto rank = static_cast<int64_t>(whole.sizes.size());
  int64_t dim = call.integer(2), start = call.integer(3), step = call.integer(5);
  if (dim < 0) dim += rank;
  if (start < 0) start += whole.sizes[dim];
  if (start < 0) start = 0;
  fill(request, result, 0);
  if (is_empty(call.meta(grad))) return true;
  std::vector<int64_t> strides = whole.strides;
  strides[dim] *= step;
  copy_into(request, grad, result, strides, start * whole.strides[dim]);
  return true;
}

// constant_pad_nd(self, pad, value): pairs of (before, after) from the last dim on
bool lower_constant_pad(const Request& request) {
  const CallView& call = request.call;
  Ref input = call.tensor(0), result = request.result(0);
  if (input == kNoRef) return request.refuse("no tensor");
  if (result == kNoRef) return true;
  if (call.has(2) && !call.is_constant(2)) return request.refuse("value changes");
  const TensorMeta &whole = call.meta(result), &meta = call.meta(input);
  const std::vector<int64_t>& pad = call.integers(1);
  // Negative padding crops: the part of the input that stays, and where it goes.
  std::vector<int64_t> sizes = meta.sizes;
  int64_t to = 0, from = 0;
  for (size_t k = 0; k < pad.size(); k += 2) {
    size_t dim = sizes.size() - 1 - k / 2;
    int64_t before = pad[k], after = pad[k + 1];
    sizes[dim] += std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    (before > 0 ? to : from) += before > 0 ? before * whole.strides[dim] : -before * meta.strides[dim];
  }
  fill(request, result, call.has(2) ? call.real(2) : 0);
  for (int64_t size : sizes)
    if (size <= 0) return true;
  Builder b(call, sizes);
  b.set_type(whole.dtype);
  b.store_strided(result, whole.strides, b.load_strided(input, meta.strides, from), to);
  request.out->push_back(b.finish("pad"));
  return true;
}

// repeat(self, repeats): over (copy, element) for each dim
bool lower_repeat(const Request& request) {
  const CallView& call = request.call;
  Ref input = call.tensor(0), result = request.result(0);
  if (input == kNoRef) return request.refuse("no tensor");
  if (result == kNoRef || is_empty(call.meta(result))) return true;
  const TensorMeta &whole = call.meta(result), &meta = call.meta(input);
  const std::vector<int64_t>& repeats = call.integers(1);
  if (2 * repeats.size() > static_cast<size_t>(kMaxKernelDims)) return request.refuse("rank");
  std::vector<int64_t> sizes, from, to;
  size_t missing = repeats.size() - meta.sizes.size();
  for (size_t k = 0; k < repeats.size(); ++k) {
    int64_t size = k < missing ? 1 : meta.sizes[k - missing];
    sizes.insert(sizes.end(), {repeats[k], size});
    from.insert(from.end(), {0, k < missing ? 0 : meta.strides[k - missing]});
    to.insert(to.end(), {size * whole.strides[k], whole.strides[k]});
  }
  Builder b(call, sizes);
  b.set_type(whole.dtype);
  b.store_strided(result, to, b.load_strided(input, from));
  request.out->push_back(b.finish("repeat"));
  return true;
}

// flip(self, dims)
bool lower_flip(const Request& request) {
  const CallView& call = request.call;
  Ref input = call.tensor(0), result = request.result(0);
  if (input == kNoRef) return request.refuse("no tensor");
  if (result == kNoRef || is_empty(call.meta(input))) return true;
  const TensorMeta& meta = call.meta(input);
  std::vector<int64_t> strides = meta.strides;
  int64_t offset = 0;
  for (int64_t dim : call.integers(1)) {
    if (dim < 0) dim += static_cast<int64_t>(meta.sizes.size());
    offset += (meta.sizes[dim] - 1) * meta.strides[dim];
    strides[dim] = -strides[dim];
  }
  Builder b(call, meta.sizes);
  b.set_type(meta.dtype);
  b.store(result, b.load_strided(input, strides, offset));
  request.out->push_back(b.finish("flip"));
  return true;
}

bool lower_tril(const Request& request) { return triangle(request, true, "tril"); }
bool lower_triu(const Request& request) { return triangle(request, false, "triu"); }

// arange(end), arange.start(start, end), arange.start_step(start, end, step), of integers
bool lower_arange(const Request& request) {
  const CallView& call = request.call;
  Ref result = request.result(0);
  if (result == kNoRef) return true;
  if (!is_integer(call.meta(result).dtype)) return request.refuse("dtype");
  bool starts = !call.call().overload.empty(), steps = call.call().overload == "start_step";
  if ((starts && !call.is_constant(0)) || (steps && !call.is_constant(2))) return request.refuse("bounds change");
  Builder b(call, call.meta(result).sizes);
  b.set_type(DType::kI64);
  b.store(result, b.integer(starts ? call.integer(0) : 0) + b.index(0) * b.integer(steps ? call.integer(2) : 1));
  request.out->push_back(b.finish("arange"));
  return true;
}

LowerFunction find_structured(std::string_view name) {
  static const std::unordered_map<std::string_view, LowerFunction> table = {
#define X(name, function, sentence) {#name, function},
#include "ir/lower/structured.def"
#undef X
  };
  auto row = table.find(name);
  return row == table.end() ? nullptr : row->second;
}

}  // namespace dynvm::ir
