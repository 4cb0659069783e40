// Kernels for the CPU that are the same but for their memory: what they compute against the reference evaluator, and how often their code exists.
#include "runtime/exec/host_kernels.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "ir/kernel/eval.h"

namespace dynvm::runtime {
namespace {

// storages[out] = storages[a] * 3 + storages[b], of `size` floats; the first operand is read twice.
ir::Kernel multiply_add(int64_t size, int32_t a, int32_t b, int32_t out) {
  ir::Kernel kernel;
  kernel.name = "mul_add";
  kernel.sizes = {size};
  const int32_t x = kernel.add_operand({ir::DType::kF32, {1}, 0, a}), y = kernel.add_operand({ir::DType::kF32, {1}, 0, b}), to = kernel.add_operand({ir::DType::kF32, {1}, 0, out});
  const int32_t product = kernel.add(ir::KOp::k_mul, kernel.add_load(x), kernel.add_const(ir::DType::kF32, 3));
  kernel.add_store(to, kernel.add(ir::KOp::k_add, product, kernel.add_load(y)));
  return kernel;
}

struct Memory {
  explicit Memory(size_t storages, size_t size) : values(storages, std::vector<float>(size)) {
    for (size_t s = 0; s < storages; ++s)
      for (size_t i = 0; i < size; ++i) values[s][i] = static_cast<float>(s + 1) + 0.25f * static_cast<float>(i % 7);
    for (auto& each : values) pointers.push_back(each.data());
  }
  std::vector<std::vector<float>> values;
  std::vector<void*> pointers;
};

// Runs all of them both ways, one after the other; how many codes they have.
size_t check(const std::vector<ir::Kernel>& kernels, int64_t size) {
  HostKernels compiled;
  std::vector<size_t> numbers;
  for (size_t k = 0; k < kernels.size(); ++k) numbers.push_back(k);
  std::vector<codegen::KernelEntry> entries(kernels.size());
  const base::Status status = compiled.compile(kernels, numbers, &entries);
  EXPECT_TRUE(status.ok()) << status.message();
  Memory ours(12, static_cast<size_t>(size)), expected(12, static_cast<size_t>(size));
  std::set<const void*> codes;
  for (size_t k = 0; k < kernels.size(); ++k) {
    EXPECT_NE(compiled.of(k), nullptr);
    codes.insert(compiled.of(k));
    using Direct = void (*)(void* const*, const int64_t*, const int64_t*);
    using Through = void (*)(const void*, void* const*, const int64_t*, codegen::Activation*);
    if (entries[k].context == nullptr) reinterpret_cast<Direct>(const_cast<void*>(entries[k].entry))(ours.pointers.data(), nullptr, nullptr);
    else reinterpret_cast<Through>(const_cast<void*>(entries[k].entry))(entries[k].context, ours.pointers.data(), nullptr, nullptr);
    EXPECT_TRUE(ir::eval_kernel(kernels[k], expected.pointers.data(), nullptr));
  }
  EXPECT_EQ(ours.values, expected.values);
  return codes.size();
}

// The fourth has the same memory twice, so it is of another form; the last writes what it reads.
std::vector<ir::Kernel> layers(int64_t size) {
  return {multiply_add(size, 0, 1, 2), multiply_add(size, 2, 5, 3), multiply_add(size, 3, 4, 11), multiply_add(size, 6, 6, 7), multiply_add(size, 7, 11, 8), multiply_add(size, 9, 8, 9)};
}

TEST(HostKernels, ThoseOfOneFormShareTheirCode) { EXPECT_EQ(check(layers(20), 20), 3u); }

TEST(HostKernels, OnSeveralThreadsToo) { EXPECT_EQ(check(layers(1 << 18), 1 << 18), 3u); }

TEST(HostKernels, OthersAreNull) {
  HostKernels compiled;
  std::vector<codegen::KernelEntry> entries(3);
  const std::vector<ir::Kernel> kernels = {multiply_add(64, 0, 1, 2), multiply_add(64, 2, 5, 3), multiply_add(64, 1, 3, 4)};
  ASSERT_TRUE(compiled.compile(kernels, {1}, &entries).ok());
  EXPECT_EQ(compiled.of(0), nullptr);
  EXPECT_NE(compiled.of(1), nullptr);
  EXPECT_EQ(compiled.of(7), nullptr);
  EXPECT_EQ(entries[0].entry, nullptr);
}

}  // namespace
}  // namespace dynvm::runtime
