// Autograd nodes for the part of a graph that a trace hands out.
//
// A trace computes without autograd. Where it ends with tensors alive that have a graph, each of them gets one node of a kind of its own (ir::GraphNode) in place of the many that
// eager would have built. The node has saved what its backward reads, in torch's own SavedVariables (so that a write in place after the fact is found), and links to what the graph goes back
// to: parameters, tensors from before the trace, other such nodes. Its backward is compiled (bridge::Backward).
//
// Where that cannot run (a gradient of another size, create_graph=True), the operations of the forward are run again under autograd, from the values that they were given (ForwardAgain), and torch
// differentiates those. So does eager code; only the time is another. What a node has saved takes the place of what is computed again: a script may have written what it was computed from where
// no version counts that, by `weight.data.copy_(...)`, and then eager's backward sees both, what was computed before and what is there now.
//
// Invariants: ForwardAgain and the nodes live longer than the trace may. Nodes run on autograd's threads, without the GIL. Random operations draw what they drew.
// Tests: tests/traces/cases/graph_nodes.py, tests/whole.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/torch/philox.h"
#include "runtime/torch/program.h"

namespace dynvm::torch_bridge {

// Values of an iteration's calls as autograd sees them, made when they are first asked for.
class ForwardAgain {
 public:
  struct Random {
    at::Generator generator;              // its state before the call ran
    std::optional<GeneratorPlace> drawn;  // the same, where kernels stood for the call
  };

  explicit ForwardAgain(std::shared_ptr<const RepeatedCalls> calls) : calls_(std::move(calls)), random_(calls_->calls.size()) {}
  const RepeatedCalls& calls() const { return *calls_; }
  void leaf(int32_t tensor, at::Tensor value);  // of what no call makes
  void saved(int32_t tensor, const at::Tensor& value);  // by a node: what is computed again has this value, for as long as the node has it
  void random(size_t call, Random state) { random_[call] = std::move(state); }
  void arguments(size_t call, std::vector<c10::IValue> now) { arguments_[call] = std::move(now); }  // of one that numbers of the run are among

  // Gradients of a node's inputs, by what its own operations do. Undefined: none. outputs: numbers of tensors. Throws what torch throws. The GIL is not held.
  std::vector<at::Tensor> differentiate(int32_t node, const std::vector<int32_t>& outputs, const std::vector<at::Tensor>& gradients, bool create_graph);

 private:
  void run();
  bool is_input(int32_t node, int32_t tensor) const;
  const at::Tensor& input(int32_t node, int32_t tensor);
  int32_t not_detached(int32_t tensor) const {
    const auto found = detached_from_.find(tensor);
    return found == detached_from_.end() ? tensor : found->second;
  }
  struct Leaf {
    at::Tensor value;
    int64_t version;
  };
  struct Saved {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::vector<int64_t> sizes, strides;
    int64_t offset;
  };
  void take_saved(int32_t tensor, const at::Tensor& computed) const;
  std::shared_ptr<const RepeatedCalls> calls_;
  std::vector<Random> random_;
  std::map<size_t, std::vector<c10::IValue>> arguments_;
  std::map<int32_t, Leaf> leaves_;
  std::map<int32_t, Saved> saved_;
  std::map<int32_t, at::Tensor> values_;
  std::map<std::pair<int32_t, int32_t>, at::Tensor> inputs_;  // by node and tensor: the tensor as that node's operations read it, another one, so that gradients by it are those of the node
  std::map<int32_t, int32_t> detached_from_;  // what detach() gives looks the same, and its uses are marked
  bool ran_ = false, exposed_ = false;  // exposed_: a graph through these values has been handed out
  std::mutex mutex_;
};

// What a node is made of in an iteration. The vectors stand side by side with those of its ir::GraphNode.
struct NodeParts {
  const ir::GraphNode* node;
  std::vector<at::Tensor> outputs;            // look as they do; their values are not read
  std::vector<at::Tensor> inputs;             // undefined: an output of an earlier node
  std::vector<c10::Scalar> numbers;
  std::vector<at::Tensor> saved;
  std::vector<std::vector<int64_t>> sized;    // of each, its sizes
  std::shared_ptr<ForwardAgain> forward;
};

// The strides of gradients for it: its own where its elements fill its memory, each at a place of its own; those of a copy of it otherwise (expanded tensors, slices).
std::vector<int64_t> gradient_strides(const at::Tensor& output);

// The nodes of an iteration, by the tensors that are their outputs. Those that are handed out each have a node of their name.
class GraphNodes {
 public:
  GraphNodes();
  ~GraphNodes();
  bool has(int32_t tensor) const;
  void make(NodeParts parts);
  void lead_to(int32_t tensor, const at::Tensor& value);  // value gets its graph
  void clear();

 private:
  struct Edges;
  std::unique_ptr<Edges> edges_;
};

}  // namespace dynvm::torch_bridge
