// Writing of log lines: see log.h.
#include "runtime/base/log.h"

#include <unistd.h>

#include <string>

namespace dynvm::base {

namespace {
constexpr const char* kNames[] = {
#define X(enumerator, name, text) name,
#include "runtime/base/log_categories.def"
#undef X
};
}  // namespace

void write_log(LogCategory category, fmt::string_view format, fmt::format_args args) {
  std::string line = fmt::format("[{}] ", kNames[static_cast<size_t>(category)]) + fmt::vformat(format, args) + "\n";
  // Nothing can be done where standard error is closed.
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

}  // namespace dynvm::base
