// See sampler.h.
#include "vm/sampler.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "vm/cpython/cpython.h"
#include "vm/decode.h"

namespace dynvm::vm {

namespace {

using cpython::Frame;

constexpr size_t kMaxDepth = 100;  // of deeper stacks the innermost frames

class Sampler {
 public:
  // Negative: /proc/self/mem could not be opened.
  Sampler(double interval_ms, int64_t (*tag)()) : interval_ms_(interval_ms), tag_(tag), thread_state_(PyThreadState_Get()), memory_(open("/proc/self/mem", O_RDONLY | O_CLOEXEC)) {
    codes_.reserve(1 << 16);
  }
  ~Sampler() {
    if (memory_ >= 0) close(memory_);
  }
  bool usable() {
    Frame copy;
    const Frame* frame = cpython::current_frame(thread_state_);
    return memory_ >= 0 && (frame == nullptr || read(frame, &copy));
  }
  void start() {
    thread_ = std::thread([this] { run(); });
  }
  Samples stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
    return std::move(samples_);
  }
  // The code object lives from now on.
  void keep(PyCodeObject* code) {
    const std::lock_guard lock(mutex_);
    if (codes_.insert(code).second) Py_INCREF(code);
  }

 private:
  static constexpr size_t kHeader = offsetof(Frame, localsplus);
  bool read(const Frame* frame, Frame* copy) const {
    const auto at = reinterpret_cast<uintptr_t>(frame);
    const uintptr_t offset = at - stack_begin_;  // any number: the address may be anything
    if (offset < stack_bytes_ && stack_bytes_ - offset >= kHeader) {
      std::memcpy(copy, stack_ + offset, kHeader);
      return true;
    }
    return pread(memory_, copy, kHeader, static_cast<off_t>(at)) == static_cast<ssize_t>(kHeader);
  }
  // Most frames lie close together: they are read at once.
  void read_stack() {
    const _PyStackChunk* chunk = thread_state_->datastack_chunk;
    const auto begin = reinterpret_cast<uintptr_t>(chunk), top = reinterpret_cast<uintptr_t>(thread_state_->datastack_top);
    stack_bytes_ = 0;
    if (chunk == nullptr || top <= begin || top - begin > sizeof stack_) return;
    const ssize_t bytes = pread(memory_, stack_, top - begin, static_cast<off_t>(begin));
    stack_begin_ = begin;
    stack_bytes_ = bytes < 0 ? 0 : static_cast<size_t>(bytes);
  }

  void run() {
    std::unique_lock lock(mutex_);
    auto due = std::chrono::steady_clock::now();
    while (!stopping_) {
      due = std::max(due + std::chrono::microseconds(static_cast<int64_t>(interval_ms_ * 1000)), std::chrono::steady_clock::now() - std::chrono::milliseconds(20));
      if (wake_.wait_until(lock, due, [this] { return stopping_; })) return;
      sample();
    }
  }

  void sample() {
    const int64_t tag = tag_();
    read_stack();
    Samples::Stack stack;
    alignas(Frame) Frame copy;
    const Frame* frame = cpython::current_frame(thread_state_);
    for (size_t depth = 0; frame != nullptr && depth < kMaxDepth && read(frame, &copy); ++depth) {
      PyCodeObject* code = cpython::code_of(&copy);
      if (codes_.count(code) != 0) {
        const int unit = cpython::last_unit(&copy);
        stack.emplace_back(code, unit >= 0 && unit < Py_SIZE(code) ? unit : 0);
      }
      if (copy.previous == frame) break;
      frame = copy.previous;
    }
    if (stack.empty()) {
      ++samples_.lost;
      return;
    }
    std::reverse(stack.begin(), stack.end());
    ++samples_.counts[{tag, std::move(stack)}];
  }

  double interval_ms_;
  int64_t (*tag_)();
  PyThreadState* thread_state_;
  int memory_;
  std::thread thread_;
  std::mutex mutex_;  // of all below; the sampling thread waits with it free
  std::condition_variable wake_;
  bool stopping_ = false;
  std::unordered_set<PyCodeObject*> codes_;
  char stack_[1 << 15];       // a copy of what lies at stack_begin_
  uintptr_t stack_begin_ = 0;
  size_t stack_bytes_ = 0;
  Samples samples_;
};

Sampler* sampler = nullptr;  // never destroyed while codes may be decoded

}  // namespace

bool start_sampler(double interval_ms, int64_t (*tag)()) {
  auto* made = new Sampler(interval_ms, tag);
  if (!made->usable()) {
    delete made;
    return false;
  }
  sampler = made;
  on_decoded = [](PyCodeObject* code) { sampler->keep(code); };
  pthread_atfork(nullptr, nullptr, [] { on_decoded = nullptr; });  // the thread is not there any more, and may have held the lock
  sampler->start();
  return true;
}

Samples stop_sampler() {
  on_decoded = nullptr;
  return sampler == nullptr ? Samples() : sampler->stop();
}

}  // namespace dynvm::vm
