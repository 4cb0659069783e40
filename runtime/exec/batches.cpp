// See batches.h.
#include "runtime/exec/batches.h"

#include <algorithm>
#include <set>

#include "codegen/cuda/batch.h"
#include "runtime/base/switches.h"

namespace dynvm::runtime {
namespace {

using ir::Op;
using ir::Ref;

class Batches {
 public:
  Batches(const ir::Trace& trace, TracePrograms* programs) : trace_(trace), programs_(*programs) {}

  std::vector<std::vector<Ref>> run() {
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const ir::Inst& inst = trace_.insts[ref];
      if (does_nothing(ref)) continue;
      if (!is_kernel(ref)) {
        finish();
        continue;
      }
      if (ref == programs_.plan.arranged_at || conflicts(trace_.kernels[inst.imm])) finish();
      together_.push_back(ref);
      note(trace_.kernels[inst.imm]);
    }
    finish();
    for (const std::vector<Ref>& batch : batches_) {
      std::vector<int32_t>& first = programs_.plan.allocate[batch[0]];
      for (size_t k = 1; k < batch.size(); ++k) {
        std::vector<int32_t>& own = programs_.plan.allocate[batch[k]];
        first.insert(first.end(), own.begin(), own.end());
        own.clear();
      }
    }
    return std::move(batches_);
  }

 private:
  struct Open {
    codegen::cuda::BatchForm form;
    int device;
    size_t batch;
  };

  bool is_kernel(Ref ref) const { return trace_.insts[ref].op == Op::k_kernel && meta(ref).device_type == 1; }
  const ir::TensorMeta& meta(Ref ref) const { return trace_.metas[trace_.insts[trace_.arg(trace_.insts[ref], 0)].meta]; }

  bool does_nothing(Ref ref) const {
    const ir::Inst& inst = trace_.insts[ref];
    return inst.sunk || inst.op == Op::k_result || inst.op == Op::k_draw_seed || inst.op == Op::k_draw_offset || (inst.op == Op::k_aten && programs_.plan.call[ref] < 0 && programs_.plan.allocate[ref].empty());
  }

  // --- memory
  struct Bytes {
    int64_t first, last;
  };
  // A storage's place in the arena, where it has one.
  bool place(int32_t storage, Bytes* bytes) const {
    const bridge::StorageSpec& spec = programs_.spec.storages[static_cast<size_t>(storage)];
    if (spec.kind != bridge::StorageSpec::kArena || spec.bytes == 0) return false;
    *bytes = {spec.arena_offset, spec.arena_offset + spec.bytes};
    return true;
  }
  bool meets(int32_t storage, const std::set<int32_t>& others) const {
    if (others.count(storage) != 0) return true;
    Bytes mine, theirs;
    if (!place(storage, &mine)) return false;
    return std::any_of(others.begin(), others.end(), [&](int32_t other) { return place(other, &theirs) && mine.first < theirs.last && theirs.first < mine.last; });
  }
  static std::set<int32_t> stored(const ir::Kernel& kernel) {
    std::set<int32_t> storages;
    for (const ir::KernelStore& store : kernel.stores) storages.insert(kernel.operands[static_cast<size_t>(store.operand)].pointer);
    return storages;
  }
  bool conflicts(const ir::Kernel& kernel) const {
    const std::set<int32_t> writes = stored(kernel);
    return std::any_of(writes.begin(), writes.end(), [&](int32_t storage) { return meets(storage, touched_); }) ||
           std::any_of(kernel.operands.begin(), kernel.operands.end(), [&](const ir::KernelOperand& operand) { return meets(operand.pointer, written_); });
  }
  void note(const ir::Kernel& kernel) {
    written_.merge(stored(kernel));
    for (const ir::KernelOperand& operand : kernel.operands) touched_.insert(operand.pointer);
  }

  // What has come together, by form.
  void finish() {
    std::vector<Open> open;
    for (Ref ref : together_) {
      const ir::Kernel& kernel = trace_.kernels[trace_.insts[ref].imm];
      Open mine{{}, meta(ref).device_index, batches_.size()};
      if (together_.size() < 2 || base::left_out(base::Part::kBatches) || !trace_.symbols.empty() || !codegen::cuda::batch_form(kernel, &mine.form)) {
        batches_.push_back({ref});
        continue;
      }
      const auto known = std::find_if(open.begin(), open.end(), [&](const Open& each) {
        return each.device == mine.device && each.form.kernel == mine.form.kernel && batches_[each.batch].size() < codegen::cuda::batch_limit(mine.form);
      });
      if (known != open.end()) {
        batches_[known->batch].push_back(ref);
        continue;
      }
      batches_.push_back({ref});
      open.push_back(std::move(mine));
    }
    together_.clear();
    touched_.clear();
    written_.clear();
  }

  const ir::Trace& trace_;
  TracePrograms& programs_;
  std::vector<Ref> together_;  // kernels between which nothing else is done
  std::set<int32_t> touched_, written_;  // storages, by these
  std::vector<std::vector<Ref>> batches_;
};

}  // namespace

std::vector<std::vector<Ref>> kernel_batches(const ir::Trace& trace, TracePrograms* programs) { return Batches(trace, programs).run(); }

}  // namespace dynvm::runtime
