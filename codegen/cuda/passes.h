// The passes over a row or column of reduced points that a kernel needs.
//
// A reduction is there when a pass over its points is over, so what it needs of other reductions comes from passes before: softmax has one for the largest element, one for the sum, and one
// that stores. The last pass is the last reduction's, or the one that stores at each point.
//
// Inputs: a kernel, its space. Output: which pass is for what. No state of its own. Tests: tests/cuda/source_test.cpp.
#pragma once

#include <vector>

#include "codegen/cuda/space.h"
#include "ir/kernel/kernel.h"

namespace dynvm::codegen::cuda {

class Passes {
 public:
  Passes(const ir::Kernel& kernel, const Space& space);

  // Does it store at each of the reduced points?
  bool is_full_store(const ir::KernelStore& store) const;
  // Those that this pass computes.
  std::vector<size_t> reductions(int pass) const;
  // What the pass is for: the operands of its reductions, and the last one what is stored of each element.
  std::vector<bool> goals(int pass) const;

  // Which pass computes the value of a full node first, and which needs it last, where none is computed twice: by node, -1 for none.
  struct Uses {
    std::vector<int> first, last;
  };
  Uses uses() const;
  // As many bytes of one element as stay between two passes then, at the most.
  int64_t held_bytes(const Uses& uses) const;

  std::vector<int> of;  // by node: the pass before which it cannot be computed; a reduction: the one after
  int last = 0;
  bool has_full_store = false;

 private:
  const ir::Kernel& kernel_;
  const Space& space_;
};

}  // namespace dynvm::codegen::cuda
