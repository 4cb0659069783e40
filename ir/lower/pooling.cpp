// Lowering of pooling: averages and largest elements of windows, and their gradients.
//
// Inputs, outputs, invariants: builder.h (Request). A window has few elements, so a result is an expression of one load for each of them, in eager's order: kernels without
// reductions, which join what follows, and whose sums are eager's to the bit. Averages of larger windows are reductions over as many dims. Gradients are
// the other way round: an element of the input has the gradients of the windows that it is in, again in eager's order.
// Tests: tests/ir/lower_run.cpp, tests/ir/test_against_torch.py.
#include <algorithm>
#include <array>
#include <limits>

#include "ir/kernel/symbols.h"
#include "ir/lower/structured.h"
#include "runtime/base/heuristics.h"

namespace dynvm::ir {
namespace {

// A spatial dim: windows of `size` elements, the first one `padding` before the image's.
struct Axis {
  int64_t in = 0, out = 0, size = 1, stride = 1, padding = 0, dilation = 1;
  // Where in the image a window's element is.
  int64_t place(int64_t window, int64_t element) const { return window * stride + element * dilation - padding; }
  int64_t reach() const { return (size - 1) * dilation + 1; }
  bool inside() const { return padding == 0 && place(out - 1, size - 1) < in; }
  bool apart() const { return stride >= reach(); }  // no element is in two windows
  bool tiles() const { return inside() && dilation == 1 && stride == size && out * size == in; }
};

// Positions of arguments, -1: there is none.
struct Arguments {
  int size = -1, stride = -1, padding = -1, dilation = -1;
};

// The windows of a call: of an image [..., in, in] and what is pooled of it, [..., out, out].
class Windows {
 public:
  // Of an operation whose arguments say what the windows are.
  Windows(const CallView& call, Ref image, const TensorMeta& pooled, size_t dims, Arguments at) : Windows(call, image, pooled, dims) {
    for (size_t k = 0; k < axes.size(); ++k) {
      Axis& axis = axes[k];
      axis.size = number(at.size, k, 1);
      axis.stride = number(at.stride, k, axis.size);
      axis.padding = number(at.padding, k, 0);
      axis.dilation = number(at.dilation, k, 1);
      if (axis.size <= 0 || axis.stride <= 0 || axis.dilation <= 0 || axis.padding < 0) axes.clear();
    }
  }
  // Of an operation that divides the image evenly (adaptive pooling).
  Windows(const CallView& call, Ref image, const TensorMeta& pooled, size_t dims) : call_(call) {
    const TensorMeta& whole = call.meta(image);
    const size_t rank = whole.sizes.size();
    if (rank < dims || pooled.sizes.size() != rank || rank + dims > static_cast<size_t>(kMaxKernelDims)) return;
    for (int64_t size : pooled.sizes)
      if (size == 0) return;
    lead = rank - dims;
    for (size_t k = lead; k < rank; ++k) {
      if (is_symbolic(whole.sizes[k], call.trace().symbols) || is_symbolic(pooled.sizes[k], call.trace().symbols)) {
        axes.clear();
        return;
      }
      const int64_t in = whole.sizes[k], out = pooled.sizes[k], size = in / out;
      axes.push_back({in, out, size, size});
    }
  }

  bool known() const { return !axes.empty(); }
  template <class Is>
  bool all(Is is) const {
    return std::all_of(axes.begin(), axes.end(), is);
  }
  bool inside() const {
    return all([](const Axis& axis) { return axis.inside(); });
  }
  bool apart() const {
    return all([](const Axis& axis) { return axis.apart(); });
  }
  int64_t elements() const {
    int64_t count = 1;
    for (const Axis& axis : axes) count *= axis.size;
    return count;
  }

  // What each element of a window is at, in row-major order: visit(element along each axis).
  template <class Visit>
  void for_each(Visit visit) const {
    std::vector<int64_t> at(axes.size(), 0);
    for (int64_t n = elements(); n > 0; --n) {
      visit(at);
      for (size_t k = at.size(); k-- > 0 && ++at[k] == axes[k].size;) at[k] = 0;
    }
  }

  // Of axis k: the step from one element of a plane of the image to the next, counted in its elements.
  int64_t flat(size_t k) const {
    int64_t step = 1;
    for (size_t after = k + 1; after < axes.size(); ++after) step *= axes[after].in;
    return step;
  }

