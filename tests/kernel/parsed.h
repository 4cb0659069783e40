// A kernel written as text in a test.
#pragma once

#include <gtest/gtest.h>

#include "ir/kernel/kernel.h"
#include "ir/kernel/text.h"

namespace dynvm::ir {

inline Kernel parsed(const char* text) {
  Kernel kernel;
  EXPECT_TRUE(parse_kernel(text, &kernel).ok());
  EXPECT_TRUE(verify_kernel(kernel).ok()) << verify_kernel(kernel).message();
  return kernel;
}

}  // namespace dynvm::ir
