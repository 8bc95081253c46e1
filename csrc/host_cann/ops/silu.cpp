// aclnnSilu, aclnnSiluBackward; docs/emulation/operators.md lists the deviations from CANN.

#include "host_cann/kernels/silu.h"

#include "aclnnop/aclnn_silu.h"
#include "aclnnop/aclnn_silu_backward.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/elementwise_plan.h"

namespace aclnn_host {
namespace {

constexpr Product kAll = Product::kAscend310P;
constexpr DtypeRule kTypes[] = {{ACL_FLOAT16, kAll},
                                {ACL_FLOAT, kAll},
                                {ACL_BF16, Product::kAscend910B},
                                {ACL_DOUBLE, Product::kHost}};
constexpr uint64_t kMaxRank = 8;  // for the backward

aclnnStatus make_executor(const char* api, FloatKernels SiluKernels::* kernels,
                          std::initializer_list<const aclTensor*> tensors, uint64_t* workspace_size,
                          aclOpExecutor** executor) {
  const aclDataType dtype = (*tensors.begin())->view.dtype;
  return make_elementwise_executor(api, (silu_kernels().*kernels).find(dtype), dtype,
                                   NoCoefficients<float>(), tensors, workspace_size, executor);
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclnnStatus aclnnSiluGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                      uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnSilu";
  const Argument value{"self", self}, result{"out", out};
  const Given given[] = {value, result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(value)
        .not_null(result)
        .dtype_in(value, kTypes)
        .dtype_in(result, kTypes)
        .same_dtype(result, value)
        .same_shape(result, value)
        .addressable(value)
        .addressable(result);
    if (!checks.ok()) return checks.status();
    return make_executor(kApi, &SiluKernels::forward, {self, out}, workspaceSize, executor);
  });
}

ACLNN_STAGE2(Silu)

aclnnStatus aclnnSiluBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                              aclTensor* gradInput, uint64_t* workspaceSize,
                                              aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnSiluBackward";
  const Argument gradient{"gradOutput", gradOutput}, value{"self", self};
  const Argument result{"gradInput", gradInput};
  const Given given[] = {gradient, value, result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(gradient)
        .not_null(value)
        .not_null(result)
        .available_since(Product::kAscend910)
        .dtype_in(gradient, kTypes)
        .dtype_in(value, kTypes)
        .dtype_in(result, kTypes)
        .same_dtype(gradient, result)
        .same_dtype(value, result)
        .rank_at_most(gradient, kMaxRank)
        .rank_at_most(value, kMaxRank)
        .same_shape(gradient, result)
        .same_shape(value, result)
        .addressable(gradient)
        .addressable(value)
        .addressable(result);
    if (!checks.ok()) return checks.status();
    return make_executor(kApi, &SiluKernels::backward, {gradOutput, self, gradInput}, workspaceSize,
                         executor);
  });
}

ACLNN_STAGE2(SiluBackward)
