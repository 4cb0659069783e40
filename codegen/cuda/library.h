// Libraries of the CUDA toolkit and driver, opened at run time.
#pragma once

#include <dlfcn.h>

#include <string>
#include <type_traits>
#include <vector>

namespace dynvm::codegen::cuda {

class Library {
 public:
  // The first of these names that the process has, that the loader finds, or that lies where pip puts NVIDIA's packages beside torch's.
  explicit Library(const std::vector<std::string>& names);

  // Sets a pointer to a function; null, and noted in missing(), where there is none.
  template <class Function>
  void find(Function** function, const char* name) {
    *function = handle_ != nullptr ? reinterpret_cast<Function*>(dlsym(handle_, name)) : nullptr;
    if (*function == nullptr && missing_.empty()) missing_ = name_ + " without " + name;
  }
  // Empty, or what of it there is not.
  const std::string& missing() const { return missing_; }

 private:
  std::string name_, missing_;
  void* handle_ = nullptr;
};

}  // namespace dynvm::codegen::cuda
