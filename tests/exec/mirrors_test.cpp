// Which kernels store for the host what is read next (runtime/exec/mirrors.h).
#include "runtime/exec/mirrors.h"

#include <gtest/gtest.h>

#include "tests/exec/fused.h"

namespace dynvm::runtime {
namespace {

// A trace over x, f32[4, 64], and n, f32[1], on a GPU, after fusing: what its reads are given.
struct Made {
  ir::Trace trace;
  TracePrograms programs;
  MirrorPlan plan;
  // By read, the number of its mirror in the order of the program's storages; -1: it copies.
  std::vector<int> reads() const {
    std::vector<int> found;
    for (ir::Ref ref = 0; ref < trace.insts.size(); ++ref) {
      if (trace.insts[ref].op != ir::Op::k_read_scalar) continue;
      const int32_t storage = plan.of_read[ref];
      found.push_back(storage < 0 ? -1 : storage - trace.num_storages);
      EXPECT_TRUE(storage < 0 || programs.spec.storages.at(static_cast<size_t>(storage)).kind == bridge::StorageSpec::kMirror);
    }
    return found;
  }
};

Made make(const std::string& body, int devices = 1) {
  Made made;
  std::string text = "trace 1 \"t\" storages 8\n%o0:o = slot #0\n%o1:o = slot #1\n%x:t = unbox_tensor %o0 !snap0 -> f32[4,64]{64,1} s0 GPU\n%n:t = unbox_tensor %o1 !snap0 -> f32[1]{1} s1 GPU\n" +
                     body + "leave !snap0\nsnap0: root unit 0 [=, =]\n";
  for (size_t at; (at = text.find("GPU")) != std::string::npos;) text.replace(at, 3, devices == 0 ? "" : "device 1 0");
  made.trace = fused(text);
  const ir::Plan plan = ir::make_plan(made.trace, [](const ir::AtenCall&) { return true; });
  const base::Status status = build_program(made.trace, plan, &made.programs);
  EXPECT_TRUE(status.ok()) << status.message();
  made.plan = plan_mirrors(made.trace, &made.programs);
  return made;
}

using Reads = std::vector<int>;

const std::string kLargest = "%c0 = aten \"aten::amax\" (%x, ints[0, 1], false) -> (f32[]{} s2 GPU) !snap0\n%m:t = result %c0 #0 -> f32[]{} s2 GPU\n";
const std::string kSmallest = "%c1 = aten \"aten::amin\" (%x, ints[0, 1], false) -> (f32[]{} s3 GPU) !snap0\n%l:t = result %c1 #0 -> f32[]{} s3 GPU\n";
const std::string kLibrary = "%c2 = aten \"aten::renorm_\" (%x, 2.0, 0, 1.0) -> (f32[4,64]{64,1} s0 GPU alias 0) mutates [0] !snap0\n";

// A number that is looked at.
std::string read(const std::string& tensor) {
  static int count = 0;
  const std::string name = "%read" + std::to_string(count++);
  return name + ":f = read_scalar " + tensor + " !snap0\n" + name + "_same:b = same_float " + name + ", " + name + "\nguard_true " + name + "_same !snap0\n";
}

TEST(Mirrors, OfTheKernelBefore) {
  const Made made = make(kLargest + "guard_bound %o0 !snap0\n" + read("%m"));
  EXPECT_EQ(made.reads(), Reads({0}));
  ASSERT_EQ(made.plan.of_kernel.size(), 1u);
  EXPECT_EQ(made.plan.of_kernel.begin()->second.size(), 1u);
  EXPECT_EQ(made.plan.storages, std::vector<int32_t>({made.trace.num_storages}));
}

TEST(Mirrors, SeveralNumbersOfOneKernel) {
  const Made made = make(kLargest + kSmallest + read("%m") + read("%l") + read("%m"));
  EXPECT_EQ(made.reads(), Reads({0, 1, 0}));
  EXPECT_EQ(made.plan.of_kernel.size(), 1u);
}

TEST(Mirrors, WorkBeforeTheKernelIsNoMatter) { EXPECT_EQ(make(kLibrary + kLargest + read("%m")).reads(), Reads({0})); }

// A read says that all that was queued before it is done.
TEST(Mirrors, NoWorkMayComeBetween) {
  EXPECT_EQ(make(kLargest + read("%m") + kLibrary + read("%m")).reads(), Reads({0, -1}));
  EXPECT_EQ(make(kLargest + read("%m") + "%called:o = call %o0 !snap0\n" + read("%m")).reads(), Reads({0, -1}));
  EXPECT_EQ(make(kLargest + read("%m") + "%clock:o = call_apart %o0 !snap0\n" + read("%m")).reads(), Reads({0, -1}));
}

TEST(Mirrors, OnlyOfWhatAKernelStoresOnce) {
  EXPECT_EQ(make(read("%n")).reads(), Reads({-1}));  // an input
  EXPECT_EQ(make("%c0 = aten \"aten::median\" (%x) -> (f32[]{} s2 GPU) !snap0\n%m:t = result %c0 #0 -> f32[]{} s2 GPU\n" + read("%m")).reads(), Reads({-1}));  // the library's
  const std::string rows = "%c0 = aten \"aten::amax\" (%x, ints[1], false) -> (f32[4]{1} s2 GPU) !snap0\n%r:t = result %c0 #0 -> f32[4]{1} s2 GPU\n";
  for (const std::string at : {"0", "1"})  // one of four that the kernel stores
    EXPECT_EQ(make(rows + "%c1 = aten \"aten::select.int\" (%r, 0, " + at + ") -> (f32[]{} s2 offset " + at + " GPU alias 0) !snap0\n%m:t = result %c1 #0 -> f32[]{} s2 offset " + at + " GPU\n" + read("%m")).reads(), Reads({-1}));
  EXPECT_EQ(make(kLargest + read("%m"), 0).reads(), Reads({-1}));  // on the CPU
}

}  // namespace
}  // namespace dynvm::runtime
