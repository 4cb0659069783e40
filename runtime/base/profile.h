// Profiles: where a process's time goes, by part, trace, instruction and line.
//
// Purpose: `--profile=DIR` (which `dynvm profile` gives) writes DIR/profile.json when the process ends.
// How. Each thread has a Clock on which exactly one Meter runs at any time; a switch adds what has passed to the meter that ran. So
//   meters never count anything twice, and those of the main thread add up to its time. What is interpreted without one of the
//   parts below runs on the thread's first meter; a compiled trace has a meter for itself (guards, numbers) and one for each instruction that
//   calls something; its code switches by itself (codegen/trace/emitter.cpp).
// Inputs: switches, and what the tracer tells of traces, recordings and exits. Outputs: the file; docs/profile.md says what stands in it.
// Invariants: all but switching of the own thread's clock with the GIL held, apart from the sampler, which reads the main thread's running meter. A
//   TraceData stays where it is and is never removed: generated code counts through pointers into it. Without --profile nothing
//   is measured, kept or emitted: each place asks on() once and goes on.
// Tests: tests/profile, tests/base/profile_test.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dynvm::base::profile {

enum class Part : uint8_t {
#define X(enumerator, name, text) enumerator,
#include "runtime/base/profile_parts.def"
#undef X
  kCount
};

// Time, in ticks of the processor's time stamp counter, and how often it was begun. owner: the part's number, or -1 - the trace's id.
struct Meter {
  uint64_t ticks = 0, times = 0;
  int64_t owner = 0;
};

inline uint64_t ticks_now() { return __builtin_ia32_rdtsc(); }

struct Clock {
  Meter* running = nullptr;
  uint64_t since = 0;
  // What runs from now on; returns what ran until now.
  Meter* go_on(Meter* meter) {
    const uint64_t now = ticks_now();
    Meter* before = running;
    before->ticks += now - since;
    since = now;
    running = meter;
    return before;
  }
};

namespace detail {
inline bool is_on = false;
}
inline bool on() { return detail::is_on; }

// This thread's. Its first meter is kInterpreter in the thread that began the profile, else one that is in no part.
Clock& clock();
// The clock of the thread that began; for the sampler.
const Clock& main_clock();
Meter& meter(Part part);

// A meter that runs between begin() and end(), in one thread; what other meters run meanwhile is theirs. Both do nothing without a profile.
class Timing {
 public:
  void begin(Meter* meter);
  void end();

 private:
  Clock* clock_ = nullptr;
  Meter* before_ = nullptr;
  uint64_t began_ = 0;  // where this is all that the profile sees of another thread than the main one
};

