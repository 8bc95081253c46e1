#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Settings of the simulated machine from the environment, read once.
struct Settings {
  int32_t devices = 1;          // ACLNN_TORCH_DEVICES, 1 to 64
  size_t device_memory = 0;     // ACLNN_TORCH_DEVICE_MEMORY in bytes; default: host memory
  bool strict = false;          // ACLNN_TORCH_STRICT: the host cannot access device memory
  bool inline_streams = false;  // ACLNN_TORCH_INLINE_STREAMS: callers run a stream's tasks
  bool padding = false;         // ACLNN_TORCH_PADDING: tensors may use the padding of a block
  bool hccl_network = false;    // ACLNN_TORCH_HCCL_NETWORK: ranks are on separate hosts
  std::string problem;          // values that could not be parsed; empty if none
};

ACLNN_HOST_INTERNAL const Settings& settings();

// The number of devices that the process may use. ASCEND_RT_VISIBLE_DEVICES lists their numbers, up
// to the first invalid entry; numbers that do not increase leave no device. Read at each call,
// because programs set it before they use a device. Only the count matters.
ACLNN_HOST_INTERNAL int32_t visible_devices() noexcept;

}  // namespace aclnn_host
