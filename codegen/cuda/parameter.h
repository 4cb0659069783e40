// A kernel's one parameter: memory, run-time scalars, and the numbers that have symbols in them, as C++ text names them.
//
// Inputs: a kernel; the numbers that its text comes to need. Output: the text of the whole function. The layout is Source's.
// Tests: tests/cuda.
#pragma once

#include <string>

#include "codegen/cuda/render.h"

namespace dynvm::codegen::cuda {

class Parameter {
 public:
  Parameter(const ir::Kernel& kernel, Source* source) : kernel_(kernel), source_(*source) {}

  // What the function is given, in the order of first use.
  void use_pointer(int32_t pointer);
  // "p.pointer[2]", of a pointer in use.
  std::string pointer(int32_t pointer) const;
  bool symbolic(int64_t n) const;
  // A constant, or the name of a number that the launch gives.
  std::string number(int64_t n) const;
  // The struct, and the function with its body, whose positions have this type. instances: of these many kernels in one launch, whose numbers and first blocks follow
  // the scalars; `block` is the number of the block among its kernel's.
  std::string function(const char* index_type, const std::string& body, int instances = 0) const;

 private:
  const ir::Kernel& kernel_;
  Source& source_;
};

}  // namespace dynvm::codegen::cuda
