// The torch bridge as the rest of dynvm sees it: no torch header, no torch type. Implemented by runtime/torch (libdynvm_torch.so), which is
// built against the torch of the user's environment and loaded when a script has imported torch.
//
// Two halves:
//  - recording: which ATen operations did this call become, on which tensors, with which arguments;
//  - running: a Program (the tensor part of a compiled trace) is instantiated as a Session; generated code calls the functions of
//    `SessionFunctions` with it.
//
// How a Session holds tensors ("shadow tensors"). Every tensor of a trace is one persistent at::Tensor over a persistent StorageImpl that does
// not own its memory. Binding an input, allocating an escaping result or placing an intermediate into the arena only sets the storage's
// data pointer, and with it every view's, so a run creates no tensor but what escapes. `Session::storage_data[s]` is that pointer: fused
// kernels take this very array.
//
// Invariants: the GIL is held for every function here. Everything runs below autograd (and below the recorder's own key).
// A function that returns -1 has set a Python exception. Tests: tests/torch.
#pragma once

#include <Python.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/x86/matmul/matmul.h"
#include "ir/arrange.h"
#include "ir/trace.h"
#include "runtime/base/defects.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/switches.h"

namespace dynvm::bridge {

inline constexpr int kBridgeVersion = 16;

// Conventions of AtenCall here and in CallSpec, beyond those of ir/trace.h:
//  - results of a list type stand one by one; a result that is no tensor stands as -1.
//  - result_alias tells what was seen: a result that shares its argument's storage has it whether the schema says so or not. What schemas
//    do not say of writes (native_batch_norm's running statistics) is in `mutates`.
//  - kTensor and kTensorList: `ints` has for each operand whether it required grad. detach() gives a tensor with the same id, so this is all
//    that tells a detached operand from the original when a graph is rebuilt (empty: all did).
//  - kScalar: `dtype` says what the 64 bits are (kF64, kI64, kBool). For a list parameter (Scalar[], float[], int[]) it has one operand for each
//    element. kScalarTensor: bits are double for a floating `dtype`, int64 or 0/1 else.
//  - aten::lift_fresh (a tensor made from Python values) has the data as its argument: kNumberTensor for a single number (OpRecord::number has
//    it too; it may be turned into kScalarTensor), kOpaque with a copy of the data else. It is a call that makes its result.
//  - a view with kScalar arguments is a call: its result is on a storage of kind kResult of its own, and views of it are on that storage.

// One recorded ATen operation. `call.args[..].operands` index into `tensors`, which holds recorder tensor ids (-1: undefined);
// `call.results` holds recorder tensor ids of the results. Wrapped-number tensors are recorded by value (kNumberTensor), not as tensors.
struct OpRecord {
  ir::AtenCall call;
  std::vector<int32_t> tensors;
  // aten::_local_scalar_dense and other number results: their value.
  enum Number : uint8_t { kNoNumber, kIntNumber, kFloatNumber, kBoolNumber } number = kNoNumber;
  int64_t int_value = 0;
  double float_value = 0;
  std::vector<int32_t> unversioned;  // those of call.mutates whose version counter the operation leaves alone, or that `.data` gave (views of it too): no other tensor's counter shows the write
  std::vector<int32_t> own_counters;  // numbers of tensors (note_counter) whose version counters the operation advances
  uint32_t counted = 0;            // of a call without operands: what the version counter of its result shows, which C++ code has filled through the dispatcher
  bool raised = false;             // the operation raised: no results
  bool unwritten = false;          // no operation of this call has written the memory that its result is (empty)
  std::string note;                // not empty: for the report, why its random numbers are left to torch
  std::string unsupported;         // not empty: why this operation cannot be part of a trace ("sparse tensor", "quantized", ...)
};

// What Python sees of a tensor object.
struct TensorObject {
  bool exact_type = false;         // torch.Tensor or torch.nn.Parameter themselves, no subclass
  bool requires_grad = false, is_leaf = true, is_view = false;
  bool has_hooks = false;          // something is called with its gradient
  bool python_hooks = false;       // a leaf, and all that is called is in its dicts _backward_hooks and _post_accumulate_grad_hooks
  std::string grad_fn;             // autograd node name, "" when none
  int32_t output_nr = 0;
  uint32_t version = 0;
};

// Records what torch calls on this thread (and on autograd's threads for it) become. One at a time. Tensors are held weakly; an id
// stands for (storage, offset, sizes, strides, dtype): two TensorImpls that look at the same memory the same way share it.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void enable() = 0;                        // around one torch call
  virtual void disable() = 0;
  virtual void pause() {}                           // nothing is recorded until it is resumed
  virtual void resume() {}
  virtual std::vector<OpRecord> take() = 0;         // the operations since the last take
  virtual int32_t tensor_id(PyObject* tensor) = 0;  // id of a tensor object's value, new if not seen before; -1: cannot be traced
  // The tensor object of a value that was made from Python data (aten::lift_fresh), which the recorder keeps; null for any other. New reference.
  virtual PyObject* constant(int32_t id) { (void)id; return nullptr; }
  // From now on this tensor object's value has an id of its own, and so has what is computed on its memory, though other tensors look at it the same way:
  // their graphs are others.
  virtual int32_t separate(PyObject* tensor) = 0;
  // This tensor is what `.data` of another one has given.
  virtual void note_data(PyObject* tensor) { (void)tensor; }
  // This tensor looks like another one, as one that has been given other data (`tensor.data = other`) or what `.data` once gave, and may have a version counter of
  // its own. Gives its number, from 0.
  virtual int32_t note_counter(PyObject* tensor) { return (void)tensor, -1; }
  // Memory is given back that only tensors look at which nobody but the caller holds, so many times each. Their ids stay what they are. Gives those that have none
  // any more; borrowed.
  virtual std::vector<PyObject*> free_data(const std::vector<std::pair<PyObject*, Py_ssize_t>>& tensors) { return (void)tensors, std::vector<PyObject*>(); }
  // storage = recorder-wide storage number. requires_grad, is_leaf and is_parameter are those of the object last given to tensor_id.
  virtual const ir::TensorMeta& meta(int32_t id) = 0;
};

