// Is a loop faster with traces, or as the interpreter runs it? Measured while the program goes on.
//
// Purpose: traces are to pay. Recordings that lead nowhere, short traces that are left at once, and exits cost time that no count of operations shows, so time is
//   measured where a user would: from one arrival at a loop's header to the next, with all that the iteration calls.
// Method: once a loop has gone round often enough and nothing new has been recorded for a while, blocks of iterations take turns (A B A B): with traces, and without, in which neither
//   this loop nor any loop or function inside of it is looked at. The interpreter has to be faster in most pairs of blocks, or in the median of many; then the loop is left to
//   it, and tried again later, each time after twice as long. Where traces win, trying again costs about a hundredth of what they save.
// Which loop: one that goes round long enough by itself, or around which no other goes round. One loop is on trial at a time.
// Invariants: what a program computes does not depend on this but by the rounding of fused operations. No trials with --hot, a policy, DYNVM_STRESS, or once work goes to a GPU, whose
//   time is not the processor's. `next` and all other counts are of arrivals and iterations (LoopState::iterations). The GIL is held.
// Tests: tests/traces/test_trials.py.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "tracer/clock.h"

struct _PyInterpreterFrame;

namespace dynvm::vm {
struct ThreadView;
}

namespace dynvm::tracer {

struct LoopState;

// What is known of one loop. While it is on trial, `blocks` counts those that are done: even ones have traces.
class Trial {
 public:
  ~Trial() { reset(); }
  void reset();  // nothing is known
  bool is_lost() const { return interpreted_; }

 private:
  friend class Trials;
  bool interpreted_ = false;              // the verdict of the last trial
  int made_ = 0;                          // trials
  uint64_t next_ = 0;                     // iterations from which the next one may begin
  const LoopState* outer_ = nullptr;      // the loop around it when one was last about to begin, to compare only, its iterations, and this one's
  uint64_t outer_iterations_ = 0, asked_ = 0;
  uint64_t quiet_since_ = 0;              // iterations at which something was recorded last, as far as this loop has seen
  uint64_t recorded_ = 0, entered_ = 0;   // what the counts of all recordings and entered traces were at its last arrival
  int active_ = 0;                        // arrivals in a row between which these have changed

  uint64_t begun_ = 0;                    // iterations at which the trial under way began
  bool measuring_ = false;                // the block's first iteration, which the turn may have disturbed, is over
  _PyInterpreterFrame* frame_ = nullptr;  // that the block is measured in
  Clock::time_point since_;
  uint64_t since_iterations_ = 0, since_recorded_ = 0;
  int disturbed_ = 0;                     // blocks in which something was recorded, and that were measured again
  std::vector<double> blocks_;            // milliseconds of an iteration
  Clock::time_point arrived_;             // the last arrival in a block, and its iterations
  uint64_t arrived_iterations_ = 0;
  double slowest_ = 0, fastest_ = 0;      // milliseconds of single iterations: the slowest with traces, the fastest without
};

namespace trials {

// At each arrival at the header of a loop, before anything else is done about it: is this iteration the interpreter's? The loop's arrival has been counted then.
// comes_again: from a trace, so that the interpreter arrives there too.
bool is_interpreted(vm::ThreadView& view, LoopState& loop, bool comes_again = false);
// After that has been said, of a loop inside of that iteration: its arrivals that pass unseen, unless iterations with traces follow.
int arrivals_to_pass(const LoopState& loop);
// At each call of a function that may have traces of its own: is it inside of such an iteration? measured: of a trial under way.
bool is_inside_interpreted(vm::ThreadView& view, bool measured = false);

// A recording was begun, or a trace made; one was entered; one has work for a GPU.
void note_recorded();
void note_entered();
void note_device();

}  // namespace trials
}  // namespace dynvm::tracer
