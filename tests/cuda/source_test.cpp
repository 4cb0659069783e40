// Generated CUDA sources on the CPU: compiled as C++ with shim.h and compared with the reference evaluator, random kernels and named forms.
//
// DYNVM_CUDA_FUZZ=n: n random kernels instead of 400; DYNVM_KERNEL_SEED=s: the one of that seed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../kernel/random_kernel.h"
#include "codegen/cuda/autotune.h"
#include "codegen/cuda/background.h"
#include "codegen/cuda/batch.h"
#include "codegen/cuda/mirror.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/prelude.h"
#include "codegen/cuda/render.h"
#include "ir/kernel/eval.h"
#include "ir/kernel/philox.h"
#include "ir/kernel/symbols.h"
#include "ir/kernel/text.h"
#include "host.h"
#include "runtime/base/heuristics.h"

namespace dynvm::test {
namespace {

Rendered random_kernel(uint64_t seed) {
  KernelMaker maker(seed, true);
  maker.make();
  Rendered made;
  made.kernel = std::move(maker.kernel);
  made.buffers = std::move(maker.buffers);
  made.scalars = std::move(maker.scalars);
  made.what = "seed " + std::to_string(seed);
  return made;
}

TEST(CudaSource, RandomKernelsAgreeWithTheEvaluator) {
  const char* one = std::getenv("DYNVM_KERNEL_SEED");
  const char* count = std::getenv("DYNVM_CUDA_FUZZ");
  const uint64_t first = one ? std::strtoull(one, nullptr, 10) : 0, last = one ? first + 1 : count ? std::strtoull(count, nullptr, 10) : 400;
  // Few multiprocessors: the small kernels of tests are split over blocks as large ones are, and vectors are not given up for more threads.
  std::vector<Rendered> with[2];
  int placed[2][2] = {};  // stores at computed places: of reductions' kernels, at each point
  for (uint64_t seed = first; seed < last; ++seed) {
    Rendered made = random_kernel(seed);
    for (const ir::KernelStore& store : made.kernel.stores)
      if (store.has_place()) ++placed[made.kernel.reduce_dims != 0][is_full_store(made.kernel, ir::node_dims(made.kernel), store)];
    if (made.kernel.num_points() != 0 || first + 1 == last) with[seed % 2].push_back(std::move(made));  // without points even a store's rules say nothing
  }
  check(std::move(with[0]), 1, 16);
  check(std::move(with[1]), 132, 8);
  if (first + 1 == last) return;
  EXPECT_GT(placed[0][0], 10);
  EXPECT_GT(placed[1][0], 10);
  EXPECT_GT(placed[1][1], 10);
}

// Whatever numbers are asked for, a kernel computes the same; the shape that it has is one that can be asked for, and gives the same text.
TEST(CudaSource, RandomKernelsAgreeInOtherShapes) {
  std::mt19937_64 random(3);
  const auto power = [&](int most) { return random() % 3 == 0 ? 0 : 1 << random() % (std::countr_zero(static_cast<unsigned>(most)) + 1); };
  std::vector<Rendered> made;
  int other = 0;
  for (uint64_t seed = 1000; seed < 1200; ++seed) {
    Rendered each = random_kernel(seed);
    if (each.kernel.num_points() == 0) continue;
    each.shape = {power(16), power(2048), power(16), static_cast<int>(random() % 20)};
    Source usual, asked, again;
    ASSERT_TRUE(render_kernel(each.kernel, "k", {}, &usual).ok());
    ASSERT_TRUE(render_kernel(each.kernel, "k", {.shape = each.shape}, &asked).ok());
    ASSERT_TRUE(render_kernel(each.kernel, "k", {.shape = asked.shape}, &again).ok());
    EXPECT_EQ(asked.text, again.text);
    EXPECT_EQ(asked.shape, again.shape);
    ASSERT_TRUE(render_kernel(each.kernel, "k", {.shape = usual.shape}, &again).ok());
    EXPECT_EQ(usual.text, again.text);
    other += asked.text != usual.text;
    made.push_back(std::move(each));
  }
  EXPECT_GT(other, 100);
  check(std::move(made), 1, 16);
}

TEST(CudaSource, NeighboursOfAShape) {
  using codegen::cuda::Shape;
  const Shape shape{.vector = 4, .threads = 1024, .unroll = 1};
  const std::vector<Shape> expected{{8, 1024, 1, 0}, {2, 1024, 1, 0}, {4, 512, 1, 0}, {4, 1024, 2, 0}};
  EXPECT_EQ(neighbours(shape), expected);
  EXPECT_EQ(codegen::cuda::neighbours({}), std::vector<Shape>{});
  EXPECT_EQ(codegen::cuda::parse_shape(shape_text(shape)), shape);
  for (const char* text : {"", "vector 4", "vector 3 threads 1 unroll 1 parts 1", "vector 4 threads -1 unroll 1 parts 1", "vector 4 threads 2048 unroll 1 parts 1"})
    EXPECT_EQ(codegen::cuda::parse_shape(text), std::nullopt) << text;
  EXPECT_EQ(codegen::cuda::parse_shape("vector 0 threads 128 unroll 0 parts 3"), (Shape{0, 128, 0, 3}));
}

// What a kernel that is timed may touch: its operands' elements, and all of what it loads from at computed places; nothing is known where an index of the script's says where.
TEST(CudaSource, ExtentsOfKernels) {
  Kernel plain;
  plain.sizes = {3, 5};
  const int32_t x = plain.add_load(plain.add_operand({DType::kF32, {-10, 2}, 20, 0}));
  plain.add_store(plain.add_operand({DType::kBool, {5, 1}, 1, 2}), plain.add_cast(DType::kBool, x));
  codegen::cuda::Extents found;
  ASSERT_TRUE(extents_of({plain}, {}, &found));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].before, 0);
  EXPECT_EQ(found[0].behind, 4 * (20 + 8 + 1));
  EXPECT_EQ(found[2].behind, 1 + 2 * 5 + 4 + 1);
  const auto at_places = [](bool checked) {
    Kernel kernel;
    kernel.sizes = {6};
    int32_t at = kernel.add_index(0);
    if (checked) at = kernel.add(KOp::k_within, kernel.add_load(kernel.add_operand({DType::kI64, {1}, 0, 0})), kernel.add_const(DType::kI64, 9));
    const int32_t picked = kernel.add_load_at(kernel.add_operand({DType::kF32, {0}, 0, 1}), at, kernel.add_const(DType::kBool, 1));
    kernel.add_store(kernel.add_operand({DType::kF32, {1}, 0, 2}), picked);
    return kernel;
  };
  found.clear();
  ASSERT_TRUE(extents_of({at_places(false)}, {0, 400, 24}, &found));
  EXPECT_EQ(found[1].behind, 400);
  EXPECT_FALSE(extents_of({at_places(false)}, {0, 0, 24}, &found));
  EXPECT_FALSE(extents_of({at_places(true)}, {48, 36, 24}, &found));
}

