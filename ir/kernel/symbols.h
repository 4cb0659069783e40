// Sizes, strides and offsets that only a run tells, as numbers that everything which works on constant ones can work with.
//
// A *symbol* is such a number. It stands for itself as its *code*, a prime that divides no constant geometry of its trace; a product of symbols and a
// constant factor stands as the product of their codes. So a number that is made of codes by multiplication and exact division is read back by
// factoring, and it is right for every value of the symbols: two such numbers are equal only if their products are the same. What is made otherwise
// (a sum of sizes, the size as a constant of an expression) cannot be told from a constant; whoever makes numbers in other ways makes them
// with two sets of codes and compares (same_but_codes).
//
// Where numbers are evaluated often they are Products, factored once.
//
// Inputs: codes, numbers. Outputs: what they stand for. Tests: tests/kernel/symbols_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dynvm::ir {

struct Kernel;

// At most so many in one trace: the codes stay small enough for products of four of them.
inline constexpr size_t kMaxSymbols = 48;

// What a number stands for: a constant times symbols.
struct Product {
  int64_t factor = 0;
  std::array<uint8_t, 6> symbols{};  // indexes into the codes, with repetition
  uint8_t count = 0;

  // More than six symbols: false, and the product is not valid.
  static bool of(int64_t number, const std::vector<int64_t>& codes, Product* out) {
    *out = {};
    for (size_t k = 0; number != 0 && k < codes.size(); ++k)
      for (; number % codes[k] == 0; number /= codes[k]) {
        if (out->count == out->symbols.size()) return false;
        out->symbols[out->count++] = static_cast<uint8_t>(k);
      }
    out->factor = number;
    return true;
  }
  int64_t operator()(const int64_t* values) const {
    int64_t product = factor;
    for (uint8_t k = 0; k < count; ++k) product *= values[symbols[k]];
    return product;
  }
  bool is_constant() const { return count == 0; }
  bool is_symbol() const { return count == 1 && factor == 1; }
};

// Is the symbol with this code in any of them?
bool has_symbol(const std::vector<int64_t>& numbers, int64_t code);
// Does any symbol divide it?
bool is_symbolic(int64_t number, const std::vector<int64_t>& codes);
// The number where the symbols have these values, one per code. Of a constant: itself.
int64_t evaluate(int64_t number, const std::vector<int64_t>& codes, const std::vector<int64_t>& values);
// "768*s0*s1"
std::string symbol_text(int64_t number, const std::vector<int64_t>& codes);

// Makes codes: primes that divide none of the constants that it has been shown.
class SymbolCodes {
 public:
  explicit SymbolCodes(int64_t above = 1000) : last_(above) {}
  void avoid(int64_t constant) { constants_.push_back(constant); }
  int64_t next();

 private:
  std::vector<int64_t> constants_;
  int64_t last_;
};

// The kernel for these values of its symbols.
Kernel with_values(const Kernel& kernel, const std::vector<int64_t>& values);
// Is any of its numbers made of symbols?
bool has_symbols(const Kernel& kernel);
// Are they one kernel, up to the codes of their symbols?
bool same_but_codes(const Kernel& a, const Kernel& b);

}  // namespace dynvm::ir
