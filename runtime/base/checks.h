// What --stress=check has come to in this process: a part of the report (report.h). Changed with the GIL held.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace dynvm::base {

struct Checks {
  uint64_t made = 0;                        // runs of traces that were compared with the interpreter's
  uint64_t different = 0;                   // those that were not the same
  uint64_t undetermined = 0;                // those that differed only where two interpreted runs do, too
  std::map<std::string, uint64_t> skipped;  // why there was no comparison -> times
};

inline Checks& checks() {
  static Checks* const the_checks = new Checks;  // never destroyed: the report is written by an exit handler
  return *the_checks;
}

}  // namespace dynvm::base
