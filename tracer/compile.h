// From a recording to a trace that runs: passes, storage plan, machine code, the torch program.
#pragma once

#include <Python.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/plan.h"
#include "runtime/base/report.h"
#include "runtime/bridge/bridge.h"
#include "runtime/exec/compiled_trace.h"
#include "tracer/backward.h"
#include "tracer/object_names.h"
#include "tracer/recorder.h"
#include "tracer/sizes.h"

namespace dynvm::tracer {

// A compiled trace with what the tracer keeps beside it.
struct LoopTrace {
  int id = 0;
  std::unique_ptr<runtime::CompiledTrace> compiled;
  base::CodeName name;                 // of its code, for tools
  bool bound = false;                  // it is known:
  const PyObject* globals = nullptr;   // the namespace of its root frame, where it took things of it for constant
  std::vector<Site> sites;
  std::vector<int32_t> ops_before;     // by instruction: eager operations done before it in an iteration
  std::vector<int32_t> inputs;         // metas of the recording's unbox_tensor instructions, in order
  RefusedInput answers;                // made_for_sizes: what it was made for
  std::shared_ptr<GenericTrace> generic;  // the recording with sizes as numbers that it was made from, if there is one
  bool made_for_sizes = false;         // not recorded: made by a GenericTrace
  bool for_all_sizes = false;          // so, with sizes of inputs open: for those that come too seldom for a trace of their own
  bool for_certain_sizes() const { return made_for_sizes && !for_all_sizes; }
  bool complete = false;               // for_all_sizes: it takes no more steps than one for certain sizes, so those are not worth making
  int steps = 0;                       // kernels and operations of the library that an iteration runs
  bool checked = false;                // its kernels are known to be there
  bool awaited = true;                 // at the last arrival they were not, and the loop's variables had the sizes that it is for; or nobody has looked yet
  Abort cut = Abort::kNone;            // why it ends before an instruction that it cannot hold, or before an inner loop
  bool steps_over() const { return cut != Abort::kNone && cut != Abort::k_inner_loop_begins; }  // the interpreter carries that instruction out, and the loop's traces go on behind it
  bool whole = false, trains = false;  // as in Recording
  bool gives_way = false;              // a root trace: another is recorded in its place, and until that is ready it does what it can
  uint64_t used = 0;                   // when it was last, in a count of all uses
  int sharing_exits = 0;               // where inputs shared memory in another way
  uint64_t size_exits = 0;             // where an operation's data decided other sizes
  std::vector<DictUse> uses;           // of dicts whose versions it guards
  int renewals = 0;                    // times that such a guard went on with another version
  int lessons = 0;
  int entry_failures = 0;
  std::map<ir::Ref, int> exit_counts;
  base::TraceReport* entry = nullptr;
  base::profile::TraceData* profile = nullptr;  // while a profile is made
  std::vector<std::shared_ptr<CompiledBackward>> backwards;  // of its graphs' nodes
  std::vector<MadeObject> made;        // as recorded; with `plan` what keeping it on disk needs beside its IR
  std::unique_ptr<ir::Plan> plan;      // until that is done
  std::shared_ptr<const ir::Trace> recorded;  // as it was before the passes; with keep_recorded() alone
  std::string kept_as;                 // on disk: the hash of what stands there
  int findings_kept = 0;               // the version of its CUDA graphs' findings beside it
};

// Null with *reason and *error when it cannot be compiled; the script goes on in the interpreter. keep_parts: for the trace cache.
std::unique_ptr<LoopTrace> compile(Recording recording, bridge::Bridge* bridge, PyCodeObject* code, int unit, const char* kind, Abort* reason,
                                   std::string* error, bool keep_plan = false);

// Whether the traces that are compiled from now on keep what was recorded, for dynvm.traces().
void keep_recorded(bool keep);

// The last step alone: machine code of a trace that passes have been run on. `trace` has what does not follow from the IR; objects: taken over. stages: for
// a profile, how it has come to be.
base::Status assemble(LoopTrace& trace, ir::Trace ir, const ir::Plan& plan, std::vector<PyObject*> objects, bridge::Bridge* bridge, PyCodeObject* code, int unit,
                      const char* kind, base::profile::TraceData* stages = nullptr);

// Kernels are compiled while the script goes on. False: they are not there yet (*waits), or one cannot be compiled: this trace is none then, and later ones have the library's
// operations.
bool check_kernels(LoopTrace& trace, bool* waits);

}  // namespace dynvm::tracer
