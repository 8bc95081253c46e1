// Images: padding by their own elements, sampling at places.

#include <ATen/ops/affine_grid_generator.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/grid_sampler_2d_backward.h>
#include <ATen/ops/reflection_pad1d.h>
#include <ATen/ops/reflection_pad1d_backward.h>
#include <ATen/ops/reflection_pad2d.h>
#include <ATen/ops/reflection_pad2d_backward.h>
#include <ATen/ops/reflection_pad3d.h>
#include <ATen/ops/reflection_pad3d_backward.h>
#include <ATen/ops/replication_pad1d.h>
#include <ATen/ops/replication_pad1d_backward.h>
#include <ATen/ops/replication_pad2d.h>
#include <ATen/ops/replication_pad2d_backward.h>
#include <ATen/ops/replication_pad3d.h>
#include <ATen/ops/replication_pad3d_backward.h>

#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

// aclnn<Name>(self, padding, out) and aclnn<Name>Backward(gradOutput, self, padding, gradInput)
#define PADDING(Name, function)                                                            \
  ACLNN(Name, (In, self), (Ints, padding), (Out, out)) {                                   \
    out = moved(self, [&](const at::Tensor& x) { return at::function(x, padding); });      \
  }                                                                                        \
  ACLNN(Name##Backward, (In, gradOutput), (In, self), (Ints, padding), (Out, gradInput)) { \
    gradInput = at::function##_backward(wide(gradOutput), wide(self), padding);            \
  }
PADDING(ReflectionPad1d, reflection_pad1d)
PADDING(ReflectionPad2d, reflection_pad2d)
PADDING(ReflectionPad3d, reflection_pad3d)
PADDING(ReplicationPad1d, replication_pad1d)
PADDING(ReplicationPad2d, replication_pad2d)
PADDING(ReplicationPad3d, replication_pad3d)
#undef PADDING

ACLNN(AffineGrid, (In, theta), (Ints, size), (bool, alignCorners), (Out, out)) {
  out = at::affine_grid_generator(wide(theta), size, alignCorners);
}
ACLNN(GridSampler2D, (In, input), (In, grid), (int64_t, interpolationMode), (int64_t, paddingMode),
      (bool, alignCorners), (Out, out)) {
  out = at::grid_sampler_2d(wide(input), wide(grid), interpolationMode, paddingMode, alignCorners);
}
ACLNN(GridSampler2DBackward, (In, gradOutput), (In, input), (In, grid),
      (int64_t, interpolationMode), (int64_t, paddingMode), (bool, alignCorners),
      (Bools, outputMask), (OptionalOut, inputGrad), (OptionalOut, gridGrad)) {
  TORCH_CHECK(outputMask.size() == 2, "outputMask has ", outputMask.size(), " values, expected 2");
  const auto [input_gradient, grid_gradient] =
      at::grid_sampler_2d_backward(wide(gradOutput), wide(input), wide(grid), interpolationMode,
                                   paddingMode, alignCorners, {outputMask[0], outputMask[1]});
  if (outputMask[0]) inputGrad = input_gradient;
  if (outputMask[1]) gridGrad = grid_gradient;
}
