// How much an operation moves and computes, from its geometry: what its time is compared with in profiles.
//
// Bytes: each element that is read or written counts once, as if caches were perfect: what memory must carry at the least. Operations: each
// arithmetic operation of a node counts as one at each point where it has a value of its own, a fused multiply-add as two, an elementary function as
// one; loads, conversions and choices of constants as none. For the library's operations only matrix products and convolutions are known.
// Inputs: a kernel without symbols; a trace's aten instruction. Tests: tests/ir/work.cpp.
#pragma once

#include "ir/trace.h"

namespace dynvm::ir {

struct Work {
  double points = 0, bytes_read = 0, bytes_written = 0, flops = 0;
};

Work work_of(const Kernel& kernel);
Work work_of(const Trace& trace, const Inst& aten);  // flops 0: not known

}  // namespace dynvm::ir
