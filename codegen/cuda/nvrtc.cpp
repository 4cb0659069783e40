// See nvrtc.h. The functions' types are those of nvrtc.h in CUDA 12 and 13.
#include "codegen/cuda/nvrtc.h"

#include <mutex>
#include <vector>

#include "codegen/cuda/library.h"
#include "runtime/base/cache_folder.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"

namespace dynvm::codegen::cuda {
namespace {

using Program = void*;

struct Nvrtc {
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const* contents, const char* const* names) = nullptr;
  int (*compile)(Program, int count, const char* const* options) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*version)(int*, int*) = nullptr;
  int major = 0, minor = 0;
  std::string missing;

  Nvrtc() {
    Library library({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"});
    library.find(&create, "nvrtcCreateProgram");
    library.find(&compile, "nvrtcCompileProgram");
    library.find(&cubin_size, "nvrtcGetCUBINSize");
    library.find(&cubin, "nvrtcGetCUBIN");
    library.find(&log_size, "nvrtcGetProgramLogSize");
    library.find(&log, "nvrtcGetProgramLog");
    library.find(&destroy, "nvrtcDestroyProgram");
    library.find(&version, "nvrtcVersion");
    missing = library.missing();
    if (missing.empty()) version(&major, &minor);
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc the_library;
  return the_library;
}

// Cubins that this user's processes have compiled; null where nothing is kept.
base::CacheFolder* folder() {
  static base::CacheFolder the_folder;
  static const bool open = [] {
    const std::string root = base::options().cache == "off" ? std::string() : base::cache_root();
    return !root.empty() && the_folder.open(root + "/cuda").ok();
  }();
  return open ? &the_folder : nullptr;
}

std::mutex folder_mutex;

}  // namespace

std::string nvrtc_missing() { return nvrtc().missing; }

base::Status compile_source(const std::string& source, int architecture, std::string* cubin) {
  const Nvrtc& library = nvrtc();
  if (!library.missing.empty()) return base::Status::failure(library.missing);
  const std::string target = "--gpu-architecture=sm_" + std::to_string(architecture);
  const std::string name = base::stable_hash(target + " " + std::to_string(library.major) + "." + std::to_string(library.minor) + "\n" + source) + ".cubin";
  {
    std::lock_guard lock(folder_mutex);
    if (base::CacheFolder* from = folder(); from != nullptr && from->has(name) && from->read(name, cubin).ok()) return {};
  }
  Program program = nullptr;
  if (library.create(&program, source.c_str(), "dynvm.cu", 0, nullptr, nullptr) != 0) return base::Status::failure("NVRTC made no program");
  std::vector<const char*> options{target.c_str(), "--std=c++17", "--device-as-default-execution-space"};
  const bool own_cache = library.major > 12 || (library.major == 12 && library.minor >= 9);
  if (own_cache) options.push_back("--no-cache");
  const int status = library.compile(program, static_cast<int>(options.size()), options.data());
  size_t size = 0;
  if (status != 0) {
    std::string log;
    if (library.log_size(program, &size) == 0 && size > 1) {
      log.resize(size);
      library.log(program, log.data());
    }
    library.destroy(&program);
    return base::Status::failure("NVRTC: " + log + "\nsource:\n" + source);
  }
  library.cubin_size(program, &size);
  cubin->resize(size);
  library.cubin(program, cubin->data());
  library.destroy(&program);
  std::lock_guard lock(folder_mutex);
  if (base::CacheFolder* to = folder(); to != nullptr)
    if (base::Status kept = to->write(name, *cubin); !kept.ok()) DYNVM_LOG(kCache, "{}", kept.message());
  return {};
}

}  // namespace dynvm::codegen::cuda