// Softmax over the last dim: three passes over a row, the input held meanwhile.
Rendered softmax(DType dtype, int64_t rows, int64_t columns) {
  Rendered made;
  Kernel& k = made.kernel;
  k.sizes = {rows, columns};
  k.reduce_dims = 2;
  const int32_t x = k.add_cast(DType::kF32, k.add_load(dense(&made, dtype, {columns, 1}, rows * columns)));
  const int32_t e = k.add(KOp::k_exp, k.add(KOp::k_sub, x, k.add(KOp::k_reduce_max, x)));
  const int32_t y = k.add(KOp::k_div, e, k.add(KOp::k_reduce_sum, e));
  k.add_store(dense(&made, dtype, {columns, 1}, rows * columns), k.add_cast(dtype, y));
  made.tolerance = {64, 1e-6};
  made.what = "softmax";
  return made;
}

// x (1 + erf(x / sqrt 2)) / 2: where only 16 bits of it are seen, 1 + erf is one function, which is good far below 0 too.
Rendered gelu(DType dtype, int64_t points) {
  Rendered made;
  Kernel& k = made.kernel;
  k.sizes = {points};
  const int32_t x = k.add_cast(DType::kF32, k.add_load(dense(&made, dtype, {1}, points)));
  const auto number = [&](double value) { return k.add_const(DType::kF32, value); };
  const int32_t one = k.add(KOp::k_add, number(1), k.add(KOp::k_erf, k.add(KOp::k_mul, x, number(0.70710678))));
  k.add_store(dense(&made, dtype, {1}, points), k.add_cast(dtype, k.add(KOp::k_mul, k.add(KOp::k_mul, x, number(0.5)), one)));
  made.tolerance = {dtype == DType::kF32 ? 64.0 : 2.0, 1e-6};
  made.what = "gelu";
  return made;
}

// The loss of rows: one element of each, found by its position; the sum of what a condition lets through.
Rendered picked(DType dtype, int64_t rows, int64_t columns) {
  Rendered made;
  Kernel& k = made.kernel;
  k.sizes = {rows, columns};
  k.reduce_dims = 2;
  const int32_t x = k.add_cast(DType::kF32, k.add_load(dense(&made, dtype, {columns, 1}, rows * columns)));
  const int32_t is_large = k.add(KOp::k_lt, k.add_const(DType::kF32, 0.25), x);
  k.add_store(dense(&made, DType::kF32, {1, 0}, rows), k.add(KOp::k_reduce_sum, k.add(KOp::k_where, is_large, x, k.add_const(DType::kF32, 0))));
  made.tolerance = {64, 1e-5};
  made.what = "picked";
  return made;
}

// A bias's gradient: the sum over rows, in columns, and over everything.
Rendered sums(int64_t rows, int64_t columns, uint32_t reduced, bool minimum = false) {
  Rendered made;
  Kernel& k = made.kernel;
  k.sizes = {rows, columns};
  k.reduce_dims = reduced;
  const int32_t x = k.add_load(dense(&made, DType::kF32, {columns, 1}, rows * columns));
  const int32_t sum = minimum ? k.add(KOp::k_reduce_min, x) : k.add(KOp::k_reduce_sum, k.add(KOp::k_floor, x));
  const std::vector<int64_t> strides = reduced == 3 ? std::vector<int64_t>{0, 0} : reduced == 1 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{1, 0};
  k.add_store(dense(&made, DType::kF32, strides, reduced == 3 ? 1 : reduced == 1 ? columns : rows), sum);
  made.what = "sums";
  return made;
}

// x + y^T: one of the two is walked through across its rows.
Rendered transposed(int64_t n) {
  Rendered made;
  Kernel& k = made.kernel;
  k.sizes = {n, n};
  const int32_t x = k.add_load(dense(&made, DType::kF32, {n, 1}, n * n)), y = k.add_load(dense(&made, DType::kF32, {1, n}, n * n));
  k.add_store(dense(&made, DType::kF32, {n, 1}, n * n), k.add(KOp::k_add, x, y));
  made.what = "transposed";
  return made;
}

// Queries [b, h, m, d], keys and values [b, h, n, d], all of them as transpose(1, 2) leaves them; a mask [b, 1, m, n] of which half is -inf, and all of a query.
Rendered attention(int64_t b, int64_t h, int64_t m, int64_t n, int64_t d, bool causal, bool mask) {
  Rendered made;
  Kernel& k = made.kernel;
  k.sizes = {b, h, m, n, d};
  k.reduce_dims = 8;
  const std::vector<int64_t> query{m * h * d, d, h * d, 0, 1}, key{n * h * d, d, 0, h * d, 1};
  const int32_t q = k.add_load(dense(&made, DType::kF32, query, b * h * m * d)), keys = k.add_load(dense(&made, DType::kF32, key, b * h * n * d));
  int32_t score = k.add(KOp::k_mul, k.add(KOp::k_dot, q, keys), k.add_const(DType::kF32, 0.25));
  if (mask) {
    score = k.add(KOp::k_add, score, k.add_load(dense(&made, DType::kF32, {m * n, 0, n, 1, 0}, b * m * n)));
    auto* values = reinterpret_cast<float*>(made.buffers.back().bytes.data());
    for (int64_t at = 0; at < b * m * n; ++at)
      if (at % n > n / 2 || at / n % m == 1) values[at] = -INFINITY;
  }
  if (causal) score = k.add(KOp::k_where, k.add(KOp::k_le, k.add_index(3), k.add_index(2)), score, k.add_const(DType::kF32, -INFINITY));
  const int32_t v = k.add_load(dense(&made, DType::kF32, key, b * h * n * d));
  k.add_store(dense(&made, DType::kF32, query, b * h * m * d), k.add(KOp::k_reduce_attend, score, v));
  made.tolerance = {64, 3e-5};  // scores go up to 80, and weights are off by as much as these are
  made.what = fmt::format("attention {} {} {} {} {} {} {}", b, h, m, n, d, causal, mask);
  return made;
}

