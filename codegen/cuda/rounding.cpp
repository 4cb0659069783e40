// See rounding.h.
#include "codegen/cuda/rounding.h"

namespace dynvm::codegen::cuda {
namespace {

using ir::DType;
using ir::Kernel;
using ir::KernelNode;
using ir::KOp;

// Operations whose result is about as wrong, relatively, as their operands.
bool passes_on(KOp op) {
  switch (op) {
    case KOp::k_add:
    case KOp::k_sub:
    case KOp::k_mul:
    case KOp::k_fma:
    case KOp::k_div:
    case KOp::k_neg:
    case KOp::k_abs:
    case KOp::k_min:
    case KOp::k_max:
    case KOp::k_where:
    case KOp::k_log:
    case KOp::k_sqrt:
    case KOp::k_rsqrt:
    case KOp::k_reciprocal:
    case KOp::k_reduce_sum:
    case KOp::k_reduce_max:
    case KOp::k_reduce_min: return true;
    default: return false;
  }
}

bool is_one(const KernelNode& node) { return node.op == KOp::k_const && node.f == 1.0; }

}  // namespace

std::vector<bool> seen_rounded(const Kernel& kernel) {
  std::vector<bool> used(kernel.nodes.size(), false), exactly(kernel.nodes.size(), false);
  for (const ir::KernelStore& store : kernel.stores) {
    used[static_cast<size_t>(store.node)] = true;
    if (!ir::is_reduced_floating(kernel.operands[static_cast<size_t>(store.operand)].dtype)) exactly[static_cast<size_t>(store.node)] = true;
    for (int32_t n : {store.at, store.holds})
      if (n >= 0) used[static_cast<size_t>(n)] = exactly[static_cast<size_t>(n)] = true;
  }
  for (size_t n = kernel.nodes.size(); n-- > 0;) {
    const KernelNode& node = kernel.nodes[n];
    if (!used[n]) continue;
    const bool rounds = node.op == KOp::k_cast && ir::is_reduced_floating(node.dtype);
    const bool passes = node.dtype == DType::kF32 && passes_on(node.op) && !exactly[n];
    for (int32_t operand : {node.a, node.b, node.c}) {
      if (operand < 0) continue;
      used[static_cast<size_t>(operand)] = true;
      if (!rounds && !passes) exactly[static_cast<size_t>(operand)] = true;
    }
  }
  std::vector<bool> found(kernel.nodes.size());
  for (size_t n = 0; n < found.size(); ++n) found[n] = used[n] && !exactly[n] && kernel.nodes[n].dtype == DType::kF32;
  return found;
}

std::string rounded_expression(const Kernel& kernel, size_t n, const std::function<std::string(int32_t)>& name, const std::function<bool(int32_t)>& is_there) {
  const KernelNode& node = kernel.nodes[n];
  const auto at = [&](int32_t k) -> const KernelNode& { return kernel.nodes[static_cast<size_t>(k)]; };
  if (node.op == KOp::k_exp) return "k_exp_16(" + name(node.a) + ")";
  if (node.op == KOp::k_sigmoid) return "k_sigmoid_16(" + name(node.a) + ")";
  if (node.op == KOp::k_add)
    for (const auto& [one, other] : {std::pair{node.a, node.b}, {node.b, node.a}})
      if (is_one(at(one)) && at(other).op == KOp::k_erf && is_there(other)) return "k_one_plus_erf_16(" + name(at(other).a) + ")";
  return "";
}

}  // namespace dynvm::codegen::cuda
