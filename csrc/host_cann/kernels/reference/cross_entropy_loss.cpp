// The reference for the cross entropy vector kernels.

#include "host_cann/kernels/cross_entropy_loss.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace aclnn_host {
namespace {

template <class T>
using RealOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
ExponentialSum exponential_sum(const void* x, int64_t n, bool) {
  using Real = RealOf<T>;
  const auto* row = static_cast<const T*>(x);
  Real max = -std::numeric_limits<Real>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    if (static_cast<Real>(row[i]) > max) max = static_cast<Real>(row[i]);
  }
  const Real shift = std::isinf(max) && max < 0 ? Real(0) : max;
  // Summed in double, where the order has no visible effect.
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<Real>(row[i]) - shift);
  return {max, static_cast<Real>(sum)};
}

template <class T>
void exponential_sums(const void* x, int64_t rows, int64_t n, ExponentialSum* sums) {
  for (int64_t row = 0; row < rows; ++row) {
    sums[row] = exponential_sum<T>(static_cast<const T*>(x) + row * n, n, false);
  }
}

void logarithms(double* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) values[i] = std::log(values[i]);
}

template <class T>
void log_prob(const void* x, double max, double log_sum, void* log_prob, int64_t n, bool) {
  using Real = RealOf<T>;
  const auto* row = static_cast<const T*>(x);
  for (int64_t i = 0; i < n; ++i) {
    static_cast<T*>(log_prob)[i] = static_cast<T>(
        (static_cast<Real>(row[i]) - static_cast<Real>(max)) - static_cast<Real>(log_sum));
  }
}

template <class T>
ExponentialSum log_prob_and_next_sum(const void* x, double max, double log_sum, void* log_prob,
                                     const void* next, int64_t n) {
  aclnn_host::log_prob<T>(x, max, log_sum, log_prob, n, true);
  return exponential_sum<T>(next, n, true);
}

template <class T>
double weighted_sum(const void* x, const void* weight, double max, double log_sum, int64_t n) {
  using Real = RealOf<T>;
  const auto* row = static_cast<const T*>(x);
  const auto* weights = static_cast<const Real*>(weight);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Real value =
        (static_cast<Real>(row[i]) - static_cast<Real>(max)) - static_cast<Real>(log_sum);
    sum += weights ? weights[i] * value : value;
  }
  return static_cast<Real>(sum);
}

template <class T>
void probability(const void* x, double max, double factor, void* probability, int64_t n) {
  using Real = RealOf<T>;
  const auto* row = static_cast<const T*>(x);
  for (int64_t i = 0; i < n; ++i) {
    static_cast<Real*>(probability)[i] =
        std::exp(static_cast<Real>(row[i]) - static_cast<Real>(max)) * static_cast<Real>(factor);
  }
}

template <class T>
void gradient(const void* log_prob, const void* weight, double factor, double smoothing,
              void* gradient, int64_t n, bool) {
  using Real = RealOf<T>;
  const auto* row = static_cast<const T*>(log_prob);
  const auto* weights = static_cast<const Real*>(weight);
  for (int64_t i = 0; i < n; ++i) {
    Real value = std::exp(static_cast<Real>(row[i])) * static_cast<Real>(factor);
    if (smoothing != 0) value -= static_cast<Real>(smoothing) * (weights ? weights[i] : Real(1));
    static_cast<T*>(gradient)[i] = static_cast<T>(value);
  }
}

template <class T>
constexpr CrossEntropyLossKernels kernels_of() {
  return {exponential_sum<T>,       exponential_sums<T>, logarithms,     log_prob<T>,
          log_prob_and_next_sum<T>, weighted_sum<T>,     probability<T>, gradient<T>};
}

}  // namespace

template <>
const CrossEntropyLossKernelSet& cross_entropy_loss_kernels<Capability::kReference>() noexcept {
  static constexpr CrossEntropyLossKernelSet kKernels = {
      kernels_of<float>(), kernels_of<c10::Half>(), kernels_of<c10::BFloat16>(),
      kernels_of<double>()};
  return kKernels;
}

const CrossEntropyLossKernelSet& cross_entropy_loss_kernels() noexcept {
  return select_kernels(
      []<Capability kVersion>() -> auto& { return cross_entropy_loss_kernels<kVersion>(); });
}

}  // namespace aclnn_host
