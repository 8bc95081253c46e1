#pragma once

#include <cstdint>

#include "acl/acl_base.h"
#include "host_cann/kernels/by_type.h"
#include "host_cann/kernels/capability.h"

namespace aclnn_host {

// The sum of a row piece's exponentials as `sum` * exp(`max`), in which no term overflows.
struct ExponentialSum {
  double max;  // the largest element, skipping NaN; -inf if there is none
  double sum;  // of exp(x - max) over the elements; 0 when max is -inf
};

// The kernels of cross entropy for one element type, each over n contiguous elements of one row.
// 16-bit elements are widened to float once and rounded once; scalars and `weight` have the compute
// type. With `streaming`, the output will not be read soon and should bypass the caches.
struct CrossEntropyLossKernels {
  // Here `streaming` says that the n elements after these are needed next.
  ExponentialSum (*exponential_sum)(const void* x, int64_t n, bool streaming);
  // The same bits for consecutive rows; faster for short ones.
  void (*exponential_sums)(const void* x, int64_t rows, int64_t n, ExponentialSum* sums);
  // Replaces n numbers by their natural logarithms, accurate to 1 ULP.
  void (*logarithms)(double* values, int64_t n);
  // log_prob = (x - max) - log_sum
  void (*log_prob)(const void* x, double max, double log_sum, void* log_prob, int64_t n,
                   bool streaming);
  // log_prob() that streams, and exponential_sum() of the n elements of `next`, prefetching those
  // after them. Combined, reads and writes overlap. Fraction of the memory bandwidth for FLOAT,
  // BFLOAT16 and FLOAT16, separately: 0.75, 0.62, 0.60; combined: 0.90, 0.69, 0.70.
  ExponentialSum (*log_prob_and_next_sum)(const void* x, double max, double log_sum, void* log_prob,
                                          const void* next, int64_t n);
  // The sum of weight * ((x - max) - log_sum); null weights are 1.
  double (*weighted_sum)(const void* x, const void* weight, double max, double log_sum, int64_t n);
  // probability = exp(x - max) * factor, in the compute type; may overwrite x if that has this
  // type.
  void (*probability)(const void* x, double max, double factor, void* probability, int64_t n);
  // gradient = exp(log_prob) * factor - smoothing * weight; null weights are 1, and weights are not
  // read if smoothing is 0. NaN scalars must be canonical: zero lower bits.
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
