#pragma once

#include <cstddef>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Whether the program has registered all of the range, at once, for devices to use.
ACLNN_HOST_INTERNAL bool is_registered(const void* address, size_t count) noexcept;

}  // namespace aclnn_host
