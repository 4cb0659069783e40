// Kernels that are the same but for their memory, as the layers of a network have them: they are of one *form*, and have their code once.
//
// Inputs: kernels. Outputs: numbers of their forms, from 0 on, and what each kernel's memory is in its form.
// Tests: tests/kernel/forms_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace dynvm::ir {

class KernelForms {
 public:
  struct Place {
    size_t form;
    std::vector<int32_t> pointers;  // by the form's pointer: the kernel's
  };
  Place add(const Kernel& kernel);
  // How many kernels have been of that form, and the first of them with its pointers numbered.
  [[nodiscard]] size_t count(size_t form) const { return counts_[form]; }
  [[nodiscard]] const Kernel& kernel(size_t form) const { return kernels_[form]; }

 private:
  std::vector<Kernel> kernels_;
  std::vector<size_t> counts_;
  std::map<std::string, std::vector<size_t>> named_;  // forms by the kernels' name
};

}  // namespace dynvm::ir
