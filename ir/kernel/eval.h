// The reference evaluator of kernels: one point after the other, in the plainest way; what compiled kernels are tested against.
//
// f32 expressions are computed in f32 one op at a time with the C library's functions rounded from double; f16 and bf16 are rounded
// after each op; sums are accumulated in double. Memory is read before any store (loads see memory as it was).
// Tests: tests/kernel/eval_test.cpp.
#pragma once

#include <cstdint>

#include "ir/kernel/kernel.h"

namespace dynvm::ir {

// `pointers` has num_pointers entries, `scalars` one 8-byte pattern per scalar. The kernel must verify. False where it fails (within): then it
// stores nothing.
bool eval_kernel(const Kernel& kernel, void* const* pointers, const int64_t* scalars);

}  // namespace dynvm::ir