// Dropout over x, y and z as they lie in memory (order: outer dims first), with its mask; and sums of it over the dims that are reduced. The vector decides what the numbers
// are, so the space need not be as torch would have it.
Rendered dropout(DType dtype, std::vector<int64_t> sizes, const std::vector<int>& order, int64_t vector, uint32_t reduced = 0) {
  Rendered made;
  Kernel& k = made.kernel;
  k.sizes = sizes;
  k.reduce_dims = reduced;
  k.scalar_types = {DType::kI64, DType::kI64};
  made.scalars = {0x123456789abcdef, 4 * 0x3fffffffe};
  std::vector<int64_t> strides(sizes.size());
  int64_t points = 1;
  for (size_t d = order.size(); d-- > 0;) strides[static_cast<size_t>(order[d])] = points, points *= sizes[static_cast<size_t>(order[d])];
  const DType type = dtype == DType::kF64 ? dtype : DType::kF32;
  const int32_t x = k.add_cast(type, k.add_load(dense(&made, dtype, strides, points)));
  const int32_t result = dense(&made, dtype, strides, points), mask = dense(&made, DType::kBool, strides, points);
  const int32_t random = k.add_cast(type, k.add_draw(k.add_scalar(DType::kI64, 0), k.add_scalar(DType::kI64, 1), mask, ir::DrawForm{256, vector}.packed()));
  const int32_t kept = k.add(KOp::k_lt, random, k.add_const(type, 0.7));
  const int32_t y = k.add(KOp::k_mul, k.add(KOp::k_mul, x, k.add_cast(type, kept)), k.add_const(type, 1 / 0.7));
  if (reduced != 0) {
    std::vector<int64_t> of_sums(sizes.size(), 0);
    int64_t count = 1;
    for (size_t d = sizes.size(); d-- > 0;)
      if (!(reduced >> d & 1)) of_sums[d] = count, count *= sizes[d];
    k.add_store(dense(&made, DType::kI64, of_sums, count), k.add(KOp::k_reduce_sum, k.add_cast(DType::kI64, kept)));
    if (vector == 8) {  // the sums alone: no memory lies as the numbers do
      made.what = "kept sums";
      return made;
    }
  }
  k.add_store(result, k.add_cast(dtype, y));
  k.add_store(mask, kept);
  made.what = fmt::format("dropout {} {} {} {}", ir::dtype_name(dtype), fmt::join(sizes, "x"), vector, reduced);
  return made;
}

std::vector<Rendered> dropouts() {
  std::vector<Rendered> made;
  for (int64_t vector : {1, 2, 4, 8}) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
      made.push_back(dropout(dtype, {8}, {0}, vector));
      made.push_back(dropout(dtype, {5000}, {0}, vector));
      made.push_back(dropout(dtype, {1001}, {0}, vector));
    }
    made.push_back(dropout(DType::kF32, {3, 16, 40}, {0, 2, 1}, vector));
    made.push_back(dropout(DType::kF16, {3, 7, 5}, {1, 0, 2}, vector));
    for (uint32_t reduced : {1u, 2u, 3u}) made.push_back(dropout(DType::kF32, {40, 96}, {0, 1}, vector, reduced));
    made.push_back(dropout(DType::kBF16, {40, 94}, {1, 0}, vector, 2));
  }
  return made;
}

std::vector<Rendered> attentions() {
  return {attention(2, 3, 19, 37, 16, false, false), attention(1, 2, 40, 40, 64, true, false), attention(2, 2, 17, 130, 40, false, true), attention(1, 3, 1, 70, 32, false, false),
          attention(3, 1, 5, 3, 8, true, true), attention(1, 1, 33, 1, 24, false, false)};
}

// The memory of an operand: indexes below a bound.
int32_t indexes(Rendered* made, DType dtype, const std::vector<int64_t>& strides, int64_t elements, int64_t bound) {
  const int32_t operand = dense(made, dtype, strides, elements);
  Buffer& buffer = made->buffers.back();
  for (int64_t k = 0; k < elements; ++k) write_number(dtype, buffer.bytes.data() + k * ir::dtype_size(dtype), static_cast<double>(k * 7919 % bound));
  return operand;
}

// Rows of a table by indexes; plus a row of a second table that all have; the sums over their elements, or over rows.
Rendered rows_of_table(DType dtype, DType of_index, int64_t rows, int64_t columns, uint32_t reduced = 0) {
  Rendered made;
  Kernel& k = made.kernel;
  k.sizes = {rows, columns};
  k.reduce_dims = reduced;
  const int64_t entries = 13;
  const int32_t index = k.add(KOp::k_within, k.add_cast(DType::kI64, k.add_load(indexes(&made, of_index, {1, 0}, rows, entries))), k.add_const_int(DType::kI64, entries));
  const int32_t at = k.add(KOp::k_mul, index, k.add_const_int(DType::kI64, columns));
  const int32_t row = k.add_load_at(dense(&made, dtype, {0, 1}, entries * columns), at, k.add_const_int(DType::kBool, 1));
  const int32_t x = k.add(KOp::k_add, k.add_cast(DType::kF32, row), k.add_cast(DType::kF32, k.add_load(dense(&made, dtype, {0, 1}, columns))));
  if (reduced != 0) {
    const bool of_rows = reduced == 2;
    const int32_t sum = k.add(KOp::k_reduce_sum, k.add(KOp::k_floor, x));
    k.add_store(dense(&made, DType::kF32, of_rows ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{0, 1}, of_rows ? rows : columns), sum);
    if (of_rows) k.add_store(dense(&made, DType::kF32, {columns, 1}, rows * columns), k.add(KOp::k_sub, x, sum));
  } else {
    k.add_store(dense(&made, dtype, {columns, 1}, rows * columns), k.add_cast(dtype, x));
  }
  made.what = fmt::format("rows of a table {} {} {}x{} {}", ir::dtype_name(dtype), ir::dtype_name(of_index), rows, columns, reduced);
  return made;
}

