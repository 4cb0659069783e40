// Each op on each dtype it takes, compiled against the reference evaluator, on random and special inputs, whole vectors and tails.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "ir/kernel/text.h"
#include "support.h"

namespace dynvm::test {
namespace {

using ir::DType;
using ir::Kernel;
using ir::KernelNode;
using ir::KOp;

constexpr DType kAll[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI64, DType::kI32, DType::kI16, DType::kI8, DType::kU8, DType::kBool};

std::vector<KOp> all_ops() {
  std::vector<KOp> ops;
  for (int i = 0; i < static_cast<int>(KOp::kCount); ++i) ops.push_back(static_cast<KOp>(i));
  return ops;
}

Buffer buffer(DType dtype, int64_t count, std::mt19937_64& random, bool special) {
  Buffer b{dtype, std::vector<uint8_t>(static_cast<size_t>(count * ir::dtype_size(dtype)))};
  fill(&b, random, special);
  return b;
}

class OpTest : public testing::TestWithParam<KOp> {};

Tolerance tolerance_of(KOp op, DType dtype) {
  if (op == KOp::k_fma && dtype == DType::kF64) return {0.5, 0};
  bool exact = op <= KOp::k_reciprocal && op != KOp::k_pow;
  exact |= op >= KOp::k_copysign && op <= KOp::k_isfinite;
  if (exact || !ir::is_floating(dtype)) return {0, 0};
  // One rounding of a 16-bit type may go the other way.
  if (ir::is_reduced_floating(dtype)) return {1, op == KOp::k_sigmoid ? 1.2e-38 : 0};
  if (op == KOp::k_lgamma) return {8, dtype == DType::kF32 ? 1e-6 : 1e-14};
  if (op == KOp::k_sigmoid) return {4, dtype == DType::kF32 ? 1.2e-38 : 0};
  return {4, 0};
}

TEST_P(OpTest, AgreesWithTheEvaluator) {
  KOp op = GetParam();
  const ir::KOpInfo& info = ir::kop_info(op);
  std::mt19937_64 random(static_cast<uint64_t>(op) + 1);
  int cases = 0;
  for (DType dtype : kAll) {
    for (int64_t size : {1, 7, 8, 45, 203}) {
      Kernel k;
      k.name = "op";
      k.sizes = {size};
      std::vector<Buffer> buffers;
      int32_t args[3] = {-1, -1, -1};
      for (int a = 0; a < info.arity; ++a) {
        DType type = info.typing == 'W' && a == 0 ? DType::kBool : dtype;
        args[a] = k.add_load(k.add_operand({type, {1}, 0, a}));
        buffers.push_back(buffer(type, size, random, true));
      }
      int32_t node;
      if (info.typing == 'L') {
        buffers.push_back(buffer(dtype, size, random, true));
        node = k.add_load(k.add_operand({dtype, {1}, 0, 0}));
      } else if (op == KOp::k_const) {
        node = k.add_const(dtype, 3.3);
      } else if (op == KOp::k_scalar || op == KOp::k_cast || op == KOp::k_index || op == KOp::k_dot || op == KOp::k_draw || op == KOp::k_load_at || op == KOp::k_within || ir::is_scan(op) || ir::is_reduce(op)) {
        return;  // their own tests
      } else {
        node = k.add(op, args[0], args[1], args[2]);
      }
      DType result = k.nodes[node].dtype;
      k.add_store(k.add_operand({result, {1}, 0, static_cast<int32_t>(buffers.size())}), node);
      buffers.push_back(buffer(result, size, random, false));
      if (!ir::verify_kernel(k).ok()) continue;  // not for this dtype
      ++cases;
      std::string difference = compare(k, buffers, {}, tolerance_of(op, result));
      EXPECT_EQ(difference, "") << info.name << " " << ir::dtype_name(dtype) << " size " << size;
      if (!difference.empty()) break;
    }
  }
  EXPECT_GT(cases, 0);
}

INSTANTIATE_TEST_SUITE_P(Kernel, OpTest, testing::ValuesIn(all_ops()), [](const auto& info) { return std::string(ir::kop_info(info.param).name); });

TEST(Cast, EveryPair) {
  std::mt19937_64 random(7);
  for (DType from : kAll)
    for (DType to : kAll) {
      Kernel k;
      k.name = "cast";
      k.sizes = {45};
      int32_t x = k.add_load(k.add_operand({from, {1}, 0, 0}));
      // Out of range is unspecified for integers: limited values there.
      bool special = !ir::is_floating(from) || ir::is_floating(to) || ir::is_bool(to);
      k.add_store(k.add_operand({to, {1}, 0, 1}), k.add_cast(to, x));
      EXPECT_EQ(compare(k, {buffer(from, 45, random, special), buffer(to, 45, random, false)}, {}, {}), "") << ir::dtype_name(from) << " to " << ir::dtype_name(to);
    }
}

TEST(Cast, LargeIntegersToFloatsRoundOnce) {
  std::mt19937_64 random(8);
  Kernel k;
  k.sizes = {4096};
  int32_t x = k.add_load(k.add_operand({DType::kI64, {1}, 0, 0}));
  k.add_store(k.add_operand({DType::kF32, {1}, 0, 1}), k.add_cast(DType::kF32, x));
  k.add_store(k.add_operand({DType::kF64, {1}, 0, 2}), k.add_cast(DType::kF64, x));
  Buffer ints = buffer(DType::kI64, 4096, random, false);
  for (size_t i = 0; i < 4096; ++i) {
    int64_t value = static_cast<int64_t>(random()) >> (random() % 62);
    // Next to the midpoints of f32 numbers.
    if (i % 2) value = (value & ~int64_t{0xffffffffff}) + (int64_t{1} << 38) + static_cast<int64_t>(random() % 3) - 1;
    std::memcpy(&ints.bytes[i * 8], &value, 8);
  }
  EXPECT_EQ(compare(k, {ints, buffer(DType::kF32, 4096, random, false), buffer(DType::kF64, 4096, random, false)}, {}, {}), "");
}

TEST(Cast, DoublesToLargeIntegers) {
  std::mt19937_64 random(9);
  Kernel k;
  k.sizes = {4096};
  int32_t x = k.add_load(k.add_operand({DType::kF64, {1}, 0, 0}));
  k.add_store(k.add_operand({DType::kI64, {1}, 0, 1}), k.add_cast(DType::kI64, x));
  Buffer values = buffer(DType::kF64, 4096, random, false);
  for (size_t i = 0; i < 4096; ++i) {
    double value = static_cast<double>(static_cast<int64_t>(random())) * std::ldexp(1.0, -static_cast<int>(random() % 66));
    std::memcpy(&values.bytes[i * 8], &value, 8);
  }
  EXPECT_EQ(compare(k, {values, buffer(DType::kI64, 4096, random, false)}, {}, {}), "");
}

TEST(Scalar, EveryDtypeFromBothKinds) {
  std::mt19937_64 random(10);
  for (DType to : kAll)
    for (double value : {0.0, 1.0, -3.75, 100.0})
      for (bool floating : {true, false}) {
        Kernel k;
        k.name = "scalar";
        k.sizes = {11};
        k.scalar_types = {DType::kI64, floating ? DType::kF64 : DType::kI64};
        k.add_store(k.add_operand({to, {1}, 0, 0}), k.add_scalar(to, 1));
        int64_t bits = floating ? std::bit_cast<int64_t>(value) : static_cast<int64_t>(value);
        EXPECT_EQ(compare(k, {buffer(to, 11, random, false)}, {5, bits}, {}), "") << ir::dtype_name(to) << " " << value;
      }
}

TEST(Index, InnerOuterAndMiddleDims) {
  std::mt19937_64 random(11);
  for (int dim = 0; dim < 3; ++dim)
    for (DType dtype : {DType::kI64, DType::kI32, DType::kF32}) {
      Kernel k;
      k.name = "index";
      k.sizes = {3, 5, 11};
      k.add_store(k.add_operand({dtype, {55, 11, 1}, 0, 0}), k.add_cast(dtype, k.add_index(dim)));
      EXPECT_EQ(compare(k, {buffer(dtype, 165, random, false)}, {}, {}), "") << dim;
    }
}

TEST(Reduce, EachOpDtypeAndDirection) {
  std::mt19937_64 random(12);
  for (KOp op : all_ops()) {
    if (!ir::is_reduce(op) || op == KOp::k_reduce_attend) continue;
    for (DType dtype : kAll)
      for (uint32_t reduce : {1u, 2u, 3u, 4u, 5u, 7u})
        for (std::vector<int64_t> sizes : {std::vector<int64_t>{5, 3, 21}, {2, 70, 8}, {1, 40, 1}, {3, 1, 300}, {200, 2, 3}, {4, 0, 3}}) {
          Kernel k;
          k.name = "reduce";
          k.sizes = sizes;
          k.reduce_dims = reduce;
          int64_t points = k.num_points();
          KernelNode node;
          node.op = op;
          node.a = k.add_load(k.add_operand({dtype, row_major(sizes), 0, 0}));
          node.dtype = ir::kop_info(op).typing == 'G' ? DType::kI64 : dtype;
          if (op == KOp::k_reduce_prod && ir::is_floating(dtype)) node.a = k.add(KOp::k_sign, node.a);  // stays exact
          int32_t n = k.add_node(node);
          std::vector<int64_t> kept_sizes = sizes;
          for (int d = 0; d < 3; ++d)
            if (reduce >> d & 1) kept_sizes[d] = 1;
          std::vector<int64_t> out = row_major(kept_sizes);
          int64_t kept = 1;
          for (int d = 0; d < 3; ++d) {
            kept *= kept_sizes[d];
            if (reduce >> d & 1) out[d] = 0;
          }
          k.add_store(k.add_operand({node.dtype, out, 0, 1}), n);
          if (!ir::verify_kernel(k).ok()) continue;
          bool special = op != KOp::k_reduce_sum && op != KOp::k_reduce_prod;
          EXPECT_EQ(compare(k, {buffer(dtype, points, random, special), buffer(node.dtype, kept, random, false)}, {}, {}), "")
              << ir::kop_info(op).name << " " << ir::dtype_name(dtype);
          if (testing::Test::HasFailure()) return;
        }
  }
}

}  // namespace
}  // namespace dynvm::test
