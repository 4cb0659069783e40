// The queue of events: see events.h.
#include "runtime/base/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>

namespace dynvm::base {

namespace {

constexpr std::string_view kNames[] = {
#define X(enumerator, name, text) name,
#include "runtime/base/log_categories.def"
#undef X
};
constexpr size_t kMost = 10000;

struct Queue {
  std::mutex mutex;
  std::deque<nlohmann::ordered_json> events;
  uint64_t lost = 0;
  void (*wake)() = nullptr;
};

// Never destroyed: threads may log until the process ends.
Queue& queue() {
  static Queue* const the_queue = new Queue;
  return *the_queue;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Status observe(std::string_view names) {
  uint32_t set = 0;
  for (size_t start = 0; start < names.size();) {
    const size_t end = std::min(names.find(',', start), names.size());
    const std::string_view word = names.substr(start, end - start);
    const auto* const found = std::find(std::begin(kNames), std::end(kNames), word);
    if (found == std::end(kNames)) return Status::failure(fmt::format("there is no event '{}'; there are {}", word, fmt::join(kNames, ", ")));
    set |= 1u << (found - std::begin(kNames));
    start = end + 1;
  }
  __atomic_store_n(&detail::observed_categories, set, __ATOMIC_RELAXED);
  return {};
}

void publish(LogCategory category, const EventFields& fields, const std::string& text) {
  nlohmann::ordered_json event = {{"event", kNames[static_cast<size_t>(category)]}, {"text", text}, {"time", now()}};
  if (fields.what != nullptr) event["what"] = fields.what;
  if (fields.trace != 0) event["trace"] = fields.trace;
  if (!fields.file.empty()) event["file"] = fields.file;
  if (fields.line != 0) event["line"] = fields.line;
  if (!fields.reason.empty()) event["reason"] = fields.reason;
  if (!fields.detail.empty()) event["detail"] = fields.detail;
  if (fields.times != 0) event["times"] = fields.times;
  if (fields.ms != 0) event["ms"] = fields.ms;
  Queue& q = queue();
  {
    const std::lock_guard lock(q.mutex);
    if (q.events.size() == kMost) q.events.pop_front(), ++q.lost;
    q.events.push_back(std::move(event));
  }
  if (q.wake != nullptr) q.wake();
}

bool has_events() {
  Queue& q = queue();
  const std::lock_guard lock(q.mutex);
  return !q.events.empty();
}

std::string take_events() {
  Queue& q = queue();
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  {
    const std::lock_guard lock(q.mutex);
    if (q.lost != 0 && !q.events.empty()) q.events.front()["lost"] = std::exchange(q.lost, 0);
    for (nlohmann::ordered_json& event : q.events) all.push_back(std::move(event));
    q.events.clear();
  }
  return all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void on_publish(void (*wake)()) { queue().wake = wake; }

void wake_for_events() {
  if (queue().wake != nullptr && has_events()) queue().wake();
}

}  // namespace dynvm::base
