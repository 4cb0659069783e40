// See graph_nodes.h.
#include "runtime/torch/graph_nodes.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "runtime/torch/call_modes.h"
#include "runtime/torch/calls_again.h"
#include "runtime/torch/python_tensor.h"
#include "runtime/torch/recorder.h"
#include "runtime/torch/shown_node.h"

namespace dynvm::torch_bridge {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

// While one of these lives, this thread holds the GIL.
class WithGil {
 public:
  WithGil() : state_(PyGILState_Ensure()) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

class TraceGraph final : public Node {
 public:
  explicit TraceGraph(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }

  void fill(NodeParts&& parts, std::vector<Edge> inputs) {
    node_ = *parts.node;
    backward_ = std::static_pointer_cast<bridge::Backward>(node_.backward);
    forward_ = std::move(parts.forward);
    for (at::Tensor& output : parts.outputs) {
      add_input_metadata(output);
      outputs_.push_back({output.sizes().vec(), gradient_strides(output), output.options()});
    }
    for (Edge& edge : inputs) add_next_edge(std::move(edge));
    numbers_ = std::move(parts.numbers);
    for (at::Tensor& saved : parts.saved) saved_.emplace_back(saved, false);
    sized_ = std::move(parts.sized);
  }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    saved_.clear();
    forward_.reset();
    released_ = true;
  }

  variable_list apply(variable_list&& gradients) override {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(!released_, torch::autograd::ERR_BACKWARD_TWICE);
    uint64_t given = 0;
    for (size_t i = 0; i < gradients.size(); ++i) given |= gradients[i].defined() ? uint64_t{1} << i : 0;
    variable_list out(node_.inputs.size());
    if (given == 0) return out;
    std::vector<at::Tensor> saved;
    for (const torch::autograd::SavedVariable& each : saved_) saved.push_back(each.unpack());
    const bool create_graph = c10::GradMode::is_enabled();
    if (create_graph || autocast_is_on() || !run_compiled(gradients, saved, &out)) out = run_again(gradients, create_graph);
    for (size_t i = 0; i < out.size(); ++i)
      if ((node_.reached_by[i] & given) == 0) out[i] = at::Tensor();
    return out;
  }

 private:
  struct Look {
    std::vector<int64_t> sizes, strides;
    at::TensorOptions options;
  };

  static bool autocast_is_on() { return at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA); }

  // As the backward expects it: some gradients come expanded, or in other strides.
  at::Tensor as_expected(const at::Tensor& gradient, size_t output) const {
    const Look& look = outputs_[output];
    if (!gradient.defined()) return at::empty_strided(look.sizes, look.strides, look.options).zero_();
    if (gradient.sizes() != look.sizes || (gradient.strides() == look.strides && !gradient._is_zerotensor())) return gradient.requires_grad() ? gradient.detach() : gradient;
    return at::empty_strided(look.sizes, look.strides, look.options).copy_(gradient);
  }

  // No more than sizes: one byte that all elements lie on.
  static at::Tensor of_size(const std::vector<int64_t>& sizes) { return at::empty({}, at::kByte).expand(sizes); }

  bool run_compiled(const variable_list& gradients, const std::vector<at::Tensor>& saved, variable_list* out) const {
    if (backward_ == nullptr) return false;
    std::vector<at::Tensor> given;
    for (size_t i = 0; i < gradients.size(); ++i) given.push_back(as_expected(gradients[i], i));
    const WithGil gil;
    std::vector<PyObject*> inputs, results;
    for (const at::Tensor& each : given) inputs.push_back(to_python(each));
    for (const c10::Scalar& each : numbers_) inputs.push_back(each.isFloatingPoint() ? PyFloat_FromDouble(each.toDouble()) : PyLong_FromLongLong(each.toLong()));
    for (const at::Tensor& each : saved) inputs.push_back(to_python(each));
    for (const std::vector<int64_t>& sizes : sized_) inputs.push_back(to_python(of_size(sizes)));
    const bool fine = std::count(inputs.begin(), inputs.end(), nullptr) == 0 && backward_->run(inputs, &results);
    for (PyObject* input : inputs) Py_XDECREF(input);
    for (size_t i = 0; fine && i < results.size(); ++i)
      if (results[i] != nullptr) (*out)[i] = unpack(results[i]);
    for (PyObject* result : results) Py_XDECREF(result);
    PyErr_Clear();
    return fine;
  }

