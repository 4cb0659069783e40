// See library.h.
#include "codegen/cuda/library.h"

#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace dynvm::codegen::cuda {
namespace {

namespace fs = std::filesystem;

// site-packages/nvidia, where torch was loaded from such a place, and those of the environment.
std::vector<fs::path> package_folders() {
  std::vector<fs::path> found;
  if (void* torch = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD)) {
    link_map* map = nullptr;
    if (dlinfo(torch, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) found.push_back(fs::path(map->l_name).parent_path().parent_path().parent_path() / "nvidia");
    dlclose(torch);
  }
  if (const char* folders = std::getenv("DYNVM_CUDA_PATH")) found.emplace_back(folders);
  for (const char* toolkit : {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"}) found.emplace_back(toolkit);
  return found;
}

// Null: there is none.
void* open_library(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (void* handle = dlopen(name.c_str(), RTLD_NOW)) return handle;
  for (const fs::path& folder : package_folders()) {
    std::error_code error;
    std::vector<fs::path> tried{folder};
    for (const auto& package : fs::directory_iterator(folder, error)) tried.push_back(package.path() / "lib");
    for (const fs::path& place : tried)
      for (const std::string& name : names)
        if (fs::exists(place / name, error))
          if (void* handle = dlopen((place / name).c_str(), RTLD_NOW)) return handle;
  }
  return nullptr;
}

}  // namespace

Library::Library(const std::vector<std::string>& names) : name_(names[0]), handle_(open_library(names)) {
  if (handle_ == nullptr) missing_ = "no " + name_;
}

}  // namespace dynvm::codegen::cuda
