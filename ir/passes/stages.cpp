// stages: makes one kernel for each pass of a reduction, where one kernel for all of them would keep few of a GPU's multiprocessors at work.
//
// A kernel with several passes over its reduced dims (kernel.h), or one that stores at each point what a reduction gave, has all points of a kept point in one block: no other could wait for
// the reduction. Batch norm of 64 channels has 64 rows, or two blocks of columns, then. Here each pass becomes a kernel of its own:
//
//     m = reduce_sum(x);  v = reduce_sum(sq(sub(x, m)));  store y <- mul(sub(x, m), v)
//
//     t0 <- reduce_sum(x)    |    m = load t0;  t1 <- reduce_sum(sq(sub(x, m)))    |    m = load t0;  v = load t1;  store y <- mul(sub(x, m), v)
//
// whose reductions are split over blocks (codegen/cuda/render.h), and whose last one is over points alone. t0 and t1 are memory of the trace, one value for each kept point. It reads no more
// often from memory than passes do, but for rows that would have stayed within a block; what it costs is a launch for each.
//
// A store goes with the first kernel that can compute it. What costs more to compute again than to read (three times its bytes or more are loaded for it: a gradient behind a pooling of
// windows) is stored by the first kernel that has it and read by the others, as is what is stored anyway.
//
// Invariant: what a kernel loads is as it was before the first one. So there are stages only where no pass's stores write what a later one loads. Not for scans, attention, sizes that only a
// run tells, or the places of extremes, whose reductions are not split.
// Tests: tests/ir/passes/stages, tests/ir/fuse_fuzz.cpp.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>

#include "ir/kernel/symbols.h"
#include "ir/lower/lower.h"
#include "ir/passes/fusion_group.h"
#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"
#include "runtime/base/check.h"
#include "runtime/base/heuristics.h"

namespace dynvm::ir {
namespace {

// Columns that a block of a GPU takes, and so the blocks of a kernel whose kept dim is the inner one.
constexpr int64_t kColumnsOfBlock = 32;
// Bytes that are loaded for a byte of a value from which on it is stored rather than computed again: it is written once and read once then.
constexpr int64_t kDearerThanMemory = 3;

// When each node and store of a kernel can be computed.
struct Schedule {
  std::vector<int> of;        // node_passes
  std::vector<int> last;      // by node: the last kernel that needs it; -1: none
  std::vector<int> of_store;  // by store: it is in the kernel of this pass
  int passes = 0;             // with reductions
  int kernels = 0;            // one more where something is stored of each point behind the last of them
};

// The last kernel that needs each node.
void find_last(const Kernel& kernel, Schedule* when) {
  when->last.assign(kernel.nodes.size(), -1);
  const auto need = [&](int32_t n, int by) {
    if (n >= 0) when->last[static_cast<size_t>(n)] = std::max(when->last[static_cast<size_t>(n)], by);
  };
  for (size_t s = 0; s < kernel.stores.size(); ++s)
    for (int32_t n : {kernel.stores[s].node, kernel.stores[s].at, kernel.stores[s].holds}) need(n, when->of_store[s]);
  for (size_t n = kernel.nodes.size(); n-- > 0;) {
    const KernelNode& node = kernel.nodes[n];
    if (when->last[n] < 0) continue;
    const int by = is_reduce(node.op) ? when->of[n] - 1 : when->last[n];
    for (int32_t operand : {node.a, node.b, node.c}) need(operand, by);
  }
}

Schedule schedule(const Kernel& kernel) {
  Schedule out;
  out.of = node_passes(kernel);
  if (!out.of.empty()) out.passes = *std::max_element(out.of.begin(), out.of.end());
  const std::vector<uint32_t> dims = node_dims(kernel);
  std::vector<bool> full;
  for (const KernelStore& store : kernel.stores) {
    full.push_back(is_full_store(kernel, dims, store));
    int behind = 0;
    for (int32_t n : {store.node, store.at, store.holds})
      if (n >= 0) behind = std::max(behind, out.of[static_cast<size_t>(n)]);
    out.of_store.push_back(full.back() ? behind : std::max(behind, 1) - 1);
  }
  // What is stored at each point over something that later kernels load waits for these.
  for (bool changed = true; changed;) {
    find_last(kernel, &out);
    changed = false;
    for (size_t s = 0; s < kernel.stores.size(); ++s)
      for (size_t n = 0; full[s] && n < kernel.nodes.size(); ++n) {
        if (!reads_memory(kernel.nodes[n].op) || out.last[n] <= out.of_store[s]) continue;
        if (kernel.operands[static_cast<size_t>(kernel.nodes[n].operand)].pointer != kernel.operands[static_cast<size_t>(kernel.stores[s].operand)].pointer) continue;
        out.of_store[s] = out.last[n];
        changed = true;
      }
  }
  out.kernels = out.passes;
  for (int of : out.of_store) out.kernels = std::max(out.kernels, of + 1);
  return out;
}

// Does no kernel of the schedule store what a later one loads or stores, too?
bool keeps_order(const Kernel& kernel, const Schedule& when) {
  std::vector<int> first_store(kernel.operands.size(), std::numeric_limits<int>::max());  // by operand, of its pointer
  for (size_t s = 0; s < kernel.stores.size(); ++s)
    for (size_t o = 0; o < kernel.operands.size(); ++o)
      if (kernel.operands[o].pointer == kernel.operands[static_cast<size_t>(kernel.stores[s].operand)].pointer) first_store[o] = std::min(first_store[o], when.of_store[s]);
  for (size_t s = 0; s < kernel.stores.size(); ++s)
    if (when.of_store[s] > first_store[static_cast<size_t>(kernel.stores[s].operand)]) return false;
  for (size_t n = 0; n < kernel.nodes.size(); ++n)
    if (reads_memory(kernel.nodes[n].op) && when.last[n] > first_store[static_cast<size_t>(kernel.nodes[n].operand)]) return false;
  return true;
}

class Stages {
 public:
  Stages(Trace& trace, const PassOptions& options) : trace_(trace), options_(options) {}

