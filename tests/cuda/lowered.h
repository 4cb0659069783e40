// Kernels as operations become them on a GPU, with memory for them.
//
// Input: an operation as the text of a trace has it. Output: its kernels in their order, each with the memory that it finds.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../kernel/support.h"
#include "ir/kernel/eval.h"
#include "ir/lower/lower.h"
#include "ir/text.h"

namespace dynvm::test {

struct LoweredKernel {
  ir::Kernel kernel;
  std::vector<Buffer> buffers;  // by storage
  std::string what;
};

// arguments: with %0, %1 ... for the tensors, which are storages 0, 1 ...; results: the storages behind them. memory: of the first storages, where it matters.
inline std::vector<LoweredKernel> lowered(const std::string& name, const std::vector<std::string>& tensors, std::string arguments, const std::vector<std::string>& results,
                                          std::vector<Buffer> memory = {}) {
  std::string text, metas, values;
  size_t storage = 0;
  for (const std::string& tensor : tensors) {
    const std::string value = fmt::format("%{}", storage);
    for (size_t at = arguments.find(value); at != std::string::npos; at = arguments.find(value, at + 1)) arguments.replace(at, value.size(), fmt::format("%t{}", storage));
    text += fmt::format("%t{0}:t = unbox_tensor %slot !snap0 -> {1} s{0}\n", storage, tensor), ++storage;
  }
  for (size_t k = 0; k < results.size(); ++k, ++storage) {
    metas += fmt::format("{}{} s{}", k > 0 ? ", " : "", results[k], storage);
    values += fmt::format("%r{0}:t = result %call #{0} -> {1} s{2}\n", k, results[k], storage);
  }
  text = fmt::format("trace 1 \"\" storages {}\n%slot:o = slot #0\n{}%call = aten \"aten::{}\" ({}) -> ({}) !snap0\n{}leave !snap0\nsnap0: root unit 0 [=]\n", storage, text, name,
                     arguments, metas, values);
  ir::Trace trace;
  const base::Status parsed = ir::parse_trace(text, &trace);
  EXPECT_TRUE(parsed.ok()) << parsed.message() << "\n" << text;
  if (!parsed.ok()) return {};
  for (ir::TensorMeta& meta : trace.metas) meta.device_type = 1;
  static std::mt19937_64 random(11);
  std::vector<Buffer> buffers(storage);
  for (const ir::TensorMeta& meta : trace.metas) {
    int64_t last = 0;
    for (size_t d = 0; d < meta.sizes.size(); ++d) last += (meta.sizes[d] - 1) * meta.strides[d];
    Buffer& buffer = buffers[static_cast<size_t>(meta.storage)];
    buffer = {meta.dtype, std::vector<uint8_t>(static_cast<size_t>((last + 1) * ir::dtype_size(meta.dtype)))};
    fill(&buffer, random, false);
  }
  std::move(memory.begin(), memory.end(), buffers.begin());
  std::vector<ir::Ref> values_of_results;
  ir::Ref call = 0;
  for (ir::Ref ref = 0; ref < trace.insts.size(); ++ref) {
    if (trace.insts[ref].op == ir::Op::k_aten) call = ref;
    if (trace.insts[ref].op == ir::Op::k_result) values_of_results.push_back(ref);
  }
  std::vector<ir::Lowered> parts;
  std::string why;
  EXPECT_TRUE(ir::lower_call(trace, call, values_of_results, &parts, &why)) << why << "\n" << text;
  std::vector<LoweredKernel> made;
  for (ir::Lowered& part : parts) {
    made.push_back({std::move(part.kernel), buffers, name + " " + arguments});
    std::vector<void*> pointers;
    for (Buffer& buffer : buffers) pointers.push_back(buffer.bytes.data());
    ir::eval_kernel(made.back().kernel, pointers.data(), nullptr);
  }
  made.push_back({{}, std::move(buffers), ""});  // what they leave
  return made;
}

// A tensor as traces have it, its dims from the outermost on in `order`.
inline std::string tensor_text(ir::DType dtype, const std::vector<int64_t>& sizes, std::vector<size_t> order = {}) {
  std::string shape, steps;
  std::vector<int64_t> strides(sizes.size());
  for (size_t d = order.size(); d < sizes.size(); ++d) order.push_back(d);
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) strides[order[d]] = step, step *= sizes[order[d]];
  for (size_t d = 0; d < sizes.size(); ++d) shape += (d > 0 ? "," : "") + std::to_string(sizes[d]), steps += (d > 0 ? "," : "") + std::to_string(strides[d]);
  return fmt::format("{}[{}]{{{}}}", ir::dtype_name(dtype), shape, steps);
}

