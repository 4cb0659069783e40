// Writing of the report: see report.h.
#include "runtime/base/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/checks.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/options.h"
#include "runtime/base/zones.h"

namespace dynvm::base {

namespace {

// Never destroyed: exit handlers and daemon threads may come after static destructors.
struct State {
  Report report;
  std::vector<std::function<void(Report&)>> fillers;
  pid_t owner = 0;    // the process that asked for the report; its forked children write files of their own
  pid_t written = 0;  // the process that has written
  bool counts_wanted = false;
};

const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();

State& state() {
  static State* const the_state = new State;
  return *the_state;
}

uint64_t sum(const std::map<std::string, uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0},
                         [](uint64_t total, const auto& entry) { return total + entry.second; });
}

using Names = std::vector<std::pair<std::string, ResidualReport>>;

// Those that took the most time first.
Names by_time(const std::map<std::string, ResidualReport>& residuals) {
  Names sorted(residuals.begin(), residuals.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
  return sorted;
}

// "print 3 in 0.2 ms, sorted 1 in 0.0 ms": at most three.
std::string most_costly(const std::map<std::string, ResidualReport>& residuals) {
  std::string text;
  Names sorted = by_time(residuals);
  for (size_t i = 0; i < sorted.size() && i < 3; ++i)
    text += fmt::format("{}{} {} in {:.1f} ms", i == 0 ? "" : ", ", sorted[i].first, sorted[i].second.calls, sorted[i].second.ms);
  if (sorted.size() > 3) text += fmt::format(", {} more", sorted.size() - 3);
  return text;
}

// "name 3, other 1": the most frequent ones first, at most five.
std::string most_frequent(const std::map<std::string, uint64_t>& counts) {
  std::vector<std::pair<std::string, uint64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < sorted.size() && i < 5; ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", sorted[i].first, sorted[i].second);
  }
  if (sorted.size() > 5) text += fmt::format(", {} more", sorted.size() - 5);
  return text;
}

std::string in_brackets(const std::string& text) { return text.empty() ? "" : " (" + text + ")"; }

// FILE.json becomes FILE.PID.json.
std::string child_file(const std::string& file) {
  size_t dot = file.rfind('.');
  if (dot == std::string::npos || file.find('/', dot) != std::string::npos) dot = file.size();
  return fmt::format("{}.{}{}", file.substr(0, dot), getpid(), file.substr(dot));
}

void write_file(const std::string& file, const std::string& text) {
  std::FILE* out = std::fopen(file.c_str(), "w");
  bool written = out != nullptr && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (out != nullptr && std::fclose(out) != 0) written = false;
  if (!written) fmt::print(stderr, "dynvm: cannot write the report {}: {}\n", file, std::strerror(errno));
}

}  // namespace

Report& report() { return state().report; }

double ms_since_start() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count(); }

bool report_wanted() { return !options().report.empty() || options().stats || state().counts_wanted; }

void want_counts(bool wanted) { state().counts_wanted = wanted; }

void on_report(std::function<void(Report&)> fill) { state().fillers.push_back(std::move(fill)); }

const Report& report_now() {
  State& all = state();
  for (const auto& fill : all.fillers) fill(all.report);
  return all.report;
}

TraceReport& Report::add_trace() {
  TraceReport& trace = traces.emplace_back();
  trace.id = static_cast<int>(traces.size());
  return trace;
}

double Report::time_saved_ms() const {
  double saved = 0;
  for (const TraceReport& trace : traces) {
    if (trace.interpreted_ms > 0 && trace.compiled_ms > 0) {
      saved += trace.interpreted_ms * trace.rounds * (static_cast<double>(trace.runs) + trace.partial_runs) - trace.compiled_ms;
    }
  }
  return saved;
}

