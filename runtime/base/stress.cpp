// See stress.h.
#include "runtime/base/stress.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/base/options.h"

namespace dynvm::base {

namespace {

struct Row {
  std::string_view word;
  bool number;
  std::string_view text;
};

constexpr Row kRows[] = {
#define X(word, number, text) {word, number, text},
#include "runtime/base/stress.def"
};

// The first of the words, which is taken away.
std::string_view take_word(std::string_view* words) {
  const size_t end = std::min(words->find(','), words->size());
  const std::string_view word = words->substr(0, end);
  words->remove_prefix(std::min(end + 1, words->size()));
  return word;
}

bool read_number(std::string_view text, int* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= 0;
}

}  // namespace

bool stress(std::string_view word) {
  for (std::string_view words = options().stress; !words.empty();)
    if (take_word(&words) == word) return true;
  return false;
}

int stress_number(std::string_view word, int usual) {
  int number = usual;
  for (std::string_view words = options().stress; !words.empty();) {
    const std::string_view each = take_word(&words);
    if (each.size() > word.size() && each.substr(0, word.size()) == word && each[word.size()] == '=')
      (void)read_number(each.substr(word.size() + 1), &number);
  }
  return number;
}

Status check_stress(std::string_view words) {
  while (!words.empty()) {
    const std::string_view each = take_word(&words);
    const size_t equals = each.find('=');
    int number = 0;
    const bool known = std::any_of(std::begin(kRows), std::end(kRows), [&](const Row& row) {
      return row.word == each.substr(0, equals) && row.number == (equals != std::string_view::npos) &&
             (!row.number || read_number(each.substr(equals + 1), &number));
    });
    if (known) continue;
    std::string names;
    for (const Row& row : kRows)
      names += fmt::format("{}{}{}", names.empty() ? "" : ", ", row.word, row.number ? "=N" : "");
    return Status::failure(fmt::format("--stress: expected {}, got '{}'", names, each));
  }
  return {};
}

}  // namespace dynvm::base
