// torch.compile as a hint, unless --torch-compile=real: see torch_compile.py.
#pragma once

#include "runtime/base/status.h"

namespace dynvm::main {

base::Status check_torch_compile();

// From now on: as soon as the script has imported torch. The interpreter runs.
void hint_torch_compile();

}  // namespace dynvm::main
