// Joining lowered kernels (fusion_group.h).
#include "ir/passes/fusion_group.h"

#include <algorithm>

namespace dynvm::ir {
namespace {

std::vector<int64_t> kept_sizes(const Kernel& kernel) {
  std::vector<int64_t> sizes;
  for (size_t k = 0; k < kernel.sizes.size(); ++k)
    if (!(kernel.reduce_dims >> k & 1) && kernel.sizes[k] != 1) sizes.push_back(kernel.sizes[k]);
  return sizes;
}

// Spreads a kernel over the kept dims to the whole space: it gets the reduced dims, with stride 0.
void spread(Kernel* kernel, const Kernel& space) {
  std::vector<int32_t> from(space.sizes.size(), -1);
  int32_t at = 0;
  for (size_t k = 0; k < space.sizes.size(); ++k)
    if (!(space.reduce_dims >> k & 1) && space.sizes[k] != 1) from[k] = at++;
  for (KernelOperand& operand : kernel->operands) {
    std::vector<int64_t> strides(space.sizes.size(), 0);
    for (size_t k = 0; k < from.size(); ++k)
      if (from[k] >= 0) strides[k] = operand.strides[from[k]];
    operand.strides = std::move(strides);
  }
  for (KernelNode& node : kernel->nodes) {
    if (node.op != KOp::k_index) continue;
    for (size_t k = 0; k < from.size(); ++k)
      if (from[k] == node.i) {
        node.i = static_cast<int64_t>(k);
        break;
      }
  }
  kernel->sizes = space.sizes;
}

bool same_elements(const Kernel& kernel, const KernelOperand& a, const KernelOperand& b) {
  if (a.pointer != b.pointer || a.offset != b.offset || a.dtype != b.dtype) return false;
  for (size_t k = 0; k < kernel.sizes.size(); ++k)
    if (kernel.sizes[k] != 1 && a.strides[k] != b.strides[k]) return false;
  return true;
}

}  // namespace

bool FusionGroup::loads_from(int32_t storage) const {
  for (const KernelNode& node : body_.kernel.nodes)
    if (reads_memory(node.op) && body_.kernel.operands[node.operand].pointer == storage) return true;
  return false;
}

bool FusionGroup::shares_load(const Lowered& other) const {
  for (const KernelOperand& a : body_.kernel.operands)
    for (const KernelOperand& b : other.kernel.operands)
      if (a.pointer == b.pointer) return true;
  return false;
}

// Brings the next kernel, or the group, to a common space.
bool FusionGroup::adapt(Lowered* next) {
  Kernel& mine = body_.kernel;
  Kernel& other = next->kernel;
  // What stores where data says at each point of dims that come to be reduced might do it once then, if it depends on none of them.
  const auto joins_space = [](const Kernel& kernel, const Kernel& space) { return kernel.reduce_dims == space.reduce_dims || (kernel.reduce_dims == 0 && !stores_at_places(kernel)); };
  if (mine.sizes == other.sizes) return joins_space(mine, other) || joins_space(other, mine);
  if (mine.reduce_dims != 0 && other.reduce_dims == 0 && kept_sizes(mine) == other.sizes) {
    spread(&other, mine);
    return true;
  }
  if (other.reduce_dims == 0 && joins_space(other, mine) && reshape_kernel(&other, mine.sizes)) return true;
  return mine.reduce_dims == 0 && joins_space(mine, other) && reshape_kernel(&mine, other.sizes);
}

bool FusionGroup::join(const Lowered& next, const GroupLimits& limits) {
  if (attends(body_.kernel) || attends(next.kernel)) return false;
  Lowered adapted = next;
  std::vector<int64_t> sizes = body_.kernel.sizes;
  std::vector<KernelOperand> operands = body_.kernel.operands;
  if (adapt(&adapted) && join_same_space(adapted, limits)) return true;
  body_.kernel.sizes = std::move(sizes);  // the group may have been reshaped
  body_.kernel.operands = std::move(operands);
  return false;
}

bool FusionGroup::join_same_space(const Lowered& next, const GroupLimits& limits) {
  const Kernel& other = next.kernel;
  Lowered joined = body_;
  Kernel& kernel = joined.kernel;
  kernel.reduce_dims |= other.reduce_dims;
  kernel.num_pointers = std::max(kernel.num_pointers, other.num_pointers);
  // A value stored per kept point must stay one when the other side brings the reduction.
  std::vector<int32_t> operand_map(other.operands.size(), -1);
  auto operand = [&](int32_t index) {
    if (operand_map[index] >= 0) return operand_map[index];
    int32_t mapped = kernel.add_operand(other.operands[index]);
    if (static_cast<size_t>(mapped) == joined.tensors.size()) joined.tensors.push_back(next.tensors[index]);
    return operand_map[index] = mapped;
  };
  std::vector<int32_t> scalar_map;
  for (size_t k = 0; k < next.scalars.size(); ++k) {
    size_t at = std::find(joined.scalars.begin(), joined.scalars.end(), next.scalars[k]) - joined.scalars.begin();
    if (at == joined.scalars.size()) {
      joined.scalars.push_back(next.scalars[k]);
      kernel.scalar_types.push_back(other.scalar_types[k]);
    }
    scalar_map.push_back(static_cast<int32_t>(at));
  }
  std::vector<int32_t> node_map;
  for (const KernelNode& node : other.nodes) {
    KernelNode copy = node;
    for (int32_t* operand_node : {&copy.a, &copy.b, &copy.c})
      if (*operand_node >= 0) *operand_node = node_map[*operand_node];
    if (node.op == KOp::k_scalar) copy.i = scalar_map[node.i];
    if (reads_memory(node.op)) {
      const KernelOperand& place = other.operands[node.operand];
      int32_t forwarded = -1;
      for (const KernelStore& store : kernel.stores) {
        const KernelOperand& stored = kernel.operands[store.operand];
        if (node.op == KOp::k_load && !store.has_place() && same_elements(kernel, stored, place)) {
          forwarded = store.node;
        } else if (may_conflict(kernel, store, stored, node.op, place)) {
          return false;
        }
      }
      if (forwarded >= 0) {
        node_map.push_back(forwarded);
        continue;
      }
      copy.operand = operand(node.operand);
    }
    if (node.op == KOp::k_draw) copy.operand = operand(node.operand);
    node_map.push_back(kernel.add_node(copy));
  }
  size_t old_stores = kernel.stores.size();
  for (const KernelStore& store : other.stores) {
    const KernelOperand& place = other.operands[store.operand];
    for (const KernelNode& node : body_.kernel.nodes)
      if (reads_memory(node.op) && may_conflict(kernel, store, place, node.op, body_.kernel.operands[node.operand])) return false;
    bool replaced = false;
    for (size_t k = 0; k < old_stores; ++k) {
      KernelStore& earlier = kernel.stores[k];
      if (!store.has_place() && !earlier.has_place() && same_elements(kernel, kernel.operands[earlier.operand], place)) {
        earlier.node = node_map[store.node];  // the last write is the one that is seen
        replaced = true;
      } else if (may_conflict(kernel, store, place, earlier, kernel.operands[earlier.operand])) {
        return false;
      }
    }
    if (store.has_place()) kernel.add_store_at(operand(store.operand), node_map[store.node], node_map[store.at], node_map[store.holds], store.adds);
    else if (!replaced) kernel.add_store(operand(store.operand), node_map[store.node]);
  }
  if (static_cast<int>(kernel.operands.size()) > limits.operands || static_cast<int>(kernel.nodes.size()) > limits.nodes) return false;
  // The rules of kernel.h hold by construction but for two: with a new reduction, an old store per kept point of a value that is not one; and a scan that says where something is read or stored.
  if (body_.kernel.reduce_dims != kernel.reduce_dims || other.reduce_dims != kernel.reduce_dims || (has_scan(kernel) && (has_op(kernel, KOp::k_load_at) || has_op(kernel, KOp::k_within) || stores_at_places(kernel))))
    if (!verify_kernel(kernel).ok()) return false;
  if (kernel.name.size() < 60 && !other.name.empty()) kernel.name += "_" + other.name;
  body_ = std::move(joined);
  return true;
}

void FusionGroup::compact() {
  Kernel& kernel = body_.kernel;
  std::vector<bool> used(kernel.nodes.size(), false);
  for (const KernelStore& store : kernel.stores)
    for (int32_t n : {store.node, store.at, store.holds})
      if (n >= 0) used[n] = true;
  for (size_t n = kernel.nodes.size(); n-- > 0;) {
    if (!used[n]) continue;
    for (int32_t operand : {kernel.nodes[n].a, kernel.nodes[n].b, kernel.nodes[n].c})
      if (operand >= 0) used[operand] = true;
  }
  Kernel out;
  out.name = kernel.name;
  out.sizes = kernel.sizes;
  out.symbols = kernel.symbols;
  out.num_pointers = kernel.num_pointers;
  std::vector<Ref> tensors, scalars;
  std::vector<int32_t> operand_map(kernel.operands.size(), -1), scalar_map(kernel.scalar_types.size(), -1), node_map(kernel.nodes.size(), -1);
  auto operand = [&](int32_t index) {
    if (operand_map[index] < 0) {
      operand_map[index] = out.add_operand(kernel.operands[index]);
      if (static_cast<size_t>(operand_map[index]) == tensors.size()) tensors.push_back(body_.tensors[index]);
    }
    return operand_map[index];
  };
  bool reduces = false;
  for (size_t n = 0; n < kernel.nodes.size(); ++n) {
    if (!used[n]) continue;
    KernelNode node = kernel.nodes[n];
    for (int32_t* argument : {&node.a, &node.b, &node.c})
      if (*argument >= 0) *argument = node_map[*argument];
    if (node.operand >= 0) node.operand = operand(node.operand);
    if (node.op == KOp::k_scalar) {
      if (scalar_map[node.i] < 0) {
        scalar_map[node.i] = static_cast<int32_t>(scalars.size());
        scalars.push_back(body_.scalars[node.i]);
        out.scalar_types.push_back(kernel.scalar_types[node.i]);
      }
      node.i = scalar_map[node.i];
    }
    reduces = reduces || is_reduce(node.op) || is_scan(node.op);
    node_map[n] = out.add_node(node);
  }
  bool kept_store = false;
  const std::vector<uint32_t> dims = node_dims(kernel);
  for (const KernelStore& store : kernel.stores) {
    if (store.has_place()) out.add_store_at(operand(store.operand), node_map[store.node], node_map[store.at], node_map[store.holds], store.adds);
    else out.add_store(operand(store.operand), node_map[store.node]);
    kept_store = kept_store || !is_full_store(kernel, dims, store);
  }
  // Without any reduction left the dims are ordinary ones, unless a store per kept point says otherwise.
  out.reduce_dims = reduces || kept_store ? kernel.reduce_dims : 0;
  body_.kernel = std::move(out);
  body_.tensors = std::move(tensors);
  body_.scalars = std::move(scalars);
}

}  // namespace dynvm::ir
