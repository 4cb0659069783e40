// See nvrtc.h. The functions' types are those of nvrtc.h in CUDA 12 and 13.
#include "codegen/cuda/nvrtc.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include "codegen/cuda/library.h"
#include "codegen/cuda/prelude.h"
#include "runtime/base/cache_folder.h"
#include "runtime/base/log.h"

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
    if (!missing.empty()) return;
    version(&major, &minor);
    // It opens another library by its name alone, which the loader knows once that is loaded: pip puts both into one folder, which no path of the loader's names.
    Dl_info where{};
    if (dladdr(reinterpret_cast<void*>(version), &where) == 0 || where.dli_fname == nullptr) return;
    const std::string file = where.dli_fname;
    (void)dlopen((file.substr(0, file.rfind('/') + 1) + "libnvrtc-builtins.so." + std::to_string(major) + "." + std::to_string(minor)).c_str(), RTLD_NOW);
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc the_library;
  return the_library;
}

// Cubins that this user's processes have compiled; null where nothing is kept.
base::CacheFolder* folder() { return base::kept_folder("cuda"); }

std::mutex folder_mutex;  // held by whoever uses what follows

// Cubins of units that somebody has.
std::map<std::string, std::weak_ptr<const std::string>>& units() {
  static auto* const all = new std::map<std::string, std::weak_ptr<const std::string>>;
  return *all;
}

std::vector<std::string> options_for(int architecture) {
  std::vector<std::string> options{"--gpu-architecture=sm_" + std::to_string(architecture), "--std=c++17", "--device-as-default-execution-space"};
  const Nvrtc& library = nvrtc();
  if (library.major > 12 || (library.major == 12 && library.minor >= 9)) options.push_back("--no-cache");
  if (library.major >= 13) options.push_back("--minimal");  // without textures and what device code launches kernels with: 20 ms less
  return options;
}

std::shared_ptr<const std::string> read_kept(const std::string& key) {
  base::CacheFolder* from = folder();
  std::string unit, bytes;
  if (from == nullptr || !from->has(key + ".in") || !from->read(key + ".in", &unit).ok()) return nullptr;
  std::weak_ptr<const std::string>& known = units()[unit];
  std::shared_ptr<const std::string> cubin = known.lock();
  if (cubin == nullptr && from->has(unit) && from->read(unit, &bytes).ok() && !bytes.empty()) known = cubin = std::make_shared<const std::string>(std::move(bytes));
  return cubin;
}

void keep(const std::vector<std::string>& keys, const std::shared_ptr<const std::string>& cubin) {
  base::CacheFolder* to = folder();
  if (to == nullptr) return;
  std::string all;
  for (const std::string& key : keys) all += key;
  const std::string unit = base::stable_hash(all) + ".cubin";
  units()[unit] = cubin;
  base::Status kept = to->write(unit, *cubin);
  for (const std::string& key : keys)
    if (kept.ok()) kept = to->write(key + ".in", unit);
  if (!kept.ok()) DYNVM_LOG(kCache, "{}", kept.message());
}

base::Status compile_program(const std::string& text, int architecture, std::string* cubin) {
  const Nvrtc& library = nvrtc();
  Program program = nullptr;
  if (library.create(&program, text.c_str(), "dynvm.cu", 0, nullptr, nullptr) != 0) return base::Status::failure("NVRTC made no program");
  const std::vector<std::string> options = options_for(architecture);
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  const int status = library.compile(program, static_cast<int>(words.size()), words.data());
  size_t size = 0;
  if (status != 0) {
    std::string log;
    if (library.log_size(program, &size) == 0 && size > 1) {
      log.resize(size);
      library.log(program, log.data());
    }
    library.destroy(&program);
    return base::Status::failure("NVRTC: " + log + "\nsource:\n" + text);
  }
  library.cubin_size(program, &size);
  cubin->resize(size);
  library.cubin(program, cubin->data());
  library.destroy(&program);
  return {};
}

}  // namespace

std::string nvrtc_missing() { return nvrtc().missing; }

std::string cubin_key(const std::string& source, int architecture) {
  static std::mutex mutex;
  static auto* const before = new std::map<int, std::string>;  // by architecture: the hash of all else that a cubin depends on
  const std::lock_guard lock(mutex);
  std::string& common = (*before)[architecture];
  if (common.empty()) {
    std::string text = std::to_string(nvrtc().major) + "." + std::to_string(nvrtc().minor);
    for (const std::string& option : options_for(architecture)) text += " " + option;
    common = base::stable_hash(text.append("\n").append(prelude()));
  }
  return base::stable_hash(common + source);
}

bool was_compiled(const std::string& source, int architecture) {
  const std::lock_guard lock(folder_mutex);
  const base::CacheFolder* from = nvrtc_missing().empty() ? folder() : nullptr;
  return from != nullptr && from->has(cubin_key(source, architecture) + ".in");
}

std::vector<Compiled> compile_sources(const std::vector<std::string>& sources, int architecture) {
  std::vector<Compiled> compiled(sources.size());
  std::vector<size_t> missing;
  std::vector<std::string> keys;
  std::string text(prelude());
  if (std::string why = nvrtc_missing(); !why.empty()) {
    for (Compiled& each : compiled) each.status = base::Status::failure(why);
    return compiled;
  }
  for (size_t k = 0; k < sources.size(); ++k) {
    const std::string key = cubin_key(sources[k], architecture);
    const std::lock_guard lock(folder_mutex);
    if ((compiled[k].cubin = read_kept(key)) != nullptr) continue;
    missing.push_back(k);
    keys.push_back(key);
    text += sources[k];
  }
  if (missing.empty()) return compiled;
  std::string bytes;
  const base::Status status = compile_program(text, architecture, &bytes);
  if (status.ok()) {
    const auto cubin = std::make_shared<const std::string>(std::move(bytes));
    const std::lock_guard lock(folder_mutex);
    keep(keys, cubin);
    for (size_t k : missing) compiled[k].cubin = cubin;
  } else if (missing.size() == 1) {
    compiled[missing[0]].status = status;
  } else {
    for (size_t k : missing) compiled[k] = std::move(compile_sources({sources[k]}, architecture)[0]);
  }
  return compiled;
}

}  // namespace dynvm::codegen::cuda
