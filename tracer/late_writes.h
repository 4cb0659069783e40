// Writes to tensors that are objects already, where autograd records them.
//
// An object that was there before the trace: `loss += part` in a loop over parts, `out.index_add_(...)` in one over experts. The tensor has a graph, and each write gives it another. So the trace does not write at all: it has the result of the operation's other form, which is a tensor like those that it makes itself, with
// a graph like theirs; and everything that comes after reads that. The object gets the result's contents, as many versions further, and its graph, where anybody may see it again: an exit's snapshot says
// so as a store of the result into the object, and where a loop goes round, instructions do it. Until then the object has the contents and the graph from before, which is what exits make graphs of.
//
// An object that the trace has made, and that a variable of the module, a list or an attribute holds: `total = zeros(()); kept.append(total); total += part`. Its memory is written, and it gets its graph as the
// others do.
//
// Invariant: nothing sees the object, or another tensor on its memory, between a write and the end of the trace. What would see it ends the trace (sees_late), and where a view of the result is handed
// out, which would have to look at the object's memory, there is no trace (fill_wraps).
#pragma once

#include <map>
#include <set>

#include "ir/trace.h"
#include "tracer/value.h"

namespace dynvm::tracer {

struct LateWrite {
  ir::Ref memory = ir::kNoRef;  // the object's tensor as it was bound
  V value = kNoValue;           // what it is to become
  int writes = 0;               // versions further
};

struct LateWrites {
  std::map<V, LateWrite> of;     // by the object
  std::set<int32_t> storages;    // of the results
  std::set<ir::Ref> memory;      // of the objects
  std::set<ir::Ref> written;     // calls that write back
  std::map<ir::Ref, ir::Ref> own;  // objects of the trace's own tensors (wraps) that autograd sees written: where, last
  std::set<V> hidden;            // of these, those that only the recording and its frames hold
  bool gives_graphs = false;     // the trace gives objects graphs where the loop goes round
};

}  // namespace dynvm::tracer
