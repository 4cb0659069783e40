// Times compiled kernels: compile time, and nanoseconds for chains, reductions and row-wise functions.
//
// Usage: [DYNVM_KERNEL_UNROLL=n] kernel_bench [name part]. Prints a line for each case: name, compile time, best and median time of a run, time per element.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codegen/parallel.h"
#include "codegen/x86/kernel/compile.h"

namespace {

using namespace dynvm;
using ir::DType;
using ir::Kernel;
using ir::KOp;

double now() { return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t k = sizes.size(); k-- > 0;) strides[k] = step, step *= sizes[k];
  return strides;
}

void measure(const std::string& name, const Kernel& kernel, const std::string& filter) {
  if (name.find(filter) == std::string::npos) return;
  std::unique_ptr<codegen::CompiledKernel> compiled;
  codegen::KernelOptions options;
  if (const char* unroll = std::getenv("DYNVM_KERNEL_UNROLL")) options.unroll = std::atoi(unroll);
  double compile_time = 1e30;
  for (int k = 0; k < 20; ++k) {
    double start = now();
    base::Status status = codegen::compile_kernel(kernel, codegen::cpu_features(), options, &compiled);
    compile_time = std::min(compile_time, now() - start);
    if (!status.ok()) {
      std::printf("%-36s %s\n", name.c_str(), status.message().c_str());
      return;
    }
  }
  std::vector<std::vector<float>> memory(static_cast<size_t>(kernel.num_pointers));
  std::vector<void*> pointers;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (auto& buffer : memory) {
    buffer.resize(static_cast<size_t>(std::max<int64_t>(kernel.num_points(), 1)) * 2 + 64);  // room for f64
    for (float& x : buffer) x = normal(random);
    pointers.push_back(reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(buffer.data()) + 63) / 64 * 64));
  }
  std::vector<double> times;
  double begin = now();
  while (times.size() < 20 || (now() - begin < 2e8 && times.size() < 2000)) {
    double start = now();
    int repeat = compiled->cost() < 20000 ? 20 : 1;
    for (int k = 0; k < repeat; ++k) compiled->run(pointers.data(), nullptr);
    times.push_back((now() - start) / repeat);
  }
  std::sort(times.begin(), times.end());
  double points = static_cast<double>(kernel.num_points());
  std::printf("%-36s compile %7.1f us %6zu bytes | best %10.2f us  median %10.2f us  %6.3f ns/point  (estimate %.2f us)\n", name.c_str(), compile_time / 1e3,
              compiled->code_size(), times[0] / 1e3, times[times.size() / 2] / 1e3, times[0] / points, compiled->cost() / 1e3);
}

// gelu(x * w + b) * sigmoid(x) - tanh(x), with the erf form of gelu.
Kernel chain(int64_t n) {
  Kernel k;
  k.name = "chain";
  k.sizes = {n, n};
  int32_t x = k.add_load(k.add_operand({DType::kF32, row_major(k.sizes), 0, 0}));
  int32_t w = k.add_load(k.add_operand({DType::kF32, row_major(k.sizes), 0, 1}));
  int32_t b = k.add_load(k.add_operand({DType::kF32, row_major(k.sizes), 0, 2}));
  int32_t y = k.add(KOp::k_add, k.add(KOp::k_mul, x, w), b);
  int32_t erf = k.add(KOp::k_erf, k.add(KOp::k_mul, y, k.add_const(DType::kF32, 0.70710678118654752)));
  int32_t gelu = k.add(KOp::k_mul, k.add(KOp::k_mul, y, k.add_const(DType::kF32, 0.5)), k.add(KOp::k_add, erf, k.add_const(DType::kF32, 1)));
  int32_t result = k.add(KOp::k_sub, k.add(KOp::k_mul, gelu, k.add(KOp::k_sigmoid, x)), k.add(KOp::k_tanh, x));
  k.add_store(k.add_operand({DType::kF32, row_major(k.sizes), 0, 3}), result);
  return k;
}

Kernel unary(KOp op, DType dtype, int64_t n) {
  Kernel k;
  k.name = "unary";
  k.sizes = {n};
  int32_t x = k.add_load(k.add_operand({dtype, {1}, 0, 0}));
  k.add_store(k.add_operand({dtype, {1}, 0, 1}), k.add(op, x));
  return k;
}

Kernel add_two(int64_t n) {
  Kernel k;
  k.name = "add";
  k.sizes = {n};
  int32_t x = k.add_load(k.add_operand({DType::kF32, {1}, 0, 0}));
  int32_t y = k.add_load(k.add_operand({DType::kF32, {1}, 0, 1}));
  k.add_store(k.add_operand({DType::kF32, {1}, 0, 2}), k.add(KOp::k_add, x, y));
  return k;
}

Kernel transpose(int64_t n) {
  Kernel k;
  k.name = "transpose";
  k.sizes = {n, n};
  int32_t x = k.add_load(k.add_operand({DType::kF32, {1, n}, 0, 0}));
  k.add_store(k.add_operand({DType::kF32, {n, 1}, 0, 1}), k.add(KOp::k_add, x, k.add_const(DType::kF32, 1)));
  return k;
}

