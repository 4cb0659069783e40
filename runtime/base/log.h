// DYNVM_LOG: events shown by --log.
//
// Purpose: one line on standard error for each event of a category that is on: `[trace] text`.
//   DYNVM_LOG(kTrace, "loop at {}:{}", file, line);
// Inputs: Options::log. Invariants: a category that is off costs one load and test, its arguments are not evaluated; a line
//   is written by one write, so lines of several threads do not mix.
// Tests: tests/base/base_test.cpp.
#pragma once

#include <fmt/core.h>

#include "runtime/base/options.h"

namespace dynvm::base {

enum class LogCategory : uint8_t {
#define X(enumerator, name, text) enumerator,
#include "runtime/base/log_categories.def"
#undef X
};

// Is the category shown.
inline bool log_on(LogCategory category) { return (options().log >> static_cast<unsigned>(category)) & 1; }

// Writes one line, whether the category is on or not.
void write_log(LogCategory category, fmt::string_view format, fmt::format_args args);

template <typename... Args>
void log(LogCategory category, fmt::format_string<Args...> format, Args&&... args) {
  write_log(category, format, fmt::make_format_args(args...));
}

}  // namespace dynvm::base

#define DYNVM_LOG(category, ...)                                                   \
  do {                                                                             \
    if (__builtin_expect(::dynvm::base::log_on(::dynvm::base::LogCategory::category), 0)) \
      ::dynvm::base::log(::dynvm::base::LogCategory::category, __VA_ARGS__);       \
  } while (0)
