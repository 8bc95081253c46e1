#include "host_cann/ops/convolution/geometry.h"

namespace aclnn_host {

ConvolutionGeometry::ConvolutionGeometry(const ConvolutionArguments& arguments, uint64_t spatial)
    : spatial(spatial), transposed(arguments.transposed), groups(arguments.groups) {
  const auto value = [](const aclIntArray& array, uint64_t i) {
    return array.values[array.size == 1 ? 0 : i];
  };
  const bool doubled = arguments.padding->size == 2 * spatial;
  for (uint64_t d = 0; d < spatial; ++d) {
    stride[d] = value(*arguments.stride, d);
    dilation[d] = value(*arguments.dilation, d);
    padding_before[d] = value(*arguments.padding, doubled ? 2 * d : d);
    padding_after[d] = value(*arguments.padding, doubled ? 2 * d + 1 : d);
    if (transposed) output_padding[d] = value(*arguments.output_padding, d);
  }
}

void ConvolutionGeometry::take_output_padding(const Dims& input, const Dims& weight,
                                              const Dims& output) {
  for (uint64_t d = 0; transposed && d < spatial; ++d) {
    const int64_t least = (input[d + 2] - 1) * stride[d] - padding_before[d] - padding_after[d] +
                          dilation[d] * (weight[d + 2] - 1) + 1;
    output_padding[d] = output[d + 2] - least;
  }
}

}  // namespace aclnn_host
