// Writes JSON as text, value after value: for files that are too large to be built as a tree first.
//
//     JsonWriter json;
//     json.begin('{').key("a").number(1).key("b").begin('[').string("x").end(']').end('}');
//
// Inputs: values in order. Outputs: text(). Invariants: valid JSON in UTF-8 if begin and end match: bytes that are no UTF-8 become '?', numbers that are
// none (inf, nan) null. Tests: tests/base/profile_test.cpp.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace dynvm::base {

class JsonWriter {
 public:
  JsonWriter& begin(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
    return *this;
  }
  JsonWriter& end(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  JsonWriter& key(std::string_view name) {
    string(name);
    text_ += ':';
    first_ = true;
    return *this;
  }
  JsonWriter& string(std::string_view value) {
    separate();
    text_ += '"';
    for (size_t at = 0; at < value.size();) {
      size_t plain = at;
      while (plain < value.size() && value[plain] >= ' ' && value[plain] < 127 && value[plain] != '"' && value[plain] != '\\') ++plain;
      text_.append(value, at, plain - at);
      if ((at = plain) < value.size()) at += special(value, at);
    }
    text_ += '"';
    return *this;
  }
  JsonWriter& number(double value) {
    separate();
    if (std::isfinite(value)) fmt::format_to(std::back_inserter(text_), "{}", value);
    else text_ += "null";
    return *this;
  }
  JsonWriter& number(int64_t value) {
    separate();
    fmt::format_to(std::back_inserter(text_), "{}", value);
    return *this;
  }
  JsonWriter& number(uint64_t value) { return number(static_cast<int64_t>(value)); }
  JsonWriter& number(int value) { return number(static_cast<int64_t>(value)); }
  JsonWriter& boolean(bool value) {
    separate();
    text_ += value ? "true" : "false";
    return *this;
  }
  template <class Values>
  JsonWriter& numbers(const Values& values) {
    begin('[');
    for (const auto& value : values) number(value);
    return end(']');
  }
  template <class Values>
  JsonWriter& strings(const Values& values) {
    begin('[');
    for (const auto& value : values) string(value);
    return end(']');
  }
  std::string& text() { return text_; }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  // A character that does not stand for itself in one byte; how many bytes it has.
  size_t special(std::string_view value, size_t at) {
    const auto byte = [&](size_t k) { return at + k < value.size() ? static_cast<uint8_t>(value[at + k]) : uint8_t{0}; };
    const uint8_t first = byte(0);
    if (first == '"' || first == '\\') return text_ += '\\', text_ += static_cast<char>(first), 1;
    if (first == '\n') return text_ += "\\n", 1;
    if (first < ' ' || first == 127) return fmt::format_to(std::back_inserter(text_), "\\u{:04x}", first), 1;
    const size_t length = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xc2 && first < 0xe0 ? 2 : 0;
    bool valid = length != 0 && !(first == 0xe0 && byte(1) < 0xa0) && !(first == 0xed && byte(1) >= 0xa0) && !(first == 0xf0 && byte(1) < 0x90) && !(first == 0xf4 && byte(1) >= 0x90);
    for (size_t k = 1; k < length; ++k) valid = valid && (byte(k) & 0xc0) == 0x80;
    if (!valid) return text_ += '?', 1;
    text_.append(value, at, length);
    return length;
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace dynvm::base