// Elements of each row by indexes, where another index says so; both indexes come from memory that a third index finds.
Rendered elements_of_rows(DType dtype, int64_t rows, int64_t columns) {
  Rendered made;
  Kernel& k = made.kernel;
  k.sizes = {rows, columns};
  const int64_t length = 9;
  const int32_t always = k.add_const_int(DType::kBool, 1), first = k.add_load(indexes(&made, DType::kI64, {0, 1}, columns, 5));
  const int32_t second = k.add_load_at(indexes(&made, DType::kI64, {5, 0}, rows * 5, length), first, always);
  const int32_t holds = k.add(KOp::k_lt, second, k.add_const_int(DType::kI64, length - 2));
  k.add_store(dense(&made, dtype, {columns, 1}, rows * columns), k.add_load_at(dense(&made, dtype, {length, 0}, rows * length), second, holds));
  made.what = fmt::format("elements of rows {} {}x{}", ir::dtype_name(dtype), rows, columns);
  return made;
}

// Sums of three neighbours, of a row with nothing around it: memory in front of it and behind it cannot be touched.
Rendered windows(int64_t rows, int64_t columns, bool points) {
  Rendered made;
  Kernel& k = made.kernel;
  k.sizes = {rows, columns, 3};
  k.reduce_dims = points ? 0 : 4;
  const int32_t at = k.add(KOp::k_add, k.add_index(1), k.add_index(2)), holds = k.add(KOp::k_and, k.add(KOp::k_ge, at, k.add_const_int(DType::kI64, 1)), k.add(KOp::k_le, at, k.add_const_int(DType::kI64, columns)));
  const int32_t memory = dense(&made, DType::kF32, {columns, 1, 1}, rows * columns);
  k.operands[static_cast<size_t>(memory)].offset = -1;
  const int32_t x = k.add_load_at(memory, k.add_const_int(DType::kI64, 0), holds);
  if (points) k.add_store(dense(&made, DType::kF32, {columns * 3, 3, 1}, rows * columns * 3), x);
  else k.add_store(dense(&made, DType::kF32, {columns, 1, 0}, rows * columns), k.add(KOp::k_reduce_sum, k.add(KOp::k_floor, x)));
  made.what = fmt::format("windows {}x{} {}", rows, columns, points);
  return made;
}

// Rows added to rows of a table, or stored there, each to another one; of all elements, or their sums.
Rendered rows_to_table(DType dtype, int64_t rows, int64_t columns, bool adds, bool sums) {
  Rendered made;
  Kernel& k = made.kernel;
  k.sizes = {rows, columns};
  k.reduce_dims = sums ? 2 : 0;
  const int64_t entries = adds ? 7 : rows;
  const int32_t index = k.add(KOp::k_within, k.add_load(indexes(&made, DType::kI64, {1, 0}, rows, entries)), k.add_const_int(DType::kI64, entries));
  const int32_t holds = k.add(KOp::k_ne, index, k.add_const_int(DType::kI64, 2)), always = k.add_const_int(DType::kBool, 1);
  int32_t x = k.add_load(dense(&made, dtype, {columns, 1}, rows * columns));
  if (ir::is_floating(dtype)) x = k.add(KOp::k_floor, x);
  if (sums) x = k.add(KOp::k_reduce_sum, x);
  const int32_t at = sums ? index : k.add(KOp::k_mul, index, k.add_const_int(DType::kI64, columns));
  const int32_t table = dense(&made, dtype, {0, sums ? 0 : 1}, entries * (sums ? 1 : columns));
  for (int64_t n = 0; n < entries * (sums ? 1 : columns); ++n) write_number(dtype, made.buffers.back().bytes.data() + n * ir::dtype_size(dtype), static_cast<double>(n % 5));
  k.add_store_at(table, x, at, adds ? holds : always, adds);
  made.what = fmt::format("rows to a table {} {}x{} {} {}", ir::dtype_name(dtype), rows, columns, adds, sums);
  return made;
}

std::vector<Rendered> at_places() {
  std::vector<Rendered> made;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64})
    for (uint32_t reduced : {0u, 1u, 2u})
      for (int64_t columns : {96, 33, 4096}) made.push_back(rows_of_table(dtype, columns == 33 ? DType::kI32 : DType::kI64, 40, columns, reduced));
  for (DType dtype : {DType::kF32, DType::kI64, DType::kBool, DType::kU8, DType::kF16}) made.push_back(elements_of_rows(dtype, 37, 24));
  for (DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kI64})
    for (bool sums : {false, true})
      for (int64_t columns : {40, 33}) made.push_back(rows_to_table(dtype, 50, columns, true, sums));
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kU8})
    for (int64_t columns : {40, 33}) made.push_back(rows_to_table(dtype, 50, columns, false, false));
  made.push_back(rows_to_table(DType::kF32, 3000, 4, true, false));
  for (bool points : {false, true}) made.push_back(windows(5, 1, points)), made.push_back(windows(300, 40, points));
  return made;
}

std::vector<Rendered> forms() {
  std::vector<Rendered> kernels;
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
    for (int64_t columns : {1, 7, 64, 1000, 4096, 9000}) kernels.push_back(softmax(dtype, 3, columns));
  kernels.push_back(softmax(DType::kF32, 70, 40));
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    kernels.push_back(gelu(dtype, 1000));
    kernels.push_back(picked(dtype, 5, 1000));
  }
  for (uint32_t reduced : {1u, 2u, 3u}) {
    kernels.push_back(sums(300, 40, reduced));
    kernels.push_back(sums(5, 3000, reduced));
    kernels.push_back(sums(2000, 4, reduced, true));
  }
  kernels.push_back(transposed(50));
  for (Rendered& each : attentions()) kernels.push_back(std::move(each));
  return kernels;
}

