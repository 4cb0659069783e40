// See shapes.cpp and bridge::Shapes.
#pragma once

#include <memory>

#include "runtime/bridge/bridge.h"

namespace dynvm::torch_bridge {

std::unique_ptr<bridge::Shapes> make_shapes();

}  // namespace dynvm::torch_bridge
