#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace aclnn_host {

// What the environment says of the simulated machine, read once.
struct Settings {
  int32_t devices = 1;       // ACLNN_TORCH_DEVICES, 1 to 64
  size_t device_memory = 0;  // ACLNN_TORCH_DEVICE_MEMORY in bytes; default: the machine's memory
  std::string problem;       // the values that could not be read; empty when all is well
};

const Settings& settings();

}  // namespace aclnn_host
