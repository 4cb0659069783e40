// Register allocation for vector code: linear scan over live intervals.
//
// Input: vector code, the number of registers. Output: for each virtual register a register or a place in the frame, for its whole life.
// A value that lives across a helper call is in the frame (the calling convention keeps no vector register). Values that are alive when
// a loop begins and are read in it live until its end. What is used most in the innermost loops keeps its register.
// Method: M. Poletto and V. Sarkar, Linear Scan Register Allocation, 1999, with weights for the choice of what to spill.
// Tests: tests/kernel/fuzz_test.cpp.
#pragma once

#include <vector>

#include "codegen/x86/kernel/vcode.h"

namespace dynvm::codegen {

struct Registers {
  std::vector<int16_t> reg;    // per virtual register: number, or -1: in the frame
  std::vector<int32_t> slot;   // place in the frame, in vectors
  int num_slots = 0;
};

Registers assign_registers(const VCode& code, int num_registers);

}  // namespace dynvm::codegen
