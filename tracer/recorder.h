// Records one iteration of a hot loop as a Trace, or the rest of one from inside it (side.h).
//
// Inputs: the live state before each plain instruction (vm::Hooks::record). Output: a Trace, or an abort reason. A trace that reaches an
// instruction that it cannot hold is cut: it ends before it, and the reason is kept beside it.
//
// How. Beside each frame of the recorded activation stands a ShadowFrame with one Value per slot. An instruction is either left to the
// evaluator (pure stack work, control flow) with its effect mirrored, or carried out here through the C API, so that what is recorded and
// what happens are one piece of code; then the view is moved behind it.
//
// Three ways to record something:
//  - fold: the result is known under guards that are emitted once between two barriers (known_ holds what has been guarded);
//  - typed operation: unboxed numbers, tensor operations (torch_calls.cpp);
//  - residual operation: the same call on the same objects. This is always right, so it is what everything unknown becomes.
//
// Invariants
//  - A guard's snapshot is the state before the current instruction; so no guard may follow an effect of the same instruction
//    (effect_done_ is checked).
//  - shadow and frame agree: each constant, object and number Value's `concrete` is the object in the slot. Checked before each instruction;
//    a difference aborts, so a defect here costs a trace, not a wrong result.
//
// Tests: tests/traces, tests/programs.
#pragma once

#include <Python.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/marks.h"
#include "ir/trace.h"
#include "runtime/bridge/bridge.h"
#include "tracer/clock.h"
#include "tracer/function_modes.h"
#include "tracer/graph_numbers.h"
#include "tracer/iterators.h"
#include "tracer/late_writes.h"
#include "tracer/lessons.h"
#include "tracer/object_names.h"
#include "tracer/value.h"
#include "vm/objects.h"
#include "vm/vm.h"

namespace dynvm::tracer {

// Where a promotion came from, so that a failing identity guard can teach.
constexpr int kOwnFunction = -1;  // in the place of a unit: the function that a frame belongs to
struct Site {
  enum Kind : uint8_t { kSlot, kDictItem, kList, kValue, kCode, kCoincidence } kind;
  PyObject* a = nullptr;
  PyObject* b = nullptr;
  int index = 0;
};

struct ShadowFrame {
  _PyInterpreterFrame* frame = nullptr;
  PyCodeObject* code = nullptr;
  PyObject* function = nullptr;     // borrowed: its Value keeps it
  ir::Ref function_ref = ir::kNoRef;
  V function_value = kNoValue;
  vm::Continuation continuation = vm::Continuation::kPush;
  V generator = kNoValue;           // whose frame it is, or kNoValue
  int call_unit = 0;                // of the caller's instruction
  int nlocals = 0;
  std::vector<V> slots;             // localsplus, then the value stack
  struct Loop { int count = 0, ops = 0; int64_t first = 0, insts = 0; int changes = 0; std::set<uint64_t> sizes; };
  std::set<int> long_loops;         // headers of those that run long in traces of their own
  std::map<int, Loop> loops;        // header unit -> times round with something recorded; at the first, operations and instructions; at the last, instructions, its sizes; times that these changed
};

// What a recording whose sizes are numbers knows beside its trace: see sizes.h.
struct SizeFacts {
  // A call of torch's that became ATen operations: what numbers and tensors it was given.
  struct TorchCall {
    std::vector<ir::Ref> numbers, tensors;
  };
  // Something that was folded by the geometry of a tensor.
  struct Fold {
    enum Kind : uint8_t { kContiguous, kGeometry } kind;  // is_contiguous(); anything else
    ir::Ref tensor;
  };
  // A number of Python's that changes from run to run and may decide sizes: frozen where sizes are constants. None is a product of others.
  struct Free {
    ir::Ref ref;
    int64_t value;
  };
  std::vector<Free> free;
  std::vector<TorchCall> torch_calls;
  std::vector<int32_t> torch_call_of;  // by index in trace.calls
  std::vector<bool> after_effect;      // likewise: what comes before it in its bytecode instruction cannot be done twice, so no exit may be there
  std::vector<Fold> folds;
};

struct Recording {
  ir::Trace trace;
  bool sizes_are_numbers = false;   // then it is compiled through sizes.h
  SizeFacts sizes;
  std::vector<Site> sites;
  std::vector<PyObject*> owned;     // objects that trace.objects borrows: the compiled trace takes them over
  std::vector<DictUse> uses;        // what was folded from dicts (their keys: strings, in owned)
  std::vector<MadeObject> made;     // in owned, as what they were made from
  std::vector<ir::Trace> backwards;  // of its graphs' nodes, by their numbers
  Abort cut = Abort::kNone;         // why the trace ends before the loop's header
  bool whole = false;               // no graph of an iteration is needed behind its end
  bool trains = false;              // so, and backward() has freed one in it
  int tensor_ops = 0;
  double ms = 0;
};

struct LiveFrame;

inline bool is_data_descriptor(PyObject* d) { return Py_TYPE(d)->tp_descr_set != nullptr; }
inline PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

// A tuple whose class leaves its items, length and iteration to tuple.
inline bool is_plain_tuple(PyObject* o) {
  const PyTypeObject *type = Py_TYPE(o), *tuple = &PyTuple_Type;
  return PyTuple_Check(o) && (!PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE) ||
                              (type->tp_iter == tuple->tp_iter && type->tp_as_mapping->mp_subscript == tuple->tp_as_mapping->mp_subscript &&
                               type->tp_as_sequence->sq_length == tuple->tp_as_sequence->sq_length));
}

// A torch.nn.Module lives longer than an iteration, wherever it is found: in a list, a dict, an iterator.
bool is_module(PyTypeObject* type);
// Is it a function that Cython has compiled, as those of numpy.random?
bool is_cython(PyObject* o);
// Does a recorded argument hold this number?
bool holds_number(const ir::AtenArg& arg, PyObject* number);
// Of an operation that autograd records: the operands that it does so for.
std::vector<int32_t> differentiated_operands(const ir::AtenCall& call);
// Did autograd record this operation?
bool is_differentiated(const ir::AtenCall& call);

