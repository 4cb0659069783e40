// Parts of a script that it has given names to (dynvm.zone): how often and how long each ran.
//
// Purpose: counts and times by name for the report. Inputs: enter_zone and leave_zone, with the GIL held. Outputs: zones().
// Invariants: each thread has its own open zones; they may be left in another order than they were entered in, as generators do. Time is that of the
//   clock, so what other threads, or a suspended generator, take meanwhile is part of it. A zone inside one of its own name adds to the count only.
// Tests: tests/base/events_test.cpp, tests/inspect/test_zones.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dynvm::base {

struct Zone {
  std::string name;
  uint64_t count = 0;   // times that it was entered
  double ms = 0;        // from entering to leaving
  double own_ms = 0;    // the same without zones inside of it
};

// The zone of this name, a new one if need be.
int zone_number(const std::string& name);
void enter_zone(int number);
// Does nothing where it is not open in this thread.
void leave_zone(int number);
// All that were ever made, in that order.
const std::vector<Zone>& zones();

}  // namespace dynvm::base
