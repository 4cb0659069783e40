// See workspaces.h.
#include "runtime/torch/workspaces.h"

#include <c10/core/Allocator.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <utility>
#include <vector>

namespace dynvm::torch_bridge {

namespace {

using Key = std::tuple<void*, void*>;  // handle, stream

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 11 && TORCH_VERSION_MINOR <= 13
constexpr bool kKnown = true;
#else
constexpr bool kKnown = false;
#endif
#if TORCH_VERSION_MINOR >= 13
using Workspace = std::pair<c10::DataPtr, size_t>;
c10::DataPtr& memory(Workspace& workspace) { return workspace.first; }
Workspace with_memory(const Workspace& like, c10::DataPtr&& data) { return {std::move(data), like.second}; }
#else
using Workspace = c10::DataPtr;
c10::DataPtr& memory(Workspace& workspace) { return workspace; }
Workspace with_memory(const Workspace&, c10::DataPtr&& data) { return std::move(data); }
#endif

struct Table {
  std::map<Key, Workspace> map;
  std::shared_mutex mutex;
};

struct Shared {
  c10::DataPtr memory;
  std::atomic<int> uses;
};

void release(void* shared) {
  if (--static_cast<Shared*>(shared)->uses == 0) delete static_cast<Shared*>(shared);
}

c10::DataPtr pointer(Shared* shared) { return {shared->memory.get(), shared, &release, shared->memory.device()}; }

// Has `side` any now?
bool share(Table& table, void* stream, void* side) {
  const std::unique_lock lock(table.mutex);
  std::vector<std::pair<Key, Workspace>> added;
  for (auto& [key, workspace] : table.map) {
    const Key other{std::get<0>(key), side};
    if (std::get<1>(key) != stream || table.map.count(other) != 0) continue;
    c10::DataPtr& data = memory(workspace);
    Shared* shared = data.get_deleter() == &release ? static_cast<Shared*>(data.get_context()) : nullptr;
    if (shared == nullptr) {
      shared = new Shared{std::move(data), 2};  // the stream's own use, and one that is never given back: that of graphs
      data = pointer(shared);
    }
    ++shared->uses;
    added.emplace_back(other, with_memory(workspace, pointer(shared)));
  }
  for (auto& [key, workspace] : added) table.map.emplace(key, std::move(workspace));
  return std::any_of(table.map.begin(), table.map.end(), [&](const auto& each) { return std::get<1>(each.first) == side; });
}

}  // namespace

bool share_workspaces(void* stream, void* side) {
  void* library = kKnown ? dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD) : nullptr;
  if (library == nullptr) return false;
  bool any = false;
  for (const char* name : {"_ZN2at4cuda33cublas_handle_stream_to_workspaceEv", "_ZN2at4cuda35cublaslt_handle_stream_to_workspaceEv"})
    if (void* function = dlsym(library, name)) any |= share(reinterpret_cast<Table& (*)()>(function)(), stream, side);
  dlclose(library);
  return any;
}

}  // namespace dynvm::torch_bridge
