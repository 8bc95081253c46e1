// aclnnGelu, aclnnGeluBackward, aclnnGeluV2, aclnnGeluBackwardV2; docs/emulation/operators.md lists
// the deviations from CANN.

#include "host_cann/kernels/gelu.h"

#include <string_view>

#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_gelu_backward.h"
#include "aclnnop/aclnn_gelu_backward_v2.h"
#include "aclnnop/aclnn_gelu_v2.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/elementwise_plan.h"

namespace aclnn_host {
namespace {

constexpr Product kAll = Product::kAscend310P;
constexpr DtypeRule kTypes[] = {{ACL_FLOAT, kAll},
                                {ACL_FLOAT16, kAll},
                                {ACL_BF16, Product::kAscend910B},
                                {ACL_DOUBLE, Product::kHost}};
constexpr uint64_t kMaxRank = 8;  // for aclnnGelu and aclnnGeluBackward

aclnnStatus forward(const char* api, const FloatKernels& kernels, const aclTensor* in,
                    const aclTensor* out, uint64_t* workspace_size, aclOpExecutor** executor) {
  const aclDataType dtype = in->view.dtype;
  return make_elementwise_executor(api, kernels.find(dtype), dtype, NoCoefficients<float>(),
                                   {in, out}, workspace_size, executor);
}

aclnnStatus backward(const char* api, const FloatKernels& kernels, const aclTensor* gradient,
                     const aclTensor* value, const aclTensor* out, uint64_t* workspace_size,
                     aclOpExecutor** executor) {
  const aclDataType dtype = promote_type(gradient->view.dtype, value->view.dtype);
  return make_elementwise_executor(api, kernels.find(dtype), dtype, NoCoefficients<float>(),
                                   {gradient, value, out}, workspace_size, executor);
}

// The gradients' checkers test only the promoted dtype of the two inputs: they accept integers with
// a floating-point dtype, and BFLOAT16 with FLOAT or FLOAT16 on every product.
void check_promoted(Checks& checks, Argument gradient, Argument value) {
  if (!checks.ok()) return;
  const aclDataType first = gradient.tensor->view.dtype, second = value.tensor->view.dtype;
  const aclDataType promoted = promote_type(first, second);
  if (promoted == first) checks.dtype_in(gradient, kTypes);
  if (promoted == second) checks.dtype_in(value, kTypes);
  checks.require(promoted != ACL_DT_UNDEFINED,
                 "%s has dtype %s and %s has dtype %s, expected FLOAT, FLOAT16 or BFLOAT16, or one "
                 "of these beside BOOL, UINT8 or a signed integer; cast one of them",
                 gradient.name, dtype_name(first), value.name, dtype_name(second));
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclnnStatus aclnnGeluGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                      uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnGelu";
  const Argument value{"self", self}, result{"out", out};
  const Given given[] = {value, result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(value)
        .not_null(result)
        .dtype_in(value, kTypes)
        .same_dtype(result, value)
        .public_format(value)
        .public_format(result)
        .rank_at_most(value, kMaxRank)
        .same_shape(result, value)
        .addressable(value)
        .addressable(result);
    if (!checks.ok()) return checks.status();
    return forward(kApi, gelu_kernels().tanh_forward, self, out, workspaceSize, executor);
  });
}

ACLNN_STAGE2(Gelu)

aclnnStatus aclnnGeluBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                              const aclTensor* gradInput, uint64_t* workspaceSize,
                                              aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnGeluBackward";
  const Argument gradient{"gradOutput", gradOutput}, value{"self", self};
  const Argument result{"gradInput", gradInput};
  const Given given[] = {gradient, value, result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(gradient)
        .not_null(value)
        .not_null(result);
    check_promoted(checks, gradient, value);
    if (!checks.ok()) return checks.status();
    // CANN does not check gradInput's dtype: the result is cast to it.
    const aclDataType promoted = promote_type(gradOutput->view.dtype, self->view.dtype);
    const aclDataType dtype = gradInput->view.dtype;
    checks
        .require(dtype == promoted || find_cast(promoted, dtype) != nullptr,
                 "gradInput has dtype %s, to which the host CANN does not cast; expected FLOAT, "
                 "FLOAT16, BFLOAT16, DOUBLE, INT8, INT32 or a complex type",
                 dtype_name(dtype))
        .rank_at_most(gradient, kMaxRank)
        .rank_at_most(value, kMaxRank)
        .broadcast_shape(result, gradient, value)
        .addressable(gradient)
        .addressable(value)
        .addressable(result);
    if (!checks.ok()) return checks.status();
    return backward(kApi, gelu_kernels().tanh_backward, gradOutput, self, gradInput, workspaceSize,
                    executor);
  });
}

ACLNN_STAGE2(GeluBackward)

aclnnStatus aclnnGeluV2GetWorkspaceSize(const aclTensor* x, int64_t approximate, aclTensor* y,
                                        uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnGeluV2";
  const Argument value{"x", x}, result{"y", y};
  const Given given[] = {value, Named{"approximate", approximate}, result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(value)
        .not_null(result)
        .same_dtype(result, value)
        .dtype_in(value, kTypes)
        .same_shape(result, value)
        .require(approximate == 0 || approximate == 1,
                 "approximate is %lld, expected 0 (none) or 1 (tanh)",
                 static_cast<long long>(approximate))
        .addressable(value)
        .addressable(result);
    if (!checks.ok()) return checks.status();
    const GeluKernels& kernels = gelu_kernels();
    return forward(kApi, approximate == 1 ? kernels.tanh_forward : kernels.forward, x, y,
                   workspaceSize, executor);
  });
}

ACLNN_STAGE2(GeluV2)

aclnnStatus aclnnGeluBackwardV2GetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                char* approximate, aclTensor* gradInput,
                                                uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnGeluBackwardV2";
  const Argument gradient{"gradOutput", gradOutput}, value{"self", self};
  const Argument result{"gradInput", gradInput};
  const Named formula{"approximate", static_cast<const char*>(approximate)};
  const Given given[] = {gradient, value, formula, result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(gradient)
        .not_null(value)
        .not_null(formula)
        .not_null(result);
    check_promoted(checks, gradient, value);
    if (checks.ok()) {
      const aclDataType promoted = promote_type(gradOutput->view.dtype, self->view.dtype);
      const aclDataType dtype = gradInput->view.dtype;
      checks.require(dtype == promoted,
                     "gradInput has dtype %s, expected %s, to which gradOutput and self are "
                     "promoted",
                     dtype_name(dtype), dtype_name(promoted));
    }
    checks.broadcast_shape(result, gradient, value);
    if (!checks.ok()) return checks.status();
    const std::string_view text = approximate;
    checks
        .require(text == "none" || text == "tanh",
                 "approximate is \"%s\", expected \"none\" or \"tanh\"", approximate)
        .addressable(gradient)
        .addressable(value)
        .addressable(result);
    if (!checks.ok()) return checks.status();
    const GeluKernels& kernels = gelu_kernels();
    return backward(kApi, text == "tanh" ? kernels.tanh_backward : kernels.backward, gradOutput,
                    self, gradInput, workspaceSize, executor);
  });
}

ACLNN_STAGE2(GeluBackwardV2)
