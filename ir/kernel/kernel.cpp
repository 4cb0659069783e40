// The kernel's tables, builders and questions about geometry. See kernel.h. Tests: tests/kernel/text_test.cpp, verify_test.cpp.
#include "ir/kernel/kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ir/kernel/symbols.h"
#include "runtime/base/defects.h"

namespace dynvm::ir {

namespace {

constexpr KOpInfo kKOpInfos[] = {
#define X(name, arity, typing, sentence) {#name, arity, #typing[0], sentence},
#include "ir/kernel/kops.def"
#undef X
};
static_assert(KOp::k_reduce_attend == static_cast<KOp>(static_cast<int>(KOp::kCount) - 1), "is_reduce() relies on reductions being last");

// Smallest and largest element index that the operand names; false where the space is empty.
bool element_interval(const Kernel& kernel, const KernelOperand& operand, int64_t* low, int64_t* high) {
  *low = *high = operand.offset;
  for (size_t k = 0; k < kernel.sizes.size(); ++k) {
    if (kernel.sizes[k] == 0) return false;
    int64_t span = operand.strides[k] * (kernel.sizes[k] - 1);
    (span < 0 ? *low : *high) += span;
  }
  return true;
}

struct Step {
  int64_t stride, count;  // stride > 0; the difference of two indexes is in [-count, count]
};

// Whether `difference` is a sum of multiples of the strides within their counts. Steps are sorted, largest stride first.
bool reachable(const std::vector<Step>& steps, size_t at, int64_t difference, int* budget) {
  if (at == steps.size()) return difference == 0;
  if (--*budget < 0) return true;  // too hard: conservative
  int64_t rest = 0;
  for (size_t k = at + 1; k < steps.size(); ++k) rest += steps[k].stride * steps[k].count;
  const Step& step = steps[at];
  int64_t first = (difference - rest) / step.stride - 1, last = (difference + rest) / step.stride + 1;
  first = std::max(first, -step.count);
  last = std::min(last, step.count);
  for (int64_t i = first; i <= last; ++i) {
    int64_t left = difference - i * step.stride;
    if (std::llabs(left) <= rest && reachable(steps, at + 1, left, budget)) return true;
  }
  return false;
}

}  // namespace

const KOpInfo& kop_info(KOp op) { return kKOpInfos[static_cast<int>(op)]; }

bool kop_from_name(std::string_view name, KOp* op) {
  for (int i = 0; i < static_cast<int>(KOp::kCount); ++i)
    if (kKOpInfos[i].name == name) return *op = static_cast<KOp>(i), true;
  return false;
}

Kernel numbered(Kernel kernel, std::vector<int32_t>* pointers) {
  pointers->clear();
  for (KernelOperand& operand : kernel.operands) {
    const auto known = std::find(pointers->begin(), pointers->end(), operand.pointer);
    const auto number = static_cast<int32_t>(known - pointers->begin());
    if (known == pointers->end()) pointers->push_back(operand.pointer);
    operand.pointer = number;
  }
  kernel.num_pointers = static_cast<int32_t>(pointers->size());
  return kernel;
}

int64_t Kernel::num_points() const {
  int64_t points = 1;
  for (int64_t size : sizes) points *= size;
  return points;
}

int32_t Kernel::add_operand(KernelOperand operand) {
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i] == operand) return static_cast<int32_t>(i);
  num_pointers = std::max(num_pointers, operand.pointer + 1);
  operands.push_back(std::move(operand));
  return static_cast<int32_t>(operands.size()) - 1;
}

int32_t Kernel::add_node(const KernelNode& node) {
  for (size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i] == node) return static_cast<int32_t>(i);
  nodes.push_back(node);
  return static_cast<int32_t>(nodes.size()) - 1;
}

int32_t Kernel::add_load(int32_t operand) {
  KernelNode node;
  node.op = KOp::k_load;
  node.dtype = operands[operand].dtype;
  node.operand = operand;
  return add_node(node);
}

int32_t Kernel::add_load_at(int32_t operand, int32_t at, int32_t holds) {
  KernelNode node;
  node.op = KOp::k_load_at;
  node.dtype = operands[operand].dtype;
  node.a = at;
  node.b = holds;
  node.operand = operand;
  return add_node(node);
}

int32_t Kernel::add_const(DType dtype, double value) {
  if (is_bool(dtype)) return add_const_int(dtype, value != 0);
  if (!is_floating(dtype)) return add_const_int(dtype, static_cast<int64_t>(value));
  KernelNode node;
  node.op = KOp::k_const;
  node.dtype = dtype;
  node.f = value;
  return add_node(node);
}

