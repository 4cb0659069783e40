// The modes that a call was recorded in, for as long as one of these lives.
//
// An operation is recorded below autograd and autocast, and most operations do not ask for them. But the kernel of one may call others, which the dispatcher
// shows to autocast again where the operation itself passed it by (F.bilinear's `_trilinear` multiplies in bfloat16 under autocast): such a call runs with
// autocast as it was, wherever the trace runs it and whatever mode an exit is in. Tests: tests/traces/cases/autocast_inside.py.
#pragma once

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

#include "ir/trace.h"

namespace dynvm::torch_bridge {

// Autocast for what the call's own kernel calls. To be made behind guards of dispatch keys.
class AutocastInside {
 public:
  AutocastInside(const ir::AtenCall& call, c10::DeviceType device) : active_(call.autocast >= 0), device_(device) {
    if (!active_) return;
    keys_ = c10::impl::tls_local_dispatch_key_set();
    dtype_ = at::autocast::get_autocast_dtype(device_);
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, static_cast<at::ScalarType>(call.autocast));
  }
  ~AutocastInside() {
    if (!active_) return;
    at::autocast::set_autocast_dtype(device_, dtype_);
    c10::impl::_force_tls_local_dispatch_key_set(*keys_);
  }
  AutocastInside(const AutocastInside&) = delete;
  AutocastInside& operator=(const AutocastInside&) = delete;

 private:
  bool active_;
  c10::DeviceType device_;
  at::ScalarType dtype_{};
  std::optional<c10::impl::LocalDispatchKeySet> keys_;
};

// All of them, for a call that is run again under autograd.
class ModesOfCall {
 public:
  ModesOfCall(const ir::AtenCall& call, c10::DeviceType device) : inference_(call.inference_mode), grad_(call.grad_mode), autocast_(call, device) {}

 private:
  c10::InferenceMode inference_;
  c10::AutoGradMode grad_;  // after the other, which sets it too
  AutocastInside autocast_;
};

}  // namespace dynvm::torch_bridge
