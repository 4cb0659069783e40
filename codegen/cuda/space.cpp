// See space.h.
#include "codegen/cuda/space.h"

#include <algorithm>
#include <cstdlib>

namespace dynvm::codegen::cuda {
namespace {

// Should a go outside of b?
bool outside(const ir::Kernel& kernel, const Space& space, const std::vector<int64_t>& weights, const Dim& a, const Dim& b) {
  int64_t votes = 0;
  for (size_t o = 0; o < kernel.operands.size(); ++o) {
    if (!space.used[o] || a.strides[o] == 0 || b.strides[o] == 0) continue;
    const int64_t x = std::abs(a.strides[o]), y = std::abs(b.strides[o]);
    votes += x > y ? weights[o] : x < y ? -weights[o] : 0;
  }
  return votes > 0;
}

void order_and_merge(const ir::Kernel& kernel, const Space& space, const std::vector<int64_t>& weights, std::vector<Dim>* dims) {
  // Insertion keeps the kernel's order where nobody votes.
  std::vector<Dim> ordered;
  for (Dim& dim : *dims) {
    auto at = ordered.end();
    while (at != ordered.begin() && outside(kernel, space, weights, dim, *std::prev(at))) --at;
    ordered.insert(at, std::move(dim));
  }
  dims->clear();
  for (Dim& dim : ordered) {
    const auto follows = [&] {
      if (dims->empty()) return false;
      for (size_t o = 0; o < kernel.operands.size(); ++o)
        if (space.walked[o] && dims->back().strides[o] != dim.strides[o] * dim.size) return false;
      return true;
    };
    if (!follows()) {
      dims->push_back(std::move(dim));
      continue;
    }
    Dim& outer = dims->back();
    outer.size *= dim.size;
    outer.strides = dim.strides;
    outer.sources.insert(outer.sources.end(), dim.sources.begin(), dim.sources.end());
  }
}

}  // namespace

Space make_space(const ir::Kernel& kernel) {
  Space space;
  space.needed.assign(kernel.nodes.size(), false);
  space.used.assign(kernel.operands.size(), false);
  space.walked.assign(kernel.operands.size(), false);
  std::vector<int64_t> weights(kernel.operands.size(), 0);
  for (const ir::KernelStore& store : kernel.stores) {
    for (int32_t n : {store.node, store.at, store.holds})
      if (n >= 0) space.needed[static_cast<size_t>(n)] = true;
    space.used[static_cast<size_t>(store.operand)] = true;
    space.walked[static_cast<size_t>(store.operand)] = true;
    weights[static_cast<size_t>(store.operand)] += 2 * ir::dtype_size(kernel.operands[static_cast<size_t>(store.operand)].dtype);
  }
  for (size_t n = kernel.nodes.size(); n-- > 0;) {
    if (!space.needed[n]) continue;
    const ir::KernelNode& node = kernel.nodes[n];
    for (int32_t operand : {node.a, node.b, node.c})
      if (operand >= 0) space.needed[static_cast<size_t>(operand)] = true;
    if (node.operand >= 0) space.walked[static_cast<size_t>(node.operand)] = true;
    if (!ir::reads_memory(node.op)) continue;
    space.used[static_cast<size_t>(node.operand)] = true;
    weights[static_cast<size_t>(node.operand)] += ir::dtype_size(node.dtype);
  }
  space.dims = ir::node_dims(kernel);
  for (uint32_t of_node : space.dims) space.full.push_back((of_node & kernel.reduce_dims) != 0);
  for (size_t d = 0; d < kernel.sizes.size(); ++d) {
    const bool reduced = kernel.reduce_dims >> d & 1;
    (reduced ? space.reduced_points : space.kept_points) *= kernel.sizes[d];
    if (kernel.sizes[d] == 1) continue;
    Dim dim{kernel.sizes[d], {}, {static_cast<int32_t>(d)}};
    for (const ir::KernelOperand& operand : kernel.operands) dim.strides.push_back(operand.strides[d]);
    (reduced ? space.reduced : space.kept).push_back(std::move(dim));
  }
  order_and_merge(kernel, space, weights, &space.kept);
  order_and_merge(kernel, space, weights, &space.reduced);
  return space;
}

bool columns_are_inner(const ir::Kernel& kernel, const Space& space) {
  if (space.kept.empty() || space.reduced.empty() || space.reduced_points == 0) return false;
  int64_t votes = 0;
  for (size_t n = 0; n < kernel.nodes.size(); ++n) {
    const ir::KernelNode& node = kernel.nodes[n];
    if (!space.needed[n] || !ir::reads_memory(node.op) || !space.full[n]) continue;
    const int64_t kept = std::abs(space.kept.back().strides[static_cast<size_t>(node.operand)]), reduced = std::abs(space.reduced.back().strides[static_cast<size_t>(node.operand)]);
    int64_t weight = ir::dtype_size(node.dtype);  // as much as there is of it: a vector is nothing beside a matrix
    for (size_t d = 0; d < kernel.sizes.size(); ++d)
      if (space.dims[n] >> d & 1) weight *= kernel.sizes[d];
    if (kept != 0 && (reduced == 0 || kept < reduced)) votes += weight;
    else if (reduced != 0) votes -= weight;
  }
  return votes > 0;
}

bool is_wide(const ir::Kernel& kernel) {
  if (kernel.num_points() > INT32_MAX / 2) return true;
  for (const ir::KernelOperand& operand : kernel.operands) {
    int64_t extent = std::abs(operand.offset);
    for (size_t d = 0; d < kernel.sizes.size(); ++d) extent += std::abs(operand.strides[d]) * kernel.sizes[d];
    if (extent > INT32_MAX / 2) return true;
  }
  return false;
}

}  // namespace dynvm::codegen::cuda
