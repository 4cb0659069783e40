// CUDA graphs: capturing one, changing what its kernels are given, launching it.
//
// Inputs: a stream that is captured, between begin_capture and Graph::end_capture; nodes of the graph; launches (kernel.h). Outputs: work on a stream.
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
  // What was queued on the stream since begin_capture(); nothing of it has run.
  static base::Status end_capture(int device, void* stream, std::unique_ptr<Graph>* out);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  int set_kernel(void* node, Launch& launch);
  int set_copy(void* node, void* to, const void* from, size_t bytes);  // of one within the device's memory
  int launch(void* stream);

 private:
  explicit Graph(int device) : device_(device) {}
  int device_;
  void* captured_ = nullptr;  // the CUgraph: its nodes name those of
  void* exec_ = nullptr;      // the CUgraphExec
};

// Empty, or why there are no graphs.
std::string graphs_missing();
// Work on this stream is captured from now on; other threads may do on others what they like.
int begin_capture(void* stream);
// Is work on this stream captured now, by whomever?
bool is_capturing(int device, void* stream);
// The node that was captured last on this stream; null when it is not one.
void* last_node(void* stream);

}  // namespace dynvm::codegen::cuda