// Kinds of code whose call makes a generator or the like.
inline constexpr int kGeneratorFlags = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;

// generators.cpp: does the script's own code run when this is dropped?
bool would_run_handlers(PyObject* object), is_generator_manager(PyTypeObject* type);

class Recorder {
 public:
  // `frames`: from the loop's frame to the one to begin in. header_unit: of the loop. function: that is the beginning of a function, which is
  // recorded to its return.
  Recorder(const std::vector<LiveFrame>& frames, int header_unit, bridge::Bridge* bridge, Lessons& lessons, std::unordered_set<PyObject*> ending, int trace_id,
           bool sizes_are_numbers, bool function, GoneRound gone_round);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Called before each instruction. When done() afterwards, the recording has ended (see abort()).
  vm::HookResult step(vm::ThreadView& view);
  void on_event(vm::ThreadView& view, const vm::EventInfo& info);
  // The exception that was being handled where the trace ends; to compare only.
  PyObject* handled(const vm::ThreadView& view) const { return handling_.open ? handling_.handled_before : view.tstate->exc_info->exc_value; }
  bool done() const { return done_ && consumers_.empty(); }
  bool in_callback() const { return !callbacks_.empty(); }  // a torch call of it is under way, and has called a function that is followed
  Abort abort_reason() const { return abort_; }
  bool is_cut() const { return cut_at_ > 0; }
  bool sizes_are_numbers() const { return sizes_are_numbers_; }
  const std::string& abort_detail() const { return detail_; }
  // The instruction at which it was given up, or doomed to be: file and line; "" and 0 where there was none.
  const std::pair<std::string, int>& abort_place() const { return abort_place_; }
  Recording take();
  int rounds() const { return rounds_; }  // iterations that it went through

  // The inner loop with a trace of its own that it ended at: code and header. Null where that is not why.
  std::pair<PyCodeObject*, int> inner_loop() const { return inner_loop_; }

 private:
  using Handler = vm::HookResult;

  // --- ending
  std::string where() const;
  std::pair<std::string, int> place_now() const;
  void give_up(Abort reason, std::string detail = {});
  void doom(Abort reason, std::string detail = {});  // the same at the recording's end: it goes on, for what else there is to learn
  void finish();
  bool cut();                        // ends the trace before the current instruction, or the raise that is being handled; false: not possible
  bool cut_here();
  bool graph_alive();
  bool ends_before_loop();
  bool goes_round_alike();
  bool goes_round_again();
  void guard_frames();               // of a side trace: what its inlined frames are

  // --- values
  V add_value(Value value);
  Value& at(V v) { return values_[v]; }
  V null_value() { return null_; }
  // A variable of the root frame that the trace was given; an exception that it caught is there.
  bool may_be_unbound(V v) { return at(v).kind == Value::kObject && !at(v).caught && frames_.size() == 1; }
  V constant(PyObject* object);
  void note_made(PyObject* object);
  V object(ir::Ref ref, PyObject* concrete, bool result = true);   // steals nothing; takes its own reference
  V scalar(ir::Type type, ir::Ref ref, PyObject* concrete);
  V virtual_object(Value::Kind kind, std::vector<V> items, PyObject* concrete);
  PyObject* concrete(V v) { return values_[v].concrete; }
  bool is_const(V v) { return values_[v].kind == Value::kConst; }
  void became_stable(V v, int32_t site);
  void likely_same(V v);

  // --- IR
  void note_origin();
  ir::Ref emit(ir::Op op, ir::Type type, std::vector<ir::Ref> args, int64_t imm = 0, bool snap = false);
  void guard(ir::Op op, std::vector<ir::Ref> args, int64_t imm = 0);
  ir::Ref const_ref(PyObject* object);
  ir::Ref const_index(size_t index);
  int32_t object_index(PyObject* object);
  ir::Ref as_object(V v);
  ir::Ref as_snapshot(V v);
  ir::Ref unbox(V v, ir::Op op, ir::Type type);
  ir::Ref as_int(V v);
  ir::Ref as_float(V v);
  ir::Ref as_bool(V v);
  ir::Ref as_tensor(V v);
  void note_counter(PyObject* tensor, ir::Ref found) { own_counters_.resize(static_cast<size_t>(aten_->note_counter(tensor)) + 1, found); }
  int32_t snapshot();
  int32_t new_snapshot();
  ir::Ref make(V v, bool for_snapshot);
  template <class Each> void for_each_part(V v, bool for_snapshot, const Each& each);
  std::vector<ir::Ref> parts_of(V v, bool for_snapshot);
  bool is_still(V v);
  // What snapshots show of a virtual value, and of what it is in, is another thing from now on.
  void changed(V v) {
    at(v).snap = ir::kNoRef;
    epoch_++;
  }
  bool reaches(V v, V target, int depth = 0);
  void barrier();
  void escape(V v);

  // --- guards
  // Makes it a constant under an identity guard; false when it changes too often. tells: what the guard of an int says when it fails.
  bool promote(V v, ir::TruthGuard tells = ir::kTruth);
  bool promote_name(V v);
  bool know_type(V v);               // guard its exact type
  void guard_type_unchanged(PyTypeObject* type);
  void guard_torch_state();
  bool leave_to_call();
  void settle_torch_states();
  static bool chooses_gpu(std::string_view name);
  // For a read of the item with a str key, or of all items. False: the dict is known to change.
  bool guard_dict_unchanged(PyObject* dict, PyObject* key = nullptr);
  void guard_dict_of(PyObject* o);
  V dict_item(PyObject* dict, PyObject* key); // value of a str key in a long-lived dict; null value when missing
  ir::Ref list_guard(V v);
  bool known(uint64_t kind, const void* a, uint64_t b = 0);  // true when already guarded since the last barrier; notes it otherwise

