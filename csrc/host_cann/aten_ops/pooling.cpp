// Pooling and its gradients.

#include <ATen/ops/_adaptive_avg_pool2d.h>
#include <ATen/ops/_adaptive_avg_pool2d_backward.h>
#include <ATen/ops/_adaptive_avg_pool3d.h>
#include <ATen/ops/_adaptive_avg_pool3d_backward.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/adaptive_max_pool2d_backward.h>
#include <ATen/ops/adaptive_max_pool3d.h>
#include <ATen/ops/adaptive_max_pool3d_backward.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool2d_backward.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/avg_pool3d_backward.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/max_pool3d_with_indices.h>
#include <ATen/ops/max_pool3d_with_indices_backward.h>
#include <ATen/ops/max_unpool2d.h>
#include <ATen/ops/zeros_like.h>

#include "host_cann/aten_ops/bounds.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// The divisor of an average, 0 for the number of elements in the window.
std::optional<int64_t> divisor_of(int64_t divisor_override) {
  return divisor_override == 0 ? std::nullopt : std::optional(divisor_override);
}

// Places in the last `dims` dimensions of self, as ATen takes them: it trusts them to be inside,
// and some of its functions to lie row by row.
at::Tensor places(const at::Tensor& indices, const at::Tensor& self, int64_t dims) {
  int64_t size = 1;
  for (int64_t dim = self.dim() - dims; dim < self.dim(); ++dim) size *= self.size(dim);
  check_bounds("indices", indices, size);
  return indices.contiguous();
}

}  // namespace

ACLNN(AvgPool2d, (In, self), (Ints, kernelSize), (Ints, strides), (Ints, paddings),
      (bool, ceilMode), (bool, countIncludePad), (int64_t, divisorOverride), (int8_t, cubeMathType),
      (Out, out)) {
  out = at::avg_pool2d(wide(self), kernelSize, strides, paddings, ceilMode, countIncludePad,
                       divisor_of(divisorOverride));
}
ACLNN(AvgPool2dBackward, (In, gradOutput), (In, self), (Ints, kernelSize), (Ints, stride),
      (Ints, padding), (bool, ceilMode), (bool, countIncludePad), (int64_t, divisorOverride),
      (int8_t, cubeMathType), (Out, gradInput)) {
  gradInput = at::avg_pool2d_backward(wide(gradOutput), wide(self), kernelSize, stride, padding,
                                      ceilMode, countIncludePad, divisor_of(divisorOverride));
}
ACLNN(AvgPool3d, (In, self), (Ints, kernelSize), (Ints, stride), (Ints, padding), (bool, ceilMode),
      (bool, countIncludePad), (int64_t, divisorOverride), (Out, out)) {
  out = at::avg_pool3d(wide(self), kernelSize, stride, padding, ceilMode, countIncludePad,
                       divisor_of(divisorOverride));
}
ACLNN(AvgPool3dBackward, (In, gradOuput), (In, self), (Ints, kernelSize), (Ints, stride),
      (Ints, padding), (bool, ceilMode), (bool, countIncludePad), (int64_t, divisorOverride),
      (Out, output)) {
  output = at::avg_pool3d_backward(wide(gradOuput), wide(self), kernelSize, stride, padding,
                                   ceilMode, countIncludePad, divisor_of(divisorOverride));
}

ACLNN(AdaptiveAvgPool2d, (In, self), (Ints, outputSize), (Out, out)) {
  out = at::_adaptive_avg_pool2d(wide(self), outputSize);
}
ACLNN(AdaptiveAvgPool2dBackward, (In, gradOutput), (In, self), (Out, out)) {
  out = at::_adaptive_avg_pool2d_backward(wide(gradOutput), wide(self));
}
ACLNN(AdaptiveAvgPool3d, (In, self), (Ints, outputSize), (Out, out)) {
  out = at::_adaptive_avg_pool3d(wide(self), outputSize);
}
ACLNN(AdaptiveAvgPool3dBackward, (In, gradOutput), (In, self), (Out, out)) {
  out = at::_adaptive_avg_pool3d_backward(wide(gradOutput), wide(self));
}
ACLNN(AdaptiveMaxPool2d, (In, self), (Ints, outputSize), (Out, outputOut), (Out, indicesOut)) {
  const auto [values, indices] = at::adaptive_max_pool2d(self, outputSize);
  outputOut = values;
  indicesOut = indices;
}
ACLNN(AdaptiveMaxPool2dBackward, (In, gradOutput), (In, self), (IndexIn, indices),
      (Out, gradInput)) {
  gradInput =
      at::adaptive_max_pool2d_backward(wide(gradOutput), wide(self), places(indices, self, 2));
}
ACLNN(AdaptiveMaxPool3d, (In, self), (Ints, outputSize), (Out, outputOut), (Out, indicesOut)) {
  const auto [values, indices] = at::adaptive_max_pool3d(self, outputSize);
  outputOut = values;
  indicesOut = indices;
}
ACLNN(AdaptiveMaxPool3dBackward, (In, gradOutput), (In, self), (IndexIn, indices),
      (Out, gradInput)) {
  gradInput =
      at::adaptive_max_pool3d_backward(wide(gradOutput), wide(self), places(indices, self, 3));
}

ACLNN(MaxPool2dWithIndices, (In, self), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (bool, ceilMode), (Out, out), (Out, indices)) {
  const auto [values, where] =
      at::max_pool2d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode);
  out = values;
  indices = where;
}
ACLNN(MaxPool2dWithIndicesBackward, (In, gradOutput), (In, self), (IndexIn, indices),
      (Ints, kernelSize), (Ints, stride), (Ints, padding), (Ints, dilation), (bool, ceilMode),
      (Out, gradInput)) {
  gradInput =
      at::max_pool2d_with_indices_backward(wide(gradOutput), wide(self), kernelSize, stride,
                                           padding, dilation, ceilMode, places(indices, self, 2));
}
// The mask is CANN's own affair: one that is all zeros here, because the backward pass finds the
// maxima again.
ACLNN(MaxPool2dWithMask, (In, self), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (bool, ceilMode), (Out, out), (Out, indices)) {
  out = std::get<0>(
      at::max_pool2d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode));
  indices = at::zeros_like(indices);
}
ACLNN(MaxPool2dWithMaskBackward, (In, gradOutput), (In, self), (In, indices), (Ints, kernelSize),
      (Ints, stride), (Ints, padding), (Ints, dilation), (bool, ceilMode), (Out, gradInput)) {
  const at::Tensor where = std::get<1>(
      at::max_pool2d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode));
  gradInput = at::max_pool2d_with_indices_backward(wide(gradOutput), wide(self), kernelSize, stride,
                                                   padding, dilation, ceilMode, where);
}
ACLNN(MaxPool3dWithArgmax, (In, self), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (bool, ceilMode), (Out, out), (Out, indices)) {
  const auto [values, where] =
      at::max_pool3d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode);
  out = values;
  indices = where;
}
ACLNN(MaxPool3dWithArgmaxBackward, (In, gradOutput), (In, self), (IndexIn, indices),
      (Ints, kernelSize), (Ints, stride), (Ints, padding), (Ints, dilation), (bool, ceilMode),
      (Out, gradInput)) {
  gradInput =
      at::max_pool3d_with_indices_backward(wide(gradOutput), wide(self), kernelSize, stride,
                                           padding, dilation, ceilMode, places(indices, self, 3));
}
ACLNN(MaxUnpool2d, (In, self), (IndexIn, indices), (Ints, outputSize), (Out, out)) {
  out = at::max_unpool2d(self, indices.contiguous(), outputSize);
}
