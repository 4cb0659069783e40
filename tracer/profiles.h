// What the tracer tells a profile (runtime/base/profile.h): recordings, what a trace looks like at each stage, where and why traces are left.
//
// Inputs: code objects, traces. Outputs: entries of base::profile::data(). Invariants: the GIL is held; nothing is done without a profile. Code
// objects that it names are kept for good, so a pointer stands for one.
// Tests: tests/profile.
#pragma once

#include <Python.h>

#include <string>

#include "ir/trace.h"
#include "runtime/base/profile.h"
#include "runtime/exec/compiled_trace.h"
#include "vm/vm.h"

namespace dynvm::tracer {

struct LoopTrace;

namespace profiles {

base::profile::Place place_of(PyCodeObject* code, int unit);

// A recording, from the first instruction on. What became of it: "kept" with the trace's id, or why it was given up.
void recording_begins(PyCodeObject* code, int unit, bool side);
void recording_ends();
void recording_became(const std::string& result, const std::string& detail, int trace = 0);

// The trace as it is at some stage. `data` is not in the profile's list yet: a trace that cannot be compiled never is.
void add_stage(base::profile::TraceData& data, const std::string& name, const ir::Trace& trace);
// Before its code is made: room for its meters. The entry in the profile's list, with what `stages` (may be null) has, which is taken.
base::profile::TraceData& add_trace(base::profile::TraceData* stages, const ir::Trace& trace, PyCodeObject* code, int unit);
// It could not be compiled; the newest one.
void forget(base::profile::TraceData& data);
// Behind it: its instructions, kernels and machine code.
void describe(base::profile::TraceData& data, const runtime::CompiledTrace& compiled, PyCodeObject* root);

// A run has left through a guard or an error; before the state is taken. at_entry: it never began.
void exit_taken(LoopTrace& trace, const runtime::RunResult& run, bool at_entry);
// Where it goes on from there: the next trace that is entered in the same place, with nothing interpreted in between, is linked to.
void left_to(const vm::ThreadView& view);
void entered(const vm::ThreadView& view, const LoopTrace& trace);
void interpreting();

}  // namespace profiles

}  // namespace dynvm::tracer
