// Samples of the main thread's Python stack, taken by a thread of its own.
//
// How. The thread wakes up at a fixed interval and reads the frames of the thread that started it, without the GIL and without stopping it:
// what it reads may be gone or half made at that moment. So it reads through /proc/self/mem, where a bad address is an error and no fault, and believes a
// frame only if its code object is one that was decoded since; those are kept alive from then on. Frames' positions are what the evaluator
// has stored before the last instruction that could call something, and for a compiled trace its loop's.
// Inputs: the running interpreter. Outputs: stacks with counts. Invariants: a signal, a pending call or a switch of threads is never caused; a sample that met
// a stack in the middle of a change may lack frames.
// Tests: tests/profile/test_profile.py.
#pragma once

#include <Python.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace dynvm::vm {

struct Samples {
  using Stack = std::vector<std::pair<PyCodeObject*, int>>;  // code and unit; outermost frame first
  std::map<std::pair<int64_t, Stack>, uint64_t> counts;      // with what `tag` said
  uint64_t lost = 0;
};

// Of this thread from now on; the GIL is held. False where the kernel gives no way to read memory so. tag: called by the sampling thread.
bool start_sampler(double interval_ms, int64_t (*tag)());
// Ends it, and gives what it saw.
Samples stop_sampler();

}  // namespace dynvm::vm
