// aclnnHardsigmoid, aclnnInplaceHardsigmoid, aclnnHardsigmoidBackward;
// docs/operators/hardsigmoid.md says where they deviate from CANN.

#include "host_cann/kernels/hardsigmoid.h"

#include "aclnnop/aclnn_hardsigmoid.h"
#include "aclnnop/aclnn_hardsigmoid_backward.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/elementwise_plan.h"

namespace aclnn_host {
namespace {

constexpr Product kAll = Product::kAscend310P;
constexpr DtypeRule kForwardTypes[] = {{ACL_FLOAT, kAll},
                                       {ACL_FLOAT16, kAll},
                                       {ACL_INT32, kAll},
                                       {ACL_BF16, Product::kAscend910B},
                                       {ACL_DOUBLE, Product::kHost}};
constexpr DtypeRule kBackwardTypes[] = {{ACL_FLOAT, kAll},
                                        {ACL_FLOAT16, kAll},
                                        {ACL_BF16, Product::kAscend910B},
                                        {ACL_DOUBLE, Product::kHost}};
constexpr uint64_t kMaxRank = 8;

// aclnnHardsigmoid and, with out = self, aclnnInplaceHardsigmoid; `tensors` are the prototype's.
aclnnStatus forward(const char* api, GivenArguments given, Argument self, Argument out,
                    std::initializer_list<const aclTensor*> tensors, uint64_t* workspace_size,
                    aclOpExecutor** executor) {
  return stage1(api, given, [&]() -> aclnnStatus {
    Checks checks(api);
    checks.results_not_null(workspace_size, executor)
        .not_null(self)
        .not_null(out)
        .available_since(Product::kAscend910)
        .dtype_in(self, kForwardTypes)
        .rank_at_most(self, kMaxRank)
        .same_shape(out, self)
        .same_dtype(out, self);
    if (!checks.ok()) return checks.status();
    const TensorView &from = self.tensor->view, &to = out.tensor->view;
    checks
        .require(to.format == from.format, "%s has format %d, expected %d as %s has", out.name,
                 static_cast<int>(to.format), static_cast<int>(from.format), self.name)
        .addressable(self)
        .addressable(out);
    if (!checks.ok()) return checks.status();
    const ElementwiseKernel kernel = from.dtype == ACL_INT32
                                         ? hardsigmoid_int32
                                         : hardsigmoid_kernels().forward.find(from.dtype);
    return make_elementwise_executor(api, kernel, from.dtype, NoCoefficients<float>(), tensors,
                                     workspace_size, executor);
  });
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclnnStatus aclnnHardsigmoidGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                             uint64_t* workspaceSize, aclOpExecutor** executor) {
  const Argument value{"self", self}, result{"out", out};
  const Given given[] = {value, result};
  return forward("aclnnHardsigmoid", given, value, result, {self, out}, workspaceSize, executor);
}

ACLNN_STAGE2(Hardsigmoid)

aclnnStatus aclnnInplaceHardsigmoidGetWorkspaceSize(const aclTensor* self, uint64_t* workspaceSize,
                                                    aclOpExecutor** executor) {
  const Argument value{"self", self};
  const Given given[] = {value};
  return forward("aclnnInplaceHardsigmoid", given, value, value, {self}, workspaceSize, executor);
}

ACLNN_STAGE2(InplaceHardsigmoid)

aclnnStatus aclnnHardsigmoidBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                     const aclTensor* self, aclTensor* out,
                                                     uint64_t* workspaceSize,
                                                     aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnHardsigmoidBackward";
  const Argument gradient{"gradOutput", gradOutput}, value{"self", self}, result{"out", out};
  const Given given[] = {gradient, value, result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(gradient)
        .not_null(value)
        .not_null(result)
        .dtype_in(gradient, kBackwardTypes)
        .dtype_in(value, kBackwardTypes)
        .castable(gradient, result)  // as what the two are promoted to, which is floating, too
        .rank_at_most(gradient, kMaxRank)
        .rank_at_most(value, kMaxRank)
        .rank_at_most(result, kMaxRank)
        .same_shape(gradient, value)
        .same_shape(result, value)
        .addressable(gradient)
        .addressable(value)
        .addressable(result);
    if (!checks.ok()) return checks.status();
    const aclDataType dtype = promote_type(gradOutput->view.dtype, self->view.dtype);
    return make_elementwise_executor(kApi, hardsigmoid_kernels().backward.find(dtype), dtype,
                                     NoCoefficients<float>(), {gradOutput, self, out},
                                     workspaceSize, executor);
  });
}

ACLNN_STAGE2(HardsigmoidBackward)
