#pragma once

#include <cstdint>

#include "host_cann/kernels/by_type.h"

namespace aclnn_host {

// A kernel over n contiguous elements of one type: out[i] = f(first[i], second[i]); `second` is
// null for a unary function. `out` may alias an input. `coefficients` points to the struct that the
// operator's header declares. With `streaming`, out will not be read soon and should bypass the
// caches.
class ElementwiseKernel {
 public:
  using Function = void (*)(const void* coefficients, const void* first, const void* second,
                            void* out, int64_t n, bool streaming);

  // `is_slow` says of a unary function of 16 bits that it takes longer to compute an element than
  // to look it up among the results of all 65536.
  // NOLINTNEXTLINE(google-explicit-constructor): a function is a kernel
  constexpr ElementwiseKernel(Function function, bool is_slow = false)
      : function_(function), is_slow_(is_slow) {}

  void operator()(const void* coefficients, const void* first, const void* second, void* out,
                  int64_t n, bool streaming) const {
    function_(coefficients, first, second, out, n, streaming);
  }
  bool is_slow() const { return is_slow_; }

 private:
  Function function_;
  bool is_slow_;
};

// One for each floating type.
using FloatKernels = KernelsByType<ElementwiseKernel>;

// The coefficients of a kernel without any.
template <class Real>
struct NoCoefficients {};

}  // namespace aclnn_host
