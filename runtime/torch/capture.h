// Capturing a session's calls as CUDA graphs (bridge::Captures).
//
// torch's own graph object does it, by its Python face: this library is built without CUDA's headers, and capturing is rare. What is allocated while capturing comes
// from a pool that all captures share, and goes back there when nobody holds it. Captured work is on a stream of its own, one for each stream that graphs are
// launched on, whose workspaces it shares (workspaces.h).
// Invariants: the GIL is held; nothing of Python runs between begin and end but torch's own functions.
// Tests: tests/cuda/test_whole.py (on a machine with a GPU).
#pragma once

#include "runtime/bridge/bridge.h"

namespace dynvm::torch_bridge {

bridge::Captures* cuda_captures();  // null where torch has no CUDA graphs that can be changed

}  // namespace dynvm::torch_bridge
