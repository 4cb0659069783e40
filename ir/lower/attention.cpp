// Lowering of attention: one kernel for scores, softmax and the product with the values (kernel.h).
//
// Only on GPUs, f32, without what a backward pass needs: there the library's kernel for f32 has blocks of 64 queries, too few for short sequences, and
// each waits for one long chain of products. The other types and training stay the library's.
// Tests: tests/cuda/source_test.cpp, tests/ir/test_against_torch.py; on a GPU tests/cuda/test_gpu.py.
#include <cmath>

#include "ir/kernel/symbols.h"
#include "ir/lower/structured.h"
#include "runtime/base/heuristics.h"

namespace dynvm::ir {

// (query, key, value, attn_bias, compute_log_sumexp, dropout_p, is_causal, *, scale): [B, H, M, D], [B, H, N, D], [B, H, N, D] and [B, H, M, N] to [B, H, M, D].
bool lower_attention(const Request& request) {
  const CallView& call = request.call;
  const Ref q = call.tensor(0), k = call.tensor(1), v = call.tensor(2), bias = call.tensor(3), out = request.result(0);
  if (q == kNoRef || k == kNoRef || v == kNoRef) return request.refuse("no tensor");
  const std::vector<int64_t>& sizes = call.meta(q).sizes;
  const std::vector<int64_t>& key_sizes = call.meta(k).sizes;
  if (call.meta(q).device_type == 0 || call.meta(q).dtype != DType::kF32 || sizes.size() != 4 || key_sizes.size() != 4) return request.refuse("not on a GPU, or not f32");
  for (size_t argument : {4, 5, 6})
    if (!call.is_constant(argument)) return request.refuse("dropout or a mask that changes");
  if (call.integer(4) != 0 || call.real(5) != 0) return request.refuse("for a backward pass");
  for (size_t other = 1; other < 4; ++other)
    if (request.result(other) != kNoRef) return request.refuse("for a backward pass");
  if (call.has(7) && !call.is_constant(7)) return request.refuse("a scale that changes");
  const int64_t dims = sizes[3], longest = base::heuristics().cuda_attention;
  if (dims != call.meta(v).sizes[3] || dims % 8 != 0 || dims > longest) return request.refuse("head size");
  for (Ref each : {q, k, v})
    if (call.meta(each).strides[3] != 1) return request.refuse("strided heads");
  if (out == kNoRef) return true;
  if (call.meta(out).strides[3] != 1) return request.refuse("strided heads");
  if (bias != kNoRef && (call.meta(bias).dtype != DType::kF32 || call.meta(bias).sizes.size() != 4)) return request.refuse("bias");
  // Blocks are counted in two directions, and only one may have a symbol.
  const std::vector<int64_t>& symbols = call.trace().symbols;
  if (is_symbolic(sizes[2], symbols) && is_symbolic(sizes[0] * sizes[1], symbols)) return request.refuse("two open sizes");
  for (size_t at = 0; at < 4; ++at)
    if (sizes[at] == 0 || key_sizes[at] == 0) return request.refuse("nothing there");

  Builder b(call, {sizes[0], sizes[1], sizes[2], key_sizes[2], dims});
  b.reduce(1u << 3);
  const auto rows = [&](Ref tensor, bool keys) {
    const std::vector<int64_t>& s = call.meta(tensor).strides;
    return std::vector<int64_t>{s[0], s[1], keys ? 0 : s[2], keys ? s[2] : 0, 1};
  };
  const double scale = call.has(7) ? call.real(7) : 1 / std::sqrt(static_cast<double>(dims));
  Value score = b.op(KOp::k_dot, b.load_strided(q, rows(q, false)), b.load_strided(k, rows(k, true))) * b.constant(scale);
  if (bias != kNoRef) {
    const TensorMeta& meta = call.meta(bias);
    std::vector<int64_t> strides(5, 0);
    for (size_t at = 0; at < 4; ++at)
      if (meta.sizes[at] != 1) strides[at] = meta.strides[at];
    score = b.op(KOp::k_add, score, b.load_strided(bias, strides));
  }
  if (call.integer(6) != 0) score = select(b.index(3) <= b.index(2), score, b.constant(-INFINITY));
  b.store_strided(out, rows(out, false), b.op(KOp::k_reduce_attend, score, b.load_strided(v, rows(v, true))));
  request.out->push_back(b.finish("attention"));
  return true;
}

}  // namespace dynvm::ir