int32_t Kernel::add_const_int(DType dtype, int64_t value) {
  if (is_floating(dtype)) return add_const(dtype, static_cast<double>(value));
  KernelNode node;
  node.op = KOp::k_const;
  node.dtype = dtype;
  node.i = is_bool(dtype) ? value != 0 : value;
  return add_node(node);
}

int32_t Kernel::add_scalar(DType dtype, int32_t parameter) {
  KernelNode node;
  node.op = KOp::k_scalar;
  node.dtype = dtype;
  node.i = parameter;
  return add_node(node);
}

int32_t Kernel::add_index(int32_t dim) {
  KernelNode node;
  node.op = KOp::k_index;
  node.dtype = DType::kI64;
  node.i = dim;
  return add_node(node);
}

int32_t Kernel::add_draw(int32_t seed, int32_t offset, int32_t operand, int64_t form) {
  KernelNode node;
  node.op = KOp::k_draw;
  node.dtype = DType::kF32;
  node.a = seed;
  node.b = offset;
  node.operand = operand;
  node.i = form;
  return add_node(node);
}

int32_t Kernel::add_cast(DType dtype, int32_t a) {
  const KernelNode& from = nodes[a];
  if (from.dtype == dtype) return a;
  const bool exact = is_floating(dtype) && is_floating(from.dtype) && from.op == KOp::k_const && from.f == std::trunc(from.f) && std::abs(from.f) <= 256;  // in every dtype
  if (exact) return add_const(dtype, from.f);
  KernelNode node;
  node.op = KOp::k_cast;
  node.dtype = dtype;
  node.a = a;
  return add_node(node);
}

int32_t Kernel::add(KOp op, int32_t a, int32_t b, int32_t c) {
  KernelNode node;
  node.op = op;
  node.a = a;
  node.b = b;
  node.c = c;
  switch (kop_info(op).typing) {
    case 'B':
    case 'P': node.dtype = DType::kBool; break;
    case 'G': node.dtype = DType::kI64; break;
    case 'W': node.dtype = nodes[b].dtype; break;
    default: node.dtype = nodes[a].dtype;
  }
  return add_node(node);
}

void Kernel::drop_unused_nodes() {
  std::vector<int32_t> position(nodes.size(), -1);
  for (const KernelStore& store : stores)
    for (int32_t n : {store.node, store.at, store.holds})
      if (n >= 0) position[n] = 0;
  for (size_t n = nodes.size(); n-- > 0;)
    for (int32_t a : {nodes[n].a, nodes[n].b, nodes[n].c})
      if (a >= 0 && position[n] == 0) position[a] = 0;
  size_t kept = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (position[n] < 0) continue;
    KernelNode node = nodes[n];
    for (int32_t* a : {&node.a, &node.b, &node.c})
      if (*a >= 0) *a = position[*a];
    position[n] = static_cast<int32_t>(kept);
    nodes[kept++] = node;
  }
  nodes.resize(kept);
  for (KernelStore& store : stores)
    for (int32_t* n : {&store.node, &store.at, &store.holds})
      if (*n >= 0) *n = position[*n];
}

void add_node_dims(const Kernel& kernel, std::vector<uint32_t>* all) {
  for (size_t n = all->size(); n < kernel.nodes.size(); ++n) {
    const KernelNode& node = kernel.nodes[n];
    uint32_t dims = 0;
    if (node.operand >= 0) {
      const KernelOperand& operand = kernel.operands[node.operand];
      for (size_t k = 0; k < kernel.sizes.size(); ++k)
        if (operand.strides[k] != 0 && kernel.sizes[k] != 1) dims |= 1u << k;
    }
    if (node.op == KOp::k_index && kernel.sizes[node.i] != 1) dims |= 1u << node.i;
    for (int32_t a : {node.a, node.b, node.c})
      if (a >= 0) dims |= (*all)[a];
    if (is_reduce(node.op)) dims &= ~kernel.reduce_dims;
    for (size_t k = 0; is_scan(node.op) && k < kernel.sizes.size(); ++k)
      if (kernel.sizes[k] != 1) dims |= kernel.reduce_dims & 1u << k;
    if (node.op == KOp::k_dot && !kernel.sizes.empty()) dims &= ~(1u << (kernel.sizes.size() - 1));
    all->push_back(dims);
  }
}

bool has_op(const Kernel& kernel, KOp op) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [op](const KernelNode& node) { return node.op == op; });
}

bool has_scan(const Kernel& kernel) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [](const KernelNode& node) { return is_scan(node.op); });
}

