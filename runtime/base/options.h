// dynvm's options: the struct, the parser of a command line, the help text.
//
// Purpose: one process-wide set of options, filled before Python is initialised.
// Inputs: argv as the launcher passes it on, the variable DYNVM_OPTIONS. Outputs: Options, and the argv that is Python's.
// Invariants: everything that is not an option of dynvm stays in Python's argv, in its order; what follows the script,
//   -c or -m is never looked at. Set once; read-only afterwards.
// Tests: tests/base/base_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace dynvm::base {

struct Options {
#define FLAG(field, spelling, argument, value, text) bool field = value;
#define SWITCH(field, spelling, argument, value, text) bool field = value;
#define NUMBER(field, spelling, argument, value, text) int64_t field = value;
#define TEXT(field, spelling, argument, value, text) std::string field = value;
#define WORDS(field, spelling, argument, value, text) std::string field = value;
#define KINDS(field, spelling, argument, value, text) std::string field = value;
#define LOGS(field, spelling, argument, value, text) uint32_t field = value;
#define DUMPS(field, spelling, argument, value, text) uint32_t field = value;
#include "runtime/base/options.def"
};

namespace detail {
inline Options all_options;
}

// The process's options.
inline Options& options() {
  return detail::all_options;
}

// Takes dynvm's options out of a command line `[program, options..., script or -c or -m, ...]`. `python_argv` becomes what
// is left (pointers into argv; no closing nullptr). Fails on a bad value.
Status parse_command_line(int argc, char** argv, Options& options, std::vector<char*>& python_argv);

// The same for words separated by blanks, all of which must be options of dynvm (the variable DYNVM_OPTIONS).
Status parse_option_words(std::string_view words, Options& options);

// One line for each option, with log categories and dump stages below theirs.
std::string options_help();

}  // namespace dynvm::base
