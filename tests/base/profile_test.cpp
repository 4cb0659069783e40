// Clocks and meters, the timeline, and the file that a profile becomes. The process's own profile is begun once, by the first test.
#include "runtime/base/profile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/base/json_writer.h"
#include "runtime/base/options.h"
#include "runtime/base/profile_file.h"

namespace dynvm::base::profile {
namespace {

void work_for(int ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (std::chrono::steady_clock::now() < until) {
  }
}

TEST(JsonWriter, WritesWhatAParserReads) {
  JsonWriter json;
  json.begin('{').key("a\"\\\n\x01").begin('[').number(1).number(-2.5).number(uint64_t{1} << 40).boolean(true).end(']').key("none").number(std::nan(""));
  json.key("empty").begin('[').end(']').key("object").begin('{').end('}').key("text").string("\u00fc\u20ac\U0001f600 \xff\xc3").key("last").strings(std::vector<std::string>{"x", "y"}).end('}');
  const auto read = nlohmann::json::parse(json.text());
  EXPECT_EQ(read["a\"\\\n\x01"], nlohmann::json::parse("[1, -2.5, 1099511627776, true]"));
  EXPECT_TRUE(read["none"].is_null());
  EXPECT_EQ(read["text"], "\u00fc\u20ac\U0001f600 ??");
  EXPECT_TRUE(read["empty"].empty() && read["object"].empty());
  EXPECT_EQ(read["last"], (std::vector<std::string>{"x", "y"}));
}

class Profile : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    EXPECT_FALSE(on());
    Timed before(Part::kCompiling);  // nothing, without a profile
    char folder[] = "/tmp/dynvm-profile-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    options().profile = folder;
    begin();
  }
};

TEST_F(Profile, MetersExcludeEachOther) {
  ASSERT_TRUE(on());
  clock().go_on(&meter(Part::kInterpreter));
  TraceData& trace = data().traces.emplace_back();
  trace.id = 1;
  const uint64_t begin = ticks_now(), interpreted = meter(Part::kInterpreter).ticks, collected = meter(Part::kGc).ticks;
  {
    const Timed outer(&trace.own);
    work_for(4);
    {
      const Timed inner(Part::kGc);
      work_for(8);
    }
    work_for(2);
  }
  clock().go_on(&meter(Part::kInterpreter));
  const uint64_t all = ticks_now() - begin;
  EXPECT_GE(ms_of(meter(Part::kGc).ticks - collected), 7.9);
  EXPECT_GE(ms_of(trace.own.ticks), 5.9);
  EXPECT_NEAR(static_cast<double>(trace.own.ticks + meter(Part::kGc).ticks - collected), static_cast<double>(all), 0.01 * static_cast<double>(all));
  EXPECT_EQ(trace.own.times, 1u);
  const uint64_t measured = trace.own.ticks + meter(Part::kGc).ticks - collected + meter(Part::kInterpreter).ticks - interpreted;
  EXPECT_NEAR(static_cast<double>(measured), static_cast<double>(all), 0.01 * static_cast<double>(all));
}

TEST_F(Profile, OtherThreadsAreSetApart) {
  const uint64_t before = meter(Part::kCompiling).ticks;
  std::thread([] {
    const Timed timed(Part::kCompiling);
    work_for(3);
  }).join();
  EXPECT_GE(ms_of(meter(Part::kCompiling).ticks - before), 2.9);
}

TEST_F(Profile, NeighbouringRunsAreOneEvent) {
  data().events.clear();
  add_event(Event::kGc, 0, 1, 2, "generation 0");
  for (uint64_t k = 0; k < 1000; ++k) add_event(Event::kRun, 7, 100 + 10 * k, 108 + 10 * k);
  add_event(Event::kRun, 8, 20000, 20010);
  add_event(Event::kRun, 7, 20010, 20020);
  add_event(Event::kRun, 7, 900000, 900010);  // long after
  ASSERT_EQ(data().events.size(), 5u);
  EXPECT_EQ(data().events[1].count, 1000u);
  EXPECT_EQ(data().events[1].end, 108u + 9990u);
  EXPECT_EQ(data().events[2].trace, 8);
  EXPECT_EQ(data().events[4].begin, 900000u);
  data().events.clear();
}

TEST_F(Profile, PartsOfTheFileAddUp) {
  work_for(5);
  write();
  std::ifstream file(options().profile + "/profile.json");
  const auto all = nlohmann::json::parse(file);
  double sum = 0;
  for (const auto& part : all["parts"].items()) sum += part.value().get<double>();
  EXPECT_NEAR(sum, all["wall_ms"].get<double>() + all["other_threads_ms"].get<double>(), 0.01 * sum);
  EXPECT_GE(all["other_threads_ms"].get<double>(), 2.9);
  EXPECT_EQ(all["version"], 1);
  EXPECT_EQ(all["traces"].size(), 1u);
}

}  // namespace
}  // namespace dynvm::base::profile
