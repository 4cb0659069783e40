// Words, numbers and strings of the textual form, shared by its printer and its parser.
//
// Inputs: text. Outputs: tokens; literals that read back to the same value. Invariant: append_* and Lexer agree on every literal.
// Tests: tests/ir/text.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/trace.h"

namespace dynvm::ir::text {

// What an op's immediate is, and so how it is written.
enum class Immediate : uint8_t {
  kOptionalNumber,  // `#5`, nothing for 0
  kNumber,          // `#5`, always
  kFloat,           // the bits of a double
  kObject,          // `@3 "text"`; nothing when negative
  kState,           // trace.torch_states[imm], written out
  kMeta,            // trace.metas[imm], after the arrow
  kWrap,            // trace.wraps[imm], written out
};
Immediate immediate_of(Op op);

char type_letter(Type type);
// False for a letter that is no type.
bool type_of_letter(char letter, Type* type);

void append_string(std::string* out, std::string_view value);
void append_float(std::string* out, double value);  // shortest text that reads back equal; always has '.', 'e', "inf" or "nan"

struct Token {
  enum Kind : uint8_t { kEnd, kLine, kWord, kInt, kFloat, kString, kPunct } kind = kEnd;
  std::string_view text;   // kWord: letters, digits, '_', ':', '.'; kPunct: one character or "->"
  std::string string;      // kString: unescaped
  int64_t i = 0;
  double f = 0;
};

// Splits text into tokens. Line ends are tokens, as an instruction is a line.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { next(); }
  const Token& token() const { return token_; }
  void next();
  int line() const { return line_; }
  bool bad() const { return bad_; }                       // a malformed literal was met
  std::string_view rest() const { return text_.substr(start_); }  // from the current token on
  void skip(size_t characters);                            // go on that many characters after the current token's start

 private:
  void number();
  void string();
  std::string_view text_;
  size_t at_ = 0, start_ = 0;
  int line_ = 1;
  bool bad_ = false;
  Token token_;
};

}  // namespace dynvm::ir::text
