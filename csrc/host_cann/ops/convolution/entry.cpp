// aclnnConvolution and aclnnConvolutionBackward; docs/emulation/operators.md lists the deviations
// from CANN.

#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "host_cann/descriptors/containers.h"
#include "host_cann/ops/convolution/convolution_checks.h"
#include "host_cann/ops/convolution/convolution_plan.h"

using namespace aclnn_host;

aclnnStatus aclnnConvolutionGetWorkspaceSize(const aclTensor* input, const aclTensor* weight,
                                             const aclTensor* bias, const aclIntArray* stride,
                                             const aclIntArray* padding,
                                             const aclIntArray* dilation, bool transposed,
                                             const aclIntArray* outputPadding, const int64_t groups,
                                             aclTensor* output, int8_t cubeMathType,
                                             uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnConvolution";
  const ConvolutionArguments arguments{stride,        padding, dilation,    transposed,
                                       outputPadding, groups,  cubeMathType};
  const Argument data{"input", input};
  const Argument kernel{"weight", weight};
  const Argument added{"bias", bias};
  const Given given[] = {data,
                         kernel,
                         added,
                         Named{"stride", stride},
                         Named{"padding", padding},
                         Named{"dilation", dilation},
                         Named{"transposed", transposed},
                         Named{"outputPadding", outputPadding},
                         Named{"groups", groups},
                         Named{"output", output},
                         Named{"cubeMathType", cubeMathType}};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor);
    const ForwardTensors tensors{data, kernel, added, {"output", output}};
    check_convolution(checks, tensors, arguments);
    if (!checks.ok()) return checks.status();
    const aclnnStatus inside = check_inside_convolution(kApi, tensors, arguments);
    if (inside != OK) return inside;
    check_memory(checks, {data, kernel, added, tensors.output});
    if (!checks.ok()) return checks.status();

    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      const ConvolutionGeometry geometry(arguments, input->view.shape.size() - 2);
      const ComputeType type =
          compute_type(promoted_type({data, kernel}), cubeMathType, checks.product());
      return ConvolutionPlan(input, weight, bias, output, geometry, type, checks.product(),
                             workspace);
    });
  });
}

aclnnStatus aclnnConvolution(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                             aclrtStream stream) {
  return launch("aclnnConvolution", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnConvolutionBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* input, const aclTensor* weight,
    const aclIntArray* biasSizes, const aclIntArray* stride, const aclIntArray* padding,
    const aclIntArray* dilation, bool transposed, const aclIntArray* outputPadding, int groups,
    const aclBoolArray* outputMask, int8_t cubeMathType, aclTensor* gradInput,
    aclTensor* gradWeight, aclTensor* gradBias, uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnConvolutionBackward";
  const ConvolutionArguments arguments{stride,        padding, dilation,    transposed,
                                       outputPadding, groups,  cubeMathType};
  const Argument gradient{"gradOutput", gradOutput};
  const Argument data{"input", input};
  const Argument kernel{"weight", weight};
  const Given given[] = {gradient,
                         data,
                         kernel,
                         Named{"biasSizes", biasSizes},
                         Named{"stride", stride},
                         Named{"padding", padding},
                         Named{"dilation", dilation},
                         Named{"transposed", transposed},
                         Named{"outputPadding", outputPadding},
                         Named{"groups", groups},
                         Named{"outputMask", outputMask},
                         Named{"cubeMathType", cubeMathType},
                         Named{"gradInput", gradInput},
                         Named{"gradWeight", gradWeight},
                         Named{"gradBias", gradBias}};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor);
    const BackwardTensors tensors{gradient,
                                  data,
                                  kernel,
                                  {"gradInput", gradInput},
                                  {"gradWeight", gradWeight},
                                  {"gradBias", gradBias}};
    check_convolution_backward(checks, tensors, biasSizes, arguments, outputMask);
    if (!checks.ok()) return checks.status();
    const aclnnStatus inside =
        check_inside_convolution_backward(kApi, tensors, arguments, *outputMask);
    if (inside != OK) return inside;
    check_memory(checks, {gradient, data, kernel, tensors.grad_input, tensors.grad_weight,
                          tensors.grad_bias});
    if (!checks.ok()) return checks.status();

    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      // A call without elements accepts arrays of any length and needs no geometry.
      const bool empty = is_empty(input->view) || is_empty(weight->view);
      ConvolutionGeometry geometry;
      if (!empty) {
        geometry = ConvolutionGeometry(arguments, input->view.shape.size() - 2);
        geometry.take_output_padding(input->view.shape, weight->view.shape, gradOutput->view.shape);
      }
      const ComputeType type =
          compute_type(promoted_type({gradient, data, kernel}), cubeMathType, checks.product());
      return ConvolutionBackwardPlan(gradOutput, input, weight, {gradInput, gradWeight, gradBias},
                                     outputMask->values.get(), geometry, type, workspace);
    });
  });
}

aclnnStatus aclnnConvolutionBackward(void* workspace, uint64_t workspaceSize,
                                     aclOpExecutor* executor, const aclrtStream stream) {
  return launch("aclnnConvolutionBackward", workspace, workspaceSize, executor, stream);
}
