// The lowering functions that structured.def names; each lowers the operation of its row (builder.h, Request).
// Tests: tests/ir/lower_run.cpp.
#pragma once

#include <optional>

#include "ir/lower/builder.h"

namespace dynvm::ir {

#define X(name, function, sentence) bool function(const Request& request);
#include "ir/lower/structured.def"
#undef X

// temporary_of, of nll_loss_forward.
std::optional<TensorMeta> nll_loss_temporary(const CallView& call);

}  // namespace dynvm::ir
