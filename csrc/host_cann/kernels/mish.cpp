#include "host_cann/kernels/mish.h"

#include "host_cann/kernels/vec_elementwise.h"
#include "host_cann/kernels/vec_math.h"

namespace aclnn_host {
namespace {

// What both formulas start from; `tail` is e where x > 0, else 1.
template <class T>
struct Fraction {
  using V = VectorOf<T>;
  V e, tail, n, d;

  explicit Fraction(const V& x) : e(exp_of_nonpositive<T>(x.abs().neg())) {
    const V twice = e + e;
    const auto positive = x > V(0);
    tail = V::blendv(V(1), e, positive);
    n = at::vec::fmadd(e, V::blendv(e, V(0), positive), V::blendv(twice, twice + V(1), positive));
    d = at::vec::fmadd(tail + tail, tail, n);
  }
};

template <class T>
struct Forward {
  using V = VectorOf<T>;

  explicit Forward(NoCoefficients<RealOf<T>>) {}

  V operator()(const V& x) const {
    const Fraction<T> f(x);
    return x * (f.n / f.d);
  }
};

template <class T>
struct Backward {
  using V = VectorOf<T>;

  explicit Backward(NoCoefficients<RealOf<T>>) {}

  V operator()(const V& g, const V& x) const {
    const Fraction<T> f(x);
    const V inverse = V(1) / f.d;
    const V m = V(4) * f.e * (V(1) + f.e) * f.tail;
    return g * (at::vec::fmadd(x * m, inverse, f.n) * inverse);
  }
};

}  // namespace

template <>
const MishKernels& mish_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr MishKernels kKernels = {kernels_of<Forward, NoCoefficients, kExpGainsByLookup>(),
                                           kernels_of<Backward, NoCoefficients>()};
  return kKernels;
}

}  // namespace aclnn_host
