// Keeps constants in registers where that saves memory operands: two loads a cycle are what bounds a chain of polynomials.
//
// share_constants (before register allocation): a constant that several instructions close to each other use, such as the copies of an
// unrolled loop, is loaded once for them. pin_constants (after it): registers that the allocation has left unused hold the constants that
// inner loops use most, loaded once at the start.
// Invariants: neither changes what is computed; pin_constants does nothing where helper calls clobber registers.
// Tests: tests/kernel/fuzz_test.cpp.
#pragma once

#include "codegen/x86/kernel/registers.h"
#include "codegen/x86/kernel/vcode.h"

namespace dynvm::codegen {

void share_constants(VCode* code);
void pin_constants(VCode* code, Registers* registers, int num_registers);

}  // namespace dynvm::codegen
