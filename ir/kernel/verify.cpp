// The kernel verifier: every invariant that kernel.h states. Tests: tests/kernel/verify_test.cpp.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "ir/kernel/kernel.h"
#include "ir/kernel/philox.h"
#include "ir/kernel/symbols.h"

namespace dynvm::ir {

namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  base::Status run() {
    if (check_space() && check_operands() && check_nodes()) check_stores();
    return error_.empty() ? base::Status() : base::Status::failure("kernel \"" + kernel_.name + "\": " + error_);
  }

 private:
  bool fail(std::string what) {
    error_ = std::move(what);
    return false;
  }
  bool fail_node(size_t n, const char* what) {
    return fail("n" + std::to_string(n) + " (" + std::string(kop_info(kernel_.nodes[n].op).name) + "): " + what);
  }

  bool check_space() {
    if (kernel_.sizes.size() > kMaxKernelDims) return fail("too many dims");
    if (kernel_.reduce_dims >> kernel_.sizes.size()) return fail("a reduced dim does not exist");
    if (kernel_.symbols.size() > kMaxSymbols) return fail("too many symbols");
    int64_t points = 1;
    for (int64_t size : kernel_.sizes) {
      if (size < 0) return fail("a negative size");
      if (__builtin_mul_overflow(points, std::max<int64_t>(size, 1), &points) || points > (int64_t{1} << 46)) return fail("the space is too large");
    }
    for (DType dtype : kernel_.scalar_types)
      if (dtype != DType::kF64 && dtype != DType::kI64) return fail("a run-time scalar is neither f64 nor i64");
    return true;
  }

  bool check_operands() {
    for (size_t o = 0; o < kernel_.operands.size(); ++o) {
      const KernelOperand& operand = kernel_.operands[o];
      std::string which = "o" + std::to_string(o) + ": ";
      if (!is_computable(operand.dtype)) return fail(which + "no arithmetic in this dtype");
      if (operand.strides.size() != kernel_.sizes.size()) return fail(which + "the number of strides is not that of dims");
      if (operand.pointer < 0 || operand.pointer >= kernel_.num_pointers) return fail(which + "pointer index out of range");
      for (int64_t stride : operand.strides)
        if (std::llabs(stride) > (int64_t{1} << 46)) return fail(which + "a stride is too large");
      if (std::llabs(operand.offset) > (int64_t{1} << 46)) return fail(which + "the offset is too large");
    }
    return true;
  }

