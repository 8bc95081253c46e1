#pragma once

#include <cstddef>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Sets memory to 0. Pages of a large block of aclrtMalloc that nobody has touched are zeros, and
// stay untouched: clearing them takes no time, and no memory before they are used.
ACLNN_HOST_INTERNAL void clear(void* address, size_t count) noexcept;

}  // namespace aclnn_host
