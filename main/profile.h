// Profiles: connects the clock, the sampler and the collector's callbacks (runtime/base/profile.h).
// Tests: tests/profile.
#pragma once

namespace dynvm::main {

// Where the options ask for a profile, in the initialised interpreter with the evaluator installed, GIL held. False: a Python exception is set.
[[nodiscard]] bool start_profile();

// The script begins: what was before is Python's start.
void script_begins();

}  // namespace dynvm::main
