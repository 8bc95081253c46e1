#include "host_cann/kernels/hardswish.h"

#include "host_cann/kernels/vec_elementwise.h"

namespace aclnn_host {
namespace {

template <class T>
struct Forward {
  using V = VectorOf<T>;

  explicit Forward(NoCoefficients<RealOf<T>>) {}

  // The factor of x is exactly 0 and 1 in the outer branches; -inf is replaced by -3, because 0
  // times inf is NaN.
  V operator()(const V& x) const {
    const V share = at::vec::clamp(x + V(3), V(0), V(6)) * V(RealOf<T>(1) / 6);
    return at::vec::clamp_min(x, V(-3)) * share;
  }
};

template <class T>
struct Backward {
  using V = VectorOf<T>;

  explicit Backward(NoCoefficients<RealOf<T>>) {}

  V operator()(const V& g, const V& x) const {
    const V slope = (x + V(RealOf<T>(1.5))) * V(RealOf<T>(1) / 3);
    const V risen = V::blendv(V(1), slope, x <= V(3));
    return g * V::blendv(risen, V(0), x < V(-3));
  }
};

template <class T>
struct BackwardV2 {
  using V = VectorOf<T>;

  explicit BackwardV2(NoCoefficients<RealOf<T>>) {}

  V operator()(const V& g, const V& x) const {
    const V slope = (x + V(RealOf<T>(1.5))) * V(RealOf<T>(1) / 3);
    const V risen = V::blendv(V(1), slope, x < V(3));
    return g * V::blendv(risen, V(0), x <= V(-3));
  }
};

}  // namespace

template <>
const HardswishKernels& hardswish_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr HardswishKernels kKernels = {kernels_of<Forward, NoCoefficients>(),
                                                kernels_of<Backward, NoCoefficients>(),
                                                kernels_of<BackwardV2, NoCoefficients>()};
  return kKernels;
}

}  // namespace aclnn_host
