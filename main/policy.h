// A policy in Python: the class Policy of a file, asked where the JIT decides (runtime/base/policy.h).
//
// Inputs: a Python file. It runs once, in a module of its own that is not in sys.modules; then Policy() is made. Its methods are the questions of
//   runtime/base/decisions.def; each gets an object with the facts as attributes and gives True, False, or None for the usual answer. Its attribute
//   `heuristics`, a dict of names and ints, is what --heuristics would set; options come after it.
// Outputs: base::set_policy().
// Invariants: asked with the GIL held, never in the machine code of a trace, and never inside of itself. Nothing that it runs is traced; the script's
//   exception, if one is under way, stays. A method that raises, or gives anything else, is asked no more: its traceback is printed once.
// Tests: tests/lab/test_policy.py.
#pragma once

#include <string>

namespace dynvm::main {

// True: it is the process's policy now; *numbers: what it sets, as words of --heuristics. False: a Python exception says what is wrong.
[[nodiscard]] bool load_policy(const std::string& file, std::string* numbers);

}  // namespace dynvm::main