bool attends(const Kernel& kernel) { return has_op(kernel, KOp::k_reduce_attend); }

bool stores_at_places(const Kernel& kernel) {
  return std::any_of(kernel.stores.begin(), kernel.stores.end(), [](const KernelStore& store) { return store.has_place(); });
}

bool for_gpus(const Kernel& kernel) {
  return attends(kernel) || has_op(kernel, KOp::k_draw) || has_op(kernel, KOp::k_load_at) || has_op(kernel, KOp::k_within) || stores_at_places(kernel) || has_scan(kernel);
}

std::vector<int> node_passes(const Kernel& kernel) {
  std::vector<int> passes;
  for (const KernelNode& node : kernel.nodes) {
    int behind = 0;
    for (int32_t operand : {node.a, node.b, node.c})
      if (operand >= 0) behind = std::max(behind, passes[static_cast<size_t>(operand)]);
    passes.push_back(behind + (is_reduce(node.op) ? 1 : 0));
  }
  return passes;
}

std::vector<uint32_t> node_dims(const Kernel& kernel) {
  std::vector<uint32_t> dims;
  add_node_dims(kernel, &dims);
  return dims;
}

namespace {

// Are they the same from point to point?
bool same_steps(const Kernel& kernel, const KernelOperand& a, const KernelOperand& b) {
  for (size_t k = 0; k < kernel.sizes.size(); ++k)
    if (kernel.sizes[k] != 1 && a.strides[k] != b.strides[k]) return false;
  return true;
}

// Does where it looks depend on symbols?
bool is_symbolic(const Kernel& kernel, const KernelOperand& operand) {
  const auto symbolic = [&](int64_t number) { return ir::is_symbolic(number, kernel.symbols); };
  for (size_t k = 0; k < kernel.sizes.size(); ++k)
    if (operand.strides[k] != 0 && (symbolic(kernel.sizes[k]) || symbolic(operand.strides[k]))) return true;
  return symbolic(operand.offset);
}

}  // namespace

bool may_conflict(const Kernel& kernel, const KernelOperand& store, const KernelOperand& load) {
  if (store.pointer != load.pointer || base::seeded(base::Defect::kOverlapMissed)) return false;
  if (!kernel.symbols.empty() && (is_symbolic(kernel, store) || is_symbolic(kernel, load)))
    return store.dtype != load.dtype || store.offset != load.offset || !same_steps(kernel, store, load);
  int64_t low_a, high_a, low_b, high_b;
  if (!element_interval(kernel, store, &low_a, &high_a) || !element_interval(kernel, load, &low_b, &high_b)) return false;
  int64_t size_a = dtype_size(store.dtype), size_b = dtype_size(load.dtype);
  if ((high_a + 1) * size_a <= low_b * size_b || (high_b + 1) * size_b <= low_a * size_a) return false;
  if (size_a != size_b || !same_steps(kernel, store, load)) return true;
  if (store.offset == load.offset) return store.dtype != load.dtype;
  std::vector<Step> steps;
  for (size_t k = 0; k < kernel.sizes.size(); ++k)
    if (kernel.sizes[k] != 1 && store.strides[k] != 0) steps.push_back({std::llabs(store.strides[k]), kernel.sizes[k] - 1});
  std::sort(steps.begin(), steps.end(), [](const Step& x, const Step& y) { return x.stride > y.stride; });
  int budget = 1000;
  return reachable(steps, 0, load.offset - store.offset, &budget);
}

bool may_conflict(const Kernel& kernel, const KernelStore& store, const KernelOperand& stored, KOp read, const KernelOperand& from) {
  return store.has_place() || read == KOp::k_load_at ? stored.pointer == from.pointer : may_conflict(kernel, stored, from);
}

bool may_conflict(const Kernel& kernel, const KernelStore& a, const KernelOperand& to_a, const KernelStore& b, const KernelOperand& to_b) {
  return a.has_place() || b.has_place() ? to_a.pointer == to_b.pointer : may_conflict(kernel, to_a, to_b);
}

bool is_full_store(const Kernel& kernel, const std::vector<uint32_t>& dims, const KernelStore& store) {
  const KernelOperand& operand = kernel.operands[store.operand];
  for (size_t k = 0; k < kernel.sizes.size(); ++k)
    if ((kernel.reduce_dims >> k & 1) && kernel.sizes[k] != 1 && operand.strides[k] != 0) return true;
  return store.has_place() && ((dims[store.node] | dims[store.at] | dims[store.holds]) & kernel.reduce_dims) != 0;
}

}  // namespace dynvm::ir
