#include <atomic>

#include "cann/prefix/include/aclnnop/aclnn_set_pytorch_random.h"
#include "host_cann/runtime/error_messages.h"

namespace {

std::atomic<int32_t> current_mode{0};

}  // namespace

aclnnStatus aclnnSetPytorchRandom(int32_t pytorchRandom) {
  if (pytorchRandom != 0 && pytorchRandom != 1) {
    return aclnn_host::fail(ACLNN_ERR_PARAM_INVALID,
                            "aclnnSetPytorchRandom: pytorchRandom is %d, expected 0 or 1",
                            pytorchRandom);
  }
  current_mode = pytorchRandom;
  return ACLNN_SUCCESS;
}

int32_t aclnnGetPytorchRandom(void) {
  return current_mode;
}
