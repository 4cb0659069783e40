// See reads.h.
#include "runtime/exec/reads.h"

#include <Python.h>

#include <algorithm>
#include <utility>

#include "codegen/cuda/driver.h"
#include "codegen/cuda/graph.h"
#include "codegen/cuda/mirror.h"
#include "codegen/cuda/transfer.h"
#include "runtime/base/report.h"

namespace dynvm::runtime {

namespace cuda = codegen::cuda;
using cuda::Mirror;
using cuda::MirroredStore;

namespace {

constexpr double kSpin = 1e-4;  // seconds that a number is looked for with the GIL held

// Waits until the stream has done what was queued; arrived: how that is seen while it is spun for.
template <class Arrived>
bool wait_for(int device, void* stream, Arrived arrived) {
  if (arrived(kSpin)) return true;
  int error;
  Py_BEGIN_ALLOW_THREADS
  error = cuda::wait(device, stream);
  Py_END_ALLOW_THREADS
  return error == 0;
}

}  // namespace

void expect_numbers(const cuda::CudaKernel& kernel, bridge::Session* session) {
  const bool capturing = cuda::is_capturing(kernel.device(), cuda::current_stream_of(kernel.device()));
  const cuda::InContext context(kernel.device());  // where new ones are allocated
  for (const MirroredStore& each : kernel.mirrors()) {
    void*& pointer = session->storage_data[each.pointer];
    auto* const before = static_cast<Mirror*>(pointer);
    if (!capturing) {
      pointer = cuda::mirrors().expect(before, kernel.mirrored_bytes(each));
    } else if (before != nullptr) {
      cuda::mirrors().give_back(before);
      pointer = nullptr;
    }
  }
}

const void* read_element(bridge::Session* session, const ir::TensorMeta& meta, int32_t mirror, bool copies_follow) {
  if (meta.device_type != 1 || ir::elements(meta) != 1 || meta.open != 0 || !cuda::transfers_missing().empty()) return nullptr;
  const int device = std::max<int>(meta.device_index, 0);
  void* const stream = cuda::current_stream_of(device);
  if (auto* const there = mirror < 0 ? nullptr : static_cast<Mirror*>(session->storage_data[mirror])) {
    if (!wait_for(device, stream, [&](double seconds) { return copies_follow ? cuda::arrived(device, stream, seconds) : cuda::arrived(there, seconds); })) return nullptr;
    if (cuda::arrived(there, 0)) {
      ++base::report().reads.mirrored;
      return cuda::number_of(there);
    }
  }
  const auto size = static_cast<size_t>(ir::dtype_size(meta.dtype));
  const char* const data = static_cast<const char*>(session->storage_data[meta.storage]);
  if (data == nullptr || size > cuda::kLargestNumber || cuda::is_capturing(device, stream)) return nullptr;
  if (cuda::fetch(device, data + meta.offset * static_cast<int64_t>(size), size, stream) != 0) return nullptr;
  if (!wait_for(device, stream, [&](double seconds) { return cuda::arrived(device, stream, seconds); })) return nullptr;
  ++base::report().reads.copied;
  return cuda::fetched();
}

void give_back_mirrors(const std::vector<int32_t>& mirrors, bridge::Session* session) {
  for (int32_t storage : mirrors)
    if (auto* const mirror = static_cast<Mirror*>(std::exchange(session->storage_data[storage], nullptr))) cuda::mirrors().give_back(mirror);
}

}  // namespace dynvm::runtime
