// Lowering of reads by tensors of indexes: embedding, index_select, gather, index.
//
// On GPUs only. An index that is out of bounds raises an IndexError on CPUs; eager's kernels for GPUs assert that it is not, and so do these (within), which
// nobody can tell apart; what nobody reads is not looked for. Where eager counts negative indexes from the end, they do.
// Inputs, outputs, invariants: builder.h (Request).
// Tests: tests/ir/test_against_torch.py, tests/ir/passes/fuse/indexing*.ir; on a GPU tests/cuda/operations.py.
#include "ir/kernel/symbols.h"
#include "ir/lower/structured.h"

namespace dynvm::ir {
namespace {

// A dim of the source that a tensor of indexes walks along.
struct Indexed {
  Ref index;
  std::vector<int64_t> strides;  // of that tensor, over the space of the result
  int64_t size, stride;          // of the dim
};

bool is_empty(const TensorMeta& meta) { return std::find(meta.sizes.begin(), meta.sizes.end(), 0) != meta.sizes.end(); }

// The result's elements, each from where its indexes say; strides: of the source over the result's space, for what is not indexed.
bool read_at(const Request& request, Ref source, std::vector<int64_t> strides, const std::vector<Indexed>& indexed, bool from_the_end, std::string_view name) {
  const CallView& call = request.call;
  const Ref result = request.result(0);
  if (call.meta(source).device_type == 0) return request.refuse("an index out of bounds raises");
  for (const Indexed& each : indexed)
    if (const DType dtype = call.meta(each.index).dtype; dtype != DType::kI64 && dtype != DType::kI32) return request.refuse("a mask");
  if (result == kNoRef || is_empty(call.meta(result))) return true;
  if (is_empty(call.meta(source))) return request.refuse("nothing there");
  Builder b(call, call.meta(result).sizes);
  b.set_type(DType::kI64);
  const auto integer = [&](int64_t value) { return b.make(b.kernel().add_const_int(DType::kI64, value)); };
  Value at = integer(0);
  for (const Indexed& each : indexed) {
    Value index = b.load_strided(each.index, each.strides);
    index = b.cast(index, DType::kI64);
    if (from_the_end) index = select(index < integer(0), index + integer(each.size), index);
    const Value part = b.op(KOp::k_within, index, integer(each.size)) * integer(each.stride);
    at = &each == indexed.data() ? part : at + part;
  }
  b.store(result, b.load_at(source, std::move(strides), at, b.make(b.kernel().add_const_int(DType::kBool, 1))));
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

// The dim of the source, which is walked through by the indexes alone; its strides then.
Indexed along(const TensorMeta& source, size_t dim, Ref index, std::vector<int64_t> of_index, std::vector<int64_t>* strides) {
  *strides = source.strides;
  if (source.sizes.empty()) return {index, std::move(of_index), 1, 0};
  (*strides)[dim] = 0;
  return {index, std::move(of_index), source.sizes[dim], source.strides[dim]};
}

}  // namespace

// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
bool lower_embedding(const Request& request) {
  const CallView& call = request.call;
  const Ref weight = call.tensor(0), indices = call.tensor(1);
  if (weight == kNoRef || indices == kNoRef || call.meta(weight).sizes.size() != 2) return request.refuse("no tensor");
  const TensorMeta& rows = call.meta(weight);
  std::vector<int64_t> strides(call.meta(indices).sizes.size(), 0), of_index = call.meta(indices).strides;
  strides.push_back(rows.strides[1]);
  of_index.push_back(0);
  return read_at(request, weight, std::move(strides), {{indices, std::move(of_index), rows.sizes[0], rows.strides[0]}}, false, "embedding");
}

// index_select(self, dim, index)
bool lower_index_select(const Request& request) {
  const CallView& call = request.call;
  const Ref self = call.tensor(0), index = call.tensor(2);
  if (self == kNoRef || index == kNoRef) return request.refuse("no tensor");
  const size_t rank = call.meta(self).sizes.size();
  size_t dim;
  if (!dim_of(request, 1, rank, &dim)) return false;
  std::vector<int64_t> strides, of_index(rank, 0);
  if (rank > 0 && !call.meta(index).strides.empty()) of_index[dim] = call.meta(index).strides[0];
  const Indexed indexed = along(call.meta(self), dim, index, std::move(of_index), &strides);
  return read_at(request, self, std::move(strides), {indexed}, false, "index_select");
}

// gather(self, dim, index, sparse_grad)
bool lower_gather(const Request& request) {
  const CallView& call = request.call;
  const Ref self = call.tensor(0), index = call.tensor(2);
  if (self == kNoRef || index == kNoRef) return request.refuse("no tensor");
  if (call.meta(index).sizes.size() != call.meta(self).sizes.size()) return request.refuse("rank");
  size_t dim;
  const std::vector<int64_t>&sizes = call.meta(self).sizes, &of_index = call.meta(index).sizes;
  if (!dim_of(request, 1, sizes.size(), &dim)) return false;
  for (size_t d = 0; d < sizes.size(); ++d)  // the index may be shorter, which other sizes need not be
    if (d != dim && sizes[d] != of_index[d] && (is_symbolic(sizes[d], call.trace().symbols) || is_symbolic(of_index[d], call.trace().symbols))) return request.refuse("sizes that a run decides");
  std::vector<int64_t> strides;
  const Indexed indexed = along(call.meta(self), dim, index, call.meta(index).strides, &strides);
  return read_at(request, self, std::move(strides), {indexed}, false, "gather");
}

// index.Tensor(self, indices): the dims of the indexes, broadcast, stand where the indexed dims stood if these are neighbours, else in front.
bool lower_index(const Request& request) {
  const CallView& call = request.call;
  const Ref self = call.tensor(0), result = request.result(0);
  if (self == kNoRef || call.arg(1).kind != AtenArg::kTensorList) return request.refuse("no tensors");
  const TensorMeta& source = call.meta(self);
  const std::vector<int32_t>& list = call.arg(1).operands;
  std::vector<size_t> dims;  // that are indexed
  size_t rank = 0;           // of the indexes together
  for (size_t d = 0; d < list.size(); ++d) {
    if (list[d] < 0) continue;
    dims.push_back(d);
    rank = std::max(rank, call.meta(call.trace().arg(call.inst(), static_cast<uint32_t>(list[d]))).sizes.size());
  }
  if (dims.empty() || list.size() > source.sizes.size()) return request.refuse("no indexes");
  if (result == kNoRef) return true;
  const std::vector<int64_t>& sizes = call.meta(result).sizes;
  if (sizes.size() != source.sizes.size() - dims.size() + rank) return request.refuse("rank");
  const size_t front = dims.back() - dims.front() + 1 == dims.size() ? dims.front() : 0;
  std::vector<int64_t> strides(sizes.size(), 0);
  std::vector<Indexed> indexed;
  size_t to = 0;
  for (size_t d = 0; d < source.sizes.size(); ++d) {
    if (to == front) to += rank;
    if (d < list.size() && list[d] >= 0) {
      const Ref index = call.trace().arg(call.inst(), static_cast<uint32_t>(list[d]));
      const TensorMeta& meta = call.meta(index);
      std::vector<int64_t> of_index(sizes.size(), 0);
      for (size_t k = 0; k < meta.sizes.size(); ++k)
        if (meta.sizes[k] != 1) of_index[front + rank - meta.sizes.size() + k] = meta.strides[k];
      indexed.push_back({index, std::move(of_index), source.sizes[d], source.strides[d]});
    } else {
      strides[to++] = source.strides[d];
    }
  }
  return read_at(request, self, std::move(strides), indexed, true, "index");
}

}  // namespace dynvm::ir