  variable_list run_again(const variable_list& gradients, bool create_graph) {
    std::vector<int32_t> outputs;
    std::vector<at::Tensor> given;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      outputs.push_back(static_cast<int32_t>(node_.outputs[i]));
      given.push_back(gradients[i]);
    }
    return forward_->differentiate(node_.number, outputs, given, create_graph);
  }

  std::string name_;
  ir::GraphNode node_;
  std::shared_ptr<bridge::Backward> backward_;
  std::shared_ptr<ForwardAgain> forward_;
  std::vector<Look> outputs_;
  std::vector<c10::Scalar> numbers_;
  std::vector<torch::autograd::SavedVariable> saved_;
  std::vector<std::vector<int64_t>> sized_;
  bool released_ = false;
};

}  // namespace

std::vector<int64_t> gradient_strides(const at::Tensor& output) {
  return output.is_non_overlapping_and_dense() ? output.strides().vec() : at::infer_dense_strides(output.sizes(), output.strides());
}

void ForwardAgain::leaf(int32_t tensor, at::Tensor value) {
  const int64_t version = value.is_inference() ? 0 : value._version();
  leaves_.emplace(tensor, Leaf{std::move(value), version});
}

void ForwardAgain::saved(int32_t tensor, const at::Tensor& value) {
  if (!value.has_storage() || leaves_.count(tensor) != 0) return;
  saved_.emplace(tensor, Saved{value.storage().getWeakStorageImpl(), value.sizes().vec(), value.strides().vec(), value.storage_offset()});
}

void ForwardAgain::take_saved(int32_t tensor, const at::Tensor& computed) const {
  const auto found = saved_.find(tensor);
  if (found == saved_.end() || !computed.has_storage() || computed.sizes() != found->second.sizes) return;
  const bool of_leaf = std::any_of(leaves_.begin(), leaves_.end(), [&](const auto& leaf) { return leaf.second.value.has_storage() && leaf.second.value.is_alias_of(computed); });
  c10::intrusive_ptr<c10::StorageImpl> storage = found->second.storage.lock();
  if (of_leaf || !storage) return;
  const c10::AutoGradMode without_graph(false);
  at::Tensor to = computed.variable_data(), from = at::empty({0}, computed.options().requires_grad(false)).set_(c10::Storage(std::move(storage)), found->second.offset, found->second.sizes, found->second.strides);
  for (int64_t d = 0; d < to.dim(); ++d)
    if (to.stride(d) == 0) to = to.narrow(d, 0, std::min<int64_t>(to.size(d), 1)), from = from.narrow(d, 0, std::min<int64_t>(from.size(d), 1));
  if (at::has_internal_overlap(to) == at::MemOverlap::No) to.copy_(from);
}

bool ForwardAgain::is_input(int32_t node, int32_t tensor) const {
  const std::vector<int32_t>& inputs = calls_->inputs.at(node);
  return std::find(inputs.begin(), inputs.end(), tensor) != inputs.end();
}

const at::Tensor& ForwardAgain::input(int32_t node, int32_t tensor) {
  at::Tensor& known = inputs_[{node, tensor}];
  if (!known.defined()) known = values_.at(tensor).alias();
  return known;
}

