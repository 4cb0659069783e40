// Running one piece of work on several threads, through whatever thread pool the process has.
//
// torch carries its own OpenMP library; linking a second one would double the threads. So this file links none: the torch bridge
// installs a function that runs on torch's pool, and until then work runs on the calling thread.
// Tests: tests/kernel/parallel_test.cpp.
#pragma once

#include <cstdint>

namespace dynvm::codegen {

// Calls body(context, begin, end) for pieces that cover [0, size) once, each piece at least `grain` long but the last, and returns when
// all are done. May be called from several threads; body must not throw.
using ParallelBody = void (*)(void* context, int64_t begin, int64_t end);
using ParallelFor = void (*)(int64_t size, int64_t grain, ParallelBody body, void* context);

// Null restores the serial one.
void set_parallel_for(ParallelFor function);
// How many threads a kernel may count on; 1 at first. The bridge keeps it equal to torch.get_num_threads().
void set_num_threads(int count);
int num_threads();

void parallel_for(int64_t size, int64_t grain, ParallelBody body, void* context);

// Runs on GNU OpenMP where a libgomp is already in this process (torch's), found with dlsym; false, and nothing changed, where none is.
bool use_loaded_openmp();

}  // namespace dynvm::codegen
