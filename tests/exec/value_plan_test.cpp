// Lives and slots of values (codegen/trace/value_plan.h).
#include "codegen/trace/value_plan.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace dynvm::codegen {
namespace {

ir::Trace parse(const std::string& body) {
  ir::Trace trace;
  base::Status status = ir::parse_trace("trace 1 \"t\" storages 0\n" + body, &trace);
  EXPECT_TRUE(status.ok()) << status.message();
  return trace;
}

TEST(ValuePlan, SnapshotKeepsAValueUntilItsLastExit) {
  ir::Trace trace = parse(R"(
%0:o = slot #0
%1:o = get_iter %0 !snap0
guard_bound %0 !snap1
guard_bound %0 !snap1
guard_bound %0 !snap0
loop !snap0
snap0: root unit 0 [=]
snap1: root unit 2 [%1]
)");
  ValuePlan plan = plan_values(trace);
  EXPECT_EQ(plan.values[1].last_use, 3u);
  EXPECT_TRUE(plan.values[1].owned);
  ASSERT_EQ(plan.dying[3].size(), 1u);
}

TEST(ValuePlan, SunkInstructionsUseTheirOperandsAtTheExit) {
  ir::Trace trace = parse(R"(
%0:o = slot #0
%1:i = unbox_int %0 !snap0
%2:o = box_int %1 sunk
%3:o = build_tuple %2, %0 sunk
guard_bound %0 !snap1
loop !snap0
snap0: root unit 0 [=]
snap1: root unit 2 [%3]
)");
  ValuePlan plan = plan_values(trace);
  EXPECT_EQ(plan.values[1].last_use, 4u);
  EXPECT_EQ(plan.values[2].slot, ValuePlan::kNoSlot);
  EXPECT_EQ(plan.values[3].slot, ValuePlan::kNoSlot);
}

TEST(ValuePlan, LoadUsedByGuardsOnlyIsBorrowed) {
  ir::Trace trace = parse(R"(
%0:o = slot #0
%1:o = load_field %0 #16
guard_bound %1 !snap0
%3:o = load_field %1 #16
guard_bound %3 !snap0
loop !snap0
snap0: root unit 0 [=]
)");
  ValuePlan plan = plan_values(trace);
  EXPECT_FALSE(plan.values[1].owned);
  EXPECT_FALSE(plan.values[3].owned);
}

TEST(ValuePlan, LoadThatOutlivesACallIsOwned) {
  ir::Trace trace = parse(R"(
%0:o = slot #0
%1:o = load_field %0 #16
%2:o = get_iter %0 !snap0
guard_bound %1 !snap0
loop !snap0
snap0: root unit 0 [=]
)");
  EXPECT_TRUE(plan_values(trace).values[1].owned);
}

TEST(ValuePlan, ArgumentOfACallIsOwned) {
  ir::Trace trace = parse(R"(
%0:o = slot #0
%1:o = load_field %0 #16
%2:o = get_iter %1 !snap0
loop !snap0
snap0: root unit 0 [=]
)");
  EXPECT_TRUE(plan_values(trace).values[1].owned);
}

TEST(ValuePlan, ItemThatOutlivesItsTupleIsOwned) {
  ir::Trace trace = parse(R"(
%0:o = slot #0
%1:o = build_tuple %0
%2:o = tuple_item %1 #0
%3:o = tuple_item %1 #0
guard_bound %2 !snap0
guard_bound %3 !snap0
loop !snap0
snap0: root unit 0 [=]
)");
  ValuePlan plan = plan_values(trace);
  EXPECT_TRUE(plan.values[2].owned);
  EXPECT_TRUE(plan.values[3].owned);
}

TEST(ValuePlan, SlotsAreUsedAgain) {
  ir::Trace trace = parse(R"(
%0:o = slot #0
%1:i = unbox_int %0 !snap0
%2:i = add_int %1, %1 !snap0
%3:i = add_int %2, %2 !snap0
%4:i = add_int %3, %3 !snap0
%5:o = box_int %4
loop !snap1
snap0: root unit 0 [=]
snap1: root unit 0 [%5]
)");
  ValuePlan plan = plan_values(trace);
  EXPECT_EQ(plan.num_slots, 2);
  for (ir::Ref ref = 2; ref <= 5; ++ref) EXPECT_NE(plan.values[ref].slot, plan.values[ref - 1].slot);
}

// What slot 2 was goes behind the first kernel, as no exit finds it from there on, what slot 4 was behind the kernel that follows its guard. What slot 1 was is read, what slot 3 was is compared, and slot 0 keeps
// what it has.
TEST(ValuePlan, RootSlotsAreSpentWhereNoExitNeedsThem) {
  ir::Trace trace;
  base::Status status = ir::parse_trace(R"(
trace 1 "t" storages 3
%0:o = slot #0
%1:o = slot #1
%2:t = unbox_tensor %0 !snap0 -> f32[4]{1} s0
%3:t = unbox_tensor %1 !snap0 -> f32[4]{1} s1
%4 = aten "aten::neg" (%2) -> (f32[4]{1} s2) sunk
%5:t = result %4 #0 -> f32[4]{1} s2
kernel k0 (%2, %5)
%7:o = slot #4
guard_bound %7 !snap1
kernel k0 (%3, %5)
%10:o = wrap %5
%11:o = slot #3
%12:o = const_obj @0 "x"
guard_is %11, %12 #-1 !snap1
kernel k0 (%2, %5)
loop !snap2
snap0: root unit 0 [=, =, =, =, =]
snap1: root unit 2 [=, %0, %0, %0, %0]
snap2: root unit 4 [=, %10, %10, %10, %10]
kernel k0 "neg" sizes [4] pointers 3 {
  o0 = f32 p0 + 0 {1}
  o1 = f32 p2 + 0 {1}
  n0 = load f32 o0
  n1 = neg f32 n0
  store o1, n1
}
)", &trace);
  ASSERT_TRUE(status.ok()) << status.message();
  ValuePlan plan = plan_values(trace);
  EXPECT_EQ(plan.spent[6], (std::vector<int32_t>{2}));
  EXPECT_EQ(plan.spent[9], (std::vector<int32_t>{4}));
  for (ir::Ref other : {4, 14, 15}) EXPECT_TRUE(plan.spent[other].empty());
}

}  // namespace
}  // namespace dynvm::codegen
