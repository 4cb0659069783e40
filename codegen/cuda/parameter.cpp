// See parameter.h.
#include "codegen/cuda/parameter.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/kernel/symbols.h"

namespace dynvm::codegen::cuda {

void Parameter::use_pointer(int32_t pointer) {
  if (std::find(source_.pointers.begin(), source_.pointers.end(), pointer) == source_.pointers.end()) source_.pointers.push_back(pointer);
}

std::string Parameter::pointer(int32_t pointer) const {
  return fmt::format("p.pointer[{}]", std::find(source_.pointers.begin(), source_.pointers.end(), pointer) - source_.pointers.begin());
}

bool Parameter::symbolic(int64_t n) const { return ir::is_symbolic(n, kernel_.symbols); }

std::string Parameter::number(int64_t n) const {
  if (!symbolic(n)) return std::to_string(n);
  std::vector<int64_t>& numbers = source_.numbers;
  const auto at = std::find(numbers.begin(), numbers.end(), n) - numbers.begin();
  if (at == static_cast<ptrdiff_t>(numbers.size())) numbers.push_back(n);
  return fmt::format("N{}", at);
}

std::string Parameter::function(const char* index_type, const std::string& body) const {
  const Source& s = source_;
  std::string text = "struct P_" + s.name + " {\n" + (s.pointers.empty() ? "" : fmt::format("  void* pointer[{}];\n", s.pointers.size())) +
                     (s.num_scalars == 0 ? "" : fmt::format("  i64 scalar[{}];\n", s.num_scalars)) + (s.numbers.empty() ? "" : fmt::format("  i64 number[{}];\n", s.numbers.size())) +
                     (s.workspace_bytes == 0 ? "" : "  void* workspace;\n") + fmt::format("}};\nextern \"C\" __global__ void __launch_bounds__({}) {}(const P_{} p) {{\n", s.block, s.name, s.name);
  for (size_t k = 0; k < s.numbers.size(); ++k) text += fmt::format("  const {0} N{1} = ({0})p.number[{1}];\n", index_type, k);
  return text + body + "}\n";
}

}  // namespace dynvm::codegen::cuda
