// The tracer's life: decides what is hot, records, compiles, runs traces, leaves them.
//
// Inputs: the evaluator's hooks. Outputs: compiled traces attached to loops; counts in base::report().
// Invariants: all with the GIL held. One recording at a time. A trace that cannot be compiled costs a penalty, never a failure.
// Tests: tests/traces, tests/programs.
#pragma once

namespace dynvm::tracer {

// Installs the hooks into the evaluator. `bridge_path`: libdynvm_torch.so, loaded when a hot loop is seen after torch was imported
// (empty: no tensors are traced).
void install(const char* bridge_path);

}  // namespace dynvm::tracer
