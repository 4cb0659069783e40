// The functions of kernels: compiled beside the script (background.h), and loaded.
//
// Sources that are the same are one function. What a trace needs and was never compiled is divided among as many programs as threads compile (nvrtc.h): each kernel by
// itself would take two to three times the processor's time, all in one would take one thread's.
//
// Inputs: sources with different names unless they are the same. Outputs: functions of the driver.
// Invariants: a module lives as long as one of its functions. A function is made by one thread; others may use it once it is done.
// Tests: tests/cuda (on a machine with a GPU; the compiling in source_test.cpp).
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "codegen/cuda/render.h"
#include "runtime/base/status.h"

namespace dynvm::codegen::cuda {

class FunctionCode {
 public:
  bool done() const { return done_; }
  base::Status wait();                        // until it is done
  void* function() const { return function_; }

 private:
  friend struct Unit;
  void finish(base::Status status, std::shared_ptr<const void> module, void* function);

  std::mutex mutex_;
  std::condition_variable is_done_;
  std::atomic<bool> done_{false};
  base::Status status_;
  std::shared_ptr<const void> module_;
  void* function_ = nullptr;
};

// By source and device; null where a source has nothing to launch (grid_x 0).
std::vector<std::shared_ptr<FunctionCode>> begin_functions(const std::vector<const Source*>& sources, const std::vector<int>& devices);
base::Status wait_for(const std::vector<std::shared_ptr<FunctionCode>>& functions);

}  // namespace dynvm::codegen::cuda
