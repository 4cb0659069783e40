// A Program: the tensor part of one compiled trace, prepared once for any number of sessions.
//
// Inputs: a ProgramSpec. Outputs: plans for each storage, tensor, call and wrap, and pooled Sessions.
// Invariants: a plan never changes after build(); everything that a run changes is in Session (session.h). Tests: tests/torch.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/kernel/symbols.h"
#include "runtime/bridge/bridge.h"
#include "runtime/torch/direct.h"
#include "runtime/torch/operator_facts.h"

namespace dynvm::torch_bridge {

class SessionImpl;

enum class CallHow : uint8_t {
  kNothing,    // a view of constant geometry, or a number read by read_scalar
  kMovedView,  // a view whose offset depends on run-time scalars, as memory of its own
  kDirect,     // a function of direct.def
  kInPlace,    // the recorded operator, boxed, which writes its arguments
  kOut,        // its out overload, boxed
  kFunctional, // the recorded operator, boxed; results are taken over
  kOpen,       // the same, also of views, where their geometry is what comes
};

// Where a tensor or scalar goes in a call's argument stack. element: place in a list argument, else -1.
struct TensorPlace {
  int32_t argument, element, tensor;
  bool required_grad;              // the operand of the recorded call required grad (a detached look-alike did not)
};
struct ScalarPlace {
  enum As : uint8_t { kInt, kFloat, kBool, kNumberTensor } as;
  int32_t argument, element, scalar;
  ir::DType bits;                  // what the 64 bits are: kI64, kF64 or kBool
};

struct CallPlan {
  explicit CallPlan(c10::OperatorHandle o) : op(std::move(o)) {}
  c10::OperatorHandle op;
  std::optional<c10::OperatorHandle> moving;  // of a call that `moves`: the operation in place
  ir::AtenCall call;
  CallHow how = CallHow::kNothing;
  Direct direct;
  std::optional<OutOverload> out;
  std::vector<c10::IValue> constants;     // argument stack with holes at the places below
  std::vector<TensorPlace> tensors;
  std::vector<ScalarPlace> scalars;
  std::vector<int32_t> results;           // tensor index or -1
  std::vector<c10::ScalarType> result_types;  // of each, also where nothing uses it
  std::vector<int32_t> allocates;         // result storages that a planned form needs allocated first
  std::vector<int32_t> snapshots;         // input storages that it writes and a wrap may need as they were before
  bool leaves = false;                    // results of other sizes than recorded leave the trace
  bool scratch = false;                   // gets memory for results that nobody uses, of another size each time
  bool small = false;                     // runs on the calling thread: its tensors are CPU tensors of few elements (small_work.h)
  bool packs_weight = false;              // packed_convolution.h, with the weight that is bound for tensors[1]
  bool keeps_generator = false;           // a wrap may run it again: remember the generator's state before each run
};

struct StoragePlan {
  bridge::StorageSpec spec;
  c10::Device device{c10::kCPU};
  int64_t bytes = 0;                      // size of the shadow storage
  int64_t first_byte = 0, last_byte = 0;  // what the tensors on it touch
  int32_t arena = -1;                     // kArena: index into ProgramImpl::arenas, -1 where no memory is needed
  std::vector<int32_t> tensors, wraps;    // that lie on it
};

struct TensorPlan {
  ir::TensorMeta meta;
  c10::ScalarType type = c10::ScalarType::Undefined;
  c10::DispatchKeySet keys;               // of a tensor of this kind
  // The view call that makes this tensor from another, for real ones to be made the same way; -1 when none.
  int32_t view_call = -1, view_result = -1, view_base = -1;
  int32_t copy_of = -1;                   // a copy in other strides of that tensor, which the script does not know of
  bool own_size = false;                  // a library call's for another one, which has the size that it comes with (quirks.def)
  bool stands_alone = false;              // that call is detach() of something computed: the result has no base
  std::vector<ir::Product> sizes, strides;  // meta.symbolic
  ir::Product offset;
};

// A symbol that is the sum of others.
struct SumPlan {
  size_t symbol;
  std::vector<ir::Product> terms;
};

// Calls that a node may run again when the trace is gone (graph_nodes.h).
struct RepeatedCalls {
  std::vector<CallPlan> calls;
  std::vector<int32_t> numbers;           // in the program
  std::vector<c10::DeviceType> devices;
  std::vector<int32_t> leaves;            // tensors that they read and do not make
  std::set<int32_t> written;              // among these: statistics that a call keeps, and does not read
  std::vector<int32_t> nodes;             // by call: the number of the graph's node that it belongs to, -1: of none
  std::map<int32_t, std::vector<int32_t>> inputs;  // by the number of a node
};

struct WrapPlan {
  bridge::WrapSpec spec;
  std::shared_ptr<const RepeatedCalls> repeated;  // where its graph is made of nodes
  std::vector<bool> writes_storage;       // per storage: `forward` writes it, so an input there is cloned first
};

class ProgramImpl final : public bridge::Program {
 public:
  // Null and `*error` set when an operator is unknown or something in the spec cannot be run.
  static std::unique_ptr<ProgramImpl> build(const bridge::ProgramSpec& spec, std::string* error);
  ~ProgramImpl() override;
  bridge::Session* acquire() override;
  void release(bridge::Session* session) override;
  bridge::CallFacts facts(int32_t call) override;   // capture.cpp

  std::vector<StoragePlan> storages;
  std::vector<TensorPlan> tensors;
  std::vector<CallPlan> calls;
  std::vector<WrapPlan> wraps;
  std::vector<ir::TorchState> states;
  std::vector<int32_t> generator_calls;   // calls that keep the generator's state
  std::vector<c10::Device> draws_on;      // devices for whose generators kernels may draw
  struct Arena {
    c10::Device device;
    int64_t bytes;
  };
  std::vector<Arena> arenas;              // one for each device that arena storages lie on
  bool has_graphs = false;                // what was handed out may be asked for its graph
  bool keeps_small = true;                // see bridge::ProgramSpec
  bool arranges = false;                  // each session arranges them for the symbols' values; bytes here are 0
  std::vector<std::vector<int32_t>> tensors_of_symbol;
  std::vector<SumPlan> sums;              // in the order in which they may be computed

 private:
  ProgramImpl();
  void plan_storages(const bridge::ProgramSpec& spec);
  void plan_tensors(const bridge::ProgramSpec& spec);
  void plan_call(const bridge::CallSpec& spec);
  void plan_view(CallPlan* plan) const;
  void convert_numbers(CallPlan& plan);
  void plan_wrap(const bridge::WrapSpec& spec);
  std::shared_ptr<const RepeatedCalls> plan_repeated(const bridge::WrapSpec& spec) const;
  std::vector<std::unique_ptr<SessionImpl>> pool_;
};

// The argument stack of a call. tensor: gives the operand at a position of the call's operands. Run-time scalars are 0.
std::vector<c10::IValue> make_arguments(const ir::AtenCall& call, const c10::OperatorHandle& handle, const std::function<at::Tensor(int32_t)>& tensor);

// How a call would be run, from its schema and arguments alone.
CallHow classify(const ir::AtenCall& call, const OperatorFacts& facts, bool on_cpu, std::optional<OutOverload>* out, Direct* direct);

}  // namespace dynvm::torch_bridge
