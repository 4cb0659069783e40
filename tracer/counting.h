// Tensor operations of an iteration of a loop, or of a call of a function: is there anything to record? They are counted while the interpreter runs it.
#pragma once

#include <cstdint>

#include "runtime/bridge/bridge.h"
#include "tracer/loop_state.h"

namespace dynvm::tracer {

// in_traces: the operations that traces of inner loops have run so far. An iteration in which others begin and end is counted to its end.
void begin_counting(LoopState& loop, bridge::Bridge& bridge, uint64_t in_traces);

// Sets loop.ops, loop.tensors, loop.whole and loop.trains.
void end_counting(LoopState& loop, bridge::Bridge& bridge, uint64_t in_traces);

}  // namespace dynvm::tracer
