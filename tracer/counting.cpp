// See counting.h.
#include "tracer/counting.h"

#include "runtime/base/heuristics.h"
#include "runtime/base/report.h"

namespace dynvm::tracer {
namespace {

// Counting makes each operation slower, so it ends with the loop for which it began. A loop may be left before its iteration ends, though: others that end within it
// so often show that.
const LoopState* outermost = nullptr;  // to compare only
int ended_within = 0;
constexpr int kMostWithin = 1000;

}  // namespace

void begin_counting(LoopState& loop, bridge::Bridge& bridge, uint64_t in_traces) {
  if (outermost == nullptr) {
    outermost = &loop;
    ended_within = 0;
  }
  bridge.set_counting(true);
  loop.probe_start = bridge.ops_counted();
  loop.probe_start_in_traces = in_traces;
}

void end_counting(LoopState& loop, bridge::Bridge& bridge, uint64_t in_traces) {
  if (outermost == &loop || outermost == nullptr || ++ended_within > kMostWithin) {
    outermost = nullptr;
    if (!base::report_wanted()) bridge.set_counting(false);
  }
  loop.ops = static_cast<int64_t>(bridge.ops_counted() - loop.probe_start);
  const auto run_by_traces = static_cast<int64_t>(in_traces - loop.probe_start_in_traces);
  if (run_by_traces <= base::heuristics().around_traces) loop.ops += run_by_traces;
  loop.tensors = loop.ops >= base::heuristics().min_tensor_ops;
}

}  // namespace dynvm::tracer
