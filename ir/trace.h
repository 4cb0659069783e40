// A recorded trace: linear SSA of Python objects, unboxed scalars and tensors, with guards and snapshots.
//
// Inputs: built by the tracer (or the parser). Outputs: rewritten by passes, printed, verified, evaluated, compiled.
//
// Invariants (checked by verify.h)
//  - An instruction's operands are defined before it (a Ref is the index of the defining instruction).
//  - A guard, and every op that can raise, has a snapshot. The snapshot describes the interpreter state *before* the bytecode
//    instruction at its innermost position; re-executing from there repeats no effect that the trace has already performed.
//  - Tensor values name storage views: `TensorMeta::storage` says which storage of the trace they look at. In-place ATen operations
//    give a new Ref (their result) on the same storage; a reader of that storage after the write is ordered after it.
//  - `objects` are borrowed (see ops.def, const_obj).
//
// Tests: tests/ir.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "ir/kernel/kernel.h"

namespace dynvm::ir {

struct Trace;
using Ref = uint32_t;
inline constexpr Ref kNoRef = ~0u;
inline constexpr int32_t kNoSnapshot = -1;

enum class Type : uint8_t { kVoid, kObject, kInt, kFloat, kBool, kTensor };

enum Effect : uint16_t {
  kPure = 1, kLoad = 2, kGuard = 4, kNew = 8, kWrite = 16, kBarrier = 32, kRaises = 64, kTensorMemory = 128, kEnd = 256,
};

enum class Op : uint16_t {
#define X(name, result, arity, effects, sentence) k_##name,
#include "ir/ops.def"
#undef X
  kCount,
};

struct OpInfo {
  std::string_view name;
  char result;      // as in ops.def
  int8_t arity;     // -1: any
  uint16_t effects; // Effect bits
  std::string_view sentence;
};
const OpInfo& op_info(Op op);

// What a guard_true that fails tells of the recording (its imm).
enum TruthGuard : int64_t {
  kTruth = 0,
  kSameSize = 1,   // a number that decides sizes is not what it was
  kSameIndex = 2,  // two indexes that were the same are not
};

// One instruction. Operands are trace.operands[first .. first + count).
struct Inst {
  Op op;
  Type type = Type::kVoid;
  bool sunk = false;             // set by the sink pass: only snapshots use it, so it is made when an exit is taken; of an aten call, by
                                 // the fuse pass: not executed, kernels compute its results (an exit may still run it under autograd)
  bool again = false;            // of one that can raise: nothing that can be seen has been done since its snapshot's state, so the interpreter may do all from there again
  int32_t snapshot = kNoSnapshot;
  uint32_t first = 0, count = 0;
  int64_t imm = 0;               // meaning per op
  int32_t meta = -1;             // for tensor results: index into trace.metas
  int32_t origin = -1;           // the bytecode instruction that it comes from: index into trace.origins; -1: not known
};

// A bytecode instruction: what profiles say where an instruction's time belongs. No pass and no code depends on it.
struct Origin {
  void* code = nullptr;          // PyCodeObject*, borrowed
  int32_t unit = 0;
  int32_t caller = -1;           // of the call that made its frame, in trace.origins; -1: the root frame's
  friend bool operator==(const Origin&, const Origin&) = default;
};

inline constexpr uint64_t kOpenLayout = uint64_t{1} << 63;

// What a tensor value looks like. Sizes in elements; strides in elements; offset in elements from the storage's start.
struct TensorMeta {
  DType dtype = DType::kF32;
  int8_t device_type = 0;        // c10::DeviceType: 0 CPU, 1 CUDA
  int8_t device_index = -1;
  bool requires_grad = false;
  bool is_leaf = true;
  bool wrapped_number = false;   // a Python number in tensor clothing (type promotion treats it as a scalar)
  bool is_parameter = false;     // Python type is torch.nn.Parameter
  bool is_subclass = false;      // another subclass of torch.Tensor: a guard says which
  bool has_hooks = false;        // a leaf whose gradient functions of Python are called with (register_hook and the like)
  bool inference = false;        // made under inference mode: autograd takes no part in it, and it has no version counter
  int32_t storage = -1;          // storage id within the trace
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
  // Strides that the script sees, where the trace has laid out the memory otherwise (passes/channels_last.cpp); empty: those above. An exit that makes the tensor's object converts.
  std::vector<int64_t> shown;
  // What only a run tells, as an operation whose data decides makes it so (AtenCall::defines_sizes) or something computed from what that one gives:
  // bit d for size d, kOpenLayout for the strides and the offset. What stands here is then an example: no kernel and no plan may rely on it.
  uint64_t open = 0;
  // But what is open is made of symbols: sizes, strides and offset are products of the codes in Trace::symbols and constants (kernel/symbols.h).
  bool symbolic = false;
  friend bool operator==(const TensorMeta&, const TensorMeta&) = default;
};

inline int64_t elements(const TensorMeta& meta) {
  int64_t n = 1;
  for (int64_t size : meta.sizes) n *= size;
  return n;
}
// Row-major and dense, as torch says it: sizes of 1 have any stride, no elements lie in any order.
inline bool is_contiguous(const TensorMeta& meta) {
  if (elements(meta) == 0) return true;
  int64_t expected = 1;
  for (size_t d = meta.sizes.size(); d-- > 0; expected *= meta.sizes[d])
    if (meta.sizes[d] != 1 && meta.strides[d] != expected) return false;
  return true;
}

// Those that the script sees.
inline const std::vector<int64_t>& shown_strides(const TensorMeta& meta) { return meta.shown.empty() ? meta.strides : meta.shown; }

// One argument of an ATen call, in schema order.
struct AtenArg {
  enum Kind : uint8_t {
    kNone,        // None / undefined tensor
    kTensor,      // operands: one entry
    kTensorList,  // operands: any number, -1 for undefined entries
    kInt, kFloat, kBool, kString, kIntList, kFloatList, kBoolList,
    kScalar,      // a Scalar / float / int parameter whose value is a run-time scalar of the trace: operands: one entry
    kScalarTensor,// a wrapped-number tensor parameter whose value is a run-time scalar: operands: one entry, `dtype` of the 0-dim tensor
    kNumberTensor,// a wrapped-number tensor parameter with a constant value: `f` or `i` by dtype
    kOpaque,      // a value only the bridge understands (device, generator, layout object): `i` is the bridge's handle
  } kind = kNone;
  DType dtype = DType::kF64;
  bool is_optional_list = false;      // kTensorList for a schema type Tensor?[]
  std::vector<int32_t> operands;      // positions in the instruction's operand list
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<double> floats;
};

// How an operation draws random numbers, where that is known: as native_dropout of a GPU does (drawing.h), which kernels can do too. Whatever the sizes are.
struct RandomStream {
  int32_t threads = 0;                // at most so many, of one call; 0: not known, so the operation stays the library's
  int8_t vector = 0;                  // neighbours that a thread takes at a time, where the operand's size and place allow it
  friend bool operator==(const RandomStream&, const RandomStream&) = default;
};

// One ATen operation as eager dispatches it below autograd, with the arguments of the recorded call.
struct AtenCall {
  std::string name;                   // "aten::addmm"
  std::string overload;               // "" or "Tensor", "out", ...
  std::vector<AtenArg> args;
  std::vector<int32_t> results;       // metas of the results (index into trace.metas); -1: an undefined tensor
  std::vector<int32_t> result_alias;  // for each result: the argument it aliases by the schema (view or in-place), or -1
  std::vector<int32_t> mutates;       // arguments written in place, by the schema
  bool defines_sizes = false;         // its data decides sizes of its results (nonzero, an index by a mask), or the ends of a slice do, which the run computes; with others than recorded the trace is left
  bool follows = false;               // geometries of results are made of symbols that its operands have, whatever these are: it need not be run to know them
  bool is_random = false;             // draws from the generator: never removed, repeated or reordered with other random ones
  RandomStream stream;                // is_random: what is known of how it draws
  bool grad_mode = false;             // recorded while autograd would record it
  bool inference_mode = false;        // recorded under inference mode: what it makes are inference tensors, but views of others
  bool in_backward = false;           // issued by autograd's engine
  bool moves = false;                 // a view that in eager is its operand itself with another geometry (squeeze_): no view of anything, and a version further
  int8_t autocast = -1;               // torch's number of the dtype that autocast gives what the operation's own kernel calls; -1: it does not see that
  int32_t count = 1;                  // eager operations this call stands for (for the report)
};

// Are some of its arguments numbers of the trace? (Here, as the torch bridge has this library's headers only.)
inline bool has_run_time_numbers(const AtenCall& call) {
  for (const AtenArg& arg : call.args)
    if (arg.kind == AtenArg::kScalar || arg.kind == AtenArg::kScalarTensor) return true;
  return false;
}

// A copy into other strides that the trace makes for itself (passes/channels_last.cpp): it stands for nothing that eager runs, and a rebuilt graph has its operand instead.
inline bool is_relayout(const AtenCall& call) { return call.count == 0 && call.name == "aten::clone"; }

// Does only running it tell the geometry of some of its results? Then it makes them itself: they have no planned memory, and are not views of known places.
bool opens(const Trace& trace, const AtenCall& call);
// Is the trace left at the call where its results have other sizes than it was recorded with?
bool may_leave(const Trace& trace, const AtenCall& call);

// A view by ints of one dimension, which may change from run to run. Where they do, it is memory of its own to the trace, or a place in its operand's (is_moved).
bool is_index(const AtenCall& call);
// May the place where an index of run-time numbers begins change, in its operand's memory? Not where only the end of a slice does, and its size with that.
bool is_moved(const AtenCall& index);

// A value within a live graph, the node of which a backward() has freed: a rebuilt graph ends there, in such a node.
struct FreedNode {
  Ref value = kNoRef;
  std::string grad_fn;
  int32_t output_nr = 0;
};

// A number of the run that a call was given.
struct CallNumber {
  Ref call = kNoRef;
  int32_t argument = 0;
};

// A part of a live graph that a trace hands out as one autograd node, with a compiled backward (tracer/graph_nodes.cpp).
struct GraphNode {
  int32_t number = 0;                 // wraps that name the same one share it
  std::vector<Ref> outputs;           // tensor values that it takes gradients of; only those with a name are handed out
  std::vector<std::string> names;     // of each, the name of the autograd node that eager would have, "" where the script never sees it
  std::vector<Ref> inputs;            // tensor values that it gives gradients of: the trace's inputs, and outputs of nodes before it
  std::vector<uint64_t> reached_by;   // of each input: the outputs (a bit each) that are computed from it
  std::vector<CallNumber> numbers;    // those of its calls that its backward reads, too
  std::vector<Ref> saved;             // what its backward reads beside the gradients
  std::vector<Ref> sized;             // what it reads the sizes of, and no more
  std::vector<Ref> calls;             // aten instructions, in order: some of the wrap's `forward`
  std::shared_ptr<void> backward;     // a bridge::Backward; not in the text, nor in archives
};

// How a tensor value becomes a Python object.
struct Wrap {
  bool requires_grad = false;
  bool is_leaf = true;
  std::string grad_fn;                // name of the autograd node eager would have, "" when none
  int32_t output_nr = 0;
  bool freed = false;                 // its graph has been freed by a backward() in the trace
  std::vector<Ref> forward;           // aten instructions, in order, that rebuild the value under autograd (empty: none needed)
  std::vector<FreedNode> freed_behind;  // of the operands of `forward`
  std::vector<GraphNode> nodes;       // with a live graph: what it consists of, in the order of the program; empty: `forward` is run again at once
};

// Torch's thread-local modes that a trace depends on.
struct TorchState {
  bool grad_mode = true, inference_mode = false, autocast_cpu = false, autocast_cuda = false, deterministic = false;
  bool overrides = true;              // subclasses of torch.Tensor have their __torch_function__ called
  uint16_t function_modes = 0;        // torch function modes that have been entered
  DType default_dtype = DType::kF32;
  int8_t autocast_cpu_dtype = 0, autocast_cuda_dtype = 0;
  int8_t cuda_device = -1;            // the current one; -1: any
  bool clean = true;                  // no dispatch mode, no functorch level, no profiler, no saved-tensor hooks
  friend bool operator==(const TorchState&, const TorchState&) = default;
};

// A borrowed Python object (PyObject*), opaque to this library, with a text for dumps.
struct Object {
  void* pointer = nullptr;
  std::string text;
};

// State of one Python frame at a snapshot. slots: locals, cells and free variables first, then the value stack.
inline constexpr Ref kSlotNull = ~0u;       // slot is null
inline constexpr Ref kSlotUnchanged = ~1u;  // root frame only: the slot still has its entry value
struct SnapshotFrame {
  Ref function = kNoRef;         // object ref of the function; kNoRef for the root frame
  void* code = nullptr;          // PyCodeObject*, borrowed
  int32_t unit = 0;              // code unit of the instruction to go on at; for outer frames: of the call instruction being executed
  uint8_t continuation = 0;      // what the frame's return value becomes (vm::Continuation), for inlined frames
  Ref continuation_value = kNoRef;
  std::vector<Ref> slots;
  friend bool operator==(const SnapshotFrame&, const SnapshotFrame&) = default;
};
// What the trace has yet to do and an exit does: store an item in a dict (a module's namespace), give a tensor that was handed out with a freed graph (`dict`) the
// graph that it still has there, that of the tensor `value`, or its contents too, in as many writes as the int `key` says, or call a function in C (`dict`) without arguments.
struct SnapshotStore {
  Ref dict = kNoRef, key = kNoRef, value = kNoRef;
};
struct Snapshot {
  bool elsewhere = false;             // the state on the other side of a branch, not before the guard's own instruction: only its guard may use it
  std::vector<uint32_t> frames;       // in trace.frames, outermost (root) first
  std::vector<SnapshotStore> stores;  // in the order in which they are due
};

// A symbol whose value is a sum of others, as the length of two tensors that are put one behind the other.
struct SymbolSum {
  int32_t symbol = -1;           // index into Trace::symbols
  std::vector<int64_t> terms;    // made of the codes of other symbols, or constant
  friend bool operator==(const SymbolSum&, const SymbolSum&) = default;
};

struct Trace {
  int32_t id = 0;
  std::string name;                   // "train_digits.py:41 train"
  std::vector<Inst> insts;
  std::vector<Ref> operands;
  std::vector<Snapshot> snapshots;
  std::vector<SnapshotFrame> frames;  // of snapshots: neighbours differ in their innermost frames mostly, so they share the others
  std::vector<Object> objects;
  std::vector<TensorMeta> metas;
  std::vector<AtenCall> calls;
  std::vector<Wrap> wraps;
  std::vector<TorchState> torch_states;
  std::vector<Kernel> kernels;
  std::vector<int32_t> kernel_op_counts;  // eager operations each kernel stands for (for the report)
  int32_t num_storages = 0;
  std::vector<int64_t> symbols;       // codes of the sizes that symbolic metas are made of
  std::vector<SymbolSum> sums;        // of these, those that others tell: at most one for each, none made of itself
  std::vector<Origin> origins;        // empty unless somebody wants to know; not in the text, nor in archives
  std::vector<std::vector<int32_t>> kernel_origins;  // of the operations that each kernel was made of
  int32_t origin = -1;                // of the instructions that are added now

  Ref add(Op op, Type type, std::initializer_list<Ref> args, int64_t imm = 0, int32_t snapshot = kNoSnapshot);
  Ref add(Op op, Type type, const std::vector<Ref>& args, int64_t imm = 0, int32_t snapshot = kNoSnapshot);
  // The number of a frame, at that depth, of the snapshot that comes next: an equal one that the last snapshot has there, else a new one.
  uint32_t add_frame(const SnapshotFrame& frame, size_t depth);
  const SnapshotFrame& frame(const Snapshot& snapshot, size_t depth) const { return frames[snapshot.frames[depth]]; }
  Ref arg(const Inst& inst, uint32_t i) const { return operands[inst.first + i]; }
  Ref arg(Ref inst, uint32_t i) const { return operands[insts[inst].first + i]; }
};

}  // namespace dynvm::ir
