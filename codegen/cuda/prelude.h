// What stands before the kernels in generated CUDA sources: arithmetic that the language lacks, in as few instructions as the error allows.
//
// Output: source text without any header, for NVRTC (DYNVM_HOST not defined) or, for tests, for a C++ compiler after tests/cuda/shim.h.
// Errors against the correctly rounded result, f32, normal range: exp and exp2 at most 2 ulp, sigmoid and tanh at most 4 ulp (from the hardware's
// ex2 and rcp, each within 2 ulp), the rest as in CUDA's mathematical library (CUDA C++ Programming Guide, Mathematical Functions).
// Tests: tests/cuda.
#pragma once

#include <string_view>

namespace dynvm::codegen::cuda {

std::string_view prelude();

}  // namespace dynvm::codegen::cuda
