// See transfer.h. Types and numbers are those of cuda.h: CUstream is a pointer.
#include "codegen/cuda/transfer.h"

#include <chrono>
#include <cstdint>

#include "codegen/cuda/driver.h"
#include "codegen/cuda/library.h"

namespace dynvm::codegen::cuda {
namespace {

constexpr unsigned kPortable = 1;  // CU_MEMHOSTALLOC_PORTABLE: pinned for all contexts

struct Driver {
  int (*copy)(uint64_t, uint64_t, size_t, void*) = nullptr;
  int (*to_host)(void*, uint64_t, size_t, void*) = nullptr;
  int (*query)(void*) = nullptr;
  int (*synchronize)(void*) = nullptr;
  int (*host_allocate)(void**, size_t, unsigned) = nullptr;
  int (*host_free)(void*) = nullptr;
  std::string missing;

  Driver() {
    Library library({"libcuda.so.1"});
    library.find(&copy, "cuMemcpyDtoDAsync_v2");
    library.find(&to_host, "cuMemcpyDtoHAsync_v2");
    library.find(&query, "cuStreamQuery");
    library.find(&synchronize, "cuStreamSynchronize");
    library.find(&host_allocate, "cuMemHostAlloc");
    library.find(&host_free, "cuMemFreeHost");
    missing = library.missing();
  }
};

const Driver& driver() {
  static const Driver the_driver;
  return the_driver;
}

struct Place {
  void* memory = nullptr;
  ~Place() {
    if (memory != nullptr) driver().host_free(memory);
  }
};
thread_local Place place;

}  // namespace

std::string transfers_missing() { return driver().missing; }

int copy(int device, void* to, const void* from, size_t bytes, void* stream) {
  const InContext context(device);
  return driver().copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes, stream);
}

int fetch(int device, const void* from, size_t bytes, void* stream) {
  const InContext context(device);
  if (place.memory == nullptr)
    if (const int error = driver().host_allocate(&place.memory, kLargestNumber, kPortable)) return error;
  return driver().to_host(place.memory, reinterpret_cast<uint64_t>(from), bytes, stream);
}

bool arrived(int device, void* stream, double seconds) {
  const InContext context(device);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  do {
    if (driver().query(stream) == 0) return true;
  } while (Clock::now() < end);
  return false;
}

int wait(int device, void* stream) {
  const InContext context(device);
  return driver().synchronize(stream);
}

const void* fetched() { return place.memory; }

}  // namespace dynvm::codegen::cuda
