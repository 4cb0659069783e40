// Expansions of mathematical functions into vector instructions.
//
// Input: a lane type (f32 or f64) and argument values. Output: instructions appended to the builder, and the result.
// Errors in units in the last place against the correctly rounded result, over all of the domain (measured in
// tests/kernel/accuracy_test.cpp): at most 4, for results in the normal range.
#pragma once

#include "codegen/x86/kernel/vcode.h"
#include "ir/kernel/kernel.h"

namespace dynvm::codegen {

// Whether there is an expansion; the others go through lane_helper().
bool has_expansion(ir::KOp op, Lane lane);
// `b` is kNoValue for functions of one argument.
Value expand_math(VBuilder& builder, ir::KOp op, Lane lane, Value a, Value b);

}  // namespace dynvm::codegen
