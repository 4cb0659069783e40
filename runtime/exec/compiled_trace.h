// A trace that runs: machine code, the tensor program, activations, exits.
//
// Inputs: an optimised trace with its storage plan; the root frame's slots. Outputs: exits, and from them the state of every frame.
//
//     run() ──exit──► RunResult ──take_exit_state()──► frames' slots, the activation is over
//
// Invariants: the GIL is held. Between a run that left and its take_exit_state the activation keeps what it owns. A trace may be entered
// again while it runs (recursion, other threads): each run has its own activation and session. const_obj operands are alive as long as
// own() or a guard says so.
// Tests: tests/exec.
#pragma once

#include <Python.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/kernel.h"
#include "codegen/trace/compile.h"
#include "ir/trace.h"
#include "runtime/base/report.h"
#include "runtime/base/status.h"
#include "runtime/bridge/bridge.h"
#include "runtime/exec/host_kernels.h"
#include "runtime/exec/mirrors.h"
#include "runtime/exec/program.h"
#include "runtime/exec/stretches.h"

namespace dynvm::runtime {

struct CompileOptions {
  bool stress_exits = false;    // each guard fails once, the first time it is reached
  bool listing = false;         // keep the machine code's text (--dump=asm)
  bool stress_waits = false;    // ready() only when it has been asked a few times
  bool background = false;      // CUDA kernels are compiled while the script goes on: see ready()
  bool autotune = false;        // CUDA kernels get launch shapes by timing, but for those of traces under deterministic algorithms
  bool cuda_graphs = true;      // launch what needs nothing of the host as CUDA graphs
  base::profile::TraceData* profile = nullptr;  // what is measured goes there; null: nothing is
  bool count_residuals = false; // count each residual operation's runs and time by name, for the report
};

struct RunResult {
  enum Kind {
    kGuardExit,  // a guard did not hold
    kErrorExit,  // the Python exception is set: unwind at the innermost frame's position
    kLoopBreak,  // the eval breaker is set: the state is the loop header's, the root slots are written back, nothing to take
    kLeave,      // the trace's end
    kNoMemory,   // nothing has been done, and the Python exception says so
  } kind;
  int32_t snapshot = ir::kNoSnapshot;
  ir::Ref inst = ir::kNoRef;
  void* activation = nullptr;  // codegen::Activation*, for take_exit_state
};

// "call time.sleep", "get_attr shape": how reports and profiles name a residual operation.
std::string residual_name(const ir::Trace& trace, const ir::Inst& inst);

// In FrameState::slots of the root frame: the slot keeps what it holds.
inline PyObject* slot_unchanged() { return reinterpret_cast<PyObject*>(uintptr_t{1}); }

// The slots are the receiver's; function and continuation_value live as long as this, unless the receiver takes them and leaves null. Null
// where a slot is empty.
struct FrameState {
  FrameState() = default;
  FrameState(FrameState&& other) noexcept
      : function(std::exchange(other.function, nullptr)), code(other.code), unit(other.unit), continuation(other.continuation),
        continuation_value(std::exchange(other.continuation_value, nullptr)), slots(std::move(other.slots)) {}
  FrameState& operator=(FrameState&&) = delete;
  ~FrameState() {
    Py_XDECREF(function);
    Py_XDECREF(continuation_value);
  }

  PyObject* function = nullptr;            // null for the root frame
  PyCodeObject* code = nullptr;            // borrowed
  int unit = 0;
  uint8_t continuation = 0;
  PyObject* continuation_value = nullptr;
  std::vector<PyObject*> slots;
};

class CompiledTrace {
 public:
  // On error the message says what cannot be compiled. bridge: null when the trace has no tensors.
  static base::Status compile(ir::Trace&& optimised, const ir::Plan& plan, bridge::Bridge* bridge, const CompileOptions& options,
                              std::unique_ptr<CompiledTrace>* out);
  ~CompiledTrace();
  CompiledTrace(const CompiledTrace&) = delete;
  CompiledTrace& operator=(const CompiledTrace&) = delete;

  // root_slots: locals and value stack of the root frame, as at the loop header. Loops inside until it leaves.
  RunResult run(PyObject** root_slots, const volatile int* eval_breaker);

  // After kGuardExit, kErrorExit, kLeave: every frame's slots, root first. Ends the activation. An object that cannot be made (memory, a
  // wrap that raises) leaves its slot null and a Python exception set: the caller unwinds at the innermost position then.
  std::vector<FrameState> take_exit_state(const RunResult& result);

  // After kErrorExit: nothing that can be seen has been done since the state that the exit's snapshot describes, nor could the operation that failed have done it; so the
  // interpreter may try again from there, and raise what the script would have seen. take_exit_state as ever.
  bool may_do_again(const RunResult& result) const;

  // It may be run: with options.background only once its kernels have been compiled. failure(): why they could not be, asked then; it cannot be run.
  bool ready();
  base::Status failure() const;

  // The guard on a dict's version expects this one from now on.
  void renew_version(ir::Ref guard, int64_t version);

