// What the kernel tests share: guarded memory, running a kernel both ways, comparing.
//
// Memory of a test stands between two pages that cannot be touched, its end (or, for `at_start`, its start) right at one: an access
// outside of it ends the test.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codegen/x86/kernel/compile.h"
#include "ir/kernel/kernel.h"

namespace dynvm::test {

class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes, bool at_start = false);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  uint8_t* mapping_ = nullptr;
  size_t mapped_ = 0;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// The memory of one pointer: `count` elements of one dtype.
struct Buffer {
  ir::DType dtype;
  std::vector<uint8_t> bytes;
  size_t count() const { return bytes.size() / static_cast<size_t>(ir::dtype_size(dtype)); }
};

double read_float(ir::DType dtype, const void* at);
int64_t read_int(ir::DType dtype, const void* at);
void write_number(ir::DType dtype, void* at, double value);

// Fills with random numbers; `special`: zeros of both signs, infinities, NaN, denormals, huge values, extremes among them.
void fill(Buffer* buffer, std::mt19937_64& random, bool special);

struct Tolerance {
  double ulps = 0;      // of the larger magnitude, at least of the smallest normal number
  double absolute = 0;
};

// Runs the kernel with the reference evaluator and compiled (range_entry in pieces where it is split) on copies of the buffers, and
// compares all memory. Empty: they agree; else what differs.
std::string compare(const ir::Kernel& kernel, const std::vector<Buffer>& buffers, const std::vector<int64_t>& scalars, Tolerance tolerance,
                    const codegen::KernelOptions& options = {});

// The same for what `run` does with the memory at these pointers.
std::string compare_with(const ir::Kernel& kernel, const std::vector<Buffer>& buffers, const std::vector<int64_t>& scalars, Tolerance tolerance,
                         const std::function<void(void* const* pointers)>& run);

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes);

}  // namespace dynvm::test
