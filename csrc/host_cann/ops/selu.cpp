// aclnnSelu, aclnnInplaceSelu, aclnnSeluBackward. SELU is ELU with fixed coefficients, and
// shares its kernels; integers have their own.

#include <algorithm>

#include "host_cann/kernels/elu.h"
#include "host_cann/kernels/selu_integer.h"

#include "aclnnop/aclnn_selu.h"
#include "aclnnop/aclnn_selu_backward.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/elementwise_plan.h"

namespace aclnn_host {
namespace {

constexpr double kScale = 1.0507009873554804934193349852946;
constexpr double kAlpha = 1.6732632423543772848170429916717;

template <class Real>
constexpr EluCoefficients<Real> kSelu = {static_cast<Real>(kScale),
                                         static_cast<Real>(kScale * kAlpha), Real(1)};

constexpr Product kAll = Product::kAscend310P;
constexpr DtypeRule kTypes[] = {{ACL_FLOAT, kAll},
                                {ACL_FLOAT16, kAll},
                                {ACL_INT32, kAll},
                                {ACL_INT8, kAll},
                                {ACL_BF16, Product::kAscend910B},
                                {ACL_DOUBLE, Product::kHost}};

aclnnStatus make_executor(const char* api, const FloatKernels& floating,
                          ElementwiseKernel::Function integer,
                          std::initializer_list<const aclTensor*> tensors, uint64_t* workspace_size,
                          aclOpExecutor** executor) {
  const aclDataType dtype = (*tensors.begin())->view.dtype;
  if (dtype == ACL_DOUBLE) {
    return make_elementwise_executor(api, floating.float64, dtype, kSelu<double>, tensors,
                                     workspace_size, executor);
  }
  const ElementwiseKernel kernel = integer != nullptr ? integer : floating.find(dtype);
  return make_elementwise_executor(api, kernel, dtype, kSelu<float>, tensors, workspace_size,
                                   executor);
}

// aclnnSelu and, with out = self, aclnnInplaceSelu; `tensors` are in the prototype's order.
aclnnStatus forward(const char* api, Argument self, Argument out,
                    std::initializer_list<const aclTensor*> tensors, uint64_t* workspace_size,
                    aclOpExecutor** executor) {
  const Given given[] = {self, out};
  return stage1(api, given, [&]() -> aclnnStatus {
    Checks checks(api);
    checks.results_not_null(workspace_size, executor)
        .not_null(self)
        .not_null(out)
        .dtype_in(self, kTypes)
        .dtype_in(out, kTypes)
        .same_shape(out, self)
        .addressable(self)
        .addressable(out);
    if (!checks.ok()) return checks.status();
    return make_executor(api, elu_kernels().forward, selu_integer_forward(self.tensor->view.dtype),
                         tensors, workspace_size, executor);
  });
}

// The kernel of the gradient has one dtype; a call without elements needs none.
void require_kernel(Checks& checks, Argument gradient, Argument value) {
  if (!checks.ok()) return;
  const TensorView& view = gradient.tensor->view;
  const bool is_empty = std::find(view.shape.begin(), view.shape.end(), 0) != view.shape.end();
  checks.require_status(is_empty || value.tensor->view.dtype == view.dtype, ACLNN_ERR_INNER_NULLPTR,
                        "%s has dtype %s, for which there is no kernel with %s of %s; pass the "
                        "same dtype",
                        value.name, dtype_name(value.tensor->view.dtype), gradient.name,
                        dtype_name(view.dtype));
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclnnStatus aclnnSeluGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                      uint64_t* workspaceSize, aclOpExecutor** executor) {
  return forward("aclnnSelu", {"self", self}, {"out", out}, {self, out}, workspaceSize, executor);
}

ACLNN_STAGE2(Selu)

aclnnStatus aclnnInplaceSeluGetWorkspaceSize(aclTensor* selfRef, uint64_t* workspaceSize,
                                             aclOpExecutor** executor) {
  return forward("aclnnInplaceSelu", {"selfRef", selfRef}, {"selfRef", selfRef}, {selfRef},
                 workspaceSize, executor);
}

ACLNN_STAGE2(InplaceSelu)

aclnnStatus aclnnSeluBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* result,
                                              aclTensor* gradInput, uint64_t* workspaceSize,
                                              aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnSeluBackward";
  const Argument gradient{"gradOutput", gradOutput};
  const Argument value{"result", result};
  const Argument out{"gradInput", gradInput};
  const Given given[] = {gradient, value, out};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor)
        .not_null(gradient)
        .not_null(value)
        .not_null(out);
    // Up to CANN 9.1 the dtypes may differ: the result is cast to gradInput's.
    const bool may_differ = checks.cann_release() <= CannRelease::k9_1;
    if (!may_differ) checks.same_dtype(value, gradient).same_dtype(out, gradient);
    checks.dtype_in(gradient, kTypes);
    if (may_differ) checks.dtype_in(value, kTypes).dtype_in(out, kTypes);
    checks.same_shape(value, gradient).same_shape(out, gradient);
    if (may_differ) require_kernel(checks, gradient, value);
    checks.addressable(gradient).addressable(value).addressable(out);
    if (!checks.ok()) return checks.status();
    return make_executor(kApi, elu_kernels().backward_from_result,
                         selu_integer_backward(gradOutput->view.dtype),
                         {gradOutput, result, gradInput}, workspaceSize, executor);
  });
}

ACLNN_STAGE2(SeluBackward)
