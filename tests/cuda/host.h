// Generated CUDA sources as C++ on the CPU (shim.h), and their results beside the reference evaluator's.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../kernel/support.h"
#include "codegen/cuda/prelude.h"
#include "codegen/cuda/render.h"
#include "ir/kernel/kernel.h"
#include "ir/kernel/symbols.h"

namespace dynvm::test {

using codegen::cuda::Source;
using ir::DType;
using ir::Kernel;
using ir::KOp;

struct Rendered {
  Kernel kernel;
  std::vector<Buffer> buffers;
  std::vector<int64_t> scalars;
  Tolerance tolerance;
  std::string what;
  Source source;
  std::vector<int64_t> values;  // of the kernel's symbols
  codegen::cuda::Shape shape{};  // that is asked for
  int64_t value(int64_t number) const { return ir::evaluate(number, kernel.symbols, values); }
  uint32_t grid_x() const { return source.points == 0 ? source.grid_x : static_cast<uint32_t>((value(source.points) + source.per_block - 1) / source.per_block); }
};

// All of them in one library, since starting a compiler takes as long as many kernels.
class HostLibrary {
 public:
  explicit HostLibrary(const std::vector<Rendered>& kernels) {
    static int number = 0;  // the loader knows libraries by their names, also those that it has closed
    folder_ = std::filesystem::temp_directory_path() / fmt::format("dynvm-cuda-{}-{}", getpid(), number++);
    std::filesystem::create_directories(folder_);
    const std::string source = folder_ / "kernels.cpp", library = folder_ / "kernels.so";
    {
      std::ofstream file(source);
      file << "#include \"" << DYNVM_SHIM << "\"\n"
           << "#include \"" << DYNVM_HALF << "\"\n"
           << "inline float f16_to(unsigned short x) { return dynvm::ir::half_to_float(x); }\n"
           << "inline unsigned short to_f16(float x) { return dynvm::ir::float_to_half(x); }\n"
           << "inline unsigned short to_bf16(float x) { return dynvm::ir::float_to_bfloat(x); }\n"
           << codegen::cuda::prelude() << "extern \"C\" bool failed() { const bool was = shim::failed; shim::failed = false; return was; }\n";
      for (const Rendered& each : kernels) {
        const Source& s = each.source;
        if (s.grid_x == 0) continue;
        file << s.text << "extern \"C\" void run_" << s.name << "(const void* p) { shim::run_grid([](const void* q) { " << s.name << "(*(const P_" << s.name << "*)q); }, p, "
             << each.grid_x() << ", " << s.grid_y << ", " << s.block << "); }\n";
      }
    }
    const std::string command = "c++ -std=c++20 -O1 -ffp-contract=off -w -shared -fPIC -fno-gnu-unique -o " + library + " " + source + " 2>" + (folder_ / "log").string();
    if (std::system(command.c_str()) != 0) {
      std::ifstream log(folder_ / "log");
      error = std::string(std::istreambuf_iterator<char>(log), {}).substr(0, 3000) + "\nsource: " + source;
      return;
    }
    handle_ = dlopen(library.c_str(), RTLD_NOW);
    if (handle_ == nullptr) error = dlerror();
  }
  ~HostLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
    if (error.empty()) std::filesystem::remove_all(folder_);
  }
  // False where an assertion has not held.
  bool run(const Rendered& each, void* const* pointers) const {
    const Source& s = each.source;
    if (s.grid_x == 0) return true;
    std::vector<int64_t> parameter;
    for (int32_t pointer : s.pointers) parameter.push_back(reinterpret_cast<int64_t>(pointers[pointer]));
    parameter.insert(parameter.end(), each.scalars.begin(), each.scalars.end());
    for (int64_t number : s.numbers) parameter.push_back(each.value(number));
    parameter.insert(parameter.end(), s.tail.begin(), s.tail.end());
    std::vector<int64_t> workspace(static_cast<size_t>(s.workspace_bytes + 7) / 8, 0);
    if (s.workspace_bytes > 0) parameter.push_back(reinterpret_cast<int64_t>(workspace.data()));
    const auto function = reinterpret_cast<void (*)(const void*)>(dlsym(handle_, ("run_" + s.name).c_str()));
    function(parameter.data());
    check_counters(s, workspace);
    return !reinterpret_cast<bool (*)()>(dlsym(handle_, "failed"))();
  }

  std::string error;

 private:
  // The counters are zero again, for the next launch.
  static void check_counters(const Source& s, const std::vector<int64_t>& workspace) {
    for (uint32_t k = 0; s.workspace_bytes > 0 && k < s.grid_x; ++k) EXPECT_EQ(reinterpret_cast<const int32_t*>(workspace.data())[k], 0);
  }

  std::filesystem::path folder_;
  void* handle_ = nullptr;
};

inline void check(std::vector<Rendered> kernels, int multiprocessors, int vector_bytes, bool wide = false) {
  int number = 0;
  for (Rendered& each : kernels) {
    codegen::cuda::RenderOptions options;
    options.multiprocessors = multiprocessors;
    options.vector_bytes = vector_bytes;
    options.wide = wide;
    options.shape = each.shape;
    const base::Status status = render_kernel(each.kernel, "k" + std::to_string(number++), options, &each.source);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  const HostLibrary library(kernels);
  ASSERT_EQ(library.error, "");
  int failures = 0;
  for (const Rendered& each : kernels) {
    const std::string difference = compare_with(each.values.empty() ? each.kernel : ir::with_values(each.kernel, each.values), each.buffers, each.scalars, each.tolerance, [&](void* const* pointers) { EXPECT_TRUE(library.run(each, pointers)); });
    EXPECT_EQ(difference, "") << each.what << "\n" << each.source.text;
    if (!difference.empty() && ++failures >= 3) return;
  }
}

// Memory for an operand, which it makes.
inline int32_t dense(Rendered* made, DType dtype, const std::vector<int64_t>& strides, int64_t elements) {
  static std::mt19937_64 random(7);
  Buffer buffer{dtype, std::vector<uint8_t>(static_cast<size_t>(elements * ir::dtype_size(dtype)))};
  fill(&buffer, random, false);
  made->buffers.push_back(std::move(buffer));
  return made->kernel.add_operand({dtype, strides, 0, static_cast<int32_t>(made->buffers.size()) - 1});
}

}  // namespace dynvm::test
