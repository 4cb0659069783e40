// The clock that the tracer measures its work with.
#pragma once

#include <chrono>

namespace dynvm::tracer {

using Clock = std::chrono::steady_clock;

inline double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

}  // namespace dynvm::tracer
