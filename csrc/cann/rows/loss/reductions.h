#pragma once

#include <ATen/core/Reduction.h>

#include "cann/rows/row.h"

// The reductions of losses, and the gradients through them.
namespace aclnn_host {

// A number of ATen's: 0 none, 1 mean, 2 sum.
template <class Number>
struct Reduction : Plain<Number> {
  static typename Plain<Number>::Value get(const Frame& frame, size_t i) {
    const auto reduction = Plain<Number>::get(frame, i);
    expect_one_of(frame.names[i], reduction,
                  {at::Reduction::None, at::Reduction::Mean, at::Reduction::Sum},
                  " (none, mean or sum)");
    return reduction;
  }
};

// An absent text selects the mean.
inline at::Reduction::Reduction reduction_of(const char* name, const std::string& text) {
  if (text.empty() || text == "mean") return at::Reduction::Mean;
  expect_text(name, text, {"none", "mean", "sum"});
  return text == "none" ? at::Reduction::None : at::Reduction::Sum;
}

inline void reduce(const at::Tensor& losses, at::Reduction::Reduction reduction, Output& out) {
  if (reduction == at::Reduction::None) {
    out = losses;
    return;
  }
  EXPECT(out->numel() == 1, out.name(), " has shape ", out->sizes(),
         ", expected one element for a reduced loss");
  const at::Tensor reduced = reduction == at::Reduction::Mean ? losses.mean() : losses.sum();
  out = reduced.reshape(out->sizes());
}

// The derivative of a loss by one element, times the incoming gradient and the weight of the
// element in the reduction.
inline at::Tensor chain(const at::Tensor& derivative, const at::Tensor& grad, int64_t reduction) {
  const at::Tensor product = derivative * wide(grad);
  return reduction == at::Reduction::Mean ? product / derivative.numel() : product;
}

// The cross entropy of each row with the softmax of the features, and its gradient by them.
inline std::pair<at::Tensor, at::Tensor> softmax_cross_entropy(const at::Tensor& features,
                                                               const at::Tensor& labels) {
  const at::Tensor log_softmax = at::log_softmax(wide(features), 1);
  return {-(wide(labels) * log_softmax).sum(1), log_softmax.exp() - wide(labels)};
}

}  // namespace aclnn_host
