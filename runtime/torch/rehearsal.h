// Operations of a recorded iteration once more: see bridge::Rehearsal.
#pragma once

#include <memory>

#include "runtime/bridge/bridge.h"

namespace dynvm::torch_bridge {

std::unique_ptr<bridge::Rehearsal> make_rehearsal();

}  // namespace dynvm::torch_bridge
