// Runs a trace and, when it leaves, makes the interpreter's state what the exit's snapshot says.
#pragma once

#include <Python.h>

#include "tracer/compile.h"
#include "vm/vm.h"

namespace dynvm::tracer {

struct LeaveResult {
  enum Kind {
    kNotEntered,  // an entry guard failed: the state is the loop header's
    kBreak,       // the eval breaker is set: the state is the loop header's
    kLeft,        // frames rebuilt: go on at view.ip
    kRaised,      // frames rebuilt; an exception is set: unwind at view.ip
  } kind = kNotEntered;
  ir::Ref inst = ir::kNoRef;
  uint64_t iterations = 0;
};

LeaveResult run_and_leave(vm::ThreadView& view, LoopTrace& trace);

}  // namespace dynvm::tracer
