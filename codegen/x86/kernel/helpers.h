// C++ fall-backs for ops that have no vector expansion, and that no library has for vectors (vector_math.h): they take whole vectors through memory and go over the lanes.
//
// Output: a function for an op and a lane type (f16 and bf16 in f32 lanes; narrow integers in i32 lanes), null where there is none.
// They trap on no input: integer division by zero gives 0.
// Tests: tests/kernel/op_test.cpp.
#pragma once

#include "codegen/x86/kernel/vcode.h"
#include "ir/kernel/kernel.h"

namespace dynvm::codegen {

LaneHelper lane_helper(ir::KOp op, Lane lane);

}  // namespace dynvm::codegen
