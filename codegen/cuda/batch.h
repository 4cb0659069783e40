// Kernels that differ in nothing but their memory, their numbers and how many points they have, as one launch: the steps of an optimizer, one kernel for each parameter.
//
// Inputs: elementwise kernels whose operands are each walked through from one end to the other, or are one element. Output: the source of one function whose parameter has
// the memory, the numbers and the number of points of each; a block finds which of them it works on. They must not depend on each other: nobody says which comes first.
// Tests: tests/cuda.
#pragma once

#include <string>
#include <vector>

#include "codegen/cuda/render.h"

namespace dynvm::codegen::cuda {

// The kernel over an open number of points; pointers by the order of its operands.
struct BatchForm {
  ir::Kernel kernel;
  std::vector<int32_t> pointers;  // what these are in the kernel that it was made of
  int64_t points = 0;
};

// False where the kernel is of another kind. Those with equal kernels in their forms may be one batch.
bool batch_form(const ir::Kernel& kernel, BatchForm* out);
// How many of these a launch can be given.
size_t batch_limit(const BatchForm& form);
// forms: at least two, with equal kernels.
base::Status render_batch(const std::vector<BatchForm>& forms, const std::string& name, RenderOptions options, Source* out);

}  // namespace dynvm::codegen::cuda
