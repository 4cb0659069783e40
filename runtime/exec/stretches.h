// CUDA graphs for the stretches of a trace that need nothing of the host.
//
// A trace's calls and kernels on a GPU stand in one line. A stretch is a part of it that nobody looks into: no number is read, no other call runs that could see the device or its
// memory. At first a stretch's work is launched as it comes (watching). When that has gone well a few times, it is queued while the trace's host work goes on, and at the
// stretch's end launched as one graph, captured from the same calls:
//
//     watch ──pointers are few, or of inputs that can be copied──► queue ──► graph for these pointers? launch it : capture one : launch one by one
//
// Where an earlier activation or process has found out where stretches end and what moves (StretchFindings), watching once is enough.
//
// Pointers. A library's launches cannot be changed once they are captured, so a graph (a Variant) is for certain addresses of the memory that calls work on. Our own kernels are
// given their pointers and numbers anew, where they differ: scalars, and sizes that are symbols. An input whose address changes in each iteration, and which only is read, is copied to memory of its own in
// front of the graph (staged). Other memory that lies elsewhere each time sets the calls on it apart. Where graphs fit too seldom, the stretch goes back to single launches for good.
//
// Memory. What is allocated while capturing comes from a pool that all graphs launched on a stream share, one after the other, so nothing there is alive when a graph ends: results of
// calls that have no planned memory are copied out of it behind the stretch's last operation on them, if somebody needs them later, to memory from torch's allocator, got when the graph is
// launched and given back as ever (left). Lent storages (ir/plan.h) that live within the stretch are in the pool, the others come from torch's allocator. So are the arena's: it is arranged anew (settle)
// for those alone that live across stretches, or are small, many and of single launches, and where there are none a trace has no arena. Graphs that have not fitted for long go, and so do all graphs
// of a trace that has not run for long. What is allocated while work is queued gets the memory of what that work was the last to need, where the sizes are equal (inherit): eager would have
// given that back by then.
//
// Order. Where a stretch's memory lies depends on those before it: what they allocate is less as graphs than without them. So one is captured only where
// all before it, in the same iteration, were launched as graphs (or never are): from front to back, mostly within one iteration.
//
// What has a size of symbols is no memory of a graph's: it is allocated before what is queued needs it, and library calls that see such sizes are in no stretch.
//
// Where stretches end is found while running: whoever may look (see `barrier`) ends the stretch that is under way, and from then on it is two. So does a number that was read not
// long before: the device has nothing to do then, and what is queued would keep it waiting (long_enough). So does memory that the launch would free (holds_much). An exit does what was queued
// one by one. The evaluator does too, before any frame that C code enters (runtime/base/pending.h).
//
// Inputs: a trace's program, its calls and kernels. Outputs: work on torch's current stream, in the order of the trace.
// Invariants: the GIL is held; used by one run at a time. Work is queued only between a stretch's first and last operation. A function that returns -1 has set a
// Python exception. A failed capture loses no work: it is done one by one, and the report has a note.
// Tests: tests/cuda/test_whole.py (on a machine with a GPU).
#pragma once

#include <Python.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "codegen/cuda/graph.h"
#include "codegen/cuda/kernel.h"
#include "runtime/bridge/bridge.h"

