// Asking a policy: the usual answer without one, counts and events with one.
#include "runtime/base/policy.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/base/log.h"
#include "runtime/base/report.h"

namespace dynvm::base {
namespace {

// Says no to unroll, nothing to side, and is asked nothing else.
class Half : public Policy {
 public:
  bool asks(Decision decision) const override { return decision == Decision::kUnroll || decision == Decision::kSide; }
  std::optional<bool> answer(Decision decision, const Facts& facts) override {
    last = facts;
    if (decision == Decision::kSide) return std::nullopt;
    return false;
  }
  Facts last;
};

class WithPolicy : public testing::Test {
 protected:
  void SetUp() override {
    report().policy.clear();
    set_policy(&policy);
  }
  void TearDown() override {
    set_policy(nullptr);
    ASSERT_TRUE(observe("").ok());
  }
  Half policy;
};

Facts fail_facts() {
  ADD_FAILURE() << "facts were put together for nobody";
  return {};
}

TEST(Policies, WithoutOneTheUsualAnswerAndNoFacts) {
  ASSERT_EQ(policy(), nullptr);
  EXPECT_TRUE(decide(Decision::kInline, true, fail_facts));
  EXPECT_FALSE(decide(Decision::kInline, false, fail_facts));
}

TEST_F(WithPolicy, WhatItIsNotAskedNeedsNoFacts) {
  EXPECT_TRUE(decide(Decision::kInline, true, fail_facts));
  EXPECT_TRUE(report().policy.empty());
}

TEST_F(WithPolicy, ItsAnswerCountsAndTheUsualOneIsAFact) {
  EXPECT_FALSE(decide(Decision::kUnroll, true, [] { return Facts{{"rounds", int64_t{3}}}; }));
  EXPECT_FALSE(decide(Decision::kUnroll, false, [] { return Facts{}; }));
  const PolicyReport& counts = report().policy.at("unroll");
  EXPECT_EQ(counts.asked, 2u);
  EXPECT_EQ(counts.no, 2u);
  EXPECT_EQ(counts.yes, 0u);
  EXPECT_EQ(counts.against, 1u);
  ASSERT_EQ(policy.last.size(), 1u);
  EXPECT_STREQ(policy.last[0].name, "default");
  EXPECT_FALSE(std::get<bool>(policy.last[0].value));
}

TEST_F(WithPolicy, NothingIsTheUsualAnswer) {
  EXPECT_TRUE(decide(Decision::kSide, true, [] { return Facts{}; }));
  EXPECT_FALSE(decide(Decision::kSide, false, [] { return Facts{}; }));
  const PolicyReport& counts = report().policy.at("side");
  EXPECT_EQ(counts.asked, 2u);
  EXPECT_EQ(counts.yes + counts.no + counts.against, 0u);
}

TEST_F(WithPolicy, EachAnswerOfItsOwnIsAnEventWithPlaceAndFacts) {
  ASSERT_TRUE(observe("policy").ok());
  (void)decide(Decision::kSide, true, [] { return Facts{}; });
  EXPECT_FALSE(has_events());
  (void)decide(Decision::kUnroll, true, [] { return Facts{{"file", std::string("a.py")}, {"line", int64_t{7}}, {"rounds", int64_t{3}}}; });
  const std::string events = take_events();
  EXPECT_NE(events.find("unroll: no (file a.py, line 7, rounds 3, default yes)"), std::string::npos) << events;
  EXPECT_NE(events.find("\"line\":7"), std::string::npos) << events;
}

TEST(Policies, EachQuestionHasAName) {
  std::set<std::string_view> names;
  for (int i = 0; i < static_cast<int>(Decision::kCount); i++) names.insert(decision_name(static_cast<Decision>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(Decision::kCount));
  EXPECT_EQ(names.count(""), 0u);
}

}  // namespace
}  // namespace dynvm::base
