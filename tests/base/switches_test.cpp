// Unit tests of switches: words, hints, what is left out.
#include <gtest/gtest.h>

#include "runtime/base/defects.h"
#include "runtime/base/report.h"
#include "runtime/base/switches.h"

namespace dynvm::base {
namespace {

const std::vector<std::string_view> kPasses = {"fold", "cse", "fuse", "stages"};

std::string error_of(std::string_view words) {
  Switches switches;
  return parse_switches(words, kPasses, &switches).message();
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Switches of the process for as long as it lives.
class Given {
 public:
  explicit Given(std::string_view words) {
    Switches switches;
    EXPECT_EQ(parse_switches(words, kPasses, &switches).message(), "");
    switches.met = [](std::string_view what) { report().switches[std::string(what)]++; };
    set_switches(std::move(switches));
  }
  ~Given() { set_switches({}); }
};

TEST(Switches, EachKindIsTaken) {
  EXPECT_EQ(error_of(""), "");
  EXPECT_EQ(error_of("pass:fuse,opt:out,op:aten::add,record:aten::narrow,kernel:mul_add,trace:a/b.py:12"), "");
}

TEST(Switches, WhatIsWrongIsSaidWithWhatIsNear) {
  EXPECT_TRUE(contains(error_of("pass:fues"), "there is no pass 'fues'; near it: fuse"));
  EXPECT_TRUE(contains(error_of("opt:ouut"), "near it: out"));
  EXPECT_TRUE(contains(error_of("fuse"), "near it: pass:fuse"));
  EXPECT_TRUE(contains(error_of("pas:fuse"), "near it: pass:fuse"));
  EXPECT_TRUE(contains(error_of("op:add"), "near it: op:aten::add"));
  EXPECT_TRUE(contains(error_of("op:aten::add.Tensor"), "op:aten::add"));
  EXPECT_TRUE(contains(error_of("trace:a.py"), "trace:FILE:LINE"));
  EXPECT_TRUE(contains(error_of("trace:a.py:x"), "trace:FILE:LINE"));
  for (const char* wrong : {"pass:", "opt:", ":", ",", "pass:fuse,", "other:x"}) EXPECT_NE(error_of(wrong), "") << wrong;
}

TEST(Switches, AFailureChangesNothing) {
  Switches switches;
  EXPECT_FALSE(parse_switches("pass:fuse,pass:odd", kPasses, &switches).ok());
  EXPECT_FALSE(switches.any());
}

TEST(Switches, NothingIsLeftOutWithoutAny) {
  EXPECT_FALSE(left_out(Part::kOut));
  EXPECT_FALSE(left_out(SwitchKind::kPass, "fuse"));
  EXPECT_FALSE(left_out_at("/a/b.py", 12));
}

TEST(Switches, WhatIsLeftOutIsCounted) {
  const Given given("opt:out,pass:fuse,kernel:mul_add,pass:cse");
  EXPECT_EQ(report().switches.at("opt:out"), 0u);
  EXPECT_TRUE(left_out(Part::kOut));
  EXPECT_FALSE(left_out(Part::kDirect));
  EXPECT_TRUE(left_out(SwitchKind::kPass, "fuse"));
  EXPECT_TRUE(left_out(SwitchKind::kPass, "fuse"));
  EXPECT_FALSE(left_out(SwitchKind::kPass, "fold"));
  EXPECT_FALSE(left_out(SwitchKind::kOp, "aten::add"));
  EXPECT_EQ(report().switches.at("opt:out"), 1u);
  EXPECT_EQ(report().switches.at("pass:fuse"), 2u);
  EXPECT_EQ(report().switches.at("pass:cse"), 0u);
}

TEST(Switches, AKernelsPartsAreThatKernel) {
  const Given given("kernel:mul_add,kernel:sum_2");
  EXPECT_TRUE(left_out(SwitchKind::kKernel, "mul_add"));
  EXPECT_FALSE(left_out(SwitchKind::kKernel, "mul_add_relu"));
  EXPECT_TRUE(left_out(SwitchKind::kKernel, "sum"));  // it is named by what a pass has made of it
  EXPECT_FALSE(left_out(SwitchKind::kKernel, "sum_3"));
}

TEST(Switches, APlaceIsAFilesEnd) {
  const Given given("trace:b.py:12,trace:/c/d.py:3");
  EXPECT_TRUE(left_out_at("/a/b.py", 12));
  EXPECT_TRUE(left_out_at("b.py", 12));
  EXPECT_FALSE(left_out_at("/a/bb.py", 12));
  EXPECT_FALSE(left_out_at("/a/b.py", 13));
  EXPECT_TRUE(left_out_at("/c/d.py", 3));
  EXPECT_FALSE(left_out_at("/x/c/d.pyx", 3));
}

TEST(Switches, WhatSafeLeavesOutExists) {
  Switches switches;
  const std::vector<std::string_view> passes = {"fuse", "epilogue", "channels_last", "early", "inplace"};
  for (const SwitchRow& row : safe_rows()) EXPECT_EQ(parse_switches(row.name, passes, &switches).message(), "");
  EXPECT_TRUE(switches.has(Part::kOut));
}

TEST(Defects, UnknownOnesAreRefused) {
  EXPECT_TRUE(contains(seed_defects("odd").message(), "cse_across_writes"));
  EXPECT_EQ(seeded_defects(), 0u);
  EXPECT_TRUE(seed_defects("cse_across_writes,wrong_exit").ok());
  EXPECT_TRUE(seeded(Defect::kWrongExit));
  EXPECT_FALSE(seeded(Defect::kRandomKept));
  set_seeded_defects(0);
}

}  // namespace
}  // namespace dynvm::base