// The numbers that steer it, each of them as small and as large as it may be: other kernels, the same results.
TEST(CudaSource, BoundsOfHeuristics) {
  const base::Heuristics usual = base::heuristics();
  for (const bool least : {true, false}) {
    base::Heuristics numbers = usual;
    for (const base::HeuristicRow& row : base::heuristic_rows())
      if (row.name.substr(0, 5) == "cuda_") numbers.*row.field = least ? row.least : row.greatest;
    base::set_heuristics(numbers);
    check(forms(), 132, 16);
    std::vector<Rendered> kernels;
    for (uint64_t seed = 0; seed < 100; ++seed) {
      Rendered made = random_kernel(seed);
      if (made.kernel.num_points() != 0) kernels.push_back(std::move(made));
    }
    check(std::move(kernels), 1, 16);
  }
  base::set_heuristics(usual);
}

// Sizes, strides and offsets as numbers of the launch, for the values that they were made of and for smaller ones.
TEST(CudaSource, KernelsWithSymbolsAgreeWithTheEvaluator) {
  std::vector<Rendered> with[2];
  for (uint64_t seed = 20000; seed < 20600; ++seed) {
    Rendered made = random_kernel(seed);
    Symbolic symbolic(made.kernel, seed);
    made.kernel = symbolic.kernel;
    made.values = seed % 3 == 0 ? symbolic.smaller_values() : symbolic.values;
    if (made.kernel.symbols.empty() || made.kernel.num_points() == 0 || !ir::verify_kernel(made.kernel).ok()) continue;
    const Kernel now = ir::with_values(made.kernel, made.values);
    if (ir::verify_kernel(now).ok() && lies_inside(now, made.buffers)) with[seed % 2].push_back(std::move(made));
  }
  ASSERT_GT(with[0].size() + with[1].size(), 150u);
  check(std::move(with[0]), 1, 16);
  check(std::move(with[1]), 132, 8, true);
}

// p += g * scalar, m = m * 0.5 + g, with a number of each one's own and one from memory that all of them share: of parameters of several shapes, one launch.
TEST(CudaSource, Batch) {
  for (const int64_t unit : {8, 1}) {
    Rendered made;
    std::vector<Kernel> kernels;
    dense(&made, DType::kF32, {}, 1);
    for (const double each : {0.25, -3.0, 0.5, 7.0, 1.5}) made.scalars.push_back(std::bit_cast<int64_t>(each));
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2 * unit}, {3 * unit, 41}, {5 * unit}, {7, 11, unit}, {1999 * unit}}) {
      Kernel k;
      k.sizes = sizes;
      k.scalar_types = {DType::kF64};
      const std::vector<int64_t> strides = row_major(sizes);
      int32_t operand[3];
      for (int32_t& each : operand) {
        made.kernel = {};
        dense(&made, DType::kF32, strides, k.num_points());
        each = k.add_operand({DType::kF32, strides, 0, static_cast<int32_t>(made.buffers.size()) - 1});
      }
      const int32_t p = k.add_load(operand[0]), g = k.add_load(operand[1]), m = k.add_load(operand[2]);
      const int32_t one = k.add_load(k.add_operand({DType::kF32, std::vector<int64_t>(sizes.size(), 0), 0, 0}));
      k.add_store(operand[0], k.add(KOp::k_add, p, k.add(KOp::k_mul, g, k.add_scalar(DType::kF32, 0))));
      k.add_store(operand[2], k.add(KOp::k_add, k.add(KOp::k_mul, m, k.add_const(DType::kF32, 0.5)), k.add(KOp::k_mul, g, one)));
      k.num_pointers = 16;
      kernels.push_back(std::move(k));
    }
    std::vector<codegen::cuda::BatchForm> forms(kernels.size());
    for (size_t k = 0; k < kernels.size(); ++k) {
      ASSERT_TRUE(batch_form(kernels[k], &forms[k]));
      EXPECT_EQ(forms[k].kernel, forms[0].kernel);
    }
    for (const int vector_bytes : {16, 1}) {
      ASSERT_TRUE(render_batch(forms, "batch", {.vector_bytes = vector_bytes}, &made.source).ok());
      EXPECT_EQ(made.source.alignment, unit == 8 && vector_bytes == 16 ? 16 : 1);
      const HostLibrary library({made});
      ASSERT_EQ(library.error, "");
      std::vector<Buffer> expected = made.buffers, found = made.buffers;
      std::vector<void*> expected_pointers, found_pointers;
      for (size_t k = 0; k < expected.size(); ++k) expected_pointers.push_back(expected[k].bytes.data()), found_pointers.push_back(found[k].bytes.data());
      for (size_t k = 0; k < kernels.size(); ++k) ir::eval_kernel(kernels[k], expected_pointers.data(), &made.scalars[k]);
      library.run(made, found_pointers.data());
      for (size_t k = 0; k < expected.size(); ++k) {
        const auto wrong = std::mismatch(found[k].bytes.begin(), found[k].bytes.end(), expected[k].bytes.begin()).first - found[k].bytes.begin();
        EXPECT_EQ(wrong, static_cast<ptrdiff_t>(found[k].bytes.size())) << "buffer " << k << "\n" << made.source.text;
      }
    }
    // Others than these: a gap, an offset, a reduction.
    codegen::cuda::BatchForm form;
    Kernel other = kernels[1];
    other.operands[0].strides[0] *= 2;
    EXPECT_FALSE(batch_form(other, &form));
    other = kernels[1];
    other.operands[0].offset = 1;
    EXPECT_FALSE(batch_form(other, &form));
    EXPECT_FALSE(batch_form(sums(5, 8, 2).kernel, &form));
  }
}

