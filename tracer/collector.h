// Python's collector, and the objects that only traces keep alive: what a script asks it to free has to go.
//
// A trace owns what it compares with, a model for instance. Without this one that the script has let go would live as long as its traces, while no guard on it can hold again.
//
// Inputs: calls of gc.collect(), counts of collections. Outputs: traces that are dropped (forget_the_dead, learn.h).
// Method: gc.collect() is another C function in its PyMethodDef, which forgets first: what is freed then is gone when it looks for cycles. A full collection that Python begins by itself
// is noticed by its count, when that is over.
// Invariants: gc.callbacks is the script's own. Nothing is done where a trace runs or something is recorded in this thread: settle() makes up for it.
// Tests: tests/traces/cases/collected.py.
#pragma once

#include "runtime/bridge/bridge.h"

namespace dynvm::tracer {

// Once, when torch is there.
void watch_collector();

// Forgets where a full collection has been since it was last asked, and nothing forbids it.
void notice_collection();

// Frees the traces that groups have dropped (TraceGroup::dropped), and what they own, where neither Python code nor a device minds.
void free_dropped(bridge::Bridge* bridge);

}  // namespace dynvm::tracer
