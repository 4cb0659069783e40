// See attention.h.
#include "codegen/cuda/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/cuda/expressions.h"
#include "codegen/cuda/parameter.h"
#include "ir/kernel/symbols.h"

namespace dynvm::codegen::cuda {
namespace {

using ir::KernelNode;
using ir::KernelOperand;
using ir::KOp;
using std::string;

// Fragments of mma.m16n8k8: lane 4 g + t has A's rows g and g + 8 at t and t + 4, B's column g at t and t + 4, and of C the rows g and g + 8 at columns 2 t and 2 t + 1.
// Here element t of a step of a head's 8 elements is 2 t, and t + 4 is 2 t + 1; of 8 keys the same, which makes C of the scores A of the weights; column g of
// the n-th tile of values is element g P + n, of P = D / 8 tiles.
constexpr std::string_view kBody = R"cuda(
#ifndef DYNVM_ATTENTION
#define DYNVM_ATTENTION
#ifndef DYNVM_HOST
__device__ __forceinline__ unsigned tf32(float x) { unsigned y; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x)); return y; }
__device__ __forceinline__ void mma_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif
__device__ __forceinline__ void split_tf32(float x, unsigned& high, unsigned& low) {
  high = tf32(x);
  low = tf32(x - __int_as_float((int)high));
}
template <int N, int C> __device__ __forceinline__ void load_all(float (&to)[N], const float* from) {
  _Pragma("unroll") for (int n = 0; n < N; n += C) *(Vec<float, C>*)(to + n) = *(const Vec<float, C>*)(from + n);
}
// first: the block's first query. score(m, n, x): of query m and key n, whose product is x. CAUSAL: a key behind the query has no weight. AHEAD: the next keys are loaded
// before these are used.
template <int D, int W, bool CAUSAL, bool AHEAD, bool VECTORS, class I, class Score>
__device__ __forceinline__ void attend(const float* q, I q_row, const float* k, I k_row, const float* v, I v_row, float* out, I out_row, I queries, I keys, I first, Score score) {
  constexpr int P = D / 8, Pair = VECTORS ? 2 : 1, C = !VECTORS ? 1 : P % 4 == 0 ? 4 : P % 2 == 0 ? 2 : 1;
  constexpr float kLog2e = 1.44269504f;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  float query[P][4];
  _Pragma("unroll") for (int half = 0; half < 2; ++half) {
    const I m = first + g + 8 * half;
    const float* const row = q + (m < queries ? m : queries - 1) * q_row + 2 * t;
    _Pragma("unroll") for (int s = 0; s < P; ++s) {
      float x[2];
      load_all<2, Pair>(x, row + 8 * s);
      query[s][half] = x[0];
      query[s][2 + half] = x[1];
    }
  }
  float sums[P][4], top[2] = {-1e30f, -1e30f}, weights[2] = {0.0f, 0.0f};
  _Pragma("unroll") for (int n = 0; n < P; ++n) _Pragma("unroll") for (int e = 0; e < 4; ++e) sums[n][e] = 0.0f;
  float ahead[2][P][2], key[2][P][2];
  const auto fetch = [&](I n0) {
    _Pragma("unroll") for (int j = 0; j < 2; ++j) {
      const I n = n0 + 8 * j + g;
      const float* const row = k + (n < keys ? n : keys - 1) * k_row + 2 * t;
      _Pragma("unroll") for (int s = 0; s < P; ++s) load_all<2, Pair>(ahead[j][s], row + 8 * s);
    }
  };
  const I end = CAUSAL && first + 16 < keys ? first + 16 : keys;
  if (AHEAD) fetch(warp * 16);
  // As often for each warp, since they meet at the end.
  for (I round = 0; round < end; round += W * 16) {
    const I n0 = round + warp * 16;
    if (!AHEAD) fetch(n0);
    _Pragma("unroll") for (int j = 0; j < 2; ++j) _Pragma("unroll") for (int s = 0; s < P; ++s) key[j][s][0] = ahead[j][s][0], key[j][s][1] = ahead[j][s][1];
    if (AHEAD && round + W * 16 < end) fetch(n0 + W * 16);
    float scores[2][4];
    _Pragma("unroll") for (int j = 0; j < 2; ++j) {
      float part[3][4];
      _Pragma("unroll") for (int e = 0; e < 4; ++e) part[0][e] = part[1][e] = part[2][e] = 0.0f;
      _Pragma("unroll") for (int s = 0; s < P; ++s) {
        unsigned high[4], low[4], b[2], c[2];
        _Pragma("unroll") for (int e = 0; e < 4; ++e) split_tf32(query[s][e], high[e], low[e]);
        _Pragma("unroll") for (int e = 0; e < 2; ++e) split_tf32(key[j][s][e], b[e], c[e]);
        mma_tf32(part[1], low, b[0], b[1]);
        mma_tf32(part[2], high, c[0], c[1]);
        mma_tf32(part[0], high, b[0], b[1]);
      }
      _Pragma("unroll") for (int e = 0; e < 4; ++e) scores[j][e] = part[0][e] + (part[1][e] + part[2][e]);
    }
    unsigned high[2][4], low[2][4];
    _Pragma("unroll") for (int half = 0; half < 2; ++half) {
      const I m = first + g + 8 * half < queries ? first + g + 8 * half : queries - 1;
      float largest = top[half];
      _Pragma("unroll") for (int j = 0; j < 2; ++j) _Pragma("unroll") for (int e = 0; e < 2; ++e) {
        const I n = n0 + 8 * j + 2 * t + e;
        float& x = scores[j][2 * half + e];
        x = n < keys ? score(m, n, x) * kLog2e : __int_as_float((int)0xff800000);
        largest = fmaxf(largest, x);
      }
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
      const float factor = ex2_ftz(top[half] - largest);
      top[half] = largest;
      weights[half] *= factor;
      _Pragma("unroll") for (int n = 0; n < P; ++n) sums[n][2 * half] *= factor, sums[n][2 * half + 1] *= factor;
      _Pragma("unroll") for (int j = 0; j < 2; ++j) _Pragma("unroll") for (int e = 0; e < 2; ++e) {
        const float weight = ex2_ftz(scores[j][2 * half + e] - largest);
        weights[half] += weight;
        split_tf32(weight, high[j][half + 2 * e], low[j][half + 2 * e]);
      }
    }
    _Pragma("unroll") for (int j = 0; j < 2; ++j) {
      float x[2][P];
      _Pragma("unroll") for (int e = 0; e < 2; ++e) {
        const I n = n0 + 8 * j + 2 * t + e;
        load_all<P, C>(x[e], v + (n < keys ? n : keys - 1) * v_row + g * P);
      }
      _Pragma("unroll") for (int n = 0; n < P; ++n) {
        unsigned b[2], c[2];
        _Pragma("unroll") for (int e = 0; e < 2; ++e) split_tf32(x[e][n], b[e], c[e]);
        mma_tf32(sums[n], low[j], b[0], b[1]);
        mma_tf32(sums[n], high[j], c[0], c[1]);
        mma_tf32(sums[n], high[j], b[0], b[1]);
      }
    }
  }
  __shared__ float parts[W][16][D + 4], tops[W][16], totals[W][16];
  _Pragma("unroll") for (int half = 0; half < 2; ++half) {
    const int m = g + 8 * half;
    float total = weights[half] + __shfl_xor_sync(~0u, weights[half], 1);
    total += __shfl_xor_sync(~0u, total, 2);
    if (t == 0) tops[warp][m] = top[half], totals[warp][m] = total;
    _Pragma("unroll") for (int n = 0; n < P; ++n) _Pragma("unroll") for (int e = 0; e < 2; ++e) parts[warp][m][(2 * t + e) * P + n] = sums[n][2 * half + e];
  }
  __syncthreads();
  constexpr int V = VECTORS ? 4 : 1;
  for (int at = threadIdx.x; at < 16 * D / V; at += W * 32) {
    const int m = at / (D / V), d = at % (D / V) * V;
    if (first + m >= queries) continue;
    float largest = tops[0][m], total = 0.0f;
    _Pragma("unroll") for (int w = 1; w < W; ++w) largest = fmaxf(largest, tops[w][m]);
    Vec<float, V> sum;
    _Pragma("unroll") for (int e = 0; e < V; ++e) sum.v[e] = 0.0f;
    _Pragma("unroll") for (int w = 0; w < W; ++w) {
      const float factor = ex2_ftz(tops[w][m] - largest);
      total += totals[w][m] * factor;
      _Pragma("unroll") for (int e = 0; e < V; ++e) sum.v[e] += parts[w][m][d + e] * factor;
    }
    const float by = total == 0.0f ? 0.0f : 1.0f / total;
    _Pragma("unroll") for (int e = 0; e < V; ++e) sum.v[e] *= by;
    *(Vec<float, V>*)(out + (first + m) * out_row + d) = sum;
  }
}
#endif
)cuda";

