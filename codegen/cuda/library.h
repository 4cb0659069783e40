// Libraries of the CUDA toolkit and driver, opened at run time.
#pragma once

#include <string>
#include <vector>

namespace dynvm::codegen::cuda {

// The first of these names that the process has, that the loader finds, or that lies where pip puts NVIDIA's packages beside torch's; null: none.
void* open_library(const std::vector<std::string>& names);

}  // namespace dynvm::codegen::cuda
