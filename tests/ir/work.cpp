// Bytes and operations of kernels and of the library's operations, against numbers counted by hand.
#include "ir/work.h"

#include <gtest/gtest.h>

#include "ir/kernel/text.h"
#include "ir/text.h"

namespace dynvm::ir {
namespace {

Work of_kernel(const char* text) {
  Kernel kernel;
  const base::Status status = parse_kernel(text, &kernel);
  EXPECT_TRUE(status.ok()) << status.message();
  return work_of(kernel);
}

TEST(Work, Elementwise) {
  const Work work = of_kernel(R"("k" sizes [10, 20] pointers 3 {
    o0 = f32 p0 + 0 {20, 1}
    o1 = f32 p1 + 0 {0, 1}
    o2 = f32 p2 + 0 {20, 1}
    n0 = load f32 o0
    n1 = load f32 o1
    n2 = mul f32 n0, n1
    n3 = const f32 0.5
    n4 = add f32 n2, n3
    store o2, n4
  })");
  EXPECT_EQ(work.points, 200);
  EXPECT_EQ(work.bytes_read, 4 * 200 + 4 * 20);  // a broadcast operand is read once
  EXPECT_EQ(work.bytes_written, 4 * 200);
  EXPECT_EQ(work.flops, 2 * 200);
}

TEST(Work, ReductionsAndFusedMultiplyAdds) {
  const Work work = of_kernel(R"("k" sizes [10, 20] reduce [1] pointers 2 {
    o0 = f64 p0 + 0 {20, 1}
    o1 = f64 p1 + 0 {1, 0}
    n0 = load f64 o0
    n1 = fma f64 n0, n0, n0
    n2 = reduce_sum f64 n1
    n3 = sqrt f64 n2
    store o1, n3
  })");
  EXPECT_EQ(work.bytes_read, 8 * 200);
  EXPECT_EQ(work.bytes_written, 8 * 10);
  EXPECT_EQ(work.flops, 2 * 200 + 200 + 10);
}

// Each element that is read at a computed place counts: which of them are the same, data says.
TEST(Work, ComputedPlaces) {
  const Work work = of_kernel(R"("k" sizes [100, 8] pointers 3 { o0 = i64 p0 + 0 {1, 0} o1 = f32 p1 + 0 {0, 1} o2 = f32 p2 + 0 {8, 1}
    n0 = load i64 o0 n1 = const i64 8 n2 = mul i64 n0, n1 n3 = const bool 1 n4 = load_at f32 o1, n2, n3 store o2, n4 })");
  EXPECT_EQ(work.bytes_read, 8 * 100 + 4 * 800);
  EXPECT_EQ(work.flops, 100);
}

TEST(Work, OperationsOfTheLibrary) {
  Trace trace;
  const base::Status status = parse_trace(R"(trace 1 "t" storages 4
%0:o = slot #0
%1:t = unbox_tensor %0 !snap0 -> f32[8,16]{16,1} s0
%2:o = slot #1
%3:t = unbox_tensor %2 !snap0 -> f32[16,4]{4,1} s1
%4 = aten "aten::mm" (%1, %3) -> (f32[8,4]{4,1} s2) !snap0
%5:t = result %4 #0 -> f32[8,4]{4,1} s2
%6 = aten "aten::cumsum" (%5, 0, none) -> (f32[8,4]{4,1} s3) !snap0
loop !snap0
snap0: root unit 0 [=, =]
)", &trace);
  ASSERT_TRUE(status.ok()) << status.message();
  const Work product = work_of(trace, trace.insts[4]);
  EXPECT_EQ(product.flops, 2 * 8 * 16 * 4);
  EXPECT_EQ(product.bytes_read, 4 * (8 * 16 + 16 * 4));
  EXPECT_EQ(product.bytes_written, 4 * 8 * 4);
  const Work other = work_of(trace, trace.insts[6]);
  EXPECT_EQ(other.flops, 0);  // not known
  EXPECT_EQ(other.bytes_read, 4 * 8 * 4);
}

}  // namespace
}  // namespace dynvm::ir
