// The forked processes of a check (check.h): what they have in common with the script's, and what they do.
//
// Inputs: a state of the evaluator; shared memory. Outputs: descriptions and a verdict there. Invariants: nothing that
// they do is seen outside: their files are copies, what they write to pipes and terminals goes nowhere, and a system
// call that would reach another process or change a folder ends them. Tests: tests/check.
#pragma once

#include <Python.h>
#include <semaphore.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/bridge/bridge.h"
#include "tracer/side.h"
#include "vm/vm.h"

namespace dynvm::tracer::check {

constexpr size_t kMostFrames = 64;
constexpr size_t kRegion = size_t{1} << 30;  // of address space, for descriptions
constexpr int kPatience = 60;                // seconds

// Where the interpreted run is to stop.
struct Stop {
  Position place[kMostFrames];
  size_t depth = 0;
  uint64_t from = 0, to = 0;  // arrivals at the loop's header: from so many on, up to so many
  bool returns = false;       // the root frame is about to: its variables are nobody's any more
  bool raised = false;        // where an exception is raised there
  int given = 0;              // so deep on the stack is given_by_next, in the place of next; 0: it is not
  int taken = 0;              // so deep on the stack is a tuple that the instruction takes apart; 0: none
  size_t most = 0;            // items that it takes of a generator at most; 0: all
  bool truth = false;         // a bool is on top of the stack, of which the instruction needs no more than its truth
};

// What an interpreted process has come to.
enum class Came : int { kNone, kDescribed, kOver, kSkipped };
enum class Verdict : int { kNone, kSame, kUndetermined, kDifferent, kSkipped };

struct Control {
  sem_t told[2];  // to the interpreted processes, the second one's too: `stop` is there
  sem_t come;     // from them: `came` is there
  sem_t next;     // to them: go on
  Stop stop;
  Came came = Came::kNone;
  size_t size = 0;     // of the description
  const char* coarsest = nullptr;  // the name of the coarsest floating-point type that the trace computes in; null: none that is coarser than float32
  char why[512] = {};  // kOver, kSkipped
  bool inside = false; // kOver: C has called the function that a frame of the place is of, from the instruction that calls it there
  pid_t interpreted = 0;
  Verdict verdict = Verdict::kNone;
  int visits = 0;
  size_t undetermined = 0;  // entries that two interpreted runs did not agree in
  char first[512] = {};     // path of the first difference
  char text[16384] = {};
};

// Where the frames are. Whether a result is pushed or replaces what stands there is the caller's way to make room for
// it: that is left out here, and of the stacks.
Place checked_place(const std::vector<LiveFrame>& frames);

// The memory that all processes of a check share: Control, then the description. Null where there is none to be had.
Control* control();
// Makes it as it was at first.
void begin_check();
char* description();

// The functions of python/dynvm/check, loaded in the script's process before it forks. False: *why.
bool load_python(std::string* why);

// In the process that is to be interpreted: waits until it is told where to stop, then prepares the activation; the
// caller goes back to the evaluator. It never returns from there.
void begin_interpreted(vm::ThreadView& view, _PyInterpreterFrame* root, int unit, bool function,
                       bridge::Bridge* bridge);

// In the process that describes what the trace has left: compares, writes the verdict, ends. raised: an exception is
// set.
[[noreturn]] void judge(vm::ThreadView& view, _PyInterpreterFrame* root, bool raised);

}  // namespace dynvm::tracer::check