void ForwardAgain::run() {
  values_.clear();
  inputs_.clear();
  detached_from_.clear();
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::autocast_dispatch_keyset | c10::DispatchKeySet(kRecordKey));
  const c10::AutoGradMode with_graph(true);
  for (const auto& [tensor, leaf] : leaves_) {
    if (calls_->written.count(tensor) != 0) {
      values_[tensor] = leaf.value.clone();
      continue;
    }
    TORCH_CHECK(leaf.value.is_inference() || leaf.value._version() == leaf.version,
                "one of the variables needed for gradient computation has been modified by an inplace operation: it is at version ", leaf.value._version(), "; expected version ", leaf.version,
                " instead (dynvm computes the graph again, from what it was made of).");
    values_[tensor] = leaf.value;
  }
  for (size_t k = 0; k < calls_->calls.size(); ++k) {
    const CallPlan& call = calls_->calls[k];
    const int32_t node = calls_->nodes[k];
    const auto operand = [&](const TensorPlace& place) {
      const int32_t tensor = place.required_grad ? not_detached(place.tensor) : place.tensor;
      const at::Tensor& value = place.required_grad && node >= 0 && is_input(node, tensor) ? input(node, tensor) : values_.at(tensor);
      return !place.required_grad && value.requires_grad() ? value.detach() : value;
    };
    if (call.call.name == "aten::detach" && call.results.size() == 1 && !call.tensors.empty()) {
      if (call.results[0] < 0) continue;
      values_[call.results[0]] = values_.at(call.tensors[0].tensor);
      detached_from_[call.results[0]] = not_detached(call.tensors[0].tensor);
      continue;
    }
    const auto now = arguments_.find(k);
    std::vector<c10::IValue> stack = copy_arguments(now != arguments_.end() ? now->second : call.constants);
    for (const TensorPlace& place : call.tensors) replace_tensor(stack, place, operand(place));
    const ModesOfCall modes(call.call, calls_->devices[k]);
    std::optional<GeneratorAt> drawn;
    std::optional<GeneratorState> earlier;
    if (random_[k].drawn) drawn.emplace(*random_[k].drawn);
    else if (random_[k].generator.defined()) earlier.emplace(random_[k].generator);
    call.op.callBoxed(&stack);
    const std::vector<at::Tensor> results = flat_results(stack);
    for (size_t i = 0; i < results.size() && i < call.results.size(); ++i)
      if (call.results[i] >= 0) {
        values_[call.results[i]] = results[i];
        detached_from_.erase(call.results[i]);  // what has been written is a tensor of the graph
        take_saved(call.results[i], results[i]);
      }
  }
  ran_ = true;
  exposed_ = false;
}

std::vector<at::Tensor> ForwardAgain::differentiate(int32_t node, const std::vector<int32_t>& outputs, const std::vector<at::Tensor>& gradients, bool create_graph) {
  std::vector<at::Tensor> from, to;
  {
    const std::lock_guard lock(mutex_);
    // What has been handed out by create_graph=True is the caller's: its backward() frees it, perhaps before this one comes to this node.
    if (!ran_ || (exposed_ && !create_graph)) run();
    exposed_ |= create_graph;
    for (int32_t output : outputs) from.push_back(values_.at(output));
    const c10::AutoGradMode with_graph(true);
    for (int32_t each : calls_->inputs.at(node)) to.push_back(input(node, each));
  }
  return torch::autograd::grad(from, to, gradients, true, create_graph, true);
}

struct GraphNodes::Edges {
  std::map<int32_t, Edge> of;
};

GraphNodes::GraphNodes() : edges_(std::make_unique<Edges>()) {}
GraphNodes::~GraphNodes() = default;
bool GraphNodes::has(int32_t tensor) const { return edges_->of.count(tensor) != 0; }
void GraphNodes::lead_to(int32_t tensor, const at::Tensor& value) { torch::autograd::impl::set_gradient_edge(value, edges_->of.at(tensor)); }
void GraphNodes::clear() { edges_->of.clear(); }

void GraphNodes::make(NodeParts parts) {
  const ir::GraphNode& made = *parts.node;
  const std::vector<at::Tensor> outputs = parts.outputs;
  std::vector<Edge> inputs;
  for (size_t i = 0; i < made.inputs.size(); ++i)
    inputs.push_back(parts.inputs[i].defined() ? torch::autograd::impl::gradient_edge(parts.inputs[i]) : edges_->of.at(static_cast<int32_t>(made.inputs[i])));
  auto node = new_node<TraceGraph>("TraceBackward0");
  node->fill(std::move(parts), std::move(inputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    Edge edge(node, static_cast<uint32_t>(i));
    if (!made.names[i].empty()) {
      NodePointer shown = new_shown_node(made.names[i], false);
      shown->add_input_metadata(outputs[i]);
      shown->add_next_edge(std::move(edge));
      edge = Edge(std::move(shown), 0);
    }
    edges_->of[static_cast<int32_t>(made.outputs[i])] = std::move(edge);
  }
}

}  // namespace dynvm::torch_bridge
