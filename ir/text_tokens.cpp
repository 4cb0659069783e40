// The literals and the lexer of the textual form (text_tokens.h).
#include "ir/text_tokens.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace dynvm::ir::text {

Immediate immediate_of(Op op) {
  switch (op) {
    case Op::k_const_obj:
    case Op::k_call:
    case Op::k_call_known:
    case Op::k_call_apart:
    case Op::k_call_new:
    case Op::k_call_pure: return Immediate::kObject;
    case Op::k_const_float: return Immediate::kFloat;
    case Op::k_guard_torch_state: return Immediate::kState;
    case Op::k_unbox_tensor: return Immediate::kMeta;
    case Op::k_wrap: return Immediate::kWrap;
    case Op::k_const_int:
    case Op::k_const_bool:
    case Op::k_slot:
    case Op::k_result:
    case Op::k_tuple_item:
    case Op::k_load_value:
    case Op::k_load_field:
    case Op::k_store_value:
    case Op::k_store_field:
    case Op::k_bump_version: return Immediate::kNumber;
    default: return Immediate::kOptionalNumber;
  }
}

constexpr std::string_view kLetters = "voifbt";  // by Type

char type_letter(Type type) { return kLetters[static_cast<size_t>(type)]; }

bool type_of_letter(char letter, Type* type) {
  size_t at = kLetters.find(letter);
  if (at == std::string_view::npos) return false;
  *type = static_cast<Type>(at);
  return true;
}

void append_string(std::string* out, std::string_view value) {
  constexpr char kHex[] = "0123456789abcdef";
  *out += '"';
  for (char c : value) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (c == '\n') {
      *out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      *out += "\\x";
      *out += kHex[byte >> 4];
      *out += kHex[byte & 15];
    } else {
      *out += c;
    }
  }
  *out += '"';
}

void append_float(std::string* out, double value) {
  if (std::isnan(value)) {
    *out += "nan";
    return;
  }
  if (std::isinf(value)) {
    *out += value < 0 ? "-inf" : "inf";
    return;
  }
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string_view digits(buffer, end - buffer);
  *out += digits;
  if (digits.find_first_of(".e") == std::string_view::npos) *out += ".0";
}

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

void Lexer::skip(size_t characters) {
  size_t end = std::min(start_ + characters, text_.size());
  // Count the lines of what is passed over; the current token's own line end, if it is one, was counted when it was read.
  for (size_t k = std::max(at_, start_); k < end; ++k) line_ += text_[k] == '\n';
  at_ = end;
  next();
}

void Lexer::next() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == ';') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else {
      break;
    }
  }
  token_ = Token();
  start_ = at_;
  if (at_ >= text_.size()) return;
  char c = text_[at_];
  char after = at_ + 1 < text_.size() ? text_[at_ + 1] : 0;
  bool digit = c >= '0' && c <= '9';
  if (c == '\n') {
    token_.kind = Token::kLine;
    ++at_;
    ++line_;
  } else if (c == '"') {
    string();
  } else if (digit || (c == '-' && after >= '0' && after <= '9') || text_.substr(at_, 4) == "-inf") {
    number();
  } else if (is_word(c)) {
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    token_.kind = Token::kWord;
    if (text_.substr(start_, at_ - start_) == "inf") {
      token_.kind = Token::kFloat;
      token_.f = std::numeric_limits<double>::infinity();
    } else if (text_.substr(start_, at_ - start_) == "nan") {
      token_.kind = Token::kFloat;
      token_.f = std::numeric_limits<double>::quiet_NaN();
    }
  } else {
    token_.kind = Token::kPunct;
    at_ += c == '-' && after == '>' ? 2 : 1;
  }
  token_.text = text_.substr(start_, at_ - start_);
}

void Lexer::number() {
  size_t end = at_ + 1;
  if (text_.substr(at_, 4) == "-inf") {
    at_ += 4;
    token_.kind = Token::kFloat;
    token_.f = -std::numeric_limits<double>::infinity();
    return;
  }
  bool real = false;
  while (end < text_.size()) {
    char c = text_[end];
    bool exponent_sign = (c == '-' || c == '+') && text_[end - 1] == 'e';
    if (c == '.' || c == 'e') real = true;
    if (!((c >= '0' && c <= '9') || c == '.' || c == 'e' || exponent_sign)) break;
    ++end;
  }
  const char* first = text_.data() + at_;
  const char* last = text_.data() + end;
  std::from_chars_result result;
  if (real) {
    token_.kind = Token::kFloat;
    result = std::from_chars(first, last, token_.f);
  } else {
    token_.kind = Token::kInt;
    result = std::from_chars(first, last, token_.i);
  }
  if (result.ec != std::errc() || result.ptr != last) bad_ = true;
  at_ = end;
}

void Lexer::string() {
  auto hex = [](char c) { return c >= 'a' ? c - 'a' + 10 : c - '0'; };
  token_.kind = Token::kString;
  for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_) {
    if (text_[at_] != '\\') {
      token_.string += text_[at_];
      continue;
    }
    if (++at_ >= text_.size()) break;
    if (text_[at_] == 'n') {
      token_.string += '\n';
    } else if (text_[at_] == 'x' && at_ + 2 < text_.size()) {
      token_.string += static_cast<char>(hex(text_[at_ + 1]) * 16 + hex(text_[at_ + 2]));
      at_ += 2;
    } else {
      token_.string += text_[at_];
    }
  }
  if (at_ >= text_.size() || text_[at_] != '"') {
    bad_ = true;
    return;
  }
  ++at_;
}

}  // namespace dynvm::ir::text
