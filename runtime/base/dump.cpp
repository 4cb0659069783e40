// Printing of dumps: see dump.h.
#include "runtime/base/dump.h"

#include <fmt/core.h>

#include <cstdio>

namespace dynvm::base {

namespace {
constexpr const char* kNames[] = {
#define X(enumerator, name, text) name,
#include "runtime/base/dump_stages.def"
#undef X
};
}  // namespace

void dump(DumpStage stage, std::string_view title, std::string_view text) {
  bool ends = !text.empty() && text.back() == '\n';
  fmt::print(stderr, "--- {}: {}\n{}{}\n", kNames[static_cast<size_t>(stage)], title, text, ends ? "" : "\n");
  std::fflush(stderr);
}

}  // namespace dynvm::base
