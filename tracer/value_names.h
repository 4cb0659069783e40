// What a person would call a value of a trace: a variable, an attribute, an expression of such; and what it was when the trace was left.
//
// Inputs: traces, exits whose state has not been taken. Outputs: text; empty where nothing can be said. Invariant: runs no Python code of the script's.
// Tests: tests/profile/test_profile.py, tests/inspect/test_events.py.
#pragma once

#include <string>

#include "ir/trace.h"
#include "runtime/exec/compiled_trace.h"

namespace dynvm::tracer {

// "n", "self.size", "len(items)", "i % 3 == 0": what the guard looks at.
std::string what_decides(const ir::Trace& trace, ir::Ref guard);

// A guard that a number is what it was, and not that a branch goes the same way.
bool freezes(const ir::Trace& trace, const ir::Inst& guard);

// Why a trace is left at the instruction, in words (exit_reasons.def). raised: through an error, not because a guard failed.
struct ExitReason {
  const char* kind;  // the class that advice is chosen by
  const char* text;
};
ExitReason exit_reason(const ir::Trace& trace, const ir::Inst& inst, bool raised);

// "7", "[32, 10]", "str": what it saw.
std::string value_seen(const runtime::CompiledTrace& compiled, const runtime::RunResult& run);

}  // namespace dynvm::tracer
