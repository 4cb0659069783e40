// The reference evaluator on cases worked out by hand, and the 16-bit conversions on all patterns.
#include "ir/kernel/eval.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "ir/kernel/half.h"
#include "ir/kernel/text.h"

namespace dynvm::ir {
namespace {

Kernel parse(const char* text) {
  Kernel kernel;
  base::Status status = parse_kernel(text, &kernel);
  EXPECT_TRUE(status.ok()) << status.message();
  status = verify_kernel(kernel);
  EXPECT_TRUE(status.ok()) << status.message();
  return kernel;
}

TEST(Half, EveryPatternSurvives) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    uint16_t half = static_cast<uint16_t>(bits);
    float value = half_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value))));
    } else {
      EXPECT_EQ(float_to_half(value), half);
      EXPECT_EQ(value, static_cast<float>(std::bit_cast<_Float16>(half)));
    }
    float wide = bfloat_to_float(half);
    if (!std::isnan(wide)) {
      EXPECT_EQ(float_to_bfloat(wide), half);
    } else {
      EXPECT_TRUE(std::isnan(bfloat_to_float(float_to_bfloat(wide))));
    }
  }
}

TEST(Half, RoundsToEven) {
  for (uint32_t bits = 0x33000000 - 5000; bits < 0x47800000; bits += 997)
    EXPECT_EQ(float_to_half(std::bit_cast<float>(bits)), std::bit_cast<uint16_t>(static_cast<_Float16>(std::bit_cast<float>(bits))));
  EXPECT_EQ(float_to_half(65519.9f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_bfloat(std::bit_cast<float>(0x3f808000)), 0x3f80);
  EXPECT_EQ(float_to_bfloat(std::bit_cast<float>(0x3f818000)), 0x3f82);
}

TEST(Eval, BroadcastStridesAndScalars) {
  Kernel k = parse(R"("k" sizes [2, 3] pointers 3 scalars (f64) {
    o0 = f32 p0 + 1 {3, 1} o1 = f32 p1 + 0 {0, 1} o2 = f32 p2 + 0 {1, 2}
    n0 = load f32 o0 n1 = load f32 o1 n2 = scalar f32 s0 n3 = mul f32 n0, n1 n4 = add f32 n3, n2 store o2, n4 })");
  float a[] = {99, 1, 2, 3, 4, 5, 6}, b[] = {10, 100, 1000}, out[6] = {};
  void* pointers[] = {a, b, out};
  int64_t scalar = std::bit_cast<int64_t>(0.5);
  eval_kernel(k, pointers, &scalar);
  float expected[] = {10.5, 40.5, 200.5, 500.5, 3000.5, 6000.5};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(out[i], expected[i]);
}

TEST(Eval, SoftmaxAndItsStatistics) {
  Kernel k = parse(R"("k" sizes [2, 3] reduce [1] pointers 3 {
    o0 = f64 p0 + 0 {3, 1} o1 = f64 p1 + 0 {3, 1} o2 = f64 p2 + 0 {1, 0}
    n0 = load f64 o0 n1 = reduce_max f64 n0 n2 = sub f64 n0, n1 n3 = exp f64 n2 n4 = reduce_sum f64 n3 n5 = div f64 n3, n4
    store o1, n5 store o2, n4 })");
  double x[] = {0, std::log(2.0), std::log(5.0), 7, 7, 7}, y[6], s[2];
  void* pointers[] = {x, y, s};
  eval_kernel(k, pointers, nullptr);
  double expected[] = {0.125, 0.25, 0.625, 1 / 3.0, 1 / 3.0, 1 / 3.0};
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(y[i], expected[i], 1e-15);
  EXPECT_NEAR(s[0], 1.6, 1e-15);
  EXPECT_EQ(s[1], 3);
}

TEST(Eval, LoadsSeeMemoryAsItWas) {
  Kernel k = parse(R"("k" sizes [4] reduce [0] pointers 1 { o0 = i64 p0 + 0 {1} n0 = load i64 o0 n1 = reduce_sum i64 n0 n2 = sub i64 n1, n0 store o0, n2 })");
  int64_t x[] = {1, 2, 3, 4};
  void* pointers[] = {x};
  eval_kernel(k, pointers, nullptr);
  EXPECT_EQ(x[0], 9);
  EXPECT_EQ(x[3], 6);
}

TEST(Eval, PythonSignsAndIntegerPowers) {
  Kernel k = parse(R"("k" sizes [1] pointers 2 {
    o0 = i64 p0 + 0 {1} o1 = i64 p0 + 1 {1} o2 = i64 p1 + 0 {1} o3 = i64 p1 + 1 {1} o4 = i64 p1 + 2 {1} o5 = i64 p1 + 3 {1} o6 = i64 p1 + 4 {1}
    n0 = load i64 o0 n1 = load i64 o1 n2 = floordiv i64 n0, n1 n3 = mod i64 n0, n1 n4 = truncdiv i64 n0, n1 n5 = fmod i64 n0, n1 n6 = pow i64 n0, n1
    store o2, n2 store o3, n3 store o4, n4 store o5, n5 store o6, n6 })");
  int64_t in[] = {-7, 3}, out[5];
  void* pointers[] = {in, out};
  eval_kernel(k, pointers, nullptr);
  int64_t expected[] = {-3, 2, -2, -1, -343};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(out[i], expected[i]);
}

}  // namespace
}  // namespace dynvm::ir
