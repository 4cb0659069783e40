// See simplify.h.
#include "ir/kernel/simplify.h"

#include <bit>
#include <utility>

#include "ir/kernel/symbols.h"

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
      add_node_dims(kernel_, &dims_);
    }
    for (KernelStore& store : kernel_.stores)
      for (int32_t* n : {&store.node, &store.at, &store.holds})
        if (*n >= 0) *n = to_[static_cast<size_t>(*n)];
    kernel_.drop_unused_nodes();
  }

 private:
  const KernelNode& at(int32_t n) const { return kernel_.nodes[static_cast<size_t>(n)]; }
  // Has it a value of its own at each point of the reduced dims?
  bool full(int32_t n) const { return (dims_[static_cast<size_t>(n)] & kernel_.reduce_dims) != 0; }

  int32_t simplified(const KernelNode& node) {
    if (node.a < 0) return kernel_.add_node(node);
    const KernelNode inner = at(node.a);
    const bool chosen = inner.op == KOp::k_where && full(inner.a) && !full(inner.b) && !full(inner.c);
    if (chosen && node.op == KOp::k_reduce_sum) {
      if (const int32_t sum = sum_of_one(inner); sum >= 0) return sum;
    } else if (chosen && node.b < 0 && !is_reduce(node.op) && !is_scan(node.op)) {
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
    if (is_symbolic(kernel_.sizes[static_cast<size_t>(index.i)], kernel_.symbols)) return -1;  // no constant
    const int32_t from = kernel_.add(KOp::k_ge, wanted, kernel_.add_const_int(DType::kI64, 0));
    const int32_t to = kernel_.add(KOp::k_lt, wanted, kernel_.add_const_int(DType::kI64, kernel_.sizes[static_cast<size_t>(index.i)]));
    int32_t holds = kernel_.add(KOp::k_and, from, to);
    if (besides >= 0) holds = kernel_.add(KOp::k_and, holds, besides);
    return kernel_.add(KOp::k_where, holds, where.b, where.c);
  }

  Kernel& kernel_;
  std::vector<KernelNode> nodes_;
  std::vector<int32_t> to_;     // by node as it was
  std::vector<uint32_t> dims_;  // by node as it is
};

}  // namespace

void simplify_kernel(Kernel* kernel) {
  if (kernel->reduce_dims != 0) Simplify(*kernel).run();
}

}  // namespace dynvm::ir
