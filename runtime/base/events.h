// Events for those who asked for them while the script runs (dynvm.on): the log's, with what they are about as fields.
//
// Purpose: what --log prints goes into a queue, which main/ empties into Python where no trace runs and nothing is recorded.
// Inputs: publish(), from DYNVM_LOG and DYNVM_EVENT (log.h), on any thread. Outputs: take_events().
// Invariants: a category that nobody asked for costs one load and test. The queue is bounded: the oldest events go, and the next that is taken says how
//   many there were. Nothing here needs the GIL.
// Tests: tests/base/events_test.cpp, tests/inspect/test_events.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace dynvm::base {

enum class LogCategory : uint8_t {
#define X(enumerator, name, text) enumerator,
#include "runtime/base/log_categories.def"
#undef X
};

// What an event is about; what is not set is not in it.
struct EventFields {
  const char* what = nullptr;  // "recording", "compiled", "dropped" ...
  int trace = 0;               // its id
  std::string file;
  int line = 0;
  std::string reason;          // an abort's name, a guard's operation
  std::string detail;
  uint64_t times = 0;
  double ms = 0;
};

namespace detail {
inline uint32_t observed_categories = 0;  // bits
}

inline bool is_observed(LogCategory category) { return (__atomic_load_n(&detail::observed_categories, __ATOMIC_RELAXED) >> static_cast<unsigned>(category)) & 1; }

// From now on these categories are queued: their names, separated by commas; "" for none.
Status observe(std::string_view names);

void publish(LogCategory category, const EventFields& fields, const std::string& text);

bool has_events();
// The queue as a JSON list of {"event": "exit", "text": "...", "time": seconds of the monotonic clock, fields that are set ...}; empty afterwards.
std::string take_events();

// Called after each publish, on its thread: arranges for the queue to be emptied. Set once.
void on_publish(void (*wake)());
// Calls that if there are events.
void wake_for_events();

}  // namespace dynvm::base
