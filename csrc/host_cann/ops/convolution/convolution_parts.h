// Division of a convolution's work among threads.
#pragma once

#include <cstdint>

#include "host_cann/ops/convolution/problem.h"
#include "host_cann/ops/thread_parts.h"

namespace aclnn_host {

inline int64_t part_count(const ConvolutionSizes& sizes) {
  return part_count(product_count(sizes));
}

}  // namespace aclnn_host
