// epilogue: a matrix product and the activation behind it become the library's call for both.
//
// cuBLASLt applies a bias and relu or gelu (by tanh) to what a product has just computed, before it is stored; torch has that as _addmm_activation, and does both by itself
// where cuBLASLt does not. The product's own result must be nothing that anybody sees: no other instruction, no exit but the activation's own, no rebuilding of a graph for
// autograd. It may be looked at by views in other shapes on the way, as F.linear of a batch of matrices does.
//
// The activation's result is then the product's memory, seen as the activation saw it; in place it is that anyway. Nothing moves: the product is where it was, its operands
// are the same, and between the two nobody reads or writes its result. A product that is a kernel of its own (one row, lower/products.cpp) stays, as the activation joins it there.
// gelu only of 16-bit elements, whose rounding hides how cuBLASLt approximates tanh.
//
// One walk ends it: each activation is met once.
// Tests: tests/ir/passes/epilogue; on a GPU tests/cuda/test_gpu.py.
#include <optional>
#include <string>

#include "ir/effects.h"
#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"
#include "runtime/base/switches.h"

namespace dynvm::ir {
namespace {

// Whether the activation is gelu; none: it is no activation that the library knows.
std::optional<bool> activation(const AtenCall& call) {
  if (call.name == "aten::relu" || call.name == "aten::relu_") return false;
  if (call.name == "aten::gelu" && call.args.size() == 2 && call.args[1].s == "tanh") return true;
  return std::nullopt;
}

class Epilogue {
 public:
  explicit Epilogue(Trace& trace) : trace_(trace), to_(trace.insts.size()), dead_(trace.insts.size(), false) {}

  void run() {
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref)
      if (trace_.insts[ref].op == Op::k_aten && activation(call_of(ref))) join(ref);
    if (any_) rebuild_without(&trace_, dead_, &to_);
  }

 private:
  AtenCall& call_of(Ref aten) { return trace_.calls[trace_.insts[aten].imm]; }

  // The call that gives the tensor: kNoRef where none does.
  Ref maker(Ref tensor) const { return trace_.insts[tensor].op == Op::k_result ? trace_.arg(tensor, 0) : kNoRef; }

  // Who needs each value, the last one first, but for sunk objects that nobody needs and what the snapshot of `without` names.
  void count_uses(Ref without) {
    users_.assign(trace_.insts.size(), {});
    std::vector<bool> needed(trace_.insts.size(), false), seen(trace_.snapshots.size(), false);
    for (Ref ref = static_cast<Ref>(trace_.insts.size()); ref-- > 0;) {
      const Inst& inst = trace_.insts[ref];
      if (dead_[ref] || (inst.sunk && !needed[ref])) continue;
      for (uint32_t k = 0; k < inst.count; ++k) {
        needed[trace_.arg(inst, k)] = true;
        users_[trace_.arg(inst, k)].push_back(ref);
      }
      if (inst.op == Op::k_wrap)
        for (Ref call : trace_.wraps[inst.imm].forward) users_[call].push_back(ref);
      if (ref == without || inst.snapshot < 0 || seen[inst.snapshot]) continue;
      seen[inst.snapshot] = true;
      for_each_value(trace_, trace_.snapshots[inst.snapshot], [&](Ref value) { needed[value] = true; });
    }
  }

  void join(Ref act) {
    const Inst& inst = trace_.insts[act];
    const AtenCall& call = call_of(act);
    if (inst.sunk || inst.count == 0 || call.results.size() != 1) return;
    const Ref seen = trace_.arg(inst, 0);
    std::vector<Ref> way{act};  // from the activation back to the product
    Ref product = maker(seen);
    while (product != kNoRef && is_known_view(trace_, trace_.insts[product])) {
      way.push_back(product);
      product = maker(trace_.arg(product, 0));
    }
    if (product == kNoRef || trace_.insts[product].op != Op::k_aten || trace_.insts[product].sunk) return;
    const AtenCall& mm = call_of(product);
    if (base::left_out(base::SwitchKind::kOp, mm.name) || mm.name != "aten::addmm" || !mm.overload.empty() || mm.args.size() != 5 || mm.results.size() != 1) return;
    const TensorMeta &out = trace_.metas[mm.results[0]], &bias = trace_.metas[trace_.insts[trace_.arg(product, static_cast<uint32_t>(mm.args[0].operands[0]))].meta];
    const TensorMeta& left = trace_.metas[trace_.insts[trace_.arg(product, static_cast<uint32_t>(mm.args[1].operands[0]))].meta];
    const bool gelu = *activation(call);
    if (gelu && !is_reduced_floating(out.dtype)) return;
    if (out.device_type == 0 || bias.sizes.size() != 1 || left.sizes.empty() || left.sizes[0] == 1) return;
    count_uses(act);
    // Each step of the way has the next one as its only user, and so has the result of each call. What is activated in place may be looked at behind that.
    const bool in_place = !call.mutates.empty();
    Ref tensor = seen;
    for (size_t k = 0; k < way.size(); ++k) {
      const std::vector<Ref>& users = users_[tensor];
      const bool alone = k == 0 && in_place ? !users.empty() && users.back() == act : users == std::vector<Ref>{way[k]};
      if (!alone || users_[maker(tensor)] != std::vector<Ref>{tensor}) return;
      if (k + 1 < way.size()) tensor = trace_.arg(way[k + 1], 0);
    }
    Ref result = kNoRef;
    for (Ref user : users_[act]) {
      if (trace_.insts[user].op != Op::k_result || result != kNoRef) return;  // a graph is built of it
      result = user;
    }
    if (result == kNoRef && !in_place) return;
    if (result != kNoRef) {
      const TensorMeta &before = trace_.metas[trace_.insts[seen].meta], &after = trace_.metas[trace_.insts[result].meta];
      if (before.sizes != after.sizes || before.strides != after.strides || before.offset != after.offset || before.dtype != after.dtype) return;
      move_storage(&trace_, after.storage, before.storage);
      dead_[result] = true;
      to_.set(result, seen);
    }
    AtenArg use_gelu;
    use_gelu.kind = AtenArg::kBool;
    use_gelu.i = gelu;
    AtenCall both = mm;
    both.name = "aten::_addmm_activation";
    both.args.push_back(use_gelu);
    both.count += call.count;
    trace_.insts[product].imm = static_cast<int64_t>(trace_.calls.size());
    trace_.calls.push_back(std::move(both));
    dead_[act] = true;
    any_ = true;
  }

  Trace& trace_;
  Replacements to_;
  std::vector<bool> dead_;
  std::vector<std::vector<Ref>> users_;
  bool any_ = false;
};

}  // namespace

void pass_epilogue(Trace& trace, const PassOptions& options) {
  if (options.fuse_cuda) Epilogue(trace).run();
}

}  // namespace dynvm::ir
