// The reference for the Hardswish vector kernels, element by element.

#include "host_cann/kernels/hardswish.h"

#include "host_cann/kernels/reference/elementwise_loop.h"

namespace aclnn_host {
namespace {

struct Forward {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real x) {
    if (x <= -3) return -Real(0);
    return x >= 3 ? x : x * ((x + 3) / 6);
  }
};

struct Backward {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real g, Real x) {
    return g * (x < -3 ? 0 : x <= 3 ? (x + Real(1.5)) / 3 : 1);
  }
};

struct BackwardV2 {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real g, Real x) {
    return g * (x <= -3 ? 0 : x < 3 ? (x + Real(1.5)) / 3 : 1);
  }
};

}  // namespace

template <>
const HardswishKernels& hardswish_kernels<Capability::kReference>() noexcept {
  static constexpr HardswishKernels kKernels = {kernels_of<Forward, NoCoefficients>(),
                                                kernels_of<Backward, NoCoefficients>(),
                                                kernels_of<BackwardV2, NoCoefficients>()};
  return kKernels;
}

const HardswishKernels& hardswish_kernels() noexcept {
  return select_kernels(
      []<Capability kVersion>() -> auto& { return hardswish_kernels<kVersion>(); });
}

}  // namespace aclnn_host
