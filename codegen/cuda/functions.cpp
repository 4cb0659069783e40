// See functions.h.
#include "codegen/cuda/functions.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "codegen/cuda/background.h"
#include "codegen/cuda/driver.h"
#include "codegen/cuda/nvrtc.h"
#include "runtime/base/dump.h"

namespace dynvm::codegen::cuda {
namespace {

constexpr size_t kStart = 2000;  // what beginning with one more function costs, in characters of source

std::mutex codes_mutex;
auto& codes = *new std::map<std::pair<int, std::string>, std::weak_ptr<FunctionCode>>;  // by device and text

struct Module {
  ~Module() {
    if (handle != nullptr) unload_module(device, handle);
  }
  int device = 0;
  std::shared_ptr<const std::string> cubin;
  void* handle = nullptr;
};

// One for each cubin and device.
base::Status module_of(int device, const std::shared_ptr<const std::string>& cubin, std::shared_ptr<Module>* out) {
  static std::mutex mutex;
  static auto* const modules = new std::map<std::pair<int, const std::string*>, std::weak_ptr<Module>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Module>& known = (*modules)[{device, cubin.get()}];  // a module keeps its cubin, so the address is its own
  if ((*out = known.lock()) != nullptr) return {};
  const auto made = std::make_shared<Module>();
  made->device = device;
  made->cubin = cubin;
  if (base::Status status = load_module(device, *cubin, &made->handle); !status.ok()) return status;
  known = *out = made;
  return {};
}

}  // namespace

// What one job compiles.
struct Unit {
  int device = 0;
  size_t cost = 0;
  std::vector<std::pair<std::shared_ptr<FunctionCode>, Source>> members;

  void add(std::shared_ptr<FunctionCode> code, const Source& source) {
    cost += kStart + source.text.size();
    members.emplace_back(std::move(code), source);
  }

  void compile() const {
    std::vector<std::string> texts;
    for (const auto& [code, source] : members) texts.push_back(source.text);
    const std::vector<Compiled> compiled = compile_sources(texts, device_facts(device).architecture);
    for (size_t k = 0; k < members.size(); ++k) {
      const Source& source = members[k].second;
      std::shared_ptr<Module> module;
      void* function = nullptr;
      base::Status status = compiled[k].status;
      if (status.ok()) status = module_of(device, compiled[k].cubin, &module);
      if (status.ok()) status = find_function(device, module->handle, source.name, source.shared_bytes, &function);
      members[k].first->finish(std::move(status), std::move(module), function);
    }
  }
};

void FunctionCode::finish(base::Status status, std::shared_ptr<const void> module, void* function) {
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
  module_ = std::move(module);
  function_ = function;
  done_ = true;
  is_done_.notify_all();
}

base::Status FunctionCode::wait() {
  std::unique_lock lock(mutex_);
  is_done_.wait(lock, [&] { return done_.load(); });
  return status_;
}

std::vector<std::shared_ptr<FunctionCode>> begin_functions(const std::vector<const Source*>& sources, const std::vector<int>& devices) {
  std::vector<std::shared_ptr<FunctionCode>> functions(sources.size());
  std::vector<size_t> begun;
  {
    const std::lock_guard lock(codes_mutex);
    for (size_t k = 0; k < sources.size(); ++k) {
      if (sources[k]->grid_x == 0) continue;
      std::weak_ptr<FunctionCode>& known = codes[{devices[k], sources[k]->text}];
      if ((functions[k] = known.lock()) != nullptr) continue;
      known = functions[k] = std::make_shared<FunctionCode>();
      if (base::dump_on(base::DumpStage::kCuda)) base::dump(base::DumpStage::kCuda, sources[k]->name, sources[k]->text);
      begun.push_back(k);
    }
  }
  // The longest first, each to the unit with the least to do; what only has to be read goes to one unit for each device.
  std::stable_sort(begun.begin(), begun.end(), [&](size_t a, size_t b) { return sources[a]->text.size() > sources[b]->text.size(); });
  std::map<std::pair<int, bool>, std::vector<Unit>> units;  // by device, and whether they are to be compiled
  for (size_t k : begun) {
    const bool is_new = !was_compiled(sources[k]->text, device_facts(devices[k]).architecture);
    std::vector<Unit>& of_kind = units[{devices[k], is_new}];
    if (of_kind.size() < (is_new ? background_threads() : 1)) of_kind.push_back({devices[k]});
    std::min_element(of_kind.begin(), of_kind.end(), [](const Unit& a, const Unit& b) { return a.cost < b.cost; })->add(functions[k], *sources[k]);
  }
  for (auto& [kind, of_kind] : units)
    for (Unit& unit : of_kind) run_in_background([unit = std::move(unit)] { unit.compile(); });
  return functions;
}

base::Status wait_for(const std::vector<std::shared_ptr<FunctionCode>>& functions) {
  for (const std::shared_ptr<FunctionCode>& function : functions)
    if (function != nullptr)
      if (base::Status status = function->wait(); !status.ok()) return status;
  return {};
}

}  // namespace dynvm::codegen::cuda
