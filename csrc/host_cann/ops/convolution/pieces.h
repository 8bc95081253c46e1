// The same bits for any number of threads, of computations whose sums depend on it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

#include "host_cann/ops/convolution/algorithm.h"

namespace aclnn_host {

// A convolution's tensors as ATen takes them; those that are not there are undefined.
struct AtenOperands {
  at::Tensor src;
  at::Tensor dst;
  at::Tensor weight;
  at::Tensor bias;
  // Where the results go, of algorithms that do not allocate them.
  at::Tensor image;
  at::Tensor weight_gradient;

  // Without the results' places. Tensors of another type are cast.
  AtenOperands(const Operands& operands, aclDataType dtype);
  AtenOperands(const Operands& operands, const Results& results, aclDataType dtype);
};

// What was computed: the passes' image, and the weight's gradient.
struct AtenResults {
  at::Tensor image;
  at::Tensor weight;
};

using Compute = std::function<AtenResults(const AtenOperands& operands)>;

// Computes the batch in pieces, divided by its size alone and each on one thread, so that every
// thread sums in the order in which a single one does. The pieces' gradients of the weight are
// added one after the other.
AtenResults compute_in_pieces(const AtenOperands& operands, const Passes& passes,
                              const Compute& compute);

// Notes where results are.
void take(const AtenResults& from, Results& to);

}  // namespace aclnn_host
