// Status: success, or a failure with its message.
//
// Purpose: what a compile, a driver call or a file gives back when it may fail without a Python exception (style.md's
//   third kind of error). The message is for the log and the report; the script goes on in the interpreter.
// Invariants: a failure has a message that is not empty.
// Tests: tests/base/base_test.cpp.
#pragma once

#include <string>
#include <utility>

namespace dynvm::base {

class [[nodiscard]] Status {
 public:
  // Success.
  Status() = default;
  // A failure; an empty message becomes "failed".
  static Status failure(std::string message) {
    Status status;
    status.message_ = message.empty() ? "failed" : std::move(message);
    return status;
  }

  [[nodiscard]] bool ok() const { return message_.empty(); }
  explicit operator bool() const { return ok(); }
  // Empty on success.
  [[nodiscard]] const std::string& message() const { return message_; }
  // The same failure with "context: " in front; success stays success.
  [[nodiscard]] Status in(const std::string& context) const {
    return ok() ? *this : failure(context + ": " + message_);
  }

 private:
  std::string message_;
};

}  // namespace dynvm::base
