// The clock that the tracer measures its work with.
#pragma once

#include <chrono>

namespace dynvm::tracer {

using Clock = std::chrono::steady_clock;

// How often a loop has gone round, by its arrivals in a row, and how long it has taken in all. inside: of another loop that goes round.
struct GoneRound {
  int arrivals = 0;
  double ms = 0;
  bool inside = false;
};

inline double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

}  // namespace dynvm::tracer