// Where the batch, the queries or the keys are open, and where memory is not aligned.
TEST(CudaSource, Attention) {
  std::vector<Rendered> open;
  for (int dim : {0, 2, 3}) {
    Rendered made = attention(3, 2, 21, 50, 32, false, dim == 3);
    const int64_t code = 10007, was = made.kernel.sizes[static_cast<size_t>(dim)];
    const auto with_code = [&](int64_t stride, int64_t factor) { return stride == factor * was ? factor * code : stride; };
    made.kernel.symbols = {code};
    made.values = {was};
    made.kernel.sizes[static_cast<size_t>(dim)] = code;
    for (ir::KernelOperand& operand : made.kernel.operands)
      if (dim != 0) operand.strides[0] = with_code(with_code(operand.strides[0], 2 * 32), dim == 2 ? 50 : 21);
    if (dim == 3) made.kernel.operands[2].strides[2] = code;
    open.push_back(std::move(made));
  }
  for (const bool wide : {false, true}) check(open, 132, 16, wide);
  check(attentions(), 132, 4);
  check(attentions(), 1, 16);
  // Not a kernel that this can be.
  Rendered gaps = attention(1, 2, 9, 9, 16, false, false);
  gaps.kernel.operands[0].strides.back() = 2;
  Source source;
  EXPECT_NE(render_kernel(gaps.kernel, "k", {}, &source).message().find("gaps"), std::string::npos);
}

// One number of this dtype: of one point; of a row, which is stored too, less the number; of a long row, over blocks where there are many.
std::vector<Rendered> numbers(DType dtype) {
  std::vector<Rendered> kernels;
  for (const int64_t columns : {0, 5, 1000, 60000}) {
    Rendered& made = kernels.emplace_back();
    Kernel& k = made.kernel;
    const bool row = columns > 0, is_bool = dtype == DType::kBool;
    if (row) k.sizes = {columns}, k.reduce_dims = 1;
    const std::vector<int64_t> along = row ? std::vector<int64_t>{1} : std::vector<int64_t>{}, one = row ? std::vector<int64_t>{0} : std::vector<int64_t>{};
    const int32_t x = k.add_load(dense(&made, dtype, along, std::max<int64_t>(columns, 1)));
    const int32_t largest = !row ? x : k.add(is_bool ? KOp::k_reduce_any : KOp::k_reduce_max, x);
    if (columns == 1000) k.add_store(dense(&made, dtype, along, columns), is_bool ? k.add(KOp::k_eq, x, largest) : k.add(KOp::k_sub, x, largest));
    k.add_store(dense(&made, dtype, one, 1), largest);
    if (columns == 5) k.add_store(dense(&made, DType::kBool, one, 1), k.add(KOp::k_eq, largest, largest));
    made.what = fmt::format("number {} {}", ir::dtype_name(dtype), columns);
  }
  return kernels;
}

bool is_number(const Kernel& kernel, const ir::KernelStore& store) { return kernel.operands[static_cast<size_t>(store.operand)].strides != std::vector<int64_t>{1}; }

// The same of each dtype, as sources, each number with a mirror: their pointers are behind those of buffers.
std::vector<Rendered> mirrored() {
  std::vector<Rendered> kernels;
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI64, DType::kI32, DType::kI8, DType::kBool})
    for (Rendered& each : numbers(dtype)) {
      codegen::cuda::RenderOptions options;
      auto pointer = static_cast<int32_t>(each.buffers.size());
      for (size_t s = 0; s < each.kernel.stores.size(); ++s)
        if (is_number(each.kernel, each.kernel.stores[s])) options.mirrors.push_back({static_cast<int32_t>(s), pointer++});
      EXPECT_TRUE(render_kernel(each.kernel, fmt::format("mirrored{}", kernels.size()), options, &each.source).ok());
      kernels.push_back(std::move(each));
    }
  return kernels;
}

codegen::cuda::Mirrors::Allocate counted(int* blocks) {
  static int* count;
  count = blocks;
  return [](size_t bytes) {
    ++*count;
    return std::memset(std::aligned_alloc(64, bytes), 0, bytes);
  };
}

// What the host waits for is what is in memory; without a mirror nothing else happens.
TEST(CudaSource, Mirrors) {
  int blocks = 0, split = 0;
  codegen::cuda::Mirrors pool(counted(&blocks));
  const std::vector<Rendered> kernels = mirrored();
  const HostLibrary library(kernels);
  ASSERT_EQ(library.error, "");
  for (const Rendered& each : kernels) {
    split += each.source.grid_y > 1;
    const bool waits = each.source.text.find("__syncthreads();\n  if (lane == 0") != std::string::npos;
    EXPECT_EQ(waits, each.kernel.sizes == std::vector<int64_t>{1000}) << each.source.text;  // all of the row is stored before
    for (const bool with_mirrors : {true, false}) {
      const std::string difference = compare_with(each.kernel, each.buffers, {}, {}, [&](void* const* memory) {
        std::vector<void*> pointers(memory, memory + each.buffers.size());
        std::vector<std::pair<const KernelOperand*, codegen::cuda::Mirror*>> mirrors;
        for (const ir::KernelStore& store : each.kernel.stores) {
          if (!is_number(each.kernel, store)) continue;
          const KernelOperand& operand = each.kernel.operands[static_cast<size_t>(store.operand)];
          mirrors.emplace_back(&operand, with_mirrors ? pool.expect(nullptr, static_cast<size_t>(ir::dtype_size(operand.dtype))) : nullptr);
          pointers.push_back(mirrors.back().second);
        }
        library.run(each, pointers.data());
        for (const auto& [operand, mirror] : mirrors) {
          if (!with_mirrors) continue;
          ASSERT_TRUE(codegen::cuda::arrived(mirror, 0)) << each.what;
          EXPECT_EQ(std::memcmp(codegen::cuda::number_of(mirror), pointers[static_cast<size_t>(operand->pointer)], static_cast<size_t>(ir::dtype_size(operand->dtype))), 0) << each.what;
          pool.give_back(mirror);
        }
      });
      EXPECT_EQ(difference, "") << each.what << "\n" << each.source.text;
    }
  }
  EXPECT_GE(split, 8);
  EXPECT_EQ(blocks, 1);
}

