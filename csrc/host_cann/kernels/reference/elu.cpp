// The reference for the ELU and SELU vector kernels, element by element.

#include "host_cann/kernels/elu.h"

#include <cmath>

#include "host_cann/kernels/reference/elementwise_loop.h"

namespace aclnn_host {
namespace {

struct Forward {
  template <class Real>
  static Real apply(const EluCoefficients<Real>& c, Real x) {
    const bool negative = x < 0 || (x == 0 && !std::isfinite(c.negative_scale));
    return negative ? c.negative_scale * std::expm1(x * c.input_scale) : c.scale * x;
  }
};

struct Threshold {
  template <class Real>
  static Real apply(const EluCoefficients<Real>& c, Real x) {
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

}  // namespace

template <>
const EluKernels& elu_kernels<Capability::kReference>() noexcept {
  static constexpr EluKernels kKernels = {kernels_of<Forward, EluCoefficients>(),
                                          kernels_of<Threshold, EluCoefficients>(),
                                          kernels_of<BackwardFromInput, EluCoefficients>(),
                                          kernels_of<BackwardFromResult, EluCoefficients>()};
  return kKernels;
}

const EluKernels& elu_kernels() noexcept {
  return select_kernels([]<Capability kVersion>() -> auto& { return elu_kernels<kVersion>(); });
}

}  // namespace aclnn_host
