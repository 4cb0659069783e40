// The compiler as a whole: what it refuses, its entries, the AVX-512 encoding, known kernels, compile time.
#include "codegen/x86/kernel/compile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numeric>

#include "ir/kernel/text.h"
#include "support.h"

namespace dynvm::test {
namespace {

using codegen::CompiledKernel;
using codegen::CpuFeatures;
using ir::DType;
using ir::Kernel;
using ir::KOp;

Kernel parse(const std::string& text) {
  Kernel kernel;
  base::Status status = ir::parse_kernel(text, &kernel);
  EXPECT_TRUE(status.ok()) << status.message();
  return kernel;
}

const char* kSoftmax = R"("softmax" sizes [17, 45] reduce [1] pointers 2 {
  o0 = f32 p0 + 0 {45, 1} o1 = f32 p1 + 0 {45, 1}
  n0 = load f32 o0 n1 = reduce_max f32 n0 n2 = sub f32 n0, n1 n3 = exp f32 n2 n4 = reduce_sum f32 n3 n5 = div f32 n3, n4 store o1, n5 })";

TEST(Compile, RefusesWithAReason) {
  std::unique_ptr<CompiledKernel> compiled;
  base::Status status = codegen::compile_kernel(parse(kSoftmax), CpuFeatures{}, {}, &compiled);
  EXPECT_NE(status.message().find("AVX2"), std::string::npos) << status.message();
  EXPECT_EQ(compiled, nullptr);
  Kernel bad = parse(R"("bad" sizes [4] pointers 1 { o0 = f32 p0 + 0 {1} o1 = f32 p0 + 1 {1} n0 = load f32 o0 store o1, n0 })");
  status = codegen::compile_kernel(bad, codegen::cpu_features(), {}, &compiled);
  EXPECT_NE(status.message().find("overlaps"), std::string::npos) << status.message();
  Kernel far = parse(R"("far" sizes [64] pointers 2 { o0 = f32 p0 + 0 {1000000000} o1 = f32 p1 + 0 {1} n0 = load f32 o0 store o1, n0 })");
  status = codegen::compile_kernel(far, codegen::cpu_features(), {}, &compiled);
  EXPECT_NE(status.message().find("stride"), std::string::npos) << status.message();
}

TEST(Compile, EntriesAndDump) {
  Kernel k = parse(R"("k" sizes [1000] pointers 2 { o0 = f32 p0 + 0 {1} o1 = f32 p1 + 0 {1} n0 = load f32 o0 n1 = neg f32 n0 store o1, n1 })");
  codegen::KernelOptions options;
  options.force_split = true;
  std::unique_ptr<CompiledKernel> compiled;
  ASSERT_TRUE(codegen::compile_kernel(k, codegen::cpu_features(), options, &compiled).ok());
  std::vector<float> in(1000), out(1000, 0.f);
  std::iota(in.begin(), in.end(), 1.f);
  void* pointers[] = {in.data(), out.data()};
  ASSERT_EQ(compiled->range_size(), 1000);
  compiled->range_entry()(pointers, nullptr, 100, 203, nullptr);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(out[i], i >= 100 && i < 203 ? -in[i] : 0.f);
  compiled->range_entry()(pointers, nullptr, 50, 50, nullptr);
  EXPECT_EQ(out[50], 0.f);
  compiled->entry()(pointers, nullptr, nullptr);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(out[i], -in[i]);
  EXPECT_NE(compiled->dump().find("neg f32"), std::string::npos);
  EXPECT_GT(compiled->code_size(), 50u);
}

TEST(Compile, InPlaceSoftmaxReadsBeforeItWrites) {
  std::string text = kSoftmax;
  text.replace(text.find("f32 p1"), 6, "f32 p0");
  Kernel k = parse(text);
  std::mt19937_64 random(1);
  std::vector<Buffer> buffers(2, Buffer{DType::kF32, std::vector<uint8_t>(17 * 45 * 4)});
  fill(&buffers[0], random, false);
  EXPECT_EQ(compare(k, buffers, {}, {8, 0}), "");
}

TEST(Compile, AliasedOutputOfAnEarlierStageIsWrittenLast) {
  // The caller may pass one address for both pointers.
  Kernel k = parse(R"("k" sizes [64] reduce [0] pointers 3 {
    o0 = f32 p0 + 0 {1} o1 = f32 p1 + 0 {1} o2 = f32 p2 + 0 {1}
    n0 = load f32 o0 n1 = neg f32 n0 n2 = reduce_sum f32 n0 n3 = add f32 n0, n2 store o1, n1 store o2, n3 })");
  std::unique_ptr<CompiledKernel> compiled;
  ASSERT_TRUE(codegen::compile_kernel(k, codegen::cpu_features(), {}, &compiled).ok());
  std::vector<float> x(64, 1.f), y(64);
  void* pointers[] = {x.data(), x.data(), y.data()};
  compiled->run(pointers, nullptr);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(x[i], -1.f);
    EXPECT_EQ(y[i], 65.f);
  }
}

