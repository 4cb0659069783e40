// DYNVM_LOG, DYNVM_EVENT: events shown by --log, and queued for those who asked for them (events.h).
//
// Purpose: one line on standard error for each event of a category that is on: `[trace] text`.
//   DYNVM_LOG(kTrace, "loop at {}:{}", file, line);
// Inputs: Options::log. Invariants: a category that is off costs two loads and tests, its arguments are not evaluated; a line
//   is written by one write, so lines of several threads do not mix.
// Tests: tests/base/base_test.cpp.
#pragma once

#include <fmt/core.h>

#include "runtime/base/events.h"
#include "runtime/base/options.h"

namespace dynvm::base {

// Is the category shown.
inline bool log_on(LogCategory category) { return (options().log >> static_cast<unsigned>(category)) & 1; }

// Does anybody see it: the log, or who has asked for its events.
inline bool is_told(LogCategory category) { return log_on(category) || is_observed(category); }

// Writes one line, whether the category is on or not.
void write_log(LogCategory category, fmt::string_view format, fmt::format_args args);

template <typename... Args>
void log(LogCategory category, const EventFields& fields, fmt::format_string<Args...> format, Args&&... args) {
  if (log_on(category)) write_log(category, format, fmt::make_format_args(args...));
  if (is_observed(category)) publish(category, fields, fmt::vformat(format, fmt::make_format_args(args...)));
}

}  // namespace dynvm::base

// An event with fields: DYNVM_EVENT(kExit, (EventFields{.trace = 3}), "trace {} ...", 3).
#define DYNVM_EVENT(category, fields, ...)                                                                                                     \
  do {                                                                                                                                         \
    if (__builtin_expect(::dynvm::base::is_told(::dynvm::base::LogCategory::category), 0)) \
      ::dynvm::base::log(::dynvm::base::LogCategory::category, fields, __VA_ARGS__);                                                           \
  } while (0)
#define DYNVM_LOG(category, ...) DYNVM_EVENT(category, ::dynvm::base::EventFields{}, __VA_ARGS__)
