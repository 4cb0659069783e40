// Runs a trace and, when it leaves, makes the interpreter's state what the exit's snapshot says.
#pragma once

#include <Python.h>

#include <string>

#include "tracer/compile.h"
#include "vm/vm.h"

namespace dynvm::tracer {

struct LeaveResult {
  enum Kind {
    kNotEntered,  // an entry guard failed: the state is the loop header's
    kBreak,       // the eval breaker is set: the state is the loop header's
    kLeft,        // frames rebuilt: go on at view.ip
    kRaised,      // frames rebuilt; an exception is set: unwind at view.ip
    kInterpreted, // it has not run: this process is to be interpreted from here on (check.h)
  } kind = kNotEntered;
  ir::Ref inst = ir::kNoRef;
  uint64_t iterations = 0;
  bool at_end = false;  // kLeft: at the trace's own end, not through a guard
  std::string failure, operation;  // kLeft, kNotEntered, not empty: an operation failed, and the interpreter is to try again (failures.h)
};

// Of this thread, one inside of a residual call of the other.
int running_traces();

// `root`: the frame of the trace's loop, view.frame or one that it was called from; a root trace runs with view.frame == root only.
// rounds: complete runs of the trace after which it is left at the loop's header; 0: no limit.
LeaveResult run_and_leave(vm::ThreadView& view, _PyInterpreterFrame* root, LoopTrace& trace, uint64_t rounds = 0);

}  // namespace dynvm::tracer