  // --- stack
  void begin_step();
  void follow(ShadowFrame frame);
  ShadowFrame& top() { return frames_.back(); }
  V peek(int depth) { auto& s = top().slots; return s[s.size() - depth]; }
  V& slot(int index) { return top().slots[index]; }
  void pop(vm::ThreadView& view, int n);
  void push(vm::ThreadView& view, V v);        // pushes a new reference to its concrete object
  void push_callable(vm::ThreadView& view, V v, bool alone);  // alone: into the two slots of a call, with NULL for self
  void shadow_pop(int n) { auto& s = top().slots; s.resize(s.size() - n); }
  void shadow_push(V v) { top().slots.push_back(v); }
  Handler next(vm::ThreadView& view);
  Handler jump(vm::ThreadView& view, const vm::Inst* target);
  Handler raised(vm::ThreadView& view);
  bool check_shadow(vm::ThreadView& view);

  // --- instructions, by group
  Handler record_next(vm::ThreadView& view);
  Handler record(vm::ThreadView& view);                                   // recorder.cpp
  Handler record_names(vm::ThreadView& view, vm::Op op, int arg);         // names.cpp
  Handler record_operators(vm::ThreadView& view, vm::Op op, int arg);     // operators.cpp
  Handler record_containers(vm::ThreadView& view, vm::Op op, int arg);    // containers.cpp
  V virtual_tuple(std::vector<V> items), virtual_slice(std::vector<V> ends);
  PyObject* names_tuple(const std::vector<PyObject*>& names);
  V virtual_set(const std::vector<V>& items);
  bool add_to_set(V set, V item);
  Handler record_matching(vm::ThreadView& view, vm::Op op, int arg);      // matching.cpp
  V match_class(V subject, V type, Py_ssize_t positional, PyObject* names);
  V match_keys(V subject, V keys);
  Handler format(vm::ThreadView& view, V value, V spec, int conversion, int pops);
  Handler record_loops(vm::ThreadView& view, vm::Op op, int arg);         // loops.cpp
  Handler record_calls(vm::ThreadView& view, vm::Op op, int arg);         // calls.cpp
  Handler record_attributes(vm::ThreadView& view, vm::Op op, int arg);    // attributes.cpp

  // residual: emits op, carries it out, pops `pops`, pushes the result. extra snapshot rules as for every effect.
  Handler residual(vm::ThreadView& view, ir::Op op, std::vector<V> args, int64_t imm, int pops, bool pushes = true);
  void flush_pending();
  V run_residual(ir::Op op, const std::vector<V>& args, int64_t imm, bool* ok);
  void effect() {
    effect_done_ = true;
    handling_.effect = handling_.open;
    if (!consumers_.empty() && !consumers_.front().effect) {
      consumers_.front().effect = true;
      consumers_.front().effect_by = ir::op_info(trace_.insts.back().op).name;
    }
  }

  // --- attributes.cpp
  struct Attribute {
    enum Kind : uint8_t { kValue, kMethod, kPython, kResidual, kKnown, kGetter, kMissing, kAborted } kind = kResidual;
    // kKnown: a look-up that runs no Python code. kGetter: of a tensor, by a function of its class in C.
    V value = kNoValue;                    // kValue: the attribute; kMethod: the unbound function
    PyObject* function = nullptr;          // kPython: Python function to run (property getter, __getattr__, __getattribute__)
    std::vector<V> args;                   // kPython: its arguments
  };
  Attribute look_up(V object, PyObject* name);
  Attribute look_up_tensor(V object, PyObject* name);
  bool takes_data(V tensor, V data), graph_keeps(ir::Ref tensor);
  V part_of_code(V v, PyObject* name);
  bool asks_known_getter(V object, V name);
  Attribute look_up_type(V object, PyObject* name);
  Attribute look_up_super(V object, PyObject* name);
  Attribute bind_class_attribute(V object, PyObject* descriptor);
  V bound_method_of_c(V object, PyObject* name, V method, V self, bool* ok);
  Attribute call_descriptor(PyObject* descriptor, V instance, V owner);
  V instance_item(V object, PyObject* name, bool* hidden);
  Handler load_attribute(vm::ThreadView& view, PyObject* name, bool method);
  Handler load_super_attribute(vm::ThreadView& view, int arg);
  Handler store_attribute(vm::ThreadView& view, PyObject* name), delete_attribute(vm::ThreadView& view, PyObject* name);
  bool store_item(V object_value, PyObject* name, V value);
  bool sets_item(const std::vector<V>& args);

  // --- generators.cpp
  // Generator functions are followed: the generator is real, and resumed in place by the evaluator; its Value stays virtual, and holds
  // the state of its frame while it is suspended (see Value::kGenerator). Exits make a generator in that state, or resume it.
  //
  // A C function that takes all that a generator yields (tuple, list, all, any) is followed through the generator's body, whose yields are
  // intercepted here. All guards in it re-execute the whole call, so nothing in it may have an effect. Where one has, the loop is recorded
  // again with that call as a residual one. The same goes for a function compiled by torch.jit.script (kScript, calls.cpp) and for a torch call that
  // calls Python functions (kTorch, callbacks.cpp).
  struct Consumer {
    enum Kind : uint8_t { kTuple, kList, kAll, kAny, kSum, kScript, kTorch } kind;
    _PyInterpreterFrame* frame;           // kTorch: none
    std::pair<PyCodeObject*, int> place;  // of the call
    int pops = 0;                     // operands of the call, still on the caller's stack; 0: see `depth`
    int depth = 0;                    // of the generator there, which the tuple takes the place of: f(*generator)
    size_t most = 0;                  // items that are taken; 0: all
    std::vector<V> items;
    std::vector<PyObject*> objects;   // owned; what was yielded, also when recording has been given up in the middle
    bool effect = false;
    std::string_view effect_by;        // the first such operation, for the abort's message
    int32_t snapshot = -1;
    // kTorch: of the storages that the trace has made since; and where it is left by an exception, after an effect: the graph is freed there.
    int32_t first_storage = 0, raises = -1;
  };
  V make_generator(V function, const std::vector<V>& args, PyObject* kwnames), virtual_instance(PyTypeObject* type);
  bool resume(vm::ThreadView& view, V generator, vm::Continuation k);
  void suspend(vm::ThreadView& view), generator_returns();
  Handler generator_ends(vm::ThreadView& view);
  bool advances_unseen(V iterator);
  Handler call_next(vm::ThreadView& view, V callee, V generator, int pops);
  bool consume(vm::ThreadView& view, Consumer::Kind kind, V generator, int pops, int depth = 0);
  std::optional<vm::HookResult> consume_operand(vm::ThreadView& view, V generator, int depth, size_t most = 0);
  void replace_operand(vm::ThreadView& view, int depth, V v);
  Handler consumer_yield(vm::ThreadView& view);
  Handler consumer_end(vm::ThreadView& view, bool early, bool truth);
  bool in_consumer(const vm::ThreadView& view) const { return !consumers_.empty() && consumers_.back().frame == view.frame; }
  Handler drain(vm::ThreadView& view);
  void drop_consumer();
  Handler sum_items(vm::ThreadView& view, std::vector<V> items, PyObject* tuple, int pops);
  std::vector<Consumer> consumers_;

