// Torch's thread-local modes, as ir::TorchState. Tests: tests/torch, tests/cuda/test_devices.py.
#pragma once

#include "ir/trace.h"

namespace dynvm::torch_bridge {
// All but the current GPU. The GIL is held, here and below.
ir::TorchState read_torch_state();
// The index of this thread's current GPU; -1 where torch does not use GPUs in this process, or not yet: asking would begin it, after which a child process could not.
int8_t current_gpu();
}  // namespace dynvm::torch_bridge
