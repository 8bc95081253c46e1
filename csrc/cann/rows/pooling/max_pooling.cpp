// Max pooling with indices, and its gradients.

#include "cann/rows/images.h"
#include "cann/rows/planes.h"
#include "cann/rows/pooling/pooling_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::pooling_max_pooling_rows {

ACLNN(MaxPool2dWithIndices, (Image<In>, self), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (bool, ceilMode), (Image<Out>, out), (Image<Out>, indices)) {
  std::tie(out, indices) =
      at::max_pool2d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode);
}
ACLNN(MaxPool2dWithIndicesBackward, (Image<In>, gradOutput), (Image<In>, self),
      (SameShape<Image<IndexIn>>, indices, "gradOutput"), (Ints, kernelSize), (Ints, stride),
      (Ints, padding), (Ints, dilation), (bool, ceilMode), (Image<Out>, gradInput)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 2);
  gradInput = at::max_pool2d_with_indices_backward(wide(gradOutput), wide(self), kernelSize, stride,
                                                   padding, dilation, ceilMode,
                                                   checked_indices(indices, self, 2));
}
// Deviation of MaxPool2dWithMask*: The mask is all zeros, and the gradient finds the maxima again.
// CANN's mask has a bit for each place in the window.
ACLNN(MaxPool2dWithMask, (Image<In>, self), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (bool, ceilMode), (Image<Out>, out), (Image<Out>, indices)) {
  out = std::get<0>(
      at::max_pool2d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode));
  indices = at::zeros_like(indices);
}
ACLNN(MaxPool2dWithMaskBackward, (Image<In>, gradOutput), (Image<In>, self),
      (Unused<Image<In>>, indices, "the maxima are found again in self"), (Ints, kernelSize),
      (Ints, stride), (Ints, padding), (Ints, dilation), (bool, ceilMode),
      (Image<Out>, gradInput)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 2);
  const at::Tensor where = std::get<1>(
      at::max_pool2d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode));
  gradInput = at::max_pool2d_with_indices_backward(wide(gradOutput), wide(self), kernelSize, stride,
                                                   padding, dilation, ceilMode, where);
}
ACLNN(MaxPool3dWithArgmax, (Image<In>, self), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (bool, ceilMode), (Image<Out>, out), (Image<Out>, indices)) {
  std::tie(out, indices) =
      at::max_pool3d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode);
}
ACLNN(MaxPool3dWithArgmaxBackward, (Image<In>, gradOutput), (Image<In>, self),
      (SameShape<Image<IndexIn>>, indices, "gradOutput"), (Ints, kernelSize), (Ints, stride),
      (Ints, padding), (Ints, dilation), (bool, ceilMode), (Image<Out>, gradInput)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 3);
  gradInput = at::max_pool3d_with_indices_backward(wide(gradOutput), wide(self), kernelSize, stride,
                                                   padding, dilation, ceilMode,
                                                   checked_indices(indices, self, 3));
}

}  // namespace aclnn_host::pooling_max_pooling_rows
