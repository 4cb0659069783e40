// Tensor operations of an iteration of a loop, or of a call of a function: is there anything to record? They are counted while the interpreter runs it.
#pragma once

#include <cstdint>

#include "runtime/bridge/bridge.h"
#include "tracer/loop_state.h"

namespace dynvm::tracer {

// What traces have run so far that one of a loop around them would have in it.
struct RunByTraces {
  uint64_t loops = 0;      // traces of inner loops, which it would unroll
  uint64_t functions = 0;  // of functions that Python calls: as if the interpreter had run it
};

// An iteration in which others begin and end is counted to its end.
void begin_counting(const vm::ThreadView& view, LoopState& loop, bridge::Bridge& bridge, const RunByTraces& run);

// At each arrival of a loop, this one or another: one may have been left in the iteration that is counted. Then counting ends.
void end_counting_if_left(const vm::ThreadView& view, const LoopState& loop, bridge::Bridge* bridge);

// Functions for which it has begun.
uint64_t counted_functions();

// Sets loop.ops, loop.tensors, loop.whole and loop.trains.
void end_counting(LoopState& loop, bridge::Bridge& bridge, const RunByTraces& run);

}  // namespace dynvm::tracer
