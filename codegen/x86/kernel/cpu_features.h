// Which vector instructions generated kernels may use.
//
// Input: cpuid of this machine, or a set that a test forces to check that emission works. Output: a plain struct.
// Tests: tests/kernel/compile_test.cpp.
#pragma once

namespace dynvm::codegen {

struct CpuFeatures {
  bool avx2 = false;    // with FMA and F16C: the baseline, without it nothing compiles
  bool avx512 = false;  // F, BW, DQ and VL
  bool intel = false;   // Intel's libraries use AVX-512 on its own processors only
  friend bool operator==(const CpuFeatures&, const CpuFeatures&) = default;
};

// Of this machine, asked once.
const CpuFeatures& cpu_features();

}  // namespace dynvm::codegen
