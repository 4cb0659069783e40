// Orders and merges the dims of a kernel and chooses the vector dim. See nest.h. Tests: tests/kernel/compile_test.cpp.
#include "codegen/x86/kernel/nest.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace dynvm::codegen {

namespace {

using ir::DType;
using ir::Kernel;
using ir::KernelNode;
using ir::KOp;

class NestMaker {
 public:
  NestMaker(const Kernel& kernel, int vector_bytes) : kernel_(kernel) { nest_.vector_bytes = vector_bytes; }

  Nest make(bool split) {
    find_needed();
    choose_lanes();
    collect_dims();
    if (nest_.no_kept_points) return std::move(nest_);
    order();
    merge();
    choose_vector_dim();
    block_transposed();
    finish(split);
    return std::move(nest_);
  }

 private:
  void find_needed() {
    nest_.needed.assign(kernel_.nodes.size(), false);
    used_.assign(kernel_.operands.size(), 0);
    for (const ir::KernelStore& store : kernel_.stores) nest_.needed[store.node] = true, used_[store.operand] = 2;
    for (size_t n = kernel_.nodes.size(); n-- > 0;) {
      if (!nest_.needed[n]) continue;
      const KernelNode& node = kernel_.nodes[n];
      for (int32_t a : {node.a, node.b, node.c})
        if (a >= 0) nest_.needed[a] = true;
      if (node.op == KOp::k_load) used_[node.operand] = std::max(used_[node.operand], 1);
      if (ir::is_arg_reduce(node.op)) ordered_reduction_ = true;
      if (node.op == KOp::k_index) index_dims_ |= 1u << node.i;
    }
  }

  void choose_lanes() {
    int widest = 4;
    for (size_t n = 0; n < kernel_.nodes.size(); ++n)
      if (nest_.needed[n]) widest = std::max(widest, ir::dtype_size(kernel_.nodes[n].dtype));
    nest_.lanes = nest_.vector_bytes / widest;
  }

  void collect_dims() {
    for (size_t k = 0; k < kernel_.sizes.size(); ++k) {
      bool reduced = kernel_.reduce_dims >> k & 1;
      if (kernel_.sizes[k] == 0) (reduced ? nest_.no_reduced_points : nest_.no_kept_points) = true;
      if (kernel_.sizes[k] == 1) continue;
      NestDim dim{kernel_.sizes[k], reduced, {}, {static_cast<int32_t>(k)}};
      for (const ir::KernelOperand& operand : kernel_.operands) dim.strides.push_back(operand.strides[k]);
      nest_.dims.push_back(std::move(dim));
    }
  }

  // Bytes that one step along the dim moves, over all accesses; beyond a page all steps are equally bad.
  double step_cost(const NestDim& dim) const {
    double cost = 0;
    for (size_t o = 0; o < kernel_.operands.size(); ++o)
      cost += used_[o] * static_cast<double>(std::min<int64_t>(std::llabs(dim.strides[o]) * ir::dtype_size(kernel_.operands[o].dtype), 4096));
    return cost;
  }

  void order() {
    std::stable_sort(nest_.dims.begin(), nest_.dims.end(), [this](const NestDim& x, const NestDim& y) {
      if (x.reduced != y.reduced) return y.reduced;
      if (x.reduced && ordered_reduction_) return false;
      return step_cost(x) > step_cost(y);
    });
  }

  bool mergeable(const NestDim& outer, const NestDim& inner) const {
    if (outer.reduced != inner.reduced) return false;
    for (int32_t k : outer.sources)
      if (index_dims_ >> k & 1) return false;
    for (int32_t k : inner.sources)
      if (index_dims_ >> k & 1) return false;
    for (size_t o = 0; o < kernel_.operands.size(); ++o)
      if (used_[o] && outer.strides[o] != inner.strides[o] * inner.size) return false;
    return true;
  }

  void merge() {
    for (size_t i = nest_.dims.size(); i-- > 1;) {
      NestDim& outer = nest_.dims[i - 1];
      NestDim& inner = nest_.dims[i];
      if (!mergeable(outer, inner)) continue;
      inner.size *= outer.size;
      inner.sources.insert(inner.sources.begin(), outer.sources.begin(), outer.sources.end());
      nest_.dims.erase(nest_.dims.begin() + static_cast<ptrdiff_t>(i) - 1);
    }
  }

