#include "kernels/elu.h"

#include <type_traits>

#include "kernels/vec_loop.h"
#include "kernels/vec_math.h"

namespace aclnn_host {
namespace {

// Each function is `apply<kCoarse>(coefficients, first, second)` on vectors; kernels/elu.h has the
// formulas, and the order of the operations is that of CANN's kernels.
template <class V>
struct Coefficients {
  V scale;
  V negative_scale;
  V input_scale;
};

template <class V>
inline V select(const V& key, const V& if_positive, const V& if_not) {
  return V::blendv(if_positive, if_not, key <= V(0));
}

struct Forward {
  template <bool kCoarse, class V>
  static V apply(const Coefficients<V>& c, const V& x, const V&) {
    return select(x, c.scale * x, c.negative_scale * expm1<kCoarse>(x * c.input_scale));
  }
};

struct Threshold {
  template <bool kCoarse, class V>
  static V apply(const Coefficients<V>& c, const V& x, const V&) {
    return select(x, c.scale * x, c.negative_scale.neg());
  }
};

struct BackwardFromInput {
  template <bool kCoarse, class V>
  static V apply(const Coefficients<V>& c, const V& g, const V& x) {
    return select(x, g * c.scale,
                  g * c.input_scale * c.negative_scale * exp<kCoarse>(x * c.input_scale));
  }
};

struct BackwardFromResult {
  template <bool kCoarse, class V>
  static V apply(const Coefficients<V>& c, const V& g, const V& y) {
    return select(y, g * c.scale, g * c.input_scale * (y + c.negative_scale));
  }
};

template <class Function, class T>
void kernel(const void* coefficients, const void* first, const void* second, void* out, int64_t n,
            bool streaming) {
  using V = typename Lanes<T>::Compute;
  using Real = typename V::value_type;
  const auto& values = *static_cast<const EluCoefficients<Real>*>(coefficients);
  const Coefficients<V> c{V(values.scale), V(values.negative_scale), V(values.input_scale)};
  loop(static_cast<const T*>(first), static_cast<const T*>(second), static_cast<T*>(out), n,
       streaming, [&c](const V& a, const V& b) {
         return Function::template apply<Lanes<T>::kCoarse>(c, a, b);
       });
}

template <class Function>
constexpr FloatKernels kernels_of() {
  return {kernel<Function, float>, kernel<Function, c10::Half>, kernel<Function, c10::BFloat16>,
          kernel<Function, double>};
}

}  // namespace

template <>
const EluKernels& elu_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr EluKernels kKernels = {kernels_of<Forward>(), kernels_of<Threshold>(),
                                          kernels_of<BackwardFromInput>(),
                                          kernels_of<BackwardFromResult>()};
  return kKernels;
}

}  // namespace aclnn_host
