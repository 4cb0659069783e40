// The tensor part of a trace as the torch bridge wants it, and how generated code names its pieces.
//
// Inputs: an optimised trace, its storage plan. Outputs: a bridge::ProgramSpec and a codegen::TensorPlan whose indexes agree.
// Invariants: every tensor value has an index; only calls that do something at run time, or that a wrap may run again, are in the program.
// Tests: tests/exec/tensor_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/trace/compile.h"
#include "ir/trace.h"
#include "runtime/base/status.h"
#include "runtime/bridge/bridge.h"

namespace dynvm::runtime {

struct StoragePlan {
  std::vector<bridge::StorageSpec> storages;  // by the trace's storage id
  int64_t arena_bytes = 0;
};

struct TracePrograms {
  bridge::ProgramSpec spec;
  codegen::TensorPlan plan;
  bool has_tensors = false;
};

base::Status build_program(const ir::Trace& trace, const StoragePlan& storages, TracePrograms* out);

}  // namespace dynvm::runtime
