// A fused kernel on a CUDA device.
//
// Input: a verified ir::Kernel. Output: something to launch, from several threads at once, on whatever stream is current then.
// Kernels that are the same but for their memory share one function; all that a trace needs are compiled side by side, in threads of their own (functions.h).
// Invariants: a launch returns before the work is done and synchronises with nothing. Parts of reductions that are split over blocks go through memory
// of this kernel and stream.
// Tests: tests/cuda.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/render.h"
#include "ir/kernel/kernel.h"
#include "ir/kernel/symbols.h"
#include "runtime/base/status.h"

namespace dynvm::codegen::cuda {

using StreamFunction = void* (*)(int device);  // the CUstream that torch's operations on that device go to now, in this thread
void set_current_stream(StreamFunction function);  // null: there is none

// Why no CUDA kernel can be compiled and run here; empty: they can. Loads the libraries.
std::string missing();
// A source did not compile: there are no further kernels in this process, and missing() says why.
void give_up(const std::string& why);

class FunctionCode;
struct Tuned;

// What a launch gives the driver.
struct Launch {
  void* function = nullptr;
  uint32_t grid_x = 0, grid_y = 0, block = 0, shared_bytes = 0;
  std::vector<int64_t> parameter;
  friend bool operator==(const Launch&, const Launch&) = default;
};
void* current_stream_of(int device);

// What one launch does: a kernel, or several that are a batch (batch.h).
struct KernelJob {
  std::vector<const ir::Kernel*> kernels;
  std::vector<MirroredStore> mirrors;  // of one by itself
  int device = 0;
};

struct CompileMode {
  bool background = false;             // return at once: kernels are ready later
  bool autotune = false;               // autotune.h
  std::vector<int64_t> storage_bytes;  // for that: of the memory behind each pointer, 0 where it is not known
};

class CudaKernel {
 public:
  ~CudaKernel();
  CudaKernel(const CudaKernel&) = delete;
  CudaKernel& operator=(const CudaKernel&) = delete;

  // Compiled in the background: is that over, and how did it end? Nothing else may be asked before.
  bool ready() const;
  base::Status status() const;
  // pointers: as the kernel's; scalars: 8 bytes each; symbols: values of the kernel's.
  void launch(void* const* pointers, const int64_t* scalars, const int64_t* symbols = nullptr) const;
  // The same launch as data, for this stream; false where there is none to be made in one piece (no work, or more of it than this variant counts).
  bool describe(void* const* pointers, const int64_t* scalars, const int64_t* symbols, void* stream, Launch* out) const;
  // May it be launched so, where its memory lies?
  bool fits(const Launch& launch) const { return aligned(launch.parameter.data()); }
  int device() const { return device_; }
  bool idle() const { return source_.grid_x == 0; }  // nothing is to be done
  bool symbolic() const { return source_.points != 0 || !numbers_.empty(); }  // sizes are known when it is launched
  const std::string& source() const { return source_.text; }    // also before it is ready
  const std::string& function() const { return source_.name; }  // what profilers show
  int num_scalars() const { return source_.num_scalars; }
  const std::vector<int32_t>& storages() const { return source_.pointers; }
  // Its numbers that go to mirrors: the caller has expected them (mirror.h), or has null for their pointers.
  const std::vector<MirroredStore>& mirrors() const { return mirrors_; }
  size_t mirrored_bytes(const MirroredStore& each) const;

 private:
  friend base::Status compile_kernels(const std::vector<KernelJob>&, const CompileMode&, std::vector<std::unique_ptr<CudaKernel>>*);
  CudaKernel() = default;
  void* workspace(void* stream) const;
  base::Status render_source(const RenderOptions& how, Source* out) const;
  base::Status render(int vector_bytes, bool wide);
  static base::Status shape(const std::vector<CudaKernel*>& kernels, const std::vector<int64_t>& storage_bytes, std::vector<Tuned>* tuned);
  void render_as(const CudaKernel& other, const std::vector<int32_t>& theirs, const std::vector<int32_t>& own);
  const CudaKernel& variant(std::unique_ptr<CudaKernel>* made, int vector_bytes, bool wide) const;
  bool reaches_far(const int64_t* symbols) const;
  size_t parameters(void* const* pointers, const int64_t* scalars, const int64_t* symbols, int64_t* out) const;
  bool aligned(const int64_t* parameter) const;
  uint32_t blocks(const int64_t* symbols) const;

  int device_ = 0;
  Source source_;
  std::shared_ptr<FunctionCode> code_;
  std::vector<ir::Kernel> kernels_;                     // several: a batch
  std::vector<MirroredStore> mirrors_;
  Shape shape_;                                         // that was found to be better than the model's
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<void*, void*>> workspaces_;  // by stream
  mutable std::unique_ptr<CudaKernel> unaligned_;       // without vectors, made when memory asks for it
  mutable std::unique_ptr<CudaKernel> wide_;            // for more elements than 32 bits count, made when there are
  ir::Product points_;                                  // that the grid is made for, where they have symbols
  std::vector<ir::Product> numbers_;
  std::vector<std::vector<std::pair<ir::Product, ir::Product>>> reach_;  // of narrow sources: size and stride of each operand's dims
};

// On error nothing is kept; the message, or the status of a kernel that was compiled in the background, has the source and the compiler's log.
base::Status compile_kernels(const std::vector<KernelJob>& jobs, const CompileMode& mode, std::vector<std::unique_ptr<CudaKernel>>* out);

}  // namespace dynvm::codegen::cuda
