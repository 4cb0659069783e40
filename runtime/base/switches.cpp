// Parsing and asking of switches (switches.h).
#include "runtime/base/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "runtime/base/report.h"

namespace dynvm::base {

namespace {

Switches& all() {
  static auto* const the_switches = new Switches;  // exit handlers may ask
  return *the_switches;
}

constexpr size_t index_of(SwitchKind kind) { return static_cast<size_t>(kind); }

// Levenshtein's distance.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t k = 0; k < b.size(); ++k)
      diagonal = std::exchange(row[k + 1], std::min({row[k] + 1, row[k + 1] + 1, diagonal + (a[i] != b[k])}));
  }
  return row.back();
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// "; near it: pass:fuse", or nothing.
std::string hint(std::string_view word, const std::vector<std::string>& names) {
  const std::vector<std::string> near = nearest(word, names);
  return near.empty() ? "" : "; near it: " + joined(near);
}

// FILE and LINE of FILE:LINE; line 0: it is none.
std::pair<std::string_view, int> place_of(std::string_view name) {
  const size_t colon = name.rfind(':');
  int line = 0;
  if (colon == std::string_view::npos || colon == 0) return {name, 0};
  const auto [end, error] = std::from_chars(name.data() + colon + 1, name.data() + name.size(), line);
  if (error != std::errc() || end != name.data() + name.size() || line < 1) return {name, 0};
  return {name.substr(0, colon), line};
}

// All full names that the tables have, for hints.
std::vector<std::string> known_switches(const std::vector<std::string_view>& passes) {
  std::vector<std::string> known;
  for (std::string_view pass : passes) known.push_back(fmt::format("pass:{}", pass));
  for (const SwitchRow& row : part_rows()) known.push_back(fmt::format("opt:{}", row.name));
  return known;
}

Status add(std::string_view word, const std::vector<std::string_view>& passes, Switches* switches) {
  const size_t colon = word.find(':');
  const std::string_view kind = word.substr(0, colon);
  const std::string_view name = colon == std::string_view::npos ? std::string_view() : word.substr(colon + 1);
  const std::vector<SwitchRow>& kinds = switch_kinds();
  const auto row = std::find_if(kinds.begin(), kinds.end(), [&](const SwitchRow& each) { return each.kind == kind; });
  if (row == kinds.end() || name.empty()) {
    std::string forms;
    for (const SwitchRow& each : kinds) forms += fmt::format("{}{}:{}", forms.empty() ? "" : ", ", each.kind, each.name);
    std::vector<std::string> bare;  // also of who has left the kind out
    for (const std::string& known : known_switches(passes))
      if (known.substr(known.find(':') + 1) == word) bare.push_back(known);
    const std::string near = bare.empty() ? hint(word, known_switches(passes)) : "; near it: " + joined(bare);
    return Status::failure(fmt::format("expected one of {}, got '{}'{}", forms, word, near));
  }
  const auto which = static_cast<SwitchKind>(row - kinds.begin());
  const auto among = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  const auto unknown = [&](std::string_view what, const std::vector<std::string>& names) {
    return Status::failure(fmt::format("there is no {} '{}'{}; there are {}", what, name, hint(name, names), joined(names)));
  };
  switch (which) {
    case SwitchKind::kPart: {
      std::vector<std::string> names;
      for (const SwitchRow& part : part_rows()) names.emplace_back(part.name);
      if (!among(names)) return unknown("part", names);
      switches->parts |= uint64_t{1} << (std::find(names.begin(), names.end(), name) - names.begin());
      break;
    }
    case SwitchKind::kPass:
      if (!among(passes)) return unknown("pass", {passes.begin(), passes.end()});
      break;
    case SwitchKind::kOp:
    case SwitchKind::kRecord:
      if (name.find("::") == std::string_view::npos) return Status::failure(fmt::format("expected {}:aten::NAME, got '{}'; near it: {}:aten::{}", kind, word, kind, name));
      if (name.find('.') != std::string_view::npos) return Status::failure(fmt::format("'{}': a switch is for all overloads of an operation: {}:{}", word, kind, name.substr(0, name.find('.'))));
      break;
    case SwitchKind::kTrace:
      if (place_of(name).second == 0) return Status::failure(fmt::format("expected trace:FILE:LINE, got '{}'", word));
      break;
    default: break;
  }
  std::vector<std::string>& names = switches->names[index_of(which)];
  if (!among(names)) names.emplace_back(name);
  return {};
}

// "name", or "name_2": a part of what a pass has divided it into (ir/passes/stages.cpp).
bool is_kernel_of(std::string_view given, std::string_view made) {
  if (given == made) return true;
  if (given.size() < made.size() + 2 || given.substr(0, made.size()) != made || given[made.size()] != '_') return false;
  const std::string_view rest = given.substr(made.size() + 1);
  return std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void count(SwitchKind kind, std::string_view name) {
  if (all().met != nullptr) all().met(fmt::format("{}:{}", switch_kinds()[index_of(kind)].kind, name));
}

bool part_met(Part part) {
  count(SwitchKind::kPart, part_rows()[static_cast<size_t>(part)].name);
  return true;
}

bool name_met(SwitchKind kind, std::string_view name) {
  for (const std::string& given : all().names[index_of(kind)]) {
    if (kind == SwitchKind::kKernel ? !is_kernel_of(given, name) : given != name) continue;
    count(kind, given);
    return true;
  }
  return false;
}

bool place_met(std::string_view file, int line) {
  for (const std::string& given : all().names[index_of(SwitchKind::kTrace)]) {
    const auto [ends, at] = place_of(given);
    if (at != line || !file.ends_with(ends)) continue;
    if (file.size() != ends.size() && ends.front() != '/' && file[file.size() - ends.size() - 1] != '/') continue;
    count(SwitchKind::kTrace, given);
    return true;
  }
  return false;
}

}  // namespace

const std::vector<SwitchRow>& switch_kinds() {
  static const std::vector<SwitchRow> rows = {
#define X(enumerator, kind, name, text) {kind, name, text},
#include "runtime/base/switch_kinds.def"
#undef X
  };
  return rows;
}

const std::vector<SwitchRow>& part_rows() {
  static const std::vector<SwitchRow> rows = {
#define X(enumerator, name, text) {"opt", name, text},
#include "runtime/base/parts.def"
#undef X
  };
  return rows;
}

const std::vector<SwitchRow>& safe_rows() {
  static const std::vector<SwitchRow> rows = {
#define X(name, text) {"", name, text},
#include "runtime/base/safe.def"
#undef X
  };
  return rows;
}

bool Switches::any() const {
  return parts != 0 || std::any_of(names.begin(), names.end(), [](const auto& of_kind) { return !of_kind.empty(); });
}

Status parse_switches(std::string_view words, const std::vector<std::string_view>& passes, Switches* switches) {
  Switches read = *switches;
  for (size_t at = 0; at <= words.size() && !words.empty();) {
    const size_t end = std::min(words.find(',', at), words.size());
    if (Status status = add(words.substr(at, end - at), passes, &read); !status) return status;
    at = end + 1;
  }
  *switches = std::move(read);
  return {};
}

const Switches& switches() { return all(); }

void set_switches(Switches given) {
  all() = std::move(given);
  AskedSwitches asked{all().parts, 0, part_met, name_met, place_met};
  for (size_t kind = 0; kind < all().names.size(); ++kind) {
    if (!all().names[kind].empty()) asked.kinds |= uint64_t{1} << kind;
    for (const std::string& name : all().names[kind]) report().switches.try_emplace(fmt::format("{}:{}", switch_kinds()[kind].kind, name), 0);
  }
  set_asked_switches(asked);
}

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& names, size_t most) {
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& name : names) {
    const bool within = word.size() >= 3 && (name.find(word) != std::string::npos || (name.size() >= 3 && word.find(name) != std::string_view::npos));
    const size_t far = distance(word, name), allowed = std::max<size_t>(std::max(word.size(), name.size()) / 3, word.size() >= 4 ? 2 : 1);
    if (within || far <= allowed) near.emplace_back(far, name);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> found;
  for (size_t k = 0; k < near.size() && k < most; ++k) found.push_back(near[k].second);
  return found;
}

}  // namespace dynvm::base
