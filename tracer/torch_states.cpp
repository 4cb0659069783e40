// What a trace assumes of torch's thread-local modes: methods of the recorder (recorder.h).
#include <algorithm>
#include <array>
#include <string_view>

#include "tracer/recorder.h"

namespace dynvm::tracer {

// Guards them as they are.
void Recorder::guard_torch_state() {
  torch_state_ = bridge_->torch_state();
  size_t i = 0;
  while (i < trace_.torch_states.size() && !(trace_.torch_states[i] == torch_state_)) i++;
  if (i == trace_.torch_states.size()) trace_.torch_states.push_back(torch_state_);
  guard(ir::Op::k_guard_torch_state, {}, static_cast<int64_t>(i));
}

// May another GPU be the current one behind this call of torch's, even if none was when it was recorded?
bool Recorder::chooses_gpu(std::string_view name) {
  constexpr std::array<std::string_view, 4> kEnds{"_setDevice", "_exchangeDevice", "_maybeExchangeDevice", "_setDeviceIndex"};
  return name.starts_with("torch._C.") && std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view end) { return name.ends_with(end); });
}

// Which GPU is current matters where the trace has tensors on one; if it was the trace's first work on a GPU, the one that was current then is so from the beginning.
void Recorder::settle_torch_states() {
  const bool on_gpu = std::any_of(trace_.metas.begin(), trace_.metas.end(), [](const ir::TensorMeta& meta) { return meta.device_type == 1; });
  int8_t first = -1;
  for (const ir::TorchState& state : trace_.torch_states)
    if (on_gpu && first < 0) first = state.cuda_device;
  for (ir::TorchState& state : trace_.torch_states)
    if (!on_gpu || state.cuda_device < 0) state.cuda_device = first;
}

}  // namespace dynvm::tracer
