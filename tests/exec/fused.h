// A trace's text, parsed and fused as for a GPU: without neighbours that share no data.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ir/passes/pass.h"
#include "ir/text.h"

namespace dynvm::runtime {

inline ir::Trace fused(const std::string& text) {
  ir::Trace trace;
  base::Status status = ir::parse_trace(text, &trace);
  EXPECT_TRUE(status.ok()) << status.message();
  ir::PassOptions options;
  options.fuse_cuda = true;
  options.small_space = 0;
  options.only = {"fuse", "clean"};
  status = ir::run_passes(trace, options);
  EXPECT_TRUE(status.ok()) << status.message();
  return trace;
}

}  // namespace dynvm::runtime
