// Included by the references of elementwise kernels.
#pragma once

#include <cstdint>
#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "host_cann/kernels/elementwise.h"

namespace aclnn_host {
namespace {

// The ElementwiseKernel of Function::apply(coefficients, first, second); a unary function omits the
// second. 16-bit elements are widened once and rounded once.
template <class Function, template <class> class Coefficients, class T>
void kernel(const void* coefficients, const void* first, const void* second, void* out, int64_t n,
            bool) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto& c = *static_cast<const Coefficients<Real>*>(coefficients);
  const auto at = [](const void* elements, int64_t i) {
    return static_cast<Real>(static_cast<const T*>(elements)[i]);
  };
  for (int64_t i = 0; i < n; ++i) {
    T& result = static_cast<T*>(out)[i];
    if constexpr (requires(Real x) { Function::apply(c, x); }) {
      result = static_cast<T>(Function::apply(c, at(first, i)));
    } else {
      result = static_cast<T>(Function::apply(c, at(first, i), at(second, i)));
    }
  }
}

template <class Function, template <class> class Coefficients>
constexpr FloatKernels kernels_of() {
  constexpr bool kGainsByLookup = true;
  return {kernel<Function, Coefficients, float>,
          {kernel<Function, Coefficients, c10::Half>, kGainsByLookup},
          {kernel<Function, Coefficients, c10::BFloat16>, kGainsByLookup},
          kernel<Function, Coefficients, double>};
}

}  // namespace
}  // namespace aclnn_host
