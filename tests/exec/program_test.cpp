// When a program gives memory back (runtime/exec/program.h).
#include "runtime/exec/program.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/text.h"

namespace dynvm::runtime {
namespace {

// A trace over x, f32[4, 64] on a GPU where it is not said otherwise, which is an attribute of #0 under the name #1; #2 is an object too.
struct Made {
  ir::Trace trace;
  TracePrograms programs;
  // The storages that are dropped behind the instruction of this name, as it stands in the text: the last one of that operation.
  std::vector<int32_t> behind(ir::Op op) const {
    std::vector<int32_t> found;
    for (ir::Ref ref = 0; ref < trace.insts.size(); ++ref)
      if (trace.insts[ref].op == op) found = programs.plan.drop[ref];
    return found;
  }
  std::vector<int32_t> dropped() const {
    std::vector<int32_t> all;
    for (const std::vector<int32_t>& some : programs.plan.drop) all.insert(all.end(), some.begin(), some.end());
    return all;
  }
};

Made make(const std::string& body, const std::string& device = "device 1 0", const std::string& gradient = "") {
  std::string text = "trace 1 \"t\" storages 6\n%o0:o = slot #0\n%o1:o = slot #1\n%o2:o = slot #2\n%old:o = get_attr_known %o0, %o1 !snap0\n%x:t = unbox_tensor %old !snap0 -> f32[4,64]{64,1} s0 GPU\n" + body +
                     "loop !snap0\nsnap0: root unit 0 [=, =, =]\n";
  for (const auto& [name, meaning] : {std::pair<std::string, std::string>("GPU", device), {"GRAD", gradient}})
    for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), meaning);
  Made made;
  base::Status status = ir::parse_trace(text, &made.trace);
  EXPECT_TRUE(status.ok()) << status.message();
  const ir::Plan plan = ir::make_plan(made.trace, [](const ir::AtenCall&) { return true; });
  status = build_program(made.trace, plan, &made.programs);
  EXPECT_TRUE(status.ok()) << status.message();
  return made;
}

using Storages = std::vector<int32_t>;

std::string relu(const std::string& of, const std::string& name, int storage) {
  const std::string kind = " -> f32[4,64]{64,1} s" + std::to_string(storage) + " GPU GRAD\n";
  return "%c" + name + " = aten \"aten::relu\" (%" + of + ") -> (f32[4,64]{64,1} s" + std::to_string(storage) + " GPU GRAD) !snap0\n%" + name + ":t = result %c" + name + " #0" + kind;
}

const std::string kHandedOut = relu("x", "y", 1) + "%w:o = wrap %y\n" + relu("x", "z", 2) + "%v:o = wrap %z\nset_attr_known %o2, %o1, %v !snap0\n";

TEST(Program, WhatWasHandedOutIsPythonsBehindItsLastUse) {
  const Made made = make(kHandedOut);
  EXPECT_EQ(made.behind(ir::Op::k_wrap), Storages({2}));
  EXPECT_EQ(made.dropped(), Storages({1, 2}));
  EXPECT_EQ(make(kHandedOut, "").dropped(), Storages());                                  // the CPU's serves the next iteration
  EXPECT_EQ(make(kHandedOut, "device 1 0", "grad nonleaf").dropped(), Storages());  // its graph may be asked for
}

TEST(Program, AnInputThatIsReplacedIsDropped) {
  const std::string replaced = relu("x", "y", 1) + "%w:o = wrap %y\nset_attr_known %o0, %o1, %w !snap0\n";
  EXPECT_EQ(make(replaced).behind(ir::Op::k_set_attr_known), Storages({0}));
  const std::string elsewhere = relu("x", "y", 1) + "%w:o = wrap %y\nset_attr_known %o2, %o1, %w !snap0\n";
  EXPECT_EQ(make(elsewhere).dropped(), Storages({1}));
  // A guard finds the same object there.
  EXPECT_EQ(make("%also:o = get_attr_known %o2, %o1 !snap0\nguard_is %also, %old #-1 !snap0\n" + elsewhere).behind(ir::Op::k_set_attr_known), Storages({0}));
}

TEST(Program, KeepsSmallMemoryWhereItIsMuchOfTheWork) {
  EXPECT_TRUE(make(kHandedOut).programs.spec.keeps_small);
  std::string many = kHandedOut;
  for (int k = 0; k < 20; ++k) many += relu("x", "a" + std::to_string(k), 3);
  EXPECT_FALSE(make(many).programs.spec.keeps_small);
}

}  // namespace
}  // namespace dynvm::runtime
