// The memory plan: kinds, lifetimes, no overlap of what lives at the same time.
#include "ir/plan.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"

namespace dynvm::ir {
namespace {

Trace parsed(const char* text) {
  Trace trace;
  base::Status status = parse_trace(text, &trace);
  EXPECT_TRUE(status.ok()) << status.message();
  status = verify_trace(trace);
  EXPECT_TRUE(status.ok()) << status.message();
  return trace;
}

constexpr char kChain[] = R"ir(
trace 1 "t" storages 6
%0:o = slot #0
%x:t = unbox_tensor %0 !snap0 -> f32[100]{1} s0
%c1 = aten "aten::exp" (%x) -> (f32[100]{1} s1) !snap0
%a:t = result %c1 #0 -> f32[100]{1} s1
%c2 = aten "aten::exp" (%a) -> (f32[100]{1} s2) !snap0
%b:t = result %c2 #0 -> f32[100]{1} s2
%c3 = aten "aten::exp" (%b) -> (f32[100]{1} s3) !snap0
%c:t = result %c3 #0 -> f32[100]{1} s3
%c4 = aten "aten::odd" (%c) -> (f32[100]{1} s4) !snap0
%d:t = result %c4 #0 -> f32[100]{1} s4
%c5 = aten "aten::exp" (%d) -> (f32[100]{1} s5) !snap0
%e:t = result %c5 #0 -> f32[100]{1} s5
%out:o = wrap %e
%seen:o = wrap %a sunk
%f:f = read_scalar %e !snap1
loop !snap2
snap0: root unit 0 [=]
snap1: root unit 0 [%seen]
snap2: root unit 0 [%out]
)ir";

TEST(Plan, DecidesKinds) {
  Trace trace = parsed(kChain);
  Plan plan = make_plan(trace, [](const AtenCall& call) { return call.name != "aten::odd"; });
  EXPECT_EQ(plan.storages[0].kind, StoragePlan::kInput);
  EXPECT_EQ(plan.storages[1].kind, StoragePlan::kArena);
  EXPECT_EQ(plan.storages[4].kind, StoragePlan::kResult);
  EXPECT_EQ(plan.storages[5].kind, StoragePlan::kFresh);
  EXPECT_EQ(plan.storages[1].bytes, 400);
  // s1 is seen by the snapshot of read_scalar, s2 and s3 meet in the call that makes s3.
  EXPECT_EQ(plan.arena_bytes, 3 * 448);
  EXPECT_NE(plan.storages[2].offset, plan.storages[1].offset);
  EXPECT_NE(plan.storages[2].offset, plan.storages[3].offset);
}

TEST(Plan, SharesMemoryOfDeadStorages) {
  Trace trace = parsed(kChain);
  trace.frames[trace.snapshots[1].frames[0]].slots.clear();  // nobody sees s1 any more
  Plan plan = make_plan(trace, [](const AtenCall&) { return true; });
  EXPECT_EQ(plan.storages[3].offset, plan.storages[1].offset);
  EXPECT_EQ(plan.storages[4].kind, StoragePlan::kArena);
  EXPECT_EQ(plan.arena_bytes, 2 * 448);
}

// On a GPU what is large is lent, beside an arena for the rest; what escapes or a call brings stays what it is.
TEST(Plan, LendsWhatIsLarge) {
  std::string text = kChain;
  for (size_t at = 0; (at = text.find("f32[100]{1} s", at)) != std::string::npos;) {
    at = text.find_first_of(" )\n", at + 12);
    text.insert(at, " device 1 0");
  }
  Trace trace = parsed(text.c_str());
  const auto planned = [](const AtenCall& call) { return call.name != "aten::odd"; };
  Plan plan = make_plan(trace, planned, {400});
  for (int storage : {1, 2, 3}) EXPECT_EQ(plan.storages[storage].kind, StoragePlan::kLent);
  EXPECT_EQ(plan.storages[0].kind, StoragePlan::kInput);
  EXPECT_EQ(plan.storages[4].kind, StoragePlan::kResult);
  EXPECT_EQ(plan.storages[5].kind, StoragePlan::kFresh);
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_EQ(make_plan(trace, planned, {401}).arena_bytes, 3 * 448);
  EXPECT_EQ(make_plan(parsed(kChain), planned, {400}).arena_bytes, 3 * 448);  // the CPU's
}

// What a run decides the sizes of is made by its call, whatever form that has; views of it are on the same storage.
TEST(Plan, LeavesOpenResultsToTheirCalls) {
  Trace trace = parsed(R"ir(
trace 1 "t" storages 4
%0:o = slot #0
%x:t = unbox_tensor %0 !snap0 -> f32[100]{1} s0
%c1 = aten "aten::nonzero" (%x) -> (i64[60,1]{1,60} s1 open -9223372036854775807) sized !snap0
%n:t = result %c1 #0 -> i64[60,1]{1,60} s1 open -9223372036854775807
%c2 = aten "aten::select.int" (%n, 1, 0) -> (i64[60]{1} s1 open -9223372036854775807 alias 0) !snap0
%v:t = result %c2 #0 -> i64[60]{1} s1 open -9223372036854775807
%c3 = aten "aten::exp" (%v) -> (f32[60]{1} s2 open -9223372036854775807) !snap0
%e:t = result %c3 #0 -> f32[60]{1} s2 open -9223372036854775807
%c4 = aten "aten::sum" (%e, none) -> (f32[]{} s3) !snap0
%s:t = result %c4 #0 -> f32[]{} s3
%f:f = read_scalar %s !snap0
%out:o = wrap %e
loop !snap1
snap0: root unit 0 [=]
snap1: root unit 0 [%out]
)ir");
  Plan plan = make_plan(trace, [](const AtenCall&) { return true; });
  EXPECT_EQ(plan.storages[1].kind, StoragePlan::kResult);
  EXPECT_EQ(plan.storages[2].kind, StoragePlan::kResult);
  EXPECT_EQ(plan.storages[3].kind, StoragePlan::kArena);
}

// A view with a run-time index has a storage of its own in the trace, but the memory of its base.
TEST(Plan, KeepsWhatAMovedViewLooksAt) {
  Trace trace = parsed(R"ir(
trace 1 "t" storages 6
%0:o = slot #0
%1:o = slot #1
%x:t = unbox_tensor %0 !snap0 -> f32[4,100]{100,1} s0
%n:i = unbox_int %1 !snap0
%c1 = aten "aten::exp" (%x) -> (f32[4,100]{100,1} s1) !snap0
%a:t = result %c1 #0 -> f32[4,100]{100,1} s1
%c2 = aten "aten::select.int" (%a, 0, $%n) -> (f32[100]{1} s2 alias 0) !snap0
%b:t = result %c2 #0 -> f32[100]{1} s2
%c3 = aten "aten::exp" (%x) -> (f32[4,100]{100,1} s3) !snap0
%c:t = result %c3 #0 -> f32[4,100]{100,1} s3
%c4 = aten "aten::add.Tensor" (%b, %c, 1) -> (f32[4,100]{100,1} s4) !snap0
%d:t = result %c4 #0 -> f32[4,100]{100,1} s4
%c5 = aten "aten::exp" (%d) -> (f32[4,100]{100,1} s5) !snap0
%e:t = result %c5 #0 -> f32[4,100]{100,1} s5
%out:o = wrap %e
loop !snap1
snap0: root unit 0 [=, =]
snap1: root unit 0 [%out, =]
)ir");
  Plan plan = make_plan(trace, [](const AtenCall&) { return true; });
  EXPECT_NE(plan.storages[1].offset, plan.storages[3].offset);
  EXPECT_NE(plan.storages[1].offset, plan.storages[4].offset);
}

// Random chains: storages alive together never overlap, and the arena is no larger than all of them.
TEST(Plan, NeverOverlapsTheLiving) {
  uint64_t state = 12345;
  auto random = [&](uint64_t n) { state = state * 6364136223846793005ull + 1442695040888963407ull; return (state >> 33) % n; };
  for (int round = 0; round < 200; ++round) {
    std::string text = "trace 1 \"t\" storages 41\n%o:o = slot #0\n%v0:t = unbox_tensor %o !snap0 -> f32[8]{1} s0\n";
    std::vector<int> size{8};
    for (int k = 1; k <= 40; ++k) {
      int n = 1 + static_cast<int>(random(300));
      std::string meta = "f32[" + std::to_string(n) + "]{1} s" + std::to_string(k);
      std::string a = "%v" + std::to_string(random(k)), b = "%v" + std::to_string(k > 4 ? k - 1 - random(4) : random(k));
      text += "%c" + std::to_string(k) + " = aten \"aten::some\" (" + a + ", " + b + ") -> (" + meta + ") !snap0\n";
      text += "%v" + std::to_string(k) + ":t = result %c" + std::to_string(k) + " #0 -> " + meta + "\n";
    }
    text += "loop !snap0\nsnap0: root unit 0 [=]\n";
    Trace trace = parsed(text.c_str());
    Plan plan = make_plan(trace, [](const AtenCall&) { return true; });
    int64_t total = 0;
    for (const StoragePlan& a : plan.storages) {
      if (a.kind != StoragePlan::kArena) continue;
      total += (a.bytes + 63) / 64 * 64;
      EXPECT_EQ(a.offset % 64, 0);
      EXPECT_LE(a.offset + a.bytes, plan.arena_bytes);
      for (const StoragePlan& b : plan.storages) {
        if (&a == &b || b.kind != StoragePlan::kArena) continue;
        bool together = a.first <= b.last && b.first <= a.last;
        bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        EXPECT_FALSE(together && overlap);
      }
    }
    EXPECT_LE(plan.arena_bytes, total);
  }
}

}  // namespace
}  // namespace dynvm::ir