Kernel sum(int64_t rows, int64_t columns, uint32_t reduce) {
  Kernel k;
  k.name = "sum";
  k.sizes = {rows, columns};
  k.reduce_dims = reduce;
  int32_t x = k.add_load(k.add_operand({DType::kF32, {columns, 1}, 0, 0}));
  std::vector<int64_t> out = {reduce == 2 ? 1 : 0, reduce == 1 ? 1 : 0};
  k.add_store(k.add_operand({DType::kF32, out, 0, 1}), k.add(KOp::k_reduce_sum, x));
  return k;
}

Kernel softmax(int64_t rows, int64_t columns) {
  Kernel k;
  k.name = "softmax";
  k.sizes = {rows, columns};
  k.reduce_dims = 2;
  int32_t x = k.add_load(k.add_operand({DType::kF32, {columns, 1}, 0, 0}));
  int32_t e = k.add(KOp::k_exp, k.add(KOp::k_sub, x, k.add(KOp::k_reduce_max, x)));
  k.add_store(k.add_operand({DType::kF32, {columns, 1}, 0, 1}), k.add(KOp::k_div, e, k.add(KOp::k_reduce_sum, e)));
  return k;
}

Kernel layer_norm(int64_t rows, int64_t columns) {
  Kernel k;
  k.name = "layer_norm";
  k.sizes = {rows, columns};
  k.reduce_dims = 2;
  int32_t x = k.add_load(k.add_operand({DType::kF32, {columns, 1}, 0, 0}));
  int32_t n = k.add_const(DType::kF32, static_cast<double>(columns));
  int32_t mean = k.add(KOp::k_div, k.add(KOp::k_reduce_sum, x), n);
  int32_t d = k.add(KOp::k_sub, x, mean);
  int32_t variance = k.add(KOp::k_div, k.add(KOp::k_reduce_sum, k.add(KOp::k_mul, d, d)), n);
  int32_t scale = k.add(KOp::k_rsqrt, k.add(KOp::k_add, variance, k.add_const(DType::kF32, 1e-5)));
  int32_t w = k.add_load(k.add_operand({DType::kF32, {0, 1}, 0, 1}));
  int32_t b = k.add_load(k.add_operand({DType::kF32, {0, 1}, 0, 2}));
  k.add_store(k.add_operand({DType::kF32, {columns, 1}, 0, 3}), k.add(KOp::k_add, k.add(KOp::k_mul, k.add(KOp::k_mul, d, scale), w), b));
  return k;
}

// Adam without weight decay over one flat parameter.
Kernel adam(int64_t n) {
  Kernel k;
  k.name = "adam";
  k.sizes = {n};
  auto constant = [&](double v) { return k.add_const(DType::kF32, v); };
  int32_t param = k.add_operand({DType::kF32, {1}, 0, 0}), grad = k.add_operand({DType::kF32, {1}, 0, 1});
  int32_t m = k.add_operand({DType::kF32, {1}, 0, 2}), v = k.add_operand({DType::kF32, {1}, 0, 3});
  int32_t g = k.add_load(grad);
  int32_t m2 = k.add(KOp::k_add, k.add_load(m), k.add(KOp::k_mul, k.add(KOp::k_sub, g, k.add_load(m)), constant(0.1)));
  int32_t v2 = k.add(KOp::k_add, k.add(KOp::k_mul, k.add_load(v), constant(0.999)), k.add(KOp::k_mul, k.add(KOp::k_mul, g, g), constant(0.001)));
  int32_t denominator = k.add(KOp::k_add, k.add(KOp::k_div, k.add(KOp::k_sqrt, v2), constant(0.9)), constant(1e-8));
  k.add_store(m, m2);
  k.add_store(v, v2);
  k.add_store(param, k.add(KOp::k_add, k.add_load(param), k.add(KOp::k_mul, k.add(KOp::k_div, m2, denominator), constant(-1e-3))));
  return k;
}

}  // namespace

int main(int argc, char** argv) {
  std::string filter = argc > 1 ? argv[1] : "";
  for (int64_t n : {4, 64, 256, 1024}) measure("chain " + std::to_string(n) + "^2", chain(n), filter);
  for (auto [name, op] : {std::pair{"exp", KOp::k_exp}, {"log", KOp::k_log}, {"tanh", KOp::k_tanh}, {"sigmoid", KOp::k_sigmoid}, {"erf", KOp::k_erf}, {"sin", KOp::k_sin},
                          {"expm1", KOp::k_expm1}, {"log1p", KOp::k_log1p}, {"pow2", KOp::k_exp2}}) {
    measure(std::string("f32 ") + name + " 4096", unary(op, DType::kF32, 4096), filter);
    measure(std::string("f64 ") + name + " 4096", unary(op, DType::kF64, 4096), filter);
  }
  for (int64_t n : {64, 4096, 1 << 20}) measure("add " + std::to_string(n), add_two(n), filter);
  measure("transpose 512^2", transpose(512), filter);
  measure("sum rows 1024x1024", sum(1024, 1024, 2), filter);
  measure("sum columns 1024x1024", sum(1024, 1024, 1), filter);
  measure("sum columns 64x128", sum(64, 128, 1), filter);
  measure("sum all 1024x1024", sum(1024, 1024, 3), filter);
  measure("softmax 128x128", softmax(128, 128), filter);
  measure("softmax 1024x1024", softmax(1024, 1024), filter);
  measure("layer_norm 128x768", layer_norm(128, 768), filter);
  measure("adam 65536", adam(65536), filter);
}
