// Threads that compile, beside the script.
//
// Inputs: jobs, which touch nothing of Python's. Outputs: each is run once, the latest first, as that is for what the script does now, by a part of as many threads as there are
// processors (`cuda_compilers`).
// Invariants: the threads are made when the first job comes, and joined when Python finalizes: what has not begun by then is not run. When the process exits would be
// too late: the compiler registers what it cleans up then after this has been asked first, so that goes first and leaves the threads without it.
// Tests: tests/cuda (on a machine with a GPU).
#pragma once

#include <cstddef>
#include <functional>

namespace dynvm::codegen::cuda {

void run_in_background(std::function<void()> job);
size_t background_threads();  // at most
// Waits for the jobs that have begun.
void stop_background();

}  // namespace dynvm::codegen::cuda
