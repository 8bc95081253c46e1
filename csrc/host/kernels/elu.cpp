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
#if defined(CPU_CAPABILITY_AVX512)
  // blendv would widen the comparison's mask into a vector and narrow it again.
  if constexpr (std::is_same_v<V, Float>) {
    const __mmask16 mask = _mm512_cmp_ps_mask(key, _mm512_setzero_ps(), _CMP_LE_OQ);
    return _mm512_mask_blend_ps(mask, if_positive, if_not);
  }
#endif
  return V::blendv(if_positive, if_not, key <= V(0));
}

// For input_scale >= 0, so that where x <= 0 counts, so is the exponent.
struct Forward {
  template <bool kCoarse, class V>
  static V apply(const Coefficients<V>& c, const V& x, const V&) {
    return select(x, c.scale * x,
                  c.negative_scale * expm1_of_nonpositive<kCoarse>(x * c.input_scale));
  }
};

struct ForwardGrowing {
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
  if constexpr (std::is_same_v<Function, Forward>) {
    if (values.input_scale < 0) {
      return kernel<ForwardGrowing, T>(coefficients, first, second, out, n, streaming);
    }
  }
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
