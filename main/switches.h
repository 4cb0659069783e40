// Switches of this process: --safe and --disable, and defects that its tests seed.
#pragma once

#include "runtime/base/status.h"

namespace dynvm::main {

// Reads them once the options are parsed; some are options of their own, which are set here. A failure says which word is wrong.
base::Status read_switches();

}  // namespace dynvm::main