  // Estimated cost of one point when this dim is the vector dim.
  double vector_cost(const NestDim& dim) const {
    double lanes = nest_.lanes, cost = 2 / lanes;
    for (size_t o = 0; o < kernel_.operands.size(); ++o) {
      int64_t stride = std::llabs(dim.strides[o]);
      cost += used_[o] * (stride == 0 ? 0.2 / lanes : dim.strides[o] == 1 ? 1 / lanes : stride < 16 ? 1.2 : 2.0);
    }
    double size = static_cast<double>(dim.size);
    cost *= static_cast<double>((dim.size + nest_.lanes - 1) / nest_.lanes) * lanes / size;
    if (dim.reduced) cost += 20 / size;  // combining the lanes
    if (dim.size % nest_.lanes) cost += 6 / size;
    return cost;
  }

  void choose_vector_dim() {
    int best = -1;
    double best_cost = 0;
    for (size_t i = 0; i < nest_.dims.size(); ++i) {
      if (nest_.dims[i].size == 0) continue;
      // An argument's position is counted along the last reduced dim; any other order of its loops would need a sort of ties.
      if (nest_.dims[i].reduced && ordered_reduction_ && i + 1 != nest_.dims.size()) continue;
      double cost = vector_cost(nest_.dims[i]);
      if (best < 0 || cost <= best_cost) best = static_cast<int>(i), best_cost = cost;
    }
    for (const NestDim& dim : nest_.dims) nest_.num_kept += !dim.reduced;
    if (best < 0) return;
    int last = nest_.dims[best].reduced ? static_cast<int>(nest_.dims.size()) - 1 : nest_.num_kept - 1;
    std::rotate(nest_.dims.begin() + best, nest_.dims.begin() + best + 1, nest_.dims.begin() + last + 1);
    nest_.vector_dim = last;
  }

  // Moves the dim along which a transposed operand is contiguous, or a stretch of it, into the vector loop.
  void block_transposed() {
    int v = nest_.vector_dim;
    if (v < 0 || v >= nest_.num_kept || nest_.num_kept != static_cast<int>(nest_.dims.size()) || nest_.dims[v].size < nest_.lanes) return;
    int along = -1;
    for (size_t o = 0; o < kernel_.operands.size(); ++o) {
      if (!used_[o] || std::llabs(nest_.dims[v].strides[o]) < 8) continue;
      for (int d = 0; d < nest_.num_kept; ++d)
        if (d != v && nest_.dims[d].strides[o] == 1 && nest_.dims[d].size >= 8) along = d;
    }
    if (along < 0) return;
    NestDim inner = nest_.dims[along];
    bool indexed = false;
    for (int32_t k : inner.sources) indexed |= index_dims_ >> k & 1;
    int64_t stretch = 0;
    for (int64_t candidate : {32, 16, 24, 8, 64})
      if (!indexed && !stretch && inner.size > candidate && inner.size % candidate == 0) stretch = candidate;
    if (stretch) {
      NestDim& outer = nest_.dims[along];
      outer.size /= stretch;
      for (int64_t& stride : outer.strides) stride *= stretch;
      inner.size = stretch;
      nest_.dims.push_back(std::move(inner));
      ++nest_.num_kept;
    } else {
      nest_.dims.erase(nest_.dims.begin() + along);
      nest_.dims.push_back(std::move(inner));
      if (along < v) --nest_.vector_dim;
    }
  }

  void finish(bool split) {
    nest_.dim_of.assign(kernel_.sizes.size(), -1);
    for (size_t i = 0; i < nest_.dims.size(); ++i)
      for (int32_t source : nest_.dims[i].sources) nest_.dim_of[source] = static_cast<int32_t>(i);
    for (uint32_t mask : ir::node_dims(kernel_)) {
      uint32_t nest_mask = 0;
      for (size_t k = 0; k < kernel_.sizes.size(); ++k)
        for (size_t i = 0; mask >> k & 1 && i < nest_.dims.size(); ++i)
          if (std::count(nest_.dims[i].sources.begin(), nest_.dims[i].sources.end(), static_cast<int32_t>(k))) nest_mask |= 1u << i;
      nest_.node_dims.push_back(nest_mask);
    }
    if (!split || nest_.num_kept == 0) return;
    nest_.split_dim = 0;
    int v = nest_.vector_dim;
    if (v >= 0 && v < nest_.num_kept && nest_.dims[0].size < 16 && nest_.dims[v].size / 64 > nest_.dims[0].size) nest_.split_dim = v;
  }

  const Kernel& kernel_;
  Nest nest_;
  std::vector<int> used_;  // per operand: 0 unused, 1 loaded, 2 stored
  bool ordered_reduction_ = false;
  uint32_t index_dims_ = 0;
};

}  // namespace

Nest make_nest(const ir::Kernel& kernel, int vector_bytes, bool split) { return NestMaker(kernel, vector_bytes).make(split); }

}  // namespace dynvm::codegen
