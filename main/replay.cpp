// Traces as they were recorded, compiled again under other numbers, without the script (`dynvm replay`).
//
// Purpose: what the passes and the code generator make of a trace depends on the trace and on heuristics.def alone. A trace that --record-to wrote is
//   parsed, the passes run, each kernel for CPUs is compiled for this processor; nothing is run.
// Inputs: the text of a trace (ir/text.h), words of --heuristics. Outputs: JSON.
// Invariants: the process's numbers are afterwards what they were. Kernels for GPUs are made as far as the fuse pass goes: cost and code are null. What a
//   trace's machine code around the kernels would be is not asked: it depends on objects that only the recording process had.
// Tests: tests/lab/test_replay.py.
#include <Python.h>
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/heuristics.h"
#ifdef DYNVM_HAS_TRACER
#include "codegen/x86/kernel/compile.h"
#include "ir/effects.h"
#include "ir/kernel/symbols.h"
#include "ir/passes/pass.h"
#include "ir/text.h"
#include "ir/verify.h"
#endif

#define DYNVM_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

namespace base = dynvm::base;

#ifdef DYNVM_HAS_TRACER
namespace ir = dynvm::ir;
namespace codegen = dynvm::codegen;
using Json = nlohmann::ordered_json;

class OtherNumbers {
 public:
  explicit OtherNumbers(const base::Heuristics& numbers) : before_(base::heuristics()) { base::set_heuristics(numbers); }
  ~OtherNumbers() { base::set_heuristics(before_); }
  OtherNumbers(const OtherNumbers&) = delete;
  OtherNumbers& operator=(const OtherNumbers&) = delete;

 private:
  base::Heuristics before_;
};

bool computes(const ir::KernelNode& node) {
  switch (node.op) {
    case ir::KOp::k_load:
    case ir::KOp::k_load_at:
    case ir::KOp::k_const:
    case ir::KOp::k_scalar:
    case ir::KOp::k_index: return false;
    default: return true;
  }
}

base::Status describe(const ir::Kernel& kernel, bool cuda, Json* row) {
  const bool symbolic = ir::has_symbols(kernel);
  *row = {{"name", kernel.name},
          {"nodes", kernel.nodes.size()},
          {"operations", std::count_if(kernel.nodes.begin(), kernel.nodes.end(), computes)},
          {"operands", kernel.operands.size()},
          {"points", nullptr},
          {"reduces", kernel.reduce_dims != 0},
          {"device", cuda ? "cuda" : "cpu"},
          {"cost_ns", nullptr},
          {"per_point", symbolic},
          {"parallel", nullptr},
          {"code_bytes", nullptr}};
  if (!symbolic) (*row)["points"] = kernel.num_points();
  if (cuda) return {};
  std::unique_ptr<codegen::CompiledKernel> compiled;
  if (base::Status status = codegen::compile_kernel(kernel, codegen::cpu_features(), {}, &compiled); !status) return status.in(kernel.name);
  (*row)["cost_ns"] = compiled->cost();
  (*row)["parallel"] = compiled->parallel();
  (*row)["code_bytes"] = compiled->code_size();
  return {};
}

bool on_cuda(const ir::Trace& trace, const ir::Inst& launch) {
  for (uint32_t k = 0; k < launch.count; ++k) {
    const int32_t meta = trace.insts[trace.arg(launch, k)].meta;
    if (meta >= 0) return trace.metas[static_cast<size_t>(meta)].device_type == 1;
  }
  return false;
}

base::Status replay(const char* text, const char* words, Json* result) {
  base::Heuristics numbers;
  if (base::Status status = base::parse_heuristics(words, &numbers); !status) return status;
  ir::Trace trace;
  if (base::Status status = ir::parse_trace(text, &trace); !status) return status;
  if (base::Status status = ir::verify_trace(trace); !status) return status;
  if (!trace.kernels.empty()) return base::Status::failure("a trace after the passes: only one as it was recorded can be compiled again");
  const OtherNumbers in_force(numbers);
  const size_t recorded = trace.insts.size();
  ir::PassOptions options;
  options.verify = true;
  options.fuse_cuda = std::any_of(trace.metas.begin(), trace.metas.end(), [](const ir::TensorMeta& meta) { return meta.device_type == 1; });
  if (base::Status status = ir::run_passes(trace, options); !status) return status;

  int launches = 0, library = 0, guards = 0;
  std::vector<bool> cuda(trace.kernels.size(), false);
  for (const ir::Inst& inst : trace.insts) {
    if (inst.sunk) continue;
    if (inst.op == ir::Op::k_kernel) {
      launches++;
      cuda[static_cast<size_t>(inst.imm)] = on_cuda(trace, inst);
    }
    library += inst.op == ir::Op::k_aten && !ir::is_view_call(trace, inst);
    guards += ir::has_effect(inst, ir::kGuard);
  }
  *result = {{"name", trace.name}, {"id", trace.id},       {"recorded_insts", recorded}, {"insts", trace.insts.size()}, {"guards", guards},
             {"launches", launches}, {"library_calls", library}, {"kernels", Json::array()}};
  for (size_t k = 0; k < trace.kernels.size(); ++k) {
    Json row;
    if (base::Status status = describe(trace.kernels[k], cuda[k], &row); !status) return status;
    (*result)["kernels"].push_back(std::move(row));
  }
  return {};
}
#endif

}  // namespace

// What becomes of a trace under these numbers, as JSON; the GIL is held. Null with a ValueError: the text or the words are wrong, or a kernel cannot be
// compiled. The text lives until the next call.
DYNVM_EXPORT const char* dynvm_replay(const char* text, const char* words) {
  static std::string json;
#ifdef DYNVM_HAS_TRACER
  Json result;
  const base::Status status = replay(text, words, &result);
  if (status) json = result.dump(-1, ' ', false, Json::error_handler_t::replace);
#else
  const base::Status status = base::Status::failure("this build has no tracer");
#endif
  if (status) return json.c_str();
  PyErr_SetString(PyExc_ValueError, status.message().c_str());
  return nullptr;
}

// Are these words of --heuristics right? Returns 0, or -1 with a ValueError; nothing is set.
DYNVM_EXPORT int dynvm_check_heuristics(const char* words) {
  base::Heuristics numbers;
  const base::Status status = base::parse_heuristics(words, &numbers);
  if (status) return 0;
  PyErr_SetString(PyExc_ValueError, status.message().c_str());
  return -1;
}
