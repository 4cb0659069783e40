// Which kernels become one launch (runtime/exec/batches.h).
#include "runtime/exec/batches.h"

#include <gtest/gtest.h>

#include "tests/exec/fused.h"

namespace dynvm::runtime {
namespace {

constexpr int kParameters = 4;

constexpr const char* kGeometry[kParameters] = {"f32[64,128]{128,1}", "f32[128]{1}", "f32[40,8]{8,1}", "f32[16]{1}"};

// Parameters of different sizes and their gradients, on a GPU: storages 0 to 3, and 4 to 7.
std::string inputs() {
  std::string text;
  for (int k = 0; k < 2 * kParameters; ++k) {
    const std::string number = std::to_string(k), name = (k < kParameters ? "p" : "g") + std::to_string(k % kParameters);
    text += "%o" + number + ":o = slot #" + number + "\n%" + name + ":t = unbox_tensor %o" + number + " !snap0 -> " + kGeometry[k % kParameters] + " s" + number + " device 1 0\n";
  }
  return text;
}

// p += 0.5 g, in place.
std::string step(int parameter) {
  const std::string k = std::to_string(parameter);
  return "%c" + k + " = aten \"aten::add_.Tensor\" (%p" + k + ", %g" + k + ", 0.5) -> (" + std::string(kGeometry[parameter]) + " s" + k + " device 1 0 alias 0) mutates [0] !snap0\n";
}

struct Made {
  ir::Trace trace;
  TracePrograms programs;
  std::vector<size_t> batches() {
    std::vector<size_t> sizes;
    for (const std::vector<ir::Ref>& batch : kernel_batches(trace, &programs)) sizes.push_back(batch.size());
    return sizes;
  }
};

Made make(const std::string& body) {
  Made made;
  made.trace = fused("trace 1 \"t\" storages 8\n" + inputs() + body + "leave !snap0\nsnap0: root unit 0 [=, =, =, =, =, =, =, =]\n");
  made.programs.plan.call.assign(made.trace.insts.size(), -1);
  made.programs.plan.allocate.resize(made.trace.insts.size());
  made.programs.spec.storages.resize(static_cast<size_t>(made.trace.num_storages));
  return made;
}

ir::Ref kernel(const ir::Trace& trace, int number) {
  for (ir::Ref ref = 0; ref < trace.insts.size(); ++ref)
    if (trace.insts[ref].op == ir::Op::k_kernel && number-- == 0) return ref;
  return ir::kNoRef;
}

TEST(Batches, KernelsOfOneForm) {
  EXPECT_EQ(make(step(0) + step(1) + step(2) + step(3)).batches(), std::vector<size_t>({4}));
}

TEST(Batches, EachHasItsOwnNumbers) {
  const auto scaled = [](int parameter) {
    const std::string k = std::to_string(parameter);
    return "%c" + k + " = aten \"aten::mul_.Tensor\" (%p" + k + ", $%n" + k + ") -> (" + std::string(kGeometry[parameter]) + " s" + k + " device 1 0 alias 0) mutates [0] !snap0\n";
  };
  const std::string numbers = "%n0:f = unbox_float %o0 !snap0\n%n1:f = unbox_float %o1 !snap0\n";
  EXPECT_EQ(make(numbers + scaled(0) + scaled(1)).batches(), std::vector<size_t>({2}));
}

TEST(Batches, NothingMayComeBetween) {
  EXPECT_EQ(make(step(0) + step(1) + "guard_bound %o0 !snap0\n" + step(2)).batches().size(), 2u);
}

TEST(Batches, MemoryIsThereBeforeTheFirst) {
  Made made = make(step(0) + step(1) + step(2));
  const ir::Ref first = kernel(made.trace, 0), second = kernel(made.trace, 1);
  made.programs.plan.allocate[first] = {6};
  made.programs.plan.allocate[second] = {7};
  EXPECT_EQ(made.batches(), std::vector<size_t>({3}));
  EXPECT_EQ(made.programs.plan.allocate[first], std::vector<int32_t>({6, 7}));
  EXPECT_TRUE(made.programs.plan.allocate[second].empty());
}

TEST(Batches, NoneTouchesWhatAnotherWrites) {
  Made made = make(step(0) + step(1) + step(2));
  bridge::StorageSpec& written = made.programs.spec.storages[1];
  bridge::StorageSpec& read = made.programs.spec.storages[6];
  written.kind = read.kind = bridge::StorageSpec::kArena;
  written.bytes = 512, read.arena_offset = 512, read.bytes = 1280;
  EXPECT_EQ(made.batches(), std::vector<size_t>({3}));  // side by side
  read.arena_offset = 256;
  EXPECT_EQ(made.batches(), std::vector<size_t>({2, 1}));
}

}  // namespace
}  // namespace dynvm::runtime