// The compiled backward of a graph's node (ir::GraphNode).
class Backward {
 public:
  virtual ~Backward() = default;
  // inputs: the gradients of the node's outputs, all there, then what it has saved; tensor objects, borrowed. *gradients: those of its inputs, new references, null: none.
  // False: it is not made for tensors like these, and nothing has happened.
  virtual bool run(const std::vector<PyObject*>& inputs, std::vector<PyObject*>* gradients) = 0;
};

// Storage of a running trace.
struct StorageSpec {
  enum Kind : uint8_t {
    kInput,   // bound by bind_input
    kArena,   // at arena_offset in the session's arena (of the storage's device: each device has one)
    kFresh,   // escapes: allocated for this iteration by `allocate`
    kResult,  // allocated by the call that defines it (operations without an out form)
    kLent,    // an intermediate that `allocate` brings memory for, and drop_storage gives it back
    kMirror,  // not the session's: whoever runs it points to where a kernel stores a number for the host too
  } kind = kInput;
  int64_t bytes = 0;   // kArena: 0 when nothing touches it, so that it needs no memory
  int64_t arena_offset = 0;
  bool symbolic = false;        // its size is made of symbols: bytes is an example
  uint32_t first = 0, last = 0; // its lifetime, for arrange
  bool shared = false;          // a view at a run-time place, or what it is a view of
  bool exclusive = false;       // of an input: no other storage of the trace may lie where it does, since it is written, or differentiated
  bool late = false;            // of an input, no view: written where the trace is left, or goes round, by what exits and take_graph do with its object
  bool changed = false;         // an operation writes it that has not made it
  bool unwritten = false;       // made by a call that does not run and writes nothing, as empty: an exit before `first` hands out memory as it comes
};

