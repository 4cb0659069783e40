// Mathematical functions of whole vectors that math.h has no expansion of in this type: those of SLEEF, which libtorch_cpu exports. Eager computes with the same, so kernels give what it gives.
//
// Output: a helper as those of helpers.h, null where no torch is loaded or it has no such function: helpers.h then goes over the lanes.
// What a lane gives may depend on its neighbours in the last place, as in eager: the functions have ways of their own for large arguments.
// Tests: tests/traces/cases/vector_functions.py.
#pragma once

#include "codegen/x86/kernel/vcode.h"
#include "ir/kernel/kernel.h"

namespace dynvm::codegen {

LaneHelper vector_helper(ir::KOp op, Lane lane, int vector_bytes);

}  // namespace dynvm::codegen
