// Which numbers native_dropout gives to which element (drawing.h): cases as measured on an H100 with torch 2.11, whose 132 multiprocessors hold eight blocks each.
#include "ir/drawing.h"

#include <gtest/gtest.h>

#include "ir/eval.h"
#include "ir/passes/pass.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace dynvm::ir {
namespace {

constexpr int32_t kThreads = 132 * 8 * 256;

TensorMeta tensor(std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset = 0) {
  TensorMeta meta;
  meta.sizes = std::move(sizes);
  meta.strides = std::move(strides);
  meta.offset = offset;
  return meta;
}
Drawing drawing(const TensorMeta& meta, int8_t vector = 4) { return drawing_of({kThreads, vector}, meta).value_or(Drawing{}); }

TEST(Drawing, FormsBySize) {
  const auto form = [](int64_t n, int8_t vector) { return drawing(tensor({n}, {1}), vector).form; };
  EXPECT_EQ(form(8, 4).threads, 256);
  EXPECT_EQ(form(1001, 4).threads, 1024);
  EXPECT_EQ(form(3000008, 4).threads, kThreads);
  EXPECT_EQ(form(1000004, 4).vector, 4);
  EXPECT_EQ(form(100002, 4).vector, 2);
  EXPECT_EQ(form(1001, 4).vector, 1);
  EXPECT_EQ(form(3000008, 8).vector, 8);
  EXPECT_EQ(form(1000004, 8).vector, 4);
  EXPECT_EQ(drawing(tensor({8}, {1})).increment, 4);
  EXPECT_EQ(drawing(tensor({4 * kThreads}, {1})).increment, 4);
  EXPECT_EQ(drawing(tensor({4 * kThreads + 1}, {1})).increment, 8);
  EXPECT_EQ(drawing(tensor({3000008}, {1}), 8).increment, 12);
}

TEST(Drawing, FormsByLayout) {
  EXPECT_EQ(drawing(tensor({2, 3, 4}, {12, 1, 3})).form.vector, 4);               // dense in another order
  EXPECT_EQ(drawing(tensor({2, 3, 4}, {12, 1, 3})).strides, (std::vector<int64_t>{12, 1, 3}));
  EXPECT_EQ(drawing(tensor({2, 1, 4}, {4, 999, 1})).form.vector, 4);              // a size of 1 has any stride
  EXPECT_EQ(drawing(tensor({2, 4}, {8, 1})).form.vector, 1);                      // gaps
  EXPECT_EQ(drawing(tensor({2, 4}, {8, 1})).strides, (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(drawing(tensor({4, 2}, {0, 1})).form.vector, 1);                      // in one place
  EXPECT_EQ(drawing(tensor({5, 3}, {1, 5})).strides, (std::vector<int64_t>{3, 1}));  // of an odd number: as indexes count
  EXPECT_EQ(drawing(tensor({16}, {1}, 16), 8).form.vector, 8);
  EXPECT_EQ(drawing(tensor({16}, {1}, 4), 8).form.vector, 4);
  EXPECT_EQ(drawing(tensor({16}, {1}, 3), 8).form.vector, 1);
}

TEST(Drawing, Unknown) {
  EXPECT_FALSE(drawing_of({}, tensor({8}, {1})));
  EXPECT_FALSE(drawing_of({kThreads, 4}, tensor({0, 8}, {8, 1})));
  TensorMeta open = tensor({8}, {1});
  open.open = 1;
  EXPECT_FALSE(drawing_of({kThreads, 4}, open));
}

// Layouts, sizes, places and dtypes; a library's random call between. What kernels store is what the reference evaluator computes, call by call, to the bit.
TEST(Drawing, FusedDropoutDrawsTheSame) {
  struct Case {
    const char *dtype, *look;
    int elements;
  };
  for (const Case& each : {Case{"f32", "[4,6]{6,1}", 24}, Case{"f32", "[3,5,2]{1,3,15}", 30}, Case{"f16", "[40]{1}", 40}, Case{"bf16", "[3,5]{5,1}", 15}, Case{"f64", "[2,3,4]{12,1,3}", 24},
                           Case{"f32", "[2,4]{8,1}", 12}, Case{"f16", "[700,4]{4,1}", 2800}}) {
    const std::string x = std::string(each.dtype) + each.look;
    const auto like = [&](const char* dtype, int storage) {
      const std::string look = std::string(each.look) == "[2,4]{8,1}" ? "[2,4]{4,1}" : each.look;
      return std::string(dtype) + look + " s" + std::to_string(storage) + " device 1 0";
    };
    const std::string call = " random stream 512 x " + std::string(std::string(each.dtype) == "f64" ? "2" : std::string(each.dtype) == "f32" ? "4" : "8") + " !snap0\n";
    const std::string text = "trace 1 \"drawing\" storages 6\n%0:o = slot #0\n%x:t = unbox_tensor %0 !snap0 -> " + x + " s0 device 1 0\n" +
                             "%c1 = aten \"aten::native_dropout\" (%x, 0.3, true) -> (" + like(each.dtype, 1) + ", " + like("bool", 2) + ")" + call +
                             "%y:t = result %c1 #0 -> " + like(each.dtype, 1) + "\n%m:t = result %c1 #1 -> " + like("bool", 2) + "\n" +
                             "%c2 = aten \"aten::native_dropout\" (%y, 0.5, none) -> (" + like(each.dtype, 3) + ", " + like("bool", 4) + ")" + call +
                             "%z:t = result %c2 #0 -> " + like(each.dtype, 3) + "\n" +
                             "%c3 = aten \"aten::mul.Tensor\" (%z, %x) -> (" + like(each.dtype, 5) + ") !snap0\n%w:t = result %c3 #0 -> " + like(each.dtype, 5) + "\n" +
                             "%oy:o = wrap %y\n%om:o = wrap %m\n%ow:o = wrap %w\nleave !snap1\nsnap0: root unit 0 [=]\nsnap1: root unit 4 [%oy, %om, %ow]\n";
    Trace trace;
    ASSERT_TRUE(parse_trace(text, &trace).ok()) << parse_trace(text, &trace).message() << text;
    ASSERT_TRUE(verify_trace(trace).ok()) << verify_trace(trace).message();
    Trace fused = trace;
    PassOptions options;
    options.verify = true;
    options.fuse_cuda = true;
    options.only = {"fuse", "clean"};
    const base::Status status = run_passes(fused, options);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(std::count_if(fused.insts.begin(), fused.insts.end(), [](const Inst& inst) { return inst.op == Op::k_aten && !inst.sunk; }), 0) << print_trace(fused);
    EXPECT_EQ(std::count_if(fused.insts.begin(), fused.insts.end(), [](const Inst& inst) { return inst.op == Op::k_draw_offset; }), 2) << print_trace(fused);
    Evaluation expected, found;
    expected.memory.resize(1);
    for (int k = 0; k < each.elements; ++k) {
      uint8_t bytes[8];
      store_number(bytes, trace.metas[0].dtype, k % 7 == 3 ? -0.0 : 0.25 * k - 2);
      expected.memory[0].insert(expected.memory[0].end(), bytes, bytes + dtype_size(trace.metas[0].dtype));
    }
    found.memory = expected.memory;
    ASSERT_TRUE(evaluate(trace, &expected).ok()) << evaluate(trace, &expected).message();
    ASSERT_TRUE(evaluate(fused, &found).ok());
    EXPECT_EQ(found.generator.offset, expected.generator.offset);
    EXPECT_GT(found.generator.offset, 40);
    for (size_t storage : {0u, 1u, 2u, 5u}) EXPECT_EQ(found.memory[storage], expected.memory[storage]) << x << " s" << storage << "\n" << print_trace(fused);
    const std::vector<uint8_t>& mask = expected.memory[2];
    if (each.elements >= 24) {
      EXPECT_TRUE(std::count(mask.begin(), mask.end(), 0) > 0 && std::count(mask.begin(), mask.end(), 1) > 0);
    }
  }
}

}  // namespace
}  // namespace dynvm::ir
