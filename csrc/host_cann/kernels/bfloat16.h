#pragma once

#include <cstdint>

namespace aclnn_host {

// A BFLOAT16 element in memory: the upper half of a float.
struct BFloat16 {
  uint16_t bits;

  bool operator==(const BFloat16&) const = default;
};

}  // namespace aclnn_host
