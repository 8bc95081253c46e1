#pragma once

#include <string>

#include <c10/core/Device.h>

namespace aclnn_torch {

// Whose rules hold for a device's tensors: the product of the embedded host CANN, or on an NPU that
// of the CANN that torch_npu runs on; a real one names its chip, e.g. Ascend910B2.
std::string product_of(c10::Device device);

}  // namespace aclnn_torch