  // --- callbacks.cpp
  struct TorchCall {                  // under way
    const std::vector<V>& inputs;
    bool backward;
    const std::set<ir::Ref>& graph;   // that backward() runs and frees
    std::pair<PyCodeObject*, int> place{};    // what lessons on it are kept for
    bool keeps_graph = false;         // backward() with retain_graph
    std::string_view what{};          // is called
    bool followed = false;            // a callback of it has been followed
    // Of torch.autograd.Function.apply (functions.cpp): what it is given, functions that it calls, the context that it has made, what forward() has given.
    const std::vector<V>* arguments = nullptr;
    V forward = kNoValue, setup = kNoValue, context = kNoValue, output = kNoValue;
  };
  // A Python function that it has called, which is followed, and what of the recorder's state is that of the torch call.
  struct Callback {
    _PyInterpreterFrame* frame;
    PyObject* function;
    size_t depth;                     // frames followed
    std::tuple<TorchCall*, int32_t, size_t, size_t, size_t, int, const vm::Inst*, ir::TorchState, bool> state;  // call_state()
    V result = kNoValue;
    bool grad_mode = false;           // that it began in
    bool gives_several = false;       // backward() of a torch.autograd.Function, a hook of a node: a tuple of gradients
  };
  auto call_state() {
    return std::tie(torch_call_, current_snapshot_, step_begin_, step_depth_, step_slots_, current_unit_, previous_ip_, torch_state_, subscript_);
  }
  bool writes_own_memory(const std::vector<ir::Ref>& written);
  bool guard_hooks(const std::set<ir::Ref>& graph);
  void note_callbacks(PyObject* dict);
  V given_to_callback(PyObject* o);
  void convert_call_so_far();
  bool is_function_backward(_PyInterpreterFrame* entered);
  bool follow_callback(_PyInterpreterFrame* entered);
  void know_gradients(V v);
  void leave_callback(PyObject* result);
  bool sets_grad_mode(const std::string& name) const;
  void follow_grad_mode();
  void end_callbacks(size_t outer);
  // A torch call under way has called a function that has had an effect: what may leave the trace has no place to leave to.
  bool no_guard_may_follow() const { return !consumers_.empty() && consumers_.front().kind == Consumer::kTorch && consumers_.front().effect; }
  void needed_early(ir::Op op, const std::vector<ir::Ref>& args);
  void guard_early(std::pair<PyCodeObject*, int> place);
  void forget_early();
  bool in_callback(const _PyInterpreterFrame* frame) const { return !callbacks_.empty() && callbacks_.back().frame == frame; }
  TorchCall* torch_call_ = nullptr;
  std::vector<Callback> callbacks_;
  bool needs_early_ = false;             // there is a new lesson of that kind: the recording is only gone on with to find more of them
  std::set<PyObject*> callback_parts_;   // functions that torch may call, and objects that it gives to them, which are always the same

  // --- functions.cpp
  static bool is_function_apply(PyObject* callee);
  Handler apply_function(vm::ThreadView& view, V callee, const std::vector<V>& args, int pops);
  V bind_default_args(V callee, const std::vector<V>& args, PyObject* kwnames);
  V new_context(PyObject* context);
  bool given_to_function(_PyInterpreterFrame* entered, V function, std::vector<V>* locals);
  V context_attribute(V context, PyObject* name);
  void settle(V v);
  bool store_context_attribute(V context, PyObject* name, V value, bool* error);
  V function_results(const TorchCall& call, PyObject* cls, PyObject* result, std::vector<bridge::OpRecord>& records,
                     const std::map<int32_t, ir::Ref>& before);
  bool same_locals(_PyInterpreterFrame* entered, V function, const std::vector<V>& args, std::vector<V>* locals);
  ir::Ref add_node(ir::AtenCall call, const std::vector<ir::Ref>& operands, int32_t id, ir::TensorMeta meta);
  ir::Ref context_attributes(const TorchCall& call, const std::vector<V>& results);
  std::unordered_map<PyObject*, V> contexts_;       // of Functions whose backward() may be called
  std::map<ir::Ref, std::vector<ir::Ref>> recipes_; // function_output, hooked -> what an exit makes it of, at different times
  ir::Ref recipe_at(ir::Ref call, ir::Ref wrap) const;
  std::vector<ir::Ref> recipes_of(ir::Ref tensor, ir::Ref wrap) const;

  // --- graph_hooks.cpp
  // Of a Function's context: one of its outputs, with its tensor value then, and parts of the recipe.
  struct Node { V output; ir::Ref made; std::vector<ir::Ref> calls; ir::Ref cls, attributes; std::vector<ir::Ref> hooks; };
  struct Hook { V function, self; int arguments; };
  bool note_hook(V hook, int arguments);
  bool given_to_hook(_PyInterpreterFrame* entered, const Hook& hook, std::vector<V>* locals);
  V hook_handle(PyObject* handle);
  std::optional<Handler> register_tensor_hook(vm::ThreadView& view, V callee, const std::vector<V>& args, int pops);
  std::optional<Handler> call_node_method(vm::ThreadView& view, const std::string& name, const std::vector<V>& args, int pops);
  std::map<V, Node> nodes_;
  std::unordered_map<PyObject*, Hook> hooks_;       // by function

