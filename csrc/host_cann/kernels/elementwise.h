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

  // `gains_by_lookup`: of one element of 16 bits, to compute the result takes longer than to look
  // it up among those of all 65536. It says nothing of functions of two elements and of other
  // types. Not explicit: most kernels are a function and nothing else.
  constexpr ElementwiseKernel(Function function, bool gains_by_lookup = false)
      : function_(function), gains_by_lookup_(gains_by_lookup) {}

  void operator()(const void* coefficients, const void* first, const void* second, void* out,
                  int64_t n, bool streaming) const {
    function_(coefficients, first, second, out, n, streaming);
  }
  bool gains_by_lookup() const { return gains_by_lookup_; }

 private:
  Function function_;
  bool gains_by_lookup_;
};

// One for each floating type.
using FloatKernels = KernelsByType<ElementwiseKernel>;

// The coefficients of a kernel without any.
template <class Real>
struct NoCoefficients {};

}  // namespace aclnn_host
