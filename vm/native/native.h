// Native runs: stretches of fast code between calls, compiled to machine code.
//
// Purpose: the dispatch, the pushes and pops, the boxes and the reference counts between two simple instructions cost more than the
//   instructions. A run is compiled from the specialised forms that the interpreter has settled on; it starts at one instruction (its
//   entry), follows jumps and loops, and ends at each instruction that it cannot do, with the frame as the interpreter would have it.
// Inputs: a Code that has become hot. Outputs: entries: the handler of their Inst is kNative and Inst::extra the number of the Entry.
// Invariants
//   - A run executes an instruction wholly or not at all: each guard stands before the first effect, and failing it ends the run in
//     front of that instruction, which the interpreter then executes. Nothing in a run raises but the C
//     functions of iterators: the run ends at their loop then, and the interpreter sees to the exception.
//   - At an end all values of the stack are in their slots with a reference each; locals are in their slots always.
//   - What a guard relies on is checked at each use; only exact types of locals are remembered, until the local is stored to.
//   - Machine code lives as long as its Code: a run that is given up may still be on the C stack.
// Tests: tests/vm/test_native.py, and all of tests/vm, tests/fuzz with DYNVM_STRESS=native, which compiles early.
#pragma once

#include "vm/decode.h"

namespace dynvm::vm::native {

// Why a run has ended with g_stopped.
enum class Stop : uint8_t {
  kRetired,    // it has failed a guard too often in front of `at`
  kRaised,     // there is no memory for a box that `at` needs: the exception is set
  kLoopEnded,  // the iterator of the loop `at`, on top of the stack, has given nothing; an exception may be set
  kTraced,     // `at` has been executed, and what it called has switched tools or tracemalloc on
};

// What a run needs of the activation that executes it.
struct Context {
  cpython::LoopProbe probe;    // what a backward jump looks at
  PyThreadState* tstate;
  void* floats;                // of a FloatList
  const Inst* at = nullptr;    // with g_stopped: where the interpreter goes on
  Stop stop = Stop::kRetired;
  explicit Context(PyThreadState* thread, const cpython::Entry& entry) : probe(thread, entry), tstate(thread), floats(cpython::FloatList(thread).state) {}
};

struct State {  // in two registers
  const Inst* ip;
  PyObject** sp;
};
using Function = State (*)(PyObject** locals, PyObject** sp, Context* context);

struct Entry {
  Function function;
  const void* handler;  // of the instruction without the run
};

// The entries that are installed, by their instruction's Inst::extra.
extern const Entry* const* g_entries;

// Where a run ends that the interpreter does not simply go on behind; Context says more.
extern const Inst* g_stopped;

extern NativeSettings g_settings;

// A function or loop has become hot: compiles the runs of its Code. Never fails: what cannot be compiled stays with the interpreter.
void compile(Code* code, const cpython::Frame* frame);
// Takes all entries back until the code has become hot again. `at`: the instruction whose guard failed, which is left to the interpreter
// from now on; nullptr: all of it is.
void retire(Code* code, const Inst* at);
// The Code dies: its machine code with it.
void release(Code* code);

// Left to the interpreter.
inline constexpr uint32_t kRefused = 1;
inline bool refused(const Inst* inst) { return inst->extra == kRefused; }

// Learns the labels of the evaluator.
void prepare(const void* const* labels);

}  // namespace dynvm::vm::native
