// See gathers.h.
#include "codegen/cuda/gathers.h"

namespace dynvm::codegen::cuda {

using ir::KernelNode;
using ir::KOp;

bool is_multiple(const ir::Kernel& kernel, int32_t n, int64_t of) {
  const KernelNode& node = kernel.nodes[static_cast<size_t>(n)];
  if (node.dtype != ir::DType::kI64) return of == 1;
  switch (node.op) {
    case KOp::k_const: return node.i % of == 0;
    case KOp::k_mul: return is_multiple(kernel, node.a, of) || is_multiple(kernel, node.b, of);
    case KOp::k_add:
    case KOp::k_sub: return is_multiple(kernel, node.a, of) && is_multiple(kernel, node.b, of);
    case KOp::k_where: return is_multiple(kernel, node.b, of) && is_multiple(kernel, node.c, of);
    default: return of == 1;
  }
}

std::vector<bool> nodes_of_place(const ir::Kernel& kernel, int32_t at, int32_t holds, const std::function<bool(size_t)>& is_there) {
  std::vector<bool> found(kernel.nodes.size(), false);
  found[static_cast<size_t>(at)] = found[static_cast<size_t>(holds)] = true;
  for (size_t n = kernel.nodes.size(); n-- > 0;) {
    if (!found[n] || is_there(n)) continue;
    for (int32_t operand : {kernel.nodes[n].a, kernel.nodes[n].b, kernel.nodes[n].c})
      if (operand >= 0) found[static_cast<size_t>(operand)] = true;
  }
  return found;
}

}  // namespace dynvm::codegen::cuda
