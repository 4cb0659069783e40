// The evaluator's public interface: installing it, and everything a recorder needs.
//
// Purpose: dynvm's own evaluator of CPython bytecode. It works on CPython's own frames; Python-to-Python calls stay in
//   one C++ loop (an "activation" is one entry of that loop from C).
// Inputs: code objects and frames of the running interpreter. Outputs: exactly what CPython's evaluator would do.
// Invariants: all functions need the GIL. The recorder (tracer/) is a client through Hooks; vm never includes it.
//   A code object has two decoded forms with equal indices: fast (specialised, fused) and plain (generic instructions,
//   one for each original one). Plain code runs only while an activation records, and then every instruction goes
//   through Hooks::record first.
// Tests: tests/vm/.
#pragma once

#include <Python.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/heuristics.h"

struct _PyInterpreterFrame;

namespace dynvm::vm {

// ---------------------------------------------------------------------------------------------------------------------
// Instructions

enum class Op : uint16_t {
#define GENERIC(name, effect, text) k##name,
#include "vm/insts.def"
  kGenericCount
};

using Opcode = Op;

struct HotCounter;

// One decoded instruction. Clients use the functions below; the layout is shared with the evaluator only. Large programs are as fast as
// their instructions are small: what the frame's code object has (position, names) is found there.
struct Inst {
  const void* handler;      // label of the body
  uint32_t unit;            // code unit of the CPython instruction proper
  uint32_t extra;           // calls with keywords: the constant with their names, and kNamed; else in fast code what native.h says
  int32_t arg;              // with EXTENDED_ARG applied
  uint16_t op;              // generic Op; never changes
  uint16_t state;           // adaptive counter in fast code
  uint64_t cache[2];        // inline cache; jumps: [0] in the low half the bytes to the target, [1] HotCounter*
};
static_assert(sizeof(Inst) == 40);

struct Code;  // a decoded code object, vm/decode.h

// Is there a way through it that ends other than by an exception, as far as can be seen?
[[nodiscard]] bool may_return(PyCodeObject* code);

// Does the code store attributes of its first argument, as methods do that keep count of something?
[[nodiscard]] bool stores_to_first(PyCodeObject* code);

[[nodiscard]] inline Op opcode(const Inst* inst) { return static_cast<Op>(inst->op); }
[[nodiscard]] inline int oparg(const Inst* inst) { return inst->arg; }
std::string_view op_name(Op op);
// Tuple of keyword names of a kCall of that code object (borrowed), or nullptr.
PyObject* kwnames(PyCodeObject* code, const Inst* call);
// Target of a jump, of kForIter and of kSend; nullptr for the rest.
const Inst* jump_target(const Inst* inst);
// Is it a jump to an earlier instruction.
bool is_backward_jump(const Inst* inst);
// The following instruction in code order.
[[nodiscard]] inline const Inst* next(const Inst* inst) { return inst + 1; }
// Counter of the loop that a backward jump closes, or of the function for its kResume; nullptr for the rest.
HotCounter* hot_counter(const Inst* inst);

// Code objects. Decoding happens on the first request; nullptr only when memory is exhausted.
// `unit_offset` counts 2-byte code units; prefixes (EXTENDED_ARG, KW_NAMES, PRECALL) belong to their instruction. Where one of CPython's
// instructions is two of dynvm's, the second one's has a bit above all units set: it is to be handed back as it is.
const Inst* inst_at(PyCodeObject* code, int unit_offset, bool plain);
const Inst* first_inst(PyCodeObject* code, bool plain);
int inst_count(PyCodeObject* code);
// First code unit of an instruction, prefixes included; lasti_of gives the unit of the instruction proper.
int unit_of(PyCodeObject* code, const Inst* inst);
int lasti_of(PyCodeObject* code, const Inst* inst);
int index_of(PyCodeObject* code, const Inst* inst);
bool is_plain(PyCodeObject* code, const Inst* inst);
// The same instruction in the other form.
const Inst* as_plain(PyCodeObject* code, const Inst* inst);
const Inst* as_fast(PyCodeObject* code, const Inst* inst);
// Counters of the code's loops. A loop is what a backward jump closes.
std::span<HotCounter> loop_counters(PyCodeObject* code);
// That of the innermost loop around a unit, or nullptr.
HotCounter* enclosing_loop(PyCodeObject* code, int unit_offset);
// Does the unit lie between the header of the counter's loop and the last jump back?
bool lies_in(const HotCounter& loop, int unit_offset);
// Counter of the function's calls; nullptr only when memory is exhausted.
HotCounter* call_counter(PyCodeObject* code);

// ---------------------------------------------------------------------------------------------------------------------
// Frames, for clients that may not include CPython's internal headers

struct FrameView {
  static PyFunctionObject* function(const _PyInterpreterFrame* frame);  // borrowed
  static PyCodeObject* code(const _PyInterpreterFrame* frame);          // borrowed
  static PyObject* globals(const _PyInterpreterFrame* frame);           // borrowed
  static PyObject* builtins(const _PyInterpreterFrame* frame);          // borrowed
  static PyObject* locals_mapping(const _PyInterpreterFrame* frame);    // borrowed or nullptr (class bodies, modules)
  static PyObject** locals(_PyInterpreterFrame* frame);                 // localsplus: locals, cells, free variables
  static int local_count(const _PyInterpreterFrame* frame);
  static PyObject** stack_base(_PyInterpreterFrame* frame);             // first value stack slot
  static _PyInterpreterFrame* previous(const _PyInterpreterFrame* frame);
  static PyObject* generator(_PyInterpreterFrame* frame);               // borrowed; nullptr when not a generator's
  static bool give_up_object(_PyInterpreterFrame* frame);               // its frame object (sys._getframe, ...) is gone; false: somebody holds it
};

// ---------------------------------------------------------------------------------------------------------------------
// Recording

// Counts down: `count` arrivals pass, then the hook runs, with count 0, so at each arrival unless it says how many may pass. One for each loop header (all backward
// jumps to it share it) and one for each function.
struct HotCounter {
  int32_t count;
  int32_t limit;        // the first arrival at which the hook runs; 0: none
  void* trace;          // client's; while set the hook runs at every arrival, at a loop's header also from above
  void* client[2];      // client's
  PyCodeObject* code;   // borrowed: the counter lives as long as the code object
  int32_t unit;         // of the loop header, or of kResume for a function
  int32_t end;          // of a loop: of the last jump back
  int32_t heat;         // iterations until native code is made
  bool is_call;
  bool yields;          // of a loop: a generator or coroutine may be suspended inside of it
};

enum class Continuation : uint8_t {
#define CONTINUATION(name, text) k##name,
#include "vm/continuations.def"
  kCount
};
std::string_view continuation_name(Continuation continuation);

// Live state handed to hooks. A hook may change frame, ip, sp through the functions below (or directly) and returns
// kReload then.
struct ThreadView {
  PyThreadState* tstate;
  _PyInterpreterFrame* frame;
  const Inst* ip;                     // about to be executed
  PyObject** sp;                      // one past the top of the value stack
  _PyInterpreterFrame* entry_frame;   // outermost frame of this activation
  PyObject* result;                   // for HookResult::kReturn: new reference
  bool entered_handler;               // record: ip is the first instruction of an exception handler
  void* activation;                   // the evaluator's
};

enum class HookResult : uint8_t {
  kContinue,  // nothing changed
  kReload,    // frame, ip, sp changed: go on there
  kError,     // a Python exception is set: unwind at view.ip in view.frame
  kReturn,    // the view's frame returns view.result, as if it had executed kReturnValue
};

enum class Event : uint8_t {
  kFramePushed,    // the evaluator entered `frame` by itself; its caller goes on with `continuation`
  kFrameReturned,  // `frame` is left with `value`; sent before the continuation is applied
  kFrameYielded,   // generator `frame` is suspended with `value`
  kFrameResumed,   // generator `frame` goes on inside this activation, its caller with `continuation`
  kGeneratorMade,  // `frame` was turned into generator `value`, which its caller gets
  kUnwind,         // an exception is set and `frame` looks for a handler
  kFrameUnwound,   // `frame` is left by an exception
  kNestedEntry,    // C code of the recorded activation entered a new activation with `frame`
  kNestedExit,     // ... and left it
  kActivationEnd,  // the recorded activation's entry frame is left: recording has ended
  kHandover,       // `frame` goes to CPython's evaluator (tracing): recording has ended
};

struct EventInfo {
  Event event;
  Continuation continuation;      // kFramePushed, kFrameResumed, kFrameReturned, kFrameYielded, kFrameUnwound
  _PyInterpreterFrame* frame;
  PyObject* value;                // borrowed, or nullptr
};

struct Hooks {
  // At a loop back-edge whose counter underflows, and at each arrival while its trace is set: view.ip is the loop header, about to be executed.
  HookResult (*hot_loop)(ThreadView&, HotCounter&) = nullptr;
  // At kResume (arg 0) of a Python function whose counter underflows; view.ip is that kResume, about to be executed.
  HookResult (*hot_call)(ThreadView&, HotCounter&) = nullptr;
  // While recording: before each instruction of the recorded activation.
  HookResult (*record)(ThreadView&) = nullptr;
  // While recording. Must not change the view.
  void (*event)(ThreadView&, const EventInfo&) = nullptr;
  int32_t loop_limit = 0;   // the arrival at a loop at which hot_loop is called first; 0: never
  int32_t call_limit = 0;   // the call of a function at which hot_call is called first; 0: never
};

// The hooks must outlive the evaluator or be replaced. nullptr: none. Counters that exist get their limits anew. A recording
// that is under way ends.
void set_hooks(const Hooks* hooks);

// Called after each import statement, with the module's name as it is written. nullptr: none. It must clear what it raises.
void set_import_hook(void (*hook)(PyObject* name));

// Tracebacks leave out frames of code with this very co_filename, which is kept: they do in Python what others do in C.
void hide_frames_of(PyObject* filename);

// From inside hot_loop or hot_call (which then returns kReload): this activation goes on in plain code through
// Hooks::record. One activation of one thread at a time records; returns false when another one does.
[[nodiscard]] bool start_recording(ThreadView& view);
// From inside a hook of the recorded activation, which then returns kReload (from `event`: takes effect at the next
// instruction): all its frames go on in fast code.
void stop_recording(ThreadView& view);
// From `event` for kNestedEntry of a function's frame: that activation is recorded too, as a part of the one whose C code entered it, until it is left.
void follow_nested();
PyThreadState* recording_thread();  // null: nothing is recorded

// ---------------------------------------------------------------------------------------------------------------------
// Rebuilding frames at side exits; all work on the view's activation and change the view

// Pushes a frame for `function` (new reference is taken) as if the instruction view.ip of view.frame had called it; the
// operands of the call must be gone from the caller's stack and what `continuation` needs must be on it. Locals are
// NULL, to be filled by the caller; ip is the function's first instruction. nullptr with an exception: no memory or
// RecursionError.
[[nodiscard]] _PyInterpreterFrame* push_frame(ThreadView& view, PyFunctionObject* function, Continuation continuation);
// Goes on inside a suspended generator as if view.ip (kForIter or kSend) of view.frame had resumed it; the generator is on top of
// view.sp. Its locals and stack are as they were when it was suspended. Returns its frame.
[[nodiscard]] _PyInterpreterFrame* resume_generator(ThreadView& view, PyObject* generator, Continuation continuation);
// Makes the view's frame stand before `at` (either form; converted to the activation's current form).
void set_position(ThreadView& view, const Inst* at);
// Leaves view.frame (an inlined one, not view.entry_frame) and drops what it holds, without applying its continuation:
// view becomes its caller at the calling instruction, with what the continuation needs on its stack.
void drop_frame(ThreadView& view);
// Leaves view.frame, a generator's inlined one that stands at its yield, as that yield does, but drops the value: the generator is suspended there.
void suspend_frame(ThreadView& view);
// Goes from the view's frame outwards, through the frames of its activation that are inlined, up to its entry frame.
class Callers {
 public:
  explicit Callers(const ThreadView& view);
  bool next();                                // one caller further; false: `frame` is the entry frame
  _PyInterpreterFrame* frame;
  // Of what was called from there, once it has gone on:
  Continuation continuation{};
  const Inst* at = nullptr;                   // the calling instruction
  PyObject** sp = nullptr;                    // the caller's stack pointer

