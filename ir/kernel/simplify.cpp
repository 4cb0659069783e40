// See simplify.h.
#include "ir/kernel/simplify.h"

#include <bit>
#include <utility>

namespace dynvm::ir {
namespace {

class Simplify {
 public:
  explicit Simplify(Kernel& kernel) : kernel_(kernel), nodes_(std::move(kernel.nodes)) { kernel_.nodes.clear(); }

  void run() {
    for (const KernelNode& node : nodes_) {
      KernelNode copy = node;
      for (int32_t* operand : {&copy.a, &copy.b, &copy.c})
        if (*operand >= 0) *operand = to_[static_cast<size_t>(*operand)];
      to_.push_back(simplified(copy));
      know();
    }
    for (KernelStore& store : kernel_.stores) store.node = to_[static_cast<size_t>(store.node)];
    drop_unused();
  }

 private:
  const KernelNode& at(int32_t n) const { return kernel_.nodes[static_cast<size_t>(n)]; }
  // Has it a value of its own at each point of the reduced dims?
  bool full(int32_t n) const { return full_[static_cast<size_t>(n)]; }

  void know() {
    for (size_t n = full_.size(); n < kernel_.nodes.size(); ++n) {
      const KernelNode& node = kernel_.nodes[n];
      bool full = false;
      if (node.op == KOp::k_load) {
        const KernelOperand& operand = kernel_.operands[static_cast<size_t>(node.operand)];
        for (size_t d = 0; d < kernel_.sizes.size(); ++d) full = full || ((kernel_.reduce_dims >> d & 1) != 0 && operand.strides[d] != 0 && kernel_.sizes[d] != 1);
      } else if (node.op == KOp::k_index) {
        full = (kernel_.reduce_dims >> node.i & 1) != 0 && kernel_.sizes[static_cast<size_t>(node.i)] != 1;
      } else if (!is_reduce(node.op)) {
        for (int32_t operand : {node.a, node.b, node.c}) full = full || (operand >= 0 && full_[static_cast<size_t>(operand)]);
      }
      full_.push_back(full);
    }
  }

  int32_t simplified(const KernelNode& node) {
    if (node.a < 0) return kernel_.add_node(node);
    const KernelNode inner = at(node.a);
    const bool chosen = inner.op == KOp::k_where && full(inner.a) && !full(inner.b) && !full(inner.c);
    if (chosen && node.op == KOp::k_reduce_sum) {
      if (const int32_t sum = sum_of_one(inner); sum >= 0) return sum;
    } else if (chosen && node.b < 0 && !is_reduce(node.op)) {
      KernelNode first = node, second = node;
      first.a = inner.b;
      second.a = inner.c;
      const int32_t b = simple(first), c = simple(second);
      return kernel_.add(KOp::k_where, inner.a, b, c);
    }
    return simple(node);
  }

  int32_t simple(const KernelNode& node) { return node.op == KOp::k_cast ? kernel_.add_cast(node.dtype, node.a) : kernel_.add_node(node); }

  // The sum of a `where` that holds at one point at most; -1: it is none.
  int32_t sum_of_one(const KernelNode& where) {
    const KernelNode& zero = at(where.c);
    if (zero.op != KOp::k_const || (is_floating(zero.dtype) ? zero.f != 0 : zero.i != 0) || !std::has_single_bit(kernel_.reduce_dims)) return -1;
    int32_t position = where.a, besides = -1;
    if (at(position).op == KOp::k_and) {
      const KernelNode both = at(position);
      if (full(both.a) && full(both.b)) return -1;
      position = full(both.a) ? both.a : both.b;
      besides = full(both.a) ? both.b : both.a;
    }
    const KernelNode equal = at(position);
    if (equal.op != KOp::k_eq) return -1;
    const bool index_first = at(equal.a).op == KOp::k_index;
    const KernelNode index = at(index_first ? equal.a : equal.b);
    const int32_t wanted = index_first ? equal.b : equal.a;
    if (index.op != KOp::k_index || full(wanted) || kernel_.reduce_dims != 1u << index.i) return -1;
    const int32_t from = kernel_.add(KOp::k_ge, wanted, kernel_.add_const_int(DType::kI64, 0));
    const int32_t to = kernel_.add(KOp::k_lt, wanted, kernel_.add_const_int(DType::kI64, kernel_.sizes[static_cast<size_t>(index.i)]));
    int32_t holds = kernel_.add(KOp::k_and, from, to);
    if (besides >= 0) holds = kernel_.add(KOp::k_and, holds, besides);
    return kernel_.add(KOp::k_where, holds, where.b, where.c);
  }

  void drop_unused() {
    std::vector<KernelNode>& nodes = kernel_.nodes;
    std::vector<int32_t> number(nodes.size(), -1);
    for (const KernelStore& store : kernel_.stores) number[static_cast<size_t>(store.node)] = 0;
    for (size_t n = nodes.size(); n-- > 0;)
      for (int32_t operand : {nodes[n].a, nodes[n].b, nodes[n].c})
        if (operand >= 0 && number[n] == 0) number[static_cast<size_t>(operand)] = 0;
    size_t kept = 0;
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (number[n] < 0) continue;
      KernelNode node = nodes[n];
      for (int32_t* operand : {&node.a, &node.b, &node.c})
        if (*operand >= 0) *operand = number[static_cast<size_t>(*operand)];
      number[n] = static_cast<int32_t>(kept);
      nodes[kept++] = node;
    }
    nodes.resize(kept);
    for (KernelStore& store : kernel_.stores) store.node = number[static_cast<size_t>(store.node)];
  }

  Kernel& kernel_;
  std::vector<KernelNode> nodes_;
  std::vector<int32_t> to_;   // by node as it was
  std::vector<bool> full_;    // by node as it is
};

}  // namespace

void simplify_kernel(Kernel* kernel) {
  if (kernel->reduce_dims != 0) Simplify(*kernel).run();
}

}  // namespace dynvm::ir
