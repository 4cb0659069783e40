// Puts dynvm's parts together in the running interpreter.
//
// Purpose: the one place that sees the evaluator, the tracer and the torch bridge's loader, and connects them.
// Tests: tests/launcher/.
#pragma once

namespace dynvm::main {

// Installs what the options ask for into the initialised interpreter, whose GIL is held. False: a Python exception is set.
[[nodiscard]] bool install();

// Readies the report's counters and its writing at the end of the process; before anything is installed.
void start_report();

}  // namespace dynvm::main
