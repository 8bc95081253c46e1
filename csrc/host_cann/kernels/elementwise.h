#pragma once

#include <cstdint>

#include "host_cann/kernels/by_type.h"

namespace aclnn_host {

// A kernel over n contiguous elements of one type: out[i] = f(first[i], second[i]); `second` is
// null for a function of one argument. `out` may be an input. `coefficients` points at what the
// operator's header declares. With `streaming`, out will not be read soon: it should bypass the
// caches.
using ElementwiseKernel = void (*)(const void* coefficients, const void* first, const void* second,
                                   void* out, int64_t n, bool streaming);

// One for each floating type.
using FloatKernels = KernelsByType<ElementwiseKernel>;

// What a kernel reads whose formula has no numbers of the caller's.
template <class Real>
struct NoCoefficients {};

}  // namespace aclnn_host
