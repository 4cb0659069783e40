// Torch function modes as a recording knows them: which stand where on torch's stack, and which of those the trace has taken off without telling torch.
//
// A mode is off the stack while its __torch_function__ runs, and most of what it runs does not look. So the trace leaves torch's stack as it is: exits take off
// what is off (Snapshot::stores), and so does the trace before it calls what may look (Recorder::flush_pending). Tests: tests/traces/cases/function_modes.py.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tracer/value.h"

namespace dynvm::tracer {

struct FunctionModes {
  std::vector<V> off;                              // in the order in which they were taken off
  std::map<int, std::pair<V, int64_t>> at_place;   // counted from the stack's bottom; with the barriers that the trace had then
};

PyObject* pop_function();  // torch._C._pop_torch_function_stack, borrowed

}  // namespace dynvm::tracer
