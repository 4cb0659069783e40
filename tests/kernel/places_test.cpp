// Loads and stores at computed places, and bounds of indexes: text, the verifier, the evaluator, what the value depends on, what stores conflict with, simplifying around them, the compiler for x86.
#include <gtest/gtest.h>

#include <vector>

#include "codegen/x86/kernel/compile.h"
#include "ir/kernel/eval.h"
#include "ir/kernel/simplify.h"
#include "ir/kernel/text.h"
#include "parsed.h"

namespace dynvm::ir {
namespace {

// Rows of a table of four columns, where the index is not negative.
const char* kText = R"("rows" sizes [3, 4] pointers 3 {
  o0 = i64 p0 + 0 {1, 0}
  o1 = f32 p1 + 2 {0, 1}
  o2 = f32 p2 + 0 {4, 1}
  n0 = load i64 o0
  n1 = const i64 4
  n2 = mul i64 n0, n1
  n3 = const i64 0
  n4 = ge bool n0, n3
  n5 = load_at f32 o1, n2, n4
  store o2, n5
})";

TEST(LoadAt, Evaluated) {
  const Kernel kernel = parsed(kText);
  EXPECT_EQ(print_kernel(kernel), kText);
  int64_t index[] = {1, -1000000000000, 0};
  float table[10], out[12];
  for (int k = 0; k < 10; ++k) table[k] = static_cast<float>(k);
  void* pointers[] = {index, table, out};
  eval_kernel(kernel, pointers, nullptr);
  for (int k = 0; k < 4; ++k) {
    EXPECT_EQ(out[k], static_cast<float>(2 + 4 + k));
    EXPECT_EQ(out[4 + k], 0);  // there is no memory where it would be
    EXPECT_EQ(out[8 + k], static_cast<float>(2 + k));
  }
}

// Of its operand's place, of what is added to it, and of the condition.
TEST(LoadAt, Depends) {
  const Kernel kernel = parsed(kText);
  EXPECT_EQ(node_dims(kernel)[2], 1u);
  EXPECT_EQ(node_dims(kernel)[5], 3u);
  Kernel conditional = kernel;
  conditional.operands[1].strides = {0, 0};
  conditional.nodes[5].a = 3;
  EXPECT_EQ(node_dims(conditional)[5], 1u);
}

TEST(LoadAt, Verified) {
  const Kernel kernel = parsed(kText);
  const auto says = [&](const char* what, auto change) { expect_refused(kernel, what, change); };
  says("no such operand", [](Kernel& k) { k.nodes[5].operand = 3; });
  says("no such operand", [](Kernel& k) { k.nodes[5].operand = -1; });
  says("dtype is not the operand's", [](Kernel& k) { k.nodes[5].dtype = DType::kF64; });
  says("an i64 and a bool", [](Kernel& k) { k.nodes[5].a = 4; });
  says("an i64 and a bool", [](Kernel& k) { k.nodes[5].b = 0; });
  says("not an earlier node", [](Kernel& k) { k.nodes[5].b = 5; });
  // It may reach all of the memory, so it is no other place, and no place in common, that a store may have.
  says("overlaps what o1 loads", [](Kernel& k) { k.operands[2].pointer = 1; });
  says("overlaps what o1 loads", [](Kernel& k) { k.operands[2] = {DType::kF32, {4, 1}, 1000, 1}; });
  says("overlaps what o2 loads", [](Kernel& k) { k.nodes[5].operand = 2; });
}

TEST(LoadAt, Conflicts) {
  Kernel kernel = parsed(kText);
  const KernelOperand far{DType::kF32, {4, 1}, 1000, 1}, other{DType::kF32, {4, 1}, 1000, 2}, &table = kernel.operands[1];
  const KernelStore plain{2, 5}, placed{2, 5, 2, 4};
  EXPECT_FALSE(may_conflict(kernel, plain, far, KOp::k_load, table));
  EXPECT_TRUE(may_conflict(kernel, plain, far, KOp::k_load_at, table));
  EXPECT_TRUE(may_conflict(kernel, placed, far, KOp::k_load, table));
  EXPECT_FALSE(may_conflict(kernel, plain, other, KOp::k_load_at, table));
  EXPECT_FALSE(may_conflict(kernel, placed, other, KOp::k_load, table));
  EXPECT_FALSE(may_conflict(kernel, plain, far, plain, table));
  EXPECT_TRUE(may_conflict(kernel, plain, far, placed, table));
  EXPECT_TRUE(may_conflict(kernel, placed, far, plain, table));
}

// A sum of a condition on the index is a load at one place, whose condition moves with it.
TEST(LoadAt, Simplified) {
  Kernel kernel = parsed(R"("pick" sizes [3, 4] reduce [1] pointers 3 {
    o0 = i64 p0 + 0 {1, 0} o1 = f32 p1 + 0 {0, 0} o2 = f32 p2 + 0 {1, 0}
    n0 = load i64 o0 n1 = const bool 1 n2 = load_at f32 o1, n0, n1 n3 = index i64 d1 n4 = eq bool n3, n0 n5 = const f32 0
    n6 = where f32 n4, n2, n5 n7 = reduce_sum f32 n6 store o2, n7 })");
  simplify_kernel(&kernel);
  EXPECT_FALSE(has_op(kernel, KOp::k_reduce_sum)) << print_kernel(kernel);
  EXPECT_TRUE(has_op(kernel, KOp::k_load_at)) << print_kernel(kernel);
  EXPECT_TRUE(verify_kernel(kernel).ok());
  int64_t index[] = {3, 7, 0};
  float table[8] = {10, 11, 12, 13, 14, 15, 16, 17}, out[3];
  void* pointers[] = {index, table, out};
  eval_kernel(kernel, pointers, nullptr);
  EXPECT_EQ(out[0], 13);
  EXPECT_EQ(out[1], 0);
  EXPECT_EQ(out[2], 10);
}

