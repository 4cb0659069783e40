// CUDA C++ to machine code by NVRTC, which is loaded when it is first needed.
//
// Starting the compiler costs 40 to 60 ms whatever it compiles, one kernel 10 to 60 more: several sources can be one program, a unit.
//
// Inputs: sources of functions, each to stand behind prelude(), with different names; the device's architecture (90 for sm_90). Output: cubins. They are kept in the
// user's cache folder: a unit's cubin in a file, and for each source one that names it.
// Thread safe; needs no GPU. NVRTC's own cache is off: it returns variants that were compiled with other options.
// Tests: tests/cuda/source_test.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace dynvm::codegen::cuda {

// Empty, or why there is no NVRTC.
std::string nvrtc_missing();

struct Compiled {
  base::Status status;                       // a failure has the source and the compiler's log
  std::shared_ptr<const std::string> cubin;  // the function is in it, beside others; the same for all of a unit
};
// What was compiled before is read, also by other processes; the rest is one unit. A source that does not compile fails alone.
std::vector<Compiled> compile_sources(const std::vector<std::string>& sources, int architecture);
// The same for the same cubin.
std::string cubin_key(const std::string& source, int architecture);
bool was_compiled(const std::string& source, int architecture);

}  // namespace dynvm::codegen::cuda
