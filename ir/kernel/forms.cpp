// See forms.h.
#include "ir/kernel/forms.h"

#include <algorithm>
#include <utility>

namespace dynvm::ir {

KernelForms::Place KernelForms::add(const Kernel& kernel) {
  Place place{};
  Kernel form = numbered(kernel, &place.pointers);
  std::vector<size_t>& named = named_[form.name];
  const auto known = std::find_if(named.begin(), named.end(), [&](size_t number) { return kernels_[number] == form; });
  if (known != named.end()) return ++counts_[place.form = *known], place;
  named.push_back(place.form = kernels_.size());
  kernels_.push_back(std::move(form));
  counts_.push_back(1);
  return place;
}

}  // namespace dynvm::ir
