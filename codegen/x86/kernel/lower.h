// From a kernel and its loop nest to vector code.
//
// Input: a verified kernel and make_nest's nest. Output: vector code ready for register allocation, or the reason why not.
// Tests: tests/kernel/op_test.cpp, fuzz_test.cpp.
#pragma once

#include "codegen/x86/kernel/nest.h"
#include "codegen/x86/kernel/vcode.h"
#include "runtime/base/status.h"

namespace dynvm::codegen {

// unroll: vectors per iteration of the vector loop; 0: chosen here.
base::Status lower_kernel(const ir::Kernel& kernel, const Nest& nest, int unroll, VCode* code);

}  // namespace dynvm::codegen
