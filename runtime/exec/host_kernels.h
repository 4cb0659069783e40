// A trace's fused kernels for the CPU: their machine code, and how the trace's code calls it.
//
// Layers of a network have the same kernels but for their memory. Such code exists once: it takes the addresses of its memory in a row, which a call gathers. Code that only
// one kernel has finds its memory among the trace's storages.
//
// Inputs: a trace's kernels. Outputs: entries for the trace's code (codegen/trace/compile.h), by the kernel's number.
// Invariants: what entries point to lives as long as this, and does not move.
// Tests: tests/exec/host_kernels_test.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "codegen/trace/compile.h"
#include "codegen/x86/kernel/compile.h"
#include "ir/kernel/kernel.h"
#include "ir/kernel/symbols.h"
#include "runtime/base/status.h"

namespace dynvm::runtime {

class HostKernels {
 public:
  // numbers: of the kernels that the trace runs on the CPU, each once. entries: as many as there are kernels.
  base::Status compile(const std::vector<ir::Kernel>& kernels, const std::vector<size_t>& numbers, std::vector<codegen::KernelEntry>* entries);
  // Null where it has none.
  const codegen::CompiledKernel* of(size_t number) const { return number < of_number_.size() ? of_number_[number] : nullptr; }
  size_t size() const { return of_number_.size() - static_cast<size_t>(std::count(of_number_.begin(), of_number_.end(), nullptr)); }  // kernels
  size_t code_size() const;

 private:
  // What a call needs beside the code.
  struct Call {
    const codegen::CompiledKernel* code = nullptr;
    std::vector<ir::Product> numbers;  // that the code wants to know of the symbols' values
    std::vector<int32_t> storages;     // by the code's pointer; none: these are its pointers
  };
  static void run(const Call* call, void* const* storages, const int64_t* scalars, codegen::Activation* activation);
  base::Status add(const ir::Kernel& kernel, const codegen::CompiledKernel** code);

  std::vector<std::unique_ptr<codegen::CompiledKernel>> codes_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<const codegen::CompiledKernel*> of_number_;
};

}  // namespace dynvm::runtime
