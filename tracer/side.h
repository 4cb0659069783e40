// Side traces: what they begin with, and where.
//
// A side trace begins where another trace was left, or behind an instruction that no trace can hold: at any instruction of any frame of the
// activation inside the loop. It knows nothing of the trace that was left: the interpreter's frames are complete when it is entered, so
// one side trace serves all exits to its place. It ends at the loop's header.
//
// Its inputs are numbered through all frames, root first: the root frame's slots as in a root trace, then for each inlined frame its function
// and its slots.
// Tests: tests/traces, tests/programs.
#pragma once

#include <Python.h>

#include <compare>
#include <memory>
#include <vector>

#include "tracer/trace_group.h"
#include "vm/vm.h"

namespace dynvm::tracer {

// One live frame of the activation.
struct LiveFrame {
  _PyInterpreterFrame* frame = nullptr;
  const vm::Inst* at = nullptr;          // the calling instruction; the innermost frame's: about to be executed
  vm::Continuation continuation = vm::Continuation::kPush;
  PyObject** sp = nullptr;
};

// Where a side trace begins: the position in each frame. The depth of each stack follows from it.
struct Position {
  PyCodeObject* code = nullptr;
  int unit = 0;
  vm::Continuation continuation = vm::Continuation::kPush;
  auto operator<=>(const Position&) const = default;
};
using Place = std::vector<Position>;

// An inner loop with a trace of its own, at which a place's last recording was given up. As long as each way from there runs that, another one would end there too.
struct Around {
  PyCodeObject* code = nullptr;  // to compare only
  int unit = 0;
  uint64_t runs = 0;             // of its traces, at the latest arrival
  uint64_t counted = 0;          // functions whose operations had been counted by then, which runs no trace
  bool in_caller = false;        // the place is in another frame
};

struct SidePoint {
  TraceGroup group;       // variants
  Crowd crowd;
  bool by_sizes = false;  // traces come here as a tensor has other sizes
  int arrivals = 0;       // that no trace could be entered at
  double lost_ms = 0;     // time from there to the header, in the interpreter
  bool asked = false;     // the trace cache was
  int waits = 0;
  int overs = 0;          // traces dropped because what they assumed had ended
  int failures = 0;       // recordings given up in a row
  Around around;
};

// The frames from `root` to view.frame; empty when root is not in the activation.
std::vector<LiveFrame> live_frames(const vm::ThreadView& view, _PyInterpreterFrame* root);

Place place_of(const std::vector<LiveFrame>& frames);

// Can a trace begin with these frames? They are dropped and pushed again, so nobody may hold them, and their results must go where the
// recorder knows. Frame objects that were made for somebody who has dropped them, as a warning's place does, go with them.
bool can_begin(const std::vector<LiveFrame>& frames);

// The inputs, borrowed.
std::vector<PyObject*> entry_objects(const std::vector<LiveFrame>& frames);

}  // namespace dynvm::tracer
