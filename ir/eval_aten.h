// The reference semantics of ATen operations, for eval.cpp.
// Tests: tests/ir/fuse_fuzz.cpp, tests/ir/lower_run.cpp.
#pragma once

#include <vector>

#include "ir/eval.h"

namespace dynvm::ir {

// Runs one aten instruction; `numbers` holds the values of run-time scalars by Ref. What draws moves the generator on. Fails on what it does not know.
base::Status evaluate_aten(const Trace& trace, const Inst& inst, const std::vector<double>& numbers, Memory* memory, Generator* generator);

}  // namespace dynvm::ir
