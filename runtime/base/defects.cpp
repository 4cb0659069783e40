// Reading of DYNVM_DEFECT (defects.h).
#include "runtime/base/defects.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "runtime/base/report.h"
#include "runtime/base/switches.h"

namespace dynvm::base {

namespace {

struct Row {
  std::string_view name, text;
};

constexpr Row kRows[] = {
#define X(enumerator, name, stage, bisect, text) {name, text},
#include "runtime/base/defects.def"
#undef X
};

}  // namespace

Status seed_defects(std::string_view names) {
  uint64_t seeded = 0;
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find(',', at), names.size());
    const std::string_view name = names.substr(at, end - at);
    at = end + 1;
    const Row* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& each) { return each.name == name; });
    if (row == std::end(kRows)) {
      std::string known;
      for (const Row& each : kRows) known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
      return Status::failure(fmt::format("no defect is called '{}'; there are {}", name, known));
    }
    seeded |= uint64_t{1} << (row - std::begin(kRows));
    report().notes[fmt::format("seeded defect {}", row->name)] = row->text;
  }
  set_seeded_defects(seeded);
  return {};
}

}  // namespace dynvm::base