std::string Report::json() const {
  nlohmann::ordered_json all;
  all["tensor_ops_total"] = tensor_ops_total;
  all["tensor_ops_compiled"] = tensor_ops_compiled;
  all["traces"] = nlohmann::ordered_json::array();
  for (const TraceReport& trace : traces) {
    all["traces"].push_back({{"id", trace.id},
                             {"file", trace.file},
                             {"line", trace.line},
                             {"function", trace.function},
                             {"kind", trace.kind},
                             {"ir_insts", trace.ir_insts},
                             {"tensor_ops", trace.tensor_ops},
                             {"kernels", trace.kernels},
                             {"rounds", trace.rounds},
                             {"runs", trace.runs},
                             {"exits", trace.exits},
                             {"partial_runs", trace.partial_runs},
                             {"interpreted_ms", trace.interpreted_ms},
                             {"compiled_ms", trace.compiled_ms},
                             {"operations", trace.operations},
                             {"kernel_names", trace.kernel_names}});
  }
  all["loops"] = nlohmann::ordered_json::array();
  for (const LoopReport& loop : loops) {
    all["loops"].push_back({{"file", loop.file},
                            {"line", loop.line},
                            {"function", loop.function},
                            {"began_ms", loop.began_ms},
                            {"settled_ms", loop.settled_ms},
                            {"last_ms", loop.last_ms},
                            {"iterations", loop.iterations},
                            {"settled_iterations", loop.settled_iterations}});
  }
  all["side_exits"] = side_exits;
  all["aborts"] = aborts;
  all["limits"] = limits;
  all["residual_calls"] = nlohmann::ordered_json::object();
  all["residual_ms"] = nlohmann::ordered_json::object();
  for (const auto& [name, residual] : by_time(residual_calls)) {
    all["residual_calls"][name] = residual.calls;
    all["residual_ms"][name] = residual.ms;
  }
  all["handovers"] = handovers;
  all["autotune"] = {{"timed", autotune.timed}, {"changed", autotune.changed}, {"read", autotune.read}, {"ms", autotune.ms}};
  all["cuda_graphs"] = {{"captured", graphs.captured}, {"launches", graphs.launches}};
  all["cuda_reads"] = {{"mirrored", reads.mirrored}, {"copied", reads.copied}};
  all["native"] = {{"codes", native.codes}, {"runs", native.runs}, {"bytes", native.bytes}, {"given_up", native.given_up}};
  all["cache"] = {{"loaded", cache.loaded}, {"kept", cache.kept}, {"read_ms", cache.read_ms}, {"write_ms", cache.write_ms}, {"refused", cache.refused},
                  {"not_kept", cache.not_kept}};
  all["sizes"] = {{"generic", sizes.generic}, {"made", sizes.made}, {"open", sizes.open}, {"refused", sizes.refused}};
  all["checks"] = {{"made", checks().made}, {"different", checks().different}, {"undetermined", checks().undetermined}, {"skipped", checks().skipped}};
  all["trials"] = {{"made", trials.made}, {"slower", trials.slower}};
  all["policy"] = nlohmann::ordered_json::object();
  for (const auto& [decision, answers] : policy)
    all["policy"][decision] = {{"asked", answers.asked}, {"yes", answers.yes}, {"no", answers.no}, {"against", answers.against}};
  all["switches"] = switches;
  all["failures"] = {{"again", failures.again}, {"own", failures.own}};
  all["recordings"] = recordings;
  all["record_ms"] = record_ms;
  all["compile_ms"] = compile_ms;
  all["time_saved_ms"] = time_saved_ms();
  all["zones"] = nlohmann::ordered_json::object();
  for (const Zone& zone : zones()) all["zones"][zone.name] = {{"count", zone.count}, {"ms", zone.ms}, {"own_ms", zone.own_ms}};
  all["heuristics"] = nlohmann::ordered_json::object();
  for (const HeuristicRow& row : heuristic_rows())
    if (const int value = heuristics().*row.field; value != row.value) all["heuristics"][std::string(row.name)] = value;
  all["notes"] = notes;
  // File names need not be UTF-8.
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string Report::stats() const {
  uint64_t runs = 0;
  size_t side = 0;
  for (const TraceReport& trace : traces) {
    runs += trace.runs;
    side += trace.kind == "side";
  }
  double share = tensor_ops_total == 0 ? 0 : 100.0 * static_cast<double>(tensor_ops_compiled) / static_cast<double>(tensor_ops_total);
  std::string noted;
  for (const auto& [what, why] : notes) noted += fmt::format("{}{}: {}", noted.empty() ? "" : ", ", what, why);
  std::string text = "dynvm:\n";
  text += fmt::format("  traces            {} ({} of them side traces), run {} times\n", traces.size(), side, runs);
  text += fmt::format("  tensor operations {}, {:.1f} % of them in compiled traces\n", tensor_ops_total, share);
  text += fmt::format("  side exits        {}\n", side_exits);
  text += fmt::format("  aborts            {}{}\n", sum(aborts), in_brackets(most_frequent(aborts)));
  uint64_t residuals = 0;
  for (const auto& [name, residual] : residual_calls) residuals += residual.calls;
  text += fmt::format("  residual calls    {}{}\n", residuals, in_brackets(most_costly(residual_calls)));
  text += fmt::format("  hand-overs        {}\n", handovers);
  text += fmt::format("  native code       {} runs of {} code objects, {} KiB, given up {} times\n", native.runs, native.codes, native.bytes / 1024,
                      native.given_up);
  text += fmt::format("  recording         {:.1f} ms\n", record_ms);
  text += fmt::format("  compiling         {:.1f} ms\n", compile_ms);
  text += fmt::format("  time saved        {:.1f} ms\n", time_saved_ms());
  text += fmt::format("  refused           {}\n", noted.empty() ? "nothing" : noted);
  for (const auto& [place, ratio] : trials.slower) text += fmt::format("  left alone        {}: with traces it takes {:.2f} of the interpreter's time\n", place, ratio);
  for (const Zone& zone : zones()) text += fmt::format("  zone              {}: {} times, {:.1f} ms, {:.1f} ms without zones inside\n", zone.name, zone.count, zone.ms, zone.own_ms);
  return text;
}

void write_report() {
  State& all = state();
  if (all.owner == 0 || all.written == getpid()) return;
  all.written = getpid();
  report_now();
  bool child = all.owner != getpid();
  const Options& wanted = options();
  if (!wanted.report.empty()) {
    write_file(child ? child_file(wanted.report) : wanted.report, all.report.json());
  }
  if (wanted.stats && !child) {
    std::fputs(all.report.stats().c_str(), stderr);
    std::fflush(stderr);
  }
}

void write_report_at_exit() {
  State& all = state();
  if (all.owner != 0 || (options().report.empty() && !options().stats)) return;
  all.owner = getpid();
  std::string& file = options().report;
  if (!file.empty() && file[0] != '/') {  // the script may change the working directory
    if (char* folder = getcwd(nullptr, 0)) {
      file = std::string(folder) + "/" + file;
      std::free(folder);
    }
  }
  std::atexit(write_report);
}

}  // namespace dynvm::base
