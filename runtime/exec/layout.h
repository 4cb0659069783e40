// The running CPython's layout for generated code.
// Tests: tests/exec.
#pragma once

#include "codegen/trace/python_layout.h"

namespace dynvm::runtime {

const codegen::PythonLayout& python_layout();

}  // namespace dynvm::runtime
