#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// What the environment says of the simulated machine, read once.
struct Settings {
  int32_t devices = 1;          // ACLNN_TORCH_DEVICES, 1 to 64
  size_t device_memory = 0;     // ACLNN_TORCH_DEVICE_MEMORY in bytes; default: the machine's memory
  bool strict = false;          // ACLNN_TORCH_STRICT: device memory is closed to the host
  bool inline_streams = false;  // ACLNN_TORCH_INLINE_STREAMS: a stream's callers do its work
  bool padding = false;         // ACLNN_TORCH_PADDING: tensors may use the padding of a block
  bool hccl_network = false;    // ACLNN_TORCH_HCCL_NETWORK: ranks share no host
  std::string problem;          // the values that could not be read; empty when all is well
};

ACLNN_HOST_INTERNAL const Settings& settings();

// How many of the devices the process may see. ASCEND_RT_VISIBLE_DEVICES has their numbers; what
// follows something else does not count, and where they do not rise there is no device. It is read
// anew each time, as programs set it before they use one. Which devices they are makes no
// difference.
ACLNN_HOST_INTERNAL int32_t visible_devices() noexcept;

}  // namespace aclnn_host