struct CallSpec {
  ir::AtenCall call;                  // args[..].operands index into `operands`
  std::vector<int32_t> operands;      // for tensor positions: tensor index; for scalar positions: index into the scalars array given to `call`
  std::vector<int32_t> results;       // tensor index of each result, -1 when undefined or unused
  std::vector<ir::DType> result_types;  // of each result, also of those that are unused
};

// How a wrap is made. A storage of kind kArena can be wrapped too, but then a copy escapes. With a live graph (requires_grad, not a leaf, not
// freed) `forward` is run again, once for all wraps of an iteration; its effects are not repeated. Three things are the planner's:
//  - an operand of a forward call that is neither an input nor made by a forward call must still have its value when wrap is called;
//  - an input that `forward` reads must not have been written since by a call outside `forward`;
//  - random calls and calls that write inputs must have run through `call`, or have been drawn for by `draw`, which keep what is needed to run them again;
//  - a call with run-time numbers must have run through `call` in this iteration, or have been given them by `set_numbers`.
struct WrapSpec {
  ir::Wrap wrap;                      // wrap.forward is replaced by `forward`; the values of wrap.freed_behind and wrap.nodes are indexes of tensors, those of calls indexes of calls
  int32_t tensor = -1;
  std::vector<int32_t> forward;       // indexes of calls to run again, in order, under autograd on the real inputs
};

struct ProgramSpec {
  std::vector<StorageSpec> storages;
  int64_t arena_bytes = 0;
  std::vector<ir::TensorMeta> tensors;  // meta.storage = index into storages
  std::vector<int32_t> copy_of;         // by tensor: the one that the trace has copied into other strides for itself (ir::is_relayout), -1: none. Empty: none of any
  std::vector<CallSpec> calls;
  std::vector<WrapSpec> wraps;
  std::vector<ir::TorchState> states;
  std::vector<int64_t> symbols;         // codes that symbolic tensors are made of. What is bound or made by calls tells their values in each iteration
  std::vector<ir::SymbolSum> sums;      // of these, those that others tell, as soon as they are told
  bool arranges = false;                // where arena storages lie is decided by arrange()
  bool keeps_small = true;              // fresh memory on a GPU that nobody holds serves the next iteration, where it is small; else none does
};

struct Session {
  void** storage_data = nullptr;      // [storages]
  const int64_t* symbols = nullptr;   // values, as of the last tensor that told them
  void* impl = nullptr;
  bool has_arenas = false;            // its runs stand between begin_run and end_run
  int32_t watched = 0;                // a profiler of torch's listens, as of the last check_state: kernels are to be shown to it
};

