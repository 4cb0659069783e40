// See draws.h.
#include "codegen/cuda/draws.h"

#include <fmt/format.h>

#include <climits>

#include "codegen/cuda/expressions.h"
#include "ir/kernel/philox.h"
#include "ir/kernel/symbols.h"

namespace dynvm::codegen::cuda {
namespace {

using ir::KernelNode;
using ir::KOp;

// How many elements there are in front of what the draw's operand reaches last; -1: only a launch tells.
int64_t reach(const ir::Kernel& kernel, const KernelNode& draw) {
  const ir::KernelOperand& operand = kernel.operands[static_cast<size_t>(draw.operand)];
  int64_t elements = 1;
  for (size_t d = 0; d < kernel.sizes.size(); ++d) {
    if (operand.strides[d] == 0) continue;
    if (ir::is_symbolic(kernel.sizes[d], kernel.symbols) || ir::is_symbolic(operand.strides[d], kernel.symbols)) return -1;
    elements += (kernel.sizes[d] - 1) * operand.strides[d];
  }
  return elements;
}

// The template arguments that all functions of the prelude for draws have first, and the element's number.
std::string form(const ir::Kernel& kernel, const KernelNode& draw) {
  const ir::DrawForm of = ir::DrawForm::of(draw.i);
  const int64_t elements = reach(kernel, draw);
  const bool rounds = elements < 0 || (elements - 1) / of.vector >= of.threads;
  return fmt::format("{}, {}, {}", of.threads, of.vector, rounds ? "true" : "false");
}

std::string element(const ir::Kernel& kernel, const KernelNode& draw, const std::string& place) {
  const int64_t elements = reach(kernel, draw);
  return fmt::format("({})(0{})", elements < 0 || elements > INT_MAX ? "u64" : "unsigned", place);
}

}  // namespace

bool is_given(const ir::Kernel& kernel, int32_t node) {
  const KOp op = kernel.nodes[static_cast<size_t>(node)].op;
  return op == KOp::k_scalar || op == KOp::k_const;
}

std::string draw_all(const ir::Kernel& kernel, size_t draw, int v, const std::string& place) {
  const KernelNode& node = kernel.nodes[draw];
  const auto given = [&](int32_t n) {
    const KernelNode& each = kernel.nodes[static_cast<size_t>(n)];
    return each.op == KOp::k_const ? constant(each) : scalar(kernel, each, fmt::format("p.scalar[{}]", each.i));
  };
  return fmt::format("float d{0}[{1}]; draw_all<{2}>(d{0}, {3}, {4}, {5});", draw, v, form(kernel, node), given(node.a), given(node.b), element(kernel, node, place));
}

std::string draw_one(const ir::Kernel& kernel, const KernelNode& draw, const std::string& seed, const std::string& offset, const std::string& place) {
  return fmt::format("draw_one<{}>({}, {}, {})", form(kernel, draw), seed, offset, element(kernel, draw, place));
}

}  // namespace dynvm::codegen::cuda
