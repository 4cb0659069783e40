// Memory for the intermediates of running traces: blocks that traces take in turn.
//
// A session's intermediates have no value between its runs, so traces that do not run at the same time share memory: of many traces made for
// many sizes only the largest counts. A session gets the block that it had last time when nobody has it (its tensors then point there already),
// else the smallest free one that is large enough; where all are too small, the largest of them makes way for a larger one. One that nobody has taken for long goes.
//
// Inputs: a device, a size in bytes. Outputs: a block, until it is given back. Invariants: the GIL is held; a block serves one run at a time; work on
// a CUDA block is queued behind that of the block's last run, whatever stream that was on. Tests: tests/torch/test_arenas.py.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace dynvm::torch_bridge {

struct ArenaBlock {
  c10::Device device{c10::kCPU};
  size_t bytes = 0;
  c10::DataPtr memory;                 // null when the block has made way
  bool taken = false;
  uint64_t given_back = 0;             // when it was last, in iterations of traces
  std::optional<c10::Stream> stream;   // CUDA: the last run's
};
using ArenaRef = std::shared_ptr<ArenaBlock>;

// Throws c10::Error when there is no memory. last: what the caller had before, may be null.
ArenaRef take_arena(c10::Device device, size_t bytes, const ArenaRef& last);
void give_back(ArenaBlock& block);
// An iteration of a trace is over.
void age_arenas();

}  // namespace dynvm::torch_bridge
