// The driver of the passes (pass.h).
#include <algorithm>

#include "ir/passes/pass.h"
#include "ir/verify.h"
#include "runtime/base/switches.h"

namespace dynvm::ir {

const std::vector<PassInfo>& all_passes() {
  static const std::vector<PassInfo> passes = {
#define X(name, function, sentence) {#name, function, sentence},
#include "ir/passes/passes.def"
#undef X
  };
  return passes;
}

bool stays_aten(const PassOptions& options, const std::string& name) {
  const auto& kept = options.keep_aten;
  return std::find(kept.begin(), kept.end(), name) != kept.end() || base::left_out(base::SwitchKind::kOp, name);
}

base::Status run_passes(Trace& trace, const PassOptions& options) {
  auto among = [](const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const auto& names : {options.only, options.without})
    for (const std::string& name : names)
      if (std::none_of(all_passes().begin(), all_passes().end(), [&](const PassInfo& pass) { return pass.name == name; }))
        return base::Status::failure("no pass is called " + name);
  for (const PassInfo& pass : all_passes()) {
    if (!options.only.empty() && !among(options.only, pass.name)) continue;
    if (among(options.without, pass.name) || base::left_out(base::SwitchKind::kPass, pass.name)) continue;
    pass.function(trace, options);
    if (options.after) options.after(pass.name, trace);
    if (!options.verify) continue;
    base::Status status = verify_trace(trace);
    if (!status.ok()) return status.in("after pass " + std::string(pass.name));
  }
  return base::Status();
}

}  // namespace dynvm::ir
