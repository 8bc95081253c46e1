#include "host_cann/kernels/elu.h"

#include <cmath>
#include <type_traits>

#include "host_cann/kernels/vec_elementwise.h"
#include "host_cann/kernels/vec_math.h"

namespace aclnn_host {
namespace {

// Each function computes a pair of vectors of elements of type T; kernels/elu.h has the formulas.
// The order of operations is that of CANN's kernels.
template <class T>
using Coefficients = EluCoefficients<RealOf<T>>;

// key > 0 or NaN, or `with_zero` and 0: value * factor; otherwise if_not.
template <bool with_zero = false, class V>
inline V scaled_where_positive(const V& key, const V& value, const V& factor, const V& if_not) {
#if defined(CPU_CAPABILITY_AVX512)
  // Masks the product with the comparison, which avoids a blend.
  if constexpr (std::is_same_v<V, Float>) {
    constexpr int kComparison = with_zero ? _CMP_NLT_UQ : _CMP_NLE_UQ;
    const __mmask16 mask = _mm512_cmp_ps_mask(key, _mm512_setzero_ps(), kComparison);
    return _mm512_mask_mul_ps(if_not, mask, value, factor);
  }
#endif
  return V::blendv(value * factor, if_not, with_zero ? key < V(0) : key <= V(0));
}

// The exponent is <= 0 wherever x <= 0; see is_falling().
template <class T>
struct Forward {
  using V = VectorOf<T>;
  V scale;
  ScaledExpm1<T> negative;

  explicit Forward(const Coefficients<T>& c)
      : scale(c.scale), negative(c.negative_scale, c.input_scale) {}

  // Both branches give 0 for 0; the upper one keeps its sign.
  V operator()(const V& x) const { return scaled_where_positive<true>(x, x, scale, negative(x)); }
};

template <class T>
struct ForwardGrowing {
  using V = VectorOf<T>;
  V scale, negative_scale, input_scale;
  bool keeps_zero;

  explicit ForwardGrowing(const Coefficients<T>& c)
      : scale(c.scale),
        negative_scale(c.negative_scale),
        input_scale(c.input_scale),
        keeps_zero(std::isfinite(c.negative_scale)) {}

  V operator()(const V& x) const {
    const V negative = negative_scale * expm1<T>(x * input_scale);
    return keeps_zero ? scaled_where_positive<true>(x, x, scale, negative)
                      : scaled_where_positive(x, x, scale, negative);
  }
};

template <class T>
struct Threshold {
  using V = VectorOf<T>;
  V scale, value;

  explicit Threshold(const Coefficients<T>& c) : scale(c.scale), value(-c.negative_scale) {}

  V operator()(const V& x) const { return scaled_where_positive(x, x, scale, value); }
};

// As Forward.
template <class T>
struct BackwardFromInput {
  using V = VectorOf<T>;
  V scale, negative_scale, input_scale;

  explicit BackwardFromInput(const Coefficients<T>& c)
      : scale(c.scale), negative_scale(c.negative_scale), input_scale(c.input_scale) {}

  V operator()(const V& g, const V& x) const {
    return scaled_where_positive(
        x, g, scale, g * input_scale * negative_scale * exp_of_nonpositive<T>(x * input_scale));
  }
};

template <class T>
struct BackwardFromInputGrowing : BackwardFromInput<T> {
  using V = VectorOf<T>;
  using BackwardFromInput<T>::BackwardFromInput;

  V operator()(const V& g, const V& x) const {
    return scaled_where_positive(
        x, g, this->scale,
        g * this->input_scale * this->negative_scale * exp<T>(x * this->input_scale));
  }
};

template <class T>
struct BackwardFromResult {
  using V = VectorOf<T>;
  V scale, negative_scale, input_scale;

  explicit BackwardFromResult(const Coefficients<T>& c)
      : scale(c.scale), negative_scale(c.negative_scale), input_scale(c.input_scale) {}

  V operator()(const V& g, const V& y) const {
    return scaled_where_positive(y, g, scale, g * input_scale * (y + negative_scale));
  }
};

// The exponent is not positive where it is used, and the factors are in ScaledExpm1's range.
template <class Real>
bool is_falling(const EluCoefficients<Real>& c) {
  return c.input_scale >= Real(1e-6) && c.input_scale <= Real(1e30) &&
         std::isfinite(c.negative_scale);
}

template <template <class> class Falling, template <class> class Growing, class T>
void kernel_by_input_scale(const void* coefficients, const void* first, const void* second,
                           void* out, int64_t n, bool streaming) {
  const bool falling = is_falling(*static_cast<const Coefficients<T>*>(coefficients));
  const auto chosen =
      falling ? kernel<Falling, EluCoefficients, T> : kernel<Growing, EluCoefficients, T>;
  chosen(coefficients, first, second, out, n, streaming);
}

template <template <class> class Falling, template <class> class Growing>
constexpr FloatKernels kernels_by_input_scale() {
  return {kernel_by_input_scale<Falling, Growing, float>,
          {kernel_by_input_scale<Falling, Growing, c10::Half>, kExpGainsByLookup},
          {kernel_by_input_scale<Falling, Growing, c10::BFloat16>, kExpGainsByLookup},
          kernel_by_input_scale<Falling, Growing, double>};
}

}  // namespace

template <>
const EluKernels& elu_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr EluKernels kKernels = {
      kernels_by_input_scale<Forward, ForwardGrowing>(), kernels_of<Threshold, EluCoefficients>(),
      kernels_by_input_scale<BackwardFromInput, BackwardFromInputGrowing>(),
      kernels_of<BackwardFromResult, EluCoefficients>()};
  return kKernels;
}

}  // namespace aclnn_host
