// Makes computations whose sums depend on the number of threads reproducible.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

#include "host_cann/ops/convolution/algorithm.h"

namespace aclnn_host {

// A convolution's tensors in ATen's form; absent ones are undefined.
struct AtenOperands {
  at::Tensor src;
  at::Tensor dst;
  at::Tensor weight;
  at::Tensor bias;
  // Destinations of the results, for algorithms that do not allocate them.
  at::Tensor image;
  at::Tensor weight_gradient;

  // Leaves the destinations undefined. Casts tensors of another dtype.
  AtenOperands(const Operands& operands, aclDataType dtype);
  AtenOperands(const Operands& operands, const Results& results, aclDataType dtype);
};

// Results: the passes' image, and the weight's gradient.
struct AtenResults {
  at::Tensor image;
  at::Tensor weight;
};

using Compute = std::function<AtenResults(const AtenOperands& operands)>;

// Computes the batch in pieces that depend only on its size, each on one thread, so that the
// summation order does not depend on the number of threads. The pieces' weight gradients are added
// in order.
AtenResults compute_in_pieces(const AtenOperands& operands, const Passes& passes,
                              const Compute& compute);

// Sets the locations of the results.
void take(const AtenResults& from, Results& to);

}  // namespace aclnn_host
