// Constants in registers. See constants.h. Tests: tests/kernel/fuzz_test.cpp.
#include "codegen/x86/kernel/constants.h"

#include <algorithm>
#include <cstddef>

#include "runtime/base/heuristics.h"

namespace dynvm::codegen {

namespace {

bool ends_straight_code(VOp op) { return op == VOp::k_loop || op == VOp::k_endloop || op == VOp::k_vbegin || op == VOp::k_call; }

bool uses(const VInst& inst, Value v) { return inst.src[0] == v || inst.src[1] == v || inst.src[2] == v; }

void replace(VInst* inst, Value from, Value to) {
  for (Value& v : inst->src)
    if (v == from) v = to;
}

VInst load_of(Value constant, int bytes, Value to) {
  VInst inst{VOp::k_mov, bytes == 8 ? Lane::kI64 : Lane::kI32};
  inst.dst = to;
  inst.src[0] = constant;
  return inst;
}

}  // namespace

void share_constants(VCode* code) {
  // How far apart two uses may be to share a load: the register is taken for that long.
  const auto window = static_cast<size_t>(base::heuristics().share_constants);
  VBuilder builder(code);
  std::vector<VInst> out;
  out.reserve(code->insts.size() + code->insts.size() / 4);
  std::vector<VInst>& insts = code->insts;
  for (size_t i = 0; i < insts.size(); ++i) {
    if (insts[i].op != VOp::k_mov) {
      for (Value v : insts[i].src) {
        if (!is_constant(v)) continue;
        // The last use of a chain in which each is near the one before.
        size_t last = i;
        for (size_t k = i + 1; k < insts.size() && k <= last + window && !ends_straight_code(insts[k].op); ++k)
          if (insts[k].op != VOp::k_mov && uses(insts[k], v)) last = k;
        if (last == i) continue;
        int bytes = code->constants[static_cast<size_t>(-1 - v)].bytes;
        Value shared = builder.fresh(bytes);
        out.push_back(load_of(v, bytes, shared));
        for (size_t k = i; k <= last; ++k)
          if (insts[k].op != VOp::k_mov) replace(&insts[k], v, shared);
      }
    }
    out.push_back(insts[i]);
  }
  insts = std::move(out);
}

void pin_constants(VCode* code, Registers* registers, int num_registers) {
  if (code->has_calls) return;
  uint32_t used = 0;
  for (int16_t reg : registers->reg)
    if (reg >= 0) used |= 1u << reg;
  std::vector<double> worth(code->constants.size(), 0);
  double weight = 1;
  for (const VInst& inst : code->insts) {
    if (inst.op == VOp::k_loop && code->loops[static_cast<size_t>(inst.imm)].kind != VLoop::kTail) weight *= 8;
    if (inst.op == VOp::k_endloop && code->loops[static_cast<size_t>(inst.imm)].kind != VLoop::kTail) weight /= 8;
    for (Value v : inst.src)
      if (is_constant(v) && weight > 1) worth[static_cast<size_t>(-1 - v)] += weight;
  }
  std::vector<VInst> loads;
  for (int reg = 0; reg < num_registers; ++reg) {
    if (used >> reg & 1) continue;
    auto best = std::max_element(worth.begin(), worth.end());
    if (best == worth.end() || *best == 0) break;
    *best = 0;
    Value constant = -1 - static_cast<Value>(best - worth.begin());
    int bytes = code->constants[static_cast<size_t>(best - worth.begin())].bytes;
    Value pinned = VBuilder(code).fresh(bytes);
    registers->reg.push_back(static_cast<int16_t>(reg));
    registers->slot.push_back(-1);
    for (VInst& inst : code->insts) replace(&inst, constant, pinned);
    loads.push_back(load_of(constant, bytes, pinned));
  }
  code->insts.insert(code->insts.begin(), loads.begin(), loads.end());
}

}  // namespace dynvm::codegen
