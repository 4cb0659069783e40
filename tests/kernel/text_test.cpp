// dtype tables and the textual form of kernels.
#include "ir/kernel/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ir/dtype.h"

namespace dynvm::ir {
namespace {

static_assert(dtype_size(DType::kBF16) == 2 && is_floating(DType::kBF16) && !is_computable(DType::kC64));
static_assert(dtype_from_number(6) == DType::kF32 && dtype_from_number(44) == DType::kOther);

TEST(DTypeTable, NamesGoBothWays) {
  for (int i = 0; i < static_cast<int>(DType::kCount); ++i) {
    DType dtype = DType::kCount;
    EXPECT_TRUE(dtype_from_name(dtype_name(static_cast<DType>(i)), &dtype));
    EXPECT_EQ(static_cast<int>(dtype), i);
  }
  DType untouched = DType::kI8;
  EXPECT_FALSE(dtype_from_name("float", &untouched));
  EXPECT_EQ(untouched, DType::kI8);
}

TEST(KOpTable, NamesGoBothWays) {
  for (int i = 0; i < static_cast<int>(KOp::kCount); ++i) {
    KOp op = KOp::kCount;
    EXPECT_TRUE(kop_from_name(kop_info(static_cast<KOp>(i)).name, &op));
    EXPECT_EQ(static_cast<int>(op), i);
  }
}

const char* kText = R"("soft\"max" sizes [64, 128] reduce [1] pointers 3 scalars (f64, i64) {
  o0 = f32 p0 + 0 {128, 1}
  o1 = f32 p2 + 16 {1, 0}
  n0 = load f32 o0
  n1 = const f32 0.1
  n2 = mul f32 n0, n1
  n3 = reduce_sum f32 n2
  n4 = scalar i64 s1
  n5 = index i64 d1
  n6 = const f64 -inf
  n7 = const i64 -9223372036854775808
  n8 = eq bool n4, n5
  n9 = where f32 n8, n0, n1
  store o1, n3
})";

TEST(KernelText, PrintsWhatItParsed) {
  Kernel kernel;
  size_t length = 0;
  base::Status status = parse_kernel(std::string(kText) + " rest", &kernel, &length);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(length, std::string(kText).size());
  EXPECT_EQ(print_kernel(kernel), kText);
  EXPECT_EQ(kernel.name, "soft\"max");
  EXPECT_EQ(kernel.reduce_dims, 2u);
  Kernel again;
  ASSERT_TRUE(parse_kernel(print_kernel(kernel), &again).ok());
  EXPECT_EQ(again, kernel);
}

TEST(KernelText, CommentsAndNan) {
  Kernel kernel;
  base::Status status = parse_kernel("\"k\" sizes [] pointers 0 { # nothing but\n n0 = const f32 nan # this\n }", &kernel);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(std::isnan(kernel.nodes.at(0).f));
}

TEST(KernelText, ErrorsNameTheirPlace) {
  Kernel kernel;
  EXPECT_EQ(parse_kernel("\"k\" sizes [2] pointers 1 {\n  o1 = f32 p0 + 0 {1}\n}", &kernel).message(), "kernel text, line 2, column 5: expected operands numbered in order");
  EXPECT_EQ(parse_kernel("\"k\" sizes [2] pointers 1 {\n  n0 = frobnicate f32 n1\n}", &kernel).message(), "kernel text, line 2, column 8: expected a kernel op");
  EXPECT_FALSE(parse_kernel("\"k\" sizes [2", &kernel).ok());
  EXPECT_FALSE(parse_kernel("", &kernel).ok());
}

TEST(KernelBuilding, EqualNodesAndOperandsAreShared) {
  Kernel kernel;
  kernel.sizes = {4};
  int32_t o = kernel.add_operand({DType::kF32, {1}, 0, 2});
  EXPECT_EQ(kernel.add_operand({DType::kF32, {1}, 0, 2}), o);
  EXPECT_EQ(kernel.num_pointers, 3);
  int32_t x = kernel.add_load(o);
  EXPECT_EQ(kernel.add_load(o), x);
  EXPECT_EQ(kernel.add(KOp::k_add, x, x), kernel.add(KOp::k_add, x, x));
  EXPECT_EQ(kernel.add_cast(DType::kF32, x), x);
  EXPECT_EQ(kernel.nodes[kernel.add(KOp::k_lt, x, x)].dtype, DType::kBool);
  EXPECT_NE(kernel.add_const(DType::kF32, 0.0), kernel.add_const(DType::kF32, -0.0));
  EXPECT_EQ(kernel.nodes[kernel.add_const(DType::kBool, 3)].i, 1);
}

}  // namespace
}  // namespace dynvm::ir
