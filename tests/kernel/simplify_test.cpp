// Simplified kernels compute what they did (the reference evaluator on both), and have less to do at each point.
#include <gtest/gtest.h>

#include "ir/kernel/eval.h"
#include "ir/kernel/simplify.h"
#include "ir/kernel/text.h"
#include "random_kernel.h"

namespace dynvm::test {
namespace {

// Empty where both agree.
std::string difference(const Kernel& kernel, const Kernel& simplified, const std::vector<Buffer>& buffers, const std::vector<int64_t>& scalars) {
  return compare_with(kernel, buffers, scalars, {}, [&](void* const* pointers) { ir::eval_kernel(simplified, pointers, scalars.data()); });
}

// The gradient of a row's negative log likelihood, and its sum.
constexpr const char* kGradient = R"("gradient" sizes [4, 6] reduce [1] pointers 3 {
  o0 = i64 p0 + 0 {1, 0}
  o1 = bf16 p1 + 0 {6, 1}
  o2 = f32 p2 + 0 {1, 0}
  n0 = load i64 o0
  n1 = index i64 d1
  n2 = eq bool n1, n0
  n3 = const i64 2
  n4 = ne bool n0, n3
  n5 = and bool n2, n4
  n6 = const f32 -0.3
  n7 = const f32 0
  n8 = where f32 n5, n6, n7
  n9 = cast bf16 n8
  n10 = cast f32 n9
  n11 = reduce_sum f32 n10
  store o1, n9
  store o2, n11
})";

Kernel parsed(const std::string& text) {
  Kernel kernel;
  const base::Status status = ir::parse_kernel(text, &kernel);
  EXPECT_TRUE(status.ok()) << status.message();
  return kernel;
}

size_t reductions(const Kernel& kernel) {
  return static_cast<size_t>(std::count_if(kernel.nodes.begin(), kernel.nodes.end(), [](const ir::KernelNode& node) { return ir::is_reduce(node.op); }));
}

TEST(Simplify, TheSumOfOneElementNeedsNoPass) {
  const Kernel kernel = parsed(kGradient);
  Kernel simplified = kernel;
  ir::simplify_kernel(&simplified);
  EXPECT_TRUE(ir::verify_kernel(simplified).ok());
  EXPECT_EQ(reductions(kernel), 1u);
  EXPECT_EQ(reductions(simplified), 0u) << ir::print_kernel(simplified);
  for (const std::vector<int64_t>& wanted : {std::vector<int64_t>{0, 5, 2, 3}, {-1, 6, 1000, -7}, {1, 1, 2, 2}}) {
    std::vector<Buffer> buffers{{ir::DType::kI64, std::vector<uint8_t>(4 * 8)}, {ir::DType::kBF16, std::vector<uint8_t>(24 * 2)}, {ir::DType::kF32, std::vector<uint8_t>(4 * 4)}};
    for (size_t k = 0; k < 4; ++k) write_number(ir::DType::kI64, &buffers[0].bytes[8 * k], static_cast<double>(wanted[k]));
    EXPECT_EQ(difference(kernel, simplified, buffers, {}), "");
  }
}

TEST(Simplify, OtherSumsStay) {
  const std::string text = kGradient;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    Kernel kernel = parsed(changed);
    ir::simplify_kernel(&kernel);
    return reductions(kernel);
  };
  EXPECT_EQ(with("n7 = const f32 0", "n7 = const f32 1"), 1u);                   // each of the others counts
  EXPECT_EQ(with("n2 = eq bool n1, n0", "n2 = ne bool n1, n0"), 1u);
  EXPECT_EQ(with("n1 = index i64 d1", "n1 = index i64 d0"), 1u);                 // the same for a whole row
  EXPECT_EQ(with("o0 = i64 p0 + 0 {1, 0}", "o0 = i64 p0 + 0 {6, 1}"), 1u);       // may hold at several points
}

TEST(Simplify, RandomKernels) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    KernelMaker maker(seed);
    maker.make();
    if (maker.kernel.stores.empty()) continue;
    Kernel simplified = maker.kernel;
    ir::simplify_kernel(&simplified);
    const base::Status status = ir::verify_kernel(simplified);
    ASSERT_TRUE(status.ok()) << status.message() << "\n" << ir::print_kernel(simplified);
    ASSERT_EQ(difference(maker.kernel, simplified, maker.buffers, maker.scalars), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace dynvm::test
