// Whole layers and scans as CUDA sources: on the CPU against the evaluator, and with NVRTC.
#include <gtest/gtest.h>

#include "codegen/cuda/nvrtc.h"
#include "host.h"
#include "lowered.h"
#include "runtime/base/heuristics.h"

namespace dynvm::test {
namespace {

// The probabilities of a softmax added up, how many of them come before half, and what two scans after each other come to; over rows, or down columns.
Rendered scanned(DType dtype, int64_t rows, int64_t columns, bool down) {
  Rendered made;
  Kernel& k = made.kernel;
  k.sizes = {rows, columns};
  k.reduce_dims = down ? 1 : 2;
  const std::vector<int64_t> strides{columns, 1}, kept = down ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{1, 0};
  const DType type = dtype == DType::kF64 ? dtype : DType::kF32;
  const int32_t x = k.add_cast(type, k.add_load(dense(&made, dtype, strides, rows * columns)));
  const int32_t e = k.add(KOp::k_exp, k.add(KOp::k_sub, x, k.add(KOp::k_reduce_max, x)));
  const int32_t sums = k.add(KOp::k_scan_sum, k.add(KOp::k_div, e, k.add(KOp::k_reduce_sum, e)));
  k.add_store(dense(&made, dtype, strides, rows * columns), k.add_cast(dtype, k.add(KOp::k_sub, sums, x)));
  const int32_t count = k.add(KOp::k_scan_sum, k.add_cast(DType::kI64, k.add(KOp::k_lt, k.add_const(type, 0), x)));
  k.add_store(dense(&made, DType::kI64, strides, rows * columns), k.add(KOp::k_scan_sum, k.add(KOp::k_mul, count, k.add_const_int(DType::kI64, 3))));
  k.add_store(dense(&made, DType::kI64, kept, down ? columns : rows), k.add(KOp::k_reduce_sum, count));
  k.add_store(dense(&made, type, strides, rows * columns), k.add(KOp::k_scan_logaddexp, x));
  made.tolerance = {64, 1e-4};
  made.what = fmt::format("scanned {} {} {} {}", ir::dtype_name(dtype), rows, columns, down);
  return made;
}

std::vector<Rendered> scans(const std::vector<DType>& dtypes) {
  std::vector<Rendered> made;
  for (const bool down : {false, true})
    for (const DType dtype : dtypes)
      for (const auto& [one, other] : {std::pair<int64_t, int64_t>{3, 1}, {5, 33}, {70, 8}, {2, 1000}, {1, 9000}}) made.push_back(scanned(dtype, down ? other : one, down ? one : other, down));
  made.push_back(scanned(DType::kF32, 40, 300, true));
  return made;
}

// A chunk after the other, with what comes before; values and loads that later passes need are in registers, in shared memory, or anew.
TEST(CudaLayers, Scans) {
  for (const int multiprocessors : {1, 132}) check(scans({DType::kF32, DType::kBF16, DType::kF64}), multiprocessors, 16);
  const base::Heuristics usual = base::heuristics();
  base::Heuristics numbers = usual;
  numbers.cuda_held = numbers.cuda_registers = 0;
  base::set_heuristics(numbers);
  check(scans({DType::kF32}), 132, 16);
  numbers.cuda_shared = 0;
  base::set_heuristics(numbers);
  check(scans({DType::kF32}), 132, 4);
  base::set_heuristics(usual);
}

std::vector<Rendered> layers(const std::vector<DType>& dtypes) {
  std::vector<Rendered> made;
  for (LoweredKernel& each : lowered_layers(dtypes)) {
    Rendered& kernel = made.emplace_back();
    kernel.kernel = std::move(each.kernel);
    kernel.buffers = std::move(each.buffers);
    kernel.what = std::move(each.what);
    kernel.tolerance = {64, 1e-5};
  }
  return made;
}

TEST(CudaLayers, Layers) {
  for (const int multiprocessors : {1, 132}) check(layers({DType::kF32, multiprocessors == 1 ? DType::kBF16 : DType::kF64}), multiprocessors, 16);
}

TEST(CudaLayers, Compiles) {
  if (const std::string missing = codegen::cuda::nvrtc_missing(); !missing.empty()) GTEST_SKIP() << missing;
  std::string text;
  int number = 0;
  for (const auto& kernels : {scans({DType::kBF16}), layers({DType::kF32})})
    for (const Rendered& each : kernels) {
      Source source;
      ASSERT_TRUE(render_kernel(each.kernel, "layer" + std::to_string(number++), {}, &source).ok());
      text += source.text;
    }
  const codegen::cuda::Compiled compiled = codegen::cuda::compile_sources({text}, 90)[0];
  EXPECT_TRUE(compiled.status.ok()) << compiled.status.message().substr(0, 4000);
}

}  // namespace
}  // namespace dynvm::test
