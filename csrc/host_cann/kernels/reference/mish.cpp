// The reference: what the vector kernels of Mish must compute, element by element.

#include "host_cann/kernels/mish.h"

#include <cmath>

#include "host_cann/kernels/reference/elementwise_loop.h"

namespace aclnn_host {
namespace {

// The parts of t and t'.
template <class Real>
struct Fraction {
  Real n, m, d;

  explicit Fraction(Real x) {
    const Real e = std::exp(-std::abs(x));
    n = x > 0 ? 1 + 2 * e : e * (e + 2);
    m = 4 * e * (1 + e) * (x > 0 ? e : 1);
    d = n + 2 * (x > 0 ? e * e : 1);
  }
};

struct Forward {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real x) {
    const Fraction<Real> f(x);
    return x * (f.n / f.d);
  }
};

struct Backward {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real g, Real x) {
    const Fraction<Real> f(x);
    return g * ((f.n + x * f.m / f.d) / f.d);
  }
};

}  // namespace

template <>
const MishKernels& mish_kernels<Capability::kReference>() noexcept {
  static constexpr MishKernels kKernels = {kernels_of<Forward, NoCoefficients>(),
                                           kernels_of<Backward, NoCoefficients>()};
  return kKernels;
}

const MishKernels& mish_kernels() noexcept {
  return select_kernels([]<Capability kVersion>() -> auto& { return mish_kernels<kVersion>(); });
}

}  // namespace aclnn_host
