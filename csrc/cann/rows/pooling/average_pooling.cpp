// Average pooling and its gradients.

#include "cann/rows/images.h"
#include "cann/rows/planes.h"
#include "cann/rows/row.h"

namespace aclnn_host::pooling_average_pooling_rows {

namespace {

// The divisor of an average; 0 selects the number of elements in the window.
std::optional<int64_t> divisor_of(int64_t divisor_override) {
  return divisor_override == 0 ? std::nullopt : std::optional(divisor_override);
}

// Values other than 0 allow CANN to round FLOAT in some algorithms; the host computes in FLOAT.
void check_cube_math_type(int64_t type) {
  expect_range("cubeMathType", type, 0, 3);
}

}  // namespace

ACLNN(AvgPool2d, (Image<In>, self), (Ints, kernelSize), (Ints, strides), (Ints, paddings),
      (bool, ceilMode), (bool, countIncludePad), (int64_t, divisorOverride), (int8_t, cubeMathType),
      (Image<Out>, out)) {
  check_cube_math_type(cubeMathType);
  out = at::avg_pool2d(wide(self), kernelSize, strides, paddings, ceilMode, countIncludePad,
                       divisor_of(divisorOverride));
}
ACLNN(AvgPool2dBackward, (Image<In>, gradOutput), (Image<In>, self), (Ints, kernelSize),
      (Ints, stride), (Ints, padding), (bool, ceilMode), (bool, countIncludePad),
      (int64_t, divisorOverride), (int8_t, cubeMathType), (Image<Out>, gradInput)) {
  check_cube_math_type(cubeMathType);
  expect_planes("gradOutput", gradOutput, self.sizes(), 2);
  gradInput = at::avg_pool2d_backward(wide(gradOutput), wide(self), kernelSize, stride, padding,
                                      ceilMode, countIncludePad, divisor_of(divisorOverride));
}
ACLNN(AvgPool3d, (Image<In>, self), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (bool, ceilMode), (bool, countIncludePad), (int64_t, divisorOverride), (Image<Out>, out)) {
  out = at::avg_pool3d(wide(self), kernelSize, stride, padding, ceilMode, countIncludePad,
                       divisor_of(divisorOverride));
}
ACLNN(AvgPool3dBackward, (Image<In>, gradOuput), (Image<In>, self), (Ints, kernelSize),
      (Ints, stride), (Ints, padding), (bool, ceilMode), (bool, countIncludePad),
      (int64_t, divisorOverride), (Image<Out>, output)) {
  expect_planes("gradOuput", gradOuput, self.sizes(), 3);
  output = at::avg_pool3d_backward(wide(gradOuput), wide(self), kernelSize, stride, padding,
                                   ceilMode, countIncludePad, divisor_of(divisorOverride));
}

}  // namespace aclnn_host::pooling_average_pooling_rows
