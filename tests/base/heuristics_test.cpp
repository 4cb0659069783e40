// The numbers that steer the JIT: bounds, words and files that are right, and what is said of those that are not.
#include "runtime/base/heuristics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/base/report.h"

namespace dynvm::base {
namespace {

// A file of this text, gone with the object.
struct File {
  std::string path;
  explicit File(const std::string& text) {
    char name[] = "/tmp/dynvm-heuristics-XXXXXX.toml";
    const int file = mkstemps(name, 5);
    EXPECT_GE(file, 0);
    EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(file);
    path = name;
  }
  ~File() { unlink(path.c_str()); }
};

// What is wrong with the words; the numbers have to be as they were then.
std::string refusal(const std::string& words) {
  Heuristics numbers;
  numbers.hot_loop = 77;
  const std::string message = parse_heuristics(words, &numbers).message();
  Heuristics before;
  before.hot_loop = 77;
  for (const HeuristicRow& row : heuristic_rows()) EXPECT_EQ(numbers.*row.field, before.*row.field) << words << ": " << row.name << " was set";
  return message;
}

std::string refusal_of_file(const std::string& text) {
  const File file(text);
  std::string message = refusal(file.path);
  EXPECT_EQ(message.compare(0, file.path.size(), file.path), 0) << message;
  return message.substr(std::min(message.size(), file.path.size()));
}

TEST(Heuristics, RowsAreWithinTheirBounds) {
  std::set<std::string_view> names;
  const Heuristics usual;
  for (const HeuristicRow& row : heuristic_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(usual.*row.field, row.value) << row.name;
    EXPECT_GE(row.value, row.least) << row.name;
    EXPECT_LE(row.value, row.greatest) << row.name;
    EXPECT_FALSE(row.text.empty()) << row.name;
    EXPECT_EQ(row.text.back(), '.') << row.name;
    if (row.power_of_two) {
      EXPECT_EQ(row.value & (row.value - 1), 0) << row.name;
    }
  }
  EXPECT_GT(names.size(), 60u);
}

TEST(Heuristics, EachRowTakesItsBoundsAndNothingBeyond) {
  for (const HeuristicRow& row : heuristic_rows()) {
    const std::string name(row.name);
    for (const int value : {row.least, row.greatest}) {
      Heuristics numbers;
      const Status status = parse_heuristics(name + "=" + std::to_string(value), &numbers);
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(numbers.*row.field, value) << name;
    }
    for (const int64_t value : {int64_t{row.least} - 1, int64_t{row.greatest} + 1}) {
      const std::string message = refusal(name + "=" + std::to_string(value));
      EXPECT_NE(message.find(std::to_string(row.least) + " to " + std::to_string(row.greatest)), std::string::npos) << message;
    }
  }
}

TEST(Heuristics, WordsAndFilesTheLaterOnesLast) {
  const File file("# a comment\nhot_loop = 9\n\nmax-side = 1_000\nhot_exit = 0x10\n");
  Heuristics numbers;
  ASSERT_TRUE(parse_heuristics("hot_loop=1,hot-call=2," + file.path + ",hot_exit=3", &numbers).ok());
  EXPECT_EQ(numbers.hot_loop, 9);
  EXPECT_EQ(numbers.hot_call, 2);
  EXPECT_EQ(numbers.max_side, 1000);
  EXPECT_EQ(numbers.hot_exit, 3);
  EXPECT_TRUE(parse_heuristics("", &numbers).ok());
}

TEST(Heuristics, BadWords) {
  EXPECT_EQ(refusal("hot_lop=3"), "'hot_lop' is no number of dynvm's (is hot_loop meant?)");
  EXPECT_EQ(refusal("zzzzzzzzzzzz=3"), "'zzzzzzzzzzzz' is no number of dynvm's (docs/heuristics.md has them)");
  EXPECT_EQ(refusal("max_side=3,hot_loop=0"), "hot_loop: expected a whole number from 1 to 1000000000, got 0");
  EXPECT_EQ(refusal("max_side=3,hot_loop=99999999999999999999"), "hot_loop: expected a whole number from 1 to 1000000000, got '99999999999999999999'");
  EXPECT_EQ(refusal("hot_loop=3x"), "hot_loop: expected a whole number from 1 to 1000000000, got '3x'");
  EXPECT_EQ(refusal("hot_loop=1.5"), "hot_loop: expected a whole number from 1 to 1000000000, got '1.5'");
  EXPECT_EQ(refusal("hot_loop="), "hot_loop: expected a whole number from 1 to 1000000000, got ''");
  EXPECT_EQ(refusal("hot_loop"), "expected NAME=VALUE or FILE.toml, got 'hot_loop'");
  EXPECT_EQ(refusal("hot_loop=3,"), "expected NAME=VALUE or FILE.toml, got ''");
  EXPECT_EQ(refusal("cuda_point_threads=96"), "cuda_point_threads: expected a whole number from 32 to 1024 that is a power of two, got 96");
}

TEST(Heuristics, BadFilesAreNamedWithTheLine) {
  EXPECT_EQ(refusal_of_file("max_side = 3\n\nhot_loop = 0\n"), ":3: hot_loop: expected a whole number from 1 to 1000000000, got 0");
  EXPECT_EQ(refusal_of_file("max_side = 3\nhot_lop = 3\n"), ":2: 'hot_lop' is no number of dynvm's (is hot_loop meant?)");
  EXPECT_EQ(refusal_of_file("hot_loop = \"3\"\n"), ":1: hot_loop: expected a whole number from 1 to 1000000000, got a text");
  EXPECT_EQ(refusal_of_file("hot_loop = 3.0\n"), ":1: hot_loop: expected a whole number from 1 to 1000000000, got a fraction");
  EXPECT_EQ(refusal_of_file("hot_loop = true\n"), ":1: hot_loop: expected a whole number from 1 to 1000000000, got a boolean");
  EXPECT_EQ(refusal_of_file("\n[hot]\nloop = 3\n"), ":2: expected lines NAME = VALUE, got a table 'hot'");
  EXPECT_EQ(refusal_of_file("hot_loop = [3]\n"), ":1: expected lines NAME = VALUE, got a list 'hot_loop'");
  EXPECT_EQ(refusal_of_file("max_side = 3\nhot_loop = = 3\n").substr(0, 3), ":2:");
  EXPECT_EQ(refusal_of_file("hot_loop = 3\nhot_loop = 4\n").substr(0, 3), ":2:");
  EXPECT_EQ(refusal_of_file("hot_loop 3\n").substr(0, 3), ":1:");
  EXPECT_EQ(refusal("/nowhere/none.toml").substr(0, 19), "/nowhere/none.toml:");
}

TEST(Heuristics, SettingTellsThoseWhoFollowAndTheReport) {
  const Heuristics before = heuristics();
  static int followed = 0;
  static bool listens = true;
  on_heuristics([] {
    if (listens) followed = heuristics().max_side;
  });
  EXPECT_EQ(changed_heuristics(), "");
  Heuristics numbers = before;
  ASSERT_TRUE(parse_heuristics("max_side=5,hot_loop=2", &numbers).ok());
  EXPECT_EQ(heuristics().hot_loop, before.hot_loop);
  set_heuristics(numbers);
  EXPECT_EQ(followed, 5);
  EXPECT_EQ(heuristics().hot_loop, 2);
  EXPECT_EQ(changed_heuristics(), "hot_loop=2,max_side=5");
  EXPECT_EQ(nlohmann::json::parse(report().json())["heuristics"], nlohmann::json::parse(R"({"hot_loop": 2, "max_side": 5})"));
  const nlohmann::json row = nlohmann::json::parse(heuristics_json())["hot_loop"];
  EXPECT_EQ(row["value"], 2);
  EXPECT_EQ(row["default"], before.hot_loop);
  EXPECT_EQ(row["least"], 1);
  set_heuristics(before);
  listens = false;
  EXPECT_EQ(changed_heuristics(), "");
}

}  // namespace
}  // namespace dynvm::base
