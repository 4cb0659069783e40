// See autotune.h.
#include "codegen/cuda/autotune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "codegen/cuda/driver.h"
#include "codegen/cuda/graph.h"
#include "codegen/cuda/kernel.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/timing.h"
#include "ir/kernel/symbols.h"
#include "runtime/base/cache_folder.h"
#include "runtime/base/log.h"
#include "runtime/base/report.h"

namespace dynvm::codegen::cuda {
namespace {

constexpr int kRounds = 4;            // steps away from the model's shape
constexpr int kTurns = 5;
constexpr int kMostLaunches = 20;     // of a turn
constexpr double kTurnSeconds = 1e-4;
constexpr double kFaster = 0.97;      // of the time: less may be chance
constexpr int64_t kAligned = 256;

base::CacheFolder* folder() { return base::kept_folder("shapes"); }

// How it is launched, and what: sources with the same one are the same work.
std::string launch_key(const Source& source, int device) {
  std::string key = cubin_key(source.text, device_facts(device).architecture) + device_facts(device).name;
  for (int64_t number : {int64_t{source.grid_x}, int64_t{source.grid_y}, int64_t{source.block}, int64_t{source.shared_bytes}}) key += fmt::format(" {}", number);
  for (int64_t number : source.tail) key += fmt::format(" {}", number);
  return base::stable_hash(key);
}

struct Candidate {
  Source source;
  std::shared_ptr<FunctionCode> code;
  double seconds = 0;
};

// Memory of a kernel's own.
class Memory {
 public:
  Memory(int device, void* stream) : device_(device), stream_(stream) {}
  ~Memory() {
    for (void* each : all_) release(device_, each);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  // What the pointer is.
  base::Status add(const Extent& extent, int64_t* out) {
    const int64_t before = (extent.before + kAligned - 1) / kAligned * kAligned;
    void* memory = nullptr;
    if (base::Status status = allocate(device_, std::max(before + extent.behind, kAligned), stream_, &memory); !status.ok()) return status;
    all_.push_back(memory);
    *out = reinterpret_cast<int64_t>(memory) + before;
    return {};
  }

 private:
  int device_;
  void* stream_;  // in whose order it is zero
  std::vector<void*> all_;
};

// The way of one kernel from the model's shape to one that is as fast as any beside it.
class Search {
 public:
  explicit Search(const Tunable& kernel) : kernel_(kernel) { begin({kernel.source, nullptr}); }

  // The best one, and what is to be compiled and timed beside it.
  std::vector<Candidate>& candidates() { return candidates_; }
  const Candidate& best() const { return candidates_.front(); }
  bool timed() const { return first_seconds_ > 0; }
  bool changed() const { return best().source.shape != kernel_.source.shape; }
  int device() const { return kernel_.device; }
  bool over() const { return candidates_.size() < 2; }