  void run() {
    const auto count = static_cast<Ref>(trace_.insts.size());
    bool changed = false;
    for (Ref ref = 0; ref < count; ++ref) {
      const bool made = trace_.insts[ref].op == Op::k_kernel && divide(ref);
      changed = changed || made;
      if (!made) order_.push_back(ref);
    }
    if (!changed) return;
    for (Kernel& kernel : trace_.kernels) kernel.num_pointers = trace_.num_storages;
    Replacements none(trace_.insts.size());
    rebuild(&trace_, order_, &none);
  }

 private:
  // Would the kernel's blocks be few, for much memory?
  bool is_wanted(const Kernel& kernel, const Schedule& when) const {
    if (when.passes == 0 || when.kernels < 2 || has_symbols(kernel) || has_scan(kernel) || attends(kernel)) return false;
    if (std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [](const KernelNode& node) { return is_arg_reduce(node.op); })) return false;
    int64_t kept = 1;
    for (size_t d = 0; d < kernel.sizes.size(); ++d)
      if (!(kernel.reduce_dims >> d & 1)) kept *= kernel.sizes[d];
    const int64_t points = kernel.num_points();
    if (points == 0) return false;
    const std::vector<uint32_t> dims = node_dims(kernel);
    int64_t bytes = 0, along_kept = 0;
    const auto look = [&](int32_t operand) {
      const KernelOperand& memory = kernel.operands[static_cast<size_t>(operand)];
      int64_t least[2] = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()}, elements = 1;
      for (size_t d = 0; d < kernel.sizes.size(); ++d) {
        if (kernel.sizes[d] == 1 || memory.strides[d] == 0) continue;
        int64_t& stride = least[kernel.reduce_dims >> d & 1];
        stride = std::min(stride, std::abs(memory.strides[d]));
        elements *= kernel.sizes[d];
      }
      bytes += elements * dtype_size(memory.dtype);
      along_kept += (least[0] < least[1] ? elements : -elements) * dtype_size(memory.dtype);
    };
    for (const KernelNode& node : kernel.nodes)
      if (node.op == KOp::k_load) look(node.operand);
    for (const KernelStore& store : kernel.stores)
      if (!store.has_place()) look(store.operand);
    const base::Heuristics& limits = base::heuristics();
    if (bytes < options_.stages_from) return false;
    if (along_kept > 0) return (kept + kColumnsOfBlock - 1) / kColumnsOfBlock < limits.cuda_stage_blocks;
    return kept < limits.cuda_stage_blocks && bytes / kept >= std::min<int64_t>(int64_t{limits.cuda_shared} << 10, options_.stages_from);  // less stays within its block
  }

  // The strides of one value for each kept point.
  static std::vector<int64_t> kept_strides(const Kernel& kernel) {
    std::vector<int64_t> strides(kernel.sizes.size(), 0);
    int64_t kept = 1;
    for (size_t d = kernel.sizes.size(); d-- > 0;) {
      if (kernel.reduce_dims >> d & 1) continue;
      if (kernel.sizes[d] != 1) strides[d] = kept;
      kept *= kernel.sizes[d];
    }
    return strides;
  }

