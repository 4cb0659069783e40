// Products by generated tiles, bit for bit against the sums that tile.h promises, in memory between forbidden pages.
#include "codegen/x86/matmul/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "codegen/parallel.h"
#include "support.h"

namespace dynvm::test {
namespace {

using codegen::CpuFeatures;
using codegen::Matmul;

std::vector<CpuFeatures> instruction_sets() {
  CpuFeatures narrow = codegen::cpu_features();
  narrow.avx512 = false;
  std::vector<CpuFeatures> sets;
  if (narrow.avx2) sets.push_back(narrow);
  if (codegen::cpu_features().avx512) sets.push_back(codegen::cpu_features());
  return sets;
}

// A matrix of random numbers, its last element right before a forbidden page.
template <typename T>
struct Operand {
  Operand(int64_t batches, int64_t rows, int64_t columns, bool transposed, int64_t padding, std::mt19937& random)
      : row(transposed ? 1 : columns + padding), column(transposed ? rows + padding : 1),
        batch((transposed ? columns : rows) * (transposed ? column : row)),
        count(batches * batch - padding), memory(static_cast<size_t>(count) * sizeof(T)) {
    std::uniform_real_distribution<T> number(-1, 1);
    for (int64_t k = 0; k < count; ++k) data()[k] = number(random);
  }
  T* data() const { return reinterpret_cast<T*>(memory.data()); }
  Matmul::Matrix matrix() const { return {data(), row, column, batch}; }
  int64_t row, column, batch, count;
  GuardedMemory memory;
};

enum class Start { kNone, kRow, kMatrix };

struct Case {
  int64_t batches, rows, columns, inner;
  bool a_transposed, b_transposed;
  Start start;
  int64_t padding;
};

constexpr int64_t kInnerBlock = 512;  // as in matmul.cpp

template <typename T>
void check(const Case& c, const CpuFeatures& features, std::mt19937& random, bool served = true) {
  Operand<T> a(c.batches, c.rows, c.inner, c.a_transposed, c.padding, random), b(c.batches, c.inner, c.columns, c.b_transposed, c.padding, random);
  Operand<T> start(c.batches, c.start == Start::kRow ? 1 : c.rows, c.columns, false, c.padding, random);
  Operand<T> out(c.batches, c.rows, c.columns, false, c.padding, random);
  std::vector<T> before(out.data(), out.data() + out.count);
  Matmul call;
  call.wide = sizeof(T) == 8;
  call.batches = c.batches, call.rows = c.rows, call.columns = c.columns, call.inner = c.inner;
  call.a = a.matrix(), call.b = b.matrix();
  if (c.start != Start::kNone) call.start = start.matrix();
  if (c.start == Start::kRow) call.start.row = 0;
  call.out = out.data(), call.out_row = out.row, call.out_batch = out.batch;
  SCOPED_TRACE(testing::Message() << c.batches << " x [" << c.rows << ", " << c.inner << "] x [" << c.inner << ", " << c.columns << "] transposed "
                                  << c.a_transposed << c.b_transposed << " start " << static_cast<int>(c.start) << " padding " << c.padding
                                  << " f" << 8 * sizeof(T) << (features.avx512 ? " AVX-512" : " AVX2"));
  ASSERT_EQ(codegen::matmul(call, features), served);
  std::vector<T> expected = before;
  for (int64_t t = 0; t < c.batches && served; ++t) {
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t j = 0; j < c.columns; ++j) {
        T value = c.start == Start::kNone ? T(0) : start.data()[t * start.batch + i * call.start.row + j];
        for (int64_t block = 0; block < c.inner; block += kInnerBlock) {
          T sum = 0;
          for (int64_t k = block; k < std::min(c.inner, block + kInnerBlock); ++k)
            sum = std::fma(a.data()[t * a.batch + i * a.row + k * a.column], b.data()[t * b.batch + k * b.row + j * b.column], sum);
          value = sum + value;
        }
        expected[static_cast<size_t>(t * out.batch + i * out.row + j)] = value;
      }
    }
  }
  const std::vector<T> got(out.data(), out.data() + out.count);
  for (size_t k = 0; k < got.size(); ++k) ASSERT_EQ(got[k], expected[k]) << "at " << k;
}

