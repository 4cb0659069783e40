// Turns values of a running trace into Python objects: what exits and the loop's write-back need.
//
// Inputs: an activation that stands before (or at) an instruction. Outputs: new references. Invariant: one object per value within one
// Materialiser, so identity is what it was; instructions that were sunk are carried out now, operands first, through the same helpers.
// Tests: tests/exec/test_exits.py.
#pragma once

#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/exec/compiled_trace.h"

namespace dynvm::runtime {

class Materialiser {
 public:
  Materialiser(const CompiledTrace& trace, codegen::Activation* activation) : trace_(trace), activation_(activation) {}
  ~Materialiser();

  // In front of get(): what is going to be made. Then graphs are rebuilt in the order of the program, all together. False: a Python exception is set.
  [[nodiscard]] bool rebuild(const std::vector<ir::Ref>& refs);

  // A new reference (null for a null value). False: a Python exception is set.
  [[nodiscard]] bool get(ir::Ref ref, PyObject** out);

 private:
  void find_wraps(ir::Ref ref);
  bool set_recipes(ir::Ref wrap);
  bool make(ir::Ref ref, PyObject** out);
  bool box(ir::Type type, int64_t bits, PyObject** out);

  const CompiledTrace& trace_;
  codegen::Activation* activation_;
  std::vector<std::pair<ir::Ref, PyObject*>> made_;  // few: searched linearly
  std::unordered_set<ir::Ref> seen_;
  std::vector<ir::Ref> wraps_;                       // sunk ones with graphs
};

}  // namespace dynvm::runtime
