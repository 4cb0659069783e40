// DYNVM_CHECK's cold half: see check.h.
#include "runtime/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace dynvm::base {

namespace {
thread_local CheckContext* innermost = nullptr;
}

CheckContext::CheckContext(Print print, const void* data) : print_(print), data_(data), outer_(innermost) {
  innermost = this;
}

CheckContext::~CheckContext() { innermost = outer_; }

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "dynvm: internal error: %s:%d: %s%s%s\n", file, line, condition, message.empty() ? "" : ": ",
               message.c_str());
  // A context may fail itself: it is taken off first.
  while (CheckContext* context = innermost) {
    innermost = context->outer_;
    std::fprintf(stderr, "%s\n", context->print_(context->data_).c_str());
  }
  std::fflush(stderr);
  std::abort();
}

}  // namespace dynvm::base
