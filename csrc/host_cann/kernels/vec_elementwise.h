// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <cstdint>
#include <type_traits>

#include "host_cann/kernels/elementwise.h"
#include "host_cann/kernels/vec_loop.h"

namespace aclnn_host {
namespace {

// The ElementwiseKernel of a function: Function<T>, constructed from its coefficients, computes one
// vector of elements of type T from one or two.
template <template <class> class Function, template <class> class Coefficients, class T>
void kernel(const void* coefficients, const void* first, const void* second, void* out, int64_t n,
            bool streaming) {
  const Function<T> function(*static_cast<const Coefficients<RealOf<T>>*>(coefficients));
  const auto* a = static_cast<const T*>(first);
  auto* to = static_cast<T*>(out);
  if constexpr (std::is_invocable_v<Function<T>, VectorOf<T>>) {
    loop(a, to, n, streaming, function);
  } else {
    loop(a, static_cast<const T*>(second), to, n, streaming, function);
  }
}

template <template <class> class Function, template <class> class Coefficients,
          bool gains_by_lookup = false>
constexpr FloatKernels kernels_of() {
  return {kernel<Function, Coefficients, float>,
          {kernel<Function, Coefficients, c10::Half>, gains_by_lookup},
          {kernel<Function, Coefficients, c10::BFloat16>, gains_by_lookup},
          kernel<Function, Coefficients, double>};
}

// Whether a function of an exponential gains by lookup. AVX-512 computes it as fast.
#if defined(CPU_CAPABILITY_AVX512)
constexpr bool kExpGainsByLookup = false;
#else
constexpr bool kExpGainsByLookup = true;
#endif

}  // namespace
}  // namespace aclnn_host
