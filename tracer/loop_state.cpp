// See loop_state.h.
#include "tracer/loop_state.h"

#include "tracer/switches.h"

namespace dynvm::tracer {

namespace {
// Never destroyed: traces own Python objects, and static destructors run after Python has gone.
auto& loops = *new std::map<std::pair<PyCodeObject*, int>, std::unique_ptr<LoopState>>;
}  // namespace

const std::map<std::pair<PyCodeObject*, int>, std::unique_ptr<LoopState>>& all_loops() { return loops; }

LoopState& state_for(vm::HotCounter& counter) {
  if (state_of(counter) == nullptr) {
    // A counter lives as long as its code. What is there already belongs to a code that has died and left its address to this one.
    auto state = std::make_unique<LoopState>();
    state->code = counter.code;
    state->unit = counter.unit;
    state->counter = &counter;
    state->left_out = is_left_out(counter.code, counter.unit);
    counter.client[0] = state.get();
    std::swap(loops[{counter.code, counter.unit}], state);
  }
  return *state_of(counter);
}

}  // namespace dynvm::tracer
