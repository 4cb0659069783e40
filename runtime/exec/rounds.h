// A limit on the iterations of one run of a trace, for checks.
//
// Inputs: `round_limit` before CompiledTrace::run, which gets &round_limit.over for an eval breaker. Outputs: the run
// comes back at the loop's header after so many iterations of the trace. Invariants: runs inside of that one have
// breakers of their own and do not count. Tests: tests/check.
#pragma once

#include <cstdint>

namespace dynvm::runtime {

struct Rounds {
  uint64_t left = 0;
  volatile int over = 0;
};

inline thread_local Rounds round_limit;

}  // namespace dynvm::runtime
