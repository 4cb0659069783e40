// Kernels on GPUs that one launch does: an optimizer's, one for each parameter.
//
// Inputs: a trace, its program. Outputs: all its kernels on GPUs, in groups by their instructions; the first of a group launches it. What they need allocated is allocated before
// that one (TracePrograms::plan).
// Invariants: between a group's first and last instruction nothing is done but kernels, none of which touches what another one of them writes, storage or arena's
// memory; a group's kernels are on one device, of one form (codegen/cuda/batch.h).
// Tests: tests/exec/batches_test.cpp; tests/cuda (on a machine with a GPU).
#pragma once

#include <vector>

#include "ir/trace.h"
#include "runtime/exec/program.h"

namespace dynvm::runtime {

std::vector<std::vector<ir::Ref>> kernel_batches(const ir::Trace& trace, TracePrograms* programs);

}  // namespace dynvm::runtime
