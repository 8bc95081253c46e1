#pragma once

#include "acl/acl_base.h"
#include "host_cann/kernels/elementwise.h"

namespace aclnn_host {

// SELU on integers, scalar code: they exist for conformance, not for speed. The coefficients are
// EluCoefficients<float>. Null for types other than INT32 and INT8.
//   forward : computed in FP32 and truncated toward zero; INT32 saturates, INT8 wraps around.
//   backward: integer -> FP16 -> FP32, computed, -> FP16 -> integer, to nearest even and
//   saturating.
ElementwiseKernel::Function selu_integer_forward(aclDataType dtype);
ElementwiseKernel::Function selu_integer_backward(aclDataType dtype);

}  // namespace aclnn_host