// Called from generated code. All return 0 when fine.
struct SessionFunctions {
  // The object is a tensor as tensors[t] describes (exact type, dtype, device, sizes and strides but open ones, offset is free for views of it but must equal
  // meta's alignment class; requires_grad; hooks where there were some): bind its storage. 1: it is not.
  int (*bind_input)(Session*, int32_t tensor, PyObject* object);
  int (*check_state)(Session*, int32_t state);                       // 1: torch's modes differ from states[state]
  int (*allocate)(Session*, int32_t storage);                        // kFresh, kLent; -1: out of memory
  int (*call)(Session*, int32_t call, const int64_t* scalars);       // -1: raised. 1: a view with run-time numbers, or what a call that defines sizes gives, has another geometry than recorded (closed sizes, an open one below 2, or not what the symbols say): nothing has happened. Scalars are bit patterns (int64, double, bool 0/1).
  int (*read_scalar)(Session*, int32_t tensor, int64_t* value);      // value: bits of int64, double or 0/1; -1: raised
  int (*bump_version)(Session*, int32_t tensor, int32_t by);         // on the real tensor behind an input or fresh storage
  int (*set_numbers)(Session*, int32_t call, const int64_t* scalars);  // of a call that a wrap runs again but that did not run by itself; -1: raised
  // Before several wraps are made: the calls that they run again, in the order of the program (that of their numbers is another), each as its wrap runs it. What one of them
  // writes, another may have read before. -1: raised
  int (*rebuild)(Session*, const int32_t* calls, const int32_t* wraps, int32_t count);
  PyObject* (*wrap)(Session*, int32_t wrap);                         // new reference or null (raised)
  void (*end_iteration)(Session*);                                   // drops results and fresh storages that nobody else holds
  int64_t (*tensor_size)(Session*, int32_t tensor, int32_t dim);     // as it is now; dim -1: the number of elements
  int (*begin_run)(Session*);                                        // memory for intermediates, for this run; -1: raised
  void (*end_run)(Session*);
  int (*arrange)(Session*);                                          // the arena for the symbols' values, which inputs have told; -1: raised
  void (*set_recipe)(Session*, int32_t wrap, int32_t index, PyObject* recipe);  // before wrap: of one among the calls that it runs again which is no operation of torch's (runtime/torch/function_nodes.h)
  void (*drop_storage)(Session*, int32_t storage);                   // kResult, kLent: nothing needs its memory in this iteration any more
  void (*show_begin)(Session*, const char* name);                    // to who listens (watched): what follows has this name, which must stay
  void (*show_end)(Session*);
  int (*scalar_of)(Session*, int32_t tensor, const void* element, int64_t* value);  // as read_scalar, of an element that was brought to the host; 1: its dtype is no real number
  // For a call that kernels stand for, of the default generator of its device. draw gives its offset and moves it on by that much; a wrap that runs the call again draws
  // the same numbers. -1: raised, as while the stream is captured; check_state gives 1 then, so that such a run does not begin.
  int64_t (*seed)(Session*, int32_t call);
  int (*draw)(Session*, int32_t call, int64_t increment, int64_t* offset);
};

// What operations would give for tensors of other sizes, without running them on data. Tensors and storages have the caller's numbers.
class Shapes {
 public:
  virtual ~Shapes() = default;
  // A tensor of this geometry on storage meta.storage.
  virtual void input(int32_t tensor, const ir::TensorMeta& meta) = 0;
  // operands: what call.args[..].operands index, tensors (unknown ones count as undefined). Run-time scalars count as 0. results: the
  // numbers of the tensors that it makes, -1 for those that nobody needs; recorded: what they were for the sizes that were recorded: dtype and
  // memory, known or new, must be the same. metas: geometry of the results. Gives why it cannot be said; empty when fine.
  virtual std::string call(const ir::AtenCall& call, const std::vector<int32_t>& operands, const std::vector<int32_t>& results,
                           const std::vector<ir::TensorMeta>& recorded, std::vector<ir::TensorMeta>* metas) = 0;
};

// Operations of a recorded iteration once more, under autograd and apart from the program, for their backward to be recorded. Values have the caller's numbers. What gives false has raised, and no
// Python exception stays set. The recorder is off but where it is said. As long as it lives, random numbers are not the program's.
class Rehearsal {
 public:
  virtual ~Rehearsal() = default;
  virtual bool has(int32_t value) = 0;
  // A tensor object of the program's, as a leaf, which is differentiated or not. copy: it will be written. False also where its memory has been given back.
  virtual bool give(int32_t value, PyObject* tensor, bool differentiated, bool copy) = 0;
  // operands: what call.args[..].operands index. results: -1 for those that are not wanted. recorded: the recorder is on.
  virtual bool call(const ir::AtenCall& call, const std::vector<int32_t>& operands, const std::vector<int32_t>& results, bool recorded) = 0;
  virtual void cut(int32_t value) = 0;             // it becomes a leaf
  virtual PyObject* object(int32_t value) = 0;     // new reference
  virtual PyObject* gradient(int32_t value) = 0;   // a tensor that can be its gradient; new reference, null: it raised
  // Of the inputs, with those gradients of the outputs. The recorder may be on: it sees the operations. *gradients: new references, null for none.
  virtual bool differentiate(const std::vector<int32_t>& outputs, const std::vector<PyObject*>& given, const std::vector<int32_t>& inputs, std::vector<PyObject*>* gradients) = 0;
};

