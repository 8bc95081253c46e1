#include "host_cann/kernels/softplus.h"

#include "host_cann/kernels/vec_elementwise.h"
#include "host_cann/kernels/vec_math.h"

namespace aclnn_host {
namespace {

template <class T>
using Coefficients = SoftplusCoefficients<RealOf<T>>;

template <class T>
struct Forward {
  using V = VectorOf<T>;
  V beta, inverse, threshold;

  explicit Forward(const Coefficients<T>& c)
      : beta(c.beta), inverse(1 / c.beta), threshold(c.threshold) {}

  V operator()(const V& x) const {
    const V v = x * beta;
    const V curved =
        add_log1p<T>(at::vec::clamp_min(v, V(0)), exp_of_nonpositive<T>(v.abs().neg()));
    return V::blendv(curved * inverse, x, v > threshold);
  }
};

template <class T>
struct Backward {
  using V = VectorOf<T>;
  V beta, threshold;

  explicit Backward(const Coefficients<T>& c) : beta(c.beta), threshold(c.threshold) {}

  V operator()(const V& g, const V& x) const {
    const V v = x * beta;
    return V::blendv(g * Sigmoid<T>(v).value, g, v > threshold);
  }
};

}  // namespace

template <>
const SoftplusKernels& softplus_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr SoftplusKernels kKernels = {
      kernels_of<Forward, SoftplusCoefficients, kExpGainsByLookup>(),
      kernels_of<Backward, SoftplusCoefficients>()};
  return kKernels;
}

}  // namespace aclnn_host
