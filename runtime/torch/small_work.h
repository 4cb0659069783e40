// Keeps ATen's loops over small tensors on the calling thread: some of ATen's operations wake all threads for a few dozen elements.
//
// Inputs: whether the work is small. Invariants: the OpenMP setting of the thread is restored; work at or below serial_elements (heuristics.def) is never split
// in a way that changes a sum's rounding (at::internal::GRAIN_SIZE is larger). Tests: tests/torch.
#pragma once

#include <cstdint>

namespace dynvm::torch_bridge {

class SmallWork {
 public:
  explicit SmallWork(bool small);
  ~SmallWork();
  SmallWork(const SmallWork&) = delete;
  SmallWork& operator=(const SmallWork&) = delete;

 private:
  int before_ = 0;  // 0: nothing to restore
};

}  // namespace dynvm::torch_bridge