TEST(Compile, LayerNormInOneKernel) {
  Kernel k = parse(R"("layer_norm" sizes [9, 100] reduce [1] pointers 6 scalars (f64) {
    o0 = f32 p0 + 0 {100, 1} o1 = f32 p1 + 0 {0, 1} o2 = f32 p2 + 0 {0, 1} o3 = f32 p3 + 0 {100, 1} o4 = f32 p4 + 0 {1, 0} o5 = f32 p5 + 0 {1, 0}
    n0 = load f32 o0 n1 = reduce_sum f32 n0 n2 = const f32 100 n3 = div f32 n1, n2 n4 = sub f32 n0, n3 n5 = mul f32 n4, n4 n6 = reduce_sum f32 n5
    n7 = div f32 n6, n2 n8 = scalar f32 s0 n9 = add f32 n7, n8 n10 = rsqrt f32 n9 n11 = mul f32 n4, n10 n12 = load f32 o1 n13 = mul f32 n11, n12
    n14 = load f32 o2 n15 = add f32 n13, n14 store o3, n15 store o4, n3 store o5, n10 })");
  std::mt19937_64 random(2);
  std::vector<Buffer> buffers;
  for (int64_t count : {900, 100, 100, 900, 9, 9}) {
    buffers.push_back({DType::kF32, std::vector<uint8_t>(static_cast<size_t>(count) * 4)});
    fill(&buffers.back(), random, false);
  }
  EXPECT_EQ(compare(k, buffers, {std::bit_cast<int64_t>(1e-5)}, {8, 1e-6}), "");
}

TEST(Compile, HugeArgumentsOfSineGoToTheLibrary) {
  Kernel k = parse(R"("k" sizes [40] pointers 2 { o0 = f32 p0 + 0 {1} o1 = f32 p1 + 0 {1} n0 = load f32 o0 n1 = sin f32 n0 n2 = cos f32 n0 n3 = mul f32 n1, n2 n4 = add f32 n3, n0 store o1, n4 })");
  Buffer in{DType::kF32, std::vector<uint8_t>(160)}, out = in;
  for (int i = 0; i < 40; ++i) write_number(DType::kF32, &in.bytes[static_cast<size_t>(i) * 4], i % 5 == 0 ? 1e6 * i : i * 0.37);
  EXPECT_EQ(compare(k, {in, out}, {}, {4, 1e-6}), "");
}

TEST(Compile, ManyLiveValuesSpill) {
  Kernel k;
  k.name = "spill";
  k.sizes = {100};
  std::vector<int32_t> values;
  std::vector<Buffer> buffers;
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) {
    values.push_back(k.add_load(k.add_operand({DType::kF32, {1}, 0, i})));
    buffers.push_back({DType::kF32, std::vector<uint8_t>(400)});
    fill(&buffers.back(), random, false);
  }
  int32_t sum = values[0];
  for (int i = 0; i < 20; ++i)
    for (int j = 0; j < 3; ++j) sum = k.add(KOp::k_add, k.add(KOp::k_mul, sum, k.add_const(DType::kF32, 0.5)), values[(i * 7 + j * 3) % 20]);
  k.add_store(k.add_operand({DType::kF32, {1}, 0, 20}), sum);
  buffers.push_back({DType::kF32, std::vector<uint8_t>(400)});
  for (int unroll : {1, 2, 4}) {
    codegen::KernelOptions options;
    options.unroll = unroll;
    EXPECT_EQ(compare(k, buffers, {}, {}, options), "");
  }
}

// The machine may not run it, but every instruction must have its encoding there.
TEST(Compile, EveryOpEncodesForAvx512) {
  constexpr DType kAll[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI64, DType::kI32, DType::kI16, DType::kI8, DType::kU8, DType::kBool};
  CpuFeatures features{true, true};
  int compiled_count = 0;
  for (int o = 0; o < static_cast<int>(KOp::kCount); ++o)
    for (DType dtype : kAll)
      for (bool strided : {false, true})
        for (uint32_t reduce : {0u, 1u, 2u}) {
          KOp op = static_cast<KOp>(o);
          const ir::KOpInfo& info = ir::kop_info(op);
          if (info.arity == 0 || ir::is_reduce(op) != (reduce != 0) || op == KOp::k_dot || op == KOp::k_reduce_attend || op == KOp::k_within) continue;  // attention and bounds are for GPUs
          Kernel k;
          k.name = "encode";
          k.sizes = {3, 77};
          k.reduce_dims = reduce;
          int32_t args[3] = {-1, -1, -1};
          for (int a = 0; a < info.arity; ++a)
            args[a] = k.add_load(k.add_operand({info.typing == 'W' && a == 0 ? DType::kBool : dtype, {strided ? 1 : 77, strided ? 3 : 1}, 0, a}));
          for (DType to : kAll) {
            if (op != KOp::k_cast && to != dtype) continue;
            Kernel c = k;
            int32_t n = op == KOp::k_cast ? c.add_cast(to, args[0]) : c.add(op, args[0], args[1], args[2]);
            std::vector<int64_t> out = {reduce == 1 ? 0 : reduce == 2 ? 1 : strided ? 1 : 77, reduce == 2 ? 0 : reduce == 1 ? 1 : strided ? 3 : 1};
            c.add_store(c.add_operand({c.nodes[n].dtype, out, 0, 3}), n);
            if (!ir::verify_kernel(c).ok() || ir::for_gpus(c)) continue;
            std::unique_ptr<CompiledKernel> compiled;
            base::Status status = codegen::compile_kernel(c, features, {}, &compiled);
            ASSERT_TRUE(status.ok()) << status.message() << "\n" << ir::print_kernel(c);
            ++compiled_count;
          }
        }
  EXPECT_GT(compiled_count, 500);
}

TEST(Compile, CompilesFast) {
  Kernel k = parse(kSoftmax);
  std::unique_ptr<CompiledKernel> compiled;
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(codegen::compile_kernel(k, codegen::cpu_features(), {}, &compiled).ok());
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_LT(best, 3.0);  // ten times what it takes, for machines under load
}

}  // namespace
}  // namespace dynvm::test
