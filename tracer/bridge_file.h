// The torch bridge's library, loaded once torch has been imported completely.
#pragma once

#include <string>

#include "runtime/bridge/bridge.h"

namespace dynvm::tracer {

class BridgeFile {
 public:
  void set_path(const char* path) { path_ = path != nullptr ? path : ""; }
  // Null as long as torch is not there, and where the library does not fit it; the report says why then.
  bridge::Bridge* load();
  // It will never be there.
  [[nodiscard]] bool hopeless() const { return failed_ || path_.empty(); }

 private:
  std::string path_;
  bridge::Bridge* bridge_ = nullptr;
  bool failed_ = false;
};

}  // namespace dynvm::tracer