// Columns of three rows, added to rows of a table and stored there, where the index is not negative.
const char* kStores = R"("stores" sizes [3, 2] reduce [1] pointers 4 {
  o0 = i64 p0 + 0 {1, 0}
  o1 = f32 p1 + 0 {2, 1}
  o2 = f32 p2 + 1 {0, 1}
  o3 = f32 p3 + 0 {0, 0}
  n0 = load i64 o0
  n1 = const i64 2
  n2 = mul i64 n0, n1
  n3 = const i64 0
  n4 = ge bool n0, n3
  n5 = load f32 o1
  n6 = reduce_sum f32 n5
  add_at o2, n5, n2, n4
  store_at o3, n6, n0, n4
})";

// At each point if anything of it is of the reduced dims, else once; of points that meet, all add.
TEST(StoreAt, Evaluated) {
  const Kernel kernel = parsed(kStores);
  EXPECT_EQ(print_kernel(kernel), kStores);
  EXPECT_TRUE(for_gpus(kernel));
  EXPECT_TRUE(is_full_store(kernel, node_dims(kernel), kernel.stores[0]));
  EXPECT_FALSE(is_full_store(kernel, node_dims(kernel), kernel.stores[1]));
  int64_t index[] = {1, -5, 1};
  float x[] = {1, 2, 100, 200, 3, 4}, added[] = {0, 0, 0, 10, 20}, stored[] = {9, 9};
  void* pointers[] = {index, x, added, stored};
  EXPECT_TRUE(eval_kernel(kernel, pointers, nullptr));
  const float sums[] = {0, 0, 0, 10 + 1 + 3, 20 + 2 + 4};
  for (int k = 0; k < 5; ++k) EXPECT_EQ(added[k], sums[k]);
  EXPECT_EQ(stored[0], 9);
  EXPECT_TRUE(stored[1] == 1 + 2 || stored[1] == 3 + 4);
}

// What a store needs for its place is needed, and moves when a kernel is simplified.
TEST(StoreAt, NodesOfPlaces) {
  Kernel kernel = parsed(kStores);
  kernel.nodes.insert(kernel.nodes.begin(), {KOp::k_const, DType::kF32});
  for (size_t n = 1; n < kernel.nodes.size(); ++n)
    for (int32_t* a : {&kernel.nodes[n].a, &kernel.nodes[n].b})
      if (*a >= 0) ++*a;
  for (KernelStore& store : kernel.stores) ++store.node, ++store.at, ++store.holds;
  ASSERT_TRUE(verify_kernel(kernel).ok());
  simplify_kernel(&kernel);
  EXPECT_EQ(print_kernel(kernel), kStores);
}

TEST(StoreAt, Verified) {
  const Kernel kernel = parsed(kStores);
  const auto says = [&](const char* what, auto change) { expect_refused(kernel, what, change); };
  says("no such operand or node", [](Kernel& k) { k.stores[0].at = 7; });
  says("no such operand or node", [](Kernel& k) { k.stores[0].holds = -1; });
  says("an i64 and a bool", [](Kernel& k) { k.stores[0].at = 5; });
  says("an i64 and a bool", [](Kernel& k) { k.stores[0].holds = 0; });
  says("nothing is added", [](Kernel& k) { k.stores[0].node = 4, k.operands[2].dtype = DType::kBool; });
  says("overlaps what o1 loads", [](Kernel& k) { k.operands[2].pointer = 1, k.operands[2].offset = 1000; });
  says("overlaps another store", [](Kernel& k) { k.operands[3].pointer = 2, k.operands[3].offset = 1000; });
}

const char* kWithin = R"("within" sizes [3] pointers 2 {
  o0 = i64 p0 + 0 {1}
  o1 = i64 p1 + 0 {1}
  n0 = load i64 o0
  n1 = const i64 5
  n2 = within i64 n0, n1
  store o1, n2
})";

// Nothing is stored by a kernel that fails, be it at its last point.
TEST(Within, Evaluated) {
  const Kernel kernel = parsed(kWithin);
  EXPECT_EQ(print_kernel(kernel), kWithin);
  for (const int64_t last : {int64_t{4}, int64_t{5}, int64_t{-1}, INT64_MIN}) {
    int64_t index[] = {0, 3, last}, out[3] = {7, 7, 7};
    void* pointers[] = {index, out};
    EXPECT_EQ(eval_kernel(kernel, pointers, nullptr), last == 4);
    EXPECT_EQ(out[1], last == 4 ? 3 : 7);
  }
}

// Nothing that is lowered for CPUs has one.
TEST(LoadAt, NotForX86) {
  for (const auto& [text, name] : {std::pair<const char*, const char*>{kText, "load_at"}, {kWithin, "within"}, {kStores, "stores at computed places"}}) {
    EXPECT_TRUE(for_gpus(parsed(text)));
    std::unique_ptr<codegen::CompiledKernel> compiled;
    const base::Status status = codegen::compile_kernel(parsed(text), codegen::cpu_features(), {}, &compiled);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.message().find(std::string("no code for ") + name), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace dynvm::ir
