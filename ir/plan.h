// The memory plan of a trace: where each storage lives while the trace runs.
//
// Inputs: a trace after all passes; which ATen calls can write into memory given to them; from which size a GPU's allocator lends memory. Output: Plan, one entry per
// storage.
//
//   kInput   memory of a tensor that the trace gets from outside
//   kResult  allocated by the call that makes it: the call has no form that writes into given memory
//   kFresh   allocated anew in each iteration, because a Python object that is really made looks at it
//   kArena   at an offset in the session's arena. Storages whose lifetimes do not touch share addresses. A tensor object that only exits
//            make (a sunk wrap) keeps its storage alive until the last instruction whose snapshot shows it; the exit copies the memory out.
//   kLent    a large one on a GPU, where memory is scarce and an allocator costs less than a launch: allocated before its first instruction and given back behind its
//            last one, as eager has it, so that traces hold no memory while they do not run and never more than what is alive
//
// Where sizes are symbols (TensorMeta::symbolic), bytes and offsets here are those of the codes: each run arranges the arena anew from the lifetimes, when inputs
// have told the symbols' values. What depends on symbols that are known later is kFresh.
//
// Invariants: two arena storages that are both alive at some instruction do not overlap (arrange.h). A lifetime runs from the first to the last instruction that
// touches the storage, both included.
// Tests: tests/ir/plan.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "ir/trace.h"

namespace dynvm::ir {

struct StoragePlan {
  enum Kind : uint8_t { kInput, kArena, kFresh, kResult, kLent } kind = kArena;
  int64_t bytes = 0;   // 0 for an arena storage that nothing touches
  int64_t offset = 0;  // kArena
  Ref first = kNoRef, last = kNoRef;  // instructions that touch it
  bool symbolic = false;              // its size is made of symbols
  bool shared = false;                // another storage's memory is the same: a view at a run-time place has a storage of its own
};

struct Plan {
  std::vector<StoragePlan> storages;
  int64_t arena_bytes = 0;
  Ref arranged_at = kNoRef;           // the instruction before which a run arranges the arena; kNoRef: it lies as planned
};

// Bytes from which an intermediate on a GPU is lent.
struct LentFrom {
  int64_t planned = std::numeric_limits<int64_t>::max();   // where the arena lies as planned: runs tell what else need not be in it
  int64_t arranged = std::numeric_limits<int64_t>::max();  // where each run arranges it
};

Plan make_plan(const Trace& trace, const std::function<bool(const AtenCall&)>& has_planned_form, const LentFrom& lent_from = {});
// By storage, before anything has a place: sizes, lifetimes, and kinds as if each call could write into memory given to it. without: by Ref, instructions that count as if
// they were not there.
std::vector<StoragePlan> storage_lifetimes(const Trace& trace, const std::vector<bool>& without = {});

}  // namespace dynvm::ir
