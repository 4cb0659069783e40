// Torch function modes as a recording knows them: which stand where on torch's stack, and which of those the trace has taken off without telling torch.
//
// A mode is off the stack while its __torch_function__ runs, and most of what it runs does not look. So the trace leaves torch's stack as it is: exits take off
// what is off (Snapshot::stores), and so does the trace before it calls what may look (Recorder::flush_pending). Tests: tests/traces/cases/function_modes.py.
#pragma once

#include <map>
#include <vector>

#include "tracer/value.h"

namespace dynvm::tracer {

struct FunctionModes {
  std::vector<V> off;         // in the order in which they were taken off
  std::map<int, V> at_place;  // those known since the last barrier; counted from the stack's bottom
};

PyObject* pop_function();  // torch._C._pop_torch_function_stack, borrowed

}  // namespace dynvm::tracer
