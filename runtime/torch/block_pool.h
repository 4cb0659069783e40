// Memory of large results that Python has dropped, kept for the next iteration's.
//
// A loop that keeps a result for a while allocates and frees the same few megabytes in each iteration. The C library gives such blocks back
// to the system, and touching new pages costs more than computing what is stored there. Blocks handed out here come back when the last
// tensor on them dies, on whatever thread that is, and serve the next request of the same size. What is kept is bounded (pooled_most); the
// blocks unused for longest go first.
//
// Inputs: a size in bytes. Outputs: CPU memory with a deleter. Invariants: a block is either kept or in use; sizes below pooled_from (heuristics.def) are
// not for the pool, for them the C library is fast. Tests: tests/traces/cases/batches_by_index.py.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

namespace dynvm::torch_bridge {

// Throws c10::Error when there is no memory.
c10::DataPtr allocate_pooled(size_t bytes);

// Memory that neither torch's allocator nor the pool has given out (NumPy's, from_blob's): another storage may lie on it too.
bool is_foreign(const c10::DataPtr& memory);
bool overlap(const c10::StorageImpl& a, const c10::StorageImpl& b);

}  // namespace dynvm::torch_bridge
