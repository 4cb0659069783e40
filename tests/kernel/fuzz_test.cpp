// Random kernels (random_kernel.h), compiled against the reference evaluator.
//
// DYNVM_KERNEL_FUZZ=n runs n kernels instead of 1500, DYNVM_KERNEL_SEED=s the one of that seed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "ir/kernel/text.h"
#include "random_kernel.h"

namespace dynvm::test {
namespace {

TEST(Fuzz, RandomKernelsAgreeWithTheEvaluator) {
  const char* one = std::getenv("DYNVM_KERNEL_SEED");
  const char* count = std::getenv("DYNVM_KERNEL_FUZZ");
  uint64_t first = one ? std::strtoull(one, nullptr, 10) : 0, last = one ? first + 1 : count ? std::strtoull(count, nullptr, 10) : 1500;
  int compiled = 0, failures = 0;
  for (uint64_t seed = first; seed < last; ++seed) {
    KernelMaker maker(seed);
    maker.make();
    base::Status status = ir::verify_kernel(maker.kernel);
    ASSERT_TRUE(status.ok()) << status.message() << "\n" << ir::print_kernel(maker.kernel);
    Kernel parsed;
    status = ir::parse_kernel(ir::print_kernel(maker.kernel), &parsed);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(ir::print_kernel(parsed), ir::print_kernel(maker.kernel));
    if (maker.kernel.stores.empty()) continue;
    ++compiled;
    codegen::KernelOptions options;
    options.unroll = static_cast<int>(seed % 5);
    options.force_split = seed % 3 == 0;
    std::string difference = compare(maker.kernel, maker.buffers, maker.scalars, {}, options);
    EXPECT_EQ(difference, "") << "seed " << seed;
    if (!difference.empty() && ++failures >= 3) return;
  }
  if (!one) {
    EXPECT_GT(compiled, static_cast<int>(last - first) / 2);
  }
}

}  // namespace
}  // namespace dynvm::test
