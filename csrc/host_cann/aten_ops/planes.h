#pragma once

#include <ATen/core/Tensor.h>

#include "host_cann/aten_ops/checks.h"

namespace aclnn_host {

// ATen's gradients of pools and pads trust that the gradient has the batch and the channels of
// self, and that there is something to pool in the last `pooled` dimensions.
inline void expect_planes(const char* name, const at::Tensor& grad, at::IntArrayRef self,
                          int64_t pooled) {
  const auto dims = static_cast<int64_t>(self.size());
  EXPECT(dims == pooled + 1 || dims == pooled + 2, "self has ", dims, " dimensions, expected ",
         pooled + 1, " or ", pooled + 2);
  expect_dims(name, grad, dims);
  const auto kept = static_cast<size_t>(dims - pooled);
  EXPECT(grad.sizes().slice(0, kept) == self.slice(0, kept), name, " has shape ", grad.sizes(),
         ", expected ", self.slice(0, kept), " in the leading dimensions");
  EXPECT(grad.numel() == 0 || c10::multiply_integers(self) > 0, "self has shape ", self,
         ", expected sizes of 1 or more");
}

}  // namespace aclnn_host
