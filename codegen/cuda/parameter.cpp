// See parameter.h.
#include "codegen/cuda/parameter.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/expressions.h"
#include "codegen/cuda/space.h"
#include "ir/kernel/symbols.h"

namespace dynvm::codegen::cuda {

Parameter::Parameter(const ir::Kernel& kernel, const RenderOptions& options, Source* source) : kernel_(kernel), source_(*source), instances_(options.instances) {
  *source = {};
  const bool symbolic = ir::has_symbols(kernel);
  index_type_ = options.wide || (!symbolic && is_wide(kernel)) ? "i64" : "int";
  source->narrow = symbolic && !options.wide;
  source->num_scalars = kernel.num_scalars();
  for (const MirroredStore& each : options.mirrors) use_pointer(each.pointer);
}

void Parameter::use_pointer(int32_t pointer) {
  if (std::find(source_.pointers.begin(), source_.pointers.end(), pointer) == source_.pointers.end()) source_.pointers.push_back(pointer);
}

std::string Parameter::pointer(int32_t pointer) const {
  return fmt::format("p.pointer[{}]", std::find(source_.pointers.begin(), source_.pointers.end(), pointer) - source_.pointers.begin());
}

std::string Parameter::mirror(const MirroredStore& each, const std::string& number) const {
  const ir::KernelOperand& operand = kernel_.operands[static_cast<size_t>(kernel_.stores[static_cast<size_t>(each.store)].operand)];
  return fmt::format("mirror<{}>({}, {});", memory_type(operand.dtype), pointer(each.pointer), number);
}

bool Parameter::symbolic(int64_t n) const { return ir::is_symbolic(n, kernel_.symbols); }

std::string Parameter::number(int64_t n) const {
  if (!symbolic(n)) return std::to_string(n);
  std::vector<int64_t>& numbers = source_.numbers;
  const auto at = std::find(numbers.begin(), numbers.end(), n) - numbers.begin();
  if (at == static_cast<ptrdiff_t>(numbers.size())) numbers.push_back(n);
  return fmt::format("N{}", at);
}

std::string Parameter::function(const std::string& body) const {
  const Source& s = source_;
  const auto field = [](const char* type, const char* name, size_t count) { return count == 0 ? "" : fmt::format("  {} {}[{}];\n", type, name, count); };
  const size_t each = static_cast<size_t>(std::max(instances_, 1));
  std::string text = "struct P_" + s.name + " {\n" + field("void*", "pointer", s.pointers.size() * each) + field("i64", "scalar", static_cast<size_t>(s.num_scalars) * each) +
                     field("i64", "number", s.numbers.size() * each) + field("i64", "first", static_cast<size_t>(instances_)) + (s.workspace_bytes == 0 ? "" : "  void* workspace;\n") +
                     fmt::format("}};\nextern \"C\" __global__ void __launch_bounds__({}) {}(const {}P_{} {}) {{\n", s.block, s.name, instances_ == 0 ? "" : "DYNVM_GRID_CONSTANT ", s.name,
                                 instances_ == 0 ? "p" : "all");
  if (instances_ > 0) {
    text += fmt::format("  int low = 0, high = {};\n  while (low < high) {{\n    const int middle = (low + high + 1) / 2;\n    if (all.first[middle] <= blockIdx.x) low = middle;\n    else high = middle - 1;\n  }}\n", instances_ - 1);
    text += fmt::format("  const struct {{ void* const* pointer; const i64 *scalar, *number; }} p = {{all.pointer + low * {}, {}, {}}};\n  const int block = blockIdx.x - (int)all.first[low];\n",
                        s.pointers.size(), s.num_scalars == 0 ? "0" : fmt::format("all.scalar + low * {}", s.num_scalars), s.numbers.empty() ? "0" : fmt::format("all.number + low * {}", s.numbers.size()));
  }
  for (size_t k = 0; k < s.numbers.size(); ++k) text += fmt::format("  const {0} N{1} = ({0})p.number[{1}];\n", index_type_, k);
  return text + body + "}\n";
}

}  // namespace dynvm::codegen::cuda
