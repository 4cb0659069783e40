// Kernels written as text in tests, and what the verifier says of them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ir/kernel/kernel.h"
#include "ir/kernel/text.h"

namespace dynvm::ir {

inline Kernel parsed(const char* text) {
  Kernel kernel;
  EXPECT_TRUE(parse_kernel(text, &kernel).ok());
  EXPECT_TRUE(verify_kernel(kernel).ok()) << verify_kernel(kernel).message();
  return kernel;
}

// The verifier says so of the kernel once it is changed.
template <class Change>
void expect_refused(Kernel kernel, const char* what, const Change& change) {
  change(kernel);
  const std::string message = verify_kernel(kernel).message();
  EXPECT_NE(message.find(what), std::string::npos) << message;
}

}  // namespace dynvm::ir