TEST(Matmul, Sizes) {
  std::mt19937 random(1);
  for (const CpuFeatures& features : instruction_sets()) {
    for (int64_t rows : {1, 3, 5, 13, 14, 15, 29, 64})
      for (int64_t columns : {1, 2, 7, 8, 16, 17, 31, 33, 70})
        for (int64_t inner : {1, 3, 4, 5, 8, 66})
          check<float>({1, rows, columns, inner, rows % 2 == 1, false, Start::kRow, 0}, features, random);
  }
}

TEST(Matmul, Layouts) {
  std::mt19937 random(2);
  for (const CpuFeatures& features : instruction_sets())
    for (bool a : {false, true})
      for (bool b : {false, true})
        for (Start start : {Start::kNone, Start::kRow, Start::kMatrix})
          for (int64_t padding : {0, 3}) {
            check<float>({1, 19, 43, 21, a, b, start, padding}, features, random);
            check<double>({1, 19, 21, 13, a, b, start, padding}, features, random);
            check<float>({3, 8, 40, 9, a, b, start, padding}, features, random);
          }
}

TEST(Matmul, LongSums) {
  std::mt19937 random(3);
  for (const CpuFeatures& features : instruction_sets())
    for (bool transposed : {false, true}) {
      check<float>({1, 9, 35, 1030, transposed, transposed, Start::kNone, 0}, features, random);
      check<double>({2, 9, 12, 513, transposed, transposed, Start::kRow, 1}, features, random);
    }
}

// Large ones are packed too, also where they lie as tiles read them.
TEST(Matmul, LargeOperands) {
  std::mt19937 random(6);
  for (const CpuFeatures& features : instruction_sets())
    for (bool transposed : {false, true}) {
      check<float>({1, 17, 1030, 1025, false, transposed, Start::kRow, 2}, features, random);
      check<double>({1, 9, 521, 1024, false, transposed, Start::kNone, 0}, features, random);
    }
}

void on_threads(int64_t size, int64_t grain, codegen::ParallelBody body, void* context) {
  const int64_t piece = std::max(grain, (size + 2) / 3);
  std::vector<std::thread> threads;
  for (int64_t begin = 0; begin < size; begin += piece) threads.emplace_back(body, context, begin, std::min(size, begin + piece));
  for (std::thread& thread : threads) thread.join();
}

TEST(Matmul, Threads) {
  std::mt19937 random(4);
  codegen::set_parallel_for(on_threads);
  codegen::set_num_threads(3);
  for (const CpuFeatures& features : instruction_sets()) {
    check<float>({1, 128, 230, 128, false, true, Start::kRow, 0}, features, random);
    check<float>({20, 64, 33, 64, true, true, Start::kNone, 0}, features, random);
  }
  codegen::set_parallel_for(nullptr);
  codegen::set_num_threads(1);
}

TEST(Matmul, LeftToLibraries) {
  std::mt19937 random(5);
  for (const CpuFeatures& features : instruction_sets()) {
    check<float>({1, 2, 40, 40, false, true, Start::kNone, 0}, features, random, false);    // too thin to pack b
    check<float>({1, 4, 1024, 1025, false, false, Start::kNone, 0}, features, random, false);  // likewise
    CpuFeatures as_the_library = features;
    as_the_library.intel = true;
    check<float>({1, 1024, 256, 1024, false, true, Start::kNone, 0}, as_the_library, random, false);  // too much work
  }
  CpuFeatures none;
  check<float>({1, 8, 8, 8, false, false, Start::kNone, 0}, none, random, false);
}

}  // namespace
}  // namespace dynvm::test
