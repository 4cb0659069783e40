// Random traces mean the same before and after the passes: every observation (guards, calls, the end) sees the same memory.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "ir/eval.h"
#include "ir/passes/pass.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/ir/random_trace.h"

namespace dynvm::ir {
namespace {

DType type_of_storage(const Trace& trace, int32_t storage) {
  for (const TensorMeta& meta : trace.metas)
    if (meta.storage == storage) return meta.dtype;
  return DType::kU8;
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 1e-5;  // f32 values converted
    case DType::kBF16: return 0.06;
    default: return is_floating(dtype) ? 2e-4 : 0;
  }
}

Memory random_memory(const Trace& trace, RandomTrace& random) {
  std::vector<int64_t> bytes = storage_bytes(trace);
  Memory memory(trace.num_storages);
  for (int32_t s = 0; s < trace.num_storages; ++s) {
    DType type = type_of_storage(trace, s);
    int64_t size = dtype_size(type);
    memory[s].resize(bytes[s]);
    for (int64_t at = 0; at + size <= bytes[s]; at += size) {
      double value = is_floating(type) ? (random.pick(4001) - 2000) / 1000.0 : is_bool(type) ? random.pick(2) : random.pick(7) - 3;
      store_number(memory[s].data() + at, type, value);
    }
  }
  return memory;
}

// now: by storage, where what was there lies now.
std::string difference(const Trace& trace, const std::vector<int32_t>& now, const Evaluation& a, const Evaluation& b) {
  if (a.seen.size() != b.seen.size()) return "another number of observations";
  for (size_t k = 0; k < a.seen.size(); ++k) {
    for (const auto& [before, bytes] : a.seen[k].memory) {
      const int32_t storage = now[static_cast<size_t>(before)];
      auto other = b.seen[k].memory.find(storage);
      std::string where = "observation " + std::to_string(k) + ", storage " + std::to_string(storage);
      if (other == b.seen[k].memory.end()) return where + " is not seen";
      DType type = type_of_storage(trace, storage);
      int64_t size = dtype_size(type);
      double largest = 1;
      for (size_t at = 0; at + size <= bytes.size(); at += size) {
        double x = load_number(bytes.data() + at, type);
        if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
      }
      for (size_t at = 0; at + size <= bytes.size(); at += size) {
        double x = load_number(bytes.data() + at, type), y = load_number(other->second.data() + at, type);
        if (std::isnan(x) && std::isnan(y)) continue;
        if (x == y || std::fabs(x - y) <= tolerance(type) * largest) continue;
        return where + ", element " + std::to_string(at / size) + ": " + std::to_string(x) + " became " + std::to_string(y);
      }
    }
  }
  return "";
}

// Tensors keep their numbers when passes move them to other memory.
std::vector<int32_t> storages_now(const std::vector<TensorMeta>& before, const Trace& trace) {
  std::vector<int32_t> now(static_cast<size_t>(trace.num_storages));
  std::iota(now.begin(), now.end(), 0);
  for (size_t k = 0; k < before.size(); ++k) now[static_cast<size_t>(before[k].storage)] = trace.metas[k].storage;
  return now;
}

void check(uint64_t seed, const PassOptions& options, int* kernels, int* fused, int* placed = nullptr, int* moved = nullptr) {
  RandomTrace random(seed, placed != nullptr);
  Trace trace = random.make(6 + random.pick(25));
  base::Status status = verify_trace(trace);
  ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message() << "\n" << print_trace(trace);

  Evaluation before;
  before.memory = random_memory(trace, random);
  before.numbers[random.scalar()] = 0.75;
  Evaluation after;
  after.memory = before.memory;
  status = evaluate(trace, &before);
  ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message();

  std::string text = print_trace(trace);
  const std::vector<TensorMeta> metas = trace.metas;
  status = run_passes(trace, options);
  ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message() << "\n" << text << "\nbecame\n" << print_trace(trace);
  for (Ref ref = 0; ref < trace.insts.size(); ++ref)
    if (trace.insts[ref].op == Op::k_unbox_float) after.numbers[ref] = 0.75;
  status = evaluate(trace, &after);
  ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message();
  const std::vector<int32_t> now = storages_now(metas, trace);
  std::string wrong = difference(trace, now, before, after);
  ASSERT_EQ(wrong, "") << "seed " << seed << "\n" << text << "\nbecame\n" << print_trace(trace);
  *kernels += static_cast<int>(trace.kernels.size());
  for (int32_t count : trace.kernel_op_counts) *fused += count;
  for (size_t storage = 0; moved != nullptr && storage < now.size(); ++storage) *moved += now[storage] != static_cast<int32_t>(storage);
  for (const Kernel& kernel : trace.kernels)
    if (placed != nullptr) *placed += has_op(kernel, KOp::k_load_at) && stores_at_places(kernel);
}

TEST(FuseFuzz, MeansTheSame) {
  PassOptions options;
  options.only = {"fuse", "clean", "early"};
  options.verify = true;
  int kernels = 0, fused = 0;
  for (uint64_t seed = 1; seed <= 3000 && !HasFatalFailure(); ++seed) check(seed, options, &kernels, &fused);
  EXPECT_GT(fused, kernels * 3 / 2) << kernels << " kernels for " << fused << " operations";
}

TEST(FuseFuzz, MeansTheSameWithTightLimits) {
  PassOptions options;
  options.only = {"fuse", "clean", "early"};
  options.verify = true;
  options.max_kernel_operands = 4;
  options.max_kernel_nodes = 12;
  options.small_space = 0;
  int kernels = 0, fused = 0;
  for (uint64_t seed = 5001; seed <= 6400 && !HasFatalFailure(); ++seed) check(seed, options, &kernels, &fused);
}

// Library calls that write in place, read views and take run-time numbers stand between the kernels.
TEST(FuseFuzz, MeansTheSameAroundLibraryCalls) {
  PassOptions options;
  options.only = {"fuse", "clean", "early"};
  options.verify = true;
  options.keep_aten = {"aten::add_", "aten::copy_", "aten::tanh_", "aten::sum", "aten::zero_", "aten::_foreach_lerp_"};
  int kernels = 0, fused = 0;
  for (uint64_t seed = 7001; seed <= 8500 && !HasFatalFailure(); ++seed) check(seed, options, &kernels, &fused);
}

// What is read and written where data says, among what is forwarded, dropped and moved.
TEST(FuseFuzz, MeansTheSameByIndexes) {
  PassOptions options;
  options.only = {"fuse", "clean", "early"};
  options.verify = true;
  options.fuse_cuda = true;
  int kernels = 0, fused = 0, placed = 0;
  for (uint64_t seed = 11001; seed <= 13000 && !HasFatalFailure(); ++seed) check(seed, options, &kernels, &fused, &placed);
  EXPECT_GT(placed, 100) << "of " << kernels << " kernels read and write by indexes";
}

// A kernel for each pass of a reduction, whatever it moves.
TEST(FuseFuzz, MeansTheSameInStages) {
  PassOptions fused, staged;
  fused.verify = staged.verify = true;
  fused.only = {"fuse", "clean", "early"};
  staged.only = {"fuse", "stages", "clean", "early"};
  staged.stages_device = 0;
  staged.stages_from = 0;
  int kernels = 0, more_kernels = 0, operations = 0;
  for (uint64_t seed = 14001; seed <= 16000 && !HasFatalFailure(); ++seed) {
    check(seed, staged, &more_kernels, &operations);
    check(seed, fused, &kernels, &operations);
  }
  EXPECT_GT(more_kernels, kernels + 200);
}

// Results in the memory of operands, among library calls.
TEST(FuseFuzz, MeansTheSameInPlace) {
  PassOptions options;
  options.only = {"fuse", "stages", "clean", "early", "inplace"};
  options.verify = true;
  options.stages_device = 0;
  options.stages_from = 0;
  options.keep_aten = {"aten::add", "aten::copy_", "aten::tanh", "aten::sum", "aten::mul_"};
  int kernels = 0, fused = 0, moved = 0;
  for (uint64_t seed = 18025; seed <= 21000 && !HasFatalFailure(); ++seed) check(seed, options, &kernels, &fused, nullptr, &moved);
  EXPECT_GT(moved, kernels / 20) << "results in other memory, of " << kernels << " kernels";
}

TEST(FuseFuzz, MeansTheSameAfterAllPassesButHoist) {
  PassOptions options;
  options.without = {"hoist", "cse"};  // they change which observations there are
  options.verify = true;
  int kernels = 0, fused = 0;
  for (uint64_t seed = 9001; seed <= 9400 && !HasFatalFailure(); ++seed) check(seed, options, &kernels, &fused);
}

}  // namespace
}  // namespace dynvm::ir
