// The textual form: what is printed parses back to the same; what is wrong is refused with its line.
#include "ir/text.h"

#include <gtest/gtest.h>

#include "ir/verify.h"
#include "tests/ir/sample.h"

namespace dynvm::ir {
namespace {

std::string error_of(const std::string& text) {
  Trace trace;
  base::Status status = parse_trace(text, &trace);
  return status.ok() ? "" : status.message();
}

TEST(Text, PrintsWhatItParsed) {
  Trace trace;
  base::Status status = parse_trace(kSample, &trace);
  ASSERT_TRUE(status.ok()) << status.message();
  std::string once = print_trace(trace);
  Trace again;
  status = parse_trace(once, &again);
  ASSERT_TRUE(status.ok()) << status.message() << "\n" << once;
  EXPECT_EQ(print_trace(again), once);
  EXPECT_EQ(trace.insts.size(), again.insts.size());
  EXPECT_EQ(trace.operands, again.operands);
  EXPECT_EQ(trace.metas, again.metas);
  EXPECT_EQ(trace.kernels, again.kernels);
}

TEST(Text, KeepsEveryField) {
  Trace trace;
  ASSERT_TRUE(parse_trace(kSample, &trace).ok());
  EXPECT_EQ(trace.id, 7);
  EXPECT_EQ(trace.name, "train.py:41 \"step\"");
  EXPECT_EQ(trace.num_storages, 8);
  ASSERT_EQ(trace.calls.size(), 2u);
  const AtenCall& call = trace.calls[0];
  EXPECT_EQ(call.name, "aten::addcmul");
  EXPECT_EQ(call.overload, "Tensor");
  EXPECT_EQ(call.args.size(), 18u);
  EXPECT_EQ(call.args[1].operands, std::vector<int32_t>{-1});
  EXPECT_EQ(call.args[2].kind, AtenArg::kScalar);
  EXPECT_EQ(call.args[3].kind, AtenArg::kScalarTensor);
  EXPECT_EQ(call.args[3].dtype, DType::kF64);
  EXPECT_EQ(call.args[4].f, 1.5);
  EXPECT_EQ(call.args[5].i, -2);
  EXPECT_TRUE(call.args[17].is_optional_list);
  EXPECT_EQ(call.results[1], -1);
  EXPECT_EQ(call.result_alias, (std::vector<int32_t>{-1, -1, 0}));
  EXPECT_EQ(call.mutates, (std::vector<int32_t>{0, 16}));
  EXPECT_TRUE(call.defines_sizes && may_leave(trace, call));
  EXPECT_FALSE(opens(trace, call));  // what is written in place looks as it did
  EXPECT_EQ(trace.metas[call.results[2]].open, kOpenLayout | 1u);
  EXPECT_TRUE(call.is_random && call.grad_mode && call.inference_mode && call.in_backward);
  EXPECT_EQ(call.stream, (RandomStream{270336, 4}));
  EXPECT_EQ(call.count, 3);
  const TensorMeta& meta = trace.metas[1];
  EXPECT_EQ(meta.dtype, DType::kBF16);
  EXPECT_EQ(meta.offset, 6);
  EXPECT_EQ(meta.device_type, 1);
  EXPECT_FALSE(meta.is_leaf);
  EXPECT_TRUE(meta.inference);
  EXPECT_TRUE(trace.metas[0].is_parameter && trace.metas[0].requires_grad);
  ASSERT_EQ(trace.wraps.size(), 1u);
  EXPECT_EQ(trace.wraps[0].grad_fn, "NegBackward0");
  EXPECT_EQ(trace.wraps[0].forward.size(), 2u);
  EXPECT_TRUE(trace.wraps[0].freed);
  EXPECT_TRUE(trace.torch_states[0].autocast_cpu);
  EXPECT_EQ(trace.torch_states[0].autocast_cuda_dtype, 5);
  const SnapshotFrame& frame = trace.frames[trace.snapshots[1].frames[1]];
  EXPECT_EQ(frame.continuation, 3);
  EXPECT_EQ(frame.unit, 20);
  EXPECT_NE(frame.code, trace.frames[trace.snapshots[1].frames[0]].code);
  EXPECT_EQ(trace.frames[trace.snapshots[0].frames[0]].slots, (std::vector<Ref>{kSlotUnchanged, kSlotNull}));
}

TEST(Text, NamesTheLineOfAnError) {
  EXPECT_EQ(error_of("trace 1 \"\" storages 0\nnonsense\n"), "line 2: no operation is called nonsense");
  EXPECT_EQ(error_of("trace 1 \"\" storages 0\n%a:o = slot #0\nguard_bound %b !snap0\n"), "line 3: %b is not defined before");
  EXPECT_EQ(error_of("trace 1 \"\" storages 0\n%a:o = slot #0\n%a:o = slot #1\n"), "line 3: %a is defined twice");
  EXPECT_NE(error_of("trace 1 \"\" storages 0\n%a:q = slot #0\n"), "");
  EXPECT_NE(error_of("trace 1 \"\" storages 0\n%a:o = slot #0 surplus\n"), "");
  EXPECT_NE(error_of("trace 1 \"\" storages 0\n%a:t = unbox_tensor %a\n"), "");
  EXPECT_NE(error_of("trace 1 \"\" storages 0\nsnap1: root unit 0 []\n"), "");
  EXPECT_NE(error_of("trace 1 \"unfinished storages 0\n"), "");
  EXPECT_NE(error_of(""), "");
}

// No prefix of a text makes the parser read past it or hang.
TEST(Text, SurvivesEveryPrefix) {
  std::string sample = kSample;
  for (size_t length = 0; length < sample.size(); ++length) {
    Trace trace;
    (void)parse_trace(std::string_view(sample).substr(0, length), &trace).ok();
  }
}

TEST(Text, KeepsSymbols) {
  Trace trace;
  const base::Status status = parse_trace(R"ir(trace 1 "t" storages 2 symbols [1009, 1013]
%0:o = slot #0
%x:t = unbox_tensor %0 !snap0 -> f32[1009,3]{3,1} s0 offset 2026 open -9223372036854775807 symbolic
%c = aten "aten::relu" (%x) -> (f32[1009,3]{3,1} s1 open -9223372036854775807 symbolic) follows !snap0
%y:t = result %c #0 -> f32[1009,3]{3,1} s1 open -9223372036854775807 symbolic
leave !snap0
snap0: root unit 0 [=]
)ir", &trace);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(trace.symbols, (std::vector<int64_t>{1009, 1013}));
  EXPECT_TRUE(trace.metas[0].symbolic && trace.calls[0].follows);
  EXPECT_FALSE(opens(trace, trace.calls[0]) || may_leave(trace, trace.calls[0]));
  EXPECT_TRUE(verify_trace(trace).ok()) << verify_trace(trace).message();
  Trace again;
  ASSERT_TRUE(parse_trace(print_trace(trace), &again).ok());
  EXPECT_EQ(again.symbols, trace.symbols);
  EXPECT_EQ(again.metas, trace.metas);
  trace.calls[0].follows = false;
  EXPECT_TRUE(opens(trace, trace.calls[0]) && may_leave(trace, trace.calls[0]));  // it is run, and compared
}

TEST(Text, KeepsSums) {
  const auto with_sum = [](const char* sum) {
    return std::string("trace 1 \"t\" storages 1 symbols [1009, 1013, 1019]") + sum + "\nleave !snap0\nsnap0: root unit 0 [=]\n";
  };
  Trace trace;
  ASSERT_TRUE(parse_trace(with_sum(" sum s1 [1, 1009] sum s2 [2018, 1013]"), &trace).ok());
  EXPECT_EQ(trace.sums, (std::vector<SymbolSum>{{1, {1, 1009}}, {2, {2018, 1013}}}));
  EXPECT_TRUE(verify_trace(trace).ok()) << verify_trace(trace).message();
  Trace again;
  ASSERT_TRUE(parse_trace(print_trace(trace), &again).ok());
  EXPECT_EQ(again.sums, trace.sums);
  for (const char* wrong : {" sum s3 [1, 1009]", " sum s1 [1, 1013]", " sum s1 [1, 1009] sum s1 [2, 1009]", " sum s1 [0, 1009]"}) {
    Trace bad;
    ASSERT_TRUE(parse_trace(with_sum(wrong), &bad).ok()) << wrong;
    EXPECT_FALSE(verify_trace(bad).ok()) << wrong;
  }
}

}  // namespace
}  // namespace dynvm::ir
