// What can be seen of the traces that there are, for dynvm.traces().
//
// Inputs: the loops and functions of manager.h. Outputs: JSON texts. Invariants: the GIL is held and no Python code runs; nothing is changed.
// Tests: tests/inspect/test_traces.py.
#pragma once

#include <string>

namespace dynvm::tracer {

// [{"id", "file", "first_line", "last_line", "function", "kind", "state", "cut", "iterations", "runs", "exits", "ir_insts", "tensor_ops", "kernels",
//   "parent", "sizes"}, ...] of all traces, by id.
std::string traces_json();

// Of the trace with this id, what "numbers" (its row of traces_json), "recorded", "ir" (text; "recorded" is "" where it was not kept), "exits", "functions", "kernels",
// "residuals" or "library" (JSON) say. False: there is no such trace, or it says nothing of that.
bool trace_text(int id, const std::string& what, std::string* text);

}  // namespace dynvm::tracer
