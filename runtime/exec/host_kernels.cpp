// See host_kernels.h.
#include "runtime/exec/host_kernels.h"

#include <alloca.h>

#include <map>
#include <string>
#include <utility>

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
  std::map<std::string, std::vector<Form>> forms;  // by the kernel's name
  std::vector<std::pair<size_t, std::vector<int32_t>>> placed;  // by place in numbers: its form under that name, and the form's pointers
  for (size_t number : numbers) {
    auto& [place, storages] = placed.emplace_back();
    ir::Kernel form = ir::numbered(kernels[number], &storages);
    std::vector<Form>& known = forms[form.name];
    while (place < known.size() && !(known[place].kernel == form)) ++place;
    if (place == known.size()) known.push_back({std::move(form)});
    ++known[place].places;
  }
  for (size_t k = 0; k < numbers.size(); ++k) {
    const ir::Kernel& kernel = kernels[numbers[k]];
    Form& form = forms[kernel.name][placed[k].first];
    const bool shared = form.places > 1;
    if (form.code == nullptr)
      if (base::Status status = add(shared ? form.kernel : kernel, &form.code); !status.ok()) return status;
    Call call{.code = form.code};
    if (shared) call.storages = std::move(placed[k].second);
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
