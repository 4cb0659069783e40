// --disable and --safe: what is left out of dynvm in this process, to find out what makes a result wrong, or to do without it.
//
// Purpose: one process-wide set of switches, asked where a part of dynvm decides whether to do something.
//   if (base::left_out(base::Part::kSides)) return;
// Inputs: words `KIND:NAME` (switch_kinds.def; parts.def names the parts, safe.def what --safe stands for). Outputs: left_out(), and in the
//   report how often each switch has left something out.
// Invariants: set before the script runs; read-only afterwards. Each answer "left out" is right for the program: where a later stage cannot do without,
//   the switch is refused at the start. Asking costs a load and a test where nothing is left out; it is done where traces are made, not where they run.
// The torch bridge is a library of its own, which the tracer gives what asking needs (Bridge::set_switches).
// So this header needs nothing of switches.cpp for that.
// Tests: tests/base/switches_test.cpp, tests/bisect/test_switches.py.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace dynvm::base {

enum class SwitchKind : uint8_t {
#define X(enumerator, kind, name, text) enumerator,
#include "runtime/base/switch_kinds.def"
#undef X
  kCount,
};

enum class Part : uint8_t {
#define X(enumerator, name, text) enumerator,
#include "runtime/base/parts.def"
#undef X
  kCount,
};
static_assert(static_cast<size_t>(Part::kCount) <= 64);

struct SwitchRow {
  std::string_view kind, name, text;
};
const std::vector<SwitchRow>& switch_kinds();
const std::vector<SwitchRow>& part_rows();  // kind: "opt"
const std::vector<SwitchRow>& safe_rows();  // kind: "", name: a switch, text: why

struct Switches {
  uint64_t parts = 0;                                                                    // a bit for each Part
  std::array<std::vector<std::string>, static_cast<size_t>(SwitchKind::kCount)> names;   // as given, by kind
  void (*met)(std::string_view what) = nullptr;                                          // is told each time that one has left something out

  [[nodiscard]] bool any() const;
  [[nodiscard]] bool has(Part part) const { return (parts >> static_cast<unsigned>(part)) & 1; }
};

// Adds words separated by commas to *switches. A failure says which word is wrong and what is near it, and leaves them as they were. passes: their
// names, which this library does not know.
Status parse_switches(std::string_view words, const std::vector<std::string_view>& passes, Switches* switches);

// Makes them the process's. The report has each with the times that it has left something out, 0 at first.
void set_switches(Switches switches);
const Switches& switches();

// Of these names, those that are most like `word`, the likeliest first; none that is like it only by chance.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& names, size_t most = 3);

// What asking needs, in one piece that another library can be given.
struct AskedSwitches {
  uint64_t parts = 0, kinds = 0;  // a bit for each part, and for each kind of which there is any
  bool (*part)(Part) = nullptr;
  bool (*name)(SwitchKind, std::string_view) = nullptr;
  bool (*place)(std::string_view file, int line) = nullptr;
};
namespace detail {
constinit inline AskedSwitches asked;
}
inline const AskedSwitches& asked_switches() { return detail::asked; }
inline void set_asked_switches(const AskedSwitches& asked) { detail::asked = asked; }

// Is this left out? Then it is counted.
inline bool left_out(Part part) {
  return __builtin_expect((detail::asked.parts >> static_cast<unsigned>(part)) & 1, 0) != 0 && detail::asked.part(part);
}
// Is anything of that kind? Not counted.
inline bool any_left_out(SwitchKind kind) { return ((detail::asked.kinds >> static_cast<unsigned>(kind)) & 1) != 0; }
inline bool left_out(SwitchKind kind, std::string_view name) {
  return __builtin_expect((detail::asked.kinds >> static_cast<unsigned>(kind)) & 1, 0) != 0 && detail::asked.name(kind, name);
}
// trace:FILE:LINE
inline bool left_out_at(std::string_view file, int line) {
  return __builtin_expect((detail::asked.kinds >> static_cast<unsigned>(SwitchKind::kTrace)) & 1, 0) != 0 && detail::asked.place(file, line);
}

}  // namespace dynvm::base
