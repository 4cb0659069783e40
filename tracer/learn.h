// What a failed guard says about the assumptions that its trace was recorded under (Lessons, recorder.h).
#pragma once

#include <Python.h>

#include <unordered_set>

#include "ir/trace.h"
#include "tracer/compile.h"
#include "tracer/loop_state.h"
#include "vm/vm.h"

namespace dynvm::tracer {

enum class Learned : uint8_t {
  kNothing,
  kRenewed, // nothing: what the trace assumes is so, and the guard knows it now
  kLesson,  // the loop's next recording does without an assumption of this one
  kOver,    // what the trace assumes can never be so again: a type's or a function's version, which only grow
};

// What stands at the site is not to be assumed any more. True: that is new.
bool note_changing(Lessons& lessons, const Site& site);

// at_entry: nothing of the trace has run. view.frame is the frame that was returned to.
Learned learn(vm::ThreadView& view, LoopState& loop, LoopTrace& trace, ir::Ref inst_ref, bool at_entry);

// For a recording that begins at view in a loop of `root`: the objects that end with this call of root's function, which a loop around it makes again and again, so that it would be another
// object next time. None where no such loop is known. To compare only.
std::unordered_set<PyObject*> ending_with_call(const vm::ThreadView& view, const _PyInterpreterFrame* root);

// The trace could not be entered because of a variable: the others that would have refused it are learned from too, or each would cost a recording.
void learn_from_slots(vm::ThreadView& view, LoopState& loop, const LoopTrace& trace);

// Drops the traces of all loops that compare with objects which only traces refer to any more: no value can be one of these, and they would live as long as the traces. Their loops learn of it.
void forget_the_dead();

// The trace was left where an operation's data, or a number of Python's, decides sizes: is it to be recorded again, with those as numbers or, where that led nowhere, with the
// operation as a call?
bool learn_from_sizes(LoopState& loop, TraceGroup& group, LoopTrace& trace, ir::Ref inst_ref);
// The same of a trace with sizes as numbers, left at a tensor that it comes to in its middle, for a size that has not changed before.
bool learn_from_input(TraceGroup& group, LoopTrace& trace, ir::Ref inst, bridge::Bridge* bridge);

// The trace was left because an input shares memory with another one, or does not. Asked right after the trace. True: it is to be recorded again, with these apart.
bool learn_from_sharing(LoopState& loop, LoopTrace& trace, ir::Ref inst_ref, bridge::Bridge* bridge);

}  // namespace dynvm::tracer
