// aclnnMish, aclnnInplaceMish, aclnnMishBackward; docs/operators/mish.md says where they deviate
// from CANN.

#include "host_cann/kernels/mish.h"

#include "aclnnop/aclnn_mish.h"
#include "aclnnop/aclnn_mish_backward.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/elementwise_plan.h"

namespace aclnn_host {
namespace {

constexpr Product kAll = Product::kAscend310P;
constexpr DtypeRule kTypes[] = {{ACL_FLOAT, kAll},
                                {ACL_FLOAT16, kAll},
                                {ACL_BF16, Product::kAscend910B},
                                {ACL_DOUBLE, Product::kHost}};
constexpr uint64_t kMaxRank = 8;

// aclnnMish and, with out = self, aclnnInplaceMish; `tensors` are the prototype's.
aclnnStatus forward(const char* api, GivenArguments given, Argument self, Argument out,
                    std::initializer_list<const aclTensor*> tensors, uint64_t* workspace_size,
                    aclOpExecutor** executor) {
  return stage1(api, given, [&]() -> aclnnStatus {
    Checks checks(api);
    checks.results_not_null(workspace_size, executor)
        .not_null(self)
        .not_null(out)
        .available_since(Product::kAscend910)
        .dtype_in(self, kTypes)
        .dtype_in(out, kTypes)
        .same_dtype(out, self)
        .rank_at_most(self, kMaxRank)
        .rank_at_most(out, kMaxRank)
        .same_shape(out, self)
        .addressable(self)
        .addressable(out);
    if (!checks.ok()) return checks.status();
    const aclDataType dtype = self.tensor->view.dtype;
    return make_elementwise_executor(api, mish_kernels().forward.find(dtype), dtype,
                                     NoCoefficients<float>(), tensors, workspace_size, executor);
  });
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclnnStatus aclnnMishGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                      uint64_t* workspaceSize, aclOpExecutor** executor) {
  const Argument value{"self", self}, result{"out", out};
  const Given given[] = {value, result};
  return forward("aclnnMish", given, value, result, {self, out}, workspaceSize, executor);
}

ACLNN_STAGE2(Mish)

aclnnStatus aclnnInplaceMishGetWorkspaceSize(aclTensor* selfRef, uint64_t* workspaceSize,
                                             aclOpExecutor** executor) {
  const Argument value{"selfRef", selfRef};
  const Given given[] = {value};
  return forward("aclnnInplaceMish", given, value, value, {selfRef}, workspaceSize, executor);
}

ACLNN_STAGE2(InplaceMish)

aclnnStatus aclnnMishBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                              aclTensor* gradInput, uint64_t* workspaceSize,
                                              aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnMishBackward";
  const Argument gradient{"gradOutput", gradOutput}, value{"self", self};
  const Argument result{"gradInput", gradInput};
  const Given given[] = {gradient, value, result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    // CANN asks first whether self can be cast to gradInput, as all of these types can.
    checks.results_not_null(workspaceSize, executor)
        .not_null(gradient)
        .not_null(value)
        .not_null(result)
        .dtype_in(gradient, kTypes)
        .dtype_in(value, kTypes)
        .dtype_in(result, kTypes)
        .rank_at_most(gradient, kMaxRank)
        .rank_at_most(value, kMaxRank)
        .rank_at_most(result, kMaxRank)
        .broadcast_shape(result, gradient, value)
        .addressable(gradient)
        .addressable(value)
        .addressable(result);
    if (!checks.ok()) return checks.status();
    const aclDataType dtype = promote_type(gradOutput->view.dtype, self->view.dtype);
    return make_elementwise_executor(kApi, mish_kernels().backward.find(dtype), dtype,
                                     NoCoefficients<float>(), {gradOutput, self, gradInput},
                                     workspaceSize, executor);
  });
}

ACLNN_STAGE2(MishBackward)
