// What a trace assumes of torch's thread-local modes: methods of the recorder (recorder.h).
#include <algorithm>
#include <array>
#include <string_view>

#include "tracer/object_parts.h"
#include "tracer/recorder.h"

namespace dynvm::tracer {

// A mode that no trace supports has been entered: the next recording leaves the innermost call to be what it is that is known to enter it and, as libraries' functions
// do (torch.vmap), to leave it again. Where such a call still leaves the mode behind, it is the next one's around it. A script's own function may hold all of its work.
bool Recorder::leave_to_call() {
  if (!consumers_.empty() || in_callback()) return false;
  for (size_t i = frames_.size() - 1; i > 0; i--) {
    if (frames_[i].generator != kNoValue && --i > 0) continue;  // a context manager's: what is called there is next()
    if (i == 0) break;
    if (parts::is_standard(frames_[i].code)) continue;
    if (!parts::is_installed(frames_[i].code)) return false;
    if (!lessons_.opaque_calls.emplace(frames_[i - 1].code, frames_[i].call_unit).second) continue;
    give_up(Abort::k_mode_in_call, PyUnicode_AsUTF8(frames_[i].code->co_qualname));
    return true;
  }
  return false;
}

// Guards them as they are.
void Recorder::guard_torch_state() {
  torch_state_ = bridge_->torch_state();
  if (!torch_state_.clean && leave_to_call()) return;
  ir::TorchState expected = torch_state_;
  expected.function_modes += static_cast<uint16_t>(modes_.off.size());
  size_t i = 0;
  while (i < trace_.torch_states.size() && !(trace_.torch_states[i] == expected)) i++;
  if (i == trace_.torch_states.size()) trace_.torch_states.push_back(expected);
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
