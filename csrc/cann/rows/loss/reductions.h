#pragma once

#include <ATen/core/Reduction.h>

#include "cann/rows/row.h"

// The reductions of losses, and the gradients through them.
namespace aclnn_host {

inline void check_reduction(int64_t reduction) {
  EXPECT(reduction >= 0 && reduction < at::Reduction::END, "reduction is ", reduction,
         ", expected 0 (none), 1 (mean) or 2 (sum)");
}

// An absent text selects the mean.
inline at::Reduction::Reduction reduction_of(const char* name, const std::string& text) {
  if (text.empty() || text == "mean") return at::Reduction::Mean;
  EXPECT(text == "none" || text == "sum", name, " is \"", text, "\", expected none, mean or sum");
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

}  // namespace aclnn_host