  // Strides of an image over [..., out, out] from one window to the next.
  std::vector<int64_t> steps(Ref image) const {
    std::vector<int64_t> strides = call_.meta(image).strides;
    for (size_t k = 0; k < axes.size(); ++k) strides[lead + k] *= axes[k].stride;
    return strides;
  }
  // From a window's first element to another one, in memory.
  int64_t offset(Ref image, const std::vector<int64_t>& element) const {
    int64_t offset = 0;
    for (size_t k = 0; k < axes.size(); ++k) offset += axes[k].place(0, element[k]) * call_.meta(image).strides[lead + k];
    return offset;
  }

  // [..., out, size, out, size]: each element of each window. Its sizes, and strides over it.
  std::vector<int64_t> spread_sizes(Ref image) const {
    return spread(call_.meta(image).sizes, [](const Axis& axis, int64_t) { return std::array{axis.out, axis.size}; });
  }
  std::vector<int64_t> spread_image(Ref image) const {
    return spread(call_.meta(image).strides, [](const Axis& axis, int64_t stride) { return std::array{stride * axis.stride, stride * axis.dilation}; });
  }
  std::vector<int64_t> spread_pooled(Ref pooled) const {
    return spread(call_.meta(pooled).strides, [](const Axis&, int64_t stride) { return std::array{stride, int64_t{0}}; });
  }

  std::vector<Axis> axes;  // none where they are not known
  size_t lead = 0;         // dims in front of them

