// The text of DIR/profile.json. Inputs: a profile's data, with clocks that have stopped. Output: JSON; docs/profile.md says what stands in it.
// Tests: tests/profile/test_profile.py, tests/base/profile_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/profile.h"

namespace dynvm::base::profile {

struct Totals {
  double wall_ms = 0, other_threads_ms = 0;
  std::vector<Meter> parts;  // by Part
};

std::string json(const Data& data, const Totals& totals);

}  // namespace dynvm::base::profile