 private:
  friend struct LinkWalk;
  const _PyInterpreterFrame* entry_;
  PyObject** top_;                            // of the data stack below the frame
  struct _stack_chunk* chunk_;
};
// Does this thread, whose current frame stands at that unit, run an iteration of the loop that goes round in `frame`? Also where C code lies between.
bool is_inside(const ThreadView& view, int unit_offset, const HotCounter& loop, const _PyInterpreterFrame* frame);

// ---------------------------------------------------------------------------------------------------------------------
// Installing

struct Stats {
  uint64_t decoded_codes = 0;       // code objects decoded
  uint64_t activations = 0;         // entries from C
  uint64_t inlined_frames = 0;      // frames pushed without leaving the loop
  uint64_t resumed_generators = 0;  // generators resumed without leaving the loop
  uint64_t handovers = 0;           // frames given to CPython's evaluator (tracing)
  uint64_t reinstalls = 0;          // times the evaluation slot had been taken away and was taken back
  uint64_t native_codes = 0;        // times that a code object's runs of instructions were compiled
  uint64_t native_runs = 0;         // such runs
  uint64_t native_bytes = 0;        // their machine code
  uint64_t native_given_up = 0;     // times that a code object's runs were given up
};

// When instructions between calls are compiled to machine code.
struct NativeSettings {
  bool on = true;
  int32_t calls = base::heuristics().native_calls;   // of a function before it is compiled
  int32_t loops = base::heuristics().native_loops;  // iterations of a loop before its function is compiled
  int32_t misses = base::heuristics().native_misses;  // failed guards before a run is given up
  // The share of all calls that a function must have is that of the machine code there is in this many bytes: a large program that does a
  // little everywhere would only fill the processor's caches with it.
  int64_t room = int64_t{base::heuristics().native_room} << 20;
  void (*show)(const std::string& title, const std::string& text) = nullptr;  // told what was compiled
};

// Makes this evaluator the interpreter's; false with a Python exception set where this CPython is not supported.
// Frames that already run stay with CPython's evaluator, which gives each new call to this one.
// `counting`: with a slower evaluator that counts what it executes.
[[nodiscard]] bool install(bool counting = false, const NativeSettings& native = {});
// What was executed so far: forms, pairs of them, and what generic forms worked on. "" unless installed with counting.
std::string counted();
// Other settings from now on; what has been compiled stays.
void set_native(const NativeSettings& native);
void uninstall();
bool installed();
// Is the interpreter's frame evaluation function this evaluator's? Else another's is asked about each call of a Python function (PEP 523).
bool has_slot();
const Stats& stats();

}  // namespace dynvm::vm