// A mirror whose kernel is late is nobody's until that has stored.
TEST(CudaSource, LateMirrors) {
  int blocks = 0;
  codegen::cuda::Mirrors pool(counted(&blocks));
  const auto store = [](codegen::cuda::Mirror* mirror, uint64_t number) {
    mirror->word[1] = number >> 32 | uint64_t{1} << 32;
    EXPECT_FALSE(codegen::cuda::arrived(mirror, 0));
    mirror->word[0] = (number & 0xffffffff) | uint64_t{1} << 32;
  };
  codegen::cuda::Mirror* const first = pool.expect(nullptr, 8);
  codegen::cuda::Mirror* const second = pool.expect(first, 8);  // the first launch has not stored, and is left
  EXPECT_NE(first, second);
  store(second, 0x123456789abcdef0);
  ASSERT_TRUE(codegen::cuda::arrived(second, 0));
  EXPECT_EQ(*static_cast<const uint64_t*>(codegen::cuda::number_of(second)), 0x123456789abcdef0u);
  EXPECT_EQ(pool.expect(second, 8), second);  // seen
  store(second, 1);
  EXPECT_EQ(pool.expect(second, 8), second);  // not looked at, but there
  std::vector<codegen::cuda::Mirror*> others;
  for (int k = 0; k < 200; ++k) {
    others.push_back(pool.expect(nullptr, 4));
    EXPECT_NE(others.back(), first);
    EXPECT_NE(others.back(), second);
  }
  store(first, 2);
  EXPECT_FALSE(codegen::cuda::arrived(second, 1e-4));
  pool.give_back(second);  // late too
  codegen::cuda::Mirror* const third = pool.expect(nullptr, 8);
  EXPECT_EQ(third, first);
  EXPECT_FALSE(codegen::cuda::arrived(third, 0));
  codegen::cuda::Mirrors none([](size_t) -> void* { return nullptr; });
  EXPECT_EQ(none.expect(nullptr, 8), nullptr);
}

// Of one element and of vectors, of few threads and many.
TEST(CudaSource, Draws) {
  check(dropouts(), 132, 16);
  check(dropouts(), 1, 16);
  check(dropouts(), 1, 4, true);
  // Four numbers are one call of Philox where the elements are neighbours; there is no division by the number of threads where they have one round each.
  Source source;
  ASSERT_TRUE(render_kernel(dropout(DType::kF32, {1000}, {0}, 4).kernel, "k", {.multiprocessors = 1}, &source).ok());
  EXPECT_NE(source.text.find("draw_all<256, 4, false>"), std::string::npos) << source.text;
  ASSERT_TRUE(render_kernel(dropout(DType::kF32, {4000}, {0}, 4).kernel, "k", {.multiprocessors = 1}, &source).ok());
  EXPECT_NE(source.text.find("draw_all<256, 4, true>"), std::string::npos) << source.text;
  ASSERT_TRUE(render_kernel(dropout(DType::kF32, {1001}, {0}, 1).kernel, "k", {.multiprocessors = 1}, &source).ok());
  EXPECT_NE(source.text.find("draw_one<256, 1, true>"), std::string::npos) << source.text;
  codegen::cuda::BatchForm form;
  EXPECT_FALSE(batch_form(dropout(DType::kF32, {1000}, {0}, 4).kernel, &form));
}

// Rows are read in vectors where each begins at a multiple of one, elements one by one.
TEST(CudaSource, ComputedPlaces) {
  check(at_places(), 132, 16);
  check(at_places(), 1, 16);
  check(at_places(), 1, 4, true);
  const auto text = [](const Rendered& made) {
    Source source;
    EXPECT_TRUE(render_kernel(made.kernel, "k", {.multiprocessors = 1}, &source).ok());
    return source.text;
  };
  for (uint32_t reduced : {0u, 2u}) {
    EXPECT_NE(text(rows_of_table(DType::kF32, DType::kI64, 400, 96, reduced)).find("= *(const Vec<float, 4>*)(((float*)p.pointer[1]) +"), std::string::npos) << text(rows_of_table(DType::kF32, DType::kI64, 400, 96, reduced));
    EXPECT_EQ(text(rows_of_table(DType::kF32, DType::kI64, 400, 97, reduced)).find("= *(const Vec"), std::string::npos);
  }
  EXPECT_NE(text(rows_to_table(DType::kF32, 400, 96, false, false)).find("*(Vec<float, 4>*)(((float*)p.pointer[2]) +"), std::string::npos) << text(rows_to_table(DType::kF32, 400, 96, false, false));
  codegen::cuda::BatchForm form;
  EXPECT_FALSE(batch_form(elements_of_rows(DType::kF32, 5, 1).kernel, &form));
  EXPECT_FALSE(batch_form(rows_to_table(DType::kF32, 1, 8, true, false).kernel, &form));
}

// An index that is too large, or negative, fails the kernel, wherever it is; and nothing is read there.
TEST(CudaSource, OutOfBounds) {
  std::vector<Rendered> kernels;
  for (uint32_t reduced : {0u, 1u, 2u})
    for (int64_t columns : {96, 33}) kernels.push_back(rows_of_table(DType::kF32, columns == 33 ? DType::kI32 : DType::kI64, 40, columns, reduced));
  int number = 0;
  for (Rendered& each : kernels) ASSERT_TRUE(render_kernel(each.kernel, "k" + std::to_string(number++), {}, &each.source).ok());
  const HostLibrary library(kernels);
  ASSERT_EQ(library.error, "");
  for (const Rendered& each : kernels)
    for (const auto& [at, index] : {std::pair<int64_t, double>{0, 13}, {39, -1}, {17, 2147483647}, {17, 12}}) {
      std::vector<Buffer> buffers = each.buffers;
      const DType dtype = buffers[0].dtype;
      write_number(dtype, buffers[0].bytes.data() + at * ir::dtype_size(dtype), index);
      std::vector<void*> pointers;
      for (Buffer& buffer : buffers) pointers.push_back(buffer.bytes.data());
      EXPECT_EQ(ir::eval_kernel(each.kernel, pointers.data(), nullptr), index == 12) << each.what << " " << index;
      EXPECT_EQ(library.run(each, pointers.data()), index == 12) << each.what << " " << index;
    }
}

