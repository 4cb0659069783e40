// The error of the vectorised functions in units in the last place against the correctly rounded result: f32 over the whole range of bit
// patterns in steps (every pattern with DYNVM_KERNEL_EXHAUSTIVE=1), f64 on random values of all magnitudes.
//
// What is asserted is the distance from the correctly rounded result, a whole number; what is printed, the error against the exact one.
// Results in the denormal range count in units of the smallest normal number.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>

#include "support.h"

namespace dynvm::test {
namespace {

using ir::DType;
using ir::Kernel;
using ir::KOp;

struct Function {
  const char* name;
  KOp op;
  double (*single)(double);             // reference for f32
  long double (*wide)(long double);     // reference for f64
  double limit32, limit64;
  double flush = 0;  // sigmoid: results below the normal range may be 0
};

long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
double sigmoid_single(double x) { return 1 / (1 + std::exp(-x)); }

const Function kFunctions[] = {
    {"exp", KOp::k_exp, std::exp, std::exp, 1, 1},
    {"exp2", KOp::k_exp2, std::exp2, std::exp2, 1, 1},
    {"expm1", KOp::k_expm1, std::expm1, std::expm1, 1, 1},
    {"log", KOp::k_log, std::log, std::log, 1, 1},
    {"log2", KOp::k_log2, std::log2, std::log2, 1, 1},
    {"log10", KOp::k_log10, std::log10, std::log10, 1, 1},
    {"log1p", KOp::k_log1p, std::log1p, std::log1p, 1, 1},
    {"tanh", KOp::k_tanh, std::tanh, std::tanh, 1, 2},
    {"sigmoid", KOp::k_sigmoid, sigmoid_single, sigmoid, 2, 2, 1},
    {"erf", KOp::k_erf, std::erf, std::erf, 4, 1},
    {"sin", KOp::k_sin, std::sin, std::sin, 2, 2},
    {"cos", KOp::k_cos, std::cos, std::cos, 2, 2},
};

Kernel unary(KOp op, DType dtype, int64_t n) {
  Kernel k;
  k.name = "accuracy";
  k.sizes = {n};
  k.add_store(k.add_operand({dtype, {1}, 0, 1}), k.add(op, k.add_load(k.add_operand({dtype, {1}, 0, 0}))));
  return k;
}

class AccuracyTest : public testing::TestWithParam<Function> {};

std::unique_ptr<codegen::CompiledKernel> compile(const Kernel& kernel) {
  std::unique_ptr<codegen::CompiledKernel> compiled;
  base::Status status = codegen::compile_kernel(kernel, codegen::cpu_features(), {}, &compiled);
  EXPECT_TRUE(status.ok()) << status.message();
  return compiled;
}

TEST_P(AccuracyTest, Single) {
  const Function& f = GetParam();
  constexpr int64_t kBlock = 65536;
  auto kernel = compile(unary(f.op, DType::kF32, kBlock));
  ASSERT_TRUE(kernel);
  std::vector<float> in(kBlock), out(kBlock);
  uint64_t step = std::getenv("DYNVM_KERNEL_EXHAUSTIVE") ? 1 : 1021;
  double worst = 0;
  float worst_at = 0;
  int wrong = 0;
  for (uint64_t first = 0; first < uint64_t{1} << 32; first += step * kBlock) {
    for (int64_t i = 0; i < kBlock; ++i) in[i] = std::bit_cast<float>(static_cast<uint32_t>(first + step * static_cast<uint64_t>(i)));
    void* pointers[] = {in.data(), out.data()};
    kernel->run(pointers, nullptr);
    for (int64_t i = 0; i < kBlock; ++i) {
      double exact = f.single(in[i]);
      float rounded = static_cast<float>(exact), found = out[i];
      if (std::bit_cast<uint32_t>(rounded) == std::bit_cast<uint32_t>(found)) continue;
      if (std::isnan(rounded) && std::isnan(found)) continue;
      if (f.flush != 0 && std::fabs(exact) < 0x1p-126 && found == 0) continue;
      if (!std::isfinite(rounded) || !std::isfinite(found)) {
        // Rounding at the very end of the range may go either way.
        if (std::fabs(exact) > 3.4028e38 && std::fabs(exact) < 3.4029e38) continue;
        if (++wrong < 5) ADD_FAILURE() << f.name << "(" << in[i] << ") = " << found << ", not " << rounded;
        continue;
      }
      if (rounded == 0 && found == 0 && std::signbit(rounded) != std::signbit(found) && ++wrong < 5) ADD_FAILURE() << f.name << "(" << in[i] << "): sign of zero";
      double unit = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
      double error = std::fabs(found - exact) / unit;
      if (error > worst) worst = error, worst_at = in[i];
    }
  }
  // An error below n + 1/2 is a distance of at most n.
  EXPECT_LT(worst, f.limit32 + 0.5) << f.name << " at " << worst_at;
  std::printf("    %s f32: largest error %.3f ulp at %g\n", f.name, worst, static_cast<double>(worst_at));
}

TEST_P(AccuracyTest, Double) {
  const Function& f = GetParam();
  constexpr int64_t kBlock = 65536;
  auto kernel = compile(unary(f.op, DType::kF64, kBlock));
  ASSERT_TRUE(kernel);
  std::vector<double> in(kBlock), out(kBlock);
  std::mt19937_64 random(5);
  double worst = 0, worst_at = 0;
  int wrong = 0;
  for (int block = 0; block < 6; ++block) {
    for (int64_t i = 0; i < kBlock; ++i) {
      uint64_t bits = random();
      switch (block) {
        case 0: in[i] = std::bit_cast<double>(bits); break;
        case 1: in[i] = (static_cast<double>(bits >> 11) / 0x1p52 - 1) * 750; break;
        case 2: in[i] = (static_cast<double>(bits >> 11) / 0x1p52 - 1) * 4; break;
        case 3: in[i] = 1 + (static_cast<double>(bits >> 11) / 0x1p52 - 1) * 0.3; break;
        case 4: in[i] = std::ldexp(static_cast<double>(bits >> 11) / 0x1p52 - 1, -static_cast<int>(bits % 40)); break;
        default: in[i] = std::bit_cast<double>((bits & 0x800fffffffffffff) | ((uint64_t{1003} + (bits >> 52 & 31)) << 52));
      }
    }
    void* pointers[] = {in.data(), out.data()};
    kernel->run(pointers, nullptr);
    for (int64_t i = 0; i < kBlock; ++i) {
      long double exact = f.wide(in[i]);
      double rounded = static_cast<double>(exact), found = out[i];
      if (std::bit_cast<uint64_t>(rounded) == std::bit_cast<uint64_t>(found) || (std::isnan(rounded) && std::isnan(found))) continue;
      if (f.flush != 0 && std::fabs(rounded) < 0x1p-1022 && found == 0) continue;
      if (!std::isfinite(rounded) || !std::isfinite(found)) {
        if (++wrong < 5) ADD_FAILURE() << f.name << "(" << in[i] << ") = " << found << ", not " << rounded;
        continue;
      }
      int exponent = std::max(exact == 0 ? -1022 : std::ilogb(exact), -1022);
      double error = static_cast<double>(std::fabs(found - exact) / std::ldexp(1.0L, exponent - 52));
      if (error > worst) worst = error, worst_at = in[i];
    }
  }
  EXPECT_LT(worst, f.limit64 + 0.5) << f.name << " at " << worst_at;
  std::printf("    %s f64: largest error %.3f ulp at %.17g\n", f.name, worst, worst_at);
}

INSTANTIATE_TEST_SUITE_P(Kernel, AccuracyTest, testing::ValuesIn(kFunctions), [](const auto& info) { return std::string(info.param.name); });

TEST(Accuracy, LongSumsAreAtLeastAsGoodAsPairwise) {
  constexpr int64_t kCount = 1 << 20;
  std::vector<float> x(kCount);
  std::mt19937_64 random(6);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (float& v : x) v = uniform(random);
  double exact = 0;
  for (float v : x) exact += v;
  for (uint32_t reduce : {3u, 1u, 2u}) {
    Kernel k;
    k.sizes = {1024, 1024};
    k.reduce_dims = reduce;
    int32_t a = k.add_load(k.add_operand({DType::kF32, {1024, 1}, 0, 0}));
    k.add_store(k.add_operand({DType::kF32, {reduce == 2 ? 1 : 0, reduce == 1 ? 1 : 0}, 0, 1}), k.add(KOp::k_reduce_sum, a));
    auto kernel = compile(k);
    std::vector<float> out(1024, 0.f);
    void* pointers[] = {x.data(), out.data()};
    kernel->run(pointers, nullptr);
    if (reduce == 3) {
      EXPECT_EQ(out[0], static_cast<float>(exact));
      continue;
    }
    for (int64_t i = 0; i < 1024; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < 1024; ++j) sum += reduce == 2 ? x[i * 1024 + j] : x[j * 1024 + i];
      EXPECT_NEAR(out[i], sum, sum * 2e-7);
    }
  }
}

}  // namespace
}  // namespace dynvm::test
