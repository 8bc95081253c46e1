// aclnnHardswish, aclnnInplaceHardswish, aclnnHardswishBackward, aclnnHardswishBackwardV2;
// docs/emulation/operators.md lists the deviations from CANN.

#include "host_cann/kernels/hardswish.h"

#include "aclnnop/aclnn_hardswish.h"
#include "aclnnop/aclnn_hardswish_backward.h"
#include "aclnnop/aclnn_hardswish_backward_v2.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/elementwise_plan.h"

namespace aclnn_host {
namespace {

constexpr DtypeRule kTypes[] = {{ACL_FLOAT, Product::kAscend910},
                                {ACL_FLOAT16, Product::kAscend910},
                                {ACL_BF16, Product::kAscend910B},
                                {ACL_DOUBLE, Product::kHost}};
constexpr uint64_t kMaxRank = 8;  // for the gradients

aclnnStatus make_executor(const char* api, FloatKernels HardswishKernels::* kernels,
                          std::initializer_list<const aclTensor*> tensors, uint64_t* workspace_size,
                          aclOpExecutor** executor) {
  const aclDataType dtype = (*tensors.begin())->view.dtype;
  return make_elementwise_executor(api, (hardswish_kernels().*kernels).find(dtype), dtype,
                                   NoCoefficients<float>(), tensors, workspace_size, executor);
}

// aclnnHardswishBackward and its V2. Their checkers test the dtypes of `first` and `second`, which
// are the gradient and the value in either order.
aclnnStatus backward(const char* api, FloatKernels HardswishKernels::* kernels, Argument gradient,
                     Argument value, Argument result, Argument first, Argument second,
                     uint64_t* workspace_size, aclOpExecutor** executor) {
  const Given given[] = {gradient, value, result};
  return stage1(api, given, [&]() -> aclnnStatus {
    Checks checks(api);
    checks.results_not_null(workspace_size, executor)
        .not_null(gradient)
        .not_null(value)
        .not_null(result)
        .available_since(Product::kAscend910)
        .dtype_in(first, kTypes)
        .dtype_in(second, kTypes)
        .same_dtype(gradient, value)
        .same_dtype(result, value)
        .rank_at_most(gradient, kMaxRank)
        .rank_at_most(value, kMaxRank)
        .same_shape(gradient, value)
        .same_shape(result, value)
        .addressable(gradient)
        .addressable(value)
        .addressable(result);
    if (!checks.ok()) return checks.status();
    return make_executor(api, kernels, {gradient.tensor, value.tensor, result.tensor},
                         workspace_size, executor);
  });
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclnnStatus aclnnHardswishGetWorkspaceSize(const aclTensor* self, const aclTensor* out,
                                           uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnHardswish";
  const Argument value{"self", self}, result{"out", out};
  const Given given[] = {value, result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(value)
        .not_null(result)
        .available_since(Product::kAscend910)
        .dtype_in(value, kTypes)
        .dtype_in(result, kTypes)
        .same_shape(result, value)
        .addressable(value)
        .addressable(result);
    if (!checks.ok()) return checks.status();
    return make_executor(kApi, &HardswishKernels::forward, {self, out}, workspaceSize, executor);
  });
}

ACLNN_STAGE2(Hardswish)

aclnnStatus aclnnInplaceHardswishGetWorkspaceSize(const aclTensor* self, uint64_t* workspaceSize,
                                                  aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnInplaceHardswish";
  const Argument value{"self", self};
  return stage1(kApi, {{Given(value)}}, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(value)
        .available_since(Product::kAscend910)
        .dtype_in(value, kTypes)
        .addressable(value);
    if (!checks.ok()) return checks.status();
    return make_executor(kApi, &HardswishKernels::forward, {self}, workspaceSize, executor);
  });
}

ACLNN_STAGE2(InplaceHardswish)

aclnnStatus aclnnHardswishBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                   const aclTensor* self, aclTensor* out,
                                                   uint64_t* workspaceSize,
                                                   aclOpExecutor** executor) {
  const Argument gradient{"gradOutput", gradOutput}, value{"self", self};
  return backward("aclnnHardswishBackward", &HardswishKernels::backward, gradient, value,
                  {"out", out}, value, gradient, workspaceSize, executor);
}

ACLNN_STAGE2(HardswishBackward)

aclnnStatus aclnnHardswishBackwardV2GetWorkspaceSize(const aclTensor* gradOutput,
                                                     const aclTensor* self, aclTensor* out,
                                                     uint64_t* workspaceSize,
                                                     aclOpExecutor** executor) {
  const Argument gradient{"gradOutput", gradOutput}, value{"self", self};
  return backward("aclnnHardswishBackwardV2", &HardswishKernels::backward_v2, gradient, value,
                  {"out", out}, gradient, value, workspaceSize, executor);
}

ACLNN_STAGE2(HardswishBackwardV2)
