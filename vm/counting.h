// Counts of what the evaluator executes, for choosing what to specialise and fuse (--dump=pairs).
//
// Purpose: a second copy of the evaluator (eval.cpp compiled with DYNVM_COUNTING) reports each dispatch here: which form runs, behind
//   which, and for a generic form that could be specialised what its operands are. The evaluator proper pays nothing for it.
// Inputs: dispatches. Outputs: counted() of vm.h, a text of three tables, the most frequent first.
// Invariants: everything under the GIL; nothing here runs Python code or changes an object.
// Tests: tests/launcher/test_options.py.
#pragma once

#include "vm/decode.h"

namespace dynvm::vm {

// The frame's next instruction to be executed, with the stack as it finds it.
void count_dispatch(const cpython::Frame* frame, const Inst* next, PyObject** sp);

// With a star where it is a specialised or fused one.
std::string name_of(Form form);

}  // namespace dynvm::vm
