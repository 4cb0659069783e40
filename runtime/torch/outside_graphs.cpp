// See outside_graphs.h.
#include "runtime/torch/outside_graphs.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <map>
#include <unordered_set>

#include "runtime/torch/new_node.h"
#include "runtime/torch/python_tensor.h"

namespace dynvm::torch_bridge {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

constexpr size_t kMostNodes = 4096;

// Keeps what comes to it.
struct Sink final : Node {
  explicit Sink(const std::string&) {}  // as new_node makes nodes
  variable_list apply(variable_list&& gradients) override {
    gradient = gradients[0];
    return {};
  }
  at::Tensor gradient;
};

// Does the engine come from these nodes to a wanted one behind them? Also where more than `most` nodes lie there.
template <class IsWanted>
bool leads_to(std::vector<Node*> work, size_t most, IsWanted is_wanted) {
  std::unordered_set<Node*> met;
  while (!work.empty()) {
    Node* const node = work.back();
    work.pop_back();
    for (const Edge& edge : node->next_edges()) {
      if (!edge.is_valid() || !met.insert(edge.function.get()).second) continue;
      if (met.size() > most || is_wanted(edge.function.get())) return true;
      work.push_back(edge.function.get());
    }
  }
  return false;
}

class Cut final : public bridge::GraphCut {
 public:
  ~Cut() override { join(); }

  std::vector<PyObject*> gradients() override {
    std::vector<PyObject*> found;
    for (const auto& sink : sinks_) found.push_back(sink->gradient.defined() ? to_python(sink->gradient) : nullptr);
    return found;
  }

  bool cut(const std::vector<PyObject*>& roots, const std::vector<PyObject*>& outsiders) {
    std::map<std::pair<Node*, uint32_t>, size_t> places;
    std::unordered_set<Node*> outside, met;
    for (PyObject* object : outsiders) {
      const at::Tensor& tensor = unpack(object);
      const Edge edge = torch::autograd::impl::gradient_edge(tensor);
      outside.insert(edge.function.get());
      places.emplace(std::pair(edge.function.get(), edge.input_nr), sinks_.size());
      sinks_.push_back(new_node<Sink>({}));
      sinks_.back()->add_input_metadata(tensor);
    }
    std::vector<Node*> work;
    const auto meet = [&](Node* node) {
      if (met.insert(node).second) work.push_back(node);
    };
    for (PyObject* object : roots)
      if (Node* const node = torch::autograd::impl::gradient_edge(unpack(object)).function.get(); node != nullptr) {
        if (outside.count(node) != 0) return false;
        meet(node);
      }
    while (!work.empty()) {
      Node* const node = work.back();
      work.pop_back();
      torch::autograd::edge_list& edges = node->next_edges();
      for (size_t i = 0; i < edges.size(); ++i) {
        if (!edges[i].is_valid()) continue;
        if (outside.count(edges[i].function.get()) == 0) {
          meet(edges[i].function.get());
          continue;
        }
        const auto place = places.find({edges[i].function.get(), edges[i].input_nr});
        if (place == places.end()) return false;
        joined_.push_back({node->getptr(), i, edges[i]});
        edges[i] = Edge(sinks_[place->second], 0);
      }
    }
    // Both may come to the same leaves.
    return !leads_to({outside.begin(), outside.end()}, SIZE_MAX, [&](Node* node) { return met.count(node) != 0 && node->num_outputs() != 0; });
  }

 private:
  struct Joined {
    NodePointer node;
    size_t index;
    Edge edge;
  };

  void join() {
    for (Joined& each : joined_) each.node->next_edges()[each.index] = std::move(each.edge);
    joined_.clear();
  }

  std::vector<decltype(new_node<Sink>({}))> sinks_;
  std::vector<Joined> joined_;  // what the edges were
};

}  // namespace

std::unique_ptr<bridge::GraphCut> cut_graph(const std::vector<PyObject*>& roots, const std::vector<PyObject*>& outsiders) {
  auto made = std::make_unique<Cut>();
  if (!made->cut(roots, outsiders)) return nullptr;
  return made;
}

PyObject* graphs_are_apart(PyObject*, PyObject* const* args, Py_ssize_t count) {
  const Py_ssize_t asked = count > 0 ? PyLong_AsSsize_t(args[0]) : -1;
  if (asked < 0 || asked >= count) return PyErr_Occurred() != nullptr ? nullptr : PyErr_Format(PyExc_TypeError, "%s(count, *tensors)", kApartName);
  for (Py_ssize_t i = 1; i < count; ++i)
    if (!is_tensor_object(args[i])) return PyErr_Format(PyExc_TypeError, "%s: a tensor is wanted, not %R", kApartName, args[i]);
  std::unordered_set<Node*> ends;
  std::vector<Node*> others;
  const auto node_of = [](PyObject* object) { return torch::autograd::impl::gradient_edge(unpack(object)).function.get(); };
  for (Py_ssize_t i = 1; i <= asked; ++i) ends.insert(node_of(args[i]));
  for (Py_ssize_t i = 1 + asked; i < count; ++i)
    if (Node* const node = node_of(args[i]); node != nullptr) others.push_back(node);
  return PyBool_FromLong(!leads_to(std::move(others), kMostNodes, [&](Node* node) { return ends.count(node) != 0; }));
}

}  // namespace dynvm::torch_bridge
