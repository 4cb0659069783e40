// CodeName: what a piece of generated machine code is called, for tools that look at the process from outside.
//
// Purpose: who makes code keeps a CodeName as long as the code is there. The options say who is told:
//   --gdb        gdb, through its JIT interface: an ELF image in memory with one symbol, while the name lives;
//   --perf-map   perf report: a line in /tmp/perf-PID.map;
//   --perf-dump  perf inject --jit: a record with the code's bytes in ./jit-PID.dump, which perf record -k 1 notes.
// Inputs: address, size in bytes, a name, where there is one the source file and line that it comes from.
// Invariants: without these options a CodeName does nothing. A forked child has files of its own, with all that there is. A file that cannot be written is
//   said once on standard error, and the script goes on. Any thread may make one.
// Source of the formats: perf's documentation (jit-interface.txt, jitdump-specification.txt), gdb's manual (JIT Compilation Interface).
// Tests: tests/launcher/test_visible_code.py.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace dynvm::base {

class CodeName {
 public:
  CodeName() = default;
  CodeName(const void* code, size_t bytes, const std::string& name, const std::string& file = {}, int line = 0);
  CodeName(CodeName&& other) noexcept : code_(std::exchange(other.code_, nullptr)) {}
  CodeName& operator=(CodeName&& other) noexcept {
    std::swap(code_, other.code_);
    return *this;
  }
  ~CodeName();

 private:
  struct NamedCode* code_ = nullptr;
};

// Is anybody told? Then names are worth making.
bool code_is_named();

}  // namespace dynvm::base
