#include "host_cann/kernels/silu.h"

#include "host_cann/kernels/vec_elementwise.h"
#include "host_cann/kernels/vec_math.h"

namespace aclnn_host {
namespace {

template <class T>
struct Forward {
  using V = VectorOf<T>;

  explicit Forward(NoCoefficients<RealOf<T>>) {}

  V operator()(const V& x) const { return x * Sigmoid<T>(x).value; }
};

template <class T>
struct Backward {
  using V = VectorOf<T>;

  explicit Backward(NoCoefficients<RealOf<T>>) {}

  V operator()(const V& g, const V& x) const {
    const Sigmoid<T> s(x);
    return g * (s.value * at::vec::fmadd(x, s.complement, V(1)));
  }
};

}  // namespace

template <>
const SiluKernels& silu_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr SiluKernels kKernels = {kernels_of<Forward, NoCoefficients, kExpGainsByLookup>(),
                                           kernels_of<Backward, NoCoefficients>()};
  return kKernels;
}

}  // namespace aclnn_host
