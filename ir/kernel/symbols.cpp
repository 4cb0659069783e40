// See symbols.h.
#include "ir/kernel/symbols.h"

#include <algorithm>

#include "ir/kernel/kernel.h"

namespace dynvm::ir {

bool has_symbol(const std::vector<int64_t>& numbers, int64_t code) {
  return std::any_of(numbers.begin(), numbers.end(), [&](int64_t number) { return number != 0 && number % code == 0; });
}

bool is_symbolic(int64_t number, const std::vector<int64_t>& codes) {
  return number != 0 && std::any_of(codes.begin(), codes.end(), [&](int64_t code) { return number % code == 0; });
}

int64_t evaluate(int64_t number, const std::vector<int64_t>& codes, const std::vector<int64_t>& values) {
  if (number == 0) return 0;
  int64_t product = 1;
  for (size_t k = 0; k < codes.size(); ++k)
    for (; number % codes[k] == 0; number /= codes[k]) product *= values[k];
  return number * product;
}

std::string symbol_text(int64_t number, const std::vector<int64_t>& codes) {
  std::string symbols;
  for (size_t k = 0; number != 0 && k < codes.size(); ++k)
    for (; number % codes[k] == 0; number /= codes[k]) symbols += (symbols.empty() ? "s" : "*s") + std::to_string(k);
  if (symbols.empty()) return std::to_string(number);
  return number == 1 ? symbols : std::to_string(number) + "*" + symbols;
}

int64_t SymbolCodes::next() {
  const auto is_prime = [](int64_t n) {
    for (int64_t d = 2; d * d <= n; ++d)
      if (n % d == 0) return false;
    return true;
  };
  const auto divides = [&](int64_t code) { return std::any_of(constants_.begin(), constants_.end(), [&](int64_t c) { return c != 0 && c % code == 0; }); };
  do ++last_;
  while (!is_prime(last_) || divides(last_));
  return last_;
}

namespace {

void map_numbers(Kernel* kernel, const std::vector<int64_t>& values) {
  const auto map = [&](int64_t& number) { number = evaluate(number, kernel->symbols, values); };
  std::for_each(kernel->sizes.begin(), kernel->sizes.end(), map);
  for (KernelOperand& operand : kernel->operands) {
    std::for_each(operand.strides.begin(), operand.strides.end(), map);
    map(operand.offset);
  }
}

}  // namespace

Kernel with_values(const Kernel& kernel, const std::vector<int64_t>& values) {
  Kernel out = kernel;
  map_numbers(&out, values);
  out.symbols.clear();
  return out;
}

bool has_symbols(const Kernel& kernel) {
  const auto symbolic = [&](int64_t number) { return is_symbolic(number, kernel.symbols); };
  if (std::any_of(kernel.sizes.begin(), kernel.sizes.end(), symbolic)) return true;
  return std::any_of(kernel.operands.begin(), kernel.operands.end(), [&](const KernelOperand& operand) {
    return symbolic(operand.offset) || std::any_of(operand.strides.begin(), operand.strides.end(), symbolic);
  });
}

bool same_but_codes(const Kernel& a, const Kernel& b) {
  if (a.symbols.size() != b.symbols.size()) return false;
  Kernel recoded = a;
  map_numbers(&recoded, b.symbols);
  recoded.symbols = b.symbols;
  return recoded == b;
}

}  // namespace dynvm::ir
