// Asks cpuid. See cpu_features.h.
#include "codegen/x86/kernel/cpu_features.h"

namespace dynvm::codegen {

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = [] {
    CpuFeatures f;
    __builtin_cpu_init();
    f.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    f.avx512 = f.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    f.intel = __builtin_cpu_is("intel");
    return f;
  }();
  return features;
}

}  // namespace dynvm::codegen
