#include "host_cann/kernels/selu_integer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <c10/util/Half.h>

#include "host_cann/kernels/elu.h"

namespace aclnn_host {
namespace {

template <class T>
T saturate(float value) {
  if (std::isnan(value)) return 0;
  using Limits = std::numeric_limits<T>;
  // In double, where the limits of INT32 are exact.
  return static_cast<T>(
      std::clamp(static_cast<double>(value), double{Limits::min()}, double{Limits::max()}));
}

template <class T>
void forward(const void* coefficients, const void* first, const void*, void* out, int64_t n, bool) {
  const auto& c = *static_cast<const EluCoefficients<float>*>(coefficients);
  for (int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<float>(static_cast<const T*>(first)[i]);
    const float y = std::trunc(x > 0 ? c.scale * x : c.negative_scale * std::expm1(x));
    const auto wide = saturate<int32_t>(y);
    static_cast<T*>(out)[i] = static_cast<T>(static_cast<std::make_unsigned_t<T>>(wide));
  }
}

template <class T>
void backward(const void* coefficients, const void* first, const void* second, void* out, int64_t n,
              bool) {
  const auto& c = *static_cast<const EluCoefficients<float>*>(coefficients);
  const auto widen = [](T value) {
    return static_cast<float>(c10::Half(static_cast<float>(value)));
  };
  for (int64_t i = 0; i < n; ++i) {
    const float g = widen(static_cast<const T*>(first)[i]);
    const float y = widen(static_cast<const T*>(second)[i]);
    const float gradient = y > 0 ? g * c.scale : g * (y + c.negative_scale);
    static_cast<T*>(out)[i] = saturate<T>(std::nearbyint(static_cast<float>(c10::Half(gradient))));
  }
}

}  // namespace

ElementwiseKernel::Function selu_integer_forward(aclDataType dtype) {
  if (dtype == ACL_INT32) return forward<int32_t>;
  return dtype == ACL_INT8 ? forward<int8_t> : nullptr;
}

ElementwiseKernel::Function selu_integer_backward(aclDataType dtype) {
  if (dtype == ACL_INT32) return backward<int32_t>;
  return dtype == ACL_INT8 ? backward<int8_t> : nullptr;
}

}  // namespace aclnn_host
