// inplace: what a kernel computes lies in the memory of an operand that it is the last to need.
//
// A library's product, then gelu, then the next product: three buffers, of which two are alive at a time. Where the kernel in the middle loads each element just where it stores one, its
// result can have the product's memory. That is what relu_ in place of relu does for a script, and what is alive at once, in caches, arenas and graphs' pools, is less by as much.
//
// It is so where
//
//   - the operand's memory was made in this trace, nobody outside has it, and the kernel is the last to touch it (plan.h's lifetimes: no exit, object or graph needs it later);
//   - the kernel is the first to touch the result's memory;
//   - both are as long, and what the kernel loads of the one and stores to the other is of one geometry and dtype, never at places that data says.
//
// Then all tensors on the operand's memory lie on the result's from the beginning, and the kernel works in place, which compilers see by its pointers (kernel.h). If the result is handed
// out, so is the memory that the operand was computed into.
//
// One walk in the order of the trace, so that a chain of kernels shares one memory.
//
// On GPUs what is done with inside of a CUDA graph lies in memory of the graph's own, and library calls that work on other memory, which lies elsewhere in each run, can be in no graph
// (runtime/exec/stretches.h). So there memory is shared only where none of it is handed out and nothing that ends a stretch stands between its first and last use; and only if it is large
// (inplace_from).
// Tests: tests/ir/passes/inplace, tests/ir/fuse_fuzz.cpp.
#include <algorithm>

#include "ir/effects.h"
#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"
#include "ir/plan.h"

namespace dynvm::ir {
namespace {

class InPlace {
 public:
  InPlace(Trace& trace, const PassOptions& options) : trace_(trace), options_(options), stays_(trace.num_storages, false), on_gpu_(trace.num_storages, false) {}

  void run() {
    lifetimes_ = storage_lifetimes(trace_);
    for (const TensorMeta& meta : trace_.metas) {
      if (meta.storage < 0) continue;
      const auto storage = static_cast<size_t>(meta.storage);
      on_gpu_[storage] = meta.device_type != 0;
      if (meta.open != 0 || !meta.shown.empty() || lifetimes_[storage].shared) stays_[storage] = true;
    }
    for (const Inst& inst : trace_.insts) stretch_.push_back((stretch_.empty() ? 0 : stretch_.back()) + ends_stretch(inst));
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref)
      if (trace_.insts[ref].op == Op::k_kernel && !trace_.insts[ref].sunk) share(ref);
    take_versions_back();
  }

 private:
  // How a kernel works on a storage.
  struct Use {
    int32_t operand = -1;   // the one by which it does; -1: it does not, -2: by several, or at places that data says
    bool loads = false, stores = false;
  };

  Use use_of(const Kernel& kernel, int32_t storage) const {
    Use use;
    const auto by = [&](int32_t operand, bool placed) {
      const KernelOperand& memory = kernel.operands[static_cast<size_t>(operand)];
      const bool same = use.operand == -1 || (use.operand >= 0 && memory == kernel.operands[static_cast<size_t>(use.operand)]);
      use.operand = placed || !same ? -2 : use.operand == -1 ? operand : use.operand;
    };
    for (const KernelNode& node : kernel.nodes) {
      if (!reads_memory(node.op) || kernel.operands[static_cast<size_t>(node.operand)].pointer != storage) continue;
      by(node.operand, node.op != KOp::k_load);
      use.loads = true;
    }
    for (const KernelStore& store : kernel.stores) {
      if (kernel.operands[static_cast<size_t>(store.operand)].pointer != storage) continue;
      by(store.operand, store.has_place());
      use.stores = true;
    }
    return use;
  }

  bool ends_stretch(const Inst& inst) const {
    if (inst.sunk) return false;
    if (inst.op == Op::k_aten) return trace_.calls[static_cast<size_t>(inst.imm)].is_random || trace_.calls[static_cast<size_t>(inst.imm)].defines_sizes;
    return is_barrier(inst) || inst.op == Op::k_read_scalar;
  }