 private:
  // Two numbers in the place of each axis's.
  template <class Two>
  std::vector<int64_t> spread(const std::vector<int64_t>& numbers, Two two) const {
    std::vector<int64_t> all(numbers.begin(), numbers.begin() + static_cast<ptrdiff_t>(lead));
    for (size_t k = 0; k < axes.size(); ++k) {
      const std::array<int64_t, 2> each = two(axes[k], numbers[lead + k]);
      all.insert(all.end(), each.begin(), each.end());
    }
    return all;
  }
  int64_t number(int argument, size_t k, int64_t otherwise) const {
    if (argument < 0) return otherwise;
    const AtenArg& list = call_.arg(static_cast<size_t>(argument));
    if (list.kind != AtenArg::kIntList) return -1;
    return list.ints.empty() ? otherwise : list.ints.size() == 1 ? list.ints[0] : k < list.ints.size() ? list.ints[k] : -1;
  }
  const CallView& call_;
};

// More loads in one expression than this take long to compile, and registers to have them all at once.
constexpr int64_t kLongestExpression = 25;

Value loaded(Builder& b, Ref tensor, std::vector<int64_t> strides, int64_t offset = 0) { return b.cast(b.load_strided(tensor, std::move(strides), offset), b.type()); }
Value integer(Builder& b, DType dtype, int64_t value) { return b.make(b.kernel().add_const_int(dtype, value)); }

// Where an element of a plane is, counted in the plane's elements; steps: of each dim of the space.
Value position(Builder& b, const std::vector<std::pair<size_t, int64_t>>& steps, int64_t from) {
  Value at = integer(b, DType::kI64, from);
  for (const auto& [dim, step] : steps) at = at + b.index(static_cast<int>(dim)) * integer(b, DType::kI64, step);
  return at;
}

// A kernel over what is pooled, or why there is none.
bool can_pool(const Request& request, Ref image, const Windows& windows) {
  if (image == kNoRef || !is_floating(request.call.meta(image).dtype)) return request.refuse("dtype");
  if (!windows.known()) return request.refuse("windows of sizes that change");
  if (!windows.inside()) return request.refuse("padding");
  return true;
}

// divided: a sum over a window as its mean.
template <class Divided>
bool average(const Request& request, const Windows& windows, std::string_view name, Divided divided) {
  const CallView& call = request.call;
  const Ref image = call.tensor(0), result = request.result(0);
  if (!can_pool(request, image, windows)) return false;
  if (result == kNoRef) return true;
  const bool large = windows.elements() > kLongestExpression;
  Builder b(call, large ? windows.spread_sizes(image) : call.meta(result).sizes);
  b.set_type(call.meta(image).dtype);
  if (large) {
    uint32_t reduced = 0;
    for (size_t k = 0; k < windows.axes.size(); ++k) reduced |= 2u << (windows.lead + 2 * k);
    b.reduce(reduced);
    b.store_strided(result, windows.spread_pooled(result), divided(b, sum(loaded(b, image, windows.spread_image(image)))));
  } else {
    Value total = b.constant(0);  // as eager, for which a sum of zeros that are negative is a positive one
    windows.for_each([&](const std::vector<int64_t>& element) { total = total + loaded(b, image, windows.steps(image), windows.offset(image, element)); });
    b.store(result, divided(b, total));
  }
  request.out->push_back(b.finish(name));
  return true;
}

// The largest element, the first of equal ones, and where in its plane it is; of those that are NaN the last.
bool largest(const Request& request, const Windows& windows, std::string_view name) {
  const CallView& call = request.call;
  const Ref image = call.tensor(0), result = request.result(0), indices = request.result(1);
  if (!can_pool(request, image, windows)) return false;
  if (windows.elements() > kLongestExpression) return request.refuse("large windows");
  if (result == kNoRef && indices == kNoRef) return true;
  if (windows.flat(0) * windows.axes[0].in > std::numeric_limits<int32_t>::max()) return request.refuse("a large plane");
  Builder b(call, call.meta(result != kNoRef ? result : indices).sizes);
  b.set_type(call.meta(image).dtype);
  Value top, at;
  windows.for_each([&](const std::vector<int64_t>& element) {
    const Value x = loaded(b, image, windows.steps(image), windows.offset(image, element));
    int64_t offset = 0;
    for (size_t k = 0; k < element.size(); ++k) offset += element[k] * windows.axes[k].dilation * windows.flat(k);
    const Value here = integer(b, DType::kI32, offset);
    if (!top) {
      top = x, at = here;
    } else if (indices == kNoRef) {
      top = max(x, top);
    } else {
      const Value larger = b.op(KOp::k_or, x > top, b.op(KOp::k_isnan, x));
      top = select(larger, x, top);
      at = select(larger, here, at);
    }
  });
  if (result != kNoRef) b.store(result, top);
  if (indices != kNoRef) {
    std::vector<std::pair<size_t, int64_t>> steps;
    for (size_t k = 0; k < windows.axes.size(); ++k) steps.emplace_back(windows.lead + k, windows.axes[k].stride * windows.flat(k));
    b.store(indices, b.cast(at, DType::kI64) + position(b, steps, 0));
  }
  request.out->push_back(b.finish(name));
  return true;
}

// A gradient of the image. part: what an element has of a window's gradient, both of them over [..., out, size, out, size].
template <class Part>
bool backward(const Request& request, const Windows& windows, std::string_view name, Part part) {
  const CallView& call = request.call;
  const Ref grad = call.tensor(0), result = request.result(0);
  if (grad == kNoRef || !can_pool(request, call.tensor(1), windows)) return request.refuse("no tensor, or padding");
  if (!windows.apart()) return request.refuse("windows that overlap");
  if (result == kNoRef) return true;
  if (!windows.all([](const Axis& axis) { return axis.tiles(); })) fill(request, result, 0);
  Builder b(call, windows.spread_sizes(result));
  b.set_type(call.meta(result).dtype);
  b.store_strided(result, windows.spread_image(result), b.constant(0) + part(b, loaded(b, grad, windows.spread_pooled(grad))));
  request.out->push_back(b.finish(name));
  return true;
}

bool largest_backward(const Request& request, const Windows& windows, Ref indices, std::string_view name) {
  if (indices == kNoRef) return request.refuse("no tensor");
  return backward(request, windows, name, [&](Builder& b, Value grad) {
    std::vector<std::pair<size_t, int64_t>> steps;
    for (size_t k = 0; k < windows.axes.size(); ++k) {
      steps.emplace_back(windows.lead + 2 * k, windows.axes[k].stride * windows.flat(k));
      steps.emplace_back(windows.lead + 2 * k + 1, windows.axes[k].dilation * windows.flat(k));
    }
    return select(b.op(KOp::k_eq, b.load_strided(indices, windows.spread_pooled(indices)), position(b, steps, 0)), grad, b.constant(0));
  });
}

const TensorMeta& pooled_meta(const Request& request) { return request.call.result(0); }
const TensorMeta& gradient_meta(const Request& request) { return request.call.meta(request.call.tensor(0)); }

// By how much a window's sum is divided: argument `by`, or as many as it has elements.
bool divisor(const Request& request, const Windows& windows, size_t by, double* out) {
  if (request.call.has(by) && !request.call.is_constant(by)) return request.refuse("a divisor that changes");
  *out = request.call.has(by) ? request.call.real(by) : static_cast<double>(windows.elements());
  return true;
}

// avg_pool(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
bool avg_pool(const Request& request, size_t dims) {
  if (request.call.tensor(0) == kNoRef) return request.refuse("no tensor");
  const Windows windows(request.call, request.call.tensor(0), pooled_meta(request), dims, {.size = 1, .stride = 2, .padding = 3});
  double by = 1;
  return divisor(request, windows, 6, &by) && average(request, windows, "avg_pool", [&](Builder& b, Value total) { return total / b.constant(by); });
}

// avg_pool_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
bool avg_pool_backward(const Request& request, size_t dims) {
  if (request.call.tensor(0) == kNoRef || request.call.tensor(1) == kNoRef) return request.refuse("no tensor");
  const Windows windows(request.call, request.call.tensor(1), gradient_meta(request), dims, {.size = 2, .stride = 3, .padding = 4});
  double by = 1;
  return divisor(request, windows, 7, &by) && backward(request, windows, "avg_pool_backward", [&](Builder& b, Value grad) { return grad / b.constant(by); });
}

// By one side after the other, each of them rounded to `type`, as eager.
Value divided_by_sides(Builder& b, const Windows& windows, Value total, DType type) {
  for (const Axis& axis : windows.axes) total = b.rounded(total / b.constant(static_cast<double>(axis.size)), type);
  return total;
}

// Does each window have as many elements?
bool divides(const Windows& windows) {
  return windows.all([](const Axis& axis) { return axis.tiles(); });
}

// _adaptive_avg_pool(self, output_size)
bool adaptive_avg_pool(const Request& request, size_t dims) {
  if (request.call.tensor(0) == kNoRef) return request.refuse("no tensor");
  const Windows windows(request.call, request.call.tensor(0), pooled_meta(request), dims);
  if (!divides(windows)) return request.refuse("windows of several sizes");
  return average(request, windows, "adaptive_avg_pool", [&](Builder& b, Value total) { return divided_by_sides(b, windows, total, b.type()); });
}

// _adaptive_avg_pool_backward(grad_output, self)
bool adaptive_avg_pool_backward(const Request& request, size_t dims) {
  if (request.call.tensor(0) == kNoRef || request.call.tensor(1) == kNoRef) return request.refuse("no tensor");
  const Windows windows(request.call, request.call.tensor(1), gradient_meta(request), dims);
  if (!divides(windows)) return request.refuse("windows of several sizes");
  return backward(request, windows, "adaptive_avg_pool_backward", [&](Builder& b, Value grad) { return divided_by_sides(b, windows, grad, gradient_meta(request).dtype); });
}

// max_pool_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) -> (output, indices)
bool max_pool(const Request& request, size_t dims) {
  if (request.call.tensor(0) == kNoRef) return request.refuse("no tensor");
  return largest(request, {request.call, request.call.tensor(0), pooled_meta(request), dims, {.size = 1, .stride = 2, .padding = 3, .dilation = 4}}, "max_pool");
}

// max_pool_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
bool max_pool_backward(const Request& request, size_t dims) {
  if (request.call.tensor(0) == kNoRef || request.call.tensor(1) == kNoRef) return request.refuse("no tensor");
  const Windows windows(request.call, request.call.tensor(1), gradient_meta(request), dims, {.size = 2, .stride = 3, .padding = 4, .dilation = 5});
  return largest_backward(request, windows, request.call.tensor(7), "max_pool_backward");
}

}  // namespace

bool lower_avg_pool2d(const Request& request) { return avg_pool(request, 2); }
bool lower_avg_pool3d(const Request& request) { return avg_pool(request, 3); }
bool lower_avg_pool2d_backward(const Request& request) { return avg_pool_backward(request, 2); }
bool lower_avg_pool3d_backward(const Request& request) { return avg_pool_backward(request, 3); }
bool lower_adaptive_avg_pool2d(const Request& request) { return adaptive_avg_pool(request, 2); }
bool lower_adaptive_avg_pool3d(const Request& request) { return adaptive_avg_pool(request, 3); }
bool lower_adaptive_avg_pool2d_backward(const Request& request) { return adaptive_avg_pool_backward(request, 2); }
bool lower_adaptive_avg_pool3d_backward(const Request& request) { return adaptive_avg_pool_backward(request, 3); }
bool lower_max_pool2d(const Request& request) { return max_pool(request, 2); }
bool lower_max_pool3d(const Request& request) { return max_pool(request, 3); }
bool lower_max_pool2d_backward(const Request& request) { return max_pool_backward(request, 2); }
bool lower_max_pool3d_backward(const Request& request) { return max_pool_backward(request, 3); }

}  // namespace dynvm::ir