  // --- overrides.cpp
  static PyObject* accessor(PyObject* callee);
  V innermost_mode();
  void take_mode_off(V mode);
  bool moves_mode(PyObject* callee, const std::vector<V>& args, V* result);
  bool overridden(std::string_view name, const std::vector<V>& args);
  bool note_instance(Value* value);
  Handler call_override(vm::ThreadView& view, PyObject* asked, const std::vector<V>& inputs, int pops, vm::Continuation k);

  // --- exceptions.cpp
  // From the raise of an exception until it has been handled.
  struct Handling {
    bool open = false, effect = false;
    int32_t snapshot = -1;            // before the raise; then the shadow frames, the length of the trace and the exception that was being handled
    std::vector<ShadowFrame> frames;
    size_t begin = 0;
    PyObject* handled_before = nullptr;  // to compare only
    V raised = kNoValue;              // on its way to `handler` in frames_[frame]
    size_t frame = 0;
    vm::Handler handler;
    int depth = 0;                    // exceptions being handled
  };
  Handler raise(vm::ThreadView& view, V exc, size_t left = 0);
  bool enter_handler(vm::ThreadView& view);
  bool all_handled();
  V make_exception(PyObject* type, const std::vector<V>& args);
  Handler record_exceptions(vm::ThreadView& view, vm::Op op, int arg);
  Handling handling_;

  // --- loops.cpp
  int32_t snapshot_at(int unit, std::vector<V> slots);
  int32_t snapshot_with_item(int unit, std::vector<V> slots, V item);
  V fold_truth(V v);
  bool decide(vm::ThreadView& view, V v, bool replace, bool* truth, Handler* result);
  bool is_given_away(V iterator);
  V rows_of(V tensor, bool* error);
  bool iterate_tensors(PyTypeObject* type, std::vector<V>* args);
  bool iteration_items(V v, std::vector<V>* items);
  bool same_item(V v, PyObject* object);
  V renew(V v, PyObject* object);
  static PyObject* next_name();
  bool count_loop(int unit, bool traced, V iterator);
  int64_t left_of(V iterator);

  // --- containers.cpp
  bool known_items(V v, std::vector<V>* items);
  bool known_dict(V v, std::vector<PyObject*>* keys, std::vector<V>* items);
  V length_of(V v);
  void devirtualise(V v);

  // --- operators.cpp
  V taken(PyObject* made);
  V number_operator(int op, V left, V right);
  V plain_number_operator(int op, V left, V right);
  V repeated(V items, V times);
  bool extended(V list, V items);
  V sequence_sum(V left, V right);
  V tuple_compare(int op, V left, V right);
  V int_operator_without_guard(int op, V left, V right);
  V number_compare(int op, V left, V right);
  V identity(V left, V right);
  V contains(V container, V value);
  V negation(V truth);
  V item_of(V container, V key);
  bool known_missing(V dict, V key);
  Handler store_item(vm::ThreadView& view, V container, V key, V value);
  bool put_item(V container, V key, V value);
  static bool is_immutable(PyObject* object);
  // A dict that is iterated over in the order of its table, which its version stands for: an OrderedDict has an order of its own.
  static bool iterates_as_dict(PyObject* o) { return PyDict_CheckExact(o) || (PyODict_CheckExact(o) && PyDict_Size(o) <= 1); }
  bool hashes_natively(V v);
  bool compares_natively(V v);
  static PyObject* equality(bool equal);  // operator.eq or operator.ne
  V make_cell(V initial);
  V free_variable(V function, int index);
  V cell_content(V cell);
  void store_cell(V cell, V value, ir::Ref content);

  // --- stores.cpp
  static PyObject* object_setattr();
  static bool keeps_instance(PyObject* callee);
  bool is_own(V v);
  bool may_be_one(V a, V b);
  void dict_written(PyObject* dict, PyTypeObject* of = nullptr);  // of: an instance of that type's
  void note_holder(PyObject* dict);
  static bool holds(PyObject* dict, PyObject* key, PyObject* value);
  void item_stored(PyObject* dict, PyObject* key, V value);
  void other_container_written(V container, PyObject* key);
  void forget_items(const std::function<bool(PyObject* dict, PyObject* key)>& test);
  void set_field(V object, PyObject* name, V value);
  bool only_stores(const std::vector<V>& args);
  void before_store(V object, PyObject* name, V value);
  void after_store(V object, PyObject* name, V value);
  void before_known_call(PyObject* callee, const std::vector<V>& args);
  void after_known_call(PyObject* callee, const std::vector<V>& args);

