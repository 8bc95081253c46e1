#include "host_cann/kernels/hardsigmoid.h"

#include "host_cann/kernels/vec_elementwise.h"

namespace aclnn_host {
namespace {

template <class T>
struct Forward {
  using V = VectorOf<T>;

  explicit Forward(NoCoefficients<RealOf<T>>) {}

  V operator()(const V& x) const {
    return at::vec::clamp(x + V(3), V(0), V(6)) * V(RealOf<T>(1) / 6);
  }
};

template <class T>
struct Backward {
  using V = VectorOf<T>;

  explicit Backward(NoCoefficients<RealOf<T>>) {}

  V operator()(const V& g, const V& x) const {
    return V::blendv(V(0), g * V(RealOf<T>(1) / 6), (x > V(-3)) & (x < V(3)));
  }
};

}  // namespace

template <>
const HardsigmoidKernels& hardsigmoid_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr HardsigmoidKernels kKernels = {kernels_of<Forward, NoCoefficients>(),
                                                  kernels_of<Backward, NoCoefficients>()};
  return kKernels;
}

}  // namespace aclnn_host
