// Threads that compile, beside the script.
//
// Inputs: jobs, which touch nothing of Python's. Outputs: each is run once, in the order in which they came, by half as many threads as there are processors.
// Invariants: the threads are made when the first job comes, and joined when the process exits: what has not begun by then is not run.
// Tests: tests/cuda (on a machine with a GPU).
#pragma once

#include <functional>

namespace dynvm::codegen::cuda {

void run_in_background(std::function<void()> job);

}  // namespace dynvm::codegen::cuda
