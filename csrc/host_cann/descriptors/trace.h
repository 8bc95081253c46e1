#pragma once

#include <atomic>
#include <cstdint>

#include "aclnn/aclnn_base.h"
#include "host_cann/descriptors/given.h"
#include "host_cann/runtime/visibility.h"

// Who called which operator with what: events of Chrome's trace format, one a line. The file begins
// with "[" and its end may be missing, as that format allows, so it is whole whenever it is read.
// Events go to it by one write() each at its end, from any thread and process.
namespace aclnn_host {

// How many traces are on; below 0, when the environment was not asked yet.
ACLNN_HOST_INTERNAL extern std::atomic<int> trace_state;
ACLNN_HOST_INTERNAL int64_t trace_clock() noexcept;  // asks the environment if need be

// When an event began, in nanoseconds; 0 if calls are not traced.
inline int64_t trace_begin() noexcept {
  return trace_state.load(std::memory_order_relaxed) == 0 ? 0 : trace_clock();
}

// The end of what began then: a stage 1, a stage 2, and the computation on the stream's thread.
ACLNN_HOST_INTERNAL void trace_stage1(const char* api, int64_t begin, aclnnStatus status,
                                      GivenArguments given) noexcept;
ACLNN_HOST_INTERNAL void trace_stage2(const char* api, int64_t begin, aclnnStatus status,
                                      uint64_t workspace_size) noexcept;
ACLNN_HOST_INTERNAL void trace_run(const char* api, int64_t begin, int status) noexcept;

}  // namespace aclnn_host