namespace dynvm::runtime {

// What running has shown of a trace's stretches: another activation, or another process (tracer/trace_cache.h), need not find it out again.
struct StretchFindings {
  std::vector<int32_t> begins;                          // operations with which stretches begin, in order, without the first one's
  std::vector<int32_t> single;                          // of these and 0: what is launched one by one
  struct Staged {
    int32_t begin, storage;                             // a stretch's, an input's
    auto operator<=>(const Staged&) const = default;
    template <class A>
    friend void fields(A& a, Staged& x) { a(x.begin, x.storage); }
  };
  std::vector<Staged> staged;
  int version = 0;                                      // counts what this process has found; 0: nothing is known
  // Of a trace that has so many operations?
  bool fits(size_t operations) const;
  template <class A>
  friend void fields(A& a, StretchFindings& x) { a(x.begins, x.single, x.staged); }
};

// What a trace does on GPUs, in its order: the same for all its activations.
struct StretchPlan {
  struct Operation {
    const codegen::cuda::CudaKernel* kernel = nullptr;  // or
    int32_t call = -1;
    bridge::CallFacts facts;                            // of a call
    std::vector<int32_t> takes;                         // storages, lent or of the arena, whose memory it is the first to need
    std::vector<int32_t> drops;                         // storages that it, or what follows before the next one, is the last to need
    size_t own_drops = 0;                               // of these the first so many: it is itself
    const std::vector<int32_t>& touches() const { return kernel != nullptr ? kernel->storages() : facts.touches; }
  };
  std::vector<Operation> operations;
  std::vector<int32_t> taken_by, dropped_by;            // by storage: the operation that takes it, that drops it; -1 none
  std::vector<ir::Piece> arena;                         // by storage: its piece of the arena, where it has one (bytes); empty: the arena stays as it is
  std::vector<bool> leaves;                             // by storage: it need not be in the arena
  std::vector<bool> input;                              // by storage: of kind kInput, so that one which is dropped has been replaced
  std::vector<int32_t> of_call;                         // by call: its operation, -1 none
  std::vector<bool> passive;                            // by call: queues no work
  std::map<const codegen::cuda::CudaKernel*, int32_t> of_kernel;
  bridge::Bridge* bridge = nullptr;
  bridge::Captures* captures = nullptr;
  StretchFindings* findings = nullptr;                  // the trace's, which its activations begin with and add to
};

class Stretches {
 public:
  Stretches(const StretchPlan& plan, bridge::Session* session, int32_t* pending);
  ~Stretches();
  Stretches(const Stretches&) = delete;
  Stretches& operator=(const Stretches&) = delete;

  int call(int32_t number, const int64_t* scalars);
  int launch(const codegen::cuda::CudaKernel* kernel, const int64_t* scalars);
  // Before the operation that works on the storage first; -1: out of memory.
  int allocate(int32_t storage);
  // Somebody may look at the device or at memory: all that came before is launched.
  // once: not each time, as far as is known (a finalizer).
  int barrier(bool once = false);
  // As barrier(): a number is about to be read, so the host waits until the device has done all that it was given.
  int read();
  // Copies of results stand behind the latest operation.
  bool copies_follow() const { return copies_follow_; }
  // Nothing behind the work that was queued so far needs the storage's memory.
  void drop(int32_t storage);
  // The run is over, by an exit or not.
  int end_run();

 private:
  enum class Mode : uint8_t { kWatch, kQueue, kNever };
  struct Node {
    void* node;
    codegen::cuda::Launch launch;  // as the graph has it
    std::vector<bool> fixed;       // by pointer: the graph's own memory
  };
  struct Copy {
    int32_t storage;
    void* node;
    void* to;                      // as the graph has it
    const void* from;
    size_t bytes;
  };
  struct Variant {
    void* stream = nullptr, *side = nullptr;  // what it is launched on, and what it was captured on
    std::vector<void*> pointers;   // of Stretch::storages, null for staged ones
    std::vector<Node> nodes;       // of kernels, in order
    std::vector<Copy> copies;      // of Stretch::left
    void* capture = nullptr;
    std::unique_ptr<codegen::cuda::Graph> graph;
    int64_t latest = 0;            // Stretch::runs, when it fitted last
    int64_t launches = 0;
  };
  struct Stretch {
    int32_t begin = 0, end = 0;    // operations
    Mode mode = Mode::kWatch;
    bool known = false;            // from findings
    bool single = false;           // kNever for what it is, not for what went wrong
    std::vector<int32_t> storages; // that calls work on and that were there before
    std::vector<int32_t> given;    // whose memory its operations bring
    std::vector<std::pair<int32_t, int32_t>> left;  // of these, what lives on: the latest operation here that touches it, and the storage
    std::vector<bool> stageable, staged;  // by place in storages
    std::vector<void*> stages;     // kept memory for staged ones
    std::vector<std::vector<void*>> seen;  // pointers of the latest runs
    int hits = 0, misses = 0, captures = 0;
    int64_t runs = 0;              // that were queued
    std::vector<Variant> variants;
  };

