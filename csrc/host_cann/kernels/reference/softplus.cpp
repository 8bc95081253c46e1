// The reference for the Softplus vector kernels, element by element.

#include "host_cann/kernels/softplus.h"

#include <algorithm>
#include <cmath>

#include "host_cann/kernels/reference/elementwise_loop.h"
#include "host_cann/kernels/reference/sigmoid.h"

namespace aclnn_host {
namespace {

struct Forward {
  template <class Real>
  static Real apply(const SoftplusCoefficients<Real>& c, Real x) {
    const Real v = x * c.beta;
    if (v > c.threshold) return x;
    return (std::max(v, Real(0)) + std::log1p(std::exp(-std::abs(v)))) / c.beta;
  }
};

struct Backward {
  template <class Real>
  static Real apply(const SoftplusCoefficients<Real>& c, Real g, Real x) {
    const Real v = x * c.beta;
    return v > c.threshold ? g : g * sigmoid(v);
  }
};

}  // namespace

template <>
const SoftplusKernels& softplus_kernels<Capability::kReference>() noexcept {
  static constexpr SoftplusKernels kKernels = {kernels_of<Forward, SoftplusCoefficients>(),
                                               kernels_of<Backward, SoftplusCoefficients>()};
  return kKernels;
}

const SoftplusKernels& softplus_kernels() noexcept {
  return select_kernels(
      []<Capability kVersion>() -> auto& { return softplus_kernels<kVersion>(); });
}

}  // namespace aclnn_host
