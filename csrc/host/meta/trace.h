#pragma once

namespace aclnn_host {

// Appends the operator's name to the file that the environment variable ACLNN_TORCH_TRACE names,
// if it names one.
void trace(const char* api) noexcept;

}  // namespace aclnn_host
