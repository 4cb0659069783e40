// The tracer's life: decides what is hot, records, compiles, runs traces, leaves them.
//
// Inputs: the evaluator's hooks. Outputs: compiled traces attached to loops; counts in base::report().
// Invariants: all with the GIL held. One recording at a time. A trace that cannot be compiled costs a penalty, never a failure.
// Tests: tests/traces, tests/programs.
#pragma once

#include <Python.h>

namespace dynvm::tracer {

// Installs the hooks into the evaluator. `bridge_path`: libdynvm_torch.so, loaded when a hot loop is seen after torch was imported
// (empty: no tensors are traced).
void install(const char* bridge_path);

// Drops all traces, what has been learnt, counters and penalties, as if the script had just begun; what the report counts stays. A trace that runs is
// left after its iteration. While something is recorded or compiled in any thread, this is done when that is over.
void reset();

// What has waited for the end of a recording or compilation, if that has come: a reset, and the delivery of events.
void settle();

// No trace runs in this thread and nothing is recorded or compiled in it: other Python code may run.
bool is_quiet();

}  // namespace dynvm::tracer
