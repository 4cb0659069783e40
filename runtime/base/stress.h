// --stress: ways to run that are to show defects.
//
// Inputs: the option's words, `WORD` or `WORD=N`, with commas between. Invariants: as options.h. Tests:
// tests/check/test_runs.py, tests/launcher/test_options.py.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace dynvm::base {

// Is this one of the words?
bool stress(std::string_view word);

// The number behind it; `usual` where it is not one of the words.
int stress_number(std::string_view word, int usual);

// Are all words known?
Status check_stress(std::string_view words);

}  // namespace dynvm::base