  // Those of an operand in whose layout each point has memory of its own, without gaps; empty: there is none.
  static std::vector<int64_t> full_strides(const Kernel& kernel) {
    for (const KernelOperand& operand : kernel.operands) {
      std::vector<std::pair<int64_t, int64_t>> steps;
      for (size_t d = 0; d < kernel.sizes.size(); ++d)
        if (kernel.sizes[d] != 1) steps.push_back({operand.strides[d], kernel.sizes[d]});
      std::sort(steps.begin(), steps.end());
      int64_t points = 1;
      if (std::all_of(steps.begin(), steps.end(), [&](const auto& step) { return step.first == std::exchange(points, points * step.second); })) return operand.strides;
    }
    return {};
  }

  // The part stores the node's value to memory of the trace's own; for the kernels behind it the node is a load of that.
  void hand_on(size_t n, const std::vector<int64_t>& strides, Lowered* part, Lowered* whole) {
    const TensorMeta& like = trace_.metas[trace_.insts[whole->tensors[0]].meta];
    TensorMeta meta;
    meta.dtype = whole->kernel.nodes[n].dtype;
    meta.device_type = like.device_type;
    meta.device_index = like.device_index;
    for (size_t d = 0; d < strides.size(); ++d) {
      if (strides[d] == 0) continue;
      meta.sizes.push_back(whole->kernel.sizes[d]);
      meta.strides.push_back(strides[d]);
    }
    const auto operand = static_cast<int32_t>(whole->kernel.operands.size());
    const KernelOperand memory{meta.dtype, strides, 0, trace_.num_storages};
    const Ref value = add_empty(&trace_, std::move(meta), &order_);
    for (Lowered* each : {part, whole}) {
      each->kernel.operands.push_back(memory);
      each->tensors.push_back(value);
    }
    part->kernel.add_store(operand, static_cast<int32_t>(n));
    becomes_load(&whole->kernel.nodes[n], operand);
  }

  static void becomes_load(KernelNode* node, int32_t operand) {
    KernelNode load;
    load.op = KOp::k_load;
    load.dtype = node->dtype;
    load.operand = operand;
    *node = load;
  }

  // A full value that the kernels behind one may read.
  struct Kept {
    int pass;         // whose kernel stores it
    int32_t operand;  // where; -1: memory is to be made
  };

  // By node. makes_memory: it can be made.
  static std::map<size_t, Kept> kept_values(const Kernel& kernel, const Schedule& when, bool makes_memory) {
    std::map<size_t, Kept> found;
    const std::vector<uint32_t> dims = node_dims(kernel);
    const auto is_full = [&](size_t n) { return (dims[n] & kernel.reduce_dims) != 0; };
    // What each kernel computes, but for what earlier ones have kept.
    const auto needed = [&](int pass) {
      std::vector<bool> out(kernel.nodes.size(), false);
      for (size_t s = 0; s < kernel.stores.size(); ++s)
        if (when.of_store[s] == pass)
          for (int32_t n : {kernel.stores[s].node, kernel.stores[s].at, kernel.stores[s].holds})
            if (n >= 0) out[static_cast<size_t>(n)] = true;
      for (size_t n = kernel.nodes.size(); n-- > 0;) {
        const bool reduces = is_reduce(kernel.nodes[n].op);
        if (reduces && when.of[n] == pass + 1 && when.last[n] >= 0) out[n] = true;
        const auto kept = found.find(n);
        if (!out[n] || (reduces && when.of[n] <= pass) || (kept != found.end() && kept->second.pass < pass)) continue;
        for (int32_t operand : {kernel.nodes[n].a, kernel.nodes[n].b, kernel.nodes[n].c})
          if (operand >= 0) out[static_cast<size_t>(operand)] = true;
      }
      return out;
    };
    std::vector<std::vector<bool>> by_pass;
    for (size_t n = kernel.nodes.size(); n-- > 0;) {
      if (!is_full(n) || reads_memory(kernel.nodes[n].op)) continue;
      if (by_pass.empty())
        for (int pass = 0; pass < when.kernels; ++pass) by_pass.push_back(needed(pass));
      int first = -1;
      bool again = false;
      for (int pass = 0; pass < when.kernels; ++pass)
        if (by_pass[static_cast<size_t>(pass)][n]) first < 0 ? first = pass : again = true;
      if (!again) continue;
      std::vector<bool> below(kernel.nodes.size(), false);
      below[n] = true;
      int64_t loaded = 0;
      for (size_t m = n + 1; m-- > 0;) {
        if (!below[m] || is_reduce(kernel.nodes[m].op)) continue;
        if (reads_memory(kernel.nodes[m].op) && is_full(m)) loaded += dtype_size(kernel.nodes[m].dtype);
        for (int32_t operand : {kernel.nodes[m].a, kernel.nodes[m].b, kernel.nodes[m].c})
          if (operand >= 0) below[static_cast<size_t>(operand)] = true;
      }
      const int64_t own = dtype_size(kernel.nodes[n].dtype);
      for (size_t s = 0; s < kernel.stores.size() && found.count(n) == 0; ++s)
        if (kernel.stores[s].node == static_cast<int32_t>(n) && when.of_store[s] == first && !kernel.stores[s].has_place() && is_full_store(kernel, dims, kernel.stores[s]) && loaded >= own)
          found[n] = {first, kernel.stores[s].operand};
      if (found.count(n) == 0 && makes_memory && loaded >= kDearerThanMemory * own) found[n] = {first, -1};
      if (found.count(n) != 0) by_pass.clear();
    }
    return found;
  }

