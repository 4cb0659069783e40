// See mirrors.h.
#include "runtime/exec/mirrors.h"

#include <utility>

#include "ir/effects.h"

namespace dynvm::runtime {
namespace {

using codegen::cuda::MirroredStore;
using ir::Op;
using ir::Ref;

class Planner {
 public:
  Planner(const ir::Trace& trace, TracePrograms* programs) : trace_(trace), programs_(*programs) {}

  MirrorPlan run() {
    plan_.of_read.assign(trace_.insts.size(), -1);
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref)
      if (trace_.insts[ref].op == Op::k_read_scalar) plan_.of_read[ref] = mirror_of(ref);
    return std::move(plan_);
  }

 private:
  int32_t mirror_of(Ref read) {
    const ir::TensorMeta& meta = trace_.metas[trace_.insts[trace_.arg(read, 0)].meta];
    if (meta.device_type != 1 || ir::elements(meta) != 1 || meta.open != 0 || meta.symbolic || ir::dtype_size(meta.dtype) > 8) return -1;
    Ref latest = read;  // work on a GPU
    do {
      if (latest == 0) return -1;
      --latest;
    } while (queues_nothing(latest));
    if (!is_kernel(latest)) return -1;
    const ir::Kernel& kernel = trace_.kernels[trace_.insts[latest].imm];
    int32_t store = -1;
    for (size_t s = 0; s < kernel.stores.size(); ++s) {
      const ir::KernelOperand& operand = kernel.operands[static_cast<size_t>(kernel.stores[s].operand)];
      if (operand.pointer != meta.storage) continue;
      if (store >= 0 || kernel.stores[s].has_place() || operand.dtype != meta.dtype || operand.offset != meta.offset || !is_one_point(kernel, operand)) return -1;
      store = static_cast<int32_t>(s);
    }
    if (store < 0 || ir::attends(kernel)) return -1;
    std::vector<MirroredStore>& of_kernel = plan_.of_kernel[latest];
    for (const MirroredStore& each : of_kernel)
      if (each.store == store) return each.pointer;
    const auto storage = static_cast<int32_t>(programs_.spec.storages.size());
    programs_.spec.storages.push_back({.kind = bridge::StorageSpec::kMirror});
    plan_.storages.push_back(storage);
    of_kernel.push_back({store, storage});
    return storage;
  }

  // Stored once in a launch: all dims that have more than one point are reduced.
  static bool is_one_point(const ir::Kernel& kernel, const ir::KernelOperand& operand) {
    for (size_t d = 0; d < kernel.sizes.size(); ++d)
      if (kernel.sizes[d] != 1 && (operand.strides[d] != 0 || (kernel.reduce_dims >> d & 1) == 0)) return false;
    return true;
  }

  bool is_kernel(Ref ref) const {
    const ir::Inst& inst = trace_.insts[ref];
    return inst.op == Op::k_kernel && !inst.sunk && trace_.metas[trace_.insts[trace_.arg(inst, 0)].meta].device_type == 1;
  }

  // It puts no work on a GPU, as far as is known: what it calls is the trace's own, or looks at Python's memory only.
  bool queues_nothing(Ref ref) const {
    const ir::Inst& inst = trace_.insts[ref];
    if (inst.sunk) return true;
    switch (inst.op) {
      case Op::k_aten: return programs_.plan.call[ref] < 0;
      case Op::k_kernel: return !is_kernel(ref);
      case Op::k_wrap: {  // of memory that is handed out as it is
        const bridge::WrapSpec& wrap = programs_.spec.wraps[static_cast<size_t>(programs_.plan.wrap[ref])];
        const bridge::StorageSpec::Kind kind = programs_.spec.storages[static_cast<size_t>(programs_.spec.tensors[static_cast<size_t>(wrap.tensor)].storage)].kind;
        return wrap.forward.empty() && (kind == bridge::StorageSpec::kInput || kind == bridge::StorageSpec::kFresh);
      }
      case Op::k_call_known:
      case Op::k_call_apart:
      case Op::k_call_pure:
      case Op::k_call_new: return false;
      default: return !ir::is_barrier(inst);
    }
  }

  const ir::Trace& trace_;
  TracePrograms& programs_;
  MirrorPlan plan_;
};

}  // namespace

MirrorPlan plan_mirrors(const ir::Trace& trace, TracePrograms* programs) { return Planner(trace, programs).run(); }

}  // namespace dynvm::runtime
