// Operations of traces that fail: whose error is it?
//
// An operation of a trace that raises may do so because the script's operation does, or because dynvm has made something else of it. Where nothing has been done since the
// snapshot (CompiledTrace::may_do_again), the trace is left by it without an error, and the interpreter carries the instruction out, with the manager looking on (Skip): it raises the
// genuine error again, with the traceback that python has, or it does not, and then the error was dynvm's own: the trace is dropped, and the loop is recorded again with that
// operation as a call. Elsewhere the error is raised, and what is known to be dynvm's own says so in a note.
//
// Invariant: no error that python would not raise is seen where it can be helped; none that python would raise looks different.
// Tests: tests/bisect/test_failures.py.
#pragma once

#include <Python.h>

#include <string>

#include "tracer/compile.h"
#include "tracer/loop_state.h"

namespace dynvm::tracer {

// The exception that is set, as "TypeError: text", which is not set any more. None is set: says so.
std::string take_failure();

// An exception of a trace that goes on to the script: with a note where it is known to be dynvm's own. Where none is set one is.
void note_own_error(const LoopTrace& trace);
// The same of code that records: there was no reason.
void note_missing_error(const char* where);

struct Failed {
  TraceGroup::Trace trace;
  std::string operation, failure;  // which, and with what exception
};

// It has not failed in the interpreter. Wherever the trace is among the loop's, it goes; the next recording has that operation as a call.
void drop_failed(LoopState& loop, const Failed& failed, bridge::Bridge* bridge);

}  // namespace dynvm::tracer
