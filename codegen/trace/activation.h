// One run of a compiled trace: the memory that generated code works on.
//
//     | Activation | values[0] ... values[num_values - 1] | scratch[0] ... scratch[num_scratch - 1] |
//
// A value is 64 bits: an object pointer, an int64, the bits of a double, or 0 / 1. Which slot holds which value when is value_plan.h's.
// scratch holds callable and arguments of the call being made, and the numbers for the tensor operation being run.
// Invariant: used by one run at a time; a trace that is entered again gets another one.
// Tests: tests/exec.
#pragma once

#include <cstdint>

#include "runtime/base/profile.h"

namespace dynvm::codegen {

struct Activation {
  void** root_slots = nullptr;            // localsplus of the root frame, then its value stack
  void* session = nullptr;                // bridge::Session*, null without tensors
  void** storage_data = nullptr;
  const int64_t* symbols = nullptr;       // values of the trace's symbols
  const volatile int* eval_breaker = nullptr;
  uint64_t iterations = 0;                // complete ones of this run
  int64_t exit_inst = -1;                 // the instruction that left
  void* owner = nullptr;                  // runtime::CompiledTrace*
  void* stretches = nullptr;              // runtime::Stretches*, null where nothing is queued
  const int32_t* watched = nullptr;       // of the session: not 0 while a profiler of torch's listens
  base::profile::Clock* clock = nullptr;  // the thread's, while a profile is made
  int32_t pending = 0;                    // a stretch is under way: whoever looks at the device ends it

  int64_t* values() { return reinterpret_cast<int64_t*>(this + 1); }
};

// Why generated code came back.
enum class ExitKind : int32_t { kGuard, kError, kBreak, kLeave };

// Entry of a compiled trace.
using TraceEntry = ExitKind (*)(Activation*);

}  // namespace dynvm::codegen
