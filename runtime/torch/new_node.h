// Autograd nodes are held by shared_ptr up to torch 2.11 and by intrusive_ptr later.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <string>
#include <type_traits>

namespace dynvm::torch_bridge {

using NodePointer = decltype(torch::autograd::Edge::function);

template <class T>
auto new_node(std::string name) {
  if constexpr (std::is_same_v<NodePointer, std::shared_ptr<typename NodePointer::element_type>>) {
    return std::shared_ptr<T>(new T(std::move(name)), [](T* node) { deleteNode(node); });  // without recursion along the graph
  } else {
    return c10::make_intrusive<T>(std::move(name));
  }
}

}  // namespace dynvm::torch_bridge
