// The reference: what the vector kernels of Hardsigmoid must compute, element by element.

#include "host_cann/kernels/hardsigmoid.h"

#include "host_cann/kernels/reference/elementwise_loop.h"

namespace aclnn_host {
namespace {

struct Forward {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real x) {
    if (x <= -3) return 0;
    return x >= 3 ? 1 : (x + 3) / 6;
  }
};

struct Backward {
  template <class Real>
  static Real apply(NoCoefficients<Real>, Real g, Real x) {
    return -3 < x && x < 3 ? g / 6 : 0;
  }
};

}  // namespace

template <>
const HardsigmoidKernels& hardsigmoid_kernels<Capability::kReference>() noexcept {
  static constexpr HardsigmoidKernels kKernels = {kernels_of<Forward, NoCoefficients>(),
                                                  kernels_of<Backward, NoCoefficients>()};
  return kKernels;
}

const HardsigmoidKernels& hardsigmoid_kernels() noexcept {
  return select_kernels(
      []<Capability kVersion>() -> auto& { return hardsigmoid_kernels<kVersion>(); });
}

void hardsigmoid_int32(const void*, const void* first, const void*, void* out, int64_t n, bool) {
  const auto* x = static_cast<const int32_t*>(first);
  auto* y = static_cast<int32_t*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] >= 3;
}

}  // namespace aclnn_host
