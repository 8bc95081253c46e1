// The reference for the GELU vector kernels, element by element.

#include "host_cann/kernels/gelu.h"

#include <algorithm>
#include <cmath>

#include "host_cann/kernels/reference/elementwise_loop.h"
#include "host_cann/kernels/reference/sigmoid.h"

namespace aclnn_host {
namespace {

// The normal distribution function. In double: far from 0 it changes by more than the rounding of
// the argument.
double share_below(double x) {
  return std::erfc(x * -0.70710678118654752440) / 2;
}

template <class Real>
Real square_of(Real x) {
  const Real square = x * x;
  return square > Real(kGeluGreatestSquare) ? Real(kGeluGreatestSquare) : square;
}

struct Forward {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real x) {
    return static_cast<Real>(x * share_below(x));
  }
};

struct Backward {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real g, Real x) {
    const double wide = x;
    const double density = 0.39894228040143267794 * std::exp(wide * wide / -2);
    return static_cast<Real>(g * (share_below(x) + x * density));
  }
};

struct TanhForward {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real x) {
    return x * sigmoid(x * (Real(kGeluLinear) + Real(kGeluCubic) * (x * x)));
  }
};

struct TanhBackward {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real g, Real x) {
    const Real square = square_of(x);
    const Real v = x * (Real(kGeluLinear) + Real(kGeluCubic) * square);
    const Real derivative = Real(kGeluLinear) + Real(3 * kGeluCubic) * square;
    return g * (sigmoid(v) + sigmoid(v) * sigmoid(-v) * x * derivative);
  }
};

}  // namespace

template <>
const GeluKernels& gelu_kernels<Capability::kReference>() noexcept {
  static constexpr GeluKernels kKernels = {
      kernels_of<Forward, NoCoefficients>(), kernels_of<Backward, NoCoefficients>(),
      kernels_of<TanhForward, NoCoefficients>(), kernels_of<TanhBackward, NoCoefficients>()};
  return kKernels;
}

const GeluKernels& gelu_kernels() noexcept {
  return select_kernels([]<Capability kVersion>() -> auto& { return gelu_kernels<kVersion>(); });
}

}  // namespace aclnn_host
