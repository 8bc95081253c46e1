#pragma once

#include <cstdint>

#include "host_cann/kernels/by_type.h"

namespace aclnn_host {

// A kernel over n contiguous elements of one type: out[i] = f(first[i], second[i]); `second` is
// null for a unary function. `out` may alias an input. `coefficients` points to the struct that the
// operator's header declares. With `streaming`, out will not be read soon and should bypass the
// caches.
using ElementwiseKernel = void (*)(const void* coefficients, const void* first, const void* second,
                                   void* out, int64_t n, bool streaming);

// One for each floating type.
using FloatKernels = KernelsByType<ElementwiseKernel>;

// The coefficients of a kernel without any.
template <class Real>
struct NoCoefficients {};

}  // namespace aclnn_host
