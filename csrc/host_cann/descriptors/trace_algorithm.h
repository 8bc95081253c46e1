#pragma once

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Records the algorithm that will compute a result of this thread's current stage 1, for its trace
// event; both arguments are literals.
ACLNN_HOST_INTERNAL void trace_algorithm(const char* result, const char* algorithm) noexcept;

}  // namespace aclnn_host