// What a call does to memory, as far as it may be captured into a CUDA graph (Captures).
struct CallFacts {
  std::string_view name;              // as "aten::mm"; lives as long as the program
  bool capturable = false;            // all its tensors are of one CUDA device and of known geometry; it takes no run-time numbers and needs nothing of the host
  bool passive = false;               // queues no work: earlier calls may be done after it
  int device = 0;
  std::vector<int32_t> touches;       // storages that it reads or writes
  std::vector<int32_t> writes;        // those that it writes
  std::vector<int32_t> gives;         // storages of kind kResult whose memory it brings
  std::vector<int32_t> sizes;         // those of them whose size it alone knows
};

class Program {
 public:
  virtual ~Program() = default;
  virtual Session* acquire() = 0;     // a session for one running activation (they are pooled)
  virtual void release(Session*) = 0;
  virtual CallFacts facts(int32_t call) { (void)call; return {}; }
};

// What capturing a session's calls as a CUDA graph needs of torch: a stream of its own, and memory that belongs to the graph. A function that fails says why and leaves no
// Python exception.
class Captures {
 public:
  virtual ~Captures() = default;
  // The CUstream that work which will run on `stream` is captured on; null: there is none.
  virtual void* stream(int device, void* stream, std::string* error) = 0;
  // Until `end`, the device is the current one, and work of this thread on it goes to the stream that work for `stream` is captured on, and what it allocates there is the graphs'. bytes: what this graph and others will have
  // at a time, as far as is known: a pool that has had much less gets them in one piece. Null: nothing has changed.
  virtual void* begin(int device, void* stream, int64_t bytes, std::string* error) = 0;
  virtual bool end(void* capture, std::string* error) = 0;
  // Its graph is no more.
  virtual void drop(void* capture) = 0;
  // What backs a storage in this iteration, null: nothing. The holder keeps the memory until it forgets it.
  virtual void* keep(Session*, int32_t storage) = 0;
  virtual void* make(Session*, int32_t storage) = 0;         // the same for new memory, of the storage's extent; null: there is none
  virtual void put(Session*, int32_t storage, void* kept) = 0;  // backs the storage from now on
  virtual void* data(void* kept) = 0;                        // where the storage's first byte is then
  virtual void forget(void* kept) = 0;
  virtual void point(Session*, int32_t storage, void* data) = 0;  // shadows and kernels look there from now on
  // The bytes from there on that the storage's tensors touch.
  virtual void extent(Session*, int32_t storage, int64_t* first, int64_t* last) = 0;
  virtual bool is_input(Session*, int32_t storage) = 0;      // kInput, or a view of one that moves
  virtual int64_t held(Session*, int32_t storage) = 0;       // bytes that back it in this iteration
  // The memory of `from`, which nobody needs any more but work that was queued before, becomes that of `to`, which has none. False: it is another's too, or of another size.
  virtual bool hand_over(Session*, int32_t from, int32_t to) = 0;
  // The arena anew, by storage: its pieces with bytes stay, as long as they live; the others have memory like those of kind kLent from now on. Only where no arena storage has a value, and of a
  // program with one arena, which it does not arrange itself. -1: an exception is set.
  virtual int arrange(Session*, std::vector<ir::Piece> pieces) = 0;
};

using ParallelBody = void (*)(void* context, int64_t begin, int64_t end);
using ParallelForFunction = void (*)(int64_t size, int64_t grain, ParallelBody body, void* context);

