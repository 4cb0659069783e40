// Puts dynvm's parts together: see install.h.
#include "main/install.h"

#include <Python.h>

#include <cstdlib>

#include "main/torch_compile.h"
#include "runtime/base/dump.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/options.h"
#include "runtime/base/report.h"
#include "runtime/base/stress.h"

#ifdef DYNVM_HAS_VM
#include "vm/vm.h"
#endif
#ifdef DYNVM_HAS_TRACER
#include <dlfcn.h>

#include <string>

#include "codegen/cuda/background.h"
#include "tracer/manager.h"
#endif

namespace dynvm::main {

#ifdef DYNVM_HAS_VM
namespace {

// As options and heuristics say now.
vm::NativeSettings native_settings() {
  vm::NativeSettings native;
  native.on = base::options().native;
  if (base::stress("native")) native.calls = 6, native.loops = 12, native.misses = 3, native.room = INT64_MAX;
  if (base::dump_on(base::DumpStage::kNative)) {
    native.show = [](const std::string& title, const std::string& text) { base::dump(base::DumpStage::kNative, title, text); };
  }
  return native;
}

}  // namespace
#endif
#ifdef DYNVM_HAS_TRACER
namespace {

// The torch bridge lies beside this library.
std::string bridge_path() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&bridge_path), &info) == 0 || info.dli_fname == nullptr) return {};
  std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + DYNVM_TORCH_LIBRARY;
}

}  // namespace
#endif

bool install() {
  // Runs when Python finalizes: also before a Ctrl-C ends the process by a signal, where no atexit handler of C runs.
  if (Py_AtExit(base::write_report) < 0) base::report().notes["report"] = "too many exit functions: written late";
  if (!base::options().vm) return true;
#ifdef DYNVM_HAS_VM
  const bool counting = base::dump_on(base::DumpStage::kPairs);
  if (!vm::install(counting, native_settings())) return false;
  base::on_heuristics([] { vm::set_native(native_settings()); });
  if (counting) std::atexit([] { base::dump(base::DumpStage::kPairs, "executed instructions", vm::counted()); });
#endif
#ifdef DYNVM_HAS_TRACER
  if (Py_AtExit(codegen::cuda::stop_background) < 0) base::report().notes["CUDA kernels"] = "too many exit functions: compiling ends late";
  if (base::options().jit) {
    tracer::install(bridge_path().c_str());
    hint_torch_compile();
  }
#endif
  return true;
}

void start_report() {
#ifdef DYNVM_HAS_VM
  base::on_report([](base::Report& report) {
    report.handovers = vm::stats().handovers;
    const vm::Stats& stats = vm::stats();
    report.native = {stats.native_codes, stats.native_runs, stats.native_bytes, stats.native_given_up};
  });
#endif
  base::write_report_at_exit();
}

}  // namespace dynvm::main
