// early: moves kernels up, where that frees more memory than it takes.
//
// fuse emits a kernel when somebody needs what it computes. A backward's sums over the batch are needed by the optimizer only, behind all of the backward; until then
// they keep activations and gradients of each layer alive that are much larger than they are. Eager computes them at once.
//
// A kernel may go up if it is the first to touch all that it writes: that memory has no earlier value which an exit could miss, and nobody sees it before it is handed
// out. It goes to just behind the last of its operands and of the writes to what it reads. It does go where the storages that nothing needs longer but kernels of this
// kind are larger than what it writes.
//
// One walk in the order of the trace, so that what depends on a kernel that has moved can follow it. Traces with symbols stay as they are: there is no telling sizes.
// Tests: tests/ir/passes/early.
#include <algorithm>
#include <map>

#include "ir/effects.h"
#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"
#include "ir/plan.h"

namespace dynvm::ir {
namespace {

class Early {
 public:
  explicit Early(Trace& trace) : trace_(trace), movable_(trace.insts.size(), false) {}

  void run() {
    all_ = storage_lifetimes(trace_);
    bool any = false;
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      if (trace_.insts[ref].op != Op::k_kernel || trace_.insts[ref].sunk) continue;
      const std::vector<int32_t> writes = tensor_effects(trace_, ref).writes;
      movable_[ref] = std::all_of(writes.begin(), writes.end(), [&](int32_t storage) { return all_[storage].kind != StoragePlan::kInput && all_[storage].first == ref; });
      any = any || movable_[ref];
    }
    if (!any) return;
    others_ = storage_lifetimes(trace_, movable_);
    std::vector<Ref> place(trace_.insts.size());                   // where an instruction is now: behind this one, if it is another one
    std::vector<Ref> last_write(trace_.num_storages, 0);
    std::map<Ref, std::vector<Ref>> behind;
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const Inst& inst = trace_.insts[ref];
      const TensorEffects effects = tensor_effects(trace_, ref);
      place[ref] = ref;
      if (movable_[ref] && frees(ref, effects)) {
        Ref after = 0;
        for (uint32_t k = 0; k < inst.count; ++k) after = std::max(after, place[trace_.arg(inst, k)]);
        for (int32_t storage : effects.reads) after = std::max(after, last_write[storage]);
        while (trace_.insts[after + 1].op == Op::k_result) ++after;  // a call's results stay together
        if (after + 1 < ref) {
          behind[after].push_back(ref);
          place[ref] = after;
        }
      }
      for (int32_t storage : effects.writes) last_write[storage] = place[ref];
    }
    if (behind.empty()) return;
    std::vector<Ref> order;
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      if (place[ref] == ref) order.push_back(ref);
      if (const auto moved = behind.find(ref); moved != behind.end()) order.insert(order.end(), moved->second.begin(), moved->second.end());
    }
    Replacements none(trace_.insts.size());
    rebuild(&trace_, order, &none);
  }

 private:
  bool frees(Ref ref, const TensorEffects& effects) const {
    int64_t gain = 0;
    for (int32_t storage : effects.reads) {
      const StoragePlan::Kind kind = all_[storage].kind;
      const Ref last = others_[storage].last;
      const bool ours = kind == StoragePlan::kArena || kind == StoragePlan::kResult;  // neither an input nor handed out
      if (ours && (last == kNoRef || last < ref)) gain += all_[storage].bytes;
    }
    for (int32_t storage : effects.writes) gain -= all_[storage].bytes;
    return gain > 0;
  }

  Trace& trace_;
  std::vector<bool> movable_;
  std::vector<StoragePlan> all_, others_;  // lifetimes; the same without the kernels that may go up
};

}  // namespace

void pass_early(Trace& trace, const PassOptions&) {
  if (trace.symbols.empty()) Early(trace).run();
}

}  // namespace dynvm::ir
