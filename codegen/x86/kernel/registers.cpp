// Linear scan register allocation for vector code. See registers.h. Tests: tests/kernel/fuzz_test.cpp.
#include "codegen/x86/kernel/registers.h"

#include <algorithm>

namespace dynvm::codegen {

namespace {

// Instruction i reads at 2 i and writes at 2 i + 1; an early clobber writes at 2 i.
struct Interval {
  Value v;
  int start, end;
  double weight;
  int hint_inst;
};

class Allocator {
 public:
  Allocator(const VCode& code, int num_registers) : code_(code), num_registers_(num_registers) {}

  Registers run() {
    size_t count = code_.register_bytes.size();
    result_.reg.assign(count, -1);
    result_.slot.assign(count, -1);
    find_intervals();
    scan();
    place_spilled();
    return std::move(result_);
  }

 private:
  void find_intervals() {
    std::vector<int> loop_end(code_.loops.size(), 0);
    for (size_t i = 0; i < code_.insts.size(); ++i)
      if (code_.insts[i].op == VOp::k_endloop) loop_end[code_.insts[i].imm] = static_cast<int>(2 * i);
    std::vector<int> of(code_.register_bytes.size(), -1);
    struct Open {
      int begin, end;
    };
    std::vector<Open> open;
    for (size_t i = 0; i < code_.insts.size(); ++i) {
      const VInst& inst = code_.insts[i];
      int at = static_cast<int>(2 * i);
      if (inst.op == VOp::k_loop) {
        // A tail runs once: nothing is carried around.
        bool repeats = code_.loops[inst.imm].kind != VLoop::kTail;
        open.push_back({at, repeats ? loop_end[inst.imm] : at});
        depth_ += repeats;
        continue;
      }
      if (inst.op == VOp::k_endloop) {
        depth_ -= code_.loops[inst.imm].kind != VLoop::kTail;
        open.pop_back();
        continue;
      }
      if (inst.op == VOp::k_call) calls_.push_back(at);
      double weight = 1;
      for (int d = 0; d < depth_ && d < 4; ++d) weight *= 8;
      auto touch = [&](Value v, int position) {
        if (of[v] < 0) {
          of[v] = static_cast<int>(intervals_.size());
          intervals_.push_back({v, position, position, 0, static_cast<int>(i)});
        }
        Interval& interval = intervals_[of[v]];
        interval.end = std::max(interval.end, position);
        interval.weight += weight;
        for (const Open& loop : open)
          if (interval.start < loop.begin) {
            interval.end = std::max(interval.end, loop.end);
            if (loop.end > loop.begin) break;  // the outermost has the latest end
          }
      };
      for (Value v : inst.src)
        if (is_register(v)) touch(v, at);
      if (inst.dst != kNoValue) touch(inst.dst, vop_info(inst.op).early_clobber ? at : at + 1);
    }
    std::stable_sort(intervals_.begin(), intervals_.end(), [](const Interval& x, const Interval& y) { return x.start < y.start; });
  }

  bool crosses_call(const Interval& interval) const {
    auto call = std::upper_bound(calls_.begin(), calls_.end(), interval.start);
    return call != calls_.end() && *call < interval.end;
  }

  static double worth(const Interval& interval) { return interval.weight / (interval.end - interval.start + 2); }

  void scan() {
    uint32_t free = num_registers_ == 32 ? ~0u : (1u << num_registers_) - 1;
    std::vector<const Interval*> active;
    for (const Interval& interval : intervals_) {
      for (size_t k = 0; k < active.size();) {
        if (active[k]->end < interval.start) {
          free |= 1u << result_.reg[active[k]->v];
          active[k] = active.back();
          active.pop_back();
        } else {
          ++k;
        }
      }
      if (crosses_call(interval)) continue;
      if (free) {
        int reg = preferred(interval, free);
        free &= ~(1u << reg);
        result_.reg[interval.v] = static_cast<int16_t>(reg);
        active.push_back(&interval);
        continue;
      }
      size_t worst = 0;
      for (size_t k = 1; k < active.size(); ++k)
        if (worth(*active[k]) < worth(*active[worst])) worst = k;
      if (worth(*active[worst]) >= worth(interval)) continue;
      result_.reg[interval.v] = result_.reg[active[worst]->v];
      result_.reg[active[worst]->v] = -1;
      active[worst] = &interval;
    }
  }

  // A register that a source of the defining instruction has just left saves a move in two-operand instructions.
  int preferred(const Interval& interval, uint32_t free) const {
    for (Value v : code_.insts[interval.hint_inst].src)
      if (is_register(v) && result_.reg[v] >= 0 && (free >> result_.reg[v] & 1)) return result_.reg[v];
    return __builtin_ctz(free);
  }

  void place_spilled() {
    std::vector<int> slot_end;
    for (const Interval& interval : intervals_) {
      if (result_.reg[interval.v] >= 0) continue;
      size_t slot = 0;
      while (slot < slot_end.size() && slot_end[slot] >= interval.start) ++slot;
      if (slot == slot_end.size()) slot_end.push_back(0);
      slot_end[slot] = interval.end;
      result_.slot[interval.v] = static_cast<int32_t>(slot);
    }
    result_.num_slots = static_cast<int>(slot_end.size());
  }

  const VCode& code_;
  int num_registers_;
  Registers result_;
  std::vector<Interval> intervals_;
  std::vector<int> calls_;
  int depth_ = 0;
};

}  // namespace

Registers assign_registers(const VCode& code, int num_registers) { return Allocator(code, num_registers).run(); }

}  // namespace dynvm::codegen
