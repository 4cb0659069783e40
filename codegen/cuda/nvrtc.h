// CUDA C++ to machine code by NVRTC, which is loaded when it is first needed.
//
// Inputs: a source, the device's architecture (90 for sm_90). Output: a cubin. Compiled ones are kept in the user's cache folder.
// Thread safe; needs no GPU. NVRTC's own cache is off: it returns variants that were compiled with other options.
// Tests: tests/cuda.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace dynvm::codegen::cuda {

// Empty, or why there is no NVRTC.
std::string nvrtc_missing();
base::Status compile_source(const std::string& source, int architecture, std::string* cubin);

}  // namespace dynvm::codegen::cuda