  bool check_nodes() {
    for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
      if (!check_node(n)) return false;
      const KernelNode& node = kernel_.nodes[n];
      bool scanned = is_scan(node.op);
      for (int32_t operand : {node.a, node.b, node.c}) scanned = scanned || (operand >= 0 && scanned_[operand]);
      scanned_.push_back(scanned && !is_reduce(node.op));
    }
    return true;
  }

  bool check_node(size_t n) {
    const KernelNode& node = kernel_.nodes[n];
    if (node.op >= KOp::kCount) return fail("n" + std::to_string(n) + ": no such op");
    if (!is_computable(node.dtype)) return fail_node(n, "no arithmetic in this dtype");
    const KOpInfo& info = kop_info(node.op);
    const int32_t args[3] = {node.a, node.b, node.c};
    for (int i = 0; i < 3; ++i) {
      if (i < info.arity && (args[i] < 0 || args[i] >= static_cast<int32_t>(n))) return fail_node(n, "an operand is not an earlier node");
      if (i >= info.arity && args[i] != -1) return fail_node(n, "too many operands");
    }
    const bool places = reads_memory(node.op) || node.op == KOp::k_draw;
    if (!places && node.operand != -1) return fail_node(n, "only a load or a draw has an operand");
    if (places && (node.operand < 0 || node.operand >= static_cast<int32_t>(kernel_.operands.size()))) return fail_node(n, "no such operand");
    DType t = node.dtype;
    auto type = [&](int i) { return kernel_.nodes[args[i]].dtype; };
    bool same = true;  // all operands have the node's dtype
    for (int i = 0; i < info.arity; ++i) same = same && type(i) == t;
    switch (info.typing) {
      case 'L':
        if (kernel_.operands[node.operand].dtype != t) return fail_node(n, "dtype is not the operand's");
        return true;
      case 'K':
        if (node.op == KOp::k_scalar && (node.i < 0 || node.i >= kernel_.num_scalars())) return fail_node(n, "no such scalar");
        return true;
      case 'D':
        if (t != DType::kI64) return fail_node(n, "must be i64");
        if (node.i < 0 || node.i >= static_cast<int64_t>(kernel_.sizes.size())) return fail_node(n, "no such dim");
        return true;
      case 'U': return check_draw(n);
      case 'M':
        if (kernel_.operands[node.operand].dtype != t) return fail_node(n, "dtype is not the operand's");
        if (type(0) != DType::kI64 || !is_bool(type(1))) return fail_node(n, "needs an i64 and a bool");
        return (!scanned_[node.a] && !scanned_[node.b]) || fail_node(n, "what a scan gives says where it reads");
      case 'C': return true;
      case 'A': return (same && !is_bool(t)) || fail_node(n, "operands need the node's dtype, not bool");
      case 'F':
        if (node.op == KOp::k_dot && !check_dot(n)) return false;
        return (same && is_floating(t)) || fail_node(n, "operands need the node's floating dtype");
      case 'N': return (same && !is_floating(t)) || fail_node(n, "operands need the node's integer or bool dtype");
      case 'V': return same || fail_node(n, "operands need the node's dtype");
      case 'S':
        if (node.op == KOp::k_within && scanned_[node.a]) return fail_node(n, "what a scan gives says where");
        return (same && is_integer(t)) || fail_node(n, "operands need the node's integer dtype");
      case 'B': return (is_bool(t) && type(0) == type(1)) || fail_node(n, "needs two operands of one dtype, gives bool");
      case 'P': return (is_bool(t) && is_floating(type(0))) || fail_node(n, "needs a floating operand, gives bool");
      case 'W': return (is_bool(type(0)) && type(1) == t && type(2) == t) || fail_node(n, "needs a bool and two operands of the node's dtype");
      case 'R':
        if (!same || is_bool(t)) return fail_node(n, "the operand needs the node's dtype, not bool");
        if ((node.op == KOp::k_reduce_attend || node.op == KOp::k_scan_logaddexp) && !is_floating(t)) return fail_node(n, "is of floating values");
        if (is_reduced_floating(t) && (node.op == KOp::k_reduce_sum || node.op == KOp::k_reduce_prod || node.op == KOp::k_reduce_attend || is_scan(node.op))) return fail_node(n, "must be cast to f32 before");
        return check_reduce(n);
      case 'Q': return (same && is_bool(t) && check_reduce(n)) || fail_node(n, "needs a bool and a reduced dim");
      case 'G':
        if (t != DType::kI64 || is_bool(type(0))) return fail_node(n, "gives i64, of an operand that is not bool");
        return check_reduce(n);
    }
    return fail_node(n, "has no typing rule");
  }

  bool check_draw(size_t n) {
    const KernelNode& node = kernel_.nodes[n];
    if (node.dtype != DType::kF32) return fail_node(n, "must be f32");
    if (kernel_.nodes[node.a].dtype != DType::kI64 || kernel_.nodes[node.b].dtype != DType::kI64) return fail_node(n, "seed and offset must be i64");
    if (!DrawForm::of(node.i).sound()) return fail_node(n, "there is no such form of a stream");
    for (int64_t stride : kernel_.operands[node.operand].strides)
      if (stride < 0) return fail_node(n, "the number of an element would be negative");
    return true;
  }

  // Its operands are elementwise, so that they can be had at any point.
  bool check_dot(size_t n) {
    if (kernel_.sizes.empty() || (kernel_.reduce_dims >> (kernel_.sizes.size() - 1) & 1)) return fail_node(n, "there is no last dim, or it is reduced");
    std::vector<int32_t> behind{kernel_.nodes[n].a, kernel_.nodes[n].b};
    while (!behind.empty()) {
      const KernelNode& node = kernel_.nodes[behind.back()];
      behind.pop_back();
      if (node.op == KOp::k_dot || is_reduce(node.op) || is_scan(node.op)) return fail_node(n, "of sums");
      for (int32_t operand : {node.a, node.b, node.c})
        if (operand >= 0) behind.push_back(operand);
    }
    return true;
  }

  bool check_reduce(size_t n) {
    if (!kernel_.reduce_dims) return fail_node(n, "no dim is reduced");
    if (is_scan(kernel_.nodes[n].op) && !std::has_single_bit(kernel_.reduce_dims)) return fail_node(n, "needs one reduced dim");
    return true;
  }

  void check_stores() {
    std::vector<uint32_t> dims = node_dims(kernel_);
    for (size_t s = 0; s < kernel_.stores.size(); ++s) {
      const KernelStore& store = kernel_.stores[s];
      std::string which = "store " + std::to_string(s) + ": ";
      const auto is_node = [&](int32_t n) { return n >= 0 && n < static_cast<int32_t>(kernel_.nodes.size()); };
      if (store.operand < 0 || store.operand >= static_cast<int32_t>(kernel_.operands.size()) || !is_node(store.node) || (store.has_place() && (!is_node(store.at) || !is_node(store.holds)))) {
        fail(which + "no such operand or node");
        return;
      }
      const KernelOperand& operand = kernel_.operands[store.operand];
      if (operand.dtype != kernel_.nodes[store.node].dtype) return (void)fail(which + "dtype is not the node's");
      if (store.has_place() ? !check_place(store, which) : !check_store_geometry(operand, dims[store.node], which)) return;
      for (const KernelNode& node : kernel_.nodes)
        if (reads_memory(node.op) && may_conflict(kernel_, store, operand, node.op, kernel_.operands[node.operand]))
          return (void)fail(which + "overlaps what o" + std::to_string(node.operand) + " loads");
      for (size_t other = 0; other < s; ++other)
        if (may_conflict(kernel_, store, operand, kernel_.stores[other], kernel_.operands[kernel_.stores[other].operand])) return (void)fail(which + "overlaps another store");
    }
  }

  bool check_place(const KernelStore& store, const std::string& which) {
    if (kernel_.nodes[store.at].dtype != DType::kI64 || !is_bool(kernel_.nodes[store.holds].dtype)) return fail(which + "a place needs an i64 and a bool");
    const DType dtype = kernel_.nodes[store.node].dtype;
    if (store.adds && (dtype_size(dtype) < 4 || !(is_floating(dtype) || is_integer(dtype)))) return fail(which + "nothing is added in this dtype");
    if (scanned_[static_cast<size_t>(store.at)] || scanned_[static_cast<size_t>(store.holds)]) return fail(which + "what a scan gives says where it stores");
    return !attends(kernel_) || fail(which + "attention has no place");
  }

  bool check_store_geometry(const KernelOperand& operand, uint32_t node_dims, const std::string& which) {
    bool full = false;  // moves along a reduced dim
    for (size_t k = 0; k < kernel_.sizes.size(); ++k)
      if (kernel_.reduce_dims >> k & 1 && kernel_.sizes[k] != 1 && operand.strides[k] != 0) full = true;
    if (!full && (node_dims & kernel_.reduce_dims)) return fail(which + "the value depends on a reduced dim, the place does not");
    std::vector<std::pair<int64_t, int64_t>> steps;  // stride, size
    for (size_t k = 0; k < kernel_.sizes.size(); ++k) {
      if (kernel_.sizes[k] == 0) return true;
      if (kernel_.sizes[k] == 1 || (!full && (kernel_.reduce_dims >> k & 1))) continue;
      steps.push_back({std::llabs(operand.strides[k]), kernel_.sizes[k]});
    }
    std::sort(steps.begin(), steps.end());
    int64_t reach = 0;
    for (auto [stride, size] : steps) {
      if (stride <= reach) return fail(which + "two points share an element");
      reach += stride * (size - 1);
    }
    return true;
  }

  const Kernel& kernel_;
  std::vector<bool> scanned_;  // by node: its value at a point is there when a scan has come to it
  std::string error_;
};

}  // namespace

base::Status verify_kernel(const Kernel& kernel) { return Verifier(kernel).run(); }

}  // namespace dynvm::ir
