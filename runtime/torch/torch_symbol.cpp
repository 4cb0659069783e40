// See torch_symbol.h.
#include "runtime/torch/torch_symbol.h"

#include <ATen/Context.h>
#include <dlfcn.h>

namespace dynvm::torch_bridge {

void* torch_symbol(const char* name) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(static_cast<at::Context& (*)()>(&at::globalContext)), &info)) return nullptr;
  void* library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return library ? dlsym(library, name) : nullptr;
}

}  // namespace dynvm::torch_bridge
