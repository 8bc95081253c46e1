// The reference for the SiLU vector kernels, element by element.

#include "host_cann/kernels/silu.h"

#include "host_cann/kernels/reference/elementwise_loop.h"
#include "host_cann/kernels/reference/sigmoid.h"

namespace aclnn_host {
namespace {

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

const SiluKernels& silu_kernels() noexcept {
  return select_kernels([]<Capability kVersion>() -> auto& { return silu_kernels<kVersion>(); });
}

}  // namespace aclnn_host
