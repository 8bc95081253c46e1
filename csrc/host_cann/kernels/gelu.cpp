#include "host_cann/kernels/gelu.h"

#include <array>

#include "host_cann/kernels/vec_elementwise.h"
#include "host_cann/kernels/vec_math.h"

namespace aclnn_host {
namespace {

// Phi(-z) = exp(-z^2 / 2) * t * P(t) with t = 1 / (1 + kStep * z), for z >= 0. The coefficients of
// P minimise the largest relative error: 2^-25 for float and 2^-19 for the 16-bit types, without
// rounding errors.
template <class T>
struct Tail {
  static constexpr float kStep = 0.33f;
  static constexpr auto kP = std::to_array(
      {0.13163922727108002f, 0.13192695379257202f, 0.1145729273557663f, 0.10361094027757645f,
       0.0015219033230096102f, 0.10653145611286163f, -0.11345121264457703f, -0.0007464486407116055f,
       0.035352274775505066f, -0.01095803827047348f});
};
template <Narrow T>
struct Tail<T> {
  static constexpr float kStep = 0.36f;
  static constexpr auto kP = std::to_array(
      {0.1437089741230011f, 0.14183038473129272f, 0.13940006494522095f, 0.02742665633559227f,
       0.1796775758266449f, -0.17882655560970306f, 0.0467824749648571f});
};

// The normal distribution at x: exp(-x^2 / 2), and its distribution function.
template <class T>
struct Normal {
  using V = VectorOf<T>;
  V power, below;

  explicit Normal(const V& x) {
    const V z = x.abs();
    power = exp_of_nonpositive<T>(z * V(-0.5) * z);
    const V tail = tail_of(z);
    below = V::blendv(V(1) - tail, tail, x < V(0));
  }

 private:
  V tail_of(const V& z) const {
    if constexpr (std::is_same_v<T, double>) {
      return V(0.5) * (z * V(0.70710678118654752440)).erfc();
    } else {
      const V t = V(1) / at::vec::fmadd(V(Tail<T>::kStep), z, V(1));
      return power * (t * polynomial(t, Tail<T>::kP));
    }
  }
};

template <class T>
struct Forward {
  using V = VectorOf<T>;

  explicit Forward(NoCoefficients<RealOf<T>>) {}

  V operator()(const V& x) const { return x * Normal<T>(x).below; }
};

template <class T>
struct Backward {
  using V = VectorOf<T>;

  explicit Backward(NoCoefficients<RealOf<T>>) {}

  V operator()(const V& g, const V& x) const {
    const Normal<T> normal(x);
    const V density = normal.power * V(static_cast<RealOf<T>>(0.39894228040143267794));
    return g * at::vec::fmadd(x, density, normal.below);
  }
};

template <class T>
struct TanhForward {
  using V = VectorOf<T>;

  explicit TanhForward(NoCoefficients<RealOf<T>>) {}

  V operator()(const V& x) const {
    const V slope = at::vec::fmadd(x * x, V(static_cast<RealOf<T>>(kGeluCubic)),
                                   V(static_cast<RealOf<T>>(kGeluLinear)));
    return x * Sigmoid<T>(x * slope).value;
  }
};

template <class T>
struct TanhBackward {
  using V = VectorOf<T>;

  explicit TanhBackward(NoCoefficients<RealOf<T>>) {}

  V operator()(const V& g, const V& x) const {
    const V linear(static_cast<RealOf<T>>(kGeluLinear));
    const V square = at::vec::clamp_max(x * x, V(static_cast<RealOf<T>>(kGeluGreatestSquare)));
    const V slope = at::vec::fmadd(square, V(static_cast<RealOf<T>>(kGeluCubic)), linear);
    const V derivative = at::vec::fmadd(square, V(static_cast<RealOf<T>>(3 * kGeluCubic)), linear);
    const Sigmoid<T> s(x * slope);
    // In this order, a large x is multiplied by 0 and does not overflow.
    return g * at::vec::fmadd(s.value * s.complement * x, derivative, s.value);
  }
};

}  // namespace

template <>
const GeluKernels& gelu_kernels<Capability::CPU_CAPABILITY>() noexcept {
  constexpr bool kGainsByLookup = true;  // with AVX-512, too
  static constexpr GeluKernels kKernels = {
      kernels_of<Forward, NoCoefficients, kGainsByLookup>(), kernels_of<Backward, NoCoefficients>(),
      kernels_of<TanhForward, NoCoefficients, kGainsByLookup>(),
      kernels_of<TanhBackward, NoCoefficients>()};
  return kKernels;
}

}  // namespace aclnn_host
