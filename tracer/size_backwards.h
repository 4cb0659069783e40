// The backwards of a recording's graph nodes (graph_nodes.cpp), where its sizes may change.
//
// A backward's arguments and geometries depend on sizes as those of the recording do. So it is learnt, and walked, with the recording (sizes.h): behind the end stands, for each backward, a *tail*: for
// each gradient an empty tensor that lies as it does, and then the backward's operations on these and on what the node saves. Of a trace that is made of it, the tails are traces of their own again.
//
// What a tail computes from sizes of tensors that it is not given (a gradient expanded to the size of what was summed) it is given sizes for (ir::GraphNode::sized).
//
// Inputs: a recording's trace and backwards. Outputs: the joined trace; backwards of a trace that was made of it.
// Invariant: no instruction of the recording refers to a tail.
// Tests: tests/traces/cases/sizes_graph_nodes.py.
#pragma once

#include <string>
#include <vector>

#include "ir/trace.h"
#include "tracer/recorder.h"
#include "tracer/size_symbols.h"

namespace dynvm::tracer {

class JoinedBackwards {
 public:
  // Puts them behind the trace's end.
  void join(ir::Trace* trace, std::vector<ir::Trace> backwards, SizeFacts* sizes);

  // A trace that was made of the joined one.
  struct Made {
    ir::Trace* trace;
    const std::vector<ir::Ref>& renamed;             // by instruction of the joined trace: that of this one
    const std::vector<ir::Ref>& ends;                // of it: where its own part ends, then each tail
    const std::vector<ir::TensorMeta>& metas;        // by meta of the joined trace, without symbols
    const std::vector<ir::TensorMeta>* other;        // the same for other sizes, where some are open; else null
    const std::vector<CallFacts>& facts;             // by call of the joined trace, where some are open
  };
  // Moves the tails out of it. Empty, or why one cannot stand for itself.
  std::string part(const Made& made, std::vector<ir::Trace>* backwards) const;

  bool empty() const { return tails_.empty(); }
  // In the joined trace: where its own part ends, then each tail.
  const std::vector<ir::Ref>& ends() const { return ends_; }

 private:
  struct Tail {
    ir::Trace recorded;
    std::vector<ir::Ref> refs;   // by instruction of that: what stands for it; gradients and saved tensors too
  };
  class Parting;
  std::vector<Tail> tails_;
  std::vector<ir::Ref> ends_;
  size_t calls_ = 0, metas_ = 0; // of the recording alone
  int32_t storages_ = 0;
};

}  // namespace dynvm::tracer
