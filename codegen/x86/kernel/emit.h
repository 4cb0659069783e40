// Writes vector code as x86: AVX2 + FMA, or AVX-512 with the same instructions on twice the width.
//
// Input: vector code with its registers. Output: position-independent code with its constants behind it; two entries:
//     at 0              void(void* const* pointers, const int64_t* scalars)
//     at range_offset   void(void* const* pointers, const int64_t* scalars, int64_t begin, int64_t end)
// Invariants: no memory outside of what accesses name, the frame and the constants; all callee-saved registers kept.
// Tests: tests/kernel/compile_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/x86/kernel/registers.h"
#include "codegen/x86/kernel/vcode.h"
#include "runtime/base/status.h"

namespace dynvm::codegen {

struct EmittedCode {
  std::vector<uint8_t> bytes;
  size_t range_offset = 0;
  std::vector<int64_t> numbers;  // with symbols in them, which the code expects as its last argument, evaluated
};

// How many vector registers the emitter leaves to the allocator.
int allocatable_registers(bool avx512);

base::Status emit_code(const VCode& code, const Registers& registers, bool avx512, EmittedCode* emitted);

}  // namespace dynvm::codegen
