// See switches.h. Tests: tests/bisect/test_switches.py.
#include "tracer/switches.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/base/defects.h"
#include "runtime/base/report.h"
#include "runtime/base/switches.h"

namespace dynvm::tracer {

void tell_switches(bridge::Bridge& bridge) {
  bridge.set_switches(base::asked_switches(), base::seeded_defects());
  std::vector<std::string> known;
  for (const base::SwitchKind kind : {base::SwitchKind::kOp, base::SwitchKind::kRecord}) {
    const std::string_view word = base::switch_kinds()[static_cast<size_t>(kind)].kind;
    for (const std::string& name : base::switches().names[static_cast<size_t>(kind)]) {
      if (known.empty()) {
        known = bridge.operators();
        std::sort(known.begin(), known.end());
        known.erase(std::unique(known.begin(), known.end()), known.end());
      }
      if (std::binary_search(known.begin(), known.end(), name)) continue;
      std::string near;
      for (const std::string& other : base::nearest(name, known)) near += (near.empty() ? "; near it: " : ", ") + other;
      const std::string text = fmt::format("torch has no operation '{}'{}", name, near);
      base::report().notes[fmt::format("--disable={}:{}", word, name)] = text;
      fmt::print(stderr, "dynvm: --disable={}:{}: {}\n", word, name, text);
    }
  }
}

bool is_left_out(PyCodeObject* code, int unit) {
  if (base::switches().names[static_cast<size_t>(base::SwitchKind::kTrace)].empty()) return false;
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (file == nullptr) PyErr_Clear();
  return file != nullptr && base::left_out_at(file, PyCode_Addr2Line(code, unit * 2));
}

}  // namespace dynvm::tracer
