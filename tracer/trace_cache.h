// Compiled traces on disk: a second start enters them at the first arrival, without recording or running passes again.
//
// What is kept is the optimised trace with its memory plan and the names of the objects it takes for constant (object_names.h). Machine code is made
// from it anew, since it is full of this process's addresses: that takes a tenth of what the passes take (docs/ARCHITECTURE.md).
//
//     FOLDER/<environment>/<loop>     environment: builds of dynvm, Python and torch, the processor's features; loop: file, line, function, code unit
//
// A file has all traces of a loop, root and side traces; beside it is one for each trace with CUDA graphs (keep_findings). They are found by the loop's code, and enter only when each of their objects is found and is what
// it was; a trace for which that fails is recorded again as if there were none, and the new one takes its place.
//
// Inputs: --cache, traces that have come to their end once. Outputs: traces. Invariants: nothing read from a file that is damaged, of another build, or that
// others can write; a failure of the file system only means that nothing is kept.
// Tests: tests/traces/test_cache.py.
#pragma once

#include <Python.h>

#include <memory>
#include <string>
#include <vector>

#include "tracer/compile.h"
#include "tracer/side.h"

namespace dynvm::tracer {

class TraceCache {
 public:
  // What the file of one loop has for it: read at its first arrival, tried until it is hot.
  struct Entry {
    std::string place;        // "": the loop's header
    std::string bytes;
    template <class A>
    friend void fields(A& a, Entry& x) { a(x.place, x.bytes); }
  };
  struct Kept {
    std::vector<Entry> entries;
    bool asked = false;       // the file was looked for
    int tries = 0;
    bool may_fit() const { return !asked || !entries.empty(); }
  };

  // Off: nothing is kept, and nobody looks for anything. So it is with a policy, which may answer otherwise next time.
  static bool on();
  // Is there something of this loop on disk? False until a trace of any loop was looked for.
  static bool has(PyCodeObject* code, int unit);
  // The traces of a loop (root: place null) or a side trace's place that fit what is there now; those that do not stay in `kept`, for later. `frame`: the loop's.
  static std::vector<std::unique_ptr<LoopTrace>> find(Kept& kept, const Place* place, _PyInterpreterFrame* frame, PyCodeObject* code, int unit, const char* kind,
                                                      bridge::Bridge* bridge, int* next_id);
  // Keeps a trace (compile() has left trace.plan, which is used up) in place of those that could not be used there; `frame` is about to enter it.
  static void keep(Kept& kept, LoopTrace& trace, const Place* place, _PyInterpreterFrame* frame, PyCodeObject* code, int unit, bridge::Bridge* bridge);
  // Keeps what a trace's runs have shown of its CUDA graphs, where that is new and the trace is kept.
  static void keep_findings(LoopTrace& trace, bridge::Bridge* bridge);
  // A trace whose assumptions were wrong.
  static void forget(const LoopTrace& trace, PyCodeObject* code, int unit, bridge::Bridge* bridge);
};

}  // namespace dynvm::tracer