  // --- calls.cpp
  // The operator method of the first argument's class if it is a Python function: entered; otherwise the residual operation.
  Handler call_dunder(vm::ThreadView& view, const char* name, std::vector<V> args, ir::Op op, int pops, vm::Continuation k);
  bool truth_value(vm::ThreadView& view, V v, V* truth);   // a bool value; false: aborted, or raised
  bool open_partial(V* callee, std::vector<V>* args, PyObject** kwnames);
  bool enter_script(vm::ThreadView& view, V callee, const std::vector<V>& args, PyObject* kwnames, int pops);
  Handler call(vm::ThreadView& view, V callee, std::vector<V> args, PyObject* kwnames, int pops);
  Handler residual_call(vm::ThreadView& view, ir::Op op, V callee, const std::vector<V>& args, PyObject* kwnames, int pops);
  PyObject* known_to_raise(const std::string& name, const std::vector<V>& args);
  bool asks_abstract_class(bool of_object, const std::vector<V>& args);
  bool call_followed(vm::ThreadView& view, PyObject* callee, const std::vector<V>& args, PyObject* kwnames, int pops);
  static bool is_opaque(PyObject* callee);
  static bool switches_evaluation(PyObject* function);
  bool may_follow(const std::string& name, const std::vector<V>& args);
  bool looks_at_frames(PyObject* callee, const std::vector<V>& args);
  static bool is_pure(const std::string& name);
  bool is_for_numpy(V v);
  ir::Op residual_op(PyObject* callee, const std::vector<V>& args);
  bool dict_view_items(V v, int which, std::vector<V>* items);
  bool promote_deeply(V v);
  V take_iterator(PyObject* function, const std::vector<V>& args, std::vector<V> items);
  V empty_like(V container);
  void end_iterator(V iterator);
  bool watches(V container, PyObject* watched);
  void settle_iterators(PyObject* container);
  void use_up(V iterator, std::vector<V>* items);
  static std::string callable_name(PyObject* callee);
  static PyObject* interned_instancecheck();
  static PyObject* builtin(const char* name);
  void guard_code_unchanged(PyObject* function);
  bool know_function(V function);
  bool know_by_code(V function, std::pair<PyCodeObject*, int> place);
  bool push_callee(vm::ThreadView& view, V function, std::vector<V> locals, int pops, vm::Continuation k);
  bool follows(PyObject* function);
  bool enter_function(vm::ThreadView& view, V function, std::vector<V> args, PyObject* kwnames, int pops, vm::Continuation k);
  bool bind_arguments(V function, const std::vector<V>& args, PyObject* kwnames, std::vector<V>* locals);
  Handler call_type(vm::ThreadView& view, V callee, std::vector<V> args, PyObject* kwnames, int pops);
  Handler call_c(vm::ThreadView& view, V callee, std::vector<V> args, PyObject* kwnames, int pops);
  bool fold_builtin(PyObject* callee, const std::vector<V>& args, PyObject* kwnames, V* result);
  Handler finish_call(vm::ThreadView& view, V result, int pops);
  std::optional<Handler> call_in_python(vm::ThreadView& view, PyObject* callee, const std::vector<V>& args, int pops);

  // --- number_lists.cpp
  bool changing_numbers(V v, bool whole);
  V with_index_tensors(V index, PyObject* tensor, bool in_tuple = false);

