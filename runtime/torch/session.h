// A Session: the tensors of one running activation of a Program.
//
// Every tensor of the program is a persistent "shadow": a TensorImpl over a StorageImpl that does not own its memory. Binding an input,
// allocating an escaping result or adopting a call's result only points the storage elsewhere.
//
//   input storage    -> memory of the bound tensor's storage, shifted when that tensor lies at another offset than the recorded one
//   arena storage    -> arena + offset, for good, or as arrange() says for the symbols' values; where a CUDA graph has memory for it, as a lent one (rearrange)
//   fresh storage    -> an owning storage made by allocate(), which escaping tensors share
//   result storage   -> the storage that the defining call returned, or a buffer of the recorded geometry
//
// Where a run decides the geometry (TensorMeta::open), the call is run for views too, and the shadow takes the geometry of what it gives. Where that is made of
// symbols (TensorMeta::symbolic), the first tensor of an iteration that has a symbol as a size says what it is, all others have to agree, and all shadows made of it
// change with it.
//
// Inputs: tensor objects, scalars. Outputs: storage_data, real tensors.
// Invariants: the GIL is held. Between end_iteration and the next bind or allocate no tensor of the script is held.
// Tests: tests/torch.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <map>
#include <optional>
#include <vector>

#include "runtime/torch/arenas.h"
#include "runtime/torch/graph_nodes.h"
#include "runtime/torch/packed_convolution.h"
#include "runtime/torch/philox.h"
#include "runtime/torch/program.h"

namespace dynvm::torch_bridge {

struct StorageSlot {
  c10::intrusive_ptr<c10::StorageImpl> shadow;
  c10::Storage real;                 // what backs it in this iteration, if it can escape
  c10::Storage shown;                // a copy in the strides that the script sees, where the trace has others (ir::TensorMeta::shown)
  c10::Storage rebuilt;              // what a rebuilt graph's tensor that the script has was computed into
  bool shared = false;               // those tensors are on real, or shown, with all others that the script has of it
  int64_t shift = 0;                 // bytes added to real's start: offset of the bound tensor less the recorded offset
  uint32_t pending_version = 0;      // bumps of a fresh storage before a tensor on it was made
  bool has_counter = false;
  c10::VariableVersion counter{0};   // shared by all real tensors on this storage
  bool in_use = false;               // to be reset at the end of the iteration
};

struct CallState {
  std::vector<c10::IValue> arguments;   // in schema order, shadows in their places; run-time scalars as of the last run
  std::vector<at::Tensor> results;      // shadows or scratch
  PackedConvolution convolution;        // where the plan packs weights
  enum OutForm : uint8_t { kUntried, kFits, kRefused } out_form = kUntried;  // does it leave the memory that it is given as it is? (run_out)
  at::Generator generator;              // state before this iteration's run, where the plan keeps it
  std::optional<GeneratorPlace> drawn;  // the same, where kernels stood for it
};

// Are these the sizes of the meta's, where they are not open? defined: nothing else decides the open ones, so those that torch treats in a way of their own are refused.
bool sizes_fit(const ir::TensorMeta& meta, c10::IntArrayRef sizes, bool defined);

class CapturesImpl;

class SessionImpl {
  friend class CapturesImpl;

 public:
  explicit SessionImpl(ProgramImpl& program);
  SessionImpl(const SessionImpl&) = delete;

  int bind_input(int32_t tensor, PyObject* object);
  int check_state(int32_t state);
  void show_begin(const char* name);
  void show_end() { shown_.reset(); }
  int allocate(int32_t storage);
  int arrange();
  int rearrange(std::vector<ir::Piece> pieces);
  bool hand_over(size_t from, size_t to);
  int call(int32_t number, const int64_t* scalars);
  int set_numbers(int32_t number, const int64_t* scalars);
  int read_scalar(int32_t tensor, int64_t* value);
  int scalar_of(int32_t tensor, const void* element, int64_t* value) const;
  int bump_version(int32_t tensor, int32_t by);
  int64_t tensor_size(int32_t tensor, int32_t dim) const;
  int64_t seed(int32_t call) const;      // philox.cpp
  int draw(int32_t call, int64_t increment, int64_t* offset);
  int rebuild(const int32_t* calls, const int32_t* wraps, int32_t count);
  PyObject* wrap(int32_t number);
  void set_recipe(int32_t wrap, int32_t index, PyObject* recipe);
  void end_iteration();
  void drop_storage(int32_t storage);
  void drop_caches();                   // memory kept for the next iteration

  struct Refusal {
    const char* reason = "";
    bool by_geometry = false, by_sharing = false;
    std::vector<int64_t> sizes, strides;  // by_geometry: of the tensor that was given
  };
  static Refusal& last_refusal();       // why the last bind_input that failed did

  bridge::Session face;

  int begin_run();
  void end_run();

 private:
  // --- session.cpp
  const char* refusal_of_input(int32_t number, PyObject* object);
  void point(size_t storage, void* data);
  c10::Device device_of(const CallPlan& plan) const;
  bridge::StorageSpec::Kind kind(size_t storage) const { return apart_[storage] ? bridge::StorageSpec::kLent : program_.storages[storage].spec.kind; }
  void take(size_t arena);
  void place(std::vector<ir::Piece> pieces);  // arena storages in their arenas
  void point_into_arena(size_t arena);
  void use(size_t storage);
  bool serves_again(size_t storage) const;    // memory of a fresh one, in the next iteration
  bool claims_storage(const c10::StorageImpl* real, int32_t storage);
  void put_scalars(const CallPlan& plan, CallState& state, const int64_t* scalars);
  int run_boxed(const CallPlan& plan, CallState& state);
  bool run_out(const CallPlan& plan, CallState& state);
  int run_packed(const CallPlan& plan, CallState& state, bool* done);
  bool take_result(int32_t tensor, const at::Tensor& result, const CallPlan& plan, bool view);
  bool adopt(int32_t tensor, const at::Tensor& result, const CallPlan& plan);
  bool adopt_open(int32_t tensor, const at::Tensor& result, const CallPlan& plan, bool view);
  bool adopt_symbolic(int32_t tensor, const at::Tensor& result, const CallPlan& plan, bool view);
  bool is_of_argument(const c10::Storage& storage, const CallPlan& plan) const;
  bool learn_symbols(const TensorPlan& plan, c10::IntArrayRef sizes);
  bool tell(size_t symbol, int64_t value);
  bool lies_as_planned(const TensorPlan& plan, c10::IntArrayRef strides) const;
  int64_t bytes_now(size_t storage) const;
  bool move_view(const CallPlan& plan, CallState& state);