  int device(int32_t operation) const;
  int raise_failed();
  bool long_enough() const;
  bool ends_known() const;
  bool holds_much() const;
  bool may_cut(int32_t at);
  int arrive(int32_t operation, const int64_t* scalars);
  int run(int32_t operation);
  int take(int32_t operation);
  int take_strays(int32_t operation);
  bool inherit(int32_t storage, int32_t before);
  int settle();
  void begin_as_found();
  void note_findings();
  bool in_arena(int32_t storage) const { return !plan_.arena.empty() && plan_.arena[static_cast<size_t>(storage)].bytes > 0; }
  void drop_given(int32_t operation, const std::vector<int32_t>& given, bool last);
  void drop_now();
  int run_queued();
  int complete(size_t number);
  void plan(Stretch& stretch);
  void note_interruption(int32_t at);
  bool interrupted_each_time(int32_t at) const;
  bool waits_for(int32_t storage) const;
  void split(size_t number, int32_t at);
  void inherit_seen(Stretch& part, const std::vector<int32_t>& storages, const std::vector<std::vector<void*>>& seen) const;
  void watch(size_t number);
  void set_apart(int32_t operation, const char* why);
  void set_apart_on(int32_t begin, int32_t end, const std::vector<int32_t>& moving);
  int64_t bytes(int32_t storage) const;
  int64_t pool_bytes(const Stretch& stretch) const;
  int32_t unsized(const Stretch& stretch) const;
  bool dropped_within(int32_t storage, const Stretch& stretch) const;
  std::vector<void*> pointers(const Stretch& stretch) const;
  Variant* find(Stretch& stretch, const std::vector<void*>& now, void* stream);
  bool capture(Stretch& stretch, const std::vector<void*>& now, void* stream);
  bool copy_out(int device, int32_t storage, void* outside, Variant* variant);
  bool replay(Stretch& stretch, Variant& variant);
  bool differs(const codegen::cuda::CudaKernel& kernel, const Node& known, const int64_t* numbers, void* side, codegen::cuda::Launch* changed) const;
  void drop(Variant& variant);
  void drop_graphs(Stretch& stretch);
  void clear(Stretch& stretch);
  void forget(Stretch& stretch, const std::function<bool(const Variant&)>& unused);
  void give_up(Stretch& stretch, const char* why, bool single = false);
  void note_pending(bool is);
  static void forget_idle();
  void keep_failure();
  static void finish_all();

  const StretchPlan& plan_;
  bridge::Session* session_;
  int32_t* pending_;                    // Activation::pending: a stretch is under way
  std::vector<Stretch> stretches_;
  std::vector<int32_t> of_operation_;   // its stretch
  struct Interruptions {
    int64_t latest = -1;                // in runs_
    int in_turn = 0;                    // in how many runs, one after the other
  };
  std::vector<Interruptions> interruptions_;  // by operation: barriers in front of it that may not come again
  int64_t runs_ = 0;                    // that have begun
  std::vector<bool> apart_;             // by storage: it has left the arena
  bool unsettled_ = true;               // that may not be what stretches want
  bool unfound_ = false;                // nor may the findings be what they are
  std::vector<bool> whole_;             // by operation: a stretch is not cut in front of it
  int32_t current_ = -1, next_ = 0;     // the stretch that is under way, and its next operation
  bool queueing_ = false, copies_follow_ = false;
  int32_t latest_ = -1;                 // operation that came last
  bool settled_ = true;                 // all stretches before it, in this iteration, were launched as graphs or never are
  int64_t ahead_ = 0;                   // operations that the device had been given when the stretch began, since it was last waited for
  std::vector<std::pair<int32_t, size_t>> queued_;  // operation, its numbers' place
  std::vector<int64_t> numbers_;
  struct Dropped {
    size_t behind;                      // so many operations that were queued
    int32_t storage;
  };
  std::vector<Dropped> dropped_;        // while work was queued
  int64_t replaced_ = 0;                // bytes of inputs among them
  std::vector<void*> passing_;          // by place in the stretch's storages: where one lay that was dropped since the stretch began
  PyThreadState* thread_ = nullptr;     // whose run it is
  bool running_ = false;                // a run has begun and is not over
  int64_t used_ = 0;                    // when a stretch was last done, in a count of all
  PyObject *failed_type_ = nullptr, *failed_value_ = nullptr, *failed_traceback_ = nullptr;  // of work done where nothing could be raised
};

}  // namespace dynvm::runtime