// While it lives, the edges of a graph that lead to certain tensors' own graphs end: autograd's engine comes there and goes no further.
class GraphCut {
 public:
  virtual ~GraphCut() = default;
  virtual std::vector<PyObject*> gradients() = 0;  // that have come to each of the tensors: new references, null where none has
};

class Bridge {
 public:
  virtual ~Bridge() = default;
  virtual std::string torch_version() = 0;
  // --- objects
  virtual bool is_tensor(PyObject*) = 0;
  virtual TensorObject describe(PyObject* tensor) = 0;
  // Is it an instance of a subclass of torch.Tensor whose __torch_function__ torch calls?
  virtual bool overrides(PyObject* object) { (void)object; return false; }
  // Calls function(), one of whose arguments overrides. Where torch would have called __torch_function__ for an argument of its, *asked becomes a new tuple of what it would have given to
  // it: function, types, arguments and maybe keyword arguments. Nothing has been done then, and the result is null where the call passes on what that
  // gives, None where it drops it, else what it would have made of a strange object. Otherwise *asked is null. No exception stays set with *asked.
  virtual PyObject* ask_override(const std::function<PyObject*()>& function, PyObject** asked) { *asked = nullptr; return function(); }
  // A tensor whose last reference can go without that Python code runs: of no subclass, without a graph, attributes or weak references.
  virtual bool dies_quietly(PyObject* object) { (void)object; return false; }
  virtual PyObject* get_grad(PyObject* tensor) = 0;                    // new reference (None when there is none)
  virtual int set_grad(PyObject* tensor, PyObject* grad_or_none) = 0;  // as `tensor.grad = ...` does
  virtual void take_graph(PyObject* tensor, PyObject* from) { (void)tensor; (void)from; }  // tensor's autograd node becomes from's
  virtual void take_contents(PyObject* tensor, PyObject* from, int writes) { (void)tensor; (void)from; (void)writes; }  // and its data, in so many writes
  // Cuts the graph of `roots` in front of the tensors `outsiders`. Null: it cannot be.
  virtual std::unique_ptr<GraphCut> cut_graph(const std::vector<PyObject*>& roots, const std::vector<PyObject*>& outsiders) { return (void)roots, (void)outsiders, nullptr; }
  virtual std::unique_ptr<Rehearsal> rehearsal() { return nullptr; }
  // Any object. Is it a tensor of this dtype and device and as many dimensions, where the meta's sizes are constants, but of other sizes or strides? *sizes, *strides: these.
  virtual bool has_other_geometry(PyObject* object, const ir::TensorMeta& meta, std::vector<int64_t>* sizes, std::vector<int64_t>* strides) { return (void)object, (void)meta, (void)sizes, (void)strides, false; }
  virtual uint64_t storage_key(PyObject* tensor) = 0;                  // identity of the storage, for aliasing tests
  virtual ir::TorchState torch_state() = 0;
  virtual int fast_convolutions() { return 2; }      // cuDNN's on tensor cores: 0 none, 1 of 16-bit floats, 2 of f32 as well
  // A C function that runs no Python code and does what the callable does, at less cost; borrowed. Null when there is none.
  virtual PyObject* shortcut(PyObject* callable) { (void)callable; return nullptr; }
  // Shortcuts by name, which another process knows: "" for what is none; borrowed.
  virtual std::string shortcut_name(PyObject* shortcut) { (void)shortcut; return {}; }
  virtual PyObject* shortcut_named(const std::string& name) { (void)name; return nullptr; }
  // --- recording
  virtual std::unique_ptr<Recorder> recorder() = 0;
  // Counts ATen operations dispatched on this thread while on (about 0.15 us each): for --report and for finding tensor loops.
  virtual void set_counting(bool on) = 0;
  virtual uint64_t ops_counted() = 0;
  virtual uint64_t differentiated_ops_counted() = 0;  // those of them that autograd makes nodes for
  virtual uint64_t backward_ops_counted() = 0;  // those of them that the autograd engine ran
  // The listener is called behind each registration of a kernel that traces may have run another one instead of (torch.library).
  virtual void tell_of_kernels(void (*listener)()) { (void)listener; }
  // The kernels of ATen's operators that Python code has registered, as text: traces that were made with others do not fit.
  virtual std::string replaced_kernels() { return {}; }
  // Values that only the bridge understands (AtenArg::kOpaque), as bytes that mean the same in another process; false where that cannot be.
  virtual bool opaque_text(int64_t handle, std::string* bytes) { (void)handle; (void)bytes; return false; }
  virtual bool opaque_of(const std::string& bytes, int64_t* handle) { (void)bytes; (void)handle; return false; }
  // --- running
  virtual std::unique_ptr<Program> build(const ProgramSpec&, std::string* error) = 0;  // null and error when an operation is unknown
  virtual const SessionFunctions& functions() = 0;
  // Why the last bind_input that gave 1 did so ("other sizes"): for the report.
  virtual std::string last_refusal() = 0;
  virtual bool refused_sharing() { return false; }  // was it because inputs share memory in another way?
  // The geometry of the tensor that it refused, when that was for its sizes or strides alone.
  virtual bool refused_geometry(std::vector<int64_t>* sizes, std::vector<int64_t>* strides) { (void)sizes; (void)strides; return false; }
  virtual std::unique_ptr<Shapes> shapes() { return nullptr; }
  // True when the bridge runs this call into planned storage (an out form or own code); false: results are kResult storages. Views
  // (results that alias an argument) cost nothing at run time: the bridge need not be called for them.
  virtual bool has_planned_form(const ir::AtenCall&) = 0;
  // Is this argument a number to the operation (a factor, a bound), so that another value gives the same shapes and dtypes? Sizes, dims and indices are not.
  virtual bool takes_number(const ir::AtenCall& call, size_t argument) { (void)call; (void)argument; return false; }
  // Do numbers that are given as factors or bounds decide the sizes of its results? Those of an upsampling are computed from its scales before it is called.
  virtual bool sizes_by_numbers(const ir::AtenCall& call) { (void)call; return false; }
  // Is it known what the results look like where this argument is another number: a size or an index by the schema's type, a number to compute with, or one of what makes a tensor of nothing else? Else it may
  // choose a layout, as the quarter turns of rot90 do.
  virtual bool may_change(const ir::AtenCall& call, size_t argument) { (void)call; (void)argument; return true; }
  // --- threads: torch's pool, for codegen::set_parallel_for and codegen::set_num_threads (the signatures are those of codegen/parallel.h).
  virtual ParallelForFunction parallel_for() = 0;
  virtual int num_threads() = 0;
  // The GPU that is current in this thread; -1 where torch does not use GPUs in this process, or not yet.
  virtual int cuda_device() = 0;
  // For codegen::cuda::set_current_stream; null where this torch has no CUDA.
  virtual void* (*cuda_stream())(int device) { return nullptr; }
  // Null where this torch has no CUDA graphs.
  virtual Captures* captures() { return nullptr; }
  // The numbers of runtime/base/heuristics.def that the bridge goes by from now on; as in the table at first.
  virtual void set_heuristics(const base::Heuristics& numbers) { (void)numbers; }
  // What is left out of this process, and seeded defects, which the bridge asks for too from then on.
  virtual void set_switches(const base::AskedSwitches& asked, uint64_t defects) { (void)asked; (void)defects; }
  // Names of all operations that torch has, "aten::add" once for each overload.
  virtual std::vector<std::string> operators() { return {}; }
  // Matrix products that the function serves are its own from now on; the others stay the library's.
  virtual void set_matmul(codegen::MatmulFunction function) { (void)function; }
};

// Exported by libdynvm_torch.so as `dynvm_torch_bridge`; null with a Python exception when the running torch is not the one built for.
using CreateBridge = Bridge* (*)(int version);

}  // namespace dynvm::bridge
