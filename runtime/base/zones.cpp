// Counting and timing of zones: see zones.h.
#include "runtime/base/zones.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

namespace dynvm::base {

namespace {

using Clock = std::chrono::steady_clock;

struct Open {
  int number;
  Clock::time_point start;
  double inner_ms;  // of the zones in it
};

thread_local std::vector<Open> open_zones;

struct All {
  std::vector<Zone> zones;
  std::unordered_map<std::string, int> numbers;
};

All& all() {
  static All* const the_zones = new All;
  return *the_zones;
}

}  // namespace

int zone_number(const std::string& name) {
  const auto [found, is_new] = all().numbers.try_emplace(name, static_cast<int>(all().zones.size()));
  if (is_new) all().zones.push_back({name});
  return found->second;
}

void enter_zone(int number) {
  if (number < 0 || number >= static_cast<int>(all().zones.size())) return;
  ++all().zones[static_cast<size_t>(number)].count;
  open_zones.push_back({number, Clock::now(), 0});
}

void leave_zone(int number) {
  size_t at = open_zones.size();
  while (at > 0 && open_zones[at - 1].number != number) --at;
  if (at == 0) return;
  const Open open = open_zones[--at];
  open_zones.erase(open_zones.begin() + static_cast<std::ptrdiff_t>(at));
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - open.start).count();
  if (at > 0) open_zones[at - 1].inner_ms += ms;
  Zone& zone = all().zones[static_cast<size_t>(number)];
  zone.own_ms += std::max(0.0, ms - open.inner_ms);
  if (std::none_of(open_zones.begin(), open_zones.end(), [number](const Open& other) { return other.number == number; })) zone.ms += ms;
}

const std::vector<Zone>& zones() { return all().zones; }

}  // namespace dynvm::base
