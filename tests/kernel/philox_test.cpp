// Philox against its published known answers, and draws: which number is which element's, the evaluator, the verifier, the compiler for x86.
#include "ir/kernel/philox.h"

#include <gtest/gtest.h>

#include <vector>

#include "codegen/x86/kernel/compile.h"
#include "ir/kernel/eval.h"
#include "ir/kernel/text.h"

namespace dynvm::ir {
namespace {

// From the test vectors that come with Random123.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}), (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

float real(uint32_t word) { return static_cast<float>(word) * 0x1p-32f + 0x1p-33f; }
float number(uint64_t call, uint32_t thread, int word) { return real(philox({static_cast<uint32_t>(call), static_cast<uint32_t>(call >> 32), thread, 0}, {7, 1})[static_cast<size_t>(word)]); }
constexpr int64_t kSeed = (int64_t{1} << 32) + 7;

TEST(Draw, NumbersOfElements) {
  EXPECT_EQ(drawn_number(0, 0, 2, {256, 4}), real(0xbc57ac4c));
  EXPECT_EQ(drawn_number(-1, 0, 0, {256, 4}), real(philox({0, 0, 0, 0}, {~0u, ~0u})[0]));
  EXPECT_EQ(drawn_number(kSeed, 8, 4 * 5 + 3, {256, 4}), number(2, 5, 3));
  EXPECT_EQ(drawn_number(kSeed, 8, 4 * (256 + 5) + 1, {256, 4}), number(3, 5, 1));
  EXPECT_EQ(drawn_number(kSeed, 8, 8 * (256 + 5) + 6, {256, 8}), number(2 + 2 + 1, 5, 2));  // two calls a round
  EXPECT_EQ(drawn_number(kSeed, 8, 2 * (256 + 5) + 1, {256, 2}), number(3, 5, 1));
  EXPECT_EQ(drawn_number(kSeed, 8, 256 * 6 + 5, {256, 1}), number(2 + 1, 5, 2));            // four rounds a call
  EXPECT_EQ(drawn_number(kSeed, int64_t{4} << 32, 0, {256, 4}), number(uint64_t{1} << 32, 0, 0));
}

const char* kText = R"("draw" sizes [3, 5] pointers 2 scalars (i64, i64) {
  o0 = f32 p0 + 0 {5, 1}
  o1 = f32 p1 + 2 {1, 3}
  n0 = scalar i64 s0
  n1 = scalar i64 s1
  n2 = draw f32 n0, n1, o1 of 256 x 4
  store o0, n2
})";

TEST(Draw, Evaluated) {
  Kernel kernel;
  ASSERT_TRUE(parse_kernel(kText, &kernel).ok());
  EXPECT_EQ(print_kernel(kernel), kText);
  ASSERT_TRUE(verify_kernel(kernel).ok()) << verify_kernel(kernel).message();
  EXPECT_EQ(node_dims(kernel)[2], 3u);
  float out[15];
  void* pointers[] = {out, nullptr};  // no memory is read
  const int64_t scalars[] = {kSeed, 12};
  eval_kernel(kernel, pointers, scalars);
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t column = 0; column < 5; ++column) EXPECT_EQ(out[row * 5 + column], drawn_number(kSeed, 12, row + 3 * column, {256, 4}));
}

TEST(Draw, Verified) {
  Kernel kernel;
  ASSERT_TRUE(parse_kernel(kText, &kernel).ok());
  const auto message = [&](auto change) {
    Kernel changed = kernel;
    change(changed);
    return verify_kernel(changed).message();
  };
  const auto says = [&](const char* what, auto change) { EXPECT_NE(message(change).find(what), std::string::npos) << message(change); };
  says("no such operand", [](Kernel& k) { k.nodes[2].operand = 2; });
  says("no such form", [](Kernel& k) { k.nodes[2].i = DrawForm{256, 3}.packed(); });
  says("no such form", [](Kernel& k) { k.nodes[2].i = DrawForm{0, 4}.packed(); });
  says("must be f32", [](Kernel& k) { k.nodes[2].dtype = DType::kF64; });
  says("must be i64", [](Kernel& k) { k.nodes[1].dtype = DType::kF64; });
  says("negative", [](Kernel& k) { k.operands[1].strides[0] = -1; });
  says("only a load or a draw", [](Kernel& k) { k.nodes[1].operand = 0; });
}

// Nothing that is lowered for CPUs draws.
TEST(Draw, NotForX86) {
  Kernel kernel;
  ASSERT_TRUE(parse_kernel(kText, &kernel).ok());
  std::unique_ptr<codegen::CompiledKernel> compiled;
  const base::Status status = codegen::compile_kernel(kernel, codegen::cpu_features(), {}, &compiled);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("no code for draw"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace dynvm::ir
