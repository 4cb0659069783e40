// Clocks, meters and the data of profiles: see profile.h. The file is written in profile_file.cpp.
#include "runtime/base/profile.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unordered_map>

#include "runtime/base/options.h"
#include "runtime/base/profile_file.h"

namespace dynvm::base::profile {

namespace {

using Wall = std::chrono::steady_clock;

// Never destroyed: exit handlers and daemon threads may come after static destructors.
struct State {
  Data data;
  Meter parts[static_cast<size_t>(Part::kCount)];
  Meter elsewhere;                     // other threads, in none of the parts
  Clock main;
  std::vector<std::function<void()>> fillers, finishers;
  std::unordered_map<std::string, int32_t> file_numbers;
  Event* last_run = nullptr;
  Wall::time_point start_time;
  uint64_t start_ticks = 0, end_ticks = 0;
  uint64_t other_threads = 0;          // time of theirs that stands in meters
  double ms_per_tick = 0;              // 0 until the end
  pid_t owner = 0;
  bool written = false;
};

State& state() {
  static State* const the_state = new State;
  return *the_state;
}

thread_local Clock* own_clock = nullptr;

double rate() {
  const State& all = state();
  if (all.ms_per_tick > 0) return all.ms_per_tick;
  const double ms = std::chrono::duration<double, std::milli>(Wall::now() - all.start_time).count();
  return ms / static_cast<double>(std::max<uint64_t>(ticks_now() - all.start_ticks, 1));
}

}  // namespace

Clock& clock() {
  if (own_clock == nullptr) {
    own_clock = new Clock;  // a trace may keep it for as long as it runs
    own_clock->running = &state().elsewhere;
    own_clock->since = ticks_now();
  }
  return *own_clock;
}

void Timing::begin(Meter* meter) {
  if (!on()) return;
  clock_ = &clock();
  before_ = clock_->go_on(meter);
  ++meter->times;
  if (before_ == &state().elsewhere) began_ = clock_->since;
}

void Timing::end() {
  if (clock_ == nullptr) return;
  clock_->go_on(before_);
  if (began_ != 0) state().other_threads += clock_->since - began_;
  clock_ = nullptr;
  began_ = 0;
}

const Clock& main_clock() { return state().main; }
Meter& meter(Part part) { return state().parts[static_cast<size_t>(part)]; }
Data& data() { return state().data; }

int32_t file_number(const std::string& file) {
  State& all = state();
  const auto [found, is_new] = all.file_numbers.try_emplace(file, static_cast<int32_t>(all.data.files.size()));
  if (is_new) all.data.files.push_back(file);
  return found->second;
}

void add_event(Event::Kind kind, int trace, uint64_t begin, uint64_t end, const std::string& name) {
  State& all = state();
  Event* last = all.last_run;
  if (kind == Event::kRun && last != nullptr && last->trace == trace && begin - last->end < 4 * (last->end - last->begin) + (end - begin)) {
    last->end = end;
    last->count++;
    return;
  }
  if (kind == Event::kRun && all.data.events.size() >= kMaxEvents) return;  // the meters have it
  Event& added = all.data.events.emplace_back(Event{kind, trace, name, begin, end});
  all.last_run = kind == Event::kRun ? &added : nullptr;
}

void begin() {
  State& all = state();
  std::string& folder = options().profile;
  if (all.owner != 0 || folder.empty()) return;
  if (folder[0] != '/') {  // the script may change the working directory
    if (char* here = getcwd(nullptr, 0)) {
      folder = std::string(here) + "/" + folder;
      std::free(here);
    }
  }
  std::error_code error;  // writing says so where there is no such folder
  std::filesystem::create_directories(folder, error);
  for (size_t part = 0; part < static_cast<size_t>(Part::kCount); ++part) all.parts[part].owner = static_cast<int64_t>(part);
  all.owner = getpid();
  all.start_time = Wall::now();
  all.start_ticks = ticks_now();
  all.main.running = &meter(Part::kStart);
  all.main.since = all.start_ticks;
  own_clock = &all.main;
  detail::is_on = true;
  std::atexit(write);
}

void on_finish(std::function<void()> finish) { state().finishers.push_back(std::move(finish)); }
void finish() {
  for (const auto& finisher : state().finishers) finisher();
  state().finishers.clear();
}
void on_write(std::function<void()> fill) { state().fillers.push_back(std::move(fill)); }

double ms_of(uint64_t ticks) { return static_cast<double>(ticks) * rate(); }
double ms_at(uint64_t ticks) { return ticks < state().start_ticks ? 0 : ms_of(ticks - state().start_ticks); }

void write() {
  State& all = state();
  if (all.owner != getpid() || all.written) return;
  all.written = true;
  all.main.go_on(all.main.running);
  all.end_ticks = all.main.since;
  all.ms_per_tick = rate();
  for (const auto& fill : all.fillers) fill();
  Totals totals;
  totals.wall_ms = ms_at(all.end_ticks);
  totals.other_threads_ms = ms_of(all.other_threads);
  for (size_t part = 0; part < static_cast<size_t>(Part::kCount); ++part) totals.parts.push_back(all.parts[part]);
  const std::string file = options().profile + "/profile.json";
  const std::string text = json(all.data, totals);
  std::FILE* out = std::fopen(file.c_str(), "w");
  bool done = out != nullptr && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (out != nullptr && std::fclose(out) != 0) done = false;
  if (!done) fmt::print(stderr, "dynvm: cannot write the profile {}: {}\n", file, std::strerror(errno));
}

}  // namespace dynvm::base::profile
