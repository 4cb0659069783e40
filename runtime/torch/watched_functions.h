// Calls of torch's C functions that the recording and counting of operations must not disturb, or that change what
// traces have recorded.
//
// Purpose: the recorder's and the counter's dispatch keys are an affair of dynvm's. They are out of the thread's
// key sets while torch's own compiler guards calls of this
//   thread (PEP 523), and whenever a script asks for the sets; and traces go when a kernel is registered that
//   they have not run.
// Inputs: watched_functions.def. Outputs: the functions call the bridge first; keys_hidden().
// Invariants: what the functions do and give stays torch's own. The GIL is held. Tests: tests/dynamo.
#pragma once

#include <string>

namespace dynvm::torch_bridge {

// Replaces the functions' C pointers, which all their users share. What a torch does not have is left out.
void watch_functions();
// Does torch's own compiler look at this thread's calls?
bool keys_hidden();
// Called behind each registration of a kernel that traces may have run another one instead of; null: nobody is told.
void tell_of_kernels(void (*listener)());
// "aten/sin/CPU aten/..." of those that Python code has registered so far, sorted.
std::string replaced_kernels();

}  // namespace dynvm::torch_bridge
