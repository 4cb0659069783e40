// Each invariant of kernels: one kernel that keeps it, one that breaks it.
#include <gtest/gtest.h>

#include "ir/kernel/kernel.h"
#include "ir/kernel/text.h"

namespace dynvm::ir {
namespace {

std::string verify(const char* text) {
  Kernel kernel;
  base::Status status = parse_kernel(text, &kernel);
  if (!status.ok()) return status.message();
  return verify_kernel(kernel).message();
}

#define EXPECT_REFUSED(text, reason) EXPECT_NE(verify(text).find(reason), std::string::npos) << verify(text)

TEST(Verify, GoodKernels) {
  EXPECT_EQ(verify(R"("k" sizes [2, 3] pointers 2 { o0 = f32 p0 + 0 {3, 1} o1 = f32 p1 + 0 {1, 2} n0 = load f32 o0 n1 = exp f32 n0 store o1, n1 })"), "");
  EXPECT_EQ(verify(R"("inplace" sizes [8] pointers 1 { o0 = f32 p0 + 0 {1} n0 = load f32 o0 n1 = add f32 n0, n0 store o0, n1 })"), "");
  EXPECT_EQ(verify(R"("softmax" sizes [2, 3] reduce [1] pointers 1 { o0 = f32 p0 + 0 {3, 1} n0 = load f32 o0 n1 = reduce_max f32 n0 n2 = sub f32 n0, n1 store o0, n2 })"), "");
}

TEST(Verify, Nodes) {
  EXPECT_REFUSED(R"("k" sizes [2] pointers 1 { n0 = exp f32 n0 })", "not an earlier node");
  EXPECT_REFUSED(R"("k" sizes [2] pointers 1 { n0 = const f32 1 n1 = exp f64 n0 })", "operands need the node's floating dtype");
  EXPECT_REFUSED(R"("k" sizes [2] pointers 1 { n0 = const i32 1 n1 = exp i32 n0 })", "floating");
  EXPECT_REFUSED(R"("k" sizes [2] pointers 1 { n0 = const bool 1 n1 = add bool n0, n0 })", "not bool");
  EXPECT_REFUSED(R"("k" sizes [2] pointers 1 { n0 = const c64 1 })", "no arithmetic");
  EXPECT_REFUSED(R"("k" sizes [2] pointers 1 { n0 = index i64 d1 })", "no such dim");
  EXPECT_REFUSED(R"("k" sizes [2] pointers 1 { n0 = scalar f32 s0 })", "no such scalar");
  EXPECT_REFUSED(R"("k" sizes [2] pointers 1 { n0 = const f32 1 n1 = reduce_sum f32 n0 })", "no dim is reduced");
  EXPECT_REFUSED(R"("k" sizes [2] reduce [0] pointers 1 { n0 = const f16 1 n1 = reduce_sum f16 n0 })", "cast to f32");
  EXPECT_REFUSED(R"("k" sizes [2] pointers 1 scalars (f32) { })", "neither f64 nor i64");
  EXPECT_REFUSED(R"("k" sizes [2] reduce [1] pointers 1 { })", "does not exist");
}

TEST(Verify, Stores) {
  EXPECT_REFUSED(R"("k" sizes [2] pointers 1 { o0 = f32 p0 + 0 {0} n0 = const f32 1 store o0, n0 })", "share an element");
  EXPECT_REFUSED(R"("k" sizes [4, 4] pointers 1 { o0 = f32 p0 + 0 {3, 1} n0 = const f32 1 store o0, n0 })", "share an element");
  EXPECT_REFUSED(R"("k" sizes [4] reduce [0] pointers 2 { o0 = f32 p0 + 0 {1} o1 = f32 p1 + 0 {0} n0 = load f32 o0 store o1, n0 })", "depends on a reduced dim");
  EXPECT_REFUSED(R"("k" sizes [4] pointers 1 { o0 = f32 p0 + 0 {1} n0 = const f64 1 store o0, n0 })", "dtype is not the node's");
}

TEST(Verify, Overlap) {
  // Shifted by one element: what one point writes another reads.
  EXPECT_REFUSED(R"("k" sizes [4] pointers 1 { o0 = f32 p0 + 0 {1} o1 = f32 p0 + 1 {1} n0 = load f32 o0 store o1, n0 })", "overlaps");
  EXPECT_REFUSED(R"("k" sizes [4, 4] pointers 1 { o0 = f32 p0 + 0 {4, 1} o1 = f32 p0 + 0 {1, 4} n0 = load f32 o0 store o1, n0 })", "overlaps");
  // The halves of a row, and every other element.
  EXPECT_EQ(verify(R"("k" sizes [4, 2] pointers 1 { o0 = f32 p0 + 0 {4, 1} o1 = f32 p0 + 2 {4, 1} n0 = load f32 o0 store o1, n0 })"), "");
  EXPECT_EQ(verify(R"("k" sizes [4] pointers 1 { o0 = f32 p0 + 0 {2} o1 = f32 p0 + 1 {2} n0 = load f32 o0 store o1, n0 })"), "");
  EXPECT_REFUSED(R"("k" sizes [4, 3] pointers 1 { o0 = f32 p0 + 0 {4, 1} o1 = f32 p0 + 2 {4, 1} n0 = load f32 o0 store o1, n0 })", "overlaps");
  EXPECT_REFUSED(R"("k" sizes [4] pointers 1 { o0 = f32 p0 + 0 {1} o1 = f32 p0 + 2 {1} n0 = const f32 1 store o0, n0 store o1, n0 })", "another store");
}

}  // namespace
}  // namespace dynvm::ir
