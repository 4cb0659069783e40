// Sizes, strides and offsets that only a run tells, as numbers that everything which works on constant ones can work with.
//
// A *symbol* is such a number. It stands for itself as its *code*, a prime that divides no constant geometry of its trace; a product of symbols and a
// constant factor stands as the product of their codes. So a number that is made of codes by multiplication and exact division is read back by
// factoring, and it is right for every value of the symbols: two such numbers are equal only if their products are the same. What is made otherwise
// (a sum of sizes, the size as a constant of an expression) cannot be told from a constant; whoever makes numbers in other ways makes them
// with two sets of codes and compares (same_but_codes).
//
// Inputs: codes, numbers. Outputs: what they stand for. Tests: tests/kernel/symbols_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dynvm::ir {

struct Kernel;

// At most so many in one trace: the codes stay small enough for products of four of them.
inline constexpr size_t kMaxSymbols = 48;

// Does any symbol divide it?
bool is_symbolic(int64_t number, const std::vector<int64_t>& codes);
// The number where the symbols have these values, one per code. Of a constant: itself.
int64_t evaluate(int64_t number, const std::vector<int64_t>& codes, const std::vector<int64_t>& values);
// The same product of another set of codes.
inline int64_t recode(int64_t number, const std::vector<int64_t>& from, const std::vector<int64_t>& to) { return evaluate(number, from, to); }
// "768*s0*s1"
std::string symbol_text(int64_t number, const std::vector<int64_t>& codes);

// Makes codes: primes that divide none of the constants that it has been shown.
class SymbolCodes {
 public:
  void avoid(int64_t constant) { constants_.push_back(constant); }
  int64_t next();

 private:
  std::vector<int64_t> constants_;
  int64_t last_ = 1000;
};

// The kernel for these values of its symbols.
Kernel with_values(const Kernel& kernel, const std::vector<int64_t>& values);
// Are they one kernel, up to the codes of their symbols?
bool same_but_codes(const Kernel& a, const Kernel& b);

}  // namespace dynvm::ir
