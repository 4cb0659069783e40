// See background.h.
#include "codegen/cuda/background.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/base/heuristics.h"

namespace dynvm::codegen::cuda {
namespace {

constexpr int kNice = 10;  // the script goes first

struct Pool {
  std::mutex mutex;
  std::condition_variable comes;
  std::vector<std::function<void()>> jobs;
  std::vector<std::thread> threads;
  size_t idle = 0;
  bool over = false;

  void work() {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);  // of this thread alone
    std::unique_lock lock(mutex);
    for (;;) {
      ++idle;
      comes.wait(lock, [&] { return over || !jobs.empty(); });
      --idle;
      if (over) return;
      const std::function<void()> job = std::move(jobs.back());
      jobs.pop_back();
      lock.unlock();
      job();
      lock.lock();
    }
  }
};

// Never destroyed: threads look at it until they are joined.
Pool& pool() {
  static Pool* const the_pool = [] {
    std::atexit(stop_background);
    return new Pool;
  }();
  return *the_pool;
}

bool begun = false;  // there is a pool

}  // namespace

// A part of the processors: the script is to be no slower for it.
size_t background_threads() { return std::max<size_t>(1, static_cast<size_t>(std::thread::hardware_concurrency()) * static_cast<size_t>(base::heuristics().cuda_compilers) / 100); }

void stop_background() {
  if (!begun) return;
  Pool& p = pool();
  {
    const std::lock_guard lock(p.mutex);
    p.over = true;
  }
  p.comes.notify_all();
  for (std::thread& thread : p.threads) thread.join();
  p.threads.clear();
}

void run_in_background(std::function<void()> job) {
  begun = true;
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  if (p.over) return;
  p.jobs.push_back(std::move(job));
  if (p.idle < p.jobs.size() && p.threads.size() < background_threads()) p.threads.emplace_back([&p] { p.work(); });
  p.comes.notify_one();
}

}  // namespace dynvm::codegen::cuda
