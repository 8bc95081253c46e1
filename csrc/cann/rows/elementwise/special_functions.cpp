// Special functions: error, gamma and logistic functions, and the Fresnel integrals.

#include <complex>
#include <numbers>

#include "cann/rows/elementwise/write_elementwise.h"
#include "cann/rows/row.h"

namespace aclnn_host::elementwise_special_functions_rows {

namespace {

std::optional<double> epsilon(double eps) {
  return eps < 0 ? std::nullopt : std::optional(eps);
}

using Complex = std::complex<double>;

constexpr double kPi = std::numbers::pi;

// exp(i pi/2 x^2), which has period 4 in x^2.
Complex rotation(double x) {
  const double quarters = std::fmod(x * x, 4);
  return std::polar(1.0, kPi / 2 * quarters);
}

// The integral of exp(i pi/2 t^2) from 0 to a small x, by the exponential series.
Complex series(double x) {
  const Complex step(0, kPi / 2 * x * x);
  Complex term = x;
  Complex sum = x;
  for (int n = 1; n < 100; ++n) {
    term *= step / static_cast<double>(n);
    const Complex next = term / static_cast<double>(2 * n + 1);
    sum += next;
    if (std::abs(next) < std::numeric_limits<double>::epsilon() * std::abs(sum)) break;
  }
  return sum;
}

// The same integral to a larger x: (1 + i)/2 erf(z) with z = (1 - i) sqrt(pi)/2 x, by the continued
// fraction of the complementary error function, evaluated from the tail.
Complex continued_fraction(double x) {
  constexpr int kTerms = 100;
  const Complex z = Complex(1, -1) * (std::sqrt(kPi) / 2 * x);
  const Complex twice_square(0, -kPi * x * x);
  Complex tail = 0;
  for (int n = kTerms; n > 0; --n) {
    const double numerator = (2.0 * n - 1) * (2.0 * n);
    tail = numerator / (twice_square + (4.0 * n + 1) - tail);
  }
  const Complex complement = rotation(x) * 2.0 * z / (std::sqrt(kPi) * (twice_square + 1.0 - tail));
  return Complex(0.5, 0.5) * (1.0 - complement);
}

// C(x) + i S(x) for x >= 0.
Complex fresnel(double x) {
  constexpr double kSmall = 1.5;
  constexpr double kLarge = 1e15;
  if (x < kSmall) return series(x);
  return x < kLarge ? continued_fraction(x) : Complex(0.5, 0.5);
}

double fresnel_cosine(double x) {
  return fresnel(x).real();
}
double fresnel_sine(double x) {
  return fresnel(x).imag();
}

// Applies an odd function, given for x >= 0, to every element.
at::Tensor odd_function(const at::Tensor& x, double (*function)(double)) {
  const at::Tensor from = x.to(at::kDouble).contiguous();
  const at::Tensor to = at::empty_like(from);
  if (from.is_cpu()) {
    const double* const elements = from.const_data_ptr<double>();
    double* const results = to.mutable_data_ptr<double>();
    for (int64_t i = 0; i < from.numel(); ++i) {
      const double value = elements[i];
      results[i] = std::isnan(value) ? value : std::copysign(function(std::abs(value)), value);
    }
  }
  return to.to(wide(x.scalar_type()));
}

}  // namespace

ACLNN_ELEMENTWISE(Erf, at::erf)
ACLNN_ELEMENTWISE(Erfc, at::erfc)
ACLNN_ELEMENTWISE(Erfinv, at::erfinv)
ACLNN(Ndtri, (Floating<In>, self), (Like<Out>, out, "self")) {
  out = at::special_ndtri(wide(self));
}

ACLNN(Lgamma, (Floating<In>, self), (SameDtype<Out>, out, "self")) {
  out = at::lgamma(self);
}
ACLNN(Digamma, (Floating<In>, self), (SameDtype<Out>, out, "self")) {
  out = at::digamma(self);
}

ACLNN(FresnelCos, (Floating<In>, x), (Like<Out>, out, "x")) {
  out = odd_function(x, fresnel_cosine);
}
ACLNN(FresnelSin, (Floating<In>, x), (Like<Out>, out, "x")) {
  out = odd_function(x, fresnel_sine);
}

// eps is -1 if there is no clamping.
ACLNN(Logit, (In, input), (double, eps), (Out, out)) {
  out = at::logit(wide(input), epsilon(eps));
}
// Behaviour of LogitGrad: The gradient is NaN if the input is NaN.
ACLNN(LogitGrad, (Floating<In>, x), (Floating<In>, dy), (double, eps), (Out, dx)) {
  // ATen's vectorised kernel returns 0 where x is NaN.
  const at::Tensor gradient = at::logit_backward(wide(dy), wide(x), epsilon(eps));
  dx = at::where(at::isnan(x), wide(x), gradient);
}

}  // namespace aclnn_host::elementwise_special_functions_rows
