// See counting.h.
#include "tracer/counting.h"

#include <algorithm>

#include "runtime/base/heuristics.h"
#include "runtime/base/report.h"

namespace dynvm::tracer {
namespace {

// Counting makes each operation slower, so it ends with the loop or function for which it began.
struct Outermost {
  const LoopState* loop = nullptr;     // null: nothing is counted. To compare only, as all here
  const PyThreadState* thread = nullptr;
  _PyInterpreterFrame* frame = nullptr;
  vm::HotCounter body{};               // where it lies in the code, as it was then: the code may die
} outermost;
uint64_t functions_counted = 0;
constexpr int64_t kOwnPart = 16;  // a loop around traces of others that runs less than one of so many operations itself is not worth a trace

void stop(bridge::Bridge& bridge) {
  outermost = {};
  if (!base::report_wanted()) bridge.set_counting(false);
}

}  // namespace

uint64_t counted_functions() { return functions_counted; }

void begin_counting(const vm::ThreadView& view, LoopState& loop, bridge::Bridge& bridge, const RunByTraces& run) {
  functions_counted += loop.function;
  if (outermost.loop == nullptr) outermost = {&loop, view.tstate, view.frame, *loop.counter};
  bridge.set_counting(true);
  loop.probe_start = bridge.ops_counted() + run.functions;
  loop.probe_start_in_traces = run.loops;
  loop.probe_start_in_backward = bridge.backward_ops_counted();
  loop.probe_start_differentiated = bridge.differentiated_ops_counted();
}

void end_counting_if_left(const vm::ThreadView& view, const LoopState& loop, bridge::Bridge* bridge) {
  if (outermost.loop == nullptr || outermost.body.is_call || outermost.thread != view.tstate || bridge == nullptr) return;
  if (outermost.loop == &loop ? !loop.probing : !vm::is_inside(view, loop.unit, outermost.body, outermost.frame)) stop(*bridge);
}

void end_counting(LoopState& loop, bridge::Bridge& bridge, const RunByTraces& run) {
  if (outermost.loop == &loop || outermost.loop == nullptr) stop(bridge);
  loop.ops = static_cast<int64_t>(bridge.ops_counted() + run.functions - loop.probe_start);
  loop.trains = bridge.backward_ops_counted() > loop.probe_start_in_backward;
  loop.whole = loop.trains || bridge.differentiated_ops_counted() == loop.probe_start_differentiated;
  const auto run_by_traces = static_cast<int64_t>(run.loops - loop.probe_start_in_traces);
  const bool unrolls = run_by_traces <= base::heuristics().around_traces;
  if (unrolls) loop.ops += run_by_traces;
  loop.tensors = loop.ops >= std::max<int64_t>(base::heuristics().min_tensor_ops, unrolls ? 0 : run_by_traces / kOwnPart);
}

}  // namespace dynvm::tracer
