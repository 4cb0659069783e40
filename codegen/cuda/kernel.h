// A fused kernel on a CUDA device.
//
// Input: a verified ir::Kernel. Output: something to launch, from several threads at once, on whatever stream is current then.
// Kernels that are the same but for their memory share one function; all that a trace needs are compiled side by side (compile_kernels).
// Invariants: a launch returns before the work is done and synchronises with nothing. Parts of reductions that are split over blocks go through memory
// of this kernel and stream.
// Tests: tests/cuda.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/cuda/render.h"
#include "ir/kernel/kernel.h"
#include "runtime/base/status.h"

namespace dynvm::codegen::cuda {

using StreamFunction = void* (*)(int device);  // the CUstream that torch's operations on that device go to now, in this thread
void set_current_stream(StreamFunction function);  // null: there is none

// Why no CUDA kernel can be compiled and run here; empty: they can. Loads the libraries.
std::string missing();

class FunctionCode;

class CudaKernel {
 public:
  ~CudaKernel();
  CudaKernel(const CudaKernel&) = delete;
  CudaKernel& operator=(const CudaKernel&) = delete;

  // pointers: as the kernel's; scalars: 8 bytes each.
  void launch(void* const* pointers, const int64_t* scalars) const;

 private:
  friend base::Status compile_kernels(const std::vector<const ir::Kernel*>&, const std::vector<int>&, std::vector<std::unique_ptr<CudaKernel>>*);
  CudaKernel() = default;
  void* workspace(void* stream) const;

  int device_ = 0;
  Source source_;
  std::shared_ptr<FunctionCode> code_;
  ir::Kernel kernel_;                                   // for the variant
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<void*, void*>> workspaces_;  // by stream
  mutable std::unique_ptr<CudaKernel> unaligned_;       // without vectors, made when memory asks for it
};

// devices: of each kernel. On error nothing is kept; the message has the source and the compiler's log.
base::Status compile_kernels(const std::vector<const ir::Kernel*>& kernels, const std::vector<int>& devices, std::vector<std::unique_ptr<CudaKernel>>* out);

}  // namespace dynvm::codegen::cuda
