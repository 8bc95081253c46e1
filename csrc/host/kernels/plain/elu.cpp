// The reference: what the vector kernels of ELU and SELU must compute, element by element.

#include "kernels/elu.h"

#include <cmath>
#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace aclnn_host {
namespace {

struct Forward {
  template <class Real>
  static Real apply(const EluCoefficients<Real>& c, Real x, Real) {
    const bool negative = x < 0 || (x == 0 && !std::isfinite(c.negative_scale));
    return negative ? c.negative_scale * std::expm1(x * c.input_scale) : c.scale * x;
  }
};

struct Threshold {
  template <class Real>
  static Real apply(const EluCoefficients<Real>& c, Real x, Real) {
    return x <= 0 ? -c.negative_scale : c.scale * x;
  }
};

struct BackwardFromInput {
  template <class Real>
  static Real apply(const EluCoefficients<Real>& c, Real g, Real x) {
    return x <= 0 ? g * c.input_scale * c.negative_scale * std::exp(x * c.input_scale)
                  : g * c.scale;
  }
};

struct BackwardFromResult {
  template <class Real>
  static Real apply(const EluCoefficients<Real>& c, Real g, Real y) {
    return y <= 0 ? g * c.input_scale * (y + c.negative_scale) : g * c.scale;
  }
};

// 16-bit elements are widened once and rounded once.
template <class Function, class T>
void loop(const void* coefficients, const void* first, const void* second, void* out, int64_t n,
          bool) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto& c = *static_cast<const EluCoefficients<Real>*>(coefficients);
  const auto* a = static_cast<const T*>(first);
  const auto* b = static_cast<const T*>(second);
  for (int64_t i = 0; i < n; ++i) {
    const Real second_value = b ? static_cast<Real>(b[i]) : Real(0);
    static_cast<T*>(out)[i] =
        static_cast<T>(Function::apply(c, static_cast<Real>(a[i]), second_value));
  }
}

template <class Function>
constexpr FloatKernels kernels_of() {
  return {loop<Function, float>, loop<Function, c10::Half>, loop<Function, c10::BFloat16>,
          loop<Function, double>};
}

}  // namespace

template <>
const EluKernels& elu_kernels<Capability::kReference>() noexcept {
  static constexpr EluKernels kKernels = {kernels_of<Forward>(), kernels_of<Threshold>(),
                                          kernels_of<BackwardFromInput>(),
                                          kernels_of<BackwardFromResult>()};
  return kKernels;
}

}  // namespace aclnn_host
