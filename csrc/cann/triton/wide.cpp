#include "cann/triton/wide.h"

namespace aclnn_host::triton {

ACLNN_WIDE void floats_of_f16(const uint16_t* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = float_of_f16(from[i]);
}

ACLNN_WIDE void floats_of_bf16(const uint16_t* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = float_of_bf16(from[i]);
}

ACLNN_WIDE void f16_of_floats(const float* from, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = f16_of_float(from[i]);
}

ACLNN_WIDE void bf16_of_floats(const float* from, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = bf16_of_float(from[i]);
}

ACLNN_WIDE void move_by_offsets(const int64_t* addresses, const int32_t* offsets, int shift,
                                int64_t count, int64_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = addresses[i] + (static_cast<int64_t>(offsets[i]) << shift);
  }
}

ACLNN_WIDE int64_t consecutive(const uintptr_t* addresses, int64_t most, uintptr_t distance) {
  constexpr int64_t kAtOnce = 16;
  int64_t i = 0;
  for (; i + kAtOnce <= most; i += kAtOnce) {
    uintptr_t difference = 0;
    for (int64_t j = i; j < i + kAtOnce; ++j) {
      difference |= (addresses[j + 1] - addresses[j]) ^ distance;
    }
    if (difference != 0) break;
  }
  while (i < most && addresses[i + 1] - addresses[i] == distance) ++i;
  return i;
}

}  // namespace aclnn_host::triton
