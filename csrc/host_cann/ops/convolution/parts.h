// How the work of a convolution is divided among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ATen/Parallel.h>

#include "host_cann/ops/convolution/problem.h"

namespace aclnn_host {

// Into how many parts so many products are divided: as many as there are threads, if each has
// enough to be worth waking.
inline int64_t part_count(double products) {
  constexpr double kGrain = 1 << 17;
  return std::clamp<int64_t>(static_cast<int64_t>(products / kGrain), 1, at::get_num_threads());
}

inline int64_t part_count(const ConvolutionSizes& sizes) {
  return part_count(product_count(sizes));
}

}  // namespace aclnn_host
