// The numbers that steer the JIT: values, bounds and meanings, all from heuristics.def.
//
// Purpose: one process-wide set of numbers that every stage reads where it decides. They are set by --heuristics and the variable
//   DYNVM_HEURISTICS before the script starts, and by dynvm.set_heuristics() while it runs.
// Inputs: words `NAME=VALUE` and TOML files of lines `name = value`. Outputs: heuristics().NAME.
// Invariants: every number is within its bounds. Words and files are applied wholly or, where anything in them is wrong, not at all. What was decided
//   with other numbers stays as it is: traces, kernels and runs that there are, and counters that have been set. The GIL is held where numbers are set;
//   threads without it may read them meanwhile, each number by itself (it is stored in one piece).
// The torch bridge is a library of its own with a set of its own, which the tracer keeps equal (Bridge::set_heuristics).
// Tests: tests/base/heuristics_test.cpp, tests/launcher/test_heuristics.py.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace dynvm::base {

struct Heuristics {
#define X(name, value, least, greatest, unit, like, text) int name = value;
#include "runtime/base/heuristics.def"
};

namespace detail {
constinit inline Heuristics all_heuristics;

inline void store(const Heuristics& numbers) {
#define X(name, value, least, greatest, unit, like, text) __atomic_store_n(&all_heuristics.name, numbers.name, __ATOMIC_RELAXED);
#include "runtime/base/heuristics.def"
}
}  // namespace detail

// The numbers as they are now.
inline const Heuristics& heuristics() { return detail::all_heuristics; }

struct HeuristicRow {
  std::string_view name;
  int Heuristics::* field;
  int value, least, greatest;  // value: without any option
  std::string_view unit;       // "" for a plain count
  bool power_of_two;
  std::string_view like;       // what LuaJIT or PyPy call it; ""
  std::string_view text;
};

// The table's rows, in its order.
const std::vector<HeuristicRow>& heuristic_rows();

// Applies `words`, separated by commas, to *numbers, the later ones last: `NAME=VALUE`, or the path of a file that ends in ".toml" (no comma in it).
// Names may have - for _. A failure says which word, and of a file which line, and leaves *numbers as they were.
Status parse_heuristics(std::string_view words, Heuristics* numbers);

// Makes these the process's, and tells those who asked (on_heuristics). The GIL is held.
void set_heuristics(const Heuristics& numbers);

// Calls `follow` each time that numbers are set, for those who keep copies.
void on_heuristics(std::function<void()> follow);

// "hot_loop=2,max_side=8": those that are not as in the table, in its order. What is compiled under other numbers may be another thing.
std::string changed_heuristics();

// {"hot_loop": {"value": 4, "default": 4, "least": 1, "greatest": 1000000000, "unit": "", "like": "LuaJIT hotloop", "meaning": "..."}, ...}
std::string heuristics_json();

}  // namespace dynvm::base
