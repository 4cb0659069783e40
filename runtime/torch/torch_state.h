// Torch's thread-local modes, as ir::TorchState. Tests: tests/torch.
#pragma once

#include "ir/trace.h"

namespace dynvm::torch_bridge {
ir::TorchState read_torch_state();
}  // namespace dynvm::torch_bridge
