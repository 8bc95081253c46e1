// Max pooling with indices, and its gradients.

#include "cann/rows/images.h"
#include "cann/rows/planes.h"
#include "cann/rows/pooling/pooling_checks.h"
#include "cann/rows/row.h"
#include "host_cann/runtime/product.h"

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
// Behaviour of MaxPool2dWithMask*: The bytes of the mask begin with the positions of the maxima in
// their planes, as INT32, and are 0 after these; the gradient finds the maxima again. For a window
// of one element, and on Ascend910 and Ascend310P, CANN's mask has a bit for each of a window's
// elements, and the host's is 0; it must have the documented shape. Otherwise CANN accepts any mask
// with room for the positions.
ACLNN(MaxPool2dWithMask, (Image<In>, self), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (bool, ceilMode), (Image<Out>, out), (Image<Out>, indices)) {
  const auto [maxima, positions] =
      at::max_pool2d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode);
  out = maxima;
  const int64_t window = kernelSize[0] * kernelSize[kernelSize.size() - 1];
  const Product product = current_product();
  const bool has_bits =
      window == 1 || product == Product::kAscend910 || product == Product::kAscend310P;
  if (has_bits) {
    const int64_t outputs = maxima.size(-2) * maxima.size(-1);
    std::vector<int64_t> shape = maxima.sizes().vec();
    shape[shape.size() - 2] = window;
    shape.back() = ((outputs + 15) / 16 + 1) * 32;
    expect_shape("indices", indices, shape);
  } else {
    EXPECT(indices->numel() >= 4 * maxima.numel(), "indices has shape ", indices->sizes(),
           ", expected at least ", 4 * maxima.numel(), " elements, four for each of out");
  }
  at::Tensor mask = at::zeros(indices->sizes(), indices->options());
  if (!has_bits) {
    const at::Tensor bytes = positions.to(at::kInt).flatten().view(at::kChar);
    mask.flatten().slice(0, 0, bytes.numel()).copy_(bytes);
  }
  indices = mask;
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