  // --- torch_calls.cpp
  bool is_tensor(PyObject* object) const { return bridge_ != nullptr && bridge_->is_tensor(object); }
  bool touches_torch(PyObject* callee, const std::vector<V>& args);
  bool read_numbers(PyObject* callee, std::vector<V>* args);
  Handler torch_call(vm::ThreadView& view, V callee, std::vector<V> args, PyObject* kwnames, int pops);
  struct Asked {
    PyObject* what = nullptr;   // what Bridge::ask_override gives: fn was not run then
    bool drops = false;         // what a __torch_function__ gives is not looked at
    PyObject* names = nullptr;  // of the call's keyword arguments
  };
  // Runs `fn` with the ATen recorder on and turns what it recorded into IR. executed_: it ran, and raw_result_ owns its result. Returns true
  // with the result's Value in *out (kNoValue: no tensor operation, no tensor result); false: given up, or raised (*error).
  bool with_torch(const std::function<PyObject*()>& fn, const std::vector<V>& inputs, const char* what, V* out, bool* error, PyObject* callee = nullptr,
                  Asked* asked = nullptr);
  std::set<ir::Ref> graph_of(const std::vector<V>& tensors), graph_of(std::set<ir::Ref> tensors) const, run_by_engine(const std::vector<V>& inputs, size_t retains);
  struct EngineOutside;
  bool is_outside(ir::Ref tensor) const, is_engine_outside(const std::vector<V>& inputs, PyObject* callee), guard_apart(const std::vector<V>& asked, const std::vector<V>& outsiders);
  bool prepare_outside(const std::set<ir::Ref>& graph, size_t retains, EngineOutside* beyond), go_on_outside(EngineOutside* beyond);
  struct Mortal { PyObject* object; Py_ssize_t held; };  // by Values
  Mortal* find_mortal(PyObject* object);
  void note_held(PyObject* object), note_mortal(PyObject* object);
  bool one_has_died() const, one_dies_with_frame() const, graph_of_outsider(const ir::AtenCall& call, const std::vector<ir::Ref>& operands) const;
  std::vector<V> live_graphs();
  void before_write(const std::vector<ir::Ref>& written), note_late(int32_t storage), store_late(ir::Snapshot* snapshot), write_back(), note_written_object(V v);
  bool sees_late(ir::Op op, const std::vector<V>& args), is_late(V v) const, is_hidden(V v), looks_at_late(const ir::Inst& wrap) const, stay_as_given(const std::vector<std::pair<V, bridge::TensorObject>>& given, const char* what);
  bool put_off(ir::AtenCall* call, const bridge::OpRecord& record, const std::vector<ir::Ref>& operands, LateWrite* late, V* object);
  static size_t numbers_read_first(const std::vector<bridge::OpRecord>& records), first_write_to_given(const std::vector<bridge::OpRecord>& records);
  std::string not_repeatable(const std::vector<bridge::OpRecord>& records, PyObject* result, const std::vector<V>& inputs, std::string_view name);
  std::string read_unseen(const std::vector<bridge::OpRecord>& records, const std::vector<V>& tensors, PyObject* result, std::string_view name);
  bool convert_records(std::vector<bridge::OpRecord>& records, const std::vector<V>& inputs, bool backward);
  bool moves_given(const std::vector<bridge::OpRecord>& records, const std::vector<V>& tensors), made_alike(ir::Ref a, ir::Ref b, int depth) const, any_asks_for_grad(const std::vector<PyObject*>& objects);
  bool look_alike(const ir::Inst& other, const ir::AtenCall& call, const std::vector<ir::Ref>& operands, std::vector<std::pair<ir::Ref, ir::Ref>>* numbers);
  int32_t place_apart(int32_t id, int32_t index);
  void place_views(ir::AtenCall* call, const std::vector<int32_t>& ids, const std::vector<ir::Ref>& compact);
  bool moving_view_written(const std::vector<ir::Ref>& written, const std::string& name), nobody_has(int32_t id), follow_offset(ir::AtenCall* call, int32_t id);
  void move_to_own(ir::TensorMeta* view, const std::pair<PyCodeObject*, int>& place);
  bool coincides(int32_t id, const ir::AtenCall& call, const std::vector<ir::Ref>& operands, const ir::TensorMeta& meta);
  // scalars: arguments that are changing numbers, or lists of some.
  using ScalarArguments = std::vector<std::pair<size_t, std::vector<V>>>;
  bool convert_record(bridge::OpRecord& record, const ScalarArguments& scalars, bool backward);
  struct BoundList { size_t record, arg; std::vector<V> items; };
  std::vector<BoundList> bind_lists(const std::vector<bridge::OpRecord>& records, const std::vector<V>& inputs);
  bool takes_any_int(const ir::AtenCall& call, size_t argument);
  bool asks_moving_layout(PyObject* callee, const std::vector<V>& args);
  ir::Ref tensor_of_id(int32_t id);
  int32_t meta_of(int32_t id);
  void collect(V v, std::vector<V>* tensors, std::vector<V>* numbers, bool frozen = false);
  void freeze(V v);
  V tensor_result(PyObject* result, const std::vector<V>& inputs, const std::vector<bridge::OpRecord>& records, bool* ok);
  void drop_computed_sizes();
  V tensor_value(PyObject* object, int32_t id);
  void free_dead_tensors();
  void refresh(V v);
  void refresh_written(const std::vector<bridge::OpRecord>& records);
  bool sizes_change(V tensor);
  V size_number(V tensor, int64_t dim);
  V size_object(V tensor);
  bool fold_size(const std::string& name, const std::vector<V>& args, PyObject* kwnames, V* result);
  void folded_by_geometry(const std::vector<V>& tensors, SizeFacts::Fold::Kind kind = SizeFacts::Fold::kGeometry);
  V number_of_sizes(V result, V left, V right);
  bool fold_torch(PyObject* callee, const std::vector<V>& args, PyObject* kwnames, const char* kind, V* result);
  V part_of_module(V module, PyObject* name);
  V regrouped(PyObject* object, const std::unordered_map<PyObject*, V>& tensors);
  V grad_of(V tensor);
  void set_grad(V tensor, V grad);
  std::vector<std::pair<PyObject*, V>> differentiated_leaves() const;
  void note_grads();
  V known_grad(V tensor);
  void note_new_grads();
  void forget_graphs();
  void hand_out_graph(V v);
  void look_at_graphs(ir::Op op, const std::vector<V>& args);
  bool only_keeps(ir::Op op, PyObject* callee);
  struct Contents {
    std::vector<PyObject*> keys;  // str
    std::vector<V> items;
  };
  const Contents* known_contents(V v);
  void other_contents_written(V container);
  V known_attribute(V dict, PyObject* name);
  bool extend_virtual(V list, V source);
  V own_dict(V v, PyObject* name, PyObject* d);
  static bool never_returns(PyObject* function);
  static bool is_caching(PyObject* o);
  std::optional<Handler> call_cached(vm::ThreadView& view, V callee, int pops);
  V signature_of(V callee);
  V signature_constant(PyObject* made, PyObject* from, bool parameters);
  static bool is_of_container(const std::string& name);
  static size_t find_key(const std::vector<PyObject*>& keys, PyObject* key) {  // both str; keys.size(): it is not among them
    size_t i = 0;
    while (i < keys.size() && PyUnicode_Compare(keys[i], key) != 0) i++;
    return i;
  }
  std::set<V> dead_beside(const std::set<ir::Ref>& graph);
  std::unordered_set<PyObject*> held_alone(std::vector<PyObject*> held) const;
  void leave_what_keeps_nothing(std::set<ir::Ref>* freed);
  void free_graph(const std::set<ir::Ref>& graph);
  bool fill_wraps();
  struct Rehearsal;
  std::string add_graph_nodes(), make_graph_nodes(), record_backward(Rehearsal& rehearsal, ir::GraphNode* node);
  PyObject* object_of(ir::Ref tensor) const;
  bool rehearse(Rehearsal& rehearsal, ir::Ref value, bool own), rehearse_call(Rehearsal& rehearsal, ir::Ref call);
  struct BoundNumber { V value; size_t record, arg; };   // a changing number is that argument of that operation
  void note_graph_numbers(const std::vector<bridge::OpRecord>& records, const std::vector<BoundNumber>& bound);
  bool find_index_numbers(V tensor, V index, const std::vector<bridge::OpRecord>& records, std::vector<BoundNumber>* found);  // subscripts.cpp
  bool bind_graph_numbers(const std::vector<bridge::OpRecord>& records, std::vector<BoundNumber>* bound);
  Handler torch_operator(vm::ThreadView& view, ir::Op op, std::vector<V> args, int64_t imm, int pops, const char* name, bool pushes = true);

