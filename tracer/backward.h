// The compiled backward of a graph's node (graph_nodes.cpp): a trace that autograd's engine enters, and no loop.
#pragma once

#include <Python.h>

#include <memory>
#include <vector>

#include "runtime/bridge/bridge.h"

namespace dynvm::tracer {

struct LoopTrace;

class CompiledBackward final : public bridge::Backward {
 public:
  explicit CompiledBackward(std::unique_ptr<LoopTrace> trace);
  ~CompiledBackward() override;  // nodes let go of it on any thread
  bool run(const std::vector<PyObject*>& inputs, std::vector<PyObject*>* gradients) override;
  LoopTrace& trace() { return *trace_; }

 private:
  std::unique_ptr<LoopTrace> trace_;
};

}  // namespace dynvm::tracer
