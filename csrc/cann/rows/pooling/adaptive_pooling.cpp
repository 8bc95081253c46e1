// Pooling to a given size or to one element, and gradients.

#include "cann/rows/images.h"
#include "cann/rows/planes.h"
#include "cann/rows/pooling/pooling_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::pooling_adaptive_pooling_rows {

namespace {

// All dimensions from `first` on.
std::vector<int64_t> dims_from(const at::Tensor& self, int64_t first) {
  std::vector<int64_t> dims;
  for (int64_t dim = first; dim < self.dim(); ++dim) dims.push_back(dim);
  return dims;
}

}  // namespace

ACLNN(AdaptiveAvgPool2d, (Image<In>, self), (Ints, outputSize), (Image<Out>, out)) {
  check_image(self, outputSize, "out", out, 2);
  out = at::_adaptive_avg_pool2d(wide(self), outputSize);
}
ACLNN(AdaptiveAvgPool2dBackward, (Image<In>, gradOutput), (Image<In>, self), (Image<Out>, out)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 2);
  out = at::_adaptive_avg_pool2d_backward(wide(gradOutput), wide(self));
}
ACLNN(AdaptiveAvgPool3d, (Image<In>, self), (Ints, outputSize), (Image<Out>, out)) {
  check_image(self, outputSize, "out", out, 3);
  out = at::_adaptive_avg_pool3d(wide(self), outputSize);
}
ACLNN(AdaptiveAvgPool3dBackward, (Image<In>, gradOutput), (Image<In>, self), (Image<Out>, out)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 3);
  out = at::_adaptive_avg_pool3d_backward(wide(gradOutput), wide(self));
}
ACLNN(AdaptiveMaxPool2d, (Image<In>, self), (Ints, outputSize), (Image<Out>, outputOut),
      (Image<Out>, indicesOut)) {
  check_values("outputSize", outputSize, 1, std::numeric_limits<int32_t>::max());
  std::tie(outputOut, indicesOut) = at::adaptive_max_pool2d(self, outputSize);
}
ACLNN(AdaptiveMaxPool2dBackward, (Image<In>, gradOutput), (Image<In>, self),
      (SameShape<Image<IndexIn>>, indices, "gradOutput"), (Image<Out>, gradInput)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 2);
  gradInput = at::adaptive_max_pool2d_backward(wide(gradOutput), wide(self),
                                               checked_indices(indices, self, 2));
}
ACLNN(AdaptiveMaxPool3d, (Image<In>, self), (Ints, outputSize), (Image<Out>, outputOut),
      (Image<Out>, indicesOut)) {
  std::tie(outputOut, indicesOut) = at::adaptive_max_pool3d(self, outputSize);
}
ACLNN(AdaptiveMaxPool3dBackward, (Image<In>, gradOutput), (Image<In>, self),
      (SameShape<Image<IndexIn>>, indices, "gradOutput"), (Image<Out>, gradInput)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 3);
  gradInput = at::adaptive_max_pool3d_backward(wide(gradOutput), wide(self),
                                               checked_indices(indices, self, 3));
}

ACLNN(GlobalAveragePool, (Image<Floating<In>>, self), (SameDtype<Image<Out>>, out, "self")) {
  expect_dims("self", self, 4, 8);
  out = at::mean(wide(self), dims_from(self, 2), /*keepdim=*/true);
}
ACLNN(GlobalMaxPool, (Image<Floating<In>>, self), (SameDtype<Image<Out>>, out, "self")) {
  expect_dims("self", self, 4, 8);
  out = at::amax(self, dims_from(self, 2), /*keepdim=*/true);
}

}  // namespace aclnn_host::pooling_adaptive_pooling_rows
