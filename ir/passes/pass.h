// The passes over traces and their driver.
//
// Inputs: a trace that verifies, options. Outputs: the same trace rewritten; it verifies again and means the same. Invariants each pass
// keeps: effects on Python and on memory that outlives the trace happen in the recorded order; at each snapshot, the values it names are
// what they were; a guard reads only objects that earlier guards have shown alive. Each pass's file says how.
// Tests: tests/ir/passes/<name>/*.ir.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/trace.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/status.h"
#include "runtime/base/switches.h"

namespace dynvm::ir {

struct PassOptions {
  std::vector<std::string> only;       // names of the passes to run, in the default order; empty: all
  std::vector<std::string> without;    // names of passes to leave out
#ifdef DYNVM_DEBUG
  bool verify = true;                  // after each pass
#else
  bool verify = false;
#endif
  // Limits of one fused kernel: more operands than registers for their addresses cost reloads, more nodes cost compile time.
  int max_kernel_operands = base::heuristics().fuse_operands;
  int max_kernel_nodes = base::heuristics().fuse_nodes;
  // Below this many points, independent operations over one iteration space share a kernel too: launching costs more than memory.
  int64_t small_space = base::heuristics().fuse_small;
  bool fuse_reductions = !base::left_out(base::Part::kReductions);
  bool fuse_cuda = false;              // lower operations on CUDA tensors too
  int stages_device = 1;               // device type (c10's) whose kernels are divided by stages
  int64_t stages_from = int64_t{base::heuristics().cuda_stage_bytes} << 10;  // bytes
  int64_t inplace_from = int64_t{base::heuristics().cuda_lent_from} << 10;  // bytes, on GPUs
  int channels_last = base::heuristics().channels_last;
  int fast_convolutions = 2;           // as Bridge::fast_convolutions says
  bool fuse_symbols = !base::left_out(base::Part::kSymbols);  // operations whose sizes are symbols too
  std::vector<std::string> keep_aten;  // operations ("aten::_softmax") that stay library calls
  // Called after each pass that ran (for --dump): its name and the trace.
  std::function<void(std::string_view, const Trace&)> after;
};

// Runs the passes. An error (only with options.verify, or for an unknown name) names the pass and the broken rule.
base::Status run_passes(Trace& trace, const PassOptions& options);

// Is it one of keep_aten, or left out by --disable=op?
bool stays_aten(const PassOptions& options, const std::string& name);

struct PassInfo {
  std::string_view name;
  void (*function)(Trace&, const PassOptions&);
  std::string_view sentence;
};
const std::vector<PassInfo>& all_passes();

void pass_fold(Trace& trace, const PassOptions& options);
void pass_cse(Trace& trace, const PassOptions& options);
void pass_hoist(Trace& trace, const PassOptions& options);
void pass_dce(Trace& trace, const PassOptions& options);
void pass_sink(Trace& trace, const PassOptions& options);
void pass_epilogue(Trace& trace, const PassOptions& options);
void pass_channels_last(Trace& trace, const PassOptions& options);
void pass_fuse(Trace& trace, const PassOptions& options);
void pass_stages(Trace& trace, const PassOptions& options);
void pass_early(Trace& trace, const PassOptions& options);
void pass_inplace(Trace& trace, const PassOptions& options);

// By instruction: whether dce keeps it. quiet, by instruction or empty: a call there counts as one that cannot leave the trace.
std::vector<bool> live_instructions(const Trace& trace, const std::vector<bool>& quiet);

// Shared by cse and hoist: merges equal instructions as cse does; `guards_only` leaves the rest alone.
void merge_equal(Trace& trace, bool guards_only);

}  // namespace dynvm::ir
