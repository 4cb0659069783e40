// The verifier: the sample verifies; each broken rule is found.
#include "ir/verify.h"

#include <gtest/gtest.h>

#include <functional>

#include "ir/effects.h"
#include "ir/text.h"

namespace dynvm::ir {
namespace {

constexpr char kGood[] = R"ir(
trace 1 "t" storages 4
%0:o = slot #0
%1:o = const_obj @0 "T"
guard_type %0, %1 !snap0
%3:t = unbox_tensor %0 !snap0 -> f32[4,8]{8,1} s0
%4:f = const_float 2.0
%5 = aten "aten::mul.Tensor" (%3, $f64 %4) -> (f32[4,8]{8,1} s1) !snap0
%6:t = result %5 #0 -> f32[4,8]{8,1} s1
%7:o = wrap %6 sunk
%8:o = build_tuple %7, %4 sunk
kernel k0 (%6, %6, %4)
%10:b = lt_float %4, %4
guard_true %10 !snap1
loop !snap1
snap0: root unit 0 [=]
snap1: root unit 4 [%8, %4]
kernel k0 "k" sizes [32] pointers 4 scalars (f64) {
  o0 = f32 p1 + 0 {1}
  o1 = f32 p1 + 32 {1}
  n0 = load f32 o0
  n1 = scalar f32 s0
  n2 = mul f32 n0, n1
  store o1, n2
}
)ir";

std::string verdict(const std::function<void(Trace&)>& change) {
  Trace trace;
  base::Status status = parse_trace(kGood, &trace);
  if (!status.ok()) return "does not parse: " + status.message();
  change(trace);
  return verify_trace(trace).message();
}

bool finds(const std::string& what, const std::function<void(Trace&)>& change) {
  std::string message = verdict(change);
  bool found = message.find(what) != std::string::npos;
  if (!found) ADD_FAILURE() << "said: " << message;
  return found;
}

TEST(Verify, AcceptsAGoodTrace) {
  EXPECT_EQ(verdict([](Trace&) {}), "");
}

TEST(Verify, FindsBrokenStructure) {
  EXPECT_TRUE(finds("not defined before", [](Trace& t) { t.operands[t.insts[2].first] = 2; }));
  EXPECT_TRUE(finds("takes 2 operands", [](Trace& t) { t.insts[2].count = 1; }));
  EXPECT_TRUE(finds("operands out of range", [](Trace& t) { t.insts[2].count = 1000; }));
  EXPECT_TRUE(finds("object out of range", [](Trace& t) { t.insts[1].imm = 5; }));
  EXPECT_TRUE(finds("call out of range", [](Trace& t) { t.insts[5].imm = 1; }));
  EXPECT_TRUE(finds("does not end", [](Trace& t) { t.insts.pop_back(); }));
  EXPECT_TRUE(finds("does not stand last", [](Trace& t) { t.insts.push_back(t.insts[4]); }));
  EXPECT_TRUE(finds("empty", [](Trace& t) { t.insts.clear(); }));
}

TEST(Verify, FindsWrongTypes) {
  EXPECT_TRUE(finds("wrong result type", [](Trace& t) { t.insts[0].type = Type::kInt; }));
  EXPECT_TRUE(finds("has the wrong type", [](Trace& t) { t.operands[t.insts[11].first] = 4; }));
  EXPECT_TRUE(finds("has the wrong type", [](Trace& t) { t.operands[t.insts[7].first] = 0; }));
  EXPECT_TRUE(finds("metadata", [](Trace& t) { t.insts[3].meta = -1; }));
  EXPECT_TRUE(finds("metadata", [](Trace& t) { t.insts[3].meta = 77; }));
}

TEST(Verify, FindsSnapshotFaults) {
  EXPECT_TRUE(finds("needs a snapshot", [](Trace& t) { t.insts[2].snapshot = kNoSnapshot; }));
  EXPECT_TRUE(finds("snapshot out of range", [](Trace& t) { t.insts[2].snapshot = 9; }));
  EXPECT_TRUE(finds("names no value", [](Trace& t) { t.frames[t.snapshots[0].frames[0]].slots.push_back(3); }));
  EXPECT_TRUE(finds("names no value", [](Trace& t) { t.frames[t.snapshots[1].frames[0]].slots.push_back(6); }));
  EXPECT_TRUE(finds("no frame", [](Trace& t) { t.snapshots[1].frames.clear(); }));
  EXPECT_TRUE(finds("root", [](Trace& t) { t.frames[t.snapshots[1].frames[0]].function = 0; }));
}

TEST(Verify, FindsTensorFaults) {
  EXPECT_TRUE(finds("unsound", [](Trace& t) { t.metas[0].storage = 9; }));
  EXPECT_TRUE(finds("unsound", [](Trace& t) { t.metas[0].strides.pop_back(); }));
  EXPECT_TRUE(finds("unsound", [](Trace& t) { t.metas[0].shown = {1}; }));
  EXPECT_TRUE(finds("other strides", [](Trace& t) {
    for (TensorMeta& meta : t.metas)
      if (meta.storage == 1) meta.shown = {1, 4};
    t.insts[8] = t.insts[7];
    t.insts[8].sunk = false;
    t.insts[8].snapshot = 0;
    t.snapshots[1].frames = t.snapshots[0].frames;
  }));
  EXPECT_TRUE(finds("no such result", [](Trace& t) { t.insts[6].imm = 1; }));
  EXPECT_TRUE(finds("another storage", [](Trace& t) { t.calls[0].result_alias[0] = 0; }));
  EXPECT_TRUE(finds("no argument's", [](Trace& t) { t.calls[0].args.pop_back(); }));
  EXPECT_TRUE(finds("metadata differs", [](Trace& t) {
    t.metas.push_back(t.metas[t.insts[6].meta]);
    t.metas.back().sizes[0] = 3;
    t.insts[6].meta = static_cast<int32_t>(t.metas.size()) - 1;
  }));
}

TEST(Verify, KnowsTheDimsOfATensorsSize) {
  Trace trace;
  const base::Status status = parse_trace(R"ir(
trace 1 "t" storages 1
%0:o = slot #0
%1:t = unbox_tensor %0 !snap0 -> f32[4,8]{8,1} s0 open -9223372036854775807
%2:i = tensor_size %1 #1
leave !snap0
snap0: root unit 0 [=]
)ir", &trace);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(verify_trace(trace).message(), "");
  trace.insts[2].imm = 2;
  EXPECT_NE(verify_trace(trace).message().find("no such dim"), std::string::npos);
}

constexpr char kIndex[] = R"ir(
trace 1 "t" storages 2
%0:o = slot #0
%1:i = unbox_int %0 !snap0
%2:o = slot #1
%3:t = unbox_tensor %2 !snap0 -> f32[4,8]{8,1} s0
%4 = aten "aten::select.int" (%3, 0, $%1) -> (f32[8]{1} s1 alias 0) !snap0
leave !snap0
snap0: root unit 0 [=, =]
)ir";

