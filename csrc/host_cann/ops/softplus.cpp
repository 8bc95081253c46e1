// aclnnSoftplus, aclnnSoftplusBackward; docs/emulation/operators.md lists the deviations from CANN.

#include "host_cann/kernels/softplus.h"

#include <cmath>
#include <limits>

#include "aclnnop/aclnn_softplus.h"
#include "aclnnop/aclnn_softplus_backward.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/elementwise_plan.h"

namespace aclnn_host {
namespace {

constexpr Product kAll = Product::kAscend310P;
constexpr DtypeRule kForwardTypes[] = {{ACL_FLOAT, kAll},
                                       {ACL_FLOAT16, kAll},
                                       {ACL_BF16, Product::kAscend910B},
                                       {ACL_DOUBLE, Product::kHost}};
constexpr DtypeRule kGradientTypes[] = {
    {ACL_FLOAT, kAll}, {ACL_FLOAT16, kAll}, {ACL_DOUBLE, kAll}, {ACL_BF16, Product::kAscend910B}};
constexpr DtypeRule kBackwardTypes[] = {{ACL_INT8, kAll},  {ACL_INT16, kAll},
                                        {ACL_INT32, kAll}, {ACL_INT64, kAll},
                                        {ACL_UINT8, kAll}, {ACL_FLOAT16, kAll},
                                        {ACL_FLOAT, kAll}, {ACL_DOUBLE, kAll},
                                        {ACL_BOOL, kAll},  {ACL_BF16, Product::kAscend910B}};
constexpr uint64_t kMaxRank = 8;

struct Scalars {
  Named<const aclScalar*> beta;
  Named<const aclScalar*> threshold;
};

// Canonicalises a NaN, so that its lower bits are zero.
template <class Real>
Real value_of(const Named<const aclScalar*>& scalar) {
  const Real value = std::is_same_v<Real, double> ? static_cast<Real>(scalar.value->to_double())
                                                  : static_cast<Real>(scalar.value->to_float());
  return std::isnan(value) ? std::numeric_limits<Real>::quiet_NaN() : value;
}

template <class Real>
SoftplusCoefficients<Real> coefficients_of(const Scalars& scalars) {
  return {value_of<Real>(scalars.beta), value_of<Real>(scalars.threshold)};
}

// The kernel computes in `dtype`.
aclnnStatus make_executor(const char* api, const FloatKernels& kernels, aclDataType dtype,
                          const Scalars& scalars, std::initializer_list<const aclTensor*> tensors,
                          uint64_t* workspace_size, aclOpExecutor** executor) {
  if (dtype == ACL_DOUBLE) {
    return make_elementwise_executor(api, kernels.find(dtype), dtype,
                                     coefficients_of<double>(scalars), tensors, workspace_size,
                                     executor);
  }
  return make_elementwise_executor(api, kernels.find(dtype), dtype, coefficients_of<float>(scalars),
                                   tensors, workspace_size, executor);
}

// Gradients of mixed dtypes are computed in FLOAT, or in DOUBLE if one is DOUBLE.
aclDataType working_type(aclDataType gradient, aclDataType value) {
  if (gradient == value) return gradient;
  return gradient == ACL_DOUBLE || value == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclnnStatus aclnnSoftplusGetWorkspaceSize(const aclTensor* self, const aclScalar* beta,
                                          const aclScalar* threshold, aclTensor* out,
                                          uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnSoftplus";
  const Argument value{"self", self}, result{"out", out};
  const Scalars scalars{{"beta", beta}, {"threshold", threshold}};
  const Given given[] = {value, scalars.beta, scalars.threshold, result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(value)
        .not_null(scalars.beta)
        .not_null(scalars.threshold)
        .not_null(result)
        .dtype_in(value, kForwardTypes)
        .castable_to_float(scalars.beta)
        .castable_to_float(scalars.threshold)
        .castable(value, result)
        .rank_at_most(value, kMaxRank)
        .same_shape(result, value)
        .addressable(value)
        .addressable(result);
    if (!checks.ok()) return checks.status();
    return make_executor(kApi, softplus_kernels().forward, self->view.dtype, scalars, {self, out},
                         workspaceSize, executor);
  });
}

ACLNN_STAGE2(Softplus)

aclnnStatus aclnnSoftplusBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                  const aclTensor* self, const aclScalar* beta,
                                                  const aclScalar* threshold, aclTensor* gradInput,
                                                  uint64_t* workspaceSize,
                                                  aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnSoftplusBackward";
  const Argument gradient{"gradOutput", gradOutput}, value{"self", self};
  const Argument result{"gradInput", gradInput};
  const Scalars scalars{{"beta", beta}, {"threshold", threshold}};
  const Given given[] = {gradient, value, scalars.beta, scalars.threshold, result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(gradient)
        .not_null(value)
        .not_null(scalars.beta)
        .not_null(scalars.threshold)
        .not_null(result)
        .available_since(Product::kAscend910)
        .dtype_in(gradient, kGradientTypes)
        .dtype_in(value, kBackwardTypes)
        .dtype_in(result, kGradientTypes)
        .castable_to_float(scalars.beta)
        .castable_to_float(scalars.threshold)
        .rank_at_most(gradient, kMaxRank)
        .rank_at_most(value, kMaxRank)
        .rank_at_most(result, kMaxRank)
        .same_shape(gradient, value)
        .same_shape(result, value)
        .addressable(gradient)
        .addressable(value)
        .addressable(result);
    if (!checks.ok()) return checks.status();
    const aclDataType dtype = working_type(gradOutput->view.dtype, self->view.dtype);
    return make_executor(kApi, softplus_kernels().backward, dtype, scalars,
                         {gradOutput, self, gradInput}, workspaceSize, executor);
  });
}

ACLNN_STAGE2(SoftplusBackward)
