// See host_kernels.h.
#include "runtime/exec/host_kernels.h"

#include <alloca.h>

#include <map>
#include <utility>

#include "ir/kernel/forms.h"

namespace dynvm::runtime {

void HostKernels::run(const Call* call, void* const* storages, const int64_t* scalars, codegen::Activation* activation) {
  void* const* pointers = storages;
  int64_t* numbers = nullptr;
  if (const size_t count = call->storages.size(); count != 0) {
    auto** own = static_cast<void**>(alloca(count * sizeof(void*)));
    for (size_t k = 0; k < count; ++k) own[k] = storages[call->storages[k]];
    pointers = own;
  }
  if (const size_t count = call->numbers.size(); count != 0) {
    numbers = static_cast<int64_t*>(alloca(count * sizeof(int64_t)));
    for (size_t k = 0; k < count; ++k) numbers[k] = call->numbers[k](activation->symbols);
  }
  call->code->run(pointers, scalars, numbers);
}

base::Status HostKernels::add(const ir::Kernel& kernel, const codegen::CompiledKernel** code) {
  std::unique_ptr<codegen::CompiledKernel> compiled;
  if (base::Status status = codegen::compile_kernel(kernel, codegen::cpu_features(), {}, &compiled); !status.ok()) return status.in("kernel " + kernel.name);
  *code = codes_.emplace_back(std::move(compiled)).get();
  return {};
}

base::Status HostKernels::compile(const std::vector<ir::Kernel>& kernels, const std::vector<size_t>& numbers, std::vector<codegen::KernelEntry>* entries) {
  of_number_.resize(kernels.size());
  ir::KernelForms forms;
  std::vector<ir::KernelForms::Place> places;
  for (size_t number : numbers) places.push_back(forms.add(kernels[number]));
  std::map<size_t, const codegen::CompiledKernel*> code_of;  // by form
  for (size_t k = 0; k < numbers.size(); ++k) {
    const ir::Kernel& kernel = kernels[numbers[k]];
    const size_t form = places[k].form;
    const bool shared = forms.count(form) > 1;
    const codegen::CompiledKernel*& code = code_of[form];
    if (code == nullptr)
      if (base::Status status = add(shared ? forms.kernel(form) : kernel, &code); !status.ok()) return status;
    Call call{.code = code};
    if (shared) call.storages = std::move(places[k].pointers);
    for (int64_t number : call.code->numbers())
      if (!ir::Product::of(number, kernel.symbols, &call.numbers.emplace_back())) return base::Status::failure("kernel " + kernel.name + ": a product of too many symbols");
    of_number_[numbers[k]] = call.code;
    codegen::KernelEntry& entry = (*entries)[numbers[k]];
    if (call.numbers.empty() && call.storages.empty() && !call.code->parallel()) {
      entry.entry = reinterpret_cast<const void*>(call.code->entry());
    } else {
      entry.context = calls_.emplace_back(std::make_unique<Call>(std::move(call))).get();
      entry.entry = reinterpret_cast<const void*>(&run);
    }
  }
  return {};
}

size_t HostKernels::code_size() const {
  size_t size = 0;
  for (const auto& code : codes_) size += code->code_size();
  return size;
}

}  // namespace dynvm::runtime
