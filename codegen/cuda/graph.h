// CUDA graphs: instantiating one that was captured, changing what its kernels are given, launching it.
//
// Inputs: a CUgraph, which must live as long as the Graph; nodes of it; launches (kernel.h). Outputs: work on a stream.
// Invariants: changes count for later launches only. Errors are the driver's numbers, 0 where there is none.
// Tests: tests/cuda/test_whole.py (on a machine with a GPU).
#pragma once

#include <memory>
#include <string>

#include "codegen/cuda/kernel.h"
#include "runtime/base/status.h"

namespace dynvm::codegen::cuda {

class Graph {
 public:
  static base::Status instantiate(void* captured, std::unique_ptr<Graph>* out);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  int set_kernel(void* node, Launch& launch);
  int set_copy(void* node, void* to, const void* from, size_t bytes);  // of one within the device's memory
  int launch(void* stream);

 private:
  Graph() = default;
  void* exec_ = nullptr;
};

// Empty, or why there are no graphs.
std::string graphs_missing();
// Is work on this stream captured now, by whomever?
bool is_capturing(void* stream);
// The node that was captured last on this stream; null when it is not one.
void* last_node(void* stream);

}  // namespace dynvm::codegen::cuda