TEST(Verify, OnlyAViewAtAChangingIndexIsMemoryOfItsOwn) {
  Trace trace;
  ASSERT_TRUE(parse_trace(kIndex, &trace).ok());
  EXPECT_EQ(verify_trace(trace).message(), "");
  trace.calls[0].name = "aten::add";
  EXPECT_NE(verify_trace(trace).message().find("another storage"), std::string::npos);
  trace.calls[0].name = "aten::select";
  trace.calls[0].args[2] = trace.calls[0].args[1];
  trace.insts[4].count = 1;
  EXPECT_NE(verify_trace(trace).message().find("another storage"), std::string::npos);
}

TEST(Verify, FindsSunkAndKernelFaults) {
  EXPECT_TRUE(finds("cannot be sunk", [](Trace& t) { t.insts[10].sunk = true; }));
  EXPECT_TRUE(finds("only exits make", [](Trace& t) { t.insts[8].sunk = false; t.operands[t.insts[8].first + 1] = 0; }));
  EXPECT_TRUE(finds("another storage", [](Trace& t) { t.operands[t.insts[9].first] = 3; }));
  EXPECT_TRUE(finds("another number", [](Trace& t) { t.insts[9].count = 2; }));
  EXPECT_TRUE(finds("kernel", [](Trace& t) { t.kernels[0].stores[0].node = 44; }));
  EXPECT_TRUE(finds("pointers", [](Trace& t) { t.kernels[0].num_pointers = 5; }));
}

TEST(Effects, ViewsThatMayOverlap) {
  auto view = [](std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset) {
    TensorMeta meta;
    meta.storage = 0;
    meta.sizes = std::move(sizes);
    meta.strides = std::move(strides);
    meta.offset = offset;
    return meta;
  };
  const TensorMeta left = view({8, 64}, {256, 1}, 0), right = view({8, 64}, {256, 1}, 192), wide = view({8, 100}, {256, 1}, 128);
  EXPECT_FALSE(may_overlap(left, right));  // columns of one matrix
  EXPECT_FALSE(may_overlap(left, wide));
  EXPECT_TRUE(may_overlap(right, wide));
  EXPECT_TRUE(may_overlap(left, left));
  EXPECT_TRUE(may_overlap(view({64, 8}, {1, 256}, 0), right));  // other strides: only whole intervals are told apart
  EXPECT_FALSE(may_overlap(view({4}, {1}, 0), view({2, 2}, {2, 1}, 4)));
  EXPECT_FALSE(may_overlap(left, view({0, 64}, {256, 1}, 0)));
  TensorMeta other = left;
  other.storage = 1;
  EXPECT_FALSE(may_overlap(left, other));
  other = right;
  other.open = kOpenLayout;
  EXPECT_TRUE(may_overlap(left, other));
}

}  // namespace
}  // namespace dynvm::ir