  // Times those that have functions; from the fastest on, if it is another one.
  base::Status step(LaunchTimer* timer) {
    if (best().code == nullptr) return base::Status::failure("the model's shape does not compile");
    std::erase_if(candidates_, [](const Candidate& each) { return each.code == nullptr; });
    if (base::Status status = measure(timer); !status.ok()) return status;
    const auto fastest = std::min_element(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
    if (first_seconds_ == 0) first_seconds_ = candidates_[0].seconds;
    if (fastest->seconds < kFaster * candidates_[0].seconds) begin(Candidate(*fastest));
    else candidates_.resize(1);
    return {};
  }

  void log() const {
    DYNVM_LOG(kCompile, "autotune: {}: {:.2f} us with {}; {:.2f} us with {}", kernel_.source.name, first_seconds_ * 1e6, shape_text(kernel_.source.shape), best().seconds * 1e6,
              shape_text(best().source.shape));
  }

 private:
  void begin(Candidate from) {
    const Shape here = from.source.shape;
    candidates_.clear();
    seen_.insert(launch_key(from.source, kernel_.device));
    candidates_.push_back(std::move(from));
    for (const Shape& shape : neighbours(here)) {
      Candidate other;
      if (kernel_.render(shape, &other.source).ok() && seen_.insert(launch_key(other.source, kernel_.device)).second) candidates_.push_back(std::move(other));
    }
  }

  base::Status measure(LaunchTimer* timer) {
    Memory memory(kernel_.device, timer->stream());
    std::map<int32_t, int64_t> pointers;
    for (const auto& [pointer, extent] : kernel_.extents)
      if (base::Status status = memory.add(extent, &pointers[pointer]); !status.ok()) return status;
    std::vector<Launch> launches;
    for (const Candidate& each : candidates_) {
      const Source& source = each.source;
      Launch& launch = launches.emplace_back(Launch{each.code->function(), source.grid_x, source.grid_y, source.block, source.shared_bytes, {}});
      for (int32_t pointer : source.pointers) launch.parameter.push_back(pointers.at(pointer));
      launch.parameter.insert(launch.parameter.end(), static_cast<size_t>(source.num_scalars), 0);
      launch.parameter.insert(launch.parameter.end(), source.tail.begin(), source.tail.end());
      if (source.workspace_bytes > 0)
        if (base::Status status = memory.add({0, source.workspace_bytes}, &launch.parameter.emplace_back()); !status.ok()) return status;
    }
    std::vector<int> counts;
    for (size_t k = 0; k < launches.size(); ++k) {
      double once = 0;
      base::Status status = timer->seconds(launches[k], 1, &once);
      if (status.ok()) status = timer->seconds(launches[k], 1, &once);
      candidates_[k].seconds = status.ok() ? once : HUGE_VAL;
      if (!status.ok() && k == 0) return status;
      counts.push_back(status.ok() ? std::clamp(static_cast<int>(kTurnSeconds / std::max(once, 1e-7)), 2, kMostLaunches) : 0);
    }
    for (int turn = 0; turn < kTurns; ++turn)
      for (size_t k = 0; k < launches.size(); ++k) {
        double seconds = HUGE_VAL;
        if (counts[k] == 0) continue;
        if (base::Status status = timer->seconds(launches[k], counts[k], &seconds); !status.ok()) return status;
        candidates_[k].seconds = turn == 0 ? seconds : std::min(candidates_[k].seconds, seconds);
      }
    return {};
  }

  const Tunable& kernel_;
  std::vector<Candidate> candidates_;
  std::set<std::string> seen_;
  double first_seconds_ = 0;
};

// The functions of all candidates that have none yet.
void compile(const std::vector<Search*>& searches) {
  std::vector<const Source*> sources;
  std::vector<int> devices;
  std::vector<Candidate*> missing;
  for (Search* search : searches)
    for (Candidate& each : search->candidates()) {
      if (each.code != nullptr) continue;
      sources.push_back(&each.source);
      devices.push_back(search->device());
      missing.push_back(&each);
    }
  const std::vector<std::shared_ptr<FunctionCode>> functions = begin_functions(sources, devices);
  for (size_t k = 0; k < missing.size(); ++k)
    if (functions[k] != nullptr && functions[k]->wait().ok()) missing[k]->code = functions[k];
}

// What this process has found.
std::map<std::string, Shape>& found() {
  static auto* const all = new std::map<std::string, Shape>;
  return *all;
}

std::optional<Shape> read_shape(const std::string& key) {
  std::string text;
  if (const auto known = found().find(key); known != found().end()) return known->second;
  if (folder() == nullptr || !folder()->has(key) || !folder()->read(key, &text).ok()) return std::nullopt;
  return parse_shape(text);
}

void keep_shape(const std::string& key, const Shape& shape) {
  found()[key] = shape;
  if (folder() == nullptr) return;
  if (base::Status status = folder()->write(key, shape_text(shape)); !status.ok()) DYNVM_LOG(kCache, "{}", status.message());
}

}  // namespace

bool extents_of(const std::vector<ir::Kernel>& kernels, const std::vector<int64_t>& storage_bytes, Extents* out) {
  for (const ir::Kernel& kernel : kernels) {
    if (ir::has_symbols(kernel) || ir::has_op(kernel, ir::KOp::k_within)) return false;
    const bool reaches_all = ir::has_op(kernel, ir::KOp::k_load_at) || ir::stores_at_places(kernel);
    for (const ir::KernelOperand& operand : kernel.operands) {
      int64_t first = operand.offset, last = operand.offset;
      for (size_t d = 0; d < kernel.sizes.size(); ++d) (operand.strides[d] < 0 ? first : last) += std::max<int64_t>(kernel.sizes[d] - 1, 0) * operand.strides[d];
      const int64_t bytes = ir::dtype_size(operand.dtype);
      Extent& extent = (*out)[operand.pointer];
      extent.before = std::max(extent.before, -first * bytes);
      extent.behind = std::max(extent.behind, (last + 1) * bytes);
      if (!reaches_all) continue;
      const auto pointer = static_cast<size_t>(operand.pointer);
      if (pointer >= storage_bytes.size() || storage_bytes[pointer] == 0) return false;
      extent.behind = std::max(extent.behind, storage_bytes[pointer]);
    }
  }
  return true;
}

std::vector<Tuned> tune(const std::vector<Tunable>& kernels) {
  std::vector<Tuned> tuned(kernels.size());
  auto& counts = base::report().autotune;
  const double begun = base::ms_since_start();
  std::vector<std::string> keys;
  std::vector<std::unique_ptr<Search>> searches(kernels.size());
  std::vector<Search*> active;
  std::map<int, std::unique_ptr<LaunchTimer>> timers;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const int device = kernels[k].device;
    keys.push_back(launch_key(kernels[k].source, device));
    if (const std::optional<Shape> known = read_shape(keys[k])) {
      tuned[k].shape = *known;
      ++counts.read;
      continue;
    }
    if (is_capturing(device, current_stream_of(device))) continue;
    if (timers.count(device) == 0)
      if (base::Status status = LaunchTimer::make(device, &timers[device]); !status.ok()) DYNVM_LOG(kCompile, "autotune: {}", status.message());
    if (timers[device] != nullptr) active.push_back((searches[k] = std::make_unique<Search>(kernels[k])).get());
  }
  for (int round = 0; round < kRounds && !active.empty(); ++round) {
    compile(active);
    std::erase_if(active, [&](Search* search) {
      const base::Status status = search->step(timers[search->device()].get());
      if (!status.ok()) DYNVM_LOG(kCompile, "autotune: {}", status.message());
      return !status.ok() || search->over();
    });
  }
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (searches[k] == nullptr || !searches[k]->timed()) continue;
    const Search& search = *searches[k];
    search.log();
    ++counts.timed;
    counts.changed += search.changed() ? 1 : 0;
    tuned[k] = {search.changed() ? search.best().source.shape : Shape{}, search.best().code};
    keep_shape(keys[k], tuned[k].shape);
  }
  counts.ms += base::ms_since_start() - begun;
  return tuned;
}

}  // namespace dynvm::codegen::cuda
