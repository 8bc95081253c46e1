#pragma once

#include <cstddef>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// True if one registration of the program for device access covers the range.
ACLNN_HOST_INTERNAL bool is_registered(const void* address, size_t count) noexcept;

}  // namespace aclnn_host
