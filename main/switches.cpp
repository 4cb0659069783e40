// Reads --safe, --disable and DYNVM_DEFECT (switches.h), and tells the package `dynvm` what switches there are.
//
// Only this folder sees both the switches and the names of the passes. Tests: tests/bisect/.
#include "main/switches.h"

#include <Python.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/defects.h"
#include "runtime/base/options.h"
#include "runtime/base/report.h"
#include "runtime/base/switches.h"
#ifdef DYNVM_HAS_IR
#include "ir/passes/pass.h"
#endif

#define DYNVM_EXPORT extern "C" __attribute__((visibility("default")))

namespace dynvm::main {

namespace {

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
#ifdef DYNVM_HAS_IR
  for (const ir::PassInfo& pass : ir::all_passes()) names.push_back(pass.name);
#endif
  return names;
}

void count(std::string_view what) { base::report().switches[std::string(what)]++; }

}  // namespace

base::Status read_switches() {
  if (const char* defects = std::getenv("DYNVM_DEFECT"); defects != nullptr && *defects != 0) {
    if (base::Status status = base::seed_defects(defects); !status) return status.in("DYNVM_DEFECT");
  }
  base::Options& options = base::options();
  base::Switches switches;
  if (options.safe) {
    for (const base::SwitchRow& row : base::safe_rows())
      if (base::Status status = base::parse_switches(row.name, pass_names(), &switches); !status) return status.in("--safe");
  }
  if (base::Status status = base::parse_switches(options.disable, pass_names(), &switches); !status) return status.in("--disable");
  switches.met = count;
  base::set_switches(std::move(switches));
  if (base::left_out(base::Part::kNative)) options.native = false;
  if (base::left_out(base::Part::kGraphs)) options.cuda_graphs = false;
  // What an earlier process has kept was made with all that is left out here.
  if (base::left_out(base::Part::kCache) || base::switches().any() || base::seeded_defects() != 0) options.cache = "off";
  return {};
}

}  // namespace dynvm::main

// {"kinds": {...}, "parts": {name: text}, "passes": {name: text}, "safe": {switch: why}}; the GIL is held. The text lives as long as the library.
DYNVM_EXPORT const char* dynvm_switches() {
  static const std::string text = [] {
    namespace base = dynvm::base;
    nlohmann::ordered_json all = {{"kinds", nlohmann::ordered_json::object()}, {"parts", nlohmann::ordered_json::object()},
                                  {"passes", nlohmann::ordered_json::object()}, {"safe", nlohmann::ordered_json::object()}};
    for (const base::SwitchRow& row : base::switch_kinds()) all["kinds"][std::string(row.kind)] = {{"name", row.name}, {"meaning", row.text}};
    for (const base::SwitchRow& row : base::part_rows()) all["parts"][std::string(row.name)] = row.text;
#ifdef DYNVM_HAS_IR
    for (const dynvm::ir::PassInfo& pass : dynvm::ir::all_passes()) all["passes"][std::string(pass.name)] = pass.sentence;
#endif
    for (const base::SwitchRow& row : base::safe_rows()) all["safe"][std::string(row.name)] = row.text;
    return all.dump();
  }();
  return text.c_str();
}
