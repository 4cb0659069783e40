// See driver.h. Types and numbers are those of cuda.h: CUresult and CUdevice are ints, contexts, modules, functions and streams pointers.
#include "codegen/cuda/driver.h"

#include <map>
#include <mutex>

#include "codegen/cuda/library.h"

namespace dynvm::codegen::cuda {
namespace {

constexpr int kClock = 13, kMultiprocessors = 16, kMemoryClock = 36, kMemoryBits = 37, kMajor = 75, kMinor = 76;  // CUdevice_attribute; clocks in kHz
constexpr double kLanes = 128;                                  // f32 units of a multiprocessor, since compute capability 8.6 and in 9.0
constexpr int kMaxDynamicShared = 8;                            // CUfunction_attribute
constexpr uint32_t kUsualShared = 48 << 10;

struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*retain_primary)(void**, int) = nullptr;
  int (*context_current)(void**) = nullptr;
  int (*context_set)(void*) = nullptr;
  int (*module_load)(void**, const void*) = nullptr;
  int (*module_unload)(void*) = nullptr;
  int (*module_function)(void**, void*, const char*) = nullptr;
  int (*function_attribute)(void*, int, int) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) = nullptr;
  int (*allocate)(void**, size_t) = nullptr;
  int (*free)(void*) = nullptr;
  int (*set_bytes)(void*, unsigned char, size_t, void*) = nullptr;
  int (*error_string)(int, const char**) = nullptr;
  int devices = 0;
  std::string missing;

  Driver() {
    Library library({"libcuda.so.1"});
    library.find(&init, "cuInit");
    library.find(&device_count, "cuDeviceGetCount");
    library.find(&device_get, "cuDeviceGet");
    library.find(&device_attribute, "cuDeviceGetAttribute");
    library.find(&device_name, "cuDeviceGetName");
    library.find(&retain_primary, "cuDevicePrimaryCtxRetain");
    library.find(&context_current, "cuCtxGetCurrent");
    library.find(&context_set, "cuCtxSetCurrent");
    library.find(&module_load, "cuModuleLoadData");
    library.find(&module_unload, "cuModuleUnload");
    library.find(&module_function, "cuModuleGetFunction");
    library.find(&function_attribute, "cuFuncSetAttribute");
    library.find(&launch, "cuLaunchKernel");
    library.find(&allocate, "cuMemAlloc_v2");
    library.find(&free, "cuMemFree_v2");
    library.find(&set_bytes, "cuMemsetD8Async");
    library.find(&error_string, "cuGetErrorString");
    missing = library.missing();
    if (!missing.empty()) return;
    if (init(0) != 0 || device_count(&devices) != 0 || devices == 0) missing = "no device";
  }
};

const Driver& driver() {
  static const Driver the_driver;
  return the_driver;
}

void* primary(int device) {
  static std::mutex mutex;
  static std::map<int, void*> contexts;
  std::lock_guard lock(mutex);
  void*& context = contexts[device];
  int handle = 0;
  if (context == nullptr && driver().device_get(&handle, device) == 0) driver().retain_primary(&context, handle);
  return context;
}

}  // namespace

InContext::InContext(int device) {
  driver().context_current(&before_);
  now_ = primary(device);
  if (before_ != now_) driver().context_set(now_);
}

InContext::~InContext() {
  if (before_ != now_) driver().context_set(before_);
}

std::string driver_missing() { return driver().missing; }
int device_count() { return driver().devices; }

const DeviceFacts& device_facts(int device) {
  static std::mutex mutex;
  static std::map<int, DeviceFacts> known;
  std::lock_guard lock(mutex);
  DeviceFacts& facts = known[device];
  if (facts.architecture == 0 && driver().missing.empty()) {
    int handle = 0, major = 0, minor = 0;
    driver().device_get(&handle, device);
    driver().device_attribute(&facts.multiprocessors, kMultiprocessors, handle);
    driver().device_attribute(&major, kMajor, handle);
    driver().device_attribute(&minor, kMinor, handle);
    facts.architecture = major * 10 + minor;
    int clock = 0, memory_clock = 0, memory_bits = 0;
    driver().device_attribute(&clock, kClock, handle);
    driver().device_attribute(&memory_clock, kMemoryClock, handle);
    driver().device_attribute(&memory_bits, kMemoryBits, handle);
    facts.bytes_per_s = 2 * 1e3 * memory_clock * memory_bits / 8;
    facts.flops_per_s = 2 * kLanes * facts.multiprocessors * 1e3 * clock;
    char name[128] = "";
    if (driver().device_name(name, sizeof name, handle) == 0) facts.name = name;
  }
  return facts;
}

std::string error_text(int error) {
  const char* text = nullptr;
  if (driver().error_string == nullptr || driver().error_string(error, &text) != 0 || text == nullptr) return "CUDA error " + std::to_string(error);
  return text;
}

bool is_sticky(int error) { return error == 700 || (error >= 702 && error <= 720); }

base::Status load_module(int device, const std::string& cubin, void** out) {
  const InContext context(device);
  const int error = driver().module_load(out, cubin.data());
  return error == 0 ? base::Status() : base::Status::failure("loading kernels: " + error_text(error));
}

base::Status find_function(int device, void* module, const std::string& name, uint32_t shared_bytes, void** out) {
  const InContext context(device);
  int error = driver().module_function(out, module, name.c_str());
  if (error == 0 && shared_bytes > kUsualShared) error = driver().function_attribute(*out, kMaxDynamicShared, static_cast<int>(shared_bytes));
  return error == 0 ? base::Status() : base::Status::failure(name + ": " + error_text(error));
}

void unload_module(int device, void* module) {
  const InContext context(device);
  driver().module_unload(module);
}

base::Status allocate(int device, int64_t bytes, void* stream, void** out) {
  const InContext context(device);
  int error = driver().allocate(out, static_cast<size_t>(bytes));
  if (error == 0) error = driver().set_bytes(*out, 0, static_cast<size_t>(bytes), stream);
  return error == 0 ? base::Status() : base::Status::failure(error_text(error));
}

void release(int device, void* memory) {
  const InContext context(device);
  driver().free(memory);
}

int launch(int device, void* function, uint32_t grid_x, uint32_t grid_y, uint32_t block, uint32_t shared_bytes, void* stream, void* parameter) {
  const InContext context(device);
  void* parameters[] = {parameter};
  return driver().launch(function, grid_x, grid_y, 1, block, 1, 1, shared_bytes, stream, parameters, nullptr);
}

}  // namespace dynvm::codegen::cuda
