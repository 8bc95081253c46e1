// Differences between the versions of torch that pyproject.toml supports.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

namespace aclnn_torch {

// The owner of a graph node: std::shared_ptr in older versions, such as 2.11, c10::intrusive_ptr in
// newer ones, such as 2.13.
template <class T>
using GraphNodePtr = std::conditional_t<std::is_same_v<decltype(torch::autograd::Edge::function),
                                                       std::shared_ptr<torch::autograd::Node>>,
                                        std::shared_ptr<T>, c10::intrusive_ptr<T>>;

template <class T, class... Arguments>
GraphNodePtr<T> make_graph_node(Arguments&&... arguments) {
  if constexpr (std::is_same_v<GraphNodePtr<T>, std::shared_ptr<T>>) {
    // deleteNode frees a long graph without recursion; an intrusive_ptr does that itself.
    return {new T(std::forward<Arguments>(arguments)...), [](T* node) { deleteNode(node); }};
  } else {
    return c10::make_intrusive<T>(std::forward<Arguments>(arguments)...);
  }
}

}  // namespace aclnn_torch
