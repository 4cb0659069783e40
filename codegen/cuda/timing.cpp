// See timing.h. Types and numbers are those of cuda.h: CUstream and CUevent are pointers.
#include "codegen/cuda/timing.h"

#include "codegen/cuda/driver.h"
#include "codegen/cuda/library.h"

namespace dynvm::codegen::cuda {
namespace {

constexpr unsigned kNonBlocking = 1;       // CU_STREAM_NON_BLOCKING
constexpr int64_t kBusyBytes = 256 << 20;  // to fill these takes longer than to queue what is timed: 60 us and more

struct Driver {
  int (*synchronize)() = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
  int (*event_create)(void**, unsigned) = nullptr;
  int (*event_destroy)(void*) = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*event_synchronize)(void*) = nullptr;
  int (*event_elapsed)(float*, void*, void*) = nullptr;
  int (*set_bytes)(void*, unsigned char, size_t, void*) = nullptr;
  std::string missing;

  Driver() {
    Library library({"libcuda.so.1"});
    library.find(&synchronize, "cuCtxSynchronize");
    library.find(&stream_create, "cuStreamCreate");
    library.find(&stream_destroy, "cuStreamDestroy_v2");
    library.find(&event_create, "cuEventCreate");
    library.find(&event_destroy, "cuEventDestroy_v2");
    library.find(&event_record, "cuEventRecord");
    library.find(&event_synchronize, "cuEventSynchronize");
    library.find(&event_elapsed, "cuEventElapsedTime");
    library.find(&set_bytes, "cuMemsetD8Async");
    missing = library.missing();
  }
};

const Driver& driver() {
  static const Driver the_driver;
  return the_driver;
}

base::Status status_of(int error) { return error == 0 ? base::Status() : base::Status::failure(error_text(error)); }

}  // namespace

base::Status LaunchTimer::make(int device, std::unique_ptr<LaunchTimer>* out) {
  if (!driver().missing.empty()) return base::Status::failure(driver().missing);
  const InContext context(device);
  std::unique_ptr<LaunchTimer> timer(new LaunchTimer(device));
  int error = driver().synchronize();
  if (error == 0) error = driver().stream_create(&timer->stream_, kNonBlocking);
  if (error == 0) error = driver().event_create(&timer->begin_, 0);
  if (error == 0) error = driver().event_create(&timer->end_, 0);
  if (error != 0) return status_of(error);
  if (base::Status status = allocate(device, kBusyBytes, timer->stream_, &timer->busy_); !status.ok()) return status;
  *out = std::move(timer);
  return {};
}

LaunchTimer::~LaunchTimer() {
  const InContext context(device_);
  if (busy_ != nullptr) release(device_, busy_);
  if (end_ != nullptr) driver().event_destroy(end_);
  if (begin_ != nullptr) driver().event_destroy(begin_);
  if (stream_ != nullptr) driver().stream_destroy(stream_);
}

base::Status LaunchTimer::seconds(const Launch& launch, int count, double* out) {
  const InContext context(device_);
  std::vector<int64_t> parameter = launch.parameter;
  int error = driver().set_bytes(busy_, 0, kBusyBytes, stream_);
  if (error == 0) error = driver().event_record(begin_, stream_);
  for (int k = 0; k < count && error == 0; ++k) error = cuda::launch(device_, launch.function, launch.grid_x, launch.grid_y, launch.block, launch.shared_bytes, stream_, parameter.data());
  if (error == 0) error = driver().event_record(end_, stream_);
  if (error == 0) error = driver().event_synchronize(end_);
  float ms = 0;
  if (error == 0) error = driver().event_elapsed(&ms, begin_, end_);
  *out = ms * 1e-3 / count;
  return status_of(error);
}

}  // namespace dynvm::codegen::cuda
