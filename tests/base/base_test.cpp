// Unit tests of runtime/base: status, checks, options, log lines, report.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/base/check.h"
#include "runtime/base/dump.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/base/report.h"
#include "runtime/base/status.h"

namespace dynvm::base {
namespace {

// A parsed command line: the options, what is left for Python, the failure.
struct Parsed {
  Options options;
  std::vector<std::string> python;
  std::string error;
};

Parsed parse(std::vector<std::string> words) {
  words.insert(words.begin(), "python");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  Parsed parsed;
  std::vector<char*> left;
  parsed.error = parse_command_line(static_cast<int>(argv.size()), argv.data(), parsed.options, left).message();
  for (size_t i = 1; i < left.size(); ++i) parsed.python.emplace_back(left[i]);
  return parsed;
}

using Words = std::vector<std::string>;

TEST(Status, SuccessHasNoMessage) {
  EXPECT_TRUE(Status().ok());
  EXPECT_TRUE(Status().in("x").ok());
}

TEST(Status, FailureKeepsItsMessage) {
  EXPECT_EQ(Status::failure("no").in("compiling").message(), "compiling: no");
  EXPECT_FALSE(Status::failure("").ok());
}

int evaluations = 0;
bool counted() {
  ++evaluations;
  return true;
}

TEST(Check, HoldsSilentlyAndOnce) {
  DYNVM_CHECK(counted());
  EXPECT_EQ(evaluations, 1);
  DYNVM_CHECK(counted(), "value {}", 3);
}

TEST(CheckDeathTest, PrintsPlaceMessageAndContexts) {
  EXPECT_DEATH(DYNVM_CHECK(1 == 2, "value {}", 3), "internal error: .*base_test.cpp:[0-9]+: 1 == 2: value 3");
  int outer = 1, inner = 2;
  auto print = [](const void* data) { return "at " + std::to_string(*static_cast<const int*>(data)); };
  CheckContext first(print, &outer);
  CheckContext second(print, &inner);
  EXPECT_DEATH(DYNVM_CHECK(false), "at 2\nat 1");
}

TEST(Options, BothWaysToGiveAValue) {
  EXPECT_EQ(parse({"--report", "a.json", "s.py"}).options.report, "a.json");
  Parsed parsed = parse({"--report=a.json", "s.py", "x"});
  EXPECT_EQ(parsed.options.report, "a.json");
  EXPECT_EQ(parsed.python, (Words{"s.py", "x"}));
}

TEST(Options, StopAtScriptModuleCommandAndDashes) {
  for (const char* end : {"s.py", "-", "--", "-c", "-m", "-Ic", "-Bm"}) {
    Parsed parsed = parse({end, "--stats", "--report"});
    EXPECT_FALSE(parsed.options.stats) << end;
    EXPECT_EQ(parsed.python, (Words{end, "--stats", "--report"})) << end;
  }
}

TEST(Options, PythonsOptionsPassWithTheirArguments) {
  Words words{"-X", "dev", "-Wignore", "-OO", "--check-hash-based-pycs", "always", "-uW", "error"};
  Words all = words;
  all.insert(all.end(), {"--stats", "s.py"});
  Parsed parsed = parse(all);
  EXPECT_TRUE(parsed.options.stats);
  words.push_back("s.py");
  EXPECT_EQ(parsed.python, words);
  // "--stats" is the argument of -X here, "-c" that of -W.
  EXPECT_FALSE(parse({"-X", "--stats"}).options.stats);
  EXPECT_TRUE(parse({"-W", "-c", "--stats"}).options.stats);
}

TEST(Options, UnknownLongOptionsAreLeftToPython) { EXPECT_EQ(parse({"--foo", "s.py"}).python, (Words{"--foo", "s.py"})); }

TEST(Options, Values) {
  Parsed parsed = parse({"--jit=off", "--hot", "7", "--log=trace,abort", "--log=exit", "--dump=all"});
  EXPECT_EQ(parsed.error, "");
  EXPECT_FALSE(parsed.options.jit);
  EXPECT_EQ(parsed.options.hot, 7);
  EXPECT_EQ(parsed.options.log, 0b111u);
  EXPECT_EQ(parsed.options.dump, 0b111111u);
}

TEST(Options, BadValuesAreNamed) {
  EXPECT_EQ(parse({"--jit=maybe"}).error, "--jit: expected on or off, got 'maybe'");
  EXPECT_EQ(parse({"--hot=-1"}).error, "--hot: expected a number, got '-1'");
  EXPECT_EQ(parse({"--hot=3x"}).error, "--hot: expected a number, got '3x'");
  EXPECT_EQ(parse({"--report"}).error, "--report: its value is missing");
  EXPECT_EQ(parse({"--report="}).error, "--report: expected FILE.json, got nothing");
  EXPECT_EQ(parse({"--stats=1"}).error, "--stats takes no value");
  EXPECT_NE(parse({"--dump=ir,,asm"}).error, "");
}

TEST(Options, WordsOfTheEnvironment) {
  Options options;
  EXPECT_TRUE(parse_option_words("  --stats\t--hot 3 ", options).ok());
  EXPECT_TRUE(options.stats);
  EXPECT_EQ(options.hot, 3);
  EXPECT_EQ(parse_option_words("--stats s.py", options).message(), "s.py: no such option");
}

TEST(Options, HelpNamesEachOption) {
  std::string help = options_help();
  for (const char* name : {"--report=FILE.json", "--stats", "--jit=on|off", "trace", "bytecode"}) {
    EXPECT_NE(help.find(name), std::string::npos) << name;
  }
}

TEST(Log, OnlyCategoriesThatAreOn) {
  options().log = 1u << static_cast<unsigned>(LogCategory::kAbort);
  testing::internal::CaptureStderr();
  DYNVM_LOG(kTrace, "{}", counted());
  DYNVM_LOG(kAbort, "{} at {}", "reason", 3);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[abort] reason at 3\n");
  options().log = 0;
}

TEST(Dump, HasHeadAndText) {
  EXPECT_FALSE(dump_on(DumpStage::kIr));
  testing::internal::CaptureStderr();
  dump(DumpStage::kIr, "trace 1", "v0 = arg");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "--- ir: trace 1\nv0 = arg\n\n");
}

TEST(Report, JsonHasAllKeysAndSurvivesOddFileNames) {
  Report report;
  TraceReport& trace = report.add_trace();
  trace.file = "a\xff.py";
  trace.kind = "loop";
  trace.runs = 10;
  trace.interpreted_ms = 2;
  trace.compiled_ms = 5;
  report.aborts["generator left"] = 2;
  auto json = nlohmann::json::parse(report.json());
  for (const char* key : {"tensor_ops_total", "tensor_ops_compiled", "traces", "side_exits", "aborts", "residual_calls",
                          "handovers", "native", "record_ms", "compile_ms"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["traces"][0]["id"], 1);
  EXPECT_EQ(json["aborts"]["generator left"], 2);
  EXPECT_DOUBLE_EQ(json["time_saved_ms"], 15);
}

TEST(Report, TracesStayInPlace) {
  Report report;
  TraceReport* first = &report.add_trace();
  for (int i = 0; i < 1000; ++i) report.add_trace();
  EXPECT_EQ(first, &report.traces[0]);
}

TEST(Report, StatsAreElevenLines) {
  Report report;
  report.aborts = {{"a", 1}, {"b", 7}};
  report.tensor_ops_total = 4;
  report.tensor_ops_compiled = 3;
  std::string text = report.stats();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 12);  // with the head
  EXPECT_NE(text.find("75.0 %"), std::string::npos);
  EXPECT_NE(text.find("8 (b 7, a 1)"), std::string::npos);
}

TEST(Report, ResidualCallsAreRankedByTime) {
  Report report;
  report.residual_calls = {{"call a", {100, 1}}, {"call b", {1, 9}}, {"call c", {2, 0.5}}, {"call d", {7, 4}}};
  auto json = nlohmann::ordered_json::parse(report.json());
  std::vector<std::string> order;
  for (const auto& [name, ms] : json["residual_ms"].items()) order.push_back(name);
  EXPECT_EQ(order, (Words{"call b", "call d", "call a", "call c"}));
  EXPECT_EQ(json["residual_calls"]["call a"], 100);
  EXPECT_EQ(json["residual_ms"]["call b"], 9);
  std::string text = report.stats();
  EXPECT_NE(text.find("110 (call b 1 in 9.0 ms, call d 7 in 4.0 ms, call a 100 in 1.0 ms, 1 more)"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 12);
}

TEST(Report, TimeSavedCountsPartsOfRunsAndOnlyMeasuredTraces) {
  Report report;
  TraceReport& measured = report.add_trace();
  measured.runs = 3;
  measured.partial_runs = 0.5;
  measured.interpreted_ms = 4;
  measured.compiled_ms = 2;
  TraceReport& never_interpreted = report.add_trace();
  never_interpreted.runs = 100;
  never_interpreted.compiled_ms = 2;
  EXPECT_DOUBLE_EQ(report.time_saved_ms(), 12);
  measured.compiled_ms = 20;
  EXPECT_DOUBLE_EQ(report.time_saved_ms(), -6);  // a trace that does not pay is not hidden
}

}  // namespace
}  // namespace dynvm::base
