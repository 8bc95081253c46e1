#pragma once

#include <cstdint>
#include <string>

#include "acl/acl_base.h"

namespace aclnn_host {

// Failures of streams and of torch_npu's queues that were not reported yet. A failure is reported
// when a function returns it; otherwise the reset of its device returns it. If the device is not
// reset either, `aclnn-torch run` reports it: ACLNN_TORCH_FAILURES holds the /proc path of its
// memory (memfd_create), to which each failure is written as a line of JSON when it happens and
// again when it is reported, so that killing the process loses none.

// Reads the variable before failures can happen on streams' threads, because another thread may
// change the environment meanwhile.
void read_where_to_write();

// Adds the failure of a stream, given by its id, in a task that `api` submitted; or of a queue,
// with id 0 and a null api.
void add_unreported(int32_t device, uint64_t stream, const char* api, aclError status,
                    const std::string& text) noexcept;

// Marks failures of this status and text as reported: those of the device, or of all devices if it
// is negative. A stream that waited for another's event has that stream's failure, too.
void mark_reported(aclError status, const std::string& text, int32_t device = -1) noexcept;

// fail_again() for a failure of a known device.
int fail_again_on(int32_t device, int status, const std::string& text) noexcept;

// Reports the failures of the device, or of all devices if it is negative: stores all texts and
// returns the first one's status.
aclError report_all(int32_t device) noexcept;

}  // namespace aclnn_host
