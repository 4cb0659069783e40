// Reading and setting of the numbers that steer the JIT: see heuristics.h.
#include "runtime/base/heuristics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace dynvm::base {

namespace {

enum Unit { kCount, kBytes, kKib, kMib, kNs, kUs, kMs, kPercent, kThreads };
constexpr std::string_view kUnits[] = {"", "bytes", "KiB", "MiB", "ns", "us", "ms", "%", "threads"};

// What is true of every row, checked when this is compiled.
#define X(name, value, least, greatest, unit, like, text) \
  static_assert((least) >= 0 && (least) <= (value) && (value) <= (greatest), #name " is outside of its bounds");
#include "runtime/base/heuristics.def"

// Single changes that lead from one name to the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1])});
      corner = above;
    }
  }
  return row[b.size()];
}

Status find_row(std::string_view given, const HeuristicRow** found) {
  std::string name(given);
  std::replace(name.begin(), name.end(), '-', '_');
  const HeuristicRow* nearest = nullptr;
  size_t least = name.size() / 2 + 1;
  for (const HeuristicRow& row : heuristic_rows()) {
    if (row.name == name) {
      *found = &row;
      return {};
    }
    if (const size_t changes = distance(row.name, name); changes < least) least = changes, nearest = &row;
  }
  return Status::failure(fmt::format("'{}' is no number of dynvm's{}", given, nearest != nullptr ? fmt::format(" (is {} meant?)", nearest->name) : " (docs/heuristics.md has them)"));
}

std::string bounds(const HeuristicRow& row) {
  return fmt::format("{}: expected a whole number from {} to {}{}", row.name, row.least, row.greatest, row.power_of_two ? " that is a power of two" : "");
}

Status put(const HeuristicRow& row, int64_t value, Heuristics* numbers) {
  if (value < row.least || value > row.greatest || (row.power_of_two && (value & (value - 1)) != 0)) return Status::failure(fmt::format("{}, got {}", bounds(row), value));
  numbers->*row.field = static_cast<int>(value);
  return {};
}

Status apply_word(std::string_view word, Heuristics* numbers) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return Status::failure(fmt::format("expected NAME=VALUE or FILE.toml, got '{}'", word));
  const HeuristicRow* row = nullptr;
  if (Status status = find_row(word.substr(0, equals), &row); !status) return status;
  const std::string_view text = word.substr(equals + 1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return Status::failure(fmt::format("{}, got '{}'", bounds(*row), text));
  return put(*row, value, numbers);
}

std::string place(const std::string& file, const toml::source_region& where) { return fmt::format("{}:{}", file, where.begin.line); }

Status apply_file(const std::string& file, Heuristics* numbers) {
  const toml::parse_result parsed = toml::parse_file(file);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Status::failure(fmt::format("{}: {}", error.source().begin.line == 0 ? file : place(file, error.source()), error.description()));
  }
  for (const auto& [key, node] : parsed.table()) {
    const std::string where = place(file, key.source());
    const HeuristicRow* row = nullptr;
    if (node.is_table() || node.is_array()) return Status::failure(fmt::format("{}: expected lines NAME = VALUE, got a {} '{}'", where, node.is_table() ? "table" : "list", key.str()));
    if (Status status = find_row(key.str(), &row); !status) return status.in(where);
    const toml::value<int64_t>* value = node.as_integer();
    if (value == nullptr) return Status::failure(fmt::format("{}: {}, got a {}", where, bounds(*row), node.is_string() ? "text" : node.is_boolean() ? "boolean" : node.is_floating_point() ? "fraction" : "date"));
    if (Status status = put(*row, value->get(), numbers); !status) return status.in(where);
  }
  return {};
}

bool is_file(std::string_view word) { return word.size() > 5 && word.substr(word.size() - 5) == ".toml"; }

std::vector<std::function<void()>>& followers() {
  static auto* const all = new std::vector<std::function<void()>>;
  return *all;
}

}  // namespace

const std::vector<HeuristicRow>& heuristic_rows() {
  static const auto* const rows = new std::vector<HeuristicRow>{
#define X(name, value, least, greatest, unit, like, text) {#name, &Heuristics::name, value, least, greatest, kUnits[unit], (unit) == kThreads, like, text},
#include "runtime/base/heuristics.def"
  };
  return *rows;
}

Status parse_heuristics(std::string_view words, Heuristics* numbers) {
  Heuristics changed = *numbers;
  for (size_t start = 0; start <= words.size() && !words.empty();) {
    const size_t end = std::min(words.find(',', start), words.size());
    const std::string_view word = words.substr(start, end - start);
    if (Status status = is_file(word) ? apply_file(std::string(word), &changed) : apply_word(word, &changed); !status) return status;
    start = end + 1;
  }
  *numbers = changed;
  return {};
}

void set_heuristics(const Heuristics& numbers) {
  detail::store(numbers);
  for (const auto& follow : followers()) follow();
}

void on_heuristics(std::function<void()> follow) { followers().push_back(std::move(follow)); }

std::string changed_heuristics() {
  std::string text;
  for (const HeuristicRow& row : heuristic_rows())
    if (const int value = heuristics().*row.field; value != row.value) text += fmt::format("{}{}={}", text.empty() ? "" : ",", row.name, value);
  return text;
}

std::string heuristics_json() {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const HeuristicRow& row : heuristic_rows()) {
    all[std::string(row.name)] = {{"value", heuristics().*row.field}, {"default", row.value}, {"least", row.least}, {"greatest", row.greatest},
                                  {"unit", row.unit}, {"like", row.like}, {"meaning", row.text}};
  }
  return all.dump();
}

}  // namespace dynvm::base
