// Printing of dumps: see dump.h.
#include "runtime/base/dump.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace dynvm::base {

namespace {
constexpr const char* kNames[] = {
#define X(enumerator, name, text) name,
#include "runtime/base/dump_stages.def"
#undef X
};

// The file for the next dump; null where it cannot be made.
FILE* next_file(std::string_view stage, std::string_view title) {
  static std::atomic<int> count = 0;
  static const pid_t first = getpid();
  static std::atomic<bool> failed = false;
  if (failed) return nullptr;
  std::string name(title.substr(0, 120));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  const std::string process = getpid() == first ? "" : fmt::format("-{}", getpid());
  const std::string path = fmt::format("{}/{:04}{}-{}-{}.txt", options().dump_to, ++count, process, stage, name);
  mkdir(options().dump_to.c_str(), 0777);
  FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr && !failed.exchange(true)) fmt::print(stderr, "dynvm: --dump-to: {}: {}\n", path, std::strerror(errno));
  return file;
}

}  // namespace

void dump(DumpStage stage, std::string_view title, std::string_view text) {
  const char* name = kNames[static_cast<size_t>(stage)];
  bool ends = !text.empty() && text.back() == '\n';
  FILE* file = options().dump_to.empty() ? nullptr : next_file(name, title);
  if (file != nullptr) {
    fmt::print(file, "{}{}", text, ends ? "" : "\n");
    std::fclose(file);
    return;
  }
  fmt::print(stderr, "--- {}: {}\n{}{}\n", name, title, text, ends ? "" : "\n");
  std::fflush(stderr);
}

}  // namespace dynvm::base
