// See block_pool.h.
#include "runtime/torch/block_pool.h"

#include <list>
#include <mutex>

#include "runtime/base/heuristics.h"

namespace dynvm::torch_bridge {
namespace {

struct Block {
  size_t bytes;
  c10::DataPtr memory;
};

struct Pool {
  std::mutex mutex;
  std::list<Block*> kept;  // most recently used first
  size_t kept_bytes = 0;
};

// Lives until the process ends: tensors may die after everything else.
Pool& pool() {
  static auto* the_pool = new Pool;
  return *the_pool;
}

void give_back(void* context) {
  Pool& p = pool();
  std::list<Block*> surplus;
  {
    const std::lock_guard lock(p.mutex);
    p.kept.push_front(static_cast<Block*>(context));
    p.kept_bytes += p.kept.front()->bytes;
    while (p.kept_bytes > static_cast<size_t>(base::heuristics().pooled_most) << 20) {
      p.kept_bytes -= p.kept.back()->bytes;
      surplus.splice(surplus.begin(), p.kept, std::prev(p.kept.end()));
    }
  }
  for (Block* block : surplus) delete block;
}

}  // namespace

c10::DataPtr allocate_pooled(size_t bytes) {
  Pool& p = pool();
  Block* block = nullptr;
  {
    const std::lock_guard lock(p.mutex);
    for (auto at = p.kept.begin(); at != p.kept.end(); ++at) {
      if ((*at)->bytes != bytes) continue;
      block = *at;
      p.kept.erase(at);
      p.kept_bytes -= bytes;
      break;
    }
  }
  if (block == nullptr) block = new Block{bytes, c10::GetAllocator(c10::kCPU)->allocate(bytes)};
  return {block->memory.get(), block, &give_back, c10::Device(c10::kCPU)};
}

bool is_foreign(const c10::DataPtr& memory) {
  static const c10::DeleterFnPtr own = c10::GetAllocator(c10::kCPU)->raw_deleter();
  const c10::DeleterFnPtr deleter = memory.get_deleter();
  return memory.device().is_cpu() && memory.get() != nullptr && deleter != own && deleter != &give_back;
}

bool overlap(const c10::StorageImpl& a, const c10::StorageImpl& b) {
  const char *of_a = static_cast<const char*>(a.data()), *of_b = static_cast<const char*>(b.data());
  return of_a < of_b + b.nbytes() && of_b < of_a + a.nbytes();
}

}  // namespace dynvm::torch_bridge
