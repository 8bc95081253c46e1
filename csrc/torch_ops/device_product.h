#pragma once

#include <string>

#include <c10/core/Device.h>

namespace aclnn_torch {

// The product whose rules apply to a device's tensors: that of the embedded host CANN, or on an NPU
// that of the CANN that torch_npu runs on. A real CANN returns its chip's name, e.g. Ascend910B2.
std::string product_of(c10::Device device);

}  // namespace aclnn_torch
