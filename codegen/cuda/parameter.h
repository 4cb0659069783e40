// A kernel's one parameter: memory, run-time scalars, and the numbers that have symbols in them, as C++ text names them; and the type of positions.
//
// Inputs: a kernel, how it is rendered; the numbers that its text comes to need. Output: the text of the whole function. The layout is Source's.
// Tests: tests/cuda.
#pragma once

#include <string>

#include "codegen/cuda/render.h"

namespace dynvm::codegen::cuda {

class Parameter {
 public:
  // The source begins anew, with the kernel's mirrors, its scalars and whether its positions are narrow.
  Parameter(const ir::Kernel& kernel, const RenderOptions& options, Source* source);

  // What the function is given, in the order of first use.
  void use_pointer(int32_t pointer);
  // "p.pointer[2]", of a pointer in use.
  std::string pointer(int32_t pointer) const;
  // Stores a number, which is as memory has it, into the store's mirror: the text stands behind all that the thread stores.
  std::string mirror(const MirroredStore& each, const std::string& number) const;
  bool symbolic(int64_t n) const;
  // A constant, or the name of a number that the launch gives.
  std::string number(int64_t n) const;
  const char* index_type() const { return index_type_; }
  // The struct, and the function with its body. Of several instances in one launch, their numbers and first blocks follow the scalars, and `block` is the number of the block
  // among its kernel's.
  std::string function(const std::string& body) const;

 private:
  const ir::Kernel& kernel_;
  Source& source_;
  int instances_;
  const char* index_type_;
};

}  // namespace dynvm::codegen::cuda
