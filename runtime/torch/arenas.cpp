// See arenas.h.
#include "runtime/torch/arenas.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <vector>

namespace dynvm::torch_bridge {
namespace {

constexpr uint64_t kIdleIterations = 256;
uint64_t iterations = 0;

std::vector<ArenaRef>& blocks() {
  static auto* const all = new std::vector<ArenaRef>;  // never destroyed: torch's allocators may be gone at the process's end
  return *all;
}

void order_after_last_run(ArenaBlock& block) {
  const c10::impl::VirtualGuardImpl device(block.device.type());
  const c10::Stream now = device.getStream(block.device);
  if (block.stream && *block.stream != now) {
    c10::Event done(block.device.type());
    done.record(*block.stream);
    done.block(now);
    device.recordDataPtrOnStream(block.memory, now);
  }
  block.stream = now;
}

ArenaRef allocate(c10::Device device, size_t bytes) {
  const c10::OptionalDeviceGuard on(device.is_cpu() ? std::nullopt : std::optional(device));
  auto block = std::make_shared<ArenaBlock>();
  block->device = device;
  block->bytes = bytes;
  block->memory = c10::GetAllocator(device.type())->allocate(bytes);
  blocks().push_back(block);
  return block;
}

}  // namespace

ArenaRef take_arena(c10::Device device, size_t bytes, const ArenaRef& last) {
  ArenaRef block;
  if (last && !last->taken && last->memory) {
    block = last;
  } else {
    ArenaRef largest;
    for (const ArenaRef& other : blocks()) {
      if (other->taken || other->device != device) continue;
      if (!largest || other->bytes > largest->bytes) largest = other;
      if (other->bytes >= bytes && (!block || other->bytes < block->bytes)) block = other;
    }
    if (!block) {
      if (largest) {
        largest->memory.clear();
        std::erase(blocks(), largest);
      }
      block = allocate(device, bytes);
    }
  }
  if (device.is_cuda()) order_after_last_run(*block);
  block->taken = true;
  return block;
}

void give_back(ArenaBlock& block) {
  block.taken = false;
  block.given_back = iterations;
}

void age_arenas() {
  if (++iterations % kIdleIterations != 0) return;
  std::erase_if(blocks(), [](const ArenaRef& block) {
    const bool idle = !block->taken && block->given_back + kIdleIterations < iterations;
    if (idle) block->memory.clear();
    return idle;
  });
}

}  // namespace dynvm::torch_bridge
