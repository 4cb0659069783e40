// What the tracer decides about loops and places: are they hot, is another loop better, was it the wrong way. By the table's numbers, or by a policy.
//
// Invariants: nothing here changes what is recorded or run, only when. A policy is not asked while a place waits after a recording was given up, nor
//   beyond the limits on the number of traces.
// Tests: tests/traces, tests/lab/test_policy.py.
#pragma once

#include <set>

#include "ir/trace.h"
#include "runtime/exec/compiled_trace.h"
#include "tracer/loop_state.h"
#include "vm/vm.h"

namespace dynvm::tracer {

// Iterations or calls from which the loop is hot.
int threshold(const LoopState& loop);

// Has recording this loop not cost more yet than it may? With --hot it always may.
bool within_budget(const LoopState& loop);

// Should an inner loop wait for a loop around it, in its own frame or a calling one, or for a function that C calls? Never for a function.
bool outer_loop_first(vm::ThreadView& view, const LoopState& loop);

// Has a loop around this one, in its frame or a calling one, arrived at its header since this one's last arrival, and may it get a trace with all of this in it?
// This is another run of the loop then; sets loop.dominates by the last one.
bool begins_anew(vm::ThreadView& view, LoopState& loop);

// The first round of a run may do other things than those that follow, as what is filled or made in it is there from then on. A loop with traces none of which fits here is recorded
// in a later round, until first rounds have come here often.
bool waits_for_next_round(vm::ThreadView& view, LoopState& loop);

// Has a loop gone round for less than so many times what it costs to record so many instructions?
bool too_early(uint64_t insts, double times, const GoneRound& outer);

// Does it run long in a trace of its own, or would it take a large part of what a recording may have, so that an outer trace should not unroll it?
// A step that trains gains nothing in there, so fewer iterations count as long; so does one without a graph that is most of what the outer loop does, where both are one frame's (not in_caller).
// Nor should one of which the recording would take longer than the outer loop has gained by then. outer: of that loop.
bool runs_long(const LoopState& loop, bool in_caller, const GoneRound& outer);
// Headers of the code's loops that do.
std::set<int> long_loops(PyCodeObject* code, bool in_caller, const GoneRound& outer);

// A recording from this place comes to an inner loop with a trace that runs long, and is given up.
void gave_way_to(Around& place, const LoopState& outer, const LoopState& inner);
// At each arrival there: has each since run that trace? Another recording would end there too, and take an iteration, unless a policy unrolls the inner loop.
bool would_give_way(Around& place, const GoneRound& outer);

// The innermost loop around this one, in its own frame or a calling one, that has gone round so often there; null: there is none.
const LoopState* loop_around(vm::ThreadView& view, const LoopState& loop, int rounds);

// A function that nothing in this activation could be recorded around: C has called it, or coroutines and generators have.
bool is_root_call(const vm::ThreadView& view);

// A call that is not looked at, nor so many that counter.count says: of a function that runs whatever it is given, as a decorator's does, and leaves that to what it runs; one of the first; one inside of an
// iteration that is the interpreter's. inner: Python code calls it.
bool call_passes(vm::ThreadView& view, vm::HotCounter& counter, bool inner);
// Such a function is called again and again although loops go round around it: they cannot be recorded with it, or it stands on a way of theirs that no trace has. It is recorded by itself, the outermost
// one first, once its calls have run so much since that waiting longer would be a loss. Calls that are to pass until it is asked again; 0: it is time.
int calls_to_wait(vm::ThreadView& view, LoopState& loop);
// Have its traces run most of its operations of late?
bool calls_pay(LoopState& loop);

// Is it to be recorded, or, as long as nobody has `counted` its tensor operations, are these to be counted in the next iteration? Without a policy
// outer_loop_first() is still to be asked.
bool is_hot(vm::ThreadView& view, const LoopState& loop, bool counted);

// Have ways through this call of the loop's frame parted often, each with a long side trace for all that follows? Then the interpreter goes on to the call's end, where
// they meet. note_parted: one more begins here.
bool meets_behind(const LoopState& loop, const std::vector<LiveFrame>& frames);
void note_parted(LoopState& loop, const std::vector<LiveFrame>& frames);

// Is a side trace to be recorded at view.ip? main_path: the loop's way always comes here.
bool is_hot(vm::ThreadView& view, const LoopState& loop, const SidePoint& side, bool main_path);

// Was a root trace recorded in a rare iteration, so that nearly each run of it leaves by the same guard? A side trace then ends at the header, and all
// that the iteration has made is made for good, only to come back here.
bool went_wrong_way(LoopState& loop, const runtime::CompiledTrace& trace, ir::Ref guard);

}  // namespace dynvm::tracer
