// See batch.h.
#include "codegen/cuda/batch.h"

#include <algorithm>

#include "codegen/cuda/space.h"
#include "ir/kernel/symbols.h"

namespace dynvm::codegen::cuda {
namespace {

constexpr int64_t kCode = 1000003;         // a prime: the number of points, or an eighth of it, so that vectors divide it
constexpr size_t kParameterBytes = 4000;   // a function's parameter is at most 4 KiB for each driver

}  // namespace

bool batch_form(const ir::Kernel& kernel, BatchForm* out) {
  if (kernel.reduce_dims != 0 || !kernel.symbols.empty() || kernel.stores.empty() || ir::stores_at_places(kernel)) return false;
  for (ir::KOp op : {ir::KOp::k_index, ir::KOp::k_dot, ir::KOp::k_draw, ir::KOp::k_load_at})
    if (ir::has_op(kernel, op)) return false;
  const Space space = make_space(kernel);
  if (space.kept.size() != 1 || space.kept_points > INT32_MAX / 2) return false;
  out->points = space.kept_points;
  out->pointers.clear();
  out->kernel = kernel;
  out->kernel.name.clear();
  out->kernel.symbols = {kCode};
  out->kernel.sizes = {out->points % 8 == 0 ? 8 * kCode : kCode};
  for (size_t o = 0; o < kernel.operands.size(); ++o) {
    ir::KernelOperand& operand = out->kernel.operands[o];
    const int64_t stride = space.kept[0].strides[o];
    if (!space.used[o] || operand.offset != 0 || (stride != 0 && stride != 1)) return false;
    operand.strides = {stride};
    const auto known = std::find(out->pointers.begin(), out->pointers.end(), operand.pointer);
    operand.pointer = static_cast<int32_t>(known - out->pointers.begin());
    if (known == out->pointers.end()) out->pointers.push_back(kernel.operands[o].pointer);
  }
  out->kernel.num_pointers = static_cast<int32_t>(out->pointers.size());
  return true;
}

size_t batch_limit(const BatchForm& form) {
  return kParameterBytes / (8 * (form.pointers.size() + form.kernel.scalar_types.size() + 2));
}

base::Status render_batch(const std::vector<BatchForm>& forms, const std::string& name, RenderOptions options, Source* out) {
  options.instances = static_cast<int>(forms.size());
  if (base::Status status = render_kernel(forms[0].kernel, name, options, out); !status.ok()) return status;
  const std::vector<int64_t> numbers = std::move(out->numbers);
  const std::vector<int32_t> order = std::move(out->pointers);
  out->numbers.clear();
  out->pointers.clear();
  out->narrow = false;
  out->num_scalars *= static_cast<int>(forms.size());
  std::vector<int64_t> first;
  int64_t blocks = 0;
  for (const BatchForm& form : forms) {
    const std::vector<int64_t> value{form.points / (form.kernel.sizes[0] / kCode)};
    for (int32_t pointer : order) out->pointers.push_back(form.pointers[static_cast<size_t>(pointer)]);
    for (int64_t number : numbers) out->tail.push_back(ir::evaluate(number, {kCode}, value));
    first.push_back(blocks);
    blocks += (ir::evaluate(out->points, {kCode}, value) + out->per_block - 1) / out->per_block;
  }
  out->tail.insert(out->tail.end(), first.begin(), first.end());
  out->points = 0;
  out->grid_x = static_cast<uint32_t>(blocks);
  return blocks > INT32_MAX ? base::Status::failure("a batch of too many blocks") : base::Status();
}

}  // namespace dynvm::codegen::cuda
