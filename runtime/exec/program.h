// The tensor part of a trace as the torch bridge wants it, and how generated code names its pieces.
//
// Inputs: an optimised trace, its storage plan. Outputs: a bridge::ProgramSpec and a codegen::TensorPlan whose indexes agree.
// Invariants: every tensor value has an index; only calls that do something at run time, that a wrap may run again, or that kernels draw for, are in the program.
// Tests: tests/exec/test_tensors.py, test_torch.py.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/trace/compile.h"
#include "ir/plan.h"
#include "ir/trace.h"
#include "runtime/base/status.h"
#include "runtime/bridge/bridge.h"

namespace dynvm::runtime {

// The run-time numbers of a call that does not run by itself, because it was fused, but that a wrap may run again.
struct FusedNumbers {
  int32_t call;
  std::vector<ir::Ref> numbers;
};

struct TracePrograms {
  bridge::ProgramSpec spec;
  std::vector<std::vector<FusedNumbers>> wrap_numbers;  // by wrap index: what the bridge must be told before
  codegen::TensorPlan plan;
  bool has_tensors = false;
};

base::Status build_program(const ir::Trace& trace, const ir::Plan& plan, TracePrograms* out);

}  // namespace dynvm::runtime
