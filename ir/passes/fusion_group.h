// One growing kernel of the fuse pass: lowered operations over one iteration space, joined.
//
// Inputs: lowered kernels (lower.h). Output: one kernel with its tensors and scalars, without what nobody needs.
//
// Joining kernel B to a group gives the group's kernel followed by B's, point by point. That is right if no point of B depends on another
// point of the group, or the other way round; so
//  - B's loads of what the group stores must be of the same elements in the same places: then the stored value is forwarded; what B
//    reads where data says may be any point's, so it is read behind the group;
//  - other loads and stores of B on storages that the group touches must not overlap with the group's (may_conflict).
// The spaces may differ: B may be over the kept dims of a group that reduces (an epilogue such as 1 / sqrt(var + eps)), and a space of as
// many points in another shape is changed into this one, or this one into it, where all strides allow.
//
// Invariant: the joined kernel verifies (kernel.h). Tests: tests/ir/passes/fuse, tests/ir/fuse_fuzz.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/lower/lower.h"

namespace dynvm::ir {

struct GroupLimits {
  int operands, nodes;
};

class FusionGroup {
 public:
  explicit FusionGroup(Lowered first) : body_(std::move(first)) {}

  // Joins, or changes nothing and gives false.
  bool join(const Lowered& next, const GroupLimits& limits);

  const Lowered& body() const { return body_; }
  bool loads_from(int32_t storage) const;
  bool shares_load(const Lowered& other) const;

  // Leaves out stores to storages for which `needed` is false, then what no store needs. False when nothing remains.
  template <class Needed>
  bool prune(Needed needed) {
    std::vector<KernelStore> stores;
    for (const KernelStore& store : body_.kernel.stores)
      if (needed(body_.kernel.operands[store.operand].pointer)) stores.push_back(store);
    body_.kernel.stores = std::move(stores);
    compact();
    return !body_.kernel.stores.empty();
  }

 private:
  bool adapt(Lowered* next);
  bool join_same_space(const Lowered& next, const GroupLimits& limits);
  void compact();
  Lowered body_;
};

}  // namespace dynvm::ir
