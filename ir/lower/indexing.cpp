// Lowering of reads and writes by tensors of indexes: embedding, index_select, gather, index; scatter, scatter_add, index_add, index_copy, index_fill, index_put.
//
// On GPUs only. An index that is out of bounds raises an IndexError on CPUs; eager's kernels for GPUs assert that it is not, and so do these (within), which
// nobody can tell apart; what nobody reads is not looked for. Where eager counts negative indexes from the end, they do.
//
// Additions that meet happen in any order, as eager's do: scatter_add and index_add, but neither what eager sorts first (index_put that accumulates, gradients of
// embeddings) nor anything under deterministic algorithms. Of writes that meet, eager does not say which stays.
// Inputs, outputs, invariants: builder.h (Request).
// Tests: tests/ir/test_against_torch.py, tests/ir/passes/fuse/indexing*.ir; on a GPU tests/cuda/operations.py.
#include <functional>

#include "ir/kernel/symbols.h"
#include "ir/lower/structured.h"

namespace dynvm::ir {
namespace {

// A dim of the table that a tensor of indexes walks along.
struct Indexed {
  Ref index;
  std::vector<int64_t> strides;  // of that tensor, over the space
  int64_t size, stride;          // of the dim
};

// Where each point of a space lies in a table.
struct Places {
  std::vector<int64_t> sizes;    // of the space
  std::vector<int64_t> strides;  // of the table over it, for what is not indexed
  std::vector<Indexed> indexed;
  bool from_the_end = false;     // negative indexes are
};

bool is_empty(const std::vector<int64_t>& sizes) { return std::find(sizes.begin(), sizes.end(), 0) != sizes.end(); }

// Can kernels do that?
bool can(const Request& request, Ref table, const Places& places) {
  const CallView& call = request.call;
  if (call.meta(table).device_type == 0) return request.refuse("an index out of bounds raises");
  for (const Indexed& each : places.indexed)
    if (const DType dtype = call.meta(each.index).dtype; dtype != DType::kI64 && dtype != DType::kI32) return request.refuse("a mask");
  return is_empty(places.sizes) || !is_empty(call.meta(table).sizes) || request.refuse("nothing there");
}

Value place(Builder& b, const Places& places) {
  Value at;
  for (const Indexed& each : places.indexed) {
    Value index = b.cast(b.load_strided(each.index, each.strides), DType::kI64);
    const Value size = b.integer(each.size);
    if (places.from_the_end) {
      const Value from_the_end = index + size;
      index = select(index < b.integer(0), from_the_end, index);
    }
    const Value inside = b.op(KOp::k_within, index, size), part = inside * b.integer(each.stride);
    at = at ? at + part : part;
  }
  return at;
}

// The result's elements, each from its place.
bool read_at(const Request& request, Ref source, const Places& places, std::string_view name) {
  const Ref result = request.result(0);
  if (!can(request, source, places)) return false;
  if (result == kNoRef) return true;
  Builder b(request.call, places.sizes);
  b.set_type(request.call.meta(result).dtype);
  const Value at = place(b, places);
  b.store(result, b.load_at(source, places.strides, at, b.truth(true)));
  request.out->push_back(b.finish(name));
  return true;
}

// What an operation writes: its first argument, or the result, a copy of that (where nobody reads it, whose layout does not matter).
Ref written(const Request& request) { return is_in_place(request.call.call()) || request.result(0) == kNoRef ? request.call.tensor(0) : request.result(0); }

// Values to their places in that.
bool write_at(const Request& request, const Places& places, const std::function<Value(Builder&)>& value, bool adds, std::string_view name) {
  const CallView& call = request.call;
  const std::vector<TorchState>& states = call.trace().torch_states;
  if (std::any_of(states.begin(), states.end(), [](const TorchState& state) { return state.deterministic; })) return request.refuse("deterministic");
  const bool in_place = is_in_place(call.call());
  const Ref target = written(request);
  if (!can(request, call.tensor(0), places)) return false;
  if (writes_others(call.call())) return request.refuse("writes other arguments");
  if (adds && dtype_size(call.meta(target).dtype) < 4) return request.refuse("dtype");
  if (!in_place && request.result(0) == kNoRef) return true;
  if (!in_place) {
    Builder b(call, call.meta(target).sizes);
    b.store(target, b.load_raw(call.tensor(0)));
    request.out->push_back(b.finish("copy"));
  }
  Builder b(call, places.sizes);
  b.set_type(call.meta(target).dtype);
  const Value at = place(b, places);
  b.store_at(target, places.strides, value(b), at, b.truth(true), adds);
  request.out->push_back(b.finish(name));
  return true;
}

// A dim by its number, counted from either end; tensors without dims count as of one.
bool dim_of(const Request& request, size_t argument, size_t rank, size_t* dim) {
  if (!request.call.is_constant(argument)) return request.refuse("the dim changes");
  const int64_t given = request.call.integer(argument);
  *dim = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(std::max<size_t>(rank, 1)) : given);
  return true;
}

// Are they the same but for a dim, or known? Where one may be shorter than the other, as an index, other sizes than these need not fit.
bool fit(const Request& request, const std::vector<int64_t>& a, const std::vector<int64_t>& b, size_t but) {
  const std::vector<int64_t>& symbols = request.call.trace().symbols;
  if (a.size() != b.size()) return request.refuse("rank");
  for (size_t d = 0; d < a.size(); ++d)
    if (d != but && a[d] != b[d] && (is_symbolic(a[d], symbols) || is_symbolic(b[d], symbols))) return request.refuse("sizes that a run decides");
  return true;
}

// The dim of the table is walked through by the indexes alone.
void index_dim(const TensorMeta& table, size_t dim, Ref index, std::vector<int64_t> of_index, Places* out) {
  out->strides = table.strides;
  out->indexed = {{index, std::move(of_index), 1, 0}};
  if (table.sizes.empty()) return;
  out->strides[dim] = 0;
  out->indexed[0].size = table.sizes[dim];
  out->indexed[0].stride = table.strides[dim];
}

// (table, dim, index, ...), a list of indexes of a dim.
bool places_of_list(const Request& request, Ref self, Places* out) {
  const CallView& call = request.call;
  const Ref index = call.tensor(2);
  if (self == kNoRef || index == kNoRef) return request.refuse("no tensor");
  const TensorMeta &table = call.meta(self), &list = call.meta(index);
  size_t dim;
  if (!dim_of(request, 1, table.sizes.size(), &dim)) return false;
  std::vector<int64_t> of_index(table.sizes.size(), 0);
  out->sizes = table.sizes;
  if (!table.sizes.empty()) {
    out->sizes[dim] = list.sizes.empty() ? 1 : list.sizes[0];
    of_index[dim] = list.strides.empty() ? 0 : list.strides[0];
  }
  index_dim(table, dim, index, std::move(of_index), out);
  return true;
}

// (table, dim, index, ...), an index for each element.
bool places_of_elements(const Request& request, Ref self, Places* out) {
  const CallView& call = request.call;
  const Ref index = call.tensor(2);
  if (self == kNoRef || index == kNoRef) return request.refuse("no tensor");
  size_t dim;
  if (!dim_of(request, 1, call.meta(self).sizes.size(), &dim) || !fit(request, call.meta(self).sizes, call.meta(index).sizes, dim)) return false;
  out->sizes = call.meta(index).sizes;
  index_dim(call.meta(self), dim, index, call.meta(index).strides, out);
  return true;
}

// (table, indexes, ...), a tensor or nothing for each dim: the dims of the indexes, broadcast, stand where the indexed dims stood if these are neighbours, else in front.
bool places_of_indexes(const Request& request, Ref self, Places* out) {
  const CallView& call = request.call;
  if (self == kNoRef || call.arg(1).kind != AtenArg::kTensorList) return request.refuse("no tensors");
  const TensorMeta& table = call.meta(self);
  const std::vector<int32_t>& list = call.arg(1).operands;
  if (list.size() > table.sizes.size()) return request.refuse("rank");
  const auto index_of = [&](size_t d) { return d < list.size() && list[d] >= 0 ? call.trace().arg(call.inst(), static_cast<uint32_t>(list[d])) : kNoRef; };
  std::vector<size_t> dims;       // that are indexed
  std::vector<int64_t> together;  // sizes of the indexes, broadcast
  for (size_t d = 0; d < list.size(); ++d) {
    if (index_of(d) == kNoRef) continue;
    dims.push_back(d);
    const std::vector<int64_t>& sizes = call.meta(index_of(d)).sizes;
    if (sizes.size() > together.size()) together.insert(together.begin(), sizes.size() - together.size(), 1);
    for (size_t k = 0; k < sizes.size(); ++k)
      if (sizes[k] != 1) together[together.size() - sizes.size() + k] = sizes[k];
  }
  if (dims.empty()) return request.refuse("no indexes");
  const size_t front = dims.back() - dims.front() + 1 == dims.size() ? dims.front() : 0;
  for (size_t d = 0; d < table.sizes.size(); ++d)
    if (index_of(d) == kNoRef) out->sizes.push_back(table.sizes[d]), out->strides.push_back(table.strides[d]);
  out->sizes.insert(out->sizes.begin() + static_cast<ptrdiff_t>(front), together.begin(), together.end());
  out->strides.insert(out->strides.begin() + static_cast<ptrdiff_t>(front), together.size(), 0);
  if (out->sizes.size() > static_cast<size_t>(kMaxKernelDims)) return request.refuse("rank");
  for (size_t d : dims) {
    const TensorMeta& index = call.meta(index_of(d));
    std::vector<int64_t> of_index(out->sizes.size(), 0);
    for (size_t k = 0; k < index.sizes.size(); ++k)
      if (index.sizes[k] != 1) of_index[front + together.size() - index.sizes.size() + k] = index.strides[k];
    out->indexed.push_back({index_of(d), std::move(of_index), table.sizes[d], table.strides[d]});
  }
  out->from_the_end = true;
  return true;
}

// A tensor that has a value for each point, or more than these.
bool has_values(const Request& request, size_t argument, const Places& places) {
  const Ref tensor = request.call.tensor(argument);
  if (tensor == kNoRef) return request.refuse("no tensor");
  return is_computable(request.call.meta(tensor).dtype) ? fit(request, request.call.meta(tensor).sizes, places.sizes, SIZE_MAX) : request.refuse("dtype");
}

}  // namespace

// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
bool lower_embedding(const Request& request) {
  const CallView& call = request.call;
  const Ref weight = call.tensor(0), indices = call.tensor(1);
  if (weight == kNoRef || indices == kNoRef || call.meta(weight).sizes.size() != 2) return request.refuse("no tensor");
  const TensorMeta &table = call.meta(weight), &index = call.meta(indices);
  Places places{index.sizes, std::vector<int64_t>(index.sizes.size(), 0), {{indices, index.strides, table.sizes[0], table.strides[0]}}};
  places.sizes.push_back(table.sizes[1]);
  places.strides.push_back(table.strides[1]);
  places.indexed[0].strides.push_back(0);
  return read_at(request, weight, places, "embedding");
}

// index_select(self, dim, index)
bool lower_index_select(const Request& request) {
  Places places;
  return places_of_list(request, request.call.tensor(0), &places) && read_at(request, request.call.tensor(0), places, "index_select");
}

// gather(self, dim, index, sparse_grad)
bool lower_gather(const Request& request) {
  Places places;
  return places_of_elements(request, request.call.tensor(0), &places) && read_at(request, request.call.tensor(0), places, "gather");
}

// index.Tensor(self, indices)
bool lower_index(const Request& request) {
  Places places;
  return places_of_indexes(request, request.call.tensor(0), &places) && read_at(request, request.call.tensor(0), places, "index");
}

