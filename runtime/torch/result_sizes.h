// The sizes that an operation's results have, from those of its operands: for traces whose sizes change, without running or asking torch. (torch's own
// answer, its meta device, is Python code for many operations: 0.1 to 0.6 ms each.)
//
// Inputs: an ATen call, geometry of its operands. Outputs: sizes of its results, row-major, for operations of the table in
// result_sizes.cpp and of ir/lower/pointwise.def.
// Invariants: what is said is what eager gives; where that depends on more than sizes and constant arguments, nothing is said.
// Tests: tests/torch/test_shapes.py (against what eager gave), tests/traces/cases/sizes_*.py.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/trace.h"

namespace dynvm::torch_bridge {

using Sizes = std::vector<int64_t>;

// operands: what call.args[..].operands index, all of them tensors or run-time numbers, which have no dimensions. before: the results as they were recorded, for other sizes.
std::optional<std::vector<Sizes>> result_sizes(const ir::AtenCall& call, const std::vector<ir::TensorMeta>& operands, const std::vector<ir::TensorMeta>& before);

}  // namespace dynvm::torch_bridge
