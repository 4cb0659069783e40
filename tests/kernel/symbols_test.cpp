// Numbers with symbols in them, and kernels of them: compiled once, run for many values, each against the evaluator on the kernel with those values.
//
// DYNVM_KERNEL_FUZZ=n runs n kernels instead of 1500, DYNVM_KERNEL_SEED=s the one of that seed.
#include "ir/kernel/symbols.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "ir/kernel/text.h"
#include "random_kernel.h"

namespace dynvm::test {
namespace {

TEST(Symbols, ProductsAreReadBack) {
  const std::vector<int64_t> codes = {1009, 1013};
  EXPECT_FALSE(ir::is_symbolic(0, codes));
  EXPECT_FALSE(ir::is_symbolic(768, codes));
  EXPECT_TRUE(ir::is_symbolic(768 * 1009, codes));
  EXPECT_TRUE(ir::is_symbolic(-1013, codes));
  EXPECT_EQ(ir::evaluate(0, codes, {5, 7}), 0);
  EXPECT_EQ(ir::evaluate(int64_t{-3} * 1009 * 1009 * 1013, codes, {5, 7}), -3 * 5 * 5 * 7);
  EXPECT_EQ(ir::evaluate(12 * 1013, codes, {11, 13}), 12 * 13);  // the same product of other codes
  const int64_t values[] = {5, 7};
  ir::Product product;
  ASSERT_TRUE(ir::Product::of(int64_t{-3} * 1009 * 1009 * 1013, codes, &product));
  EXPECT_EQ(product(values), -3 * 5 * 5 * 7);
  ASSERT_TRUE(ir::Product::of(1013, codes, &product));
  EXPECT_TRUE(product.is_symbol());
  ASSERT_TRUE(ir::Product::of(0, codes, &product));
  EXPECT_TRUE(product.is_constant());
  EXPECT_EQ(ir::symbol_text(12 * 1009 * 1013, codes), "12*s0*s1");
  EXPECT_EQ(ir::symbol_text(1013, codes), "s1");
  EXPECT_EQ(ir::symbol_text(1010, codes), "1010");
}

TEST(Symbols, CodesDivideNoConstant) {
  ir::SymbolCodes codes;
  codes.avoid(1009 * 64);
  codes.avoid(0);
  const int64_t first = codes.next(), second = codes.next();
  EXPECT_EQ(first, 1013);
  EXPECT_EQ(second, 1019);
}

TEST(Symbols, KernelsPrintAndParse) {
  const char* text =
      "\"scale\" symbols [1009, 1013] sizes [s0, 64, s1] reduce [2] pointers 2 {\n"
      "  o0 = f32 p0 + 2*s1 {64*s1, s1, 1}\n"
      "  o1 = f32 p1 + 0 {64, 1, 0}\n"
      "  n0 = load f32 o0\n"
      "  n1 = reduce_sum f32 n0\n"
      "  store o1, n1\n"
      "}";
  Kernel kernel;
  ASSERT_TRUE(ir::parse_kernel(text, &kernel).ok());
  EXPECT_EQ(kernel.operands[0].strides[0], 64 * 1013);
  EXPECT_EQ(ir::print_kernel(kernel), text);
  ASSERT_TRUE(ir::verify_kernel(kernel).ok());
  const Kernel now = ir::with_values(kernel, {3, 5});
  EXPECT_EQ(now.sizes, (std::vector<int64_t>{3, 64, 5}));
  EXPECT_EQ(now.operands[0].offset, 10);
  Kernel other = kernel;
  other.symbols = {1013, 1009};
  EXPECT_FALSE(ir::same_but_codes(kernel, other));
  EXPECT_TRUE(ir::same_but_codes(kernel, kernel));
}

TEST(Symbols, OtherGeometriesOnOnePointerConflict) {
  Kernel kernel;
  kernel.symbols = {1009};
  kernel.sizes = {1009};
  kernel.add_operand({DType::kF32, {1}, 0, 0});
  kernel.add_operand({DType::kF32, {1}, 5000, 0});  // behind the first one where the size is small
  EXPECT_TRUE(ir::may_conflict(kernel, kernel.operands[0], kernel.operands[1]));
  EXPECT_FALSE(ir::may_conflict(kernel, kernel.operands[0], kernel.operands[0]));
}

TEST(Symbols, CompiledKernelsAgreeWithTheEvaluatorForAllValues) {
  const char* one = std::getenv("DYNVM_KERNEL_SEED");
  const char* count = std::getenv("DYNVM_KERNEL_FUZZ");
  const uint64_t first = one ? std::strtoull(one, nullptr, 10) : 0, last = one ? first + 1 : count ? std::strtoull(count, nullptr, 10) : 1500;
  int runs = 0, failures = 0;
  for (uint64_t seed = first; seed < last; ++seed) {
    KernelMaker maker(seed);
    maker.make();
    if (maker.kernel.stores.empty()) continue;
    Symbolic symbolic(maker.kernel, seed);
    const Kernel& kernel = symbolic.kernel;
    if (kernel.symbols.empty() || !ir::verify_kernel(kernel).ok()) continue;  // conflicts that only other values have
    Kernel parsed;
    ASSERT_TRUE(ir::parse_kernel(ir::print_kernel(kernel), &parsed).ok()) << ir::print_kernel(kernel);
    ASSERT_TRUE(parsed.symbols == kernel.symbols && parsed.sizes == kernel.sizes && parsed.operands == kernel.operands) << ir::print_kernel(kernel);
    codegen::KernelOptions options;
    options.unroll = static_cast<int>(seed % 5);
    options.force_split = seed % 3 == 0;
    options.parallel = seed % 2 == 0;
    std::unique_ptr<codegen::CompiledKernel> compiled;
    const base::Status status = codegen::compile_kernel(kernel, codegen::cpu_features(), options, &compiled);
    if (!status.ok()) {
      EXPECT_NE(status.message().find("a position that depends on symbols"), std::string::npos) << status.message();
      continue;
    }
    for (int round = 0; round < 4; ++round) {
      const std::vector<int64_t> values = round == 0 ? symbolic.values : symbolic.smaller_values();
      const Kernel now = ir::with_values(kernel, values);
      if (!ir::verify_kernel(now).ok() || !lies_inside(now, maker.buffers)) continue;
      std::vector<int64_t> numbers;
      for (int64_t number : compiled->numbers()) numbers.push_back(ir::evaluate(number, kernel.symbols, values));
      ++runs;
      const std::string difference = compare_with(now, maker.buffers, maker.scalars, {}, [&](void* const* pointers) {
        if (!compiled->parallel() || round % 2 == 0) return compiled->run(pointers, maker.scalars.data(), numbers.data());
        const int64_t size = ir::evaluate(compiled->range_size(), kernel.symbols, values), third = size / 3;
        compiled->range_entry()(pointers, maker.scalars.data(), third, size, numbers.data());
        compiled->range_entry()(pointers, maker.scalars.data(), 0, third, numbers.data());
      });
      EXPECT_EQ(difference, "") << "seed " << seed << " round " << round << "\n" << ir::print_kernel(kernel);
      if (!difference.empty() && ++failures >= 3) return;
    }
  }
  if (!one) {
    EXPECT_GT(runs, static_cast<int>(last - first) / 2);
  }
}

}  // namespace
}  // namespace dynvm::test
