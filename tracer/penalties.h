// What recordings that lead nowhere cost: their loop, or the place of a side trace, waits, twice as long each time. What teaches the next recording something is no failure.
//
// Inputs: a loop's state, why a recording was given up. Outputs: the loop's waits and counts; events and counts of the report. Invariant: the first few times cost nothing.
// Tests: tests/traces.
#pragma once

#include <string>
#include <utility>

#include "runtime/base/events.h"
#include "tracer/loop_state.h"

namespace dynvm::tracer {

// What the recordings of all loops have taken, and when the first of them began.
struct ProcessRecordings {
  double first_ms = -1, ms = 0;
};
ProcessRecordings& process_recordings();

// When it ends, with all that was made of a recording: what that has taken counts (within_budget, decisions.h).
struct Spent {
  explicit Spent(LoopState& recorded) : loop(recorded) {
    if (process_recordings().first_ms < 0) process_recordings().first_ms = loop.recorded_ms;
  }
  ~Spent() {
    const double ms = base::ms_since_start() - loop.recorded_ms;
    loop.recording_ms += ms;
    process_recordings().ms += ms;
    loop.costliest_ms = std::max(loop.costliest_ms, ms);
  }
  Spent(const Spent&) = delete;
  Spent& operator=(const Spent&) = delete;
  LoopState& loop;
};

// What a trace assumed has ended, or changed, the `times`th time: recording there waits, but for the first `few`, and each time twice as long.
void wait_after(int& times, int few, int& waits);
void wait_longer(LoopState& loop);

// What a trace's event is about: its loop's header.
base::EventFields about(const LoopState& loop, int trace, const char* what);

// `place`: where it was given up; "" where only the loop is known.
void note_abort(const LoopState& loop, Abort reason, const std::string& detail, const std::pair<std::string, int>& place);

bool is_lesson(Abort reason);

// A recording was given up: its loop or, with a side trace, its place waits. What the next recording does otherwise is a lesson, not a failure.
void penalise(LoopState& loop, SidePoint* side, Abort reason, const std::string& detail, const std::pair<std::string, int>& place = {});

// No trace could be entered: may another be recorded? A limit on their number does not mean that all else is interpreted from then on. After a
// while, longer each time, the trace that was not used for longest gives way: what it was for may be over.
bool make_room(LoopState& loop, SidePoint* side);

}  // namespace dynvm::tracer
