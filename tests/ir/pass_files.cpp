// File tests of the passes: passes/<pass>/*.ir holds a trace, a line `=== after`, and the trace that the pass makes of it, compared as
// printed, so modulo renaming. `; options: name=value ...` before the trace sets PassOptions. DYNVM_BLESS=1 rewrites the second part.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/passes/pass.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace dynvm::ir {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kMark = "=== after\n";

std::vector<fs::path> files() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(PASS_FILES))
    if (entry.path().extension() == ".ir") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

PassOptions options_of(const std::string& text) {
  PassOptions options;
  options.verify = true;
  size_t at = text.find("; options:");
  if (at == std::string::npos) return options;
  std::istringstream words(text.substr(at + 10, text.find('\n', at) - at - 10));
  std::string word;
  while (words >> word) {
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name == "small_space") options.small_space = std::stol(value);
    if (name == "max_kernel_operands") options.max_kernel_operands = std::stoi(value);
    if (name == "fuse_reductions") options.fuse_reductions = std::stoi(value) != 0;
    if (name == "fuse_cuda") options.fuse_cuda = std::stoi(value) != 0;
    if (name == "stages_device") options.stages_device = std::stoi(value);
    if (name == "stages_from") options.stages_from = std::stol(value);
    if (name == "inplace_from") options.inplace_from = std::stol(value);
    if (name == "channels_last") options.channels_last = std::stoi(value);
    if (name == "fast_convolutions") options.fast_convolutions = std::stoi(value);
    if (name == "keep_aten") options.keep_aten.push_back(value);
  }
  return options;
}

class PassFile : public testing::TestWithParam<fs::path> {};

TEST_P(PassFile, GivesTheTraceBelow) {
  std::ifstream in(GetParam());
  std::stringstream buffer;
  buffer << in.rdbuf();
  std::string text = buffer.str();
  size_t mark = text.find(kMark);
  std::string before = text.substr(0, mark);

  Trace trace;
  base::Status status = parse_trace(before, &trace);
  ASSERT_TRUE(status.ok()) << status.message();
  status = verify_trace(trace);
  ASSERT_TRUE(status.ok()) << "before: " << status.message();
  PassOptions options = options_of(before);
  options.only = {GetParam().parent_path().filename().string()};
  status = run_passes(trace, options);
  ASSERT_TRUE(status.ok()) << status.message() << "\n" << print_trace(trace);
  std::string got = print_trace(trace);

  if (const char* bless = std::getenv("DYNVM_BLESS"); bless && *bless == '1') {
    std::ofstream(GetParam()) << before << kMark << got;
    return;
  }
  ASSERT_NE(mark, std::string::npos) << "no expectation: run with DYNVM_BLESS=1";
  Trace expected;
  status = parse_trace(std::string_view(text).substr(mark + kMark.size()), &expected);
  ASSERT_TRUE(status.ok()) << "after: " << status.message();
  EXPECT_EQ(got, print_trace(expected));
}

std::string name_of(const testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.parent_path().filename().string() + "_" + info.param.stem().string();
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, PassFile, testing::ValuesIn(files()), name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PassFile);

}  // namespace
}  // namespace dynvm::ir
