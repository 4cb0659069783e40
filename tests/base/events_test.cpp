// The queue of events and the counting of zones.
#include "runtime/base/events.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/base/log.h"
#include "runtime/base/report.h"
#include "runtime/base/zones.h"

namespace dynvm::base {
namespace {

nlohmann::json taken() { return nlohmann::json::parse(take_events()); }

TEST(Events, OnlyWhatSomebodyAskedFor) {
  ASSERT_TRUE(observe("").ok());
  int evaluated = 0;
  DYNVM_LOG(kExit, "{}", ++evaluated);
  EXPECT_EQ(evaluated, 0);
  ASSERT_TRUE(observe("exit,abort").ok());
  DYNVM_EVENT(kExit, (EventFields{.what = "left", .trace = 3, .file = "a.py", .line = 7, .times = 2}), "trace {} is left", 3);
  DYNVM_LOG(kTrace, "nobody hears this");
  DYNVM_LOG(kAbort, "text {}", "only");
  const nlohmann::json events = taken();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_GT(events[0]["time"], 0);
  nlohmann::json first = events[0];
  first.erase("time");
  EXPECT_EQ(first, nlohmann::json::parse(R"({"event": "exit", "text": "trace 3 is left", "what": "left", "trace": 3, "file": "a.py", "line": 7, "times": 2})"));
  EXPECT_EQ(events[1]["text"], "text only");
  EXPECT_EQ(events[1].size(), 3u);
  EXPECT_FALSE(has_events());
  ASSERT_TRUE(observe("").ok());
}

TEST(Events, UnknownNamesChangeNothing) {
  ASSERT_TRUE(observe("exit").ok());
  EXPECT_EQ(observe("exit,odd").message(), "there is no event 'odd'; there are trace, exit, abort, guard, compile, cache, policy");
  EXPECT_TRUE(is_observed(LogCategory::kExit));
  ASSERT_TRUE(observe("").ok());
  EXPECT_FALSE(is_observed(LogCategory::kExit));
}

TEST(Events, TheOldestGoWhereThereAreTooMany) {
  ASSERT_TRUE(observe("exit").ok());
  for (int i = 0; i < 10003; ++i) DYNVM_LOG(kExit, "{}", i);
  const nlohmann::json events = taken();
  ASSERT_EQ(events.size(), 10000u);
  EXPECT_EQ(events[0]["text"], "3");
  EXPECT_EQ(events[0]["lost"], 3);
  EXPECT_EQ(events[1].count("lost"), 0u);
  ASSERT_TRUE(observe("").ok());
}

TEST(Events, ManyThreads) {
  ASSERT_TRUE(observe("exit").ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int k = 0; k < 500; ++k) DYNVM_LOG(kExit, "{}", k);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken().size(), 2000u);
  ASSERT_TRUE(observe("").ok());
}

const Zone& zone(int number) { return zones()[static_cast<size_t>(number)]; }

TEST(Zones, NestedOnes) {
  const int outer = zone_number("outer"), inner = zone_number("inner");
  EXPECT_EQ(zone_number("outer"), outer);
  enter_zone(outer);
  enter_zone(inner);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  leave_zone(inner);
  leave_zone(outer);
  EXPECT_EQ(zone(outer).count, 1u);
  EXPECT_GE(zone(inner).ms, 20);
  EXPECT_GE(zone(outer).ms, zone(inner).ms);
  EXPECT_NEAR(zone(outer).own_ms, zone(outer).ms - zone(inner).ms, 1e-6);
  EXPECT_NEAR(zone(inner).own_ms, zone(inner).ms, 1e-6);
}

TEST(Zones, InItselfItsTimeCountsOnce) {
  const int number = zone_number("recursive");
  enter_zone(number);
  enter_zone(number);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  leave_zone(number);
  EXPECT_EQ(zone(number).ms, 0);
  leave_zone(number);
  EXPECT_EQ(zone(number).count, 2u);
  EXPECT_GE(zone(number).ms, 10);
  EXPECT_NEAR(zone(number).own_ms, zone(number).ms, 0.5);
}

TEST(Zones, LeftInAnotherOrderOrNotEntered) {
  const int a = zone_number("a"), b = zone_number("b");
  enter_zone(a);
  enter_zone(b);
  leave_zone(a);
  leave_zone(b);
  leave_zone(b);
  leave_zone(12345);
  enter_zone(12345);
  EXPECT_EQ(zone(a).count, 1u);
  EXPECT_EQ(zone(b).count, 1u);
  const nlohmann::json json = nlohmann::json::parse(report().json())["zones"];
  EXPECT_EQ(json["a"]["count"], 1);
  EXPECT_NE(report().stats().find("\n  zone              a: 1 times, "), std::string::npos);
}

}  // namespace
}  // namespace dynvm::base
