// The traces that begin at one place, a loop's header or where a side trace goes on, and what is known of the sizes of tensors there.
//
// Invariants: other threads run traces of the group, and change it, whenever the interpreter may be switched to them; so nobody keeps an
// iterator or an index over a run of a trace or over its compilation.
#pragma once

#include <Python.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/bridge/bridge.h"
#include "tracer/compile.h"
#include "tracer/sizes.h"

namespace dynvm::tracer {

// The input that a trace was left for, if it was for a tensor's sizes or strides alone. Asked right after the trace.
std::optional<RefusedInput> refused_for_sizes(const LoopTrace& trace, ir::Ref inst_ref, bridge::Bridge* bridge);

// The same of a root trace that cannot run yet, as far as its loop's variables and stack say: these are slots.
std::optional<RefusedInput> refused_by_variables(const LoopTrace& trace, PyObject* const* slots, bridge::Bridge* bridge);

// A group that holds as many traces as it may.
struct Crowd {
  int refused = 0;  // arrivals since the last eviction that no trace could be entered at
  int evicted = 0;
};

class TraceGroup {
 public:
  using Trace = std::shared_ptr<LoopTrace>;  // shared: dropped while it runs, it lives until it is left

  const std::vector<Trace>& traces() const { return traces_; }  // the one that was used last is first
  bool empty() const { return traces_.empty(); }
  // Traces of all groups that were dropped. They own objects, whose ends may run code or disturb a device: they wait here until nothing does any harm.
  static std::vector<Trace>& dropped();
  int recorded() const;
  // Lists of the objects that its traces own, and what they are made from.
  void owned(std::vector<const std::vector<PyObject*>*>* lists) const;
  bool holds(const Trace& trace) const { return place_of(trace) < traces_.size(); }
  void add(Trace trace);
  void used(const Trace& trace);
  // What is wrong in one that was made from a recording with sizes as numbers is wrong in all that were made from it.
  void drop(const Trace& trace);

  // Of the recorded traces, the one that was not used for longest: when that was (UINT64_MAX: there is none), and dropping it (not if there is none).
  // The traces that were made from its recording for other sizes stay.
  uint64_t oldest_use() const;
  Trace evict();

  bool sizes_are_numbers() const { return as_numbers_; }  // in the next recording
  // Asks for that; false where it has failed too often.
  bool take_sizes_for_numbers();
  void sizes_failed(const std::string& why);
  // A recording is a sample of its sizes; one whose sizes are numbers becomes one of its own sizes by way of a generic trace: *generic, where others can be made from it. What kept its
  // sizes from changing is learned of. False: *why.
  bool prepare(Recording* recording, bridge::Bridge* bridge, Lessons& lessons, std::shared_ptr<GenericTrace>* generic, std::string* why);
  // These sizes came where a trace wants others. The trace that has been made for them is next after that one, if there is one.
  void refused(const Trace& trace, const RefusedInput& input);
  // Makes a trace for sizes that all of them refused, where a recording with sizes as numbers allows it: first, once for each such recording, the one for all sizes.
  // Where that leaves much to the library, it is tried last, and there are traces for certain sizes too, when they are worth their costs (kLater: not yet).
  enum class Made { kNo, kLater, kYes };
  Made make(const RefusedInput& input, bridge::Bridge* bridge, PyCodeObject* code, int unit, const char* kind, double interpreted_ms);
  // What the interpreter took after kLater for what a trace would have done.
  void interpreted(double ms) { interpreted_ms_ = ms; }

 private:
  size_t place_of(const Trace& trace) const;
  std::vector<Trace>::const_iterator oldest() const;
  bool pays(const RefusedInput& input);
  double saved_ms() const;
  Trace open(bridge::Bridge* bridge, PyCodeObject* code, int unit, const char* kind, double interpreted_ms);
  // From the generic trace's recording; null where it cannot be, which is logged.
  Trace finish(std::shared_ptr<GenericTrace> generic, Recording recording, std::string why, bridge::Bridge* bridge, PyCodeObject* code, int unit, const char* kind, double interpreted_ms);

  std::vector<Trace> traces_;
  bool as_numbers_ = false;
  std::vector<SizeSample> samples_;                      // of recordings
  std::vector<std::shared_ptr<GenericTrace>> generics_;  // one for each way that sizes decide between
  std::set<RefusedInput> answered_;                      // refusals that have been answered with a trace, or could not be
  int failures_ = 0;                                     // times in a row that sizes as numbers led nowhere
  int refusals_left_ = 0;                                // after many: refusals of sizes until that is tried again
  // A trace is made for sizes once what the interpreter has lost on them, about half of its time, is what making the trace costs.
  std::map<RefusedInput, int> seen_;                     // times that sizes came which there is no trace for
  int made_ = 0;                                         // traces for certain sizes
  double cost_ms_ = 0, interpreted_ms_ = 0;              // of the last trace that was made, or more with each that could not be; of the rest of an iteration in the interpreter
  int futile_ = 0;                                       // times in a row that none could be made
};

// The group's new traces, for a loop that runs in this frame. Functions of one code may have other global variables: a trace that has looked at such is for its own.
void bind_namespace(TraceGroup& group, _PyInterpreterFrame* root);

}  // namespace dynvm::tracer
