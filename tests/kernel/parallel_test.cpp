// Splitting a kernel over threads: through an installed function, and serially without one.
#include "codegen/parallel.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "support.h"

namespace dynvm::test {
namespace {

using codegen::CompiledKernel;
using ir::DType;
using ir::Kernel;
using ir::KOp;

int pieces_run = 0;

// As a thread pool would: pieces of at least the grain, each on a thread of its own.
void on_threads(int64_t size, int64_t grain, codegen::ParallelBody body, void* context) {
  int64_t piece = std::max(grain, (size + 3) / 4);
  std::vector<std::thread> threads;
  for (int64_t begin = 0; begin < size; begin += piece, ++pieces_run) threads.emplace_back(body, context, begin, std::min(size, begin + piece));
  for (std::thread& thread : threads) thread.join();
}

struct Installed {
  explicit Installed(int threads) {
    codegen::set_parallel_for(on_threads);
    codegen::set_num_threads(threads);
    pieces_run = 0;
  }
  ~Installed() {
    codegen::set_parallel_for(nullptr);
    codegen::set_num_threads(1);
  }
};

void check(const Kernel& kernel, size_t out_count, bool split) {
  std::unique_ptr<CompiledKernel> compiled;
  base::Status status = codegen::compile_kernel(kernel, codegen::cpu_features(), {}, &compiled);
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<float> x(static_cast<size_t>(kernel.num_points())), serial(out_count), parallel(out_count);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97);
  void* pointers[] = {x.data(), serial.data()};
  compiled->run(pointers, nullptr);
  {
    Installed installed(4);
    pointers[1] = parallel.data();
    compiled->run(pointers, nullptr);
    EXPECT_EQ(pieces_run > 1, split);
  }
  EXPECT_EQ(serial, parallel);
}

TEST(Parallel, FlatKernel) {
  Kernel k;
  k.sizes = {1000003};
  k.add_store(k.add_operand({DType::kF32, {1}, 0, 1}), k.add(KOp::k_exp, k.add_load(k.add_operand({DType::kF32, {1}, 0, 0}))));
  check(k, 1000003, true);
}

TEST(Parallel, Rows) {
  Kernel k;
  k.sizes = {999, 1001};
  k.reduce_dims = 2;
  k.add_store(k.add_operand({DType::kF32, {1, 0}, 0, 1}), k.add(KOp::k_reduce_sum, k.add_load(k.add_operand({DType::kF32, {1001, 1}, 0, 0}))));
  check(k, 999, true);
}

TEST(Parallel, Columns) {
  Kernel k;
  k.sizes = {333, 1001};
  k.reduce_dims = 1;
  k.add_store(k.add_operand({DType::kF32, {0, 1}, 0, 1}), k.add(KOp::k_reduce_sum, k.add_load(k.add_operand({DType::kF32, {1001, 1}, 0, 0}))));
  check(k, 1001, true);
}

TEST(Parallel, SmallKernelsStayOnTheirThread) {
  Kernel k;
  k.sizes = {1000};
  k.add_store(k.add_operand({DType::kF32, {1}, 0, 1}), k.add(KOp::k_exp, k.add_load(k.add_operand({DType::kF32, {1}, 0, 0}))));
  check(k, 1000, false);
}

TEST(Parallel, LoadedOpenMpIsOptional) {
  // Whether a libgomp is in this process depends on what else is linked; either way work gets done.
  bool found = codegen::use_loaded_openmp();
  int64_t covered = 0;
  codegen::parallel_for(10, 100, [](void* context, int64_t begin, int64_t end) { *static_cast<int64_t*>(context) += end - begin; }, &covered);
  EXPECT_EQ(covered, 10) << found;
  codegen::set_parallel_for(nullptr);
}

}  // namespace
}  // namespace dynvm::test
