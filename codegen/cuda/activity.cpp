// See activity.h. Numbers and layouts are those of cupti_activity.h; CUptiResult is an int, 0 when fine.
#include "codegen/cuda/activity.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/cuda/driver.h"
#include "codegen/cuda/library.h"
#include "runtime/base/profile.h"

namespace dynvm::codegen::cuda {
namespace {

namespace profile = base::profile;

constexpr uint32_t kCopy = 1, kFill = 2, kKernel = 10;  // CUpti_ActivityKind: MEMCPY, MEMSET, CONCURRENT_KERNEL
constexpr size_t kBufferBytes = 1 << 20;
// Where fields stand in a kernel's record; in those of copies and fills all is alike but the stream, and there is no name.
constexpr size_t kStart = 16, kEnd = 24, kKernelStream = 48, kOtherStream = 40, kName = 104;

struct Cupti {
  int (*enable)(uint32_t) = nullptr;
  int (*disable)(uint32_t) = nullptr;
  int (*callbacks)(void (*)(uint8_t**, size_t*, size_t*), void (*)(void*, uint32_t, uint8_t*, size_t, size_t)) = nullptr;
  int (*next)(uint8_t*, size_t, uint8_t**) = nullptr;
  int (*flush)(uint32_t) = nullptr;
  int (*timestamp)(uint64_t*) = nullptr;
  std::string missing;

  Cupti() {
    Library library({"libcupti.so.13", "libcupti.so.12", "libcupti.so"});
    library.find(&enable, "cuptiActivityEnable");
    library.find(&disable, "cuptiActivityDisable");
    library.find(&callbacks, "cuptiActivityRegisterCallbacks");
    library.find(&next, "cuptiActivityGetNextRecord");
    library.find(&flush, "cuptiActivityFlushAll");
    library.find(&timestamp, "cuptiGetTimestamp");
    missing = library.missing();
  }
};

const Cupti& cupti() {
  static const Cupti the_cupti;
  return the_cupti;
}

struct Seen {
  int32_t name;
  uint32_t stream;
  uint64_t start, end;               // nanoseconds of CUPTI's clock
};

struct State {
  std::mutex mutex;
  std::unordered_map<std::string, int32_t> numbers;
  std::vector<profile::GpuData::Work> works;
  std::vector<Seen> events;
  uint64_t start_time = 0, start_ticks = 0;
};

State& state() {
  static State* const the_state = new State;  // CUPTI's threads may outlive static destructors
  return *the_state;
}

template <class T>
T field(const uint8_t* record, size_t at) {
  T value;
  std::memcpy(&value, record + at, sizeof value);
  return value;
}

void take(const uint8_t* record) {
  const uint32_t kind = field<uint32_t>(record, 0);
  if (kind != kKernel && kind != kCopy && kind != kFill) return;
  const char* name = kind == kCopy ? "[copy]" : kind == kFill ? "[fill]" : field<const char*>(record, kName);
  const uint64_t start = field<uint64_t>(record, kStart), end = field<uint64_t>(record, kEnd);
  if (name == nullptr || end < start || start == 0) return;
  State& all = state();
  const auto [found, is_new] = all.numbers.try_emplace(name, static_cast<int32_t>(all.works.size()));
  if (is_new) all.works.push_back({name, 0, 0});
  profile::GpuData::Work& work = all.works[static_cast<size_t>(found->second)];
  work.runs++;
  work.ms += 1e-6 * static_cast<double>(end - start);
  if (all.events.size() < profile::kMaxEvents) all.events.push_back({found->second, field<uint32_t>(record, kind == kKernel ? kKernelStream : kOtherStream), start, end});
}

void buffer_wanted(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer != nullptr ? kBufferBytes : 0;
  *max_records = 0;
}

void buffer_full(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard lock(state().mutex);
  for (uint8_t* record = nullptr; cupti().next(buffer, valid, &record) == 0;) take(record);
  std::free(buffer);
}

void finish() {
  uint64_t now = 0;
  const uint64_t ticks = profile::ticks_now();
  cupti().timestamp(&now);
  for (uint32_t kind : {kKernel, kCopy, kFill}) cupti().disable(kind);
  cupti().flush(1);
  State& all = state();
  const std::lock_guard lock(all.mutex);
  profile::GpuData& gpu = profile::data().gpu;
  gpu.works = all.works;
  // Both clocks run evenly: what CUPTI's says is put between the two moments at which both were read.
  const double rate = now > all.start_time ? static_cast<double>(ticks - all.start_ticks) / static_cast<double>(now - all.start_time) : 0;
  const auto ticks_of = [&](uint64_t time) { return time < all.start_time ? all.start_ticks : all.start_ticks + static_cast<uint64_t>(rate * static_cast<double>(time - all.start_time)); };
  for (const Seen& seen : all.events) gpu.events.push_back({seen.name, static_cast<int>(seen.stream), ticks_of(seen.start), ticks_of(seen.end)});
}

}  // namespace

void watch_activity() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (!profile::on() || !driver_missing().empty()) return;
    profile::GpuData& gpu = profile::data().gpu;
    const DeviceFacts& facts = device_facts(0);
    gpu.device = facts.name;
    gpu.bytes_per_s = facts.bytes_per_s;
    gpu.flops_per_s = facts.flops_per_s;
    gpu.missing = cupti().missing;
    if (!gpu.missing.empty()) return;
    State& all = state();
    if (cupti().callbacks(buffer_wanted, buffer_full) != 0 || cupti().enable(kKernel) != 0) {
      gpu.missing = "CUPTI refuses: another profiler may use it";
      return;
    }
    cupti().enable(kCopy);
    cupti().enable(kFill);
    cupti().timestamp(&all.start_time);
    all.start_ticks = profile::ticks_now();
    profile::on_finish(finish);
  });
}

}  // namespace dynvm::codegen::cuda
