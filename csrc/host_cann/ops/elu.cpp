// aclnnElu, aclnnInplaceElu, aclnnEluBackward; docs/emulation/operators.md lists the deviations
// from CANN.

#include "host_cann/kernels/elu.h"

#include <cmath>
#include <limits>

#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/elementwise_plan.h"

namespace aclnn_host {
namespace {

constexpr Product kAll = Product::kAscend310P;

// The forward supports FP32 and 16-bit dtypes on every product, BF16 and DOUBLE through AICPU.
constexpr DtypeRule kForwardTypes[] = {
    {ACL_FLOAT, kAll}, {ACL_FLOAT16, kAll}, {ACL_DOUBLE, kAll}, {ACL_BF16, kAll}};
constexpr DtypeRule kBackwardTypes[] = {{ACL_FLOAT, kAll},
                                        {ACL_FLOAT16, kAll},
                                        {ACL_BF16, Product::kAscend910B},
                                        {ACL_DOUBLE, Product::kHost}};
constexpr uint64_t kMaxRank = 8;

struct Scalars {
  Named<const aclScalar*> alpha;
  Named<const aclScalar*> scale;
  Named<const aclScalar*> input_scale;
};

// The kernels' coefficients. Canonicalises NaNs, so that their lower bits are zero.
template <class Real>
EluCoefficients<Real> coefficients_of(const Scalars& scalars) {
  const auto canonical = [](Real value) {
    return std::isnan(value) ? std::numeric_limits<Real>::quiet_NaN() : value;
  };
  const auto value = [](const Named<const aclScalar*>& scalar) {
    if constexpr (std::is_same_v<Real, double>) return scalar.value->to_double();
    return static_cast<Real>(scalar.value->to_float());
  };
  return {canonical(value(scalars.scale)), canonical(value(scalars.alpha) * value(scalars.scale)),
          canonical(value(scalars.input_scale))};
}

aclnnStatus make_executor(const char* api, const FloatKernels& kernels, const Scalars& scalars,
                          std::initializer_list<const aclTensor*> tensors, uint64_t* workspace_size,
                          aclOpExecutor** executor) {
  const aclDataType dtype = (*tensors.begin())->view.dtype;
  if (dtype == ACL_DOUBLE) {
    return make_elementwise_executor(api, kernels.find(dtype), dtype,
                                     coefficients_of<double>(scalars), tensors, workspace_size,
                                     executor);
  }
  return make_elementwise_executor(api, kernels.find(dtype), dtype, coefficients_of<float>(scalars),
                                   tensors, workspace_size, executor);
}

// aclnnElu and, with out = self, aclnnInplaceElu; `tensors` are in the prototype's order.
aclnnStatus forward(const char* api, Argument self, const Scalars& scalars, Argument out,
                    std::initializer_list<const aclTensor*> tensors, uint64_t* workspace_size,
                    aclOpExecutor** executor) {
  const Named<const aclScalar*>& alpha = scalars.alpha;
  const Named<const aclScalar*>& scale = scalars.scale;
  const Named<const aclScalar*>& input_scale = scalars.input_scale;
  const Given given[] = {self, alpha, scale, input_scale, out};
  return stage1(api, given, [&]() -> aclnnStatus {
    Checks checks(api);
    checks.results_not_null(workspace_size, executor)
        .not_null(self)
        .not_null(alpha)
        .not_null(scale)
        .not_null(input_scale)
        .not_null(out)
        .dtype_in(self, kForwardTypes)
        .castable_to_float(scale)
        .castable_to_float(alpha)
        .castable_to_float(input_scale)
        .castable(self, out)
        .same_shape(out, self)
        .rank_at_most(self, kMaxRank)
        .addressable(self)
        .addressable(out);
    if (!checks.ok()) return checks.status();

    const bool degenerate =
        !std::isfinite(alpha.value->to_float()) || !std::isfinite(input_scale.value->to_float());
    const EluKernels& kernels = elu_kernels();
    return make_executor(api, degenerate ? kernels.threshold : kernels.forward, scalars, tensors,
                         workspace_size, executor);
  });
}

}  // namespace

}  // namespace aclnn_host

using namespace aclnn_host;

aclnnStatus aclnnEluGetWorkspaceSize(const aclTensor* self, const aclScalar* alpha,
                                     const aclScalar* scale, const aclScalar* inputScale,
                                     aclTensor* out, uint64_t* workspaceSize,
                                     aclOpExecutor** executor) {
  return forward("aclnnElu", {"self", self},
                 {{"alpha", alpha}, {"scale", scale}, {"inputScale", inputScale}}, {"out", out},
                 {self, out}, workspaceSize, executor);
}

ACLNN_STAGE2(Elu)

aclnnStatus aclnnInplaceEluGetWorkspaceSize(aclTensor* selfRef, const aclScalar* alpha,
                                            const aclScalar* scale, const aclScalar* inputScale,
                                            uint64_t* workspaceSize, aclOpExecutor** executor) {
  return forward("aclnnInplaceElu", {"selfRef", selfRef},
                 {{"alpha", alpha}, {"scale", scale}, {"inputScale", inputScale}},
                 {"selfRef", selfRef}, {selfRef}, workspaceSize, executor);
}

ACLNN_STAGE2(InplaceElu)

aclnnStatus aclnnEluBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclScalar* alpha,
                                             const aclScalar* scale, const aclScalar* inputScale,
                                             bool isResult, const aclTensor* selfOrResult,
                                             aclTensor* gradInput, uint64_t* workspaceSize,
                                             aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnEluBackward";
  const Argument gradient{"gradOutput", gradOutput};
  const Argument value{"selfOrResult", selfOrResult};
  const Argument out{"gradInput", gradInput};
  const Scalars scalars{{"alpha", alpha}, {"scale", scale}, {"inputScale", inputScale}};
  const Given given[] = {gradient,
                         scalars.alpha,
                         scalars.scale,
                         scalars.input_scale,
                         Named{"isResult", isResult},
                         value,
                         out};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(gradient)
        .not_null(scalars.alpha)
        .not_null(scalars.scale)
        .not_null(scalars.input_scale)
        .not_null(value)
        .not_null(out)
        .same_dtype(value, gradient)
        .dtype_in(gradient, kBackwardTypes)
        .castable_to_float(scalars.alpha)
        .castable_to_float(scalars.scale)
        .castable_to_float(scalars.input_scale)
        .castable(gradient, out)
        .same_shape(value, gradient)
        .same_shape(out, gradient)
        .rank_at_most(gradient, kMaxRank);
    if (checks.ok()) {
      checks.require(!(isResult && alpha->to_float() < 0),
                     "alpha is %g with isResult true, expected alpha >= 0, because the result of a "
                     "negative alpha does not tell its branch; pass the input and isResult false",
                     alpha->to_double());
    }
    checks.addressable(gradient).addressable(value).addressable(out);
    if (!checks.ok()) return checks.status();

    const EluKernels& kernels = elu_kernels();
    return make_executor(kApi,
                         isResult ? kernels.backward_from_result : kernels.backward_from_input,
                         scalars, {gradOutput, selfOrResult, gradInput}, workspaceSize, executor);
  });
}

ACLNN_STAGE2(EluBackward)