  // --- real_tensors.cpp
  at::Tensor tensor_over(const c10::Storage& storage, const TensorPlan& plan, int64_t shift_bytes);
  const TensorPlan& plan_now(int32_t tensor, TensorPlan* opened) const;  // with the geometry of this iteration; *opened: where it may be put
  void need_memory(size_t storage);                       // for what an exit hands out
  void own_memory(size_t storage);                        // copies an arena storage out so that it can escape
  at::Tensor as_shown(int32_t tensor);                    // a copy with the strides that the script sees
  const at::Tensor& graph_value(int32_t tensor) const;    // undefined where the rebuilt graph has none
  at::Tensor real_tensor(int32_t tensor, bool detach_base);
  void snapshot(size_t storage);                          // keeps a copy of a bound input's storage, once an iteration
  bool looks_at_input(int32_t number) const;
  at::Tensor graph_operand(int32_t tensor, bool required_grad, const WrapPlan& plan);
  void run_once(int32_t call, const WrapPlan& plan);
  void run_again(int32_t call, const WrapPlan& plan);
  void apply_function(const CallPlan& call, int32_t number, const WrapPlan& plan);
  at::Tensor wrap_live(const WrapPlan& plan);
  at::Tensor freed_value(int32_t tensor, const std::string& grad_fn, int32_t output_nr);
  void note_rebuilt(int32_t tensor, const at::Tensor& value);
  void share_memory(size_t storage);
  bool move_rebuilt(size_t storage, bool to_shared);
  at::Tensor wrap_with_nodes(int32_t number, const WrapPlan& plan);
  const at::Tensor& output_of_nodes(int32_t tensor);
  std::vector<at::Tensor> view_again(const TensorPlan& plan, const at::Tensor& base);
  void make_node(const ir::GraphNode& node, const WrapPlan& plan, std::shared_ptr<ForwardAgain>* forward);
  bool leads_to_node(int32_t tensor);
  bool script_has(int32_t tensor) const;
  at::Tensor saved_value(int32_t tensor), value_to_keep(int32_t tensor);
  at::Tensor wrap_value(int32_t number, const WrapPlan& plan);

  ProgramImpl& program_;
  std::optional<at::RecordFunction> shown_;
  std::vector<void*> storage_data_;
  std::vector<StorageSlot> storages_;
  std::vector<at::Tensor> shadows_;
  std::vector<CallState> calls_;
  std::vector<ArenaRef> arenas_;        // what the storages point into
  size_t taken_ = 0;                    // of these, the first so many are this session's now; the others may be another's
  bool may_share(int32_t one, int32_t other) const;
  bool overlaps_input(const c10::StorageImpl& real, bool foreign, int32_t storage) const;
  bool foreign_in_use_ = false;          // an input of this iteration lies on memory that is not torch's
  std::vector<int32_t> used_storages_;
  std::vector<int64_t> symbols_;         // values
  std::vector<uint64_t> symbol_told_;    // the iteration in which it was last
  std::vector<uint64_t> laid_out_;       // by tensor: the change of symbols that its shadow was last laid out for
  uint64_t changes_ = 0;                 // of symbols
  std::vector<size_t> changed_symbols_;  // by the tensor that told them last, while it does
  bool arranged_ = true;                 // for the symbols' values as they are
  std::vector<int64_t> arena_offsets_;   // by storage
  std::vector<int64_t> arena_bytes_;     // by arena
  std::vector<bool> apart_;              // by storage: it is an arena's, but not now (rearrange)

  std::vector<at::Tensor> inputs_;      // per tensor: the bound tensor
  std::vector<int32_t> bound_;
  struct Claim {
    const c10::StorageImpl* real = nullptr;
    uint64_t iteration = 0;
    int32_t storage = -1;  // the first one; others share it where they may
    int holders = 0;
  };
  Claim& claim_on(const c10::StorageImpl* real);
  std::vector<Claim> claims_;           // open addressing by address: which storage of the program stands for a real one
  uint64_t iteration_ = 1;

  std::vector<at::Tensor> real_;        // per tensor: real tensor made in this iteration, outside any graph
  std::vector<int32_t> handed_out_;     // per tensor: wrap that gave real_ to Python, -1 when none
  std::vector<at::Tensor> graph_;       // per tensor: its value in the graph rebuilt in this iteration
  std::vector<at::Tensor> wrapped_;     // per wrap: what it returned in this iteration
  std::vector<at::Tensor> cloned_;      // per storage: bytes of an input as they were before the calls of a graph wrote it
  std::vector<bool> rerun_;             // per call: run again in this iteration
  GraphNodes nodes_;                    // made in this iteration
  std::map<int32_t, PyObject*> recipes_;  // per call of a Function or hooked tensor, in this iteration; owned
  bool has_real_ = false;
};

const bridge::SessionFunctions& session_functions();

}  // namespace dynvm::torch_bridge
