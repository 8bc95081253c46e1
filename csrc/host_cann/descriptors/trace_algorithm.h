#pragma once

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Which algorithm will compute a result of the stage 1 that this thread is in, for its event in the
// trace; both are literals.
ACLNN_HOST_INTERNAL void trace_algorithm(const char* result, const char* algorithm) noexcept;

}  // namespace aclnn_host
