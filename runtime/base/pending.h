// Work that a running trace has put off and that everybody else must find done.
//
// A trace may queue the tensor work of a stretch to launch it as one CUDA graph (runtime/exec/stretches.h). Nobody can see that while only the trace runs. The evaluator
// calls `finish_pending` before it runs a frame that C code has entered: a finalizer, a property, a callback.
// Invariants: the GIL is held; null while nothing is put off.
#pragma once

namespace dynvm::base {

inline void (*finish_pending)() = nullptr;

}  // namespace dynvm::base