// The same from the making to the end of this.
class Timed {
 public:
  explicit Timed(Part part) : Timed(on() ? &meter(part) : nullptr) {}
  explicit Timed(Meter* meter) {
    if (meter != nullptr) timing_.begin(meter);
  }
  ~Timed() { timing_.end(); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Timing timing_;
};

// ---------------------------------------------------------------------------------------------------------------------
// What is known of a trace

// In the data's lists of code objects; unit: of the bytecode instruction.
struct Place {
  int32_t code = -1, unit = 0, line = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

struct CodeData {
  int32_t file = -1;
  std::string name;
  int line = 0;
  struct Inst {
    int32_t unit, line;
    std::string text;
  };
  std::vector<Inst> insts;           // empty until a recording has followed it
};

// What an instruction of a trace is, for the table that its time stands in.
enum class Kind : uint8_t { kInline, kGuard, kKernel, kLibrary, kResidual, kTensor, kEnd };

struct InstData {
  Kind kind = Kind::kInline;
  std::string op, name, text;        // name: of the kernel, the library's operation, the residual call
  int32_t origin = -1;               // in TraceData::places
  int32_t kernel = -1;
  double bytes = 0, flops = 0;       // of a run of a library's operation; 0: not known
};

struct KernelData {
  std::string name, text, device, code;  // code: machine code in hex, or the source for the device
  std::string function;              // what profilers of the device call it
  std::vector<int32_t> origins;      // in TraceData::places
  std::vector<std::string> reads, writes;
  struct Node {
    std::string op;
    std::vector<int32_t> args;
  };
  std::vector<Node> nodes;
  double points = 0, bytes_read = 0, bytes_written = 0, flops = 0;
};

// A text of the trace at some stage, and the place that each of its lines comes from (-1: none); insts: the instruction of each line, likewise.
struct StageData {
  std::string name, text;
  std::vector<int32_t> origins, insts;
};

struct ExitData {
  std::string reason, sentence, what;  // the class of tracer/exit_reasons.def, its words, and the variable or expression that decides
  Place place;
  uint64_t count = 0, at_entry = 0;  // all; those that refused to begin
  std::map<std::string, uint64_t> values;  // that were seen, as text; at most kMaxValues of them
  std::map<int, uint64_t> to;        // traces that went on there -> times
};
inline constexpr size_t kMaxValues = 16;

struct TraceData {
  int id = 0;                        // from 1; the report's
  int number = 0;                    // that logs name it by
  std::string kind, function;
  Place place;
  bool from_cache = false, for_sizes = false;
  uint64_t iterations = 0;
  Meter own, exits, begin;           // guards and numbers; rebuilding of frames at exits; what is done before and after runs
  std::vector<Meter> meters;         // by instruction
  std::vector<Place> places;
  std::vector<int32_t> callers;      // of places: the call that made the frame, in places; -1: none
  std::vector<InstData> insts;
  std::vector<KernelData> kernels;
  std::vector<StageData> stages;
  std::map<int32_t, ExitData> left;  // by instruction
  std::vector<int64_t> symbols;      // values that a run has given the trace's symbols last
  double record_ms = 0, compile_ms = 0;
  int tensor_ops = 0;
};

struct RecordingData {
  Place place;
  bool side = false;
  int trace = 0;                     // that it became; 0: none
  std::string result, sentence, detail;  // "kept", or why it was given up or cut: tracer/aborts.def
  uint64_t begin = 0, end = 0;
};

inline constexpr size_t kMaxEvents = 20000;  // of a kind that may come any number of times; the first ones are kept

// An entry of the timeline.
struct Event {
  enum Kind : uint8_t { kRecord, kCompile, kRun, kGc } kind;
  int trace = 0;
  std::string name;
  uint64_t begin = 0, end = 0, count = 1;
};

// A stack, innermost frame last, that samples met while the part or trace of `owner` (Meter::owner) ran.
struct SampleKey {
  int64_t owner = 0;
  std::vector<Place> frames;
  friend auto operator<=>(const SampleKey&, const SampleKey&) = default;
};

// What GPUs ran, as CUPTI says; without CUPTI, why there is nothing. No device: an empty name.
struct GpuData {
  std::string device, missing;
  double bytes_per_s = 0, flops_per_s = 0;  // nominal
  struct Work {
    std::string name;                // of the kernel, as the driver has it; [copy], [fill]
    uint64_t runs = 0;
    double ms = 0;
  };
  std::vector<Work> works;
  struct Event {
    int32_t work;                    // in works
    int stream;
    uint64_t begin, end;
  };
  std::vector<Event> events;         // the first ones
};

struct Data {
  GpuData gpu;
  std::vector<std::string> files;
  std::vector<CodeData> codes;
  std::deque<TraceData> traces;
  std::deque<RecordingData> recordings;
  std::deque<Event> events;
  std::map<SampleKey, uint64_t> samples;
  double sample_ms = 0;              // between two samples
  uint64_t samples_lost = 0;         // that met no frame which could be read
  std::map<std::string, std::string> program;  // what ran: names of keys and texts
};
Data& data();

int32_t file_number(const std::string& file);

// Adds to the timeline. A run of the trace that ran last, soon after it, is added to its entry; the file stays small.
void add_event(Event::Kind kind, int trace, uint64_t begin, uint64_t end, const std::string& name = {});

// ---------------------------------------------------------------------------------------------------------------------

// Begins, in the thread that will run the script, where the options ask for a profile: kStart runs. Call once, before Python is initialised.
void begin();
// Calls `finish` when the script is over, while all libraries are there.
void on_finish(std::function<void()> finish);
void finish();
// Calls `fill` before the file is written, for what is kept elsewhere. It may not use Python.
void on_write(std::function<void()> fill);
// Writes DIR/profile.json, unless that was done or this is a forked child.
void write();

double ms_of(uint64_t ticks);        // of a duration
double ms_at(uint64_t ticks);        // since the beginning

}  // namespace dynvm::base::profile