// scatter.src(self, dim, index, src), scatter.value(self, dim, index, value)
bool lower_scatter(const Request& request) {
  const CallView& call = request.call;
  const bool of_tensor = call.call().overload == "src";
  Places places;
  if (!of_tensor && call.call().overload != "value") return request.refuse("reduces");
  if (!places_of_elements(request, written(request), &places) || (of_tensor ? !has_values(request, 3, places) : !call.is_number(3) && !request.refuse("no number"))) return false;
  return write_at(request, places, [&](Builder& b) { return of_tensor ? b.load_strided(call.tensor(3), call.meta(call.tensor(3)).strides) : b.number(3); }, false, "scatter");
}

// scatter_add(self, dim, index, src)
bool lower_scatter_add(const Request& request) {
  const CallView& call = request.call;
  Places places;
  if (!places_of_elements(request, written(request), &places) || !has_values(request, 3, places)) return false;
  return write_at(request, places, [&](Builder& b) { return b.load_strided(call.tensor(3), call.meta(call.tensor(3)).strides); }, true, "scatter_add");
}

// index_add(self, dim, index, source, *, alpha)
bool lower_index_add(const Request& request) {
  const CallView& call = request.call;
  Places places;
  if (!places_of_list(request, written(request), &places) || !has_values(request, 3, places)) return false;
  const bool one = call.is_constant(4) && call.real(4) == 1;
  return write_at(request, places, [&](Builder& b) { return one ? b.load_raw(call.tensor(3)) : b.op(KOp::k_mul, b.load(call.tensor(3)), b.number(4)); }, true, "index_add");
}

// index_copy(self, dim, index, source)
bool lower_index_copy(const Request& request) {
  const CallView& call = request.call;
  Places places;
  if (!places_of_list(request, written(request), &places) || !has_values(request, 3, places)) return false;
  return write_at(request, places, [&](Builder& b) { return b.load_raw(call.tensor(3)); }, false, "index_copy");
}

// index_fill.int_Scalar(self, dim, index, value)
bool lower_index_fill(const Request& request) {
  const CallView& call = request.call;
  Places places;
  if (call.call().overload != "int_Scalar" || !call.is_number(3)) return request.refuse("no number");
  if (!places_of_list(request, written(request), &places)) return false;
  places.from_the_end = true;
  return write_at(request, places, [&](Builder& b) { return b.number(3); }, false, "index_fill");
}

// index_put(self, indices, values, accumulate)
bool lower_index_put(const Request& request) {
  const CallView& call = request.call;
  const Ref values = call.tensor(2);
  Places places;
  if (call.has(3) && (!call.is_constant(3) || call.flag(3))) return request.refuse("accumulates in order");
  if (values == kNoRef && !call.is_number(2)) return request.refuse("no values");
  if (!places_of_indexes(request, written(request), &places)) return false;
  if (values != kNoRef && call.meta(values).sizes.size() > places.sizes.size()) return request.refuse("rank");
  return write_at(request, places, [&](Builder& b) { return values == kNoRef ? b.number(2) : b.load_raw(values); }, false, "index_put");
}

}  // namespace dynvm::ir
