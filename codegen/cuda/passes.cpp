// See passes.h.
#include "codegen/cuda/passes.h"

#include <algorithm>

namespace dynvm::codegen::cuda {

using ir::KernelNode;
using ir::KernelStore;

Passes::Passes(const ir::Kernel& kernel, const Space& space) : of(ir::node_passes(kernel)), kernel_(kernel), space_(space) {
  for (size_t n = 0; n < kernel.nodes.size(); ++n) {
    if (!space.needed[n]) of[n] = 0;
    else if (ir::is_reduce(kernel.nodes[n].op)) last = std::max(last, of[n] - 1);
  }
  for (const KernelStore& store : kernel.stores)
    if (is_full_store(store)) {
      has_full_store = true;
      for (int32_t n : {store.node, store.at, store.holds})
        if (n >= 0) last = std::max(last, of[static_cast<size_t>(n)]);
    }
}

bool Passes::is_full_store(const KernelStore& store) const { return ir::is_full_store(kernel_, space_.dims, store); }

std::vector<size_t> Passes::reductions(int pass) const {
  std::vector<size_t> found;
  for (size_t n = 0; n < kernel_.nodes.size(); ++n)
    if (space_.needed[n] && ir::is_reduce(kernel_.nodes[n].op) && of[n] == pass + 1) found.push_back(n);
  return found;
}

std::vector<bool> Passes::goals(int pass) const {
  std::vector<bool> wanted(kernel_.nodes.size(), false);
  for (size_t n : reductions(pass)) wanted[static_cast<size_t>(kernel_.nodes[n].a)] = true;
  if (pass == last)
    for (const KernelStore& store : kernel_.stores)
      if (is_full_store(store))
        for (int32_t n : {store.node, store.at, store.holds})
          if (n >= 0) wanted[static_cast<size_t>(n)] = true;
  return wanted;
}

Passes::Uses Passes::uses() const {
  Uses out{std::vector<int>(kernel_.nodes.size(), -1), std::vector<int>(kernel_.nodes.size(), -1)};
  for (int pass = 0; pass <= last; ++pass) {
    std::vector<bool> wanted = goals(pass);
    for (size_t n = kernel_.nodes.size(); n-- > 0;) {
      if (!wanted[n] || !space_.full[n]) continue;
      if (out.first[n] < 0) out.first[n] = pass;
      out.last[n] = pass;
      if (out.first[n] < pass) continue;
      for (int32_t operand : {kernel_.nodes[n].a, kernel_.nodes[n].b, kernel_.nodes[n].c})
        if (operand >= 0) wanted[static_cast<size_t>(operand)] = true;
    }
  }
  return out;
}

int64_t Passes::held_bytes(const Uses& uses) const {
  int64_t most = 0;
  for (int pass = 0; pass < last; ++pass) {
    int64_t bytes = 0;
    for (size_t n = 0; n < uses.first.size(); ++n)
      if (uses.first[n] >= 0 && uses.first[n] <= pass && uses.last[n] > pass) bytes += std::max(4, ir::dtype_size(kernel_.nodes[n].dtype));
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace dynvm::codegen::cuda