  // What its runs have shown of its CUDA graphs, for another process. That one's, before the first run; what does not belong to this trace is left alone.
  const StretchFindings& findings() const { return findings_; }
  void begin_with(StretchFindings findings);

  // Takes references over, to be dropped with the trace.
  void own(std::vector<PyObject*> objects);
  const std::vector<PyObject*>& owned() const { return owned_; }

  const ir::Trace& ir() const { return trace_; }
  const bridge::SessionFunctions& functions() const { return bridge_->functions(); }
  bridge::Bridge* bridge() const { return bridge_; }
  // After kGuardExit, before take_exit_state: the 64 bits of a value that was made before the exit. False where they are no longer there.
  bool value_at_exit(const RunResult& result, ir::Ref ref, int64_t* bits) const;
  uint64_t iterations() const { return iterations_; }  // of the loop
  // Iterations of the loop that one pass through the trace makes.
  int64_t rounds() const { return trace_.insts.back().op == ir::Op::k_loop ? trace_.insts.back().imm + 1 : 1; }
  uint64_t runs() const { return runs_; }
  uint64_t exits(ir::Ref inst) const { return exits_[inst]; }
  uint64_t total_exits() const { return total_exits_; }
  uint64_t stressed_guards() const { return code_->stressed(); }
  int tensor_ops() const { return tensor_ops_; }      // eager operations that one pass stands for
  int num_kernels() const { return static_cast<int>(host_kernels_.size() + cuda_kernels_.size()); }
  const codegen::TraceCode& code() const { return *code_; }
  size_t code_size() const;                           // machine code of trace and kernels
  const std::string& listing() const { return code_->listing(); }
  const std::vector<std::pair<size_t, ir::Ref>>& marks() const { return code_->marks(); }
  // Of the trace's kernel with that number: its machine code (null on a GPU), the device, the source for it (empty on the CPU).
  const codegen::CompiledKernel* kernel(size_t number) const { return host_kernels_.of(number); }
  const codegen::cuda::CudaKernel* cuda_kernel(size_t number) const;  // null: it is one of the CPU's
  // Runs and time of each residual operation by its name (with count_residuals). The report has those of all traces, dropped ones too.
  std::map<std::string, base::ResidualReport> residuals() const;
  // How many of each name an iteration has.
  std::map<std::string, int> residual_operations() const;

 private:
  friend class Materialiser;
  CompiledTrace() = default;
  base::Status build(const ir::Plan& plan, bridge::Bridge* bridge, const CompileOptions& options);
  base::Status compile_kernels(std::vector<codegen::KernelEntry>* entries, const CompileOptions& options);
  void plan_arena(StretchPlan* plan) const;
  void plan_stretches(const std::vector<codegen::KernelEntry>& entries);
  bool on_gpu() const;
  static int barrier(codegen::Activation* activation, int32_t inst);
  bool looks(codegen::Activation* activation, ir::Ref ref);
  codegen::Activation* acquire();
  void release(codegen::Activation* activation);
  void end(codegen::Activation* activation, ir::Ref inst);
  static int write_back(codegen::Activation* activation);
  static void let_go(codegen::Activation* activation, int32_t slot);
  static PyObject* wrap(codegen::Activation* activation, int32_t inst);
  static bool rebuild(codegen::Activation* activation, const std::vector<ir::Ref>& wraps);
  bool tell_numbers(codegen::Activation* activation, int32_t wrap);
  static int read_scalar(bridge::Session* session, int32_t tensor, int64_t* value, codegen::Activation* activation, int32_t inst);
  static void set_recipe(codegen::Activation* activation, int32_t inst, int32_t index, PyObject* recipe);
  int64_t number(codegen::Activation* activation, ir::Ref ref) const;  // its 64 bits

  ir::Trace trace_;
  codegen::ValuePlan values_;
  codegen::HelperTable helpers_;
  TracePrograms programs_;
  HostKernels host_kernels_;
  std::map<size_t, const codegen::cuda::CudaKernel*> cuda_of_kernel_;
  std::vector<std::unique_ptr<codegen::cuda::CudaKernel>> cuda_kernels_;
  bridge::Bridge* bridge_ = nullptr;
  bool rebuilds_writes_ = false;                      // some graph is rebuilt by calls that write what others may have read
  std::unique_ptr<bridge::Program> program_;
  std::unique_ptr<codegen::TraceCode> code_;
  MirrorPlan mirrors_;
  StretchPlan stretches_;
  StretchFindings findings_;
  std::vector<codegen::Activation*> all_, free_;
  std::vector<std::pair<int32_t, ir::Ref>> written_;  // root slots that the loop changes
  std::vector<PyObject*> owned_;
  std::vector<uint64_t> exits_;
  std::vector<codegen::ResidualCounter> residuals_;
  base::profile::TraceData* profile_ = nullptr;
  bool ready_ = false;
  int waits_ = 0;                // times that ready() is still to be false, under stress
  uint64_t iterations_ = 0, runs_ = 0, total_exits_ = 0;
  int tensor_ops_ = 0;
};

}  // namespace dynvm::runtime
