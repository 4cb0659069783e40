// Compiles a trace to x86 machine code.
//
// Inputs: an optimised trace that verifies, its value plan, the numbers that the tensor part has in its session, addresses of helpers and
// kernels. Output: executable code, to be entered with an Activation (activation.h).
//
// How. Template code: each instruction loads its operands from their slots, computes, stores its result; constants are immediates. There
// is no register allocation across instructions: nearly all time is spent in what is called. Registers: rbx the activation, r12 the root
// slots, r13 the session; the rest is scratch inside an instruction.
// A guard costs a compare and a jump to a stub behind the hot code; long runs of version guards are one loop over a table.
//
// Tests: tests/exec.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codegen/trace/activation.h"
#include "codegen/trace/helper_table.h"
#include "codegen/trace/python_layout.h"
#include "codegen/trace/value_plan.h"
#include "ir/trace.h"
#include "runtime/base/status.h"

namespace dynvm::codegen {

// How the tensor part of a trace is called: indexes into the session's program.
struct TensorPlan {
  std::vector<int32_t> tensor;              // by Ref: tensor index, -1 for other values
  std::vector<int32_t> call;                // by Ref of an aten: call index, -1 when nothing runs (views, sunk calls)
  std::vector<int32_t> wrap;                // by Ref of a wrap: wrap index
  std::vector<std::vector<int32_t>> allocate;  // by Ref: fresh and lent storages to allocate before it
  ir::Ref arranged_at = ir::kNoRef;         // before which the session arranges its arena
  std::vector<std::vector<int32_t>> drop;      // by Ref: storages whose memory is not needed behind it: of calls, lent, and of inputs that the script has replaced
};

// A compiled kernel: entry(storage_data, scalars), or entry(context, storage_data, scalars, activation) when there is a context. The session's call and read_scalar get
// the activation as a fourth argument too, read_scalar its instruction as a fifth.
struct KernelEntry {
  const void* entry = nullptr;
  const void* context = nullptr;
  std::vector<ir::Ref> more;  // numbers that it is given behind its instruction's own
  bool on_device = false;     // profilers see it where it runs
};

// What a residual operation did in all runs. ticks: of the processor's time stamp counter, from before its operands are gathered to after it.
struct ResidualCounter {
  uint64_t runs = 0, ticks = 0;
};

struct TraceCodeOptions {
  bool stress_exits = false;                 // each guard fails once
  bool listing = false;                      // keep the text for --dump=asm
  std::vector<ResidualCounter>* counters = nullptr;  // by Ref: of residual operations; null: not counted. Must not move.
  base::profile::TraceData* profile = nullptr;       // its meters, by Ref, run while instructions that call something do; null: nothing is measured
};

struct TraceCodeInput {
  const ir::Trace* trace;
  const ValuePlan* values;
  const TensorPlan* tensors;
  const PythonLayout* layout;
  const HelperTable* helpers;
  std::vector<KernelEntry> kernels;          // by kernel index
};

class TraceCode {
 public:
  ~TraceCode();
  TraceCode(const TraceCode&) = delete;
  TraceCode& operator=(const TraceCode&) = delete;

  TraceEntry entry() const { return entry_; }
  size_t size() const { return size_; }
  int32_t num_scratch() const { return num_scratch_; }  // words behind the values that an activation needs
  const std::string& listing() const { return listing_; }
  // Where the text of each instruction begins in the listing, in order; the last entry is that of the exits.
  const std::vector<std::pair<size_t, ir::Ref>>& marks() const { return marks_; }
  // Of a guard on a dict's version.
  void set_version(ir::Ref guard, int64_t version);
  uint64_t stressed() const;                            // guards that have been made to fail

 private:
  friend class TraceEmitter;
  TraceCode() = default;
  TraceEntry entry_ = nullptr;
  size_t size_ = 0;
  int32_t num_scratch_ = 0;
  std::string listing_;
  std::vector<std::pair<size_t, ir::Ref>> marks_;
  std::deque<std::string> names_;              // that profilers are shown
  std::vector<std::vector<int64_t>> tables_;   // guard tables that the code points into
  std::vector<std::vector<int64_t>> versions_; // the same of {object, version, instruction}
  std::vector<uint8_t> stress_;                // by Ref: 1 while the guard has yet to fail
  uint64_t stress_sites_ = 0;
};

// It calls something that a profile names: a kernel, the library, a residual operation, the end of an iteration.
base::profile::Kind profile_kind(const ir::Inst& inst);

// An instruction that cannot be compiled is an error that names it.
base::Status compile_trace(const TraceCodeInput& input, const TraceCodeOptions& options, std::unique_ptr<TraceCode>* code);

}  // namespace dynvm::codegen
