// The reference evaluator of traces: runs scalar and tensor instructions on plain host memory, in order, in the plainest way.
//
// Inputs: a trace, memory for its input storages, values for its unboxed numbers. Outputs: the memory afterwards, what could be seen on
// the way, or why it cannot be evaluated. ATen operations are written here a second time, element by element and without lower/, so that
// evaluating a trace before and after a pass checks the pass; kernels run through kernel/eval.h.
//
// Python objects do not exist here: guards on them hold, loads give nothing, calls change nothing. Every guard, barrier and end is an
// *observation*: the bytes of all memory that could be seen there (inputs, tensor objects made, and those of its snapshot), as the script sees it.
//
// Invariant: the trace verifies. f32 is computed in f32, each operation rounded once; f16 and bf16 in f32, rounded at an operation's end.
// Tests: tests/ir/fuse_fuzz.cpp, tests/ir/lower_run.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "ir/trace.h"
#include "runtime/base/status.h"

namespace dynvm::ir {

using Memory = std::vector<std::vector<uint8_t>>;  // by storage

// Small numbers: values are doubles here.
struct Generator {
  int64_t seed = 2026, offset = 40;
};

struct Observation {
  Op op;                                           // of the instruction
  std::map<int32_t, std::vector<uint8_t>> memory;  // by storage
};

struct Evaluation {
  Memory memory;
  std::map<Ref, double> numbers;   // unbox_float, unbox_int, unbox_bool: their values
  std::vector<Observation> seen;
  Generator generator;             // of all devices
  Ref left_at = kNoRef;            // the instruction at which the trace was left
  // How kernels run; unset: kernel/eval.h.
  std::function<base::Status(const Kernel&, void* const* pointers, const int64_t* scalars)> run_kernel;
};

// Bytes that each storage needs, by all metadata of the trace.
std::vector<int64_t> storage_bytes(const Trace& trace);

// Fills in->memory for storages that are absent (pattern 0xA5: nothing may depend on it), then runs. Fails on an operation it does not know.
base::Status evaluate(const Trace& trace, Evaluation* evaluation);

// One element of a dtype, as the evaluator and its tests read and write it.
double load_number(const uint8_t* at, DType dtype);
void store_number(uint8_t* at, DType dtype, double value);

}  // namespace dynvm::ir
