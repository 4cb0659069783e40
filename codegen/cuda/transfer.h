// Moving bytes: between places in a device's memory, and a few of them to the host.
//
// Inputs: addresses, a stream. Outputs: work on the stream; numbers. A number is fetched into pinned memory, one place a thread: the host may spin until it is there, which takes
// less time than being woken.
// Invariants: errors are the driver's numbers, 0 where there is none. Tests: tests/cuda/test_whole.py (on a machine with a GPU).
#pragma once

#include <cstddef>
#include <string>

namespace dynvm::codegen::cuda {

// Empty, or why nothing here works.
std::string transfers_missing();
// Between places in the device's memory, on this stream.
int copy(int device, void* to, const void* from, size_t bytes, void* stream);

constexpr size_t kLargestNumber = 16;  // bytes
// Queues fetching so many bytes, at most kLargestNumber.
int fetch(int device, const void* from, size_t bytes, void* stream);
// Has the stream done all that was queued? It is asked for so long at most.
bool arrived(int device, void* stream, double seconds);
// Until it has; other threads may go on meanwhile, it needs no lock.
int wait(int device, void* stream);
// What this thread fetched last, once it has arrived.
const void* fetched();

}  // namespace dynvm::codegen::cuda
