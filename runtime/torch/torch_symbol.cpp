// See torch_symbol.h.
#include "runtime/torch/torch_symbol.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <stdexcept>

namespace dynvm::torch_bridge {

void* torch_symbol(const char* name) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(static_cast<at::Context& (*)()>(&at::globalContext)), &info)) return nullptr;
  void* library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return library ? dlsym(library, name) : nullptr;
}

namespace {

// c10::cuda::CUDAStream holds a c10::Stream and nothing else; its functions are exported by libc10_cuda.so. That library is not linked with, as most torches
// have none.
struct CudaStream {
  c10::Stream stream;
};
CudaStream (*get_current)(c10::DeviceIndex);
void* (*stream_of)(const CudaStream*);

void* current_stream(int device) {
  const CudaStream stream = get_current(static_cast<c10::DeviceIndex>(device));
  return stream_of(&stream);
}

}  // namespace

void* (*cuda_stream_function())(int device) {
  void* library = dlopen("libc10_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  get_current = reinterpret_cast<decltype(get_current)>(dlsym(library, "_ZN3c104cuda20getCurrentCUDAStreamEa"));
  stream_of = reinterpret_cast<decltype(stream_of)>(dlsym(library, "_ZNK3c104cuda10CUDAStream6streamEv"));
  return get_current != nullptr && stream_of != nullptr ? &current_stream : nullptr;
}

c10::Stream new_cuda_stream(c10::Device device) {
  constexpr unsigned kNonBlocking = 1;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *library = dlopen("libc10_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  auto create = reinterpret_cast<int (*)(void**, unsigned)>(driver != nullptr ? dlsym(driver, "cuStreamCreate") : nullptr);
  auto wrap = reinterpret_cast<CudaStream (*)(void*, c10::DeviceIndex)>(library != nullptr ? dlsym(library, "_ZN3c104cuda21getStreamFromExternalEP11CUstream_sta") : nullptr);
  void* stream = nullptr;
  if (create == nullptr || wrap == nullptr || create(&stream, kNonBlocking) != 0) throw std::runtime_error("no stream to capture on");
  return wrap(stream, device.index()).stream;
}

}  // namespace dynvm::torch_bridge
