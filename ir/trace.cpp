// Construction helpers and the op table of traces (see trace.h).
//
// Inputs: ops.def. Outputs: op_info, Trace::add. Invariant: the table's order is the enum's order, as both come from ops.def.
// Tests: tests/ir/text.cpp.
#include "ir/trace.h"

#include <cstddef>

namespace dynvm::ir {
namespace table {

// The letters of ops.def's columns. A row's `N|E` is then an ordinary constant expression; `X` stays a variable there because the row
// macro of the same name is function-like and the letter is not followed by a parenthesis.
constexpr uint16_t P = kPure, L = kLoad, G = kGuard, N = kNew, W = kWrite, B = kBarrier, E = kRaises, T = kTensorMemory, X = kEnd;

constexpr char kResults[] = "voifbts";

constexpr OpInfo kOps[] = {
#define X(name, result, arity, effects, sentence) {#name, #result[0], arity, static_cast<uint16_t>(effects), sentence},
#include "ir/ops.def"
#undef X
};

constexpr bool results_are_known() {
  for (const OpInfo& info : kOps)
    if (std::string_view(kResults).find(info.result) == std::string_view::npos) return false;
  return true;
}
static_assert(results_are_known(), "ops.def: unknown result letter");
static_assert(std::size(kOps) == static_cast<size_t>(Op::kCount));

}  // namespace table

const OpInfo& op_info(Op op) { return table::kOps[static_cast<size_t>(op)]; }

bool opens(const Trace& trace, const AtenCall& call) {
  if (call.follows) return false;
  for (size_t i = 0; i < call.results.size(); i++) {
    const bool written = !call.mutates.empty() && call.result_alias[i] >= 0;  // it looks as it did
    if (call.results[i] >= 0 && !written && trace.metas[call.results[i]].open != 0) return true;
  }
  return false;
}

bool may_leave(const Trace& trace, const AtenCall& call) {
  if (call.defines_sizes) return true;
  if (call.follows || !call.mutates.empty()) return false;
  for (size_t i = 0; i < call.results.size(); i++) {
    if (call.results[i] < 0) continue;
    const TensorMeta& result = trace.metas[call.results[i]];
    if (result.open != 0 && (call.result_alias[i] >= 0 || result.symbolic)) return true;
  }
  return false;
}

bool is_index(const AtenCall& call) {
  return (call.name == "aten::select" && call.overload == "int") || (call.name == "aten::slice" && call.overload == "Tensor");
}

bool is_moved(const AtenCall& index) {
  const auto constant = [&](size_t argument) { return index.args[argument].kind == AtenArg::kNone || (index.args[argument].kind == AtenArg::kInt && index.args[argument].i >= 0); };
  const bool from_constant = index.name == "aten::slice" && constant(2) && constant(4);
  return !from_constant || !index.defines_sizes;
}

Ref Trace::add(Op op, Type type, const std::vector<Ref>& args, int64_t imm, int32_t snapshot) {
  Inst inst;
  inst.op = op;
  inst.type = type;
  inst.snapshot = snapshot;
  inst.imm = imm;
  inst.origin = origin;
  inst.first = static_cast<uint32_t>(operands.size());
  inst.count = static_cast<uint32_t>(args.size());
  operands.insert(operands.end(), args.begin(), args.end());
  insts.push_back(inst);
  return static_cast<Ref>(insts.size() - 1);
}

uint32_t Trace::add_frame(const SnapshotFrame& frame, size_t depth) {
  if (!snapshots.empty() && depth < snapshots.back().frames.size()) {
    const uint32_t last = snapshots.back().frames[depth];
    if (frames[last] == frame) return last;
  }
  frames.push_back(frame);
  return static_cast<uint32_t>(frames.size() - 1);
}

Ref Trace::add(Op op, Type type, std::initializer_list<Ref> args, int64_t imm, int32_t snapshot) {
  return add(op, type, std::vector<Ref>(args), imm, snapshot);
}

}  // namespace dynvm::ir
