// Orders the instructions of each straight piece of vector code so that independent chains run side by side.
//
// A processor looks ahead over a few dozen waiting vector instructions only: two polynomials of twenty steps each, one after the other in
// the code, run one after the other. List scheduling by the longest latency path to the end interleaves them, within the limits of the
// registers: once these are taken, only what frees a register is preferred.
//
// Input, output: vector code before register allocation. Invariants: the order of definitions and uses, of writes to accumulators, and of
// stores after the loads before them, is kept; nothing moves across a loop's start or end or a helper call.
// Tests: tests/kernel/fuzz_test.cpp.
#pragma once

#include "codegen/x86/kernel/vcode.h"

namespace dynvm::codegen {

void schedule(VCode* code, int num_registers);

}  // namespace dynvm::codegen
