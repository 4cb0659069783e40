// See shown_node.h. torch finds a node's Python class by its C++ class. So there are many of these, each for the first name that asks for one.
#include "runtime/torch/shown_node.h"

#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <array>
#include <map>
#include <typeinfo>
#include <utility>

namespace dynvm::torch_bridge {
namespace {

using torch::autograd::variable_list;

class ShownNode : public torch::autograd::Node {
 public:
  explicit ShownNode(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  variable_list apply(variable_list&& gradients) override {
    TORCH_CHECK(!freed, torch::autograd::ERR_BACKWARD_TWICE);
    return std::move(gradients);
  }
  bool freed = false;

 private:
  std::string name_;
};

template <size_t K>
class NamedNode final : public ShownNode {
 public:
  using ShownNode::ShownNode;
};

struct Maker {
  NodePointer (*make)(const std::string& name, bool freed);
  const std::type_info& (*type)();
};

template <class T>
NodePointer make(const std::string& name, bool freed) {
  auto node = new_node<T>(name);
  node->freed = freed;
  return node;
}

template <class T>
const std::type_info& type_of() { return typeid(T); }

template <size_t... K>
constexpr std::array<Maker, sizeof...(K)> makers(std::index_sequence<K...>) { return {Maker{&make<NamedNode<K>>, &type_of<NamedNode<K>>}...}; }

constexpr size_t kMostNames = 192;  // eager has about three hundred; a program sees a few
constexpr std::array<Maker, kMostNames> kMakers = makers(std::make_index_sequence<kMostNames>());

}  // namespace

NodePointer new_shown_node(const std::string& name, bool freed) {
  static std::map<std::string, size_t> known;
  const auto [found, first] = known.emplace(name, known.size());
  if (found->second >= kMostNames) return make<ShownNode>(name, freed);
  const Maker& maker = kMakers[found->second];
  if (first) {
    auto* type = new PyTypeObject{};  // for good, as classes are
    const size_t scope = found->first.rfind("::");  // torch::autograd::CopySlices, whose class is CopySlices
    const char* const shown = found->first.c_str() + (scope == std::string::npos ? 0 : scope + 2);
    torch::autograd::registerCppFunction(maker.type(), torch::autograd::_initFunctionPyTypeObject(*type, shown, nullptr, nullptr));
  }
  return maker.make(name, freed);
}

}  // namespace dynvm::torch_bridge
