// DYNVM_STRESS=check: an oracle inside the run. What a trace leaves is compared with what the interpreter leaves.
//
// A checked run of a trace is bounded to a few iterations, and happens among four processes that begin as one, so that
// each has the same objects at the same addresses:
//
//     the script's   fork ──────────── runs the trace, leaves it ──── says where ──── fork ─────── waits ──► goes on, or ends with status 97
//     interpreted         └─ waits ────────────────────────────────────► runs there ──────► describes ─┐
//     interpreted again       (a second one, asked only where there is a difference)                   ├► shared memory
//     described                                                                    └─ describes what the trace left, compares
//
// The interpreted process runs the same activation from the same state, on plain code, each instruction seen by a hook
// of its own, up to the place where the trace was left: the same position in the same frames, after as many arrivals at
// the loop's header. Where a place is passed several times within an iteration, each time is compared and the best one
// counts. Where the trace had done a part of the instruction that comes there, it does that part first. What it does to the outside does not happen (check_child.h), and what cannot be kept inside, as talking to
// another process, ends it: the check counts as skipped then, with the reason.
// What two interpreted runs do not agree in, as what a clock says, where new objects lie or what memory holds that
// nobody has written, the iteration does not determine; so no list of such things is needed. All descriptions and
// comparisons are made by python/dynvm/check in processes that end afterwards: what is observed is not changed.
//
// Which runs are checked: the first ones of each trace, then ever fewer (`runs` and `exits` of stress.def); not while
// there are several threads, or tensors on GPUs.
// Inputs: the manager's runs. Outputs: the report's `checks`, a message for each difference. Invariants: without the
// option nothing here runs; the script's process only forks and waits.
// Tests: tests/check.
#pragma once

#include <Python.h>

#include <string>
#include <string_view>

#include "runtime/bridge/bridge.h"
#include "tracer/exits.h"
#include "tracer/loop_state.h"
#include "vm/vm.h"

namespace dynvm::tracer::check {

// Is it asked for?
bool on();

// run_and_leave, checked if it is this run's turn. The kind of the result is kInterpreted in the process that is to be
// interpreted from here on.
LeaveResult run(vm::ThreadView& view, const LoopState& loop, _PyInterpreterFrame* root, LoopTrace& trace,
                bridge::Bridge* bridge);

}  // namespace dynvm::tracer::check
