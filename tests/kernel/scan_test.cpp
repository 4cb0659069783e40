// Scans: text, the verifier, the evaluator, what the value depends on, simplifying around them, the compiler for x86.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "codegen/x86/kernel/compile.h"
#include "ir/kernel/eval.h"
#include "ir/kernel/simplify.h"
#include "ir/kernel/text.h"
#include "parsed.h"

namespace dynvm::ir {
namespace {

// Sums along the first dim of three columns, of what is the same in each row for the second store.
const char* kText = R"("sums" sizes [4, 3] reduce [0] pointers 3 {
  o0 = f32 p0 + 0 {3, 1}
  o1 = f32 p1 + 0 {3, 1}
  o2 = i64 p2 + 0 {3, 1}
  n0 = load f32 o0
  n1 = scan_sum f32 n0
  n2 = const i64 3
  n3 = scan_prod i64 n2
  store o1, n1
  store o2, n3
})";

TEST(Scan, Evaluated) {
  const Kernel kernel = parsed(kText);
  EXPECT_EQ(print_kernel(kernel), kText);
  float x[12], sums[12];
  int64_t powers[12];
  for (int k = 0; k < 12; ++k) x[k] = static_cast<float>(k * k);
  void* pointers[] = {x, sums, powers};
  eval_kernel(kernel, pointers, nullptr);
  for (int column = 0; column < 3; ++column) {
    float sum = 0;
    int64_t power = 1;
    for (int row = 0; row < 4; ++row) {
      EXPECT_EQ(sums[row * 3 + column], sum += x[row * 3 + column]);
      EXPECT_EQ(powers[row * 3 + column], power *= 3);
    }
  }
}

TEST(Scan, LogAddExp) {
  Kernel kernel;
  kernel.sizes = {6};
  kernel.reduce_dims = 1;
  const int32_t in = kernel.add_operand({DType::kF64, {1}, 0, 0}), out = kernel.add_operand({DType::kF64, {1}, 0, 1});
  kernel.add_store(out, kernel.add(KOp::k_scan_logaddexp, kernel.add_load(in)));
  ASSERT_TRUE(verify_kernel(kernel).ok());
  double x[] = {-INFINITY, 1, 2, -INFINITY, 1000, INFINITY}, y[6];
  void* pointers[] = {x, y};
  eval_kernel(kernel, pointers, nullptr);
  const double both = 2 + std::log1p(std::exp(-1.0));
  for (const auto& [at, expected] : {std::pair<int, double>{0, -INFINITY}, {1, 1.0}, {2, both}, {3, both}, {4, 1000.0}, {5, INFINITY}}) EXPECT_DOUBLE_EQ(y[at], expected) << at;
}

// Of its operand's dims and of the one that it goes along, unless that has one point.
TEST(Scan, Depends) {
  Kernel kernel = parsed(kText);
  EXPECT_EQ(node_dims(kernel)[1], 3u);
  EXPECT_EQ(node_dims(kernel)[3], 1u);
  kernel.sizes[0] = 1;
  EXPECT_EQ(node_dims(kernel)[1], 2u);
  EXPECT_EQ(node_dims(kernel)[3], 0u);
}

TEST(Scan, Verified) {
  const auto message = [](const Kernel& kernel) { return verify_kernel(kernel).message(); };
  Kernel kernel = parsed(kText);
  kernel.reduce_dims = 3;
  EXPECT_NE(message(kernel).find("needs one reduced dim"), std::string::npos) << message(kernel);
  kernel.reduce_dims = 0;
  EXPECT_NE(message(kernel).find("no dim is reduced"), std::string::npos) << message(kernel);
  kernel = parsed(kText);
  kernel.operands[2].strides[0] = 0;  // each of its values, in one place
  EXPECT_NE(message(kernel).find("depends on a reduced dim"), std::string::npos) << message(kernel);
  kernel = parsed(kText);
  kernel.nodes[0].dtype = kernel.nodes[1].dtype = kernel.operands[0].dtype = kernel.operands[1].dtype = DType::kF16;
  EXPECT_NE(message(kernel).find("must be cast"), std::string::npos) << message(kernel);
  kernel = parsed(kText);
  kernel.nodes[3].op = KOp::k_scan_logaddexp;
  EXPECT_NE(message(kernel).find("floating"), std::string::npos) << message(kernel);
  // What it gives is there when it has come to a point, too late to say where to read; its sum is.
  kernel = parsed(kText);
  const int32_t yes = kernel.add_const_int(DType::kBool, 1);
  kernel.add_load_at(0, 3, yes);
  EXPECT_NE(message(kernel).find("says where"), std::string::npos) << message(kernel);
  kernel.nodes.pop_back();
  kernel.add_load_at(0, kernel.add(KOp::k_reduce_sum, 3), yes);
  EXPECT_EQ(message(kernel), "");
  // The same of a store.
  kernel = parsed(kText);
  kernel.stores[1].at = 2;
  kernel.stores[1].holds = kernel.add_const_int(DType::kBool, 1);
  EXPECT_EQ(message(kernel), "");
  kernel.stores[1].at = 3;
  EXPECT_NE(message(kernel).find("says where it stores"), std::string::npos) << message(kernel);
}

// It stays in front of a choice that is made at each point, where an operation of elements does not.
TEST(Scan, IsNotOfElements) {
  Kernel kernel;
  kernel.sizes = {8};
  kernel.reduce_dims = 1;
  const int32_t in = kernel.add_operand({DType::kF32, {1}, 0, 0}), out = kernel.add_operand({DType::kF32, {1}, 0, 1});
  const int32_t one = kernel.add_const(DType::kF32, 1), zero = kernel.add_const(DType::kF32, 0);
  const int32_t chosen = kernel.add(KOp::k_where, kernel.add(KOp::k_lt, zero, kernel.add_load(in)), one, zero);
  kernel.add_store(out, kernel.add(KOp::k_scan_sum, chosen));
  const std::string before = print_kernel(kernel);
  simplify_kernel(&kernel);
  EXPECT_EQ(print_kernel(kernel), before);
}

TEST(Scan, RefusedForX86) {
  std::unique_ptr<codegen::CompiledKernel> compiled;
  EXPECT_NE(codegen::compile_kernel(parsed(kText), codegen::cpu_features(), {}, &compiled).message().find("no code for scan"), std::string::npos);
}

}  // namespace
}  // namespace dynvm::ir
