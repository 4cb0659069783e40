// Checks that a trace keeps the rules of trace.h.
//
// Inputs: a trace, as recorded, parsed or left by a pass. Output: Status with the first broken rule and its instruction.
// Invariant: a trace that verifies can be printed, evaluated and passed on without any further check of indexes.
// Tests: tests/ir/verify.cpp.
#pragma once

#include "ir/trace.h"
#include "runtime/base/status.h"

namespace dynvm::ir {

base::Status verify_trace(const Trace& trace);

}  // namespace dynvm::ir