  // Puts kernels in the place of this one. False: it stays.
  bool divide(Ref ref) {
    const Inst inst = trace_.insts[ref];
    Lowered whole{trace_.kernels[static_cast<size_t>(inst.imm)], {}, {}};
    const size_t operands = whole.kernel.operands.size();
    for (size_t k = 0; k < inst.count; ++k) (k < operands ? whole.tensors : whole.scalars).push_back(trace_.arg(inst, static_cast<uint32_t>(k)));
    if (operands == 0 || trace_.metas[trace_.insts[whole.tensors[0]].meta].device_type != options_.stages_device) return false;
    const Schedule when = schedule(whole.kernel);
    if (!is_wanted(whole.kernel, when) || !keeps_order(whole.kernel, when)) return false;

    const std::vector<int64_t> of_kept = kept_strides(whole.kernel), of_full = full_strides(whole.kernel);
    const std::map<size_t, Kept> kept = kept_values(whole.kernel, when, !of_full.empty());
    const std::vector<KernelStore> stores = whole.kernel.stores;
    const std::string name = whole.kernel.name;
    for (int pass = 0; pass < when.kernels; ++pass) {
      Lowered part = whole;
      part.kernel.stores.clear();
      for (size_t s = 0; s < stores.size(); ++s)
        if (when.of_store[s] == pass) part.kernel.stores.push_back(stores[s]);
      // What this pass reduces is stored where others need it, and is a load for these.
      for (size_t n = 0; n < when.of.size(); ++n)
        if (is_reduce(part.kernel.nodes[n].op) && when.of[n] == pass + 1 && when.last[n] > pass) hand_on(n, of_kept, &part, &whole);
      for (const auto& [n, value] : kept) {
        if (value.pass != pass) continue;
        if (value.operand < 0) hand_on(n, of_full, &part, &whole);
        else becomes_load(&whole.kernel.nodes[n], value.operand);
      }
      part.kernel.num_pointers = trace_.num_storages;
      FusionGroup group(std::move(part));
      if (!group.prune([](int32_t) { return true; })) continue;
      Lowered body = group.body();
      body.kernel.name = name + "_" + std::to_string(pass + 1);
      const bool last = pass + 1 == when.kernels;
      add(ref, body, last ? inst.imm : -1);
    }
    return true;
  }

  // kernel: the number of the one in whose place it comes; -1: it is new.
  void add(Ref ref, const Lowered& body, int64_t number) {
    const auto before = static_cast<size_t>(trace_.insts[ref].imm);
    const base::Status status = verify_kernel(body.kernel);
    DYNVM_CHECK(status.ok(), "stages made a kernel that does not verify: {}", status.message());
    if (number >= 0) {
      trace_.kernels[static_cast<size_t>(number)] = body.kernel;
    } else {
      number = static_cast<int64_t>(trace_.kernels.size());
      trace_.kernels.push_back(body.kernel);
      trace_.kernel_op_counts.resize(trace_.kernels.size(), 0);
      trace_.kernel_origins.resize(trace_.kernels.size());
      trace_.kernel_origins.back() = trace_.kernel_origins[before];
    }
    trace_.origin = trace_.insts[ref].origin;
    std::vector<Ref> arguments = body.tensors;
    arguments.insert(arguments.end(), body.scalars.begin(), body.scalars.end());
    order_.push_back(trace_.add(Op::k_kernel, Type::kVoid, arguments, number));
  }

  Trace& trace_;
  const PassOptions& options_;
  std::vector<Ref> order_;
};

}  // namespace

void pass_stages(Trace& trace, const PassOptions& options) { Stages(trace, options).run(); }

}  // namespace dynvm::ir
