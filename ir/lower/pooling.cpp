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
  // Has each window an element of the image? Else eager's index is that of none.
  bool filled() const {
    for (int64_t window = 0; window < out; ++window) {
      bool any = false;
      for (int64_t element = 0; element < size; ++element) any = any || (place(window, element) >= 0 && place(window, element) < in);
      if (!any) return false;
    }
    return true;
  }
  // Elements that count of a window, whatever the dilation; with_padding: also those before and behind the image.
  int64_t counted(int64_t window, bool with_padding) const {
    const int64_t from = place(window, 0), to = std::min(from + size, in + padding);
    return with_padding ? to - from : std::min(to, in) - std::max<int64_t>(from, 0);
  }
  bool all_count(bool with_padding) const { return counted(0, with_padding) == size && counted(out - 1, with_padding) == size; }
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

  // In so many windows an element may be, along an axis and in all.
  int64_t met(size_t k) const { return (axes[k].reach() - 1) / axes[k].stride + 1; }
  int64_t all_met() const {
    int64_t count = 1;
    for (size_t k = 0; k < axes.size(); ++k) count *= met(k);
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
constexpr int64_t kLongestExpression = 27;

Value loaded(Builder& b, Ref tensor, std::vector<int64_t> strides, int64_t offset = 0) { return b.cast(b.load_strided(tensor, std::move(strides), offset), b.type()); }

Value both(Builder& b, Value first, Value second) { return !first ? second : !second ? first : b.op(KOp::k_and, first, second); }

// The index along a dim of the space times `step`, summed up over dims.
Value position(Builder& b, const std::vector<std::pair<size_t, int64_t>>& steps, int64_t from) {
  Value at = b.integer(from);
  for (const auto& [dim, step] : steps) at = at + b.index(static_cast<int>(dim)) * b.integer(step);
  return at;
}

// Can the windows of an image be looked at, and if not, why?
bool can_pool(const Request& request, Ref image, const Windows& windows) {
  if (image == kNoRef || !is_floating(request.call.meta(image).dtype)) return request.refuse("dtype");
  if (!windows.known()) return request.refuse("windows of sizes that change");
  if (windows.inside()) return true;
  if (request.call.meta(image).device_type == 0) return request.refuse("padding, on the CPU");
  if (!windows.all([](const Axis& axis) { return axis.filled(); })) return request.refuse("windows without elements");
  return true;
}

// An element of each window, over what is pooled: 0 where it is outside of the image. *inside: whether it is not; none where all of them are in it.
Value element_of(Builder& b, Ref image, const Windows& windows, const std::vector<int64_t>& element, Value* inside) {
  *inside = {};
  for (size_t k = 0; k < windows.axes.size(); ++k) {
    const Axis& axis = windows.axes[k];
    const int64_t first = axis.place(0, element[k]), last = axis.place(axis.out - 1, element[k]);
    const Value window = b.index(static_cast<int>(windows.lead + k));
    if (first < 0) *inside = both(b, *inside, window >= b.integer((-first + axis.stride - 1) / axis.stride));
    if (last >= axis.in) *inside = both(b, *inside, window < b.integer(std::max<int64_t>(0, (axis.in - first + axis.stride - 1) / axis.stride)));
  }
  const int64_t offset = windows.offset(image, element);
  if (!*inside) return loaded(b, image, windows.steps(image), offset);
  return b.cast(b.load_at(image, windows.steps(image), b.integer(offset), *inside), b.type());
}

// divided: a sum over a window as its mean.
template <class Divided>
bool average(const Request& request, const Windows& windows, std::string_view name, Divided divided) {
  const CallView& call = request.call;
  const Ref image = call.tensor(0), result = request.result(0);
  if (!can_pool(request, image, windows)) return false;
  if (result == kNoRef) return true;
  const bool large = windows.elements() > kLongestExpression;
  if (large && !windows.inside()) return request.refuse("large windows with padding");
  Builder b(call, large ? windows.spread_sizes(image) : call.meta(result).sizes);
  b.set_type(call.meta(image).dtype);
  if (large) {
    uint32_t reduced = 0;
    for (size_t k = 0; k < windows.axes.size(); ++k) reduced |= 2u << (windows.lead + 2 * k);
    b.reduce(reduced);
    b.store_strided(result, windows.spread_pooled(result), divided(b, sum(loaded(b, image, windows.spread_image(image)))));
  } else {
    Value total = b.constant(0);  // as eager, for which a sum of zeros that are negative is a positive one
    windows.for_each([&](const std::vector<int64_t>& element) {
      Value inside;
      total = total + element_of(b, image, windows, element, &inside);
    });
    b.store(result, divided(b, total));
  }
  request.out->push_back(b.finish(name));
  return true;
}

// Two-dimensional images that lie channels last on a GPU to the script, for which eager has kernels of their own.
bool channels_last_on_gpu(const Windows& windows, const TensorMeta& meta) {
  const std::vector<int64_t>& strides = shown_strides(meta);
  return meta.device_type != 0 && windows.axes.size() == 2 && windows.lead == 2 && strides[1] == 1 && strides[3] == meta.sizes[1];
}


// From a window's first element to its first one in the image, counted in the image's elements.
Value skipped(Builder& b, const Windows& windows) {
  Value all = b.integer(0);
  for (size_t k = 0; k < windows.axes.size(); ++k) {
    const Axis& axis = windows.axes[k];
    if (axis.padding == 0) continue;
    // Of padding - window * stride elements, in steps of the dilation, rounded up.
    const auto number = [&](int64_t value) { return b.integer(value); };
    Value before = number(axis.padding + axis.dilation - 1) - b.index(static_cast<int>(windows.lead + k)) * number(axis.stride);
    if (axis.dilation != 1) before = b.op(KOp::k_floordiv, before, number(axis.dilation)) * number(axis.dilation);
    all = all + max(before, number(0)) * number(windows.flat(k));
  }
  return all;
}

// The largest element, the first of equal ones, and where in its plane it is; of those that are NaN the last.
bool largest(const Request& request, const Windows& windows, std::string_view name) {
  const CallView& call = request.call;
  const Ref image = call.tensor(0), result = request.result(0), indices = request.result(1);
  if (!can_pool(request, image, windows)) return false;
  if (windows.elements() > kLongestExpression) return request.refuse("large windows");
  if (result == kNoRef && indices == kNoRef) return true;
  if (windows.flat(0) * windows.axes[0].in > std::numeric_limits<int32_t>::max()) return request.refuse("a large plane");
  const TensorMeta& pooled = call.meta(result != kNoRef ? result : indices);
  Builder b(call, pooled.sizes);
  b.set_type(call.meta(image).dtype);
  const Value lowest = b.constant(-std::numeric_limits<double>::infinity());
  Value base, top, at;  // at: from `base` on
  if (indices != kNoRef) {
    std::vector<std::pair<size_t, int64_t>> steps;
    int64_t from = 0;
    for (size_t k = 0; k < windows.axes.size(); ++k) {
      steps.emplace_back(windows.lead + k, windows.axes[k].stride * windows.flat(k));
      from -= windows.axes[k].padding * windows.flat(k);
    }
    base = position(b, steps, from);
    // There a position is counted from the image's first element, and not from the window's, where a window has nothing above -inf.
    if (channels_last_on_gpu(windows, pooled)) top = lowest, at = b.cast(-base, DType::kI32);
    else if (!windows.inside()) top = lowest, at = b.cast(skipped(b, windows), DType::kI32);
  }
  windows.for_each([&](const std::vector<int64_t>& element) {
    Value inside;
    Value x = element_of(b, image, windows, element, &inside);
    if (inside) x = select(inside, x, lowest);
    int64_t offset = 0;
    for (size_t k = 0; k < element.size(); ++k) offset += element[k] * windows.axes[k].dilation * windows.flat(k);
    const Value here = b.integer(offset, DType::kI32);
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
  if (indices != kNoRef) b.store(indices, base + b.cast(at, DType::kI64));
  request.out->push_back(b.finish(name));
  return true;
}

// A window along each axis, as a gradient meets it: which one it is, in i32, and whether there is such a one that has the element; none: there always is.
struct Met {
  std::vector<Value> window;
  Value exists;
};

// The windows that have an element, over the image: visit(met), in eager's order, for as many as an element may be in.
template <class Visit>
void for_each_met(Builder& b, const Windows& windows, Visit visit) {
  const auto number = [&](int64_t value) { return b.integer(value, DType::kI32); };
  const size_t count = windows.axes.size();
  std::vector<int64_t> before(count);  // by how many it is before the last window that has the element
  for (size_t k = 0; k < count; ++k) before[k] = windows.met(k) - 1;
  for (int64_t n = windows.all_met(); n > 0; --n) {
    Met met;
    for (size_t k = 0; k < count; ++k) {
      const Axis& axis = windows.axes[k];
      const Value place = b.cast(b.index(static_cast<int>(windows.lead + k)), DType::kI32) + number(axis.padding);
      const Value last = axis.stride == 1 ? place : b.op(KOp::k_truncdiv, place, number(axis.stride));
      const Value window = before[k] == 0 ? last : last - number(before[k]);
      const int64_t least = axis.padding / axis.stride - before[k], most = (axis.in - 1 + axis.padding) / axis.stride - before[k];
      if (least < 0) met.exists = both(b, met.exists, window >= number(0));
      if (most >= axis.out) met.exists = both(b, met.exists, window < number(axis.out));
      if (axis.stride * (before[k] + 1) > axis.reach()) met.exists = both(b, met.exists, place - window * number(axis.stride) < number(axis.reach()));
      met.window.push_back(window);
    }
    visit(met);
    for (size_t k = count; k-- > 0 && before[k]-- == 0;) before[k] = windows.met(k) - 1;
  }
}

// What is pooled, at a window that an element of the image meets; 0 where there is no such one.
Value pooled_at(Builder& b, Ref pooled, const Windows& windows, const Met& met) {
  const std::vector<int64_t>& meta = b.call().meta(pooled).strides;
  std::vector<int64_t> strides(meta.begin(), meta.begin() + static_cast<ptrdiff_t>(windows.lead));
  strides.resize(meta.size(), 0);
  Value at = b.integer(0);
  for (size_t k = 0; k < windows.axes.size(); ++k) at = at + b.cast(met.window[k], DType::kI64) * b.integer(meta[windows.lead + k]);
  return b.load_at(pooled, std::move(strides), at, met.exists ? met.exists : b.truth(true));
}

// What an element has of a window's gradient. Over [..., out, size, out, size], or over the image.
struct Share {
  Builder& b;
  const Windows& windows;
  const Met* met;  // null: each window, each of its elements
  Value load(Ref pooled) const { return met == nullptr ? b.load_strided(pooled, windows.spread_pooled(pooled)) : pooled_at(b, pooled, windows, *met); }
  // The number of the window along an axis, in i32.
  Value window(size_t k) const { return met != nullptr ? met->window[k] : b.cast(b.index(static_cast<int>(windows.lead + 2 * k)), DType::kI32); }
  // Where the element is in its plane.
  Value place() const {
    std::vector<std::pair<size_t, int64_t>> steps;
    for (size_t k = 0; k < windows.axes.size(); ++k) {
      if (met == nullptr) {
        steps.emplace_back(windows.lead + 2 * k, windows.axes[k].stride * windows.flat(k));
        steps.emplace_back(windows.lead + 2 * k + 1, windows.axes[k].dilation * windows.flat(k));
      } else {
        steps.emplace_back(windows.lead + k, windows.flat(k));
      }
    }
    return position(b, steps, 0);
  }
};

// A gradient of the image. part: what an element has of a window's gradient, 0 where it is in no such one.
template <class Part>
bool backward(const Request& request, const Windows& windows, std::string_view name, Part part) {
  const CallView& call = request.call;
  const Ref grad = call.tensor(0), result = request.result(0);
  if (grad == kNoRef) return request.refuse("no tensor");
  if (!can_pool(request, call.tensor(1), windows)) return false;
  if (result == kNoRef) return true;
  const bool each_in_one = windows.inside() && windows.apart();
  if (!each_in_one && call.meta(grad).device_type == 0) return request.refuse("windows that overlap, on the CPU");
  if (!each_in_one && windows.all_met() > kLongestExpression) return request.refuse("an element in many windows");
  if (each_in_one && !windows.all([](const Axis& axis) { return axis.tiles(); })) fill(request, result, 0);
  Builder b(call, each_in_one ? windows.spread_sizes(result) : call.meta(result).sizes);
  b.set_type(call.meta(result).dtype);
  Value total = b.constant(0);
  const auto add = [&](const Share& share) { total = total + part(share, b.cast(share.load(grad), b.type())); };
  if (each_in_one) {
    add({b, windows, nullptr});
    b.store_strided(result, windows.spread_image(result), total);
  } else {
    for_each_met(b, windows, [&](const Met& met) { add({b, windows, &met}); });
    b.store(result, total);
  }
  request.out->push_back(b.finish(name));
  return true;
}

bool largest_backward(const Request& request, const Windows& windows, Ref indices, std::string_view name) {
  if (indices == kNoRef) return request.refuse("no tensor");
  // Eager puts each gradient in its place, which is faster than a kernel whose lanes are as wide as indices and which stores every other element.
  const Ref grad = request.call.tensor(0), result = request.result(0);
  if (grad != kNoRef && result != kNoRef && request.call.meta(grad).device_type == 0 && request.call.meta(result).strides.back() == 1) return request.refuse("contiguous rows, on the CPU");
  return backward(request, windows, name, [&](const Share& share, Value grad) { return select(share.b.op(KOp::k_eq, share.load(indices), share.place()), grad, share.b.constant(0)); });
}

const TensorMeta& pooled_meta(const Request& request) { return request.call.result(0); }
const TensorMeta& gradient_meta(const Request& request) { return request.call.meta(request.call.tensor(0)); }

// By how much the sum of a window is divided: argument `by`, or as many elements as count, those outside of the image if the argument before says so.
struct Divisor {
  Divisor(const Request& request, const Windows& windows, size_t by)
      : windows(windows), with_padding(request.call.flag(by - 1)), given(request.call.has(by)), changes(given && !request.call.is_constant(by)), number(given && !changes ? request.call.real(by) : 0) {}

  // window: gives the number of the window along an axis, in i32.
  template <class Window>
  Value operator()(Builder& b, Window window) const {
    if (is_constant()) return b.constant(given ? number : static_cast<double>(windows.elements()));
    const auto integer_of = [&](int64_t value) { return b.integer(value, DType::kI32); };
    Value count = integer_of(1);
    for (size_t k = 0; k < windows.axes.size(); ++k) {
      const Axis& axis = windows.axes[k];
      if (axis.all_count(with_padding)) {
        count = count * integer_of(axis.size);
        continue;
      }
      const Value from = window(k) * integer_of(axis.stride) - integer_of(axis.padding);
      const Value to = min(from + integer_of(axis.size), integer_of(with_padding ? axis.in + axis.padding : axis.in));
      count = count * (to - (with_padding ? from : max(from, integer_of(0))));
    }
    return b.cast(count, b.type());
  }
  bool is_constant() const {
    return given || windows.all([&](const Axis& axis) { return axis.all_count(with_padding); });
  }

  const Windows& windows;
  bool with_padding, given, changes;
  double number;
};

// avg_pool(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
bool avg_pool(const Request& request, size_t dims) {
  if (request.call.tensor(0) == kNoRef) return request.refuse("no tensor");
  const Windows windows(request.call, request.call.tensor(0), pooled_meta(request), dims, {.size = 1, .stride = 2, .padding = 3});
  const Divisor divisor(request, windows, 6);
  if (divisor.changes) return request.refuse("a divisor that changes");
  return average(request, windows, "avg_pool", [&](Builder& b, Value total) {
    return total / divisor(b, [&](size_t k) { return b.cast(b.index(static_cast<int>(windows.lead + k)), DType::kI32); });
  });
}

// avg_pool_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
bool avg_pool_backward(const Request& request, size_t dims) {
  if (request.call.tensor(0) == kNoRef || request.call.tensor(1) == kNoRef) return request.refuse("no tensor");
  const Windows windows(request.call, request.call.tensor(1), gradient_meta(request), dims, {.size = 2, .stride = 3, .padding = 4});
  const Divisor divisor(request, windows, 7);
  if (divisor.changes) return request.refuse("a divisor that changes");
  // That kernel of eager's gives others than for other layouts (torch 2.11); what it gives stays what a script sees.
  const bool padded = !windows.all([](const Axis& axis) { return axis.padding == 0; });
  if (padded && channels_last_on_gpu(windows, request.call.meta(request.call.tensor(1)))) return request.refuse("padded averages that lie channels last");
  return backward(request, windows, "avg_pool_backward", [&](const Share& share, Value grad) {
    const Value part = share.b.rounded(grad / divisor(share.b, [&](size_t k) { return share.window(k); }), gradient_meta(request).dtype);  // as eager's, before it is added
    // A window that does not exist may seem to have no elements.
    return divisor.is_constant() || share.met == nullptr || !share.met->exists ? part : select(share.met->exists, part, share.b.constant(0));
  });
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
  return backward(request, windows, "adaptive_avg_pool_backward", [&](const Share& share, Value grad) { return divided_by_sides(share.b, windows, grad, gradient_meta(request).dtype); });
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
