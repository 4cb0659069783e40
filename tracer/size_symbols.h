// Symbols for open sizes: what is open of tensors as products of a few numbers, so that kernels can be made of operations on them.
//
// Inputs: a recording, and the geometry of all its tensors for two choices of the open sizes (open_sizes.h). A size that is neither the same in both nor made of
// others is a *symbol*. A tensor whose sizes, strides and offset are all constants times symbols in both walks is symbolic: its geometry is rewritten in the symbols'
// codes (ir/kernel/symbols.h).
//
// Two walks prove nothing of an operation that one knows nothing of: it is run, and what it gives is compared with the formula, before anything relies on it; where
// no exit may be (after_effect), it is not symbolic. Of operations whose sizes follow from their operands' (ir::sizes_follow) the formula is right if it is made of these
// operands' symbols; they need not be run to know what they give (AtenCall::follows). What a `cat` gives is as long as its operands together: where that is no product, it is a
// symbol whose value others tell (ir::SymbolSum). Sizes that are computed by steps may agree by chance, and stay open.
// Tests: tests/traces/cases/sizes_*.py.
#pragma once

#include <vector>

#include "ir/trace.h"

namespace dynvm::tracer {

// What is known of a call, by index in Trace::calls.
struct CallFacts {
  bool after_effect = false;  // no exit may be at it
  bool by_steps = false;      // a remainder or quotient of open sizes is among its arguments
  bool moves = false;         // its result looks where only running it tells, in memory that it shares
  std::vector<int32_t> named; // metas of tensors that arguments are sizes of, if all that are open are no more than that
};

// trace: as recorded, but its metas have the sizes of the first walk, with what is open marked; other: those of the second. Metas that become symbolic are rewritten.
void give_symbols(const std::vector<ir::TensorMeta>& other, const std::vector<CallFacts>& facts, ir::Trace* trace);

}  // namespace dynvm::tracer