// Group norm with its gradients, and pooling with its gradient, contiguous and channels last.
inline std::vector<LoweredKernel> lowered_layers(const std::vector<ir::DType>& dtypes) {
  std::vector<LoweredKernel> made;
  const auto add = [&](std::vector<LoweredKernel> kernels) {
    std::vector<Buffer> left = kernels.empty() ? std::vector<Buffer>{} : std::move(kernels.back().buffers);
    for (size_t k = 0; k + 1 < kernels.size(); ++k) made.push_back(std::move(kernels[k]));
    return left;
  };
  for (const ir::DType dtype : dtypes)
    for (const std::vector<size_t>& order : {std::vector<size_t>{0, 1, 2, 3}, {0, 2, 3, 1}}) {
      const auto image = [&](const std::vector<int64_t>& sizes, ir::DType type) { return tensor_text(type, sizes, order); };
      const std::string x = image({2, 12, 6, 8}, dtype), statistic = tensor_text(dtype, {2, 3}), weight = tensor_text(dtype, {12});
      std::vector<Buffer> left = add(lowered("native_group_norm", {x, weight, weight}, "%0, %1, %2, 2, 12, 48, 3, 1e-05", {x, statistic, statistic}));
      add(lowered("native_group_norm", {x}, "%0, none, none, 2, 12, 48, 12, 1e-05", {x, tensor_text(dtype, {2, 12}), tensor_text(dtype, {2, 12})}));
      add(lowered("native_group_norm_backward", {x, x, statistic, statistic, weight}, "%0, %1, %2, %3, %4, 2, 12, 48, 3, bools[1,1,1]", {x, weight, weight}, {left[3], left[0], left[4], left[5], left[1]}));

      for (const auto& [window, step, padding, height, width] : {std::tuple{2, 2, 0, 3, 4}, {3, 2, 0, 3, 4}, {3, 1, 1, 6, 8}, {3, 2, 1, 4, 5}}) {
        const std::string y = image({2, 12, height, width}, dtype), at = image({2, 12, height, width}, ir::DType::kI64);
        const std::string windows = fmt::format("ints[{0},{0}], ints[{1},{1}], ints[{2},{2}], ", window, step, padding);
        add(lowered("avg_pool2d", {x}, "%0, " + windows + "true, false, none", {y}));
        left = add(lowered("max_pool2d_with_indices", {x}, "%0, " + windows + "ints[1,1], true", {y, at}));
        if (padding == 0 || order[1] == 1) add(lowered("avg_pool2d_backward", {y, x}, "%0, %1, " + windows + "true, false, none", {x}));
        add(lowered("max_pool2d_with_indices_backward", {y, x, at}, "%0, %1, " + windows + "ints[1,1], true, %2", {x}, {left[1], left[0], left[2]}));
      }
      add(lowered("avg_pool2d", {x}, "%0, ints[6,8], ints[], ints[0,0], false, true, none", {image({2, 12, 1, 1}, dtype)}));
      add(lowered("avg_pool2d", {x}, "%0, ints[6,5], ints[1,1], ints[0,0], false, true, none", {image({2, 12, 1, 4}, dtype)}));
    }
  return made;
}

}  // namespace dynvm::test
