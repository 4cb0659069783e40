// Lowering of matrix products that are sums of products of one row: a token of a decoding loop, a batch of one.
//
// Only on GPUs: such a product is limited by reading the matrix once, which a reduction does as fast as the library, at a third of the host's time for a
// call; and what follows joins it. Computed in f32, also where TF32 would be allowed.
// Tests: tests/ir/test_against_torch.py; on a GPU tests/cuda/test_gpu.py.
#include "ir/lower/structured.h"

namespace dynvm::ir {
namespace {

// a b for a [1, K] and b [K, N], out [1, N]; with a start beta start + alpha a b, as of addmm.
bool one_row(const Request& request, Ref a, Ref b, Ref start, std::string_view name) {
  const CallView& call = request.call;
  const Ref out = request.result(0);
  if (a == kNoRef || b == kNoRef) return request.refuse("no tensor");
  const TensorMeta &left = call.meta(a), &right = call.meta(b);
  if (left.device_type == 0 || left.sizes.size() != 2 || left.sizes[0] != 1) return request.refuse("not one row on a GPU");
  if (!is_floating(left.dtype) || left.dtype != right.dtype || left.sizes[1] == 0 || right.sizes[1] == 0) return request.refuse("dtype, or nothing there");
  if (out == kNoRef) return true;
  Builder builder(call, {1, right.sizes[1], left.sizes[1]});
  builder.set_type(left.dtype);
  builder.reduce(4);
  const auto load = [&](Ref tensor, std::vector<int64_t> strides) { return builder.cast(builder.load_strided(tensor, std::move(strides)), builder.type()); };
  Value product = sum(load(a, {0, 0, left.strides[1]}) * load(b, {0, right.strides[1], right.strides[0]}));
  if (start != kNoRef) {
    const TensorMeta& meta = call.meta(start);
    if (meta.sizes.empty() || meta.sizes.size() > 2 || meta.dtype != left.dtype) return request.refuse("what it starts from");
    const int64_t stride = meta.sizes.back() == 1 ? 0 : meta.strides.back();
    const Value begin = load(start, {0, stride, 0}) * builder.number(3), scaled = product * builder.number(4);
    product = builder.op(KOp::k_add, scaled, begin);
  }
  builder.store_strided(out, {0, call.meta(out).strides[1], 0}, product);
  request.out->push_back(builder.finish(name));
  return true;
}

}  // namespace

bool lower_mm(const Request& request) { return one_row(request, request.call.tensor(0), request.call.tensor(1), kNoRef, "mm"); }
// addmm(self, mat1, mat2, *, beta, alpha)
bool lower_addmm(const Request& request) {
  const CallView& call = request.call;
  if (call.tensor(0) == kNoRef || !call.is_constant(3) || !call.is_constant(4) || call.real(3) == 0) return request.refuse("numbers");
  return one_row(request, call.tensor(1), call.tensor(2), call.tensor(0), "addmm");
}

}  // namespace dynvm::ir