constexpr int kQueries = 16, kWarps = 4, kManyWarps = 8;  // of a block; many, where there are fewer blocks than multiprocessors

class Attention {
 public:
  Attention(const ir::Kernel& kernel, const RenderOptions& options, Source* out) : kernel_(kernel), options_(options), out_(*out), parameter_(kernel, options, out) {}

  base::Status run(const string& name) {
    out_.name = name;
    if (const char* why = find(); why != nullptr) return base::Status::failure("kernel " + kernel_.name + ": attention " + why);
    if (!ir::has_symbols(kernel_) && kernel_.num_points() == 0) return {};
    for (const KernelOperand& operand : kernel_.operands) parameter_.use_pointer(operand.pointer);
    vectors_ = options_.vector_bytes >= 16 && std::all_of(std::begin(rows_), std::end(rows_), [&](int32_t o) { return is_aligned(kernel_.operands[static_cast<size_t>(o)]); });
    if (vectors_) out_.alignment = 16;

    // Blocks: queries by 16 in one direction, all else in the other.
    const int64_t queries = query_dim_ < 0 ? 1 : size(query_dim_);
    int64_t others = 1;
    for (size_t k = 0; k < kernel_.sizes.size(); ++k)
      if (is_other(k)) others *= kernel_.sizes[k];
    const bool open_queries = parameter_.symbolic(queries), open_others = parameter_.symbolic(others);
    if (open_queries && open_others) return base::Status::failure("kernel " + kernel_.name + ": attention with two open sizes of blocks");
    const int64_t tiles = open_queries ? 1 : (queries + kQueries - 1) / kQueries;
    // In the second direction there can be few.
    const bool queries_second = open_others || (!open_queries && others > tiles);
    if (open_queries || open_others) out_.points = open_queries ? queries : others;
    out_.per_block = open_queries ? kQueries : 1;
    out_.grid_x = open_queries || open_others ? 1 : static_cast<uint32_t>(queries_second ? others : tiles);
    out_.grid_y = static_cast<uint32_t>(queries_second ? tiles : others);
    if (out_.grid_y > 65535) return base::Status::failure("kernel " + kernel_.name + ": attention of too many blocks");
    const int warps = !open_queries && !open_others && tiles * others <= options_.multiprocessors ? kManyWarps : kWarps;
    out_.block = static_cast<uint32_t>(warps * 32);

    line("typedef {} I;", parameter_.index_type());
    line("I rest = blockIdx.{};", queries_second ? "x" : "y");
    for (size_t k = kernel_.sizes.size(); k-- > 0;) {
      if (!is_other(k)) continue;
      line("const I k{} = rest % {};", k, parameter_.number(size(static_cast<int>(k))));
      line("rest /= {};", parameter_.number(size(static_cast<int>(k))));
    }
    const string n = parameter_.number(size(key_dim_)), m = parameter_.number(queries);
    line("const auto score = [&](I m, I n, float x) {{");
    const string result = score();
    line("  return {};", result);
    line("}};");
    string call;
    const int dims[] = {query_dim_, key_dim_, key_dim_, query_dim_};
    for (int k = 0; k < 4; ++k) {
      const KernelOperand& operand = kernel_.operands[static_cast<size_t>(rows_[k])];
      call += fmt::format("({}float*){}{}, (I){}, ", k < 3 ? "const " : "", parameter_.pointer(operand.pointer), place(operand),
                          dims[k] < 0 ? "0" : parameter_.number(operand.strides[static_cast<size_t>(dims[k])]));
    }
    line("attend<{}, {}, {}, {}, {}>({}(I){}, (I){}, (I)blockIdx.{} * {}, score);", kernel_.sizes.back(), warps, causal_, warps == kWarps, vectors_, call, m, n,
         queries_second ? "y" : "x", kQueries);
    out_.text = string(kBody) + parameter_.function(text_);
    return {};
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += "  " + fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  int64_t size(int dim) const { return kernel_.sizes[static_cast<size_t>(dim)]; }
  const KernelNode& node(int32_t n) const { return kernel_.nodes[static_cast<size_t>(n)]; }
  bool is_other(size_t dim) const { return static_cast<int>(dim) != query_dim_ && static_cast<int>(dim) != key_dim_ && dim + 1 != kernel_.sizes.size(); }

  // The parts of the kernel; null, or why it is not as it has to be.
  const char* find() {
    const size_t last = kernel_.sizes.size() - 1;
    if (kernel_.sizes.size() < 2 || std::popcount(kernel_.reduce_dims) != 1) return "reduces more than one dim";
    key_dim_ = std::countr_zero(kernel_.reduce_dims);
    if (parameter_.symbolic(kernel_.sizes[last]) || kernel_.sizes[last] % 8 != 0 || kernel_.sizes[last] == 0) return "has another head size than 8 n";
    if (kernel_.stores.size() != 1 || node(kernel_.stores[0].node).op != KOp::k_reduce_attend) return "has more than one result";
    const KernelNode& attend = node(kernel_.stores[0].node);
    score_ = attend.a;
    for (size_t n = 0; n < kernel_.nodes.size(); ++n)
      if (kernel_.nodes[n].op == KOp::k_dot) {
        if (dot_ >= 0) return "has two products";
        dot_ = static_cast<int32_t>(n);
      }
    if (dot_ < 0) return "has no product";
    const int32_t loads[] = {node(dot_).a, node(dot_).b, attend.b};
    for (int k = 0; k < 3; ++k) {
      if (node(loads[k]).op != KOp::k_load || node(loads[k]).dtype != ir::DType::kF32) return "is not of f32 from memory";
      rows_[k] = node(loads[k]).operand;
    }
    rows_[3] = kernel_.stores[0].operand;
    const auto stride = [&](int k, int dim) { return kernel_.operands[static_cast<size_t>(rows_[k])].strides[static_cast<size_t>(dim)]; };
    for (int k = 0; k < 4; ++k)
      if (stride(k, static_cast<int>(last)) != 1) return "has heads with gaps";
    if (stride(0, key_dim_) != 0 || stride(3, key_dim_) != 0) return "has keys that differ in queries";
    // Queries: the dim in front of the keys', if keys and values are the same along it.
    if (key_dim_ > 0 && stride(1, key_dim_ - 1) == 0 && stride(2, key_dim_ - 1) == 0) query_dim_ = key_dim_ - 1;
    const KernelNode& top = node(score_);
    if (top.op == KOp::k_where && node(top.a).op == KOp::k_le && node(top.c).op == KOp::k_const && node(top.c).f == -INFINITY) {
      const KernelNode &a = node(node(top.a).a), &b = node(node(top.a).b);
      causal_ = query_dim_ >= 0 && a.op == KOp::k_index && a.i == key_dim_ && b.op == KOp::k_index && b.i == query_dim_;
    }
    return nullptr;
  }

  bool is_aligned(const KernelOperand& operand) const {
    bool aligned = operand.offset % 4 == 0;
    for (size_t k = 0; k + 1 < kernel_.sizes.size(); ++k) aligned = aligned && (kernel_.sizes[k] == 1 || operand.strides[k] % 4 == 0);
    return aligned;
  }

  // " + ...": its offset, and where the block's other dims put it.
  string place(const KernelOperand& operand) const {
    string text = operand.offset != 0 ? " + " + parameter_.number(operand.offset) : "";
    for (size_t k = 0; k < kernel_.sizes.size(); ++k)
      if (is_other(k) && operand.strides[k] != 0) text += fmt::format(" + k{} * (I){}", k, parameter_.number(operand.strides[k]));
    return text;
  }

  // Declares what the score is made of, for the pair (m, n); gives its name.
  string score() {
    std::vector<bool> wanted(kernel_.nodes.size(), false);
    wanted[static_cast<size_t>(score_)] = true;
    for (auto k = static_cast<size_t>(score_) + 1; k-- > 0;) {
      const KernelNode& each = kernel_.nodes[k];
      if (!wanted[k] || each.op == KOp::k_dot) continue;
      for (int32_t operand : {each.a, each.b, each.c})
        if (operand >= 0) wanted[static_cast<size_t>(operand)] = true;
    }
    const auto name = [](int32_t n) { return n < 0 ? string() : fmt::format("n{}", n); };
    for (size_t k = 0; k < kernel_.nodes.size(); ++k) {
      const KernelNode& each = kernel_.nodes[k];
      if (!wanted[k]) continue;
      string text;
      switch (each.op) {
        case KOp::k_dot: text = "x"; break;
        case KOp::k_const: text = constant(each); break;
        case KOp::k_scalar: text = scalar(kernel_, each, fmt::format("p.scalar[{}]", each.i)); break;
        case KOp::k_index: text = each.i == key_dim_ ? "(i64)n" : each.i == query_dim_ ? "(i64)m" : fmt::format("(i64)k{}", each.i); break;
        case KOp::k_load: {
          const KernelOperand& operand = kernel_.operands[static_cast<size_t>(each.operand)];
          string at = place(operand);
          if (query_dim_ >= 0 && operand.strides[static_cast<size_t>(query_dim_)] != 0) at += " + m * (I)" + parameter_.number(operand.strides[static_cast<size_t>(query_dim_)]);
          if (operand.strides[static_cast<size_t>(key_dim_)] != 0) at += " + n * (I)" + parameter_.number(operand.strides[static_cast<size_t>(key_dim_)]);
          text = from_memory(operand.dtype, fmt::format("*(({} const*){}{})", memory_type(operand.dtype), parameter_.pointer(operand.pointer), at));
          break;
        }
        default: text = expression(each, node(each.a).dtype, name(each.a), name(each.b), name(each.c));
      }
      line("  const {} n{} = {};", value_type(each.dtype), k, text);
    }
    return name(score_);
  }

  const ir::Kernel& kernel_;
  const RenderOptions& options_;
  Source& out_;
  Parameter parameter_;
  int key_dim_ = -1, query_dim_ = -1;
  int32_t score_ = -1, dot_ = -1;
  int32_t rows_[4] = {};  // operands: queries, keys, values, results
  bool causal_ = false, vectors_ = false;
  string text_;
};

}  // namespace

base::Status render_attention(const ir::Kernel& kernel, const string& name, const RenderOptions& options, Source* out) { return Attention(kernel, options, out).run(name); }

}  // namespace dynvm::codegen::cuda
