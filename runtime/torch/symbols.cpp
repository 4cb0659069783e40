// A session's symbols: what tensors say of them, what is laid out anew when they change; and views that numbers of the run move. See session.h.
// Tests: tests/traces/cases/sizes_*.py.
#include <c10/util/SmallVector.h>

#include <algorithm>

#include "runtime/torch/session.h"

namespace dynvm::torch_bridge {

using Kind = bridge::StorageSpec::Kind;

// The size of a storage as its tensors are now.
int64_t SessionImpl::bytes_now(size_t s) const {
  const StoragePlan& plan = program_.storages[s];
  int64_t bytes = plan.bytes;
  if (!plan.spec.symbolic) return bytes;
  for (int32_t number : plan.tensors) {
    const at::Tensor& shadow = shadows_[static_cast<size_t>(number)];
    if (shadow.numel() == 0) continue;
    int64_t last = shadow.storage_offset();
    for (int64_t d = 0; d < shadow.dim(); ++d) last += (shadow.size(d) - 1) * shadow.stride(d);
    bytes = std::max(bytes, (last + 1) * static_cast<int64_t>(shadow.element_size()));
  }
  return bytes;
}

// What the sizes of a tensor say of symbols. False: they are not what other tensors have said, or 0 or 1, which torch treats in ways of their own.
bool SessionImpl::learn_symbols(const TensorPlan& plan, c10::IntArrayRef sizes) {
  if (sizes.size() != plan.sizes.size()) return false;
  bool fits = true;
  changed_symbols_.clear();
  for (size_t d = 0; d < sizes.size() && fits; ++d)
    if (plan.sizes[d].is_symbol()) fits = tell(plan.sizes[d].symbols[0], sizes[d]);
  for (const SumPlan& sum : program_.sums) {
    if (!fits) break;
    int64_t value = 0;
    bool known = true;
    for (const ir::Product& term : sum.terms) {
      for (uint8_t k = 0; k < term.count; ++k) known = known && symbol_told_[term.symbols[k]] == iteration_;
      value += term(symbols_.data());
    }
    if (known) fits = tell(sum.symbol, value);
  }
  for (size_t d = 0; d < sizes.size() && fits; ++d) fits = plan.sizes[d](symbols_.data()) == sizes[d];
  if (changed_symbols_.empty()) return fits;
  arranged_ = false;
  ++changes_;
  c10::SmallVector<int64_t, 8> new_sizes, new_strides;
  for (size_t symbol : changed_symbols_) {
    for (int32_t number : program_.tensors_of_symbol[symbol]) {
      uint64_t& laid_out = laid_out_[static_cast<size_t>(number)];
      if (laid_out == changes_) continue;
      laid_out = changes_;
      const TensorPlan& tensor = program_.tensors[static_cast<size_t>(number)];
      new_sizes.clear();
      new_strides.clear();
      for (const ir::Product& size : tensor.sizes) new_sizes.push_back(size(symbols_.data()));
      for (const ir::Product& stride : tensor.strides) new_strides.push_back(stride(symbols_.data()));
      shadows_[static_cast<size_t>(number)].unsafeGetTensorImpl()->set_sizes_and_strides(new_sizes, new_strides, tensor.offset(symbols_.data()));
    }
  }
  return fits;
}

// False: it has been said to be something else, or may not be that.
bool SessionImpl::tell(size_t symbol, int64_t value) {
  if (symbol_told_[symbol] == iteration_) return symbols_[symbol] == value;
  if (value < 2) return false;
  symbol_told_[symbol] = iteration_;
  if (symbols_[symbol] == value) return true;
  symbols_[symbol] = value;
  changed_symbols_.push_back(symbol);
  return true;
}

// A dimension of one element may have any stride.
bool SessionImpl::lies_as_planned(const TensorPlan& plan, c10::IntArrayRef strides) const {
  const auto differs = [&](size_t d) {
    if (!plan.meta.symbolic) return plan.meta.sizes[d] != 1 && plan.meta.strides[d] != strides[d];
    return plan.sizes[d](symbols_.data()) != 1 && plan.strides[d](symbols_.data()) != strides[d];
  };
  for (size_t d = 0; d < strides.size(); ++d)
    if (differs(d)) return false;
  return true;
}

// As adopt_open, for a shadow that is made of symbols, some of which may be told by the result.
bool SessionImpl::adopt_symbolic(int32_t number, const at::Tensor& result, const CallPlan& plan, bool view) {
  const TensorPlan& tensor = program_.tensors[static_cast<size_t>(number)];
  const size_t s = static_cast<size_t>(tensor.meta.storage);
  if (!result.defined() || result.scalar_type() != tensor.type || !learn_symbols(tensor, result.sizes())) return false;
  const bool as_planned = lies_as_planned(tensor, result.strides());
  const int64_t offset = tensor.offset(symbols_.data());
  if (view) return as_planned && result.storage().unsafeGetStorageImpl() == storages_[s].shadow.get() && result.storage_offset() == offset;
  if (program_.storages[s].spec.kind != Kind::kResult || !as_planned || result.storage_offset() < offset) {
    if (program_.storages[s].spec.kind == Kind::kResult && allocate(tensor.meta.storage) < 0) TORCH_CHECK(false, "out of memory");
    shadows_[static_cast<size_t>(number)].copy_(result);
    return true;
  }
  const c10::Storage& storage = result.storage();
  if (is_of_argument(storage, plan)) return false;
  use(s);
  storages_[s].real = storage;
  storages_[s].shift = (result.storage_offset() - offset) * ir::dtype_size(tensor.meta.dtype);
  storages_[s].shadow->set_nbytes(storage.nbytes() - static_cast<size_t>(storages_[s].shift));
  point(s, static_cast<char*>(const_cast<void*>(storage.data())) + storages_[s].shift);
  return true;
}

// False: the view has another geometry than recorded, so the trace must be left.
bool SessionImpl::move_view(const CallPlan& plan, CallState& state) {
  torch::jit::Stack stack = state.arguments;
  plan.op.callBoxed(&stack);
  if (plan.results[0] < 0) return true;  // nobody looks at it, or asks where it looks
  const at::Tensor& view = stack.at(0).toTensor();
  const TensorPlan& tensor = program_.tensors[static_cast<size_t>(plan.results[0])];
  const size_t s = static_cast<size_t>(tensor.meta.storage);
  if (view.scalar_type() != tensor.type) return false;
  int64_t offset = tensor.meta.offset;
  if (tensor.meta.symbolic) {
    if (!learn_symbols(tensor, view.sizes()) || !lies_as_planned(tensor, view.strides())) return false;
    offset = tensor.offset(symbols_.data());
  } else if (tensor.meta.open != 0) {
    if (!sizes_fit(tensor.meta, view.sizes(), plan.call.defines_sizes)) return false;
    shadows_[static_cast<size_t>(plan.results[0])].unsafeGetTensorImpl()->set_sizes_and_strides(view.sizes(), view.strides(), offset);
  } else if (view.sizes() != tensor.meta.sizes || view.strides() != tensor.meta.strides) {
    return false;
  }
  // The view's own storage is the viewed memory, moved so that the recorded offset is where the view begins: whatever reads the view, or a
  // view of it, keeps its constant offsets.
  const int64_t shift = (view.storage_offset() - offset) * ir::dtype_size(tensor.meta.dtype);
  for (size_t base = 0; base < storages_.size(); ++base) {
    if (storages_[base].shadow.get() != view.storage().unsafeGetStorageImpl()) continue;
    use(s);
    storages_[s].real = storages_[base].real;
    storages_[s].shift = storages_[base].shift + shift;
    point(s, static_cast<char*>(storage_data_[base]) + shift);
    if (tensor.meta.open != 0) storages_[s].shadow->set_nbytes(storages_[base].shadow->nbytes());
  }
  return true;
}

}  // namespace dynvm::torch_bridge
