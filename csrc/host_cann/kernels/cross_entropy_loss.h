#pragma once

#include <cstdint>

#include "acl/acl_base.h"
#include "host_cann/kernels/by_type.h"
#include "host_cann/kernels/capability.h"

namespace aclnn_host {

// How the exponentials of a piece of a row sum up: as `sum` * exp(`max`), where no summand
// overflows.
struct ExponentialSum {
  double max;  // the largest element; nan is passed over, and -inf if there is no other
  double sum;  // of exp(x - max) over the elements; 0 when max is -inf
};

// The kernels of cross entropy for one type of elements, each over n contiguous elements of one
// row. 16-bit elements are widened to float once and rounded once; scalars are used in the type
// the kernels compute in, which `weight` has too. With `streaming`, the output will not be read
// soon: it should bypass the caches.
struct CrossEntropyLossKernels {
  // `streaming` here says that the n elements after these are wanted next.
  ExponentialSum (*exponential_sum)(const void* x, int64_t n, bool streaming);
  // The same for rows that follow one another, with the same bits; for short ones, faster.
  void (*exponential_sums)(const void* x, int64_t rows, int64_t n, ExponentialSum* sums);
  // Replaces n numbers by their natural logarithms, which are good to 1 ULP.
  void (*logarithms)(double* values, int64_t n);
  // log_prob = (x - max) - log_sum
  void (*log_prob)(const void* x, double max, double log_sum, void* log_prob, int64_t n,
                   bool streaming);
  // log_prob() that streams, and exponential_sum() of the n elements of `next`, with those after
  // them wanted next. Together, memory is read and written at the same time: of its speed, FLOAT,
  // BFLOAT16 and FLOAT16 one after the other: 0.75, 0.62, 0.60; together: 0.90, 0.69, 0.70.
  ExponentialSum (*log_prob_and_next_sum)(const void* x, double max, double log_sum, void* log_prob,
                                          const void* next, int64_t n);
  // The sum of weight * ((x - max) - log_sum); null weights are 1.
  double (*weighted_sum)(const void* x, const void* weight, double max, double log_sum, int64_t n);
  // probability = exp(x - max) * factor, in the type the kernels compute in; in the place of x too,
  // where that is its type.
  void (*probability)(const void* x, double max, double factor, void* probability, int64_t n);
  // gradient = exp(log_prob) * factor - smoothing * weight; null weights are 1, and none is read
  // when smoothing is 0. A nan among the scalars has the default one's lower bits, zeros.
  void (*gradient)(const void* log_prob, const void* weight, double factor, double smoothing,
                   void* gradient, int64_t n, bool streaming);
};

using CrossEntropyLossKernelSet = KernelsByType<CrossEntropyLossKernels>;

// The kernels in one version; kernels/cross_entropy_loss.cpp defines it once per CPU capability.
template <Capability>
const CrossEntropyLossKernelSet& cross_entropy_loss_kernels() noexcept;

// The version for this CPU.
const CrossEntropyLossKernelSet& cross_entropy_loss_kernels() noexcept;

}  // namespace aclnn_host
