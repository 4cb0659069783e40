// Parser and help text of dynvm's options: see options.h. Rows come from options.def.
#include "runtime/base/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace dynvm::base {

namespace {

struct Named {
  std::string_view name;
  std::string_view text;
};

constexpr Named kLogNames[] = {
#define X(enumerator, name, text) {name, text},
#include "runtime/base/log_categories.def"
#undef X
};

constexpr Named kSwitchNames[] = {
#define X(enumerator, kind, name, text) {kind ":" name, text},
#include "runtime/base/switch_kinds.def"
#undef X
};

constexpr Named kDumpNames[] = {
#define X(enumerator, name, text) {name, text},
#include "runtime/base/dump_stages.def"
#undef X
};

template <size_t n>
Status parse_set(std::string_view spelling, std::string_view value, const Named (&names)[n], uint32_t& set) {
  static_assert(n <= 32);
  size_t start = 0;
  while (start <= value.size()) {
    size_t end = value.find(',', start);
    if (end == std::string_view::npos) end = value.size();
    std::string_view word = value.substr(start, end - start);
    uint32_t found = word == "all" ? (uint64_t{1} << n) - 1 : 0;
    for (size_t i = 0; i < n; ++i) {
      if (word == names[i].name) found = 1u << i;
    }
    if (found == 0) {
      std::string known;
      for (const Named& named : names) known += fmt::format("{}, ", named.name);
      return Status::failure(fmt::format("{}: expected {}or all, got '{}'", spelling, known, word));
    }
    set |= found;
    start = end + 1;
  }
  return {};
}

Status parse_number(std::string_view spelling, std::string_view value, int64_t& number) {
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 0) {
    return Status::failure(fmt::format("{}: expected a number, got '{}'", spelling, value));
  }
  return {};
}

Status parse_switch(std::string_view spelling, std::string_view value, bool& on) {
  if (value != "on" && value != "off") {
    return Status::failure(fmt::format("{}: expected on or off, got '{}'", spelling, value));
  }
  on = value == "on";
  return {};
}

Status parse_text(std::string_view spelling, std::string_view argument, std::string_view value, std::string& text) {
  if (value.empty()) return Status::failure(fmt::format("{}: expected {}, got nothing", spelling, argument));
  text = value;
  return {};
}

Status add_words(std::string_view spelling, std::string_view argument, std::string_view value, std::string& words) {
  std::string added;
  if (Status status = parse_text(spelling, argument, value, added); !status) return status;
  words += (words.empty() ? "" : ",") + added;
  return {};
}

enum class Kind { kNone, kFlag, kValue };

// What kind of option of dynvm a word's name is (the word without "=...").
Kind kind_of(std::string_view name) {
#define FLAG(field, spelling, argument, value, text) \
  if (name == spelling) return Kind::kFlag;
#define VALUED(spelling) \
  if (name == spelling) return Kind::kValue;
#define SWITCH(field, spelling, argument, value, text) VALUED(spelling)
#define NUMBER(field, spelling, argument, value, text) VALUED(spelling)
#define TEXT(field, spelling, argument, value, text) VALUED(spelling)
#define WORDS(field, spelling, argument, value, text) VALUED(spelling)
#define KINDS(field, spelling, argument, value, text) VALUED(spelling)
#define LOGS(field, spelling, argument, value, text) VALUED(spelling)
#define DUMPS(field, spelling, argument, value, text) VALUED(spelling)
#include "runtime/base/options.def"
#undef VALUED
  return Kind::kNone;
}

Status apply(Options& options, std::string_view name, std::string_view given) {
#define FLAG(field, spelling, argument, value, text) \
  if (name == spelling) {                            \
    options.field = true;                            \
    return {};                                       \
  }
#define SWITCH(field, spelling, argument, value, text) \
  if (name == spelling) return parse_switch(spelling, given, options.field);
#define NUMBER(field, spelling, argument, value, text) \
  if (name == spelling) return parse_number(spelling, given, options.field);
#define TEXT(field, spelling, argument, value, text) \
  if (name == spelling) return parse_text(spelling, argument, given, options.field);
#define WORDS(field, spelling, argument, value, text) \
  if (name == spelling) return add_words(spelling, argument, given, options.field);
#define KINDS(field, spelling, argument, value, text) \
  if (name == spelling) return add_words(spelling, argument, given, options.field);
#define LOGS(field, spelling, argument, value, text) \
  if (name == spelling) return parse_set(spelling, given, kLogNames, options.field);
#define DUMPS(field, spelling, argument, value, text) \
  if (name == spelling) return parse_set(spelling, given, kDumpNames, options.field);
#include "runtime/base/options.def"
  return Status::failure(fmt::format("{}: no such option", name));
}

