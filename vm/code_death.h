// What a client of HotCounter::client is told when a code object, and its counters with it, dies.
//
// Invariants: called while the object is being deallocated, with the GIL: it may neither be looked at nor may Python code run. Tests: tests/inspect.
#pragma once

#include "vm/vm.h"

namespace dynvm::vm {

// For each counter whose client[0] is set; null: nobody asks.
inline void (*counter_dies)(HotCounter& counter) = nullptr;

}  // namespace dynvm::vm