  bool is_wanted(int32_t storage, const StoragePlan& from, const StoragePlan& to) const {
    if (from.bytes != to.bytes || to.bytes == 0) return false;
    return !on_gpu_[static_cast<size_t>(storage)] || (to.bytes >= options_.inplace_from && to.kind == StoragePlan::kArena && stretch_[from.first] == stretch_[to.last]);
  }

  void share(Ref ref) {
    const auto number = static_cast<size_t>(trace_.insts[ref].imm);
    for (size_t s = 0; s < trace_.kernels[number].stores.size(); ++s) {
      const Kernel& kernel = trace_.kernels[number];
      const int32_t result = kernel.operands[static_cast<size_t>(kernel.stores[s].operand)].pointer;
      StoragePlan& to = lifetimes_[static_cast<size_t>(result)];
      if (to.kind == StoragePlan::kInput || to.first != ref || stays_[static_cast<size_t>(result)]) continue;
      const Use stored = use_of(kernel, result);
      if (stored.operand < 0 || stored.loads) continue;
      for (const KernelNode& node : kernel.nodes) {
        if (node.op != KOp::k_load) continue;
        const int32_t operand = kernel.operands[static_cast<size_t>(node.operand)].pointer;
        StoragePlan& from = lifetimes_[static_cast<size_t>(operand)];
        if (from.kind != StoragePlan::kArena || from.last != ref || from.first == ref || !is_wanted(operand, from, to) || stays_[static_cast<size_t>(operand)]) continue;
        const Use loaded = use_of(kernel, operand);
        if (loaded.operand < 0 || loaded.stores || !is_one_place(kernel, loaded.operand, stored.operand)) continue;
        to.first = from.first;
        from = {};
        int64_t advanced = 0;
        Ref of = kNoRef;
        for (Ref before = 0; before < ref; ++before) {
          const Inst& inst = trace_.insts[before];
          if (inst.op != Op::k_bump_version || storage_of(trace_, trace_.arg(inst, 0)) != operand) continue;
          advanced += inst.imm;
          of = trace_.arg(inst, 0);
        }
        for (const Version& version : versions_)  // of what had that memory before
          if (storage_of(trace_, version.of) == operand) advanced -= version.advanced;
        if (advanced != 0) versions_.push_back({ref, of, advanced});
        move_storage(&trace_, operand, result);
        break;
      }
    }
  }

  // Exits before the kernel may show the operand with the version that it has; the result, which has its memory now, begins with one of its own.
  void take_versions_back() {
    if (versions_.empty()) return;
    std::vector<Ref> order;
    const Ref count = static_cast<Ref>(trace_.insts.size());
    std::vector<Ref> back;
    for (const Version& version : versions_) back.push_back(trace_.add(Op::k_bump_version, Type::kVoid, {version.of}, -version.advanced));
    size_t next = 0;
    for (Ref ref = 0; ref < count; ++ref) {
      for (; next < back.size() && versions_[next].kernel == ref; ++next) order.push_back(back[next]);
      order.push_back(ref);
    }
    Replacements none(trace_.insts.size());
    rebuild(&trace_, order, &none);
  }

  static bool is_one_place(const Kernel& kernel, int32_t a, int32_t b) {
    const KernelOperand &load = kernel.operands[static_cast<size_t>(a)], &store = kernel.operands[static_cast<size_t>(b)];
    return load.dtype == store.dtype && load.strides == store.strides && load.offset == store.offset;
  }

  Trace& trace_;
  const PassOptions& options_;
  std::vector<StoragePlan> lifetimes_;
  std::vector<bool> stays_, on_gpu_;   // by storage
  std::vector<int> stretch_;           // by instruction: how many that end a stretch stand up to there
  // A kernel, a tensor whose memory it takes over, and how far that one's version counter has been advanced.
  struct Version {
    Ref kernel, of;
    int64_t advanced;
  };
  std::vector<Version> versions_;
};

}  // namespace

void pass_inplace(Trace& trace, const PassOptions& options) { InPlace(trace, options).run(); }

}  // namespace dynvm::ir
