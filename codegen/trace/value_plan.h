// Where the values of a trace live while it runs, and how long.
//
// Input: a trace that verifies. Output: for each value its slot in the activation, its last use, and whether the trace owns a reference.
// A use is an operand of an instruction that is executed, or a value that a snapshot needs (through sunk instructions, which only exits
// execute) at an instruction that can leave through it.
//
// A load whose value dies before anything can drop it elsewhere is borrowed: no reference is taken. Anything that runs Python code,
// writes, touches tensors or releases an owned value ends that time.
//
// What a variable of the root frame had before may be let go once nothing behind can need it, neither a value nor an exit that would find it unchanged; at the latest when the iteration is
// over. Only where its next value is a tensor's object: these hold memory.
//
// Invariants: slots of values whose lives overlap differ; an instruction's result never shares a slot with its operands.
// Tests: tests/exec/value_plan_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/trace.h"

namespace dynvm::codegen {

struct ValuePlan {
  static constexpr int32_t kNoSlot = -1;
  struct Value {
    int32_t slot = kNoSlot;
    ir::Ref last_use = 0;      // >= the definition
    bool owned = false;        // holds a reference that is released after last_use
    bool nullable = false;     // an object that may be null
  };
  std::vector<Value> values;               // by Ref
  std::vector<std::vector<ir::Ref>> dying; // by Ref: owned values to release after that instruction
  std::vector<ir::Ref> owned;              // in order of definition
  std::vector<std::vector<int32_t>> spent; // by Ref: root slots whose value at entry nothing behind that instruction needs
  int32_t num_slots = 0;

  // Owned values that are live just before `inst`: what an exit there must release.
  template <typename Visit>
  void for_each_live(ir::Ref inst, Visit visit) const {
    for (ir::Ref ref : owned) {
      if (ref >= inst) break;
      if (values[ref].last_use >= inst) visit(ref);
    }
  }
};

ValuePlan plan_values(const ir::Trace& trace);

// The instruction makes an object, number or truth at run time that needs a slot.
bool needs_slot(const ir::Inst& inst);
// It is executed: not sunk, and not one that only names something.
bool is_executed(const ir::Inst& inst);

}  // namespace dynvm::codegen
