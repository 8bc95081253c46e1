// The reference: what the vector kernels of SiLU must compute, element by element.

#include "kernels/silu.h"

#include "kernels/plain/elementwise.h"
#include "kernels/plain/sigmoid.h"

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

}  // namespace aclnn_host
