// The lowering functions that structured.def names; each lowers the operation of its row (builder.h, Request).
// Tests: tests/ir/lower_run.cpp.
#pragma once

#include "ir/lower/builder.h"

namespace dynvm::ir {

#define X(name, function, sentence) bool function(const Request& request);
#include "ir/lower/structured.def"
#undef X

}  // namespace dynvm::ir