// A number of each row is stored where it was, and all of the row is multiplied by what it was; nothing is reduced in between.
TEST(CudaSource, KeptValuesStoredInPlaceAreLoadedByAllBefore) {
  std::vector<Rendered> kernels;
  for (const bool down : {false, true}) {
    Rendered& made = kernels.emplace_back();
    Kernel& k = made.kernel;
    k.sizes = {600, 600};
    k.reduce_dims = down ? 1 : 2;
    const int32_t of_row = dense(&made, DType::kF32, down ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{1, 0}, 600);
    const int32_t kept = k.add_load(of_row), x = k.add_load(dense(&made, DType::kF32, {600, 1}, 360000));
    k.add_store(dense(&made, DType::kF32, {600, 1}, 360000), k.add(KOp::k_mul, x, kept));
    k.add_store(of_row, k.add(KOp::k_add, kept, k.add_const(DType::kF32, 1)));
    made.what = down ? "columns" : "rows";
  }
  check(kernels, 132, 16);
}

TEST(CudaSource, Forms) {
  const std::vector<Rendered> kernels = forms();
  for (const int multiprocessors : {1, 132}) check(kernels, multiprocessors, 16);
  int split = 0;
  for (const Rendered& each : kernels) {
    Source source;
    ASSERT_TRUE(render_kernel(each.kernel, "k", {}, &source).ok());
    split += source.grid_y > 1;
  }
  EXPECT_GE(split, 2);
}

// All of them are CUDA C++, for an H100, without a GPU; several in one source, as starting the compiler costs more than a kernel.
TEST(CudaSource, Compiles) {
  if (const std::string missing = codegen::cuda::nvrtc_missing(); !missing.empty()) GTEST_SKIP() << missing;
  std::vector<Rendered> kernels = forms();
  for (Rendered& each : dropouts()) kernels.push_back(std::move(each));
  for (Rendered& each : at_places()) kernels.push_back(std::move(each));
  for (uint64_t seed = 5000; seed < 5060; ++seed) {
    kernels.push_back(random_kernel(seed));
    if (seed % 2 == 0) kernels.back().kernel = Symbolic(kernels.back().kernel, seed).kernel;
  }
  std::string text;
  int number = 0;
  for (Rendered& each : kernels) {
    ASSERT_TRUE(render_kernel(each.kernel, "k" + std::to_string(number++), {}, &each.source).ok());
    text += each.source.text;
  }
  for (const Rendered& each : mirrored()) text += each.source.text;
  const codegen::cuda::Compiled compiled = codegen::cuda::compile_sources({text}, 90)[0];
  ASSERT_TRUE(compiled.status.ok()) << compiled.status.message().substr(0, 4000);
  EXPECT_EQ(compiled.cubin->substr(1, 3), "ELF");
}

std::string one_function(const std::string& name, const std::string& body) { return "extern \"C\" __global__ void " + name + "(float* x) { " + body + " }\n"; }

// Several sources are one program; one that does not compile fails alone.
TEST(CudaSource, Units) {
  if (const std::string missing = codegen::cuda::nvrtc_missing(); !missing.empty()) GTEST_SKIP() << missing;
  const std::string own = "unit_" + std::to_string(getpid()) + "_";
  const std::vector<std::string> sources{one_function(own + "a", "x[0] = expf(x[1]);"), one_function(own + "b", "x[0] = y;"), one_function(own + "c", "x[0] = x[1] + 2;")};
  const auto compiled = codegen::cuda::compile_sources(sources, 90);
  ASSERT_EQ(compiled.size(), 3u);
  EXPECT_FALSE(compiled[1].status.ok());
  EXPECT_NE(compiled[1].status.message().find("x[0] = y;"), std::string::npos);
  for (int k : {0, 2}) {
    ASSERT_TRUE(compiled[k].status.ok()) << compiled[k].status.message();
    EXPECT_NE(compiled[k].cubin->find(own + (k == 0 ? "a" : "c")), std::string::npos);
  }
  const auto together = codegen::cuda::compile_sources({one_function(own + "d", "x[0] = 1;"), one_function(own + "e", "x[0] = 2;")}, 90);
  ASSERT_TRUE(together[0].status.ok() && together[1].status.ok());
  EXPECT_EQ(together[0].cubin, together[1].cubin);
  for (const char* name : {"d", "e"}) EXPECT_NE(together[0].cubin->find(own + name), std::string::npos);
}

// What was compiled is read back, by whatever unit it was in.
TEST(CudaSource, UnitsAreKept) {
  if (const std::string missing = codegen::cuda::nvrtc_missing(); !missing.empty()) GTEST_SKIP() << missing;
  const std::string d = one_function("kept_d", "x[0] = 1;"), e = one_function("kept_e", "x[0] = 2;"), f = one_function("kept_f", "x[0] = 3;");
  (void)codegen::cuda::compile_sources({d, e}, 90);
  if (!codegen::cuda::was_compiled(d, 90)) GTEST_SKIP() << "no cache folder";
  EXPECT_TRUE(codegen::cuda::was_compiled(e, 90));
  EXPECT_FALSE(codegen::cuda::was_compiled(d, 80));
  const auto read = codegen::cuda::compile_sources({e, f, d}, 90);
  for (const codegen::cuda::Compiled& each : read) ASSERT_TRUE(each.status.ok()) << each.status.message();
  EXPECT_EQ(read[0].cubin, read[2].cubin);
  EXPECT_NE(read[0].cubin, read[1].cubin);
  EXPECT_NE(read[0].cubin->find("kept_e"), std::string::npos);
  EXPECT_NE(read[1].cubin->find("kept_f"), std::string::npos);
}

// A process ends while kernels are compiled.
TEST(CudaSource, EndsWhileCompiling) {
  if (const std::string missing = codegen::cuda::nvrtc_missing(); !missing.empty()) GTEST_SKIP() << missing;
  for (const int milliseconds : {1, 30, 100}) {
    EXPECT_EXIT(
        {
          for (int k = 0; k < 6; ++k)
            codegen::cuda::run_in_background([k, milliseconds] {
              (void)codegen::cuda::compile_sources({one_function(fmt::format("end_{}_{}_{}", getpid(), k, milliseconds), "x[0] = tanhf(x[1]);")}, 90);
            });
          usleep(static_cast<useconds_t>(milliseconds) * 1000);
          codegen::cuda::stop_background();
          std::exit(0);
        },
        testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace dynvm::test
