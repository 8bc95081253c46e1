// The reference: what the vector kernels of SiLU must compute, element by element.

#include "kernels/silu.h"

#include <cmath>

#include "kernels/plain/elementwise.h"

namespace aclnn_host {
namespace {

// 1 / (1 + exp(-x)) without overflow.
template <class Real>
Real sigmoid(Real x) {
  const Real power = std::exp(-std::abs(x));
  return (x < 0 ? power : 1) / (1 + power);
}

struct Forward {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real x) {
    return x * sigmoid(x);
  }
};

struct Backward {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real g, Real x) {
    return g * (sigmoid(x) * (1 + x * sigmoid(-x)));
  }
};

}  // namespace

template <>
const SiluKernels& silu_kernels<Capability::kReference>() noexcept {
  static constexpr SiluKernels kKernels = {kernels_of<Forward, NoCoefficients>(),
                                           kernels_of<Backward, NoCoefficients>()};
  return kKernels;
}

}  // namespace aclnn_host
