// Kernels that reduce, with less to compute at each point.
//
//     f(where(c, a, b))                       where(c, f(a), f(b)), where a and b have one value for each kept point and c has not
//     reduce_sum(where(index d == k, a, 0))   where(0 <= k < size, a, 0), where a and k have one value for each kept point and d is all that is reduced
//
// The gradient of a row's loss with respect to its elements is such a `where`: its sum needs no pass over the row.
//
// Input and output: a verified kernel; the operands stay as they are. Invariant: values are the same bits, but for the sign of a sum that is zero.
// Tests: tests/kernel/simplify_test.cpp.
#pragma once

#include "ir/kernel/kernel.h"

namespace dynvm::ir {

void simplify_kernel(Kernel* kernel);

}  // namespace dynvm::ir
