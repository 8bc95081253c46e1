#pragma once

#include <atomic>
#include <cstdint>

#include "aclnn/aclnn_base.h"
#include "host_cann/descriptors/given.h"
#include "host_cann/runtime/visibility.h"

// Traces operator calls with their arguments as events in Chrome's trace format, one per line. A
// file begins with "["; the format allows a missing end, so the file is valid at any time. Each
// event is written by one write() at its end, from any thread or process.
namespace aclnn_host {

// The number of active traces; negative until the environment was read.
ACLNN_HOST_INTERNAL extern std::atomic<int> trace_state;
ACLNN_HOST_INTERNAL int64_t trace_clock() noexcept;  // reads the environment if needed

// The begin time of an event in nanoseconds; 0 if calls are not traced.
inline int64_t trace_begin() noexcept {
  return trace_state.load(std::memory_order_relaxed) == 0 ? 0 : trace_clock();
}

// Records the end of an event: a stage 1, a stage 2, or the computation on the stream's thread.
ACLNN_HOST_INTERNAL void trace_stage1(const char* api, int64_t begin, aclnnStatus status,
                                      GivenArguments given) noexcept;
ACLNN_HOST_INTERNAL void trace_stage2(const char* api, int64_t begin, aclnnStatus status,
                                      uint64_t workspace_size) noexcept;
ACLNN_HOST_INTERNAL void trace_run(const char* api, int64_t begin, int status) noexcept;

}  // namespace aclnn_host
