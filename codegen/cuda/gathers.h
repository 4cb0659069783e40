// Loads and stores at computed places: how what neighbours read or write lies, and what has to be computed first.
//
// A place is computed and read in front of the loop over v neighbours, so that what all of them wait for is waited for once, and rows of a table are read in vectors:
//
//     one      the place is the same for all of them          {... g5.v[0] = place; }
//     vector   they read neighbours, from a multiple of v on  {... g5 = *(Vec*)place; }
//     each     anything else                                  for (e...) {... g5.v[e] = place; }
//
// Rows are written in vectors, too, behind that loop; other stores, and all that add, are done by it.
//
// Inputs: a kernel, nodes. Outputs: facts. Tests: tests/cuda/source_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/kernel/kernel.h"

namespace dynvm::codegen::cuda {

enum class Gathered { kOne, kVector, kEach };

// Is the value of an i64 node a multiple of a power of two, whatever memory holds?
bool is_multiple(const ir::Kernel& kernel, int32_t node, int64_t of);

// Nodes that a place and its condition are computed from, with these: behind those for which is_there holds it does not look.
std::vector<bool> nodes_of_place(const ir::Kernel& kernel, int32_t at, int32_t holds, const std::function<bool(size_t)>& is_there);

}  // namespace dynvm::codegen::cuda
