// DYNVM_CHECK: a broken invariant of dynvm itself ends the process, with the place and what was being worked on.
//
// Purpose: style.md's fourth kind of error. Never for what a script can cause.
//   DYNVM_CHECK(cond), DYNVM_CHECK(cond, "format {}", value): always on.
//   DYNVM_DCHECK: the same in debug builds (DYNVM_DEBUG), nothing otherwise.
//   CheckContext: while one lives, a failing check prints its text too (the trace at hand, say).
// Invariants: contexts nest per thread; printing runs only on failure.
// Tests: tests/base/base_test.cpp.
#pragma once

#include <fmt/core.h>

#include <string>

namespace dynvm::base {

[[noreturn, gnu::cold]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

// Says what the thread works on when a check fails. `print` gives the text for `data`, which must outlive the context.
class CheckContext {
 public:
  using Print = std::string (*)(const void* data);
  CheckContext(Print print, const void* data);
  ~CheckContext();
  CheckContext(const CheckContext&) = delete;
  CheckContext& operator=(const CheckContext&) = delete;

 private:
  friend void check_failed(const char*, int, const char*, const std::string&);
  Print print_;
  const void* data_;
  CheckContext* outer_;
};

// The message of a check: nothing, or a format with its values.
inline std::string check_message() { return {}; }
template <typename... Args>
std::string check_message(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::vformat(format, fmt::make_format_args(args...));
}

}  // namespace dynvm::base

#define DYNVM_CHECK(condition, ...)                                                             \
  do {                                                                                          \
    if (__builtin_expect(!(condition), 0))                                                      \
      ::dynvm::base::check_failed(__FILE__, __LINE__, #condition,                               \
                                  ::dynvm::base::check_message(__VA_ARGS__));                   \
  } while (0)

#ifdef DYNVM_DEBUG
#define DYNVM_DCHECK(...) DYNVM_CHECK(__VA_ARGS__)
#else
#define DYNVM_DCHECK(...) \
  do {                    \
  } while (0)
#endif