// Takes the option at words[at], with its value from the next word where it has none of its own. `taken` becomes the
// number of words used: 0 when it is not an option of dynvm.
Status take_option(const std::vector<std::string_view>& words, size_t at, Options& options, size_t& taken) {
  taken = 0;
  std::string_view word = words[at];
  size_t equals = word.find('=');
  std::string_view name = word.substr(0, equals);
  Kind kind = kind_of(name);
  if (kind == Kind::kNone) return {};
  taken = 1;
  if (kind == Kind::kFlag) {
    if (equals != std::string_view::npos) return Status::failure(fmt::format("{} takes no value", name));
    return apply(options, name, {});
  }
  if (equals != std::string_view::npos) return apply(options, name, word.substr(equals + 1));
  if (at + 1 == words.size()) return Status::failure(fmt::format("{}: its value is missing", name));
  taken = 2;
  return apply(options, name, words[at + 1]);
}

// How Python reads an argument word before the script: words that it takes with it, or 0 where its options end.
size_t python_option_words(std::string_view word) {
  if (word.size() < 2 || word[0] != '-' || word == "--") return 0;
  if (word == "--check-hash-based-pycs") return 2;
  if (word[1] == '-') return 1;
  for (size_t i = 1; i < word.size(); ++i) {
    if (word[i] == 'c' || word[i] == 'm') return 0;
    if (word[i] == 'W' || word[i] == 'X') return i + 1 == word.size() ? 2 : 1;
  }
  return 1;
}

std::string help_line(std::string_view spelling, std::string_view argument, std::string_view text) {
  std::string option = argument.empty() ? std::string(spelling) : fmt::format("{}={}", spelling, argument);
  return fmt::format("  {:<20} {}\n", option, text);
}

template <size_t n>
std::string help_names(const Named (&names)[n]) {
  std::string help;
  size_t width = 9;
  for (const Named& named : names) width = std::max(width, named.name.size() + 1);
  for (const Named& named : names) help += fmt::format("  {:<20}   {:<{}}{}\n", "", named.name, width, named.text);
  return help;
}

}  // namespace

Status parse_command_line(int argc, char** argv, Options& options, std::vector<char*>& python_argv) {
  std::vector<std::string_view> words(argv, argv + argc);
  python_argv.clear();
  size_t at = 0;
  if (at < words.size()) python_argv.push_back(argv[at++]);
  while (at < words.size()) {
    size_t taken = 0;
    if (Status status = take_option(words, at, options, taken); !status) return status;
    if (taken == 0) {
      size_t pythons = python_option_words(words[at]);
      if (pythons == 0) break;
      for (; pythons > 0 && at < words.size(); --pythons) python_argv.push_back(argv[at++]);
    }
    at += taken;
  }
  while (at < words.size()) python_argv.push_back(argv[at++]);
  return {};
}

Status parse_option_words(std::string_view text, Options& options) {
  std::vector<std::string_view> words;
  for (size_t at = text.find_first_not_of(" \t\n"); at != std::string_view::npos; at = text.find_first_not_of(" \t\n", at)) {
    size_t end = text.find_first_of(" \t\n", at);
    if (end == std::string_view::npos) end = text.size();
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  for (size_t at = 0; at < words.size();) {
    size_t taken = 0;
    if (Status status = take_option(words, at, options, taken); !status) return status;
    if (taken == 0) return Status::failure(fmt::format("{}: no such option", words[at]));
    at += taken;
  }
  return {};
}

std::string options_help() {
  std::string help;
#define LINE(spelling, argument, text) help += help_line(spelling, argument, text);
#define FLAG(field, spelling, argument, value, text) LINE(spelling, argument, text)
#define SWITCH(field, spelling, argument, value, text) LINE(spelling, argument, text)
#define NUMBER(field, spelling, argument, value, text) LINE(spelling, argument, text)
#define TEXT(field, spelling, argument, value, text) LINE(spelling, argument, text)
#define WORDS(field, spelling, argument, value, text) LINE(spelling, argument, text)
#define KINDS(field, spelling, argument, value, text) LINE(spelling, argument, text) help += help_names(kSwitchNames);
#define LOGS(field, spelling, argument, value, text) LINE(spelling, argument, text) help += help_names(kLogNames);
#define DUMPS(field, spelling, argument, value, text) LINE(spelling, argument, text) help += help_names(kDumpNames);
#include "runtime/base/options.def"
#undef LINE
  return help;
}

}  // namespace dynvm::base
