// Kernels that are the same but for their memory.
#include "ir/kernel/forms.h"

#include <gtest/gtest.h>

#include "ir/kernel/kernel.h"

namespace dynvm::ir {
namespace {

// x + x, from one pointer to another.
Kernel doubled(const std::string& name, int64_t points, int32_t from, int32_t to) {
  Kernel kernel;
  kernel.name = name;
  kernel.sizes = {points};
  const int32_t x = kernel.add_load(kernel.add_operand({DType::kF32, {1}, 0, from}));
  kernel.add_store(kernel.add_operand({DType::kF32, {1}, 0, to}), kernel.add(KOp::k_add, x, x));
  return kernel;
}

TEST(KernelForms, AreOfKernelsThatDifferInTheirMemoryAlone) {
  KernelForms forms;
  EXPECT_EQ(forms.add(doubled("a", 8, 3, 7)).form, 0u);
  EXPECT_EQ(forms.add(doubled("a", 9, 3, 7)).form, 1u);
  EXPECT_EQ(forms.add(doubled("b", 8, 3, 7)).form, 2u);  // reports tell them apart
  EXPECT_EQ(forms.add(doubled("a", 8, 5, 5)).form, 3u);  // in place
  const KernelForms::Place again = forms.add(doubled("a", 8, 4, 2));
  EXPECT_EQ(again.form, 0u);
  EXPECT_EQ(again.pointers, (std::vector<int32_t>{4, 2}));
  EXPECT_EQ(forms.count(0), 2u);
  EXPECT_EQ(forms.count(3), 1u);
  EXPECT_EQ(forms.kernel(0), doubled("a", 8, 0, 1));
  EXPECT_EQ(forms.kernel(3), doubled("a", 8, 0, 0));
}

}  // namespace
}  // namespace dynvm::ir
