// How long launches take on a device.
//
// Inputs: launches whose memory is nobody else's. Outputs: seconds, by the device's own clock.
// Invariants: work goes to a stream of its own, behind something that keeps the device busy until all of it is queued, so that no time of the host's is in the result. What else
// the process has queued is waited for first; other processes are not.
// Tests: tests/cuda/test_autotune.py (on a machine with a GPU).
#pragma once

#include <memory>
#include <string>

#include "codegen/cuda/kernel.h"
#include "runtime/base/status.h"

namespace dynvm::codegen::cuda {

class LaunchTimer {
 public:
  static base::Status make(int device, std::unique_ptr<LaunchTimer>* out);
  ~LaunchTimer();
  LaunchTimer(const LaunchTimer&) = delete;
  LaunchTimer& operator=(const LaunchTimer&) = delete;

  // Of one of `count` launches, one behind the other; a failure where the driver refuses it (too many registers for so many threads, say).
  base::Status seconds(const Launch& launch, int count, double* out);
  void* stream() const { return stream_; }

 private:
  explicit LaunchTimer(int device) : device_(device) {}

  int device_;
  void *stream_ = nullptr, *begin_ = nullptr, *end_ = nullptr, *busy_ = nullptr;
};

}  // namespace dynvm::codegen::cuda
