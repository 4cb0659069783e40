// Compiles an ir::Kernel to x86 machine code (AVX2 + FMA, or AVX-512).
//
// Input: a kernel that verifies. Output: executable code, immutable, callable from several threads at once.
// Invariants: never reads or writes an element that no operand names; a kernel that cannot be compiled exactly is an error that says
// why. Sizes and strides are compiled in, but for those with symbols in them: the code takes their values (numbers()) as an argument.
// Tests: tests/kernel/compile_test.cpp, op_test.cpp, fuzz_test.cpp, accuracy_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "codegen/x86/kernel/cpu_features.h"
#include "ir/kernel/kernel.h"
#include "runtime/base/code_map.h"
#include "runtime/base/status.h"

namespace dynvm::codegen {

struct KernelOptions {
  int unroll = 0;          // vectors per inner iteration; 0: chosen by the kernel's cost
  bool parallel = true;    // run() may use several threads when the cost estimate says it pays
  bool force_split = false; // tests: split however small
};

class CompiledKernel {
 public:
  // pointers: num_pointers base addresses; scalars: the bits of one double or int64 per scalar.
  // numbers: the values of numbers(); null where there are none.
  using Entry = void (*)(void* const* pointers, const int64_t* scalars, const int64_t* numbers);
  // The same for the part [begin, end) of the split dim (range_size() long).
  using RangeEntry = void (*)(void* const* pointers, const int64_t* scalars, int64_t begin, int64_t end, const int64_t* numbers);

  ~CompiledKernel();
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  // Runs the whole kernel, on several threads where that pays.
  void run(void* const* pointers, const int64_t* scalars, const int64_t* numbers = nullptr) const {
    if (!parallel_) entry_(pointers, scalars, numbers);
    else run_parallel(pointers, scalars, numbers);
  }

  Entry entry() const { return entry_; }            // whole space, this thread only; callable from generated code
  RangeEntry range_entry() const { return range_; }
  int64_t range_size() const { return range_size_; }  // 1 where the kernel cannot be split; may have symbols in it
  // Made of the kernel's symbols: what evaluate() of each is, with a run's values, the code wants. The last two, where there are any: the number of
  // points, the size of the split dim.
  const std::vector<int64_t>& numbers() const { return numbers_; }
  bool parallel() const { return parallel_; }         // whether run() would split it when there are threads
  const void* code() const { return code_; }
  size_t code_size() const { return code_size_; }
  double cost() const { return cost_; }               // estimated single-thread nanoseconds; of a point, where the number of points has symbols
  std::string dump() const;                           // kernel text and bytes in hex, for --dump=asm

 private:
  friend class KernelBuilder;
  CompiledKernel() = default;
  void run_parallel(void* const* pointers, const int64_t* scalars, const int64_t* numbers) const;

  Entry entry_ = nullptr;
  RangeEntry range_ = nullptr;
  int64_t grain_for(double cost, int64_t range) const;
  int64_t range_size_ = 1, grain_ = 1, unit_ = 1;
  bool parallel_ = false;
  double cost_ = 0;     // of symbolic kernels: for one point
  std::vector<int64_t> numbers_;
  void* code_ = nullptr;
  size_t code_size_ = 0, mapped_size_ = 0;
  ir::Kernel kernel_;   // for dump()
  base::CodeName name_;
};

// On error *compiled is null and the message names the reason.
base::Status compile_kernel(const ir::Kernel& kernel, const CpuFeatures& features, const KernelOptions& options,
                            std::unique_ptr<CompiledKernel>* compiled);

}  // namespace dynvm::codegen