  bridge::Bridge* bridge_;
  std::unique_ptr<bridge::Recorder> aten_;
  Lessons& lessons_;
  const std::unordered_set<PyObject*> ending_;           // objects that a later iteration may not find any more: not to be assumed; to compare only
  ir::Trace trace_;
  std::vector<ir::Trace> backwards_;
  std::vector<Site> sites_;
  std::vector<Value> values_;
  std::vector<V> containers_, holders_;                  // virtual lists and dicts since the last barrier; no constants: tensors, and what may hold such, but for those that have been found to hold no memory
  std::vector<ShadowFrame> frames_;
  std::set<PyCodeObject*> codes_;                        // of all frames so far
  std::vector<PyObject*> owned_;
  std::unordered_map<PyObject*, V> constants_;
  std::unordered_map<PyObject*, int32_t> object_index_;
  std::unordered_map<PyObject*, ir::Ref> const_refs_;
  std::set<std::tuple<uint64_t, const void*, uint64_t>> known_;
  std::map<std::pair<V, PyObject*>, V> fields_;          // attributes of instances written or read since the last barrier
  std::map<std::pair<PyObject*, PyObject*>, V> items_;   // (dict, key) read or written key by key since the last barrier
  std::map<std::pair<PyObject*, PyObject*>, V> pending_; // module variables to be stored: tensors whose graph backward() may free first
  std::string stored_at_;                                // where that could not be put off any longer
  std::map<V, V> cells_;                                 // cell -> content
  std::map<V, V> grads_;                                 // tensor object -> .grad
  std::unordered_map<PyObject*, V> leaf_objects_;        // tensor objects seen, by identity
  LateWrites late_;
  size_t made_bytes_ = 0;                                // of tensors since dead ones were looked for
  std::set<int32_t> input_storages_;                     // of tensors that the trace unboxes
  std::set<V> identified_;                               // loaded objects that are known to be the tensor that they were
  std::vector<ir::Ref> own_counters_;                     // tensors that look like others, as they were found, by note_counter's numbers
  std::set<int32_t> replaced_;                           // ids of memory that a leaf has been given by `leaf.data = ...`
  std::unordered_map<int32_t, ir::Ref> tensors_;         // recorder tensor id -> its present value
  std::unordered_map<int32_t, int32_t> metas_;
  std::unordered_map<int32_t, int32_t> storages_;
  std::unordered_map<int64_t, ir::Ref> int_refs_, float_refs_;
  std::map<V, ir::Ref> twins_;                           // of those that are Python objects: what an exit makes to give them their graph (hand_out_graph)
  std::map<V, Contents> contents_;                       // of kinds of dict that the trace has made
  std::set<V> signatures_;                               // constants: inspect.signature's results, and their parameters
  std::vector<MadeObject> made_objects_;                 // what they were made from
  std::map<V, V> dict_of_;                               // a __dict__ of an instance that the trace has made: which
  std::string looked_by_;                                // the first that may have looked at such a graph
  std::map<ir::Ref, ir::Ref> freed_early_;               // wraps whose graph, or what that ends in, backward() frees before anybody looks at it: the twin behind that, if any
  V null_ = kNoValue;
  std::pair<PyCodeObject*, int> inner_loop_;
  PyCodeObject* root_code_;
  int root_unit_, current_unit_ = 0;
  int rounds_ = 1;         // iterations, with the one that is recorded
  size_t round_began_ = 0; // its first instruction
  std::set<uint64_t> round_sizes_;  // of the one before: loops.cpp
  bool branches_ = false;  // what no constant says has decided where to go on, or how large something is
  struct KnownIterator { std::vector<V> items; size_t position = 0; };
  std::map<V, KnownIterator> iterators_;                 // iterators over known items
  std::vector<V> open_iterators_;                        // virtual ones over dicts and sets
  struct FunctionParts {
    V defaults = kNoValue, keyword_defaults = kNoValue;
    bool by_code = false;                                // not made here
  };
  std::map<V, FunctionParts> functions_;                 // made here, or known by their code
  std::map<V, std::vector<V>> function_parts_;           // of virtual ones: operands of make_function
  int making_ = 0;                                       // objects in objects
  uint64_t epoch_ = 0;
  int64_t barriers_ = 0;
  std::map<PyObject*, V> cached_;                        // what caching functions have given without arguments since the last barrier
  std::set<PyObject*> guarded_dicts_;
  std::map<PyObject*, PyTypeObject*> owned_dicts_;       // dicts of constant instances, and what these are
  std::map<std::pair<PyObject*, PyObject*>, DictUse> dict_uses_;  // by dict and key
  std::vector<V> root_initial_, live_graph_;             // live_graph_: tensor values with a live autograd graph
  const bool sizes_are_numbers_, function_;
  const GoneRound gone_round_;  // when the recording began
  SizeFacts sizes_;
  std::map<std::pair<ir::Ref, int64_t>, V> size_numbers_;
  size_t step_begin_ = 0, step_depth_ = 0, step_slots_ = 0;  // of the current instruction: trace length, frames, slots of the innermost
  size_t snapshot_end_ = 0, cut_at_ = 0;                 // length of the trace when the last snapshot was taken; of one that has been cut
  ir::Marks seen_;                                       // values, of one walk over them
  std::set<ir::Ref> freed_;                              // tensor values whose graph backward() has freed
  const vm::Inst* previous_ip_ = nullptr;
  std::string mismatch_, detail_;
  int32_t current_snapshot_ = -1;
  ir::TorchState torch_state_;
  FunctionModes modes_;
  bool mode_entered_ = false;                            // or left, by the last instruction
  bool effect_done_ = false, done_ = false, side_ = false;
  bool subscript_ = false, drawn_ = false;               // the torch call under way is one: numbers in it are indexes, not dims; has drawn random numbers
  // Storages that a view with a changing offset looks at, and its own: where those views are made.
  std::map<int32_t, std::vector<std::pair<PyCodeObject*, int>>> moving_storages_;
  std::set<int32_t> written_storages_;
  std::map<int32_t, int32_t> moved_storages_;            // its own, and what it looks at
  std::set<std::pair<ir::Ref, ir::Ref>> same_numbers_;   // of views, guarded to be equal
  std::vector<Mortal> mortals_;                          // mortals.cpp
  std::set<PyObject*> made_;                             // objects that calls have made in this iteration: the next one has others
  std::map<ir::Ref, ir::FreedNode> requires_graph_;      // tensor values that autograd tracks, with what is left of their node when it is freed
  GraphNumbers graph_numbers_;                           // changing numbers that a backward() may use
  ir::Ref last_number_ = ir::kNoRef;
  PyObject* raw_result_ = nullptr;
  bool executed_ = false, entered_error_ = false, in_torch_ = false, python_in_torch_ = false, started_ = false;
  int tensor_ops_ = 0, finalizers_ = 0;                  // finalizers: activations that garbage collection has entered in a torch call
  Abort abort_ = Abort::kNone, doomed_ = Abort::kNone;
  size_t doomed_at_ = 0;                                 // instructions then
  std::pair<std::string, int> abort_place_;
  Clock::time_point start_;
  std::map<std::tuple<void*, int32_t, int32_t>, int32_t> origin_numbers_;  // in trace_.origins
};

}  // namespace dynvm::tracer
