// The report: what was traced, compiled, left and refused in this process.
//
// Purpose: one process-wide set of counters that every part adds to; written as JSON by --report and as ten lines by
//   --stats when the process ends.
// Inputs: report() and its fields, changed with the GIL held. Outputs: write_report_at_exit's file and lines.
// Invariants: a TraceReport stays where it is once added (generated code may count through pointers into it). Written
//   once, also when the script ends by an exception, sys.exit or Ctrl-C; a forked child writes its own file, FILE.PID
//   before the suffix, and no lines. os._exit writes nothing, as with Python's own atexit.
// Tests: tests/base/base_test.cpp, tests/traces/test_report.py.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dynvm::base {

// One compiled trace.
struct TraceReport {
  int id = 0;
  std::string file;              // of the loop header or function, as its code object says
  int line = 0;
  std::string function;          // qualified name
  std::string kind;              // "loop", "function" or "side"
  int ir_insts = 0;              // after the passes
  int tensor_ops = 0;            // eager ATen operations of one run
  int kernels = 0;               // generated kernels of one run
  int rounds = 1;                // iterations of the loop in one run
  uint64_t runs = 0;             // complete runs
  uint64_t exits = 0;            // side exits taken
  double partial_runs = 0;       // parts of runs that ended in an exit, each by its share of the tensor operations
  double interpreted_ms = 0;     // the fastest iteration in the interpreter that was measured before compiling; 0: not known
  double compiled_ms = 0;        // all runs and exits together; 0: not measured
  std::vector<std::string> operations, kernel_names;  // of the library's calls and of kernels, each name once; only where the report is wanted
};

// A loop, or a function that is traced by itself, that has had a trace. Times: milliseconds since the process began to run dynvm.
struct LoopReport {
  std::string file;
  int line = 0;
  std::string function;
  double began_ms = 0;           // its first arrival
  double settled_ms = 0;         // when the last of its traces was there
  double last_ms = 0;            // its last arrival, or when a trace of it was left for the last time; 0: not measured
  uint64_t iterations = 0;       // begun: in the interpreter, since it has been looked at, and in traces
  uint64_t settled_iterations = 0;  // those until settled_ms
};

// What a policy (policy.h) has decided.
struct PolicyReport {
  uint64_t asked = 0, yes = 0, no = 0;
  uint64_t against = 0;          // answers that are not the usual one
};

// Residual operations of one name.
struct ResidualReport {
  uint64_t calls = 0;
  double ms = 0;
};

struct Report {
  uint64_t tensor_ops_total = 0;     // ATen operations that eager would have run: interpreted and compiled ones
  uint64_t tensor_ops_compiled = 0;  // those of them that ran inside compiled traces
  std::deque<TraceReport> traces;
  std::deque<LoopReport> loops;
  uint64_t side_exits = 0;
  std::map<std::string, uint64_t> aborts;          // reason -> recordings given up
  std::map<std::string, uint64_t> limits;          // limit on the number of traces -> times that one gave way to another
  std::map<std::string, ResidualReport> residual_calls;  // name -> calls compiled into traces as they are
  struct {
    uint64_t codes = 0, runs = 0, bytes = 0, given_up = 0;
  } native;                                        // interpreter's runs of instructions in machine code
  struct {
    uint64_t captured = 0, launches = 0;
  } graphs;                                        // CUDA graphs
  struct {
    uint64_t timed = 0, changed = 0, read = 0;     // kernels; of those timed: that have another shape now; shapes that were found before
    double ms = 0;
  } autotune;
  struct {
    uint64_t mirrored = 0, copied = 0;             // by the kernel that computed it; by a copy of its own
  } reads;                                         // of numbers of tensors on a GPU
  uint64_t handovers = 0;                          // frames given to CPython's evaluator
  struct {
    uint64_t generic = 0, made = 0;                // recordings whose sizes may change; traces made from them without recording
    uint64_t open = 0;                             // traces with sizes that only a run tells
    std::map<std::string, uint64_t> refused;       // why sizes could not change -> times
  } sizes;
  struct {
    uint64_t loaded = 0, kept = 0;                 // traces read from the trace cache; traces written to it
    uint64_t refused = 0;                          // times that one there did not fit (--log=cache says why)
    double read_ms = 0, write_ms = 0;
    std::map<std::string, uint64_t> not_kept;      // why a trace was not written -> times
  } cache;
  struct {
    uint64_t made = 0;                             // times that a loop was measured with traces and without
    std::map<std::string, double> slower;          // "FILE:LINE" of those that are left to the interpreter -> their time with traces, as a part of its time
  } trials;
  std::map<std::string, PolicyReport> policy;      // decision -> answers
  std::map<std::string, uint64_t> switches;        // of --disable and --safe -> times that something was left out
  struct {
    uint64_t again = 0;                            // operations of traces that failed, and that the interpreter was left to try again
    std::map<std::string, uint64_t> own;           // those of them that did not fail there: "FILE:LINE: message" -> times
  } failures;
  uint64_t recordings = 0;
  double record_ms = 0;
  double compile_ms = 0;
  std::map<std::string, std::string> notes;        // anything refused that has no counter: what -> why

  // A new trace with the next id.
  TraceReport& add_trace();
  // Milliseconds saved: for each trace with both times known, what its runs would have taken in the interpreter less what they took.
  [[nodiscard]] double time_saved_ms() const;
  // The JSON text of --report.
  [[nodiscard]] std::string json() const;
  // The ten lines of --stats.
  [[nodiscard]] std::string stats() const;
};

// The process's report.
Report& report();

// The clock of LoopReport.
double ms_since_start();

// Whether Options ask for the report: what is measured for it alone is measured only then.
bool report_wanted();
// Measured from now on, or no longer, though no option asks for it.
void want_counts(bool wanted);

// Calls `fill` just before the report is written or asked for, for counters that are kept elsewhere: it sets them, and may be called again. It
// may not use Python.
void on_report(std::function<void(Report&)> fill);

// report() with all counters as they are now. The GIL is held.
const Report& report_now();

// Arranges for what Options asks for to be written when the process ends. Call once, after the options are parsed.
void write_report_at_exit();

// Writes it now, unless that was done: for ends of a process that run no exit handlers.
void write_report();

}  // namespace dynvm::base
