// The CUDA driver, loaded when it is first needed: devices, modules, launches, and a little memory.
//
// Inputs: cubins, parameters. Outputs: CUfunctions, launches on a stream of the device's primary context, the one that torch uses.
// Invariants: each thread keeps the context that it has, or none: by it torch tells which device is current.
// Tests: tests/cuda (on a machine with a GPU).
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.h"

namespace dynvm::codegen::cuda {

struct DeviceFacts {
  int multiprocessors = 0;
  int architecture = 0;  // 90 for compute capability 9.0
  std::string name;
  double bytes_per_s = 0, flops_per_s = 0;  // of its memory, and of f32 multiply-adds at its highest clock: nominal
};

// Empty, or why no kernel can be run: no driver, no device.
std::string driver_missing();
int device_count();
const DeviceFacts& device_facts(int device);

// shared_bytes: dynamic shared memory that the function's launches have.
base::Status load_module(int device, const std::string& cubin, void** out);
base::Status find_function(int device, void* module, const std::string& name, uint32_t shared_bytes, void** out);
void unload_module(int device, void* module);

// The device's primary context is the thread's while this lives.
class InContext {
 public:
  explicit InContext(int device);
  ~InContext();
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  void *before_ = nullptr, *now_ = nullptr;
};

// Zeroed; of the device.
base::Status allocate(int device, int64_t bytes, void* stream, void** out);
void release(int device, void* memory);

// parameter: what the function takes, which is copied. 0, or the driver's error number.
int launch(int device, void* function, uint32_t grid_x, uint32_t grid_y, uint32_t block, uint32_t shared_bytes, void* stream, void* parameter);
std::string error_text(int error);
// Errors of work that was queued earlier: each later call has them, and torch's next one raises.
bool is_sticky(int error);

}  // namespace dynvm::codegen::cuda
